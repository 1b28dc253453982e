"""Manifests: the entries of data files and delete files, with values inherited from the manifest list."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.avro.files import DecodedFiles
from snapshot_explorer.formats.iceberg.metadata.avro_files import (
    broken_file_error,
    by_ids,
    field_of,
    has_ids,
    read_avro,
    stored_schema,
)
from snapshot_explorer.formats.iceberg.metadata.entries import COUNTS, LIVE, STATISTICS
from snapshot_explorer.formats.iceberg.metadata.locations import Locations
from snapshot_explorer.formats.iceberg.metadata.partition_tuples import PartitionTuples
from snapshot_explorer.formats.iceberg.metadata.recorded_manifests import Confirmation, check_manifests
from snapshot_explorer.storage import Storage

EXISTING, ADDED, DELETED = 0, 1, 2
"""The status of an entry."""
ENTRIES = pa.schema(
    [
        pa.field("manifest", pa.int32(), nullable=False),
        pa.field("status", pa.int8(), nullable=False),
        *(field.with_nullable(field.nullable or field.name == "sequence_number") for field in LIVE),
    ]
)
"""A row is an entry: LIVE, its status, and the index of its manifest among those that were read.

The sequence number of a deleted entry is null where its writer left it out, as Iceberg before 1.1 did.
"""

_PARTITION, _VALUE_COUNTS = "102", "109"
_FILE = {
    "100": pa.string(),
    "101": pa.string(),
    _PARTITION: pa.struct([]),
    "103": pa.int64(),
    "104": pa.int64(),
    "131": pa.binary(),
    "132": pa.list_(pa.int64()),
    "134": pa.int32(),
    "135": pa.list_(pa.int32()),
    "140": pa.int32(),
    "142": pa.int64(),
    "143": pa.string(),
    "144": pa.int64(),
    "145": pa.int64(),
}
_NAMES = {
    "status": "0",
    "snapshot_id": "1",
    "data_file": "2",
    "sequence_number": "3",
    "file_sequence_number": "4",
    "file_path": "100",
    "file_format": "101",
    "partition": _PARTITION,
    "record_count": "103",
    "file_size_in_bytes": "104",
    "column_sizes": "108",
    "value_counts": _VALUE_COUNTS,
    "null_value_counts": "110",
    "lower_bounds": "125",
    "upper_bounds": "128",
    "key_metadata": "131",
    "split_offsets": "132",
    "content": "134",
    "equality_ids": "135",
    "nan_value_counts": "137",
    "sort_order_id": "140",
    "first_row_id": "142",
    "referenced_data_file": "143",
    "content_offset": "144",
    "content_size_in_bytes": "145",
}
"""The ids of the fields by their names in the specification."""
_STATISTICS = dict(zip(STATISTICS.names, ("108", _VALUE_COUNTS, "110", "137", "125", "128"), strict=True))
_OPTIONAL = {
    "key_metadata": "131",
    "split_offsets": "132",
    "equality_ids": "135",
    "sort_order_id": "140",
    "referenced_data_file": "143",
    "content_offset": "144",
    "content_size_bytes": "145",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """Entries of manifests, in the order of the manifests."""

    rows: pa.Table
    """ENTRIES, and the requested columns of STATISTICS."""
    partitions: PartitionTuples


def parse_manifests(  # noqa: PLR0913 - what is read, and how much of it
    manifests: pa.Table,
    contents: Sequence[bytes],
    locations: Locations,
    tuples: PartitionTuples,
    *,
    column_ids: Sequence[int],
    statistics: Sequence[str],
    changed: bool,
    storage: Storage,
) -> Entries:
    """Return the entries of manifests, deleted ones included.

    Args:
        manifests: MANIFEST_FILES.
        contents: The content of each.
        tuples: The partition tuples read so far; new tuples are added. Tuples of all entries are numbered together.
        column_ids: Columns that have as many values in a file as the file has rows.
        statistics: The columns of STATISTICS to decode.
        changed: Whether to leave out existing files, which are most of a merged manifest.
        storage: The table's storage, with the limits on files.

    Source: iceberg specification, "Manifests", "Sequence Number Inheritance", "Row Lineage"; iceberg
    InheritableMetadataFactory.
    """
    paths = manifests.column("path").to_pylist()
    file = _FILE | {_VALUE_COUNTS: COUNTS} | {_STATISTICS[name]: STATISTICS.field(name).type for name in statistics}
    entry_type = pa.struct({"0": pa.int32(), "1": pa.int64(), "3": pa.int64(), "4": pa.int64(), "2": pa.struct(file)})
    decoded = read_avro(list(zip(paths, contents, strict=True)), entry_type, _NAMES, storage.limits)
    sizes = [len(content) for content in contents]
    confirmations = check_manifests(decoded, manifests, sizes, column_ids, storage)
    parts = [
        _entries(item, confirmation, manifests, locations, tuples, statistics=statistics, changed=changed)
        for item, confirmation in zip(decoded, confirmations, strict=True)
    ]
    if not parts:
        return Entries(rows=_schema(statistics).empty_table(), partitions=tuples)
    table = pa.concat_tables(parts)
    indices = table.column("manifest").to_numpy()
    if (indices[1:] < indices[:-1]).any():
        table = table.take(pa.array(np.argsort(indices, kind="stable")))
    return Entries(rows=table, partitions=tuples)


def _schema(statistics: Sequence[str]) -> pa.Schema:
    return pa.schema([*ENTRIES, *map(STATISTICS.field, statistics)])


def _entries(
    decoded: DecodedFiles,
    confirmation: Confirmation,
    manifests: pa.Table,
    locations: Locations,
    tuples: PartitionTuples,
    *,
    statistics: Sequence[str],
    changed: bool,
) -> pa.Table:
    indices = np.repeat(np.array(decoded.files, np.int64), decoded.counts)
    entry = _fields(decoded.rows)
    file = _fields(entry["2"])
    of = _Manifests(manifests, indices)
    status = _required(entry["0"], "status", of)
    content = pc.fill_null(file["134"], 0)
    _check(status, content, of)
    records = _required(file["103"], "record_count", of)
    row_ids = _first_row_ids(file["142"], status, records, of)
    file |= {"rows": confirmation.rows, "size": confirmation.doubted_size}
    if changed:
        kept = pc.not_equal(status, EXISTING)
        entry, file = ({name: column.filter(kept) for name, column in part.items()} for part in (entry, file))
        status, content, records, row_ids = (column.filter(kept) for column in (status, content, records, row_ids))
        indices = indices[kept.to_numpy(zero_copy_only=False)]
        of = _Manifests(manifests, indices)
    path = _required(file["100"], "file_path", of)
    spec_ids = of.column("spec_id")
    schema = stored_schema(decoded.containers[0])
    partition_schema = field_of(by_ids(schema, _NAMES), "2", _PARTITION)
    columns = {
        "manifest": pa.array(indices, pa.int32()),
        "status": status.cast(pa.int8()),
        "path": path,
        "location": locations.many(path),
        "file_format": pc.utf8_lower(_required(file["101"], "file_format", of)),
        "content": content.cast(pa.int8()),
        "spec_id": spec_ids,
        "partition": tuples.numbered(spec_ids, file[_PARTITION], partition_schema, by_name=not has_ids(schema)),
        "record_count": records,
        "has_confirmed_rows": file["rows"],
        "size_bytes": _required(file["104"], "file_size_in_bytes", of),
        "has_doubted_size": file["size"],
        "snapshot_id": pc.coalesce(entry["1"], of.column("added_snapshot_id")),
        "sequence_number": _sequence_numbers(entry["3"], status, of),
        "file_sequence_number": _inherit(entry["4"], status, of),
        "first_row_id": row_ids,
        **{name: file[field] for name, field in _OPTIONAL.items()},
    }
    columns |= {name: file[_STATISTICS[name]] for name in statistics}
    result = _schema(statistics)
    return pa.Table.from_arrays([columns[field.name] for field in result], schema=result)


class _Manifests:
    def __init__(self, manifests: pa.Table, indices: npt.NDArray[np.int64]) -> None:
        self._manifests = manifests
        self.of_entries = indices

    def column(self, name: str) -> pa.Array:
        return single_chunk(self._manifests.column(name)).take(pa.array(self.of_entries))

    def broken(self, at: pa.Array, problem: str) -> CorruptTableError:
        index = int(self.of_entries[int(np.argmax(pc.fill_null(at, fill_value=False).to_numpy(zero_copy_only=False)))])
        return broken_file_error(self._manifests.column("path")[index].as_py(), problem)


def _fields(rows: pa.StructArray) -> dict[str, pa.Array]:
    return dict(zip((part.name for part in rows.type), rows.flatten(), strict=True))


def _required(column: pa.Array, name: str, of: _Manifests) -> pa.Array:
    if column.null_count:
        raise of.broken(column.is_null(), f"an entry has no {name}")
    return column


def _check(status: pa.Array, content: pa.Array, of: _Manifests) -> None:
    known = pc.is_in(status, pa.array([EXISTING, ADDED, DELETED], status.type))
    if not pc.all(known).as_py():
        raise of.broken(pc.invert(known), "an entry has an unknown status")
    # Delete files are in delete manifests, data files in data manifests.
    fits = pc.if_else(
        pc.equal(of.column("content"), 0), pc.equal(content, 0), pc.is_in(content, pa.array([1, 2], pa.int32()))
    )
    if not pc.all(fits).as_py():
        raise of.broken(pc.invert(fits), "an entry has another content than its manifest")


def _sequence_numbers(stored: pa.Array, status: pa.Array, of: _Manifests) -> pa.Array:
    result = _inherit(stored, status, of)
    wrong = pc.and_(result.is_null(), pc.not_equal(status, DELETED))
    if pc.any(wrong).as_py():
        raise of.broken(wrong, "an entry that is not new has no sequence_number")
    return result


def _inherit(stored: pa.Array, status: pa.Array, of: _Manifests) -> pa.Array:
    """Return sequence numbers. Nulls inherit the manifest's number, for added files and in manifests of format 1."""
    if not stored.null_count:
        return stored
    manifest = of.column("sequence_number")
    is_inherited = pc.or_(pc.equal(status, ADDED), pc.equal(manifest, 0))
    return pc.coalesce(stored, pc.if_else(is_inherited, manifest, None))


def _first_row_ids(stored: pa.Array, status: pa.Array, records: pa.Array, of: _Manifests) -> pa.Array:
    """Return the row id of the first row of each data file; null in manifests without row ids.

    A file without its own id takes the next ids of its manifest, in the order of the entries.

    Source: iceberg specification, "First Row ID Inheritance"; ManifestReader.idAssigner.
    """
    first = of.column("first_row_id")
    if first.null_count == len(first):
        return pa.nulls(len(first), pa.int64())
    takes = pc.and_(stored.is_null(), pc.not_equal(status, DELETED)).to_numpy(zero_copy_only=False)
    rows = np.where(takes, records.to_numpy(zero_copy_only=False), 0)
    before = np.cumsum(rows) - rows
    begins = np.flatnonzero(np.diff(of.of_entries, prepend=-1))
    before -= np.repeat(before[begins], np.diff([*begins, len(rows)]))
    assigned_ids = pc.if_else(pa.array(takes), pc.add(first, pa.array(before)), None)
    return pc.if_else(first.is_null(), None, pc.coalesce(stored, assigned_ids))


def live_entries(entries: pa.Table) -> pa.Table:
    """Return the entries that are not deleted."""
    return entries.filter(pc.not_equal(entries.column("status"), DELETED))


def nonempty_manifests(manifests: pa.Table, *names: str) -> pa.Table:
    """Return the manifests for which one of these counts is above 0 or unknown."""
    is_needed = np.zeros(len(manifests), np.bool_)
    for name in names:
        is_needed |= pc.fill_null(manifests.column(name), 1).to_numpy() != 0
    return manifests.filter(pa.array(is_needed))
