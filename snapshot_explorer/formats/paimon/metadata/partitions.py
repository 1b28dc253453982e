"""The partitions of manifest entries: typed values, text and folders, computed once per distinct partition."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.formats.paimon.metadata import binary_row
from snapshot_explorer.formats.paimon.metadata.layout import bucket_folders
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.paimon.metadata.value_texts import legacy_text, sql_text
from snapshot_explorer.formats.settings import parse_flag
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonPartitions:
    """The distinct partitions of a set of entries."""

    of_rows: pa.Array
    """For each entry, the index of its partition among the distinct ones."""
    rows: pa.Array
    """The distinct partitions as BinaryRows."""
    values: pa.Table
    """The distinct partitions, a typed column per partition key."""
    texts: tuple[Mapping[str, str | None], ...]
    """The distinct partitions as text, in SQL's form; None for null."""

    def where(self, kept: npt.NDArray[np.bool_]) -> "PaimonPartitions":
        """Return the partitions of the selected entries."""
        return replace(self, of_rows=self.of_rows.filter(pa.array(kept)))

    def column(self) -> pa.Array:
        """Return the entries' partitions as a map column."""
        return pa.array([list(text.items()) for text in self.texts], frames.PARTITION).take(self.of_rows)


def partitions_of(rows: pa.ChunkedArray | pa.Array, schema: PaimonSchema) -> PaimonPartitions:
    """Return the partitions of a column of BinaryRows."""
    encoded = single_chunk(rows).dictionary_encode()
    fields = [schema.field(name) for name in schema.partition_keys]
    values = binary_row.decode(encoded.dictionary, fields)
    columns = [sql_text(values.column(index), field.type) for index, field in enumerate(fields)]
    names = [field.name for field in fields]
    return PaimonPartitions(
        of_rows=encoded.indices,
        rows=encoded.dictionary,
        values=values,
        texts=tuple(
            dict(zip(names, (column[row] for column in columns), strict=True)) for row in range(len(encoded.dictionary))
        ),
    )


def folders_of(
    partitions: PaimonPartitions, buckets: pa.ChunkedArray, schema: PaimonSchema, options: Mapping[str, str]
) -> pa.Array:
    """Return the folder of each entry's partition and bucket.

    Source: paimon docs, "File Layouts".
    """
    legacy = parse_flag(options, "partition.legacy-name", default=True)
    formatter = legacy_text if legacy else sql_text
    fields = [schema.field(name) for name in schema.partition_keys]
    columns = [formatter(partitions.values.column(index), field.type) for index, field in enumerate(fields)]
    # Partition and bucket in one integer: np.unique then finds the distinct pairs.
    pairs = _numbers(partitions.of_rows) << 32 | _numbers(buckets) & 0xFFFFFFFF
    distinct, of_rows = np.unique(pairs, return_inverse=True)
    indices, distinct_buckets = (distinct >> 32).tolist(), distinct.astype(np.int32).tolist()
    values = [
        (field.name, [column[position] for position in indices]) for field, column in zip(fields, columns, strict=True)
    ]
    folders = bucket_folders(values, distinct_buckets, options)
    return pa.array(folders, pa.string()).take(pa.array(of_rows))


def _numbers(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return np.asarray(single_chunk(column).to_numpy(zero_copy_only=False), np.int64)


def data_paths(entries: pa.Table, folders: pa.Array, storage: Storage, *, strict: bool) -> pa.Array:
    """Return the path of each entry's file, for `Storage.read` and `open`.

    Args:
        entries: ENTRIES.
        storage: The table's storage, which resolves files at full locations.
        strict: Raise for a location on another storage; otherwise it is returned as stored.
    """
    names = single_chunk(entries.column("file_name"))
    paths = pc.binary_join_element_wise(folders, names, "/")
    external = entries.column("external_path")
    if external.null_count == len(external):
        return paths
    listed = zip(folders.to_pylist(), names.to_pylist(), external.to_pylist(), strict=True)
    return pa.array(
        [
            external_path(storage, location, strict=strict) if location else f"{folder}/{name}"
            for folder, name, location in listed
        ],
        pa.string(),
    )


def external_path(storage: Storage, location: str, *, strict: bool) -> str:
    """Return the path of a file at a full location; with `strict`, raise for a location on another storage."""
    try:
        return storage.resolve_external(location)
    except UnsupportedFeatureError:
        if strict:
            raise
        return location
