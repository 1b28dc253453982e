"""Frozen records that every layer shares. Anything that can have a million members is in `frames`."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Literal, Protocol

import pyarrow as pa

from snapshot_explorer.render import Drawing, Grid, Pairs, mimebundle, text

Readable = Literal["yes", "metadata", "no"]
Kind = Literal[
    "append",
    "overwrite",
    "compact",
    "analyze",
    "delete",
    "update",
    "merge",
    "schema",
    "restore",
    "maintenance",
    "other",
]


_DRAWN_COLUMNS = 200
"""Columns of a schema that are drawn, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What made a version. One row of the COMMITS frame; see there for units and meaning."""

    version: int
    """Paimon snapshot id or Delta version."""
    committed_at: datetime | None
    """When the writer committed, aware, UTC, to the millisecond; None if nothing says so. Clocks may run backwards."""
    readable: Readable | None
    """Can this version still be loaded: yes, only its metadata, or no; None where it takes much to find out."""
    kind: Kind
    """What sort of commit, in words common to all formats."""
    operation: str | None
    """The writer's own word, such as WRITE or OPTIMIZE."""
    user: str | None
    """Who committed, as the writer recorded it."""
    identifier: str | None
    """The writer's identifier of the commit, as text: it may not fit the integers of a browser."""
    schema_id: int | None
    """The schema in force after the commit."""
    added_files: int | None
    """Data files that the commit added."""
    removed_files: int | None
    """Data files that the commit removed."""
    added_rows: int | None
    """Rows in the added files, before any merge."""
    removed_rows: int | None
    """Rows in the removed files, before any merge."""
    added_bytes: int | None
    """Bytes of the added files."""
    removed_bytes: int | None
    """Bytes of the removed files."""
    total_rows: int | None
    """Rows in all live files after the commit, before any merge."""
    watermark: datetime | None
    """Event-time watermark, aware, UTC; null where the writer saw none."""
    tags: tuple[str, ...]
    """Names of the tags on this version."""
    details: str
    """Everything the format stored about the commit, as JSON text, unknown fields included."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return mimebundle(self.drawing())

    def __str__(self) -> str:
        """Return the commit as aligned text."""
        return text(self.drawing())

    def drawing(self) -> Drawing:
        """Return how the commit looks: a name and a value per line."""
        names = [name for name in self.__slots__ if name not in ("version", "details")]
        return Drawing(
            title=f"version {self.version}",
            parts=(Pairs(tuple((name, getattr(self, name)) for name in names)),),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table's schema."""

    id: int | None
    """The field id by which the format follows a column through renames; null where it has none."""
    name: str
    """The name in this schema."""
    type: str
    """The format's own spelling of the type, such as DECIMAL(10, 2) or decimal(10,2)."""
    nullable: bool
    """Whether the column may hold nulls."""
    comment: str | None
    """The column's description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """The schema of a table at one version."""

    id: int | None
    """The format's number of the schema."""
    columns: tuple[Column, ...]
    """The columns in order."""
    partition_keys: tuple[str, ...]
    """Names of the partition columns, outermost first."""
    primary_keys: tuple[str, ...]
    """Names of the primary key columns; empty where there is no key."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return mimebundle(self.drawing())

    def __str__(self) -> str:
        """Return the columns as an aligned table."""
        return text(self.drawing())

    def drawing(self) -> Drawing:
        """Return how the schema looks: a row per column, of very many the first, and its part in the keys."""
        columns = self.columns[:_DRAWN_COLUMNS]
        grid = pa.table(
            {
                "id": pa.array([column.id for column in columns], pa.int64()),
                "column": pa.array([column.name for column in columns], pa.string()),
                "type": pa.array([column.type for column in columns], pa.string()),
                "nullable": pa.array([column.nullable for column in columns], pa.bool_()),
                "key": pa.array([self._key(column.name) for column in columns], pa.string()),
                "comment": pa.array([column.comment for column in columns], pa.string()),
            }
        )
        title = "schema" if self.id is None else f"schema {self.id}"
        shown = Grid(grid, noun="columns", limit=len(columns), total=len(self.columns))
        return Drawing(title=title, parts=(shown,))

    def __repr__(self) -> str:
        columns: object = self.columns
        if len(self.columns) > _DRAWN_COLUMNS:
            columns = f"<{len(self.columns):,} columns>"
        keys = (self.partition_keys, self.primary_keys)
        partition, primary = (names if len(names) <= _DRAWN_COLUMNS else f"<{len(names):,} names>" for names in keys)
        return f"TableSchema(id={self.id!r}, columns={columns}, partition_keys={partition}, primary_keys={primary})"

    def _key(self, name: str) -> str | None:
        parts = [("primary", self.primary_keys), ("partition", self.partition_keys)]
        return ", ".join(word for word, keys in parts if name in keys) or None


class SplitDetail(Protocol):
    """What a format needs to read a split. Picklable."""

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal where the same rows are read: files, their deletes, schema, merge rules."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """An independent, picklable unit of reading rows."""

    files: tuple[str, ...]
    """Paths of its data files, relative to the table's root or absolute."""
    raw: bool
    """Whether any parquet or ORC reader may read the files: no merge, no deletion vector."""
    partition: Mapping[str, str | None]
    """Partition column to value as text; null is the null partition."""
    bucket: int | None
    """The bucket, where the format has buckets."""
    rows: int | None
    """Rows in the files, before any merge; None where the metadata does not tell."""
    size_bytes: int
    """Bytes of the files."""
    detail: SplitDetail
    """What the format needs to read it: a record of the format's own."""
    counted: int | None = None
    """Rows after deletions, where the metadata tells; None where they must be read. Of a raw split all count."""

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal for splits of one table with the same rows, whatever version planned them.

        Data files are never changed in place, so that equal files, deletion vectors, read schema and merge rules give
        equal rows. The reverse does not hold: splits with equal rows may differ in identity.
        """
        return tuple(sorted(self.partition.items())), self.bucket, self.detail.identity


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeFile:
    """A data file whose rows count but for those of a deletion vector, for readers other than the format's own."""

    address: str | None
    """Its absolute path on this machine; None where it is elsewhere."""
    kind: Literal["parquet", "orc"]
    """What it is."""
    rows: int | None
    """How many rows it has; None where the metadata does not tell."""
    names: Mapping[str, str | None]
    """What the file calls each of the table's columns, partition columns aside; None where it lacks the column."""
    present: frozenset[str] = frozenset()
    """What of these it holds for certain: without it, the file is damaged."""
    deleted: int = 0
    """How many of its rows a deletion vector takes away, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeRows:
    """Where readers other than the format's own find the rows of a split."""

    files: tuple[NativeFile, ...]
    """The files."""
    partition: pa.Table | None
    """One row: the typed value of each partition column. None for a table without partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A table of metadata that a format offers under the name its own users know."""

    name: str
    """The name, such as `files`."""
    at_version: bool
    """Whether it tells of one version; otherwise of the table as it is now."""
    meaning: str
    """What its rows are."""
    of_rows: bool = False
    """Whether it holds the table's own rows, and so costs what reading them costs."""


ChangeMode = Literal["auto", "delta", "changelog", "diff"]
"""How the rows that changed between two versions are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One listing of the log: which versions there are. Equal listings mean that nothing happened."""

    versions: tuple[int, ...] = field(compare=False)
    """The versions found, ascending. From a hint alone it is only the newest."""
    identity: tuple[object, ...]
    """The newest version and what tells its commit from another of that number; compared, never interpreted."""
    checkpoint: int | None = field(default=None, compare=False)
    """The version of the checkpoint that the newest version is made from, where the format has one."""
    start: int | None = field(default=None, compare=False)
    """From where the next listing need look, where the format need not ask its hint again."""
    stateless: tuple[int, ...] = field(default=(), compare=False)
    """Those of the versions whose files cannot be told any more, since only their row changes are left."""
    commitless: tuple[int, ...] = field(default=(), compare=False)
    """Versions whose changes cannot be told any more, since only their state is left."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What was odd and tolerated, such as a hint that points nowhere; a sentence each."""
    earliest: int | None = field(default=None, compare=False)
    """The first version that can be loaded, where older ones are listed too; None where all can."""
    lost: tuple[int, ...] = field(default=(), compare=False)
    """Those of the versions from `earliest` on that cannot be loaded, since a commit before them is gone."""
    is_contiguous: bool = field(default=True, compare=False)
    """Whether the format numbers the versions of a history one by one, so that a missing number is a lost commit."""

    @property
    def latest(self) -> int | None:
        """The newest version, or None for a table without versions."""
        return self.versions[-1] if self.versions else None

    @property
    def reachable(self) -> tuple[int, ...]:
        """The versions that can be loaded, ascending; the others are known by their commits alone."""
        first, lost = self.earliest, frozenset(self.lost)
        if first is None and not lost:
            return self.versions
        return tuple(one for one in self.versions if (first is None or one >= first) and one not in lost)

    @property
    def has_gaps(self) -> bool:
        """Return whether versions between the earliest and the latest are missing."""
        return bool(self.versions) and self.missing_between(self.versions[0], self.versions[-1]) > 0

    def between(self, a: int, b: int) -> tuple[int, ...]:
        """Return the versions after `a` up to `b`, ascending; `a` need not be one of them."""
        return self.versions[bisect_right(self.versions, a) : bisect_right(self.versions, b)]

    def missing_between(self, a: int, b: int) -> int:
        """Return how many versions after `a` up to `b` were lost or have expired."""
        return b - a - len(self.between(a, b)) if self.is_contiguous else 0

    def first_missing(self, a: int, b: int) -> int | None:
        """Return the first version after `a` up to `b` that was lost or has expired; None if there is none."""
        if not self.missing_between(a, b):
            return None
        there = self.between(a, b)
        return next(a + place for place, version in enumerate((*there, b + 1), 1) if version != a + place)

    def predecessor(self, version: int) -> int | None:
        """Return the version right before one, listed or not; None where it cannot be known."""
        if self.is_contiguous:
            return version - 1
        place = bisect_left(self.versions, version)
        return self.versions[place - 1] if place else None

    def runs(self, versions: Sequence[int], begin: Collection[int] = ()) -> list[Sequence[int]]:
        """Return versions, ascending, cut where one is not right behind the one before, and before those of `begin`."""
        cuts = [
            place
            for place in range(1, len(versions))
            if versions[place] in begin or self.predecessor(versions[place]) != versions[place - 1]
        ]
        return [versions[start:end] for start, end in pairwise([0, *cuts, len(versions)]) if start < end]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The result of checking a version's metadata before it becomes current."""

    table_id: str | None
    """The table's own id, where the format has one."""
    notes: tuple[str, ...]
    """What contradicts itself and is tolerated, such as a checksum; a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceSettings:
    """What a table's settings, or else its engine's defaults, say of its upkeep: what health is measured against."""

    target_bytes: int
    """How large the engine means data files to be."""
    target_said: str
    """Where that is from."""
    small_bytes: int
    """A data file below this size is small."""
    small_said: str
    """Where that is from."""
    deleted_ratio: float
    """The share of deleted rows from which on the engine rewrites a file for them."""
    deleted_said: str
    """Where that is from."""
    runs_trigger: int | None
    """How many sorted runs of a bucket trigger a compaction; None where there are no sorted runs."""
    runs_stop: int | None
    """How many of them make writers wait."""
    metadata_limit: int
    """How many small manifests (Paimon), or commits since the checkpoint (Delta), the engine lets come together."""
    metadata_said: str
    """Where that is from."""
    metadata_bytes: int | None
    """How large the engine means manifests to be; None where commits are its manifests."""
    compact: str
    """The engine's own command that merges files."""
    tidy: str
    """What makes the metadata fewer."""
    widen: str
    """What makes partitions and buckets fewer and larger."""
    notes: tuple[str, ...] = ()
    """What else bears on the upkeep; a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What metadata says of the values in some files: a row per file, a column per column of the table."""

    lower: pa.Table
    """The least value or something below it, in the column's type; null is unknown."""
    upper: pa.Table
    """The greatest value or something above it, in the column's type; null is unknown."""
    null_count: pa.Table
    """How many values are null; null is unknown."""
    rows: pa.Array
    """How many rows the file has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """What reading rows would read, and what it need not read."""

    splits: tuple[Split, ...]
    """What is read."""
    skipped: pa.Table
    """SKIPPED: the files that are not, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch of a table."""

    name: str
    """Its name."""
    forked_version: int | None
    """The version of the history looked at that it begins with, as the same commit; None where none is proven."""
    newest_version: int | None
    """Its newest version, a number of its own history; None where it has none, or was not looked into."""


class SplitReader(Protocol):
    """Reads the rows of splits. Safe to use from several threads, and picklable."""

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split as the format defines them, with these columns in this order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """Rows that commits changed, planned only when `splits` is called. The first column is `rowkind`."""

    schema: pa.Schema
    """The columns behind `rowkind`."""
    metadata_columns: pa.Schema
    """Columns that rows have only when a reader names them."""
    splits: "Callable[[Predicate | None], Sequence[Split]]"
    """Plans the splits; a predicate, which may use `rowkind`, skips files in which no row can match."""
    reader: SplitReader
    """Reads the splits."""


class Predicate(Protocol):
    """A condition on rows, made above the formats and evaluated by them where it saves reading."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it reads."""
        ...

    def on(self, columns: frozenset[str]) -> "Predicate | None":
        """Return the part of the condition that reads only these columns, None where there is none.

        Rows that fail the part fail the whole, so files can be skipped by it.
        """
        ...

    def mask(self, rows: pa.Table) -> pa.BooleanArray:
        """Return for each row whether it passes; a condition that is null does not pass."""
        ...

    def ruled_out(self, bounds: Bounds) -> pa.StringArray:
        """Return for each file the columns whose values rule it out, as text; null where some row may pass."""
        ...

    def points(self, schema: pa.Schema) -> Sequence[pa.Array] | None:
        """Return for each column of the schema the values of which a passing row has one; None if one has others."""
        ...
