"""`DuckLakeMetadata`: the rows of a catalog about one table, read in one transaction.

Nearly every row has the snapshots between which it lives, so the state at any snapshot is a filter.

Source: DuckLake specification 1.0, "Queries"; reference, "The lake in one page", "Inlined data".
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import CorruptTableError, TableNotFoundError
from snapshot_explorer.core.single_flight import cached_property
from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.ducklake.metadata.changes_made import parse_changes, words_of
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField, fields_of
from snapshot_explorer.formats.ducklake.metadata.databases import CatalogReader
from snapshot_explorer.formats.ducklake.metadata.names import NamedTable, named_tables
from snapshot_explorer.formats.ducklake.metadata.schemas import FORMAT_VERSIONS
from snapshot_explorer.formats.features import refusal

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ENDLESS = np.iinfo(np.int64).max
_PARTIAL_MAX = re.compile(r"partial_max:(\d+)")
_PARTIAL_COUNTS = re.compile(r"\d+:\d+(?:\|\d+:\d+)*")
_POSITIONAL_PARTITIONS = "0.1"
"""The format version in which partition columns are recorded by position."""


def numbers(rows: pa.Table, name: str, null: int = ENDLESS) -> Ints:
    """Return a column of numbers, with a number in place of nulls."""
    return np.asarray(pc.fill_null(rows.column(name), null).to_numpy(), np.int64)


def live_mask(rows: pa.Table, snapshot: int) -> Mask:
    """Return which rows live at a snapshot."""
    return (numbers(rows, "begin_snapshot") <= snapshot) & (snapshot < numbers(rows, "end_snapshot"))


def live_rows(rows: pa.Table, snapshot: int) -> pa.Table:
    """Return the rows that live at a snapshot."""
    return rows.filter(pa.array(live_mask(rows, snapshot)))


@dataclass(frozen=True, slots=True, kw_only=True)
class InlinedTable:
    """The rows that the catalog itself contains, written under one schema version."""

    name: str
    fields: tuple[LakeField, ...]
    """The columns at the schema version."""
    rows: pa.Table
    """row_id, begin_snapshot, end_snapshot, and the columns by their numbers as the catalog stores them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """A data file that contains rows of several snapshots."""

    last: int
    """The last of them."""
    counts: tuple[tuple[int, int], ...] | None
    """Snapshots with the number of rows up to each; None if the file contains the snapshot of each row."""


@dataclass(frozen=True, kw_only=True)
class DuckLakeMetadata:
    """The rows of a catalog about one table. Picklable."""

    catalog: str
    """The path of the catalog, for display."""
    table_id: int
    name: str
    """The name of the table as it is typed, at its last snapshot."""
    uuid: str | None
    identity: tuple[object, ...]
    """Equal if nothing was committed to the catalog."""
    has_native_values: bool
    options: pa.Table
    snapshots: pa.Table
    changes: pa.Table
    schemas: pa.Table
    tables: pa.Table
    columns: pa.Table
    data_files: pa.Table
    delete_files: pa.Table
    inlined: tuple[InlinedTable, ...]
    inlined_deletes: pa.Table
    column_mappings: pa.Table
    name_mappings: pa.Table
    partition_infos: pa.Table
    partition_columns: pa.Table
    partition_values: pa.Table
    sort_infos: pa.Table
    sort_expressions: pa.Table
    tags: pa.Table
    column_tags: pa.Table

    @property
    def format_version(self) -> str:
        """The version of the catalog's format."""
        return self.option("version") or ""

    def option(self, key: str) -> str | None:
        """Return an option of the whole lake."""
        return _option(self.options, key)

    @cached_property
    def snapshot_ids(self) -> Ints:
        """The existing snapshots of the catalog, ascending."""
        return numbers(self.snapshots, "snapshot_id")

    @cached_property
    def begin(self) -> int:
        """The snapshot that created the table."""
        return int(numbers(self.tables, "begin_snapshot").min())

    @cached_property
    def end(self) -> int | None:
        """The snapshot that dropped the table; None if it is there."""
        last = int(numbers(self.tables, "end_snapshot").max())
        return None if last == ENDLESS else last

    @cached_property
    def words(self) -> Mapping[int, Sequence[str]]:
        """The words of changes_made about the table, by snapshot."""
        result = {}
        ids, texts = self.changes.column("snapshot_id").to_pylist(), self.changes.column("changes_made").to_pylist()
        for number, text in zip(ids, texts, strict=True):
            words = words_of(parse_changes(text), self.table_id) if text and f":{self.table_id}" in text else []
            if words:
                result[number] = words
        return result

    @cached_property
    def partials(self) -> Mapping[int, Partial]:
        """The data files that contain rows of several snapshots, by data_file_id."""
        result = {}
        columns = [self.data_files.column(name) for name in ("data_file_id", "partial_max", "partial_file_info")]
        some = pa.array(
            [a is not None or b is not None for a, b in zip(*(c.to_pylist() for c in columns[1:]), strict=True)],
            pa.bool_(),
        )
        for number, last, text in zip(*(column.filter(some).to_pylist() for column in columns), strict=True):
            result[number] = _partial(last, text, number)
        return result

    @cached_property
    def versions(self) -> Ints:
        """The versions of the table: the existing snapshots at which it was touched since the one before, ascending.

        Source: reference, "Versions of a table".
        """
        existing = self.snapshot_ids
        first, stop = np.searchsorted(existing, (self.begin, ENDLESS if self.end is None else self.end))
        if first == stop:
            return existing[:0]
        events = self._events()
        events = events[(events > self.begin) & (events <= existing[stop - 1])]
        indices = np.union1d(np.searchsorted(existing, events), [first])
        chosen = np.union1d(indices[(indices >= first) & (indices < stop)], self._after_expired(first, stop))
        return np.asarray(existing[chosen], np.int64)

    def _events(self) -> Ints:
        with_lifetimes = (
            self.tables,
            self.columns,
            self.data_files,
            self.delete_files,
            self.partition_infos,
            self.sort_infos,
            self.tags,
            self.column_tags,
            *(table.rows for table in self.inlined),
        )
        parts = [numbers(rows, name) for rows in with_lifetimes for name in ("begin_snapshot", "end_snapshot")]
        parts += [
            numbers(self.inlined_deletes, "begin_snapshot"),
            numbers(self.delete_files, "partial_max"),
            np.asarray(list(self.words), np.int64),
            np.asarray([partial.last for partial in self.partials.values()], np.int64),
        ]
        return np.unique(np.concatenate(parts))

    def _after_expired(self, first: int, stop: int) -> Ints:
        """Return the indices of snapshots in the range of a merged file that follow expired ones.

        The commits within such a file are known by changes_made alone, which expires with the snapshots.
        """
        existing = self.snapshot_ids
        after = np.flatnonzero(np.diff(existing, prepend=existing[0]) > 1)
        after = after[(after > first) & (after < stop)]
        in_range = np.zeros(len(after), np.bool_)
        ids, begins = self.data_files.column("data_file_id").to_pylist(), numbers(self.data_files, "begin_snapshot")
        for number, begin in zip(ids, begins.tolist(), strict=True):
            partial = self.partials.get(number)
            if partial is not None:
                in_range |= (existing[after] > begin) & (existing[after - 1] < partial.last)
        return after[in_range]

    def version_at(self, snapshot: int) -> int | None:
        """Return the version that is current at an existing snapshot in the lifetime of the table; None for another."""
        if snapshot not in self._known or snapshot < self.begin or (self.end is not None and snapshot >= self.end):
            return None
        index = int(np.searchsorted(self.versions, snapshot, side="right"))
        return int(self.versions[index - 1]) if index else None

    @cached_property
    def _known(self) -> frozenset[int]:
        return frozenset(self.snapshot_ids.tolist())

    def index_of(self, snapshot: int) -> int:
        """Return the index of an existing snapshot."""
        return int(np.searchsorted(self.snapshot_ids, snapshot))

    def schema_version(self, snapshot: int) -> int | None:
        """Return the schema version of the catalog at an existing snapshot."""
        value: int | None = self.snapshots.column("schema_version")[self.index_of(snapshot)].as_py()
        return value

    def fields_at(self, snapshot: int) -> tuple[LakeField, ...]:
        """Return the columns of the table at a snapshot, in order."""
        mask = live_mask(self.columns, snapshot)
        key = mask.tobytes()
        if key not in self._fields:
            self._fields[key] = fields_of(self.columns.filter(pa.array(mask)), self.name)
        return self._fields[key]

    @cached_property
    def _fields(self) -> dict[bytes, tuple[LakeField, ...]]:
        return {}

    def last_in_files(self, file_ids: Ints) -> Ints:
        """Return for delete files the first snapshot that knows their ids: nothing in them was written later."""
        known = self._next_file_ids
        indices = np.searchsorted(known, file_ids, side="right")
        ids = np.append(self.snapshot_ids, ENDLESS)
        return ids[indices]

    @cached_property
    def _next_file_ids(self) -> Ints:
        return np.maximum.accumulate(numbers(self.snapshots, "next_file_id", 0))

    def partition_fields(self, partition_id: int | None) -> list[tuple[LakeField | None, str]]:
        """Return the columns of a partition spec with their transforms, in order; None for a column that is unknown."""
        if partition_id is None:
            return []
        known = {field.id: field for field in self._all_fields}
        if self.format_version == _POSITIONAL_PARTITIONS:
            begins = dict(
                zip(
                    *(self.partition_infos.column(n).to_pylist() for n in ("partition_id", "begin_snapshot")),
                    strict=True,
                )
            )
            known = dict(enumerate(self.fields_at(begins.get(partition_id) or self.begin)))
        return [
            (known.get(row["column_id"]), row["transform"] or "") for row in self._partition_rows.get(partition_id, ())
        ]

    @cached_property
    def _partition_rows(self) -> Mapping[int, Sequence[Mapping[str, Any]]]:
        result: dict[int, list[Mapping[str, Any]]] = {}
        for row in sorted(self.partition_columns.to_pylist(), key=lambda row: row["partition_key_index"] or 0):
            result.setdefault(row["partition_id"], []).append(row)
        return result

    @cached_property
    def _all_fields(self) -> Sequence[LakeField]:
        """The top-level columns of all times, newest definitions last."""
        rows = [row for row in self.columns.to_pylist() if row["parent_column"] is None]
        rows.sort(key=lambda row: row["begin_snapshot"] or 0)
        return [
            LakeField(
                id=row["column_id"],
                name=row["column_name"],
                type=row["column_type"],
                nullable=True,
                initial_default=None,
            )
            for row in rows
        ]

    @cached_property
    def partition_texts(self) -> Mapping[int, Mapping[int, str | None]]:
        """The partition values of each data file as text, by data_file_id and the index of the partition column."""
        result: dict[int, dict[int, str | None]] = {}
        names = ("data_file_id", "partition_key_index", "partition_value")
        for number, index, value in zip(
            *(self.partition_values.column(name).to_pylist() for name in names), strict=True
        ):
            result.setdefault(number, {})[index] = value
        return result

    def partition_at(self, snapshot: int) -> int | None:
        """Return the partition spec in force at a snapshot; None without one."""
        live = live_rows(self.partition_infos, snapshot).column("partition_id").to_pylist()
        return live[-1] if live else None


def _partial(last: int | None, text: str | None, number: int) -> Partial:
    if last is not None:
        return Partial(last=last, counts=None)
    match = _PARTIAL_MAX.fullmatch(text or "")
    if match is not None:
        return Partial(last=int(match[1]), counts=None)
    if not _PARTIAL_COUNTS.fullmatch(text or ""):
        raise CorruptTableError(
            f"The data file {number} of the catalog has the partial_file_info {text!r}, which is not valid. The "
            "catalog is damaged; compare it with a copy."
        )
    pairs = sorted(tuple(map(int, item.split(":"))) for item in (text or "").split("|"))
    return Partial(last=pairs[-1][0], counts=tuple((snapshot, count) for snapshot, count in pairs))


def _option(options: pa.Table, key: str) -> str | None:
    for row in options.to_pylist():
        if row["key"] == key and row["scope"] is None:
            value: str | None = row["value"]
            return value
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOverview:
    """What a catalog contains: its options and its tables."""

    options: pa.Table
    tables: tuple[NamedTable, ...]
    """The tables of which a snapshot exists, under all their names."""
    table_ids: tuple[int, ...]
    """All tables."""
    views: int
    """The number of live views."""

    def option(self, key: str) -> str | None:
        """Return an option of the whole lake."""
        return _option(self.options, key)


def read_overview(reader: CatalogReader, catalog: str) -> CatalogOverview:
    """Return the options and the tables of a catalog.

    Raises:
        UnsupportedFeatureError: The format version is not read.
    """
    options = _checked_options(reader, catalog)
    schemas, tables = (reader.read(name) for name in ("ducklake_schema", "ducklake_table"))
    ids = np.sort(numbers(reader.read("ducklake_snapshot"), "snapshot_id"))
    ids_of_tables = tuple(sorted(set(tables.column("table_id").drop_null().to_pylist())))
    views = reader.read("ducklake_view").column("end_snapshot")
    named = named_tables(schemas, tables, ids)
    return CatalogOverview(options=options, tables=tuple(named), table_ids=ids_of_tables, views=views.null_count)


def _checked_options(reader: CatalogReader, catalog: str) -> pa.Table:
    options = reader.read("ducklake_metadata")
    version = _option(options, "version")
    if version not in FORMAT_VERSIONS:
        known = ", ".join(FORMAT_VERSIONS)
        raise refusal(features.OTHER_FORMATS, catalog=catalog, version=version or "none", known=known)
    return options


def read_identity(reader: CatalogReader) -> tuple[object, ...]:
    """Return a value that is equal while nothing was committed to the catalog, and its snapshots did not expire."""
    return reader.newest()


def read_metadata(reader: CatalogReader, table_id: int, catalog: str) -> DuckLakeMetadata:
    """Return the rows of a catalog about one table.

    Raises:
        TableNotFoundError: The table is gone: it was dropped, and its last snapshot expired.
        CorruptTableError: The catalog is damaged; the message names the rows.
    """
    of_table = {"table_id": table_id}

    def read(name: str) -> pa.Table:
        return reader.read(f"ducklake_{name}", of_table)

    options = _checked_options(reader, catalog)
    schemas, tables = reader.read("ducklake_schema"), read("table")
    snapshots = reader.read("ducklake_snapshot").sort_by("snapshot_id")
    named = named_tables(schemas, tables, numbers(snapshots, "snapshot_id"))
    if not named:
        raise TableNotFoundError(
            f"The table {table_id} of {catalog} is gone: it was dropped, and all its snapshots expired."
        )
    newest = max(named, key=lambda item: (item.last or 0, item.is_live))
    infos, sorts = read("partition_info"), read("sort_info")
    mappings = read("column_mapping")
    uuids = [uuid for uuid in tables.column("table_uuid").to_pylist() if uuid]
    result = DuckLakeMetadata(
        catalog=catalog,
        table_id=table_id,
        name=newest.name,
        uuid=uuids[0] if uuids else None,
        identity=(*read_identity(reader), *uuids[:1]),
        has_native_values=reader.has_native_values,
        options=options,
        snapshots=snapshots,
        changes=reader.read("ducklake_snapshot_changes"),
        schemas=schemas,
        tables=tables,
        columns=read("column"),
        data_files=read("data_file"),
        delete_files=read("delete_file"),
        inlined=(),
        inlined_deletes=reader.read_inlined_deletes(f"ducklake_inlined_delete_{table_id}"),
        column_mappings=mappings,
        name_mappings=_all_of(reader, "name_mapping", "mapping_id", mappings),
        partition_infos=infos,
        partition_columns=_all_of(reader, "partition_column", "partition_id", infos),
        partition_values=read("file_partition_value"),
        sort_infos=sorts,
        sort_expressions=_all_of(reader, "sort_expression", "sort_id", sorts),
        tags=reader.read("ducklake_tag", {"object_id": table_id}),
        column_tags=read("column_tag"),
    )
    _check(result)
    return replace(result, inlined=_inlined(reader, result))


def _all_of(reader: CatalogReader, name: str, key: str, owners: pa.Table) -> pa.Table:
    rows = reader.read(f"ducklake_{name}")
    return rows.filter(pc.is_in(rows.column(key), value_set=owners.column(key).combine_chunks()))


def _inlined(reader: CatalogReader, metadata: DuckLakeMetadata) -> tuple[InlinedTable, ...]:
    listed = reader.read("ducklake_inlined_data_tables", {"table_id": metadata.table_id})
    starts = reader.read("ducklake_schema_versions")
    result = []
    for row in listed.to_pylist():
        name, version = row["table_name"], row["schema_version"]
        if version is None or name != f"ducklake_inlined_data_{metadata.table_id}_{version}":
            raise CorruptTableError(
                f"The catalog {metadata.catalog} names the inlined table {name!r} for {metadata.name}, which is not "
                "its name by the specification. It is not read: the catalog is damaged or was tampered with."
            )
        if reader.has(name):
            fields = metadata.fields_at(_start_of(version, starts, metadata))
            result.append(InlinedTable(name=name, fields=fields, rows=reader.read_inlined(name, fields)))
    return tuple(result)


def _start_of(version: int, starts: pa.Table, metadata: DuckLakeMetadata) -> int:
    """Return the snapshot at which a schema version began."""
    rows = [row for row in starts.to_pylist() if row["schema_version"] == version and row["begin_snapshot"] is not None]
    own: list[int] = [row["begin_snapshot"] for row in rows if row["table_id"] == metadata.table_id]
    if own:
        return min(own)
    shared: list[int] = [row["begin_snapshot"] for row in rows if row["table_id"] is None]
    if shared:
        return max(min(shared), metadata.begin)
    same = metadata.snapshots.filter(pc.equal(metadata.snapshots.column("schema_version"), version))
    if not len(same):
        raise CorruptTableError(
            f"The catalog {metadata.catalog} has inlined rows of the schema version {version} for {metadata.name}, and "
            "no snapshot of it. It is damaged; compare it with a copy."
        )
    return max(int(numbers(same, "snapshot_id").min()), metadata.begin)


def _check(metadata: DuckLakeMetadata) -> None:
    """Refuse rows that contradict themselves."""
    for rows, name in (
        (metadata.tables, "table"),
        (metadata.columns, "column"),
        (metadata.data_files, "data file"),
        (metadata.delete_files, "delete file"),
    ):
        begins = rows.column("begin_snapshot")
        if begins.null_count or bool((numbers(rows, "end_snapshot") < numbers(rows, "begin_snapshot")).any()):
            raise CorruptTableError(
                f"The catalog {metadata.catalog} has a {name} of {metadata.name} that ends before it begins, or never "
                "begins. It is damaged; compare it with a copy."
            )
    counts = [metadata.data_files.column(name) for name in ("record_count", "file_size_bytes")]
    if any(column.null_count or (len(column) and pc.min(column).as_py() < 0) for column in counts):
        raise CorruptTableError(
            f"The catalog {metadata.catalog} has a data file of {metadata.name} without a number of rows and bytes. It "
            "is damaged; compare it with a copy."
        )
