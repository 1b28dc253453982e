"""The partitions of a table's entries: typed values, text, and folders, worked out once per distinct partition."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer import frames
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats.paimon.metadata import binary_row
from snapshot_explorer.formats.paimon.metadata.layout import bucket_folder, data_path
from snapshot_explorer.formats.paimon.metadata.partition_text import legacy_text, sql_text
from snapshot_explorer.formats.paimon.metadata.schema import Schema
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """The distinct partitions of some entries."""

    of_rows: pa.Array
    """For each entry the position of its partition among the distinct ones."""
    values: pa.Table
    """The distinct partitions, a typed column per partition key."""
    texts: tuple[Mapping[str, str | None], ...]
    """The distinct partitions as text, as SQL prints values; null is None."""

    def where(self, kept: npt.NDArray[np.bool_]) -> "Partitions":
        """Return the partitions of some of the entries."""
        return replace(self, of_rows=self.of_rows.filter(pa.array(kept)))

    def column(self) -> pa.Array:
        """Return the entries' partitions as a map column."""
        return pa.array([list(text.items()) for text in self.texts], frames.PARTITION).take(self.of_rows)


def partitions_of(rows: pa.ChunkedArray | pa.Array, schema: Schema) -> Partitions:
    """Return the partitions of a column of BinaryRows.

    Raises:
        CorruptTableError: A partition does not fit the schema.
    """
    encoded = single_chunk(rows).dictionary_encode()
    fields = [schema.field(name) for name in schema.partition_keys]
    values = binary_row.decode(encoded.dictionary, fields)
    columns = [sql_text(values.column(index), field.type) for index, field in enumerate(fields)]
    names = [field.name for field in fields]
    return Partitions(
        of_rows=encoded.indices,
        values=values,
        texts=tuple(
            dict(zip(names, (column[row] for column in columns), strict=True)) for row in range(len(encoded.dictionary))
        ),
    )


def folders_of(
    partitions: Partitions, buckets: pa.ChunkedArray, schema: Schema, options: Mapping[str, str]
) -> pa.Array:
    """Return the folder of each entry's partition and bucket.

    Args:
        partitions: The entries' partitions.
        buckets: The entries' buckets.
        schema: The schema of the partition columns.
        options: The newest options, which say how folders are called.

    Source: paimon docs, "File Layouts".
    """
    legacy = options.get("partition.legacy-name", "true").strip().lower() == "true"
    spell = legacy_text if legacy else sql_text
    fields = [schema.field(name) for name in schema.partition_keys]
    columns = [spell(partitions.values.column(index), field.type) for index, field in enumerate(fields)]
    # Partition and bucket in one number: the distinct pairs are found by sorting numbers.
    pairs = _numbers(partitions.of_rows) << 32 | _numbers(buckets) & 0xFFFFFFFF
    distinct, of_rows = np.unique(pairs, return_inverse=True)
    folders = [
        bucket_folder(
            [(field.name, column[partition]) for field, column in zip(fields, columns, strict=True)], bucket, options
        )
        for partition, bucket in zip((distinct >> 32).tolist(), distinct.astype(np.int32).tolist(), strict=True)
    ]
    return pa.array(folders, pa.string()).take(pa.array(of_rows))


def _numbers(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return np.asarray(single_chunk(column).to_numpy(zero_copy_only=False), np.int64)


def data_paths(entries: pa.Table, folders: pa.Array, storage: Storage, *, strict: bool) -> pa.Array:
    """Return the path of each entry's file, for `Storage.read` and `open`.

    Args:
        entries: ENTRIES.
        folders: The folder of each.
        storage: The table's storage, which resolves files at full locations.
        strict: Refuse a location on another storage; otherwise it is returned as it is stored, to be shown.

    Raises:
        UnsupportedFeatureError: With `strict`, a file is on another storage.
    """
    names = single_chunk(entries.column("file_name"))
    paths = pc.binary_join_element_wise(folders, names, "/")
    external = entries.column("external_path")
    if external.null_count == len(external):
        return paths
    listed = zip(folders.to_pylist(), names.to_pylist(), external.to_pylist(), strict=True)
    return pa.array(
        [
            _resolved(storage, location, strict=strict) if location else data_path(folder, name, None)
            for folder, name, location in listed
        ],
        pa.string(),
    )


def _resolved(storage: Storage, location: str, *, strict: bool) -> str:
    try:
        return storage.resolve_external(location)
    except UnsupportedFeatureError:
        if strict:
            raise
        return location
