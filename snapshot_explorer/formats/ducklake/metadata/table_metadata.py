"""`DuckLakeMetadata`: the rows of a catalog about one table, read in one transaction, again after a commit.

Nearly every row has the snapshots between which it lives, so the state at any snapshot is a filter.

Source: DuckLake specification 1.0, "Queries", "ducklake_snapshot_changes"; reference, "The lake in one page", "Inlined
data", "changes_made".
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import CorruptTableError, SnapshotNotFoundError, TableNotFoundError
from snapshot_explorer.core.records import Kind
from snapshot_explorer.core.single_flight import cached_property
from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField, fields_of
from snapshot_explorer.formats.ducklake.metadata.databases import CatalogFile, CatalogReader
from snapshot_explorer.formats.ducklake.metadata.names import NamedTable, named_tables, typed_name
from snapshot_explorer.formats.ducklake.metadata.paths import DataPath, located, table_folders
from snapshot_explorer.formats.ducklake.metadata.postgres import PostgresCatalog
from snapshot_explorer.formats.ducklake.metadata.schemas import FORMAT_VERSIONS, damaged
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.missing_versions import absent_version_error
from snapshot_explorer.storage import Storage

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ENDLESS = np.iinfo(np.int64).max
_COUNTS = re.compile(r"\d+:\d+(?:\|\d+:\d+)*")
_OF_TABLE = (
    "column", "data_file", "delete_file", "column_mapping", "partition_info", "file_partition_value",
    "sort_info", "column_tag",
)  # fmt: skip
_OWNED = {"name_mapping": "column_mapping", "partition_column": "partition_info", "sort_expression": "sort_info"}
"""Tables whose rows belong to a row of another one, by its id."""
_CHECKED = {"table": "table", "column": "column", "data_file": "data file", "delete_file": "delete file"}
_ALTERED = ("column", "partition_info", "sort_info", "table")
_CHANGE = re.compile(r'\s*(\w+):((?:"(?:[^"]|"")*"|[^",])*)(?:,|$)')
_MAX_CHANGES = 10_000
INSERTS = frozenset(("inserted_into_table", "inlined_insert"))
DELETES = frozenset(("deleted_from_table", "inlined_delete"))
FLUSHES = frozenset(("inline_flush", "flushed_inlined"))
COMPACTIONS = frozenset(("merge_adjacent", "rewrite_delete", "compacted_table"))
REWRITES = COMPACTIONS | FLUSHES
"""Words of commits that may change which files earlier versions have."""


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
    """Rows that the catalog itself contains, written under one schema version."""

    name: str
    fields: tuple[LakeField, ...]
    """The columns at the schema version."""
    rows: pa.Table
    """row_id, begin_snapshot, end_snapshot, and the columns by their numbers as the catalog stores them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """A data file that contains rows of several snapshots."""

    begin: int
    """The first of them."""
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
    parts: tuple[str, str]
    """The names of its schema and of the table, at its last snapshot."""
    rows: Mapping[str, pa.Table]
    """The rows of the catalog's tables, by their names without `ducklake_`."""
    locate: Callable[[pa.Table], pa.Array]
    """Returns the paths of files, of their rows: below the data path, or absolute."""
    inlined: tuple[InlinedTable, ...] = ()

    @property
    def name(self) -> str:
        """The name of the table as it is typed, at its last snapshot."""
        return typed_name(self.parts)

    @cached_property
    def format_version(self) -> str:
        """The version of the catalog's format."""
        return option(self.rows["metadata"], "version") or ""

    @cached_property
    def uuid(self) -> str | None:
        """The uuid of the table; None if none is recorded."""
        return next((uuid for uuid in self.rows["table"].column("table_uuid").to_pylist() if uuid), None)

    @property
    def identity(self) -> tuple[object, ...]:
        """A value that is equal if nothing was committed to the catalog, and no snapshot expired."""
        times = self.rows["snapshot"].column("snapshot_time")
        return int(self.snapshot_ids[-1]), len(times), pc.max(times).as_py(), self.uuid

    def is_of(self, reader: CatalogReader) -> bool:
        """Return whether an open catalog is the one of this metadata, maybe at another state, and not another one.

        Snapshots that both have were committed at the same time, and the table has its uuid.
        """
        rows = reader.read("snapshot")
        shared = np.intersect1d(numbers(rows, "snapshot_id"), self.snapshot_ids)
        if len(shared):
            newest = rows.filter(pc.equal(rows.column("snapshot_id"), int(shared[-1])))
            if self.value_at(int(shared[-1]), "snapshot_time") not in newest.column("snapshot_time").to_pylist():
                return False
        uuids = reader.read("table", {"table_id": self.table_id}).column("table_uuid").to_pylist()
        return not uuids or None in (self.uuid, *uuids) or self.uuid in uuids

    @cached_property
    def snapshot_ids(self) -> Ints:
        """The existing snapshots of the catalog, ascending."""
        return numbers(self.rows["snapshot"], "snapshot_id")

    @cached_property
    def begin(self) -> int:
        """The snapshot that created the table."""
        return int(numbers(self.rows["table"], "begin_snapshot").min())

    @cached_property
    def end(self) -> int:
        """The snapshot that dropped the table; `ENDLESS` if it is there."""
        return int(numbers(self.rows["table"], "end_snapshot").max())

    @cached_property
    def words(self) -> Mapping[int, Sequence[str]]:
        """The words of changes_made about the table, by snapshot."""
        changes = self.rows["snapshot_changes"]
        named = changes.filter(pc.match_substring(changes.column("changes_made"), f":{self.table_id}"))
        texts = zip(*(named.column(name).to_pylist() for name in ("snapshot_id", "changes_made")), strict=True)
        known = ((number, words_about(text, self.table_id)) for number, text in texts)
        return {number: words for number, words in known if words}

    @cached_property
    def partials(self) -> Mapping[int, Partial]:
        """The data files that contain rows of several snapshots, by data_file_id."""
        files = self.rows["data_file"]
        is_partial = pc.or_(files.column("partial_max").is_valid(), files.column("partial_file_info").is_valid())
        return {row["data_file_id"]: _partial(row) for row in files.filter(is_partial).to_pylist()}

    @cached_property
    def versions(self) -> Ints:
        """The versions of the table: the existing snapshots at which it was touched since the one before, ascending.

        Source: reference, "Versions of a table".
        """
        existing = self.snapshot_ids
        first, stop = np.searchsorted(existing, (self.begin, self.end))
        own = [rows for name, rows in self.rows.items() if name != "schema" and "end_snapshot" in rows.column_names]
        with_lifetimes = [*own, *(table.rows for table in self.inlined)]
        columns = [rows.column(name) for rows in with_lifetimes for name in ("begin_snapshot", "end_snapshot")]
        columns += [
            self.rows["inlined_delete"].column("begin_snapshot"),
            self.rows["delete_file"].column("partial_max"),
        ]
        known = [*self.words, *(partial.last for partial in self.partials.values())]
        events = np.unique([number for column in columns for number in column.unique().drop_null().to_pylist()] + known)
        touched = np.union1d(np.searchsorted(existing, events[events > self.begin]), [first])
        # The commits within a merged file are known by changes_made alone, which expires with the snapshots.
        expired = np.flatnonzero(np.diff(existing) > 1) + 1
        for partial in self.partials.values():
            is_in = (existing[expired] > partial.begin) & (existing[expired - 1] < partial.last)
            touched = np.union1d(touched, expired[is_in])
        return np.asarray(existing[touched[(touched >= first) & (touched < stop)]], np.int64)

    def version_at(self, snapshot: int) -> int | None:
        """Return the version that is current at an existing snapshot in the lifetime of the table; None for another."""
        index = self.index_of(snapshot)
        is_there = index < len(self.snapshot_ids) and self.snapshot_ids[index] == snapshot
        if not is_there or not self.begin <= snapshot < self.end:
            return None
        return int(self.versions[np.searchsorted(self.versions, snapshot, side="right") - 1])

    def index_of(self, snapshot: int) -> int:
        """Return the index of an existing snapshot."""
        return int(np.searchsorted(self.snapshot_ids, snapshot))

    def value_at(self, snapshot: int, name: str) -> Any:
        """Return a column of an existing snapshot's row."""
        return self.rows["snapshot"].column(name)[self.index_of(snapshot)].as_py()

    @cached_property
    def alterations(self) -> frozenset[int]:
        """The snapshots at which columns, partitions, sorting or the name changed, not comments alone."""
        columns = [self.rows[name].column(end) for name in _ALTERED for end in ("begin_snapshot", "end_snapshot")]
        return frozenset(number for column in columns for number in column.to_pylist() if number is not None)

    def fields_at(self, snapshot: int) -> tuple[LakeField, ...]:
        """Return the columns of the table at a snapshot, in order."""
        mask = live_mask(self.rows["column"], snapshot)
        key = mask.tobytes()
        if key not in self._fields:
            self._fields[key] = fields_of(self.rows["column"].filter(pa.array(mask)), self.name)
        return self._fields[key]

    @cached_property
    def _fields(self) -> dict[bytes, tuple[LakeField, ...]]:
        return {}

    def partition_at(self, snapshot: int) -> int | None:
        """Return the partition spec in force at a snapshot; None without one."""
        live = live_rows(self.rows["partition_info"], snapshot).column("partition_id").to_pylist()
        return live[-1] if live else None

    def partition_fields(self, partition_id: int | None) -> list[tuple[LakeField | None, str]]:
        """Return the columns of a partition spec with their transforms, in order; None for a column that is unknown.

        A column has its newest name. In the format 0.1 columns are recorded by position.
        """
        rows = [row for row in self.rows["partition_column"].to_pylist() if row["partition_id"] == partition_id]
        if not rows:
            return []
        rows.sort(key=lambda row: row["partition_key_index"] or 0)
        if self.format_version == "0.1":
            specs = self.rows["partition_info"].select(["partition_id", "begin_snapshot"]).to_pylist()
            begins = [spec["begin_snapshot"] for spec in specs if spec["partition_id"] == partition_id]
            known = dict(enumerate(self.fields_at(begins[-1] if begins else self.begin)))
        else:
            columns = self.rows["column"].sort_by("begin_snapshot")
            newest = {number: index for index, number in enumerate(columns.column("column_id").to_pylist())}
            fields = fields_of(columns.take(pa.array(list(newest.values()), pa.int64())), self.name)
            known = {field.id: field for field in fields}
        return [(known.get(row["column_id"]), row["transform"] or "") for row in rows]


def _partial(row: Mapping[str, Any]) -> Partial:
    text, last, counts = row["partial_file_info"] or "", row["partial_max"], None
    if last is None and text.startswith("partial_max:") and text[12:].isdecimal():
        last = int(text[12:])
    if last is None:
        if not _COUNTS.fullmatch(text):
            raise damaged(
                f"The data file {row['data_file_id']} has the partial_file_info {text!r}, which is not valid."
            )
        pairs = (item.split(":") for item in text.split("|"))
        counts = tuple(sorted((int(snapshot), int(count)) for snapshot, count in pairs))
        last = counts[-1][0]
    return Partial(begin=row["begin_snapshot"], last=last, counts=counts)


def option(options: pa.Table, key: str) -> str | None:
    """Return an option of the whole lake, of the rows of ducklake_metadata."""
    values = (row["value"] for row in options.to_pylist() if row["key"] == key and row["scope"] is None)
    return next(values, None)


def read_catalog(reader: CatalogReader, catalog: str) -> tuple[dict[str, pa.Table], Sequence[NamedTable]]:
    """Return the rows of a catalog about itself, and its tables under all their names.

    The rows are its options, snapshots in order, schemas and tables.

    Raises:
        UnsupportedFeatureError: The format version is not read.
    """
    rows = {name: reader.read(name) for name in ("metadata", "snapshot", "schema", "table")}
    version = option(rows["metadata"], "version")
    if version not in FORMAT_VERSIONS:
        known = ", ".join(FORMAT_VERSIONS)
        raise refusal(features.OTHER_FORMATS, catalog=catalog, version=version or "none", known=known)
    rows["snapshot"] = reader.once("snapshots in order", lambda: rows["snapshot"].sort_by("snapshot_id"))
    return rows, reader.once("names", lambda: named_tables(rows))


def read_metadata(reader: CatalogReader, log: "DuckLakeLog") -> DuckLakeMetadata:
    """Return the rows of a catalog about one table.

    Raises:
        TableNotFoundError: The table is gone: it was dropped, and its last snapshot expired.
        CorruptTableError: The catalog is damaged; the message names the rows.
    """
    table_id, catalog = log.table_id, log.file.shown
    rows, tables = read_catalog(reader, catalog)
    named = [item for item in tables if item.table_id == table_id]
    if not named:
        raise TableNotFoundError(
            f"The table {table_id} of {catalog} is gone: it was dropped, and all its snapshots expired."
        )
    rows["table"] = rows["table"].filter(pc.equal(rows["table"].column("table_id"), table_id))
    rows["snapshot_changes"] = reader.read("snapshot_changes")
    rows |= {name: reader.read(name, {"table_id": table_id}) for name in _OF_TABLE}
    rows |= {name: _owned(reader.read(name), rows[owner]) for name, owner in _OWNED.items()}
    rows["tag"] = reader.read("tag", {"object_id": table_id})
    rows["inlined_delete"] = reader.read(f"inlined_delete_{table_id}", like="inlined_delete")
    folders = table_folders(rows["schema"], rows["table"])
    result = DuckLakeMetadata(
        catalog=catalog,
        table_id=table_id,
        parts=max(named, key=lambda item: item.recency).parts,
        rows=rows,
        locate=functools.partial(located, folders=folders, relocate=log.relocate, root=log.storage.root),
    )
    _check(result)
    return replace(result, inlined=_inlined(reader, result))


def _owned(rows: pa.Table, owners: pa.Table) -> pa.Table:
    key = rows.column_names[0]
    return rows.filter(pc.is_in(rows.column(key), value_set=single_chunk(owners.column(key))))


def _inlined(reader: CatalogReader, metadata: DuckLakeMetadata) -> tuple[InlinedTable, ...]:
    starts = reader.read("schema_versions").to_pylist()
    result = []
    for row in reader.read("inlined_data_tables", {"table_id": metadata.table_id}).to_pylist():
        name, version = row["table_name"], row["schema_version"]
        if version is None or name != f"ducklake_inlined_data_{metadata.table_id}_{version}":
            raise CorruptTableError(
                f"The catalog {metadata.catalog} names the inlined table {name!r} for {metadata.name}, which is not "
                "its name by the specification. It is not read: the catalog is damaged or was tampered with."
            )
        fields = metadata.fields_at(_start_of(version, starts, metadata))
        rows = reader.read_inlined(name, fields)
        if rows is not None:
            result.append(InlinedTable(name=name, fields=fields, rows=rows))
    return tuple(result)


def _start_of(version: int, starts: Sequence[Mapping[str, int | None]], metadata: DuckLakeMetadata) -> int:
    """Return the snapshot at which a schema version began: of the table, or else of the catalog."""
    of_version = [row for row in starts if row["schema_version"] == version]
    of_table, shared = (
        [row["begin_snapshot"] for row in of_version if row["table_id"] == owner] for owner in (metadata.table_id, None)
    )
    versions = numbers(metadata.rows["snapshot"], "schema_version")
    recorded = metadata.snapshot_ids[versions == version].tolist()
    for candidates in (of_table, shared, recorded):
        known = [number for number in candidates if number is not None]
        if known:
            return min(known) if candidates is of_table else max(min(known), metadata.begin)
    raise damaged(
        f"The catalog {metadata.catalog} has inlined rows of the schema version {version} for {metadata.name}, and no "
        "snapshot of it."
    )


def _check(metadata: DuckLakeMetadata) -> None:
    """Refuse rows that contradict themselves."""
    for name, shown in _CHECKED.items():
        rows = metadata.rows[name]
        is_reversed = (numbers(rows, "end_snapshot") < numbers(rows, "begin_snapshot")).any()
        if is_reversed or rows.column("begin_snapshot").null_count:
            raise damaged(
                f"The catalog {metadata.catalog} has a {shown} of {metadata.name} that ends before it begins, or never "
                "begins."
            )
    for name in ("record_count", "file_size_bytes"):
        if (numbers(metadata.rows["data_file"], name, -1) < 0).any():
            raise damaged(
                f"The catalog {metadata.catalog} has a data file of {metadata.name} without a number of rows and bytes."
            )


@functools.lru_cache(maxsize=128)  # all tables of a lake ask for the same
def parse_changes(text: str | None) -> Sequence[tuple[str, str]]:
    """Return the words and values of changes_made, in order: values are ids, or quoted names."""
    return [(match[1], match[2].strip()) for match in islice(_CHANGE.finditer(text or ""), _MAX_CHANGES)]


def words_about(text: str, table_id: int) -> list[str]:
    """Return the words of changes_made about a table, in order. The creation of a table has its name, not its id."""
    return [word for word, value in parse_changes(text) if value == str(table_id)]


def kind_of(words: Sequence[str], *, creates: bool, alters: bool) -> Kind:
    """Return the kind of a commit.

    Args:
        words: The words about the table.
        creates: Whether the commit created the table.
        alters: Whether it changed more than comments, where it alters the table.
    """
    known = frozenset(words)
    if known & FLUSHES:
        return "maintenance"  # what was deleted before it is part of the flush
    if known & COMPACTIONS:
        return "compact"
    inserts, deletes = bool(known & INSERTS), bool(known & DELETES)
    if inserts and deletes:
        return "update"
    if deletes:
        return "delete"
    if inserts or creates:
        return "append"
    return "schema" if "altered_table" in known and alters else "other"


@dataclass(kw_only=True, eq=False)
class DuckLakeLog:
    """A table in a catalog, as of the last look at it. Safe to use from several threads, and picklable."""

    storage: Storage
    """The folder of its data."""
    file: CatalogFile | PostgresCatalog
    table_id: int
    data: DataPath
    relocate: Mapping[str, str]
    """The new path of each recorded folder that was moved."""
    _known: DuckLakeMetadata | None = field(default=None, init=False, repr=False)
    _opened: DuckLakeMetadata | None = field(default=None, init=False, repr=False)
    """Metadata that the first refresh returns."""

    def __reduce__(self) -> tuple[object, tuple[()]]:
        log = functools.partial(DuckLakeLog, storage=self.storage, file=self.file, table_id=self.table_id)
        return functools.partial(log, data=self.data, relocate=self.relocate), ()

    def read(self, reader: CatalogReader) -> None:
        """Read the metadata in an open catalog. The first refresh returns it."""
        self._known = self._opened = read_metadata(reader, self)

    def refresh(self) -> DuckLakeMetadata:
        """Return the current metadata: opens the catalog once, and reads the rows only if something was committed.

        Options change without a commit.
        """
        opened, self._opened = self._opened, None
        if opened is not None:
            return opened
        known = self._known
        with self.reading() as reader:
            if (
                known is None
                or not reader.read("snapshot").sort_by("snapshot_id").equals(known.rows["snapshot"])
                or not reader.read("metadata").equals(known.rows["metadata"])
            ):
                known = read_metadata(reader, self)
        self._known = known
        return known

    @contextmanager
    def reading(self) -> Iterator[CatalogReader]:
        """Open the catalog, in one transaction.

        Raises:
            TableNotFoundError: It was replaced by another one since it was read.
        """
        with self.file.reading() as reader:
            if self._known is not None and not self._known.is_of(reader):
                raise TableNotFoundError(
                    f"The catalog {self.file.shown} was replaced: it is not the one in which {self._known.name} "
                    "was opened. Versions that were loaded before remain; to read the new catalog, open the table "
                    "again."
                )
            yield reader

    def current(self) -> DuckLakeMetadata:
        """Return the metadata that was read last; reads it the first time."""
        return self._known or self.refresh()

    def having(self, snapshot: int) -> DuckLakeMetadata:
        """Return metadata in which a snapshot exists and the table is there.

        Raises:
            SnapshotNotFoundError: The snapshot has expired, or the table was created later or dropped before.
        """
        known = self.current()
        if known.version_at(snapshot) is None:
            known = self.refresh()
        if known.version_at(snapshot) is None:
            raise _absence(known, snapshot)
        return known


def _absence(metadata: DuckLakeMetadata, snapshot: int) -> SnapshotNotFoundError:
    """Return the error for a snapshot at which the table cannot be read, with the reason and the nearest ones."""
    existing = metadata.snapshot_ids
    state: str | None = None
    if len(existing) and existing[0] <= snapshot <= existing[-1] and snapshot not in existing:
        index = int(np.searchsorted(existing, snapshot))
        state = f"has expired: the catalog has snapshots {existing[index - 1]} and {existing[index]} beside it"
    elif snapshot < metadata.begin:
        state = f"is before {metadata.name}, which was created at {metadata.begin}"
    elif metadata.end <= snapshot <= existing[-1] and metadata.end != ENDLESS:
        state = f"is after {metadata.name}, which was dropped at {metadata.end}"
    return absent_version_error(metadata.name, snapshot, metadata.versions.tolist(), state)
