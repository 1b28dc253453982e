"""Frozen records that every layer shares. Anything that can have a million members is in `frames`."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Literal, Protocol

import pyarrow as pa

from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.shown import Shown

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
RowSource = Literal["writer", "metadata", "rows", "net", "contradicted"]
"""Where the logical counts of a commit are from."""
MAINTENANCE_KINDS: tuple[Kind, ...] = ("compact", "analyze", "maintenance")
"""Kinds of commits that change no rows of the table."""

_DRAWN_COLUMNS = 200
"""The maximum number of columns of a schema to draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Shown):
    """The commit of a version. One row of the COMMITS frame; see there for units and meaning."""

    version: int
    """Paimon snapshot id, Delta version, Iceberg sequence number or Hudi instant."""
    committed_at: datetime | None
    """When the writer committed, aware, UTC, to the millisecond; None if not recorded. Clocks may run backwards."""
    readable: Readable | None
    """Whether the version can still be loaded: yes, only its metadata, or no; None if that was not checked."""
    kind: Kind
    """The kind of commit, in words common to all formats."""
    operation: str | None
    """The writer's own word, such as WRITE or OPTIMIZE."""
    user: str | None
    """The user that the writer recorded."""
    identifier: str | None
    """The writer's identifier of the commit, as text: it might exceed a browser's integers."""
    schema_id: int | None
    """The schema in force after the commit."""
    added_files: int | None
    removed_files: int | None
    added_rows: int | None
    """Rows in the added files, without rows that deletion vectors remove; also rows that return."""
    removed_rows: int | None
    """Rows in the removed files, counted in the same way, and rows that the commit deleted by deletion vectors."""
    added_bytes: int | None
    removed_bytes: int | None
    rows_inserted: int | None
    """Rows of the table that the commit inserted; None if not counted, then also `rows_updated` and `rows_deleted`."""
    rows_updated: int | None
    """Rows that the commit wrote anew, with other values or the same."""
    rows_deleted: int | None
    rows_rewritten: int | None
    """Rows that moved from removed to added files without a change."""
    rows_source: RowSource | None
    """Where these counts are from; see `frames.COMMITS`."""
    total_rows: int | None
    """Rows in all live files after the commit, without rows deleted by deletion vectors; see `frames.COMMITS`."""
    watermark: datetime | None
    """Event-time watermark, aware, UTC; null if the writer recorded none."""
    tags: tuple[str, ...]
    """Names of the tags on this version."""
    details: str | None
    """The format's record of the commit, except its files, as JSON text, unknown fields included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table's schema."""

    id: int | None
    """The field id that identifies the column across renames; None without one."""
    name: str
    type: str
    """The type in the format's own notation, such as DECIMAL(10, 2) or decimal(10,2)."""
    nullable: bool
    """Whether the column may contain nulls."""
    comment: str | None
    """The column's description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldIds:
    """The id of a column or of a field in a struct, and the ids of its nested fields."""

    id: int | str | None
    """The id, or the name in data files, which renames keep; None for items, keys and values."""
    parts: tuple["FieldIds", ...] = ()
    """The fields of a struct in order, the items of a list, or the keys and values of a map; otherwise empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema(Shown):
    """The schema of a table at one version."""

    id: int | None
    columns: tuple[Column, ...]
    """The columns in order."""
    partition_keys: tuple[str, ...]
    """Names of the partition columns, outermost first."""
    primary_keys: tuple[str, ...]
    """Names of the primary key columns; empty if there is no key."""
    is_merged: bool = False
    """Whether readers merge rows with the same primary key, as in Paimon. Iceberg's identifier fields merge nothing."""

    @property
    def has_ids(self) -> bool:
        """Whether every column has a field id; in Delta only with column mapping."""
        return all(column.id is not None for column in self.columns)

    def __repr__(self) -> str:
        columns: object = self.columns
        if len(self.columns) > _DRAWN_COLUMNS:
            columns = f"<{len(self.columns):,} columns>"
        keys = (self.partition_keys, self.primary_keys)
        partition, primary = (names if len(names) <= _DRAWN_COLUMNS else f"<{len(names):,} names>" for names in keys)
        return f"TableSchema(id={self.id!r}, columns={columns}, partition_keys={partition}, primary_keys={primary})"


class SplitDetail(Protocol):
    """The format's own data about a split. Picklable."""

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
    rows: int | None
    """Rows in the files, before merges and deletes; None if the metadata does not contain it."""
    size_bytes: int
    detail: SplitDetail
    """The format's own record for reading it."""
    bucket: int | None = None
    """The bucket, where the format has buckets."""
    live_rows: int | None = None
    """Rows after deletions, from metadata; None if they must be read. In a raw split all rows count."""
    delete_files: tuple[str, ...] = ()
    """Paths of files with deletes of its rows that are checked, like data files, before executors read them."""

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal for splits of one table with the same rows, whatever version planned them.

        Data files are never changed in place, so equal files, deletion vectors, read schema and merge rules imply equal
        rows. The reverse is not true: splits with equal rows may differ in identity.
        """
        return tuple(sorted(self.partition.items())), self.bucket, self.detail.identity


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeFile:
    """A data file whose rows are all valid except those in a deletion vector, for readers other than the format's."""

    address: str | None
    """Its absolute path on the local disk; None for a remote file."""
    kind: Literal["parquet", "orc"]
    rows: int | None
    """The number of rows; None if the metadata does not contain it."""
    names: Mapping[str, str | None]
    """The name in the file of each of the table's columns except partition columns; None if the file lacks it."""
    present: frozenset[str] = frozenset()
    """The columns that the file must contain: without one, it is damaged."""
    ids: Mapping[str, int] | None = None
    """The field ids that columns of the file must have, by name in the file; None if columns have no ids."""
    deleted: int = 0
    """The maximum number of rows that its deletion vector removes."""
    size_bytes: int | None = None
    """The size that the metadata records; None if it records none, or a wrong one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeRows:
    """The files of a split and how to read them, for readers other than the format's own."""

    files: tuple[NativeFile, ...]
    partition: pa.Table | None
    """One row: the typed value of each partition column. None for a table without partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A metadata table of a format, under its name in that format."""

    name: str
    """The name, such as `files`."""
    at_version: bool
    """Whether it describes one version; otherwise the current table."""
    meaning: str
    of_rows: bool = False
    """Whether it contains the table's own rows, so that it costs as much as reading them."""
    picture: Literal["actions", "slices"] | None = None
    """Which figure it has: actions over time, or file groups over versions."""


Measure = Literal["rows", "files", "bytes"]
"""What a figure counts."""
ChangeMode = Literal["auto", "delta", "changelog", "diff"]
"""How to find the rows that changed between two versions."""
ROW_KIND = "rowkind"
"""The first column of changed rows: INSERTED, BEFORE, AFTER or DELETED."""
INSERTED, BEFORE, AFTER, DELETED = "+I", "-U", "+U", "-D"
"""A row that was inserted, updated (before and after the update) or deleted."""
CHANGE_TYPES: Mapping[str, str] = {
    INSERTED: "insert",
    BEFORE: "update_preimage",
    AFTER: "update_postimage",
    DELETED: "delete",
}
"""The words for kinds of row changes in a stream, as in Delta's change data feed."""
CHANGE_COLUMNS = pa.schema(
    [
        pa.field("_change_type", pa.string(), nullable=False),
        pa.field("_commit_version", pa.int64(), nullable=False),
        pa.field("_commit_timestamp", pa.timestamp("us", tz="UTC")),
    ]
)
"""The columns after the rows' own columns in a stream of changes, as in Delta's change data feed: one of CHANGE_TYPES,
the version that the commit created, and when it was committed, null if that was not recorded."""
RowModifier = Literal["deletion vectors", "data evolution", "another branch", "rows outside of files"]
"""Why the files of a version cannot be read independently: deletion vectors that change while their files remain, rows
that are spread over several files, rows of another branch, or rows that the metadata itself contains. Lifetimes contain
none of these."""


Runs = tuple[tuple[int, int], ...]
"""Runs of consecutive numbers, ascending: the first and the last of each."""
_NAMED_RUNS = 8
"""The maximum number of runs of versions that a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A place between two versions where others are missing or cannot be read."""

    before: int
    """The last version before it."""
    after: int
    """The first version after it."""
    missing: Runs = ()
    """The versions that are not listed. Empty if it is unknown which numbers this history used."""
    unreadable: Runs = ()
    """The versions that are listed, but cannot be read."""

    @property
    def missing_count(self) -> int:
        """The number of missing versions; 0 if unknown."""
        return sum(last - first + 1 for first, last in self.missing)

    def __str__(self) -> str:
        """Return the gap as a clause, such as `version 8 is missing`."""
        return gaps_text([self])


def gaps_text(gaps: Sequence[Gap]) -> str:
    """Return gaps as a clause, such as `versions 2 to 4 and 8 are missing`; empty without gaps."""
    missing = tuple(run for gap in gaps for run in gap.missing)
    unreadable = tuple(run for gap in gaps for run in gap.unreadable)
    uncounted = [gap for gap in gaps if not gap.missing and not gap.unreadable]
    clauses = []
    if missing:
        clauses.append(f"{runs_text(missing)} {'is' if _is_single(missing) else 'are'} missing")
    if uncounted:
        named = ", ".join(f"{gap.before} and {gap.after}" for gap in uncounted[:_NAMED_RUNS])
        more = f", and at {len(uncounted) - _NAMED_RUNS:,} more places" if len(uncounted) > _NAMED_RUNS else ""
        clauses.append(f"versions between {named}{more} are missing")
    if unreadable:
        clauses.append(f"{runs_text(unreadable)} cannot be read")
    return ", and ".join(clauses)


def gaps_note(gaps: Sequence[Gap], consequence: str) -> tuple[str, ...]:
    """Return a sentence about gaps, which ends with their consequence; nothing without gaps.

    Args:
        consequence: The consequence of the gaps, as a clause.
    """
    return (f"{capitalized(gaps_text(gaps))}: {consequence}.",) if gaps else ()


CHANGED_BY_NEXT = "files that were added or removed there count as changed by the next version"
"""The consequence of gaps for the lifetimes of files."""


def absence_text(version: int, earliest: int, newest: int) -> str:
    """Return why a version is absent, as the end of a sentence that begins with it."""
    if not 0 <= version <= newest:
        return "does not exist"
    return "has expired" if version < earliest else "is missing: its file is gone, though versions before it exist"


def capitalized(clause: str) -> str:
    """Return a clause as the beginning of a sentence."""
    return clause[:1].upper() + clause[1:]


def alternatives_text(gaps: Sequence[Gap], versions: Sequence[int]) -> str:
    """Return the versions of gaps and these ones as alternatives, such as `8 or 9`, or `2 to 4 or 8`.

    Args:
        versions: At least one version, outside of the gaps.
    """
    inside = [run for gap in gaps for run in (*gap.missing, *gap.unreadable)]
    runs = _merge_runs([*inside, *((version, version) for version in versions)])
    named = [text for first, last in runs for text in _run_texts(first, last)]
    if len(named) > _NAMED_RUNS:
        named = [f"{runs[0][0]} to {runs[-1][1]}"]
    listed = f"{', '.join(named[:-1])} or {named[-1]}" if len(named) > 1 else named[0]
    uncounted = [
        f" or one between {gap.before} and {gap.after}" for gap in gaps if not gap.missing and not gap.unreadable
    ]
    return listed + "".join(uncounted)


def _run_texts(first: int, last: int) -> list[str]:
    return [f"{first} to {last}"] if last > first + 1 else [f"{number}" for number in range(first, last + 1)]


def _merge_runs(runs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return runs, ascending, with adjacent ones merged."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged


def runs_text(runs: Runs) -> str:
    """Return versions as text, such as `version 8` or `versions 2 to 4 and 8`."""
    named = [text for first, last in runs[:_NAMED_RUNS] for text in _run_texts(first, last)]
    if len(runs) > _NAMED_RUNS:
        named.append(f"{sum(last - first + 1 for first, last in runs[_NAMED_RUNS:]):,} more")
    listed = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]
    return f"version {listed}" if _is_single(runs) else f"versions {listed}"


def _is_single(runs: Runs) -> bool:
    return len(runs) == 1 and runs[0][0] == runs[0][1]


def runs_of(numbers: Sequence[int]) -> Runs:
    """Return the runs of consecutive numbers, which ascend."""
    cuts = [index for index in range(1, len(numbers)) if numbers[index] != numbers[index - 1] + 1]
    return tuple((numbers[start], numbers[end - 1]) for start, end in pairwise([0, *cuts, len(numbers)]) if start < end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One listing of the log: the existing versions. Equal listings mean that nothing changed."""

    versions: tuple[int, ...] = field(compare=False)
    """The versions found, ascending. From a hint alone it is only the newest."""
    identity: tuple[object, ...]
    """The newest version, and a value that distinguishes its commit from another one of that number; only compared."""
    checkpoint: int | None = field(default=None, compare=False)
    """The checkpoint version that the newest version is loaded from, where the format has one."""
    start: int | None = field(default=None, compare=False)
    """The version from which the next listing can start without reading the hint again."""
    without_files: tuple[int, ...] = field(default=(), compare=False)
    """Versions whose files are unknown, because only their row changes are left."""
    without_commit: tuple[int, ...] = field(default=(), compare=False)
    """Versions whose changes are unknown, because only their state is left."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Tolerated problems, such as a hint to a missing version; a sentence each."""
    unread: tuple[str, ...] = field(default=(), compare=False)
    """What cannot be read and may keep versions that are not listed, such as a damaged tag; a sentence each."""
    newest_note: str | None = field(default=None, compare=False)
    """A sentence about a newer version that the table names and lacks, or None."""
    location_note: str | None = field(default=None, compare=False)
    """A sentence about the location that the metadata records, if the table was opened elsewhere."""
    earliest: int | None = field(default=None, compare=False)
    """The first loadable version, if older ones are listed too; None if all are loadable."""
    unloadable: tuple[int, ...] = field(default=(), compare=False)
    """Versions from `earliest` on that cannot be loaded, because an earlier commit is missing."""
    is_contiguous: bool = field(default=True, compare=False)
    """Whether version numbers are consecutive, so that a missing number is a lost commit."""
    after_gaps: tuple[int, ...] = field(default=(), compare=False)
    """Versions before which some are missing, where numbers are not consecutive."""

    newest_schema: int | None = field(default=None, compare=False)
    """The id of the newest schema, in formats that list schemas apart from versions."""
    first: int | None = field(default=None, compare=False)
    """The number of a table's first version in the format; None if unknown."""
    before_note: str | None = field(default=None, compare=False)
    """Why it is unknown which versions were before the first one, in a sentence; None if that is known."""
    corrections: int = field(default=0, compare=False)
    """How often an earlier answer of the storage turned out to be wrong: what was computed from it is computed anew."""
    pending: tuple[int, ...] = field(default=(), compare=False)
    """Commits that have begun and may still become versions between listed ones, ascending."""
    first_unexpired: int | None = field(default=None, compare=False)
    """The first version that has not expired, where tags or changelogs keep older ones; None for the earliest."""

    @property
    def latest(self) -> int | None:
        """The newest version, or None for a table without versions."""
        return self.versions[-1] if self.versions else None

    @property
    def reachable(self) -> tuple[int, ...]:
        """The loadable versions, ascending. Only the commits of the others are known."""
        first, unloadable = self.earliest, frozenset(self.unloadable)
        if first is None and not unloadable:
            return self.versions
        return tuple(
            version for version in self.versions if (first is None or version >= first) and version not in unloadable
        )

    @property
    def has_expired(self) -> bool:
        """Return whether there were, or may have been, versions before the first one."""
        return bool(self.versions) and (self.before_note is not None or self.versions[0] != self.first)

    @property
    def has_gaps(self) -> bool:
        """Return whether versions between the earliest and the latest are missing."""
        return bool(self.gaps(self.versions))

    def absence(self, version: int) -> str:
        """Return why the version is absent, as the end of a sentence that begins with it. Some version must exist."""
        return absence_text(
            version, self.versions[0] if self.first_unexpired is None else self.first_unexpired, self.versions[-1]
        )

    def between(self, a: int, b: int) -> tuple[int, ...]:
        """Return the versions after `a` up to `b`, ascending; `a` need not be one of them."""
        return self.versions[bisect_right(self.versions, a) : bisect_right(self.versions, b)]

    def gaps(self, versions: Sequence[int]) -> tuple[Gap, ...]:
        """Return the gaps between versions, ascending: where some are missing, or listed but not among these.

        Every answer over a range of versions uses this, so that all of them report the same gaps.

        Args:
            versions: The versions that an answer uses, ascending. The first and the last need not be listed.
        """
        breaks = frozenset(self.after_gaps)
        gaps = []
        for before, after in pairwise(versions):
            if self.is_contiguous and after == before + 1:
                continue
            listed = self.between(before, after - 1)
            missing = _absence(before, after, listed) if self.is_contiguous else ()
            if missing or listed or after in breaks:
                gaps.append(Gap(before=before, after=after, missing=missing, unreadable=runs_of(listed)))
        return tuple(gaps)

    def gaps_between(self, a: int, b: int) -> tuple[Gap, ...]:
        """Return the gaps from version `a` up to `b`, which need not be listed."""
        return self.gaps((a, *self.between(a, b - 1), *([b] if a < b else [])))

    def first_missing(self, a: int, b: int) -> int | None:
        """Return the first version after `a` up to `b` that was lost or has expired, or None."""
        missing = [run for gap in self.gaps_between(a, b) for run in gap.missing]
        if missing:
            return missing[0][0]
        return b if self.is_contiguous and a < b and self.between(b - 1, b) != (b,) else None

    def predecessor(self, version: int) -> int | None:
        """Return the version right before the given one, listed or not; None if unknown."""
        if self.is_contiguous:
            return version - 1
        index = bisect_left(self.versions, version)
        return self.versions[index - 1] if index else None

    @property
    def before_earliest(self) -> int | None:
        """The number of the table before its earliest version, from which its commit counts; None without versions."""
        if not self.versions:
            return None
        before = self.predecessor(self.versions[0])
        return self.versions[0] - 1 if before is None else before

    def runs(self, versions: Sequence[int], begin: Collection[int] = ()) -> list[Sequence[int]]:
        """Return runs of consecutive versions, ascending; a version in `begin` starts a new run."""
        cuts = [
            index
            for index in range(1, len(versions))
            if versions[index] in begin or self.predecessor(versions[index]) != versions[index - 1]
        ]
        return [versions[start:end] for start, end in pairwise([0, *cuts, len(versions)]) if start < end]


def _absence(before: int, after: int, listed: Sequence[int]) -> Runs:
    ends = pairwise((before, *listed, after))
    return tuple((low + 1, high - 1) for low, high in ends if high > low + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The result of checking a version's metadata before it becomes current."""

    table_id: str | None
    """The table's own id, where the format has one."""
    notes: tuple[str, ...]
    """Tolerated contradictions, such as a wrong checksum; a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceSettings:
    """Maintenance settings of a table, or its engine's defaults: the thresholds of health."""

    target_bytes: int
    """The target size of data files."""
    target_source: str
    small_bytes: int
    """A data file below this size is small."""
    small_source: str
    deleted_ratio: float | None = None
    """The share of deleted rows from which the engine rewrites a file; None if there are no deletion vectors."""
    deleted_source: str = ""
    runs_trigger: int | None = None
    """Sorted runs per bucket that trigger a compaction; None if there are no sorted runs."""
    runs_stop: int | None = None
    """Sorted runs per bucket that block writers."""
    metadata_limit: int | None = None
    """Small manifests (Paimon), or commits since the checkpoint (Delta), that the engine accumulates; None if it merges
    no metadata."""
    metadata_source: str = ""
    metadata_bytes: int | None = None
    """The target size of manifests; None if commits are the manifests."""
    compact: str
    """The engine's own command that merges files."""
    metadata_command: str = ""
    """The command or advice that reduces metadata files."""
    repartition_advice: str
    """The command or advice for fewer and larger partitions and buckets."""
    notes: tuple[str, ...] = ()
    """Other notes on maintenance; a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A measured number and its thresholds: a row of HEALTH_FINDINGS; see there for the columns."""

    finding: str
    value: float | None
    """The measured number."""
    watch_from: float
    act_from: float | None = None
    found: str
    """The number in words."""
    threshold: str
    meaning: str
    advice: str
    """The recommended action."""
    is_large_enough: bool = True
    """Whether the table is large enough for the threshold; otherwise the state is ok."""

    @property
    def description(self) -> str:
        """Return the finding in words: the number, the threshold, and unless it is ok, the recommended action."""
        passed = self.value is not None and self.value >= self.watch_from
        small = ", which does not matter in a table of this size" if passed and not self.is_large_enough else ""
        more = f" {self.meaning} {_as_command(self.advice)}" if self.state in ("act", "watch") else ""
        return Message(self.found, f"{small}. Watch from {self.threshold}.{more}")

    @property
    def state(self) -> str:
        """Return act, watch, ok or unknown."""
        if not self.is_large_enough:
            return "ok"
        if self.value is None:
            return "unknown"
        if self.act_from is not None and self.value >= self.act_from:
            return "act"
        return "watch" if self.value >= self.watch_from else "ok"


def _as_command(advice: str) -> str:
    """Return advice as a sentence: a command becomes an instruction to run it, words are unchanged."""
    is_command = advice.split(" ", 1)[0].isupper()
    return f"Run {advice}" if is_command else advice.removesuffix(".") + "."


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds of the values in files, from metadata: a row per file, a column per column of the table."""

    lower: pa.Table
    """The minimum or a lower bound of it, in the column's type; null is unknown."""
    upper: pa.Table
    """The maximum or an upper bound of it, in the column's type; null is unknown."""
    null_count: pa.Table
    """The number of null values; null is unknown."""
    rows: pa.Array

    def slice(self, begin: int, length: int) -> "Bounds":
        """Return the bounds of consecutive files."""
        lower, upper, nulls = (values.slice(begin, length) for values in (self.lower, self.upper, self.null_count))
        return Bounds(lower=lower, upper=upper, null_count=nulls, rows=self.rows.slice(begin, length))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesWithStatistics:
    """The changes of commits, with the statistics of the files that they added; read in one pass."""

    changes: pa.Table
    """CHANGES of data files."""
    added: pa.Table
    """The added files: path, level, deletion_vector, and the structs lower, upper and null_count with a field per
    column, as in `Bounds`. In no order; a file may be there twice."""
    schemas: tuple[tuple[int, TableSchema], ...]
    """The first version and each version that changes the schema, ascending, with the schema in force from it on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """The splits of a scan, and the skipped files."""

    splits: tuple[Split, ...]
    skipped: "Callable[[], pa.Table]"
    """Returns SKIPPED: the files that are not read, and why. Reads nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPair:
    """The splits of two versions, without some that both have."""

    splits: tuple[tuple[Split, ...], tuple[Split, ...]]
    shared_files: int
    """The data files of the first version whose splits were left out: both versions have them with the same rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch of a table."""

    name: str
    forked_version: int | None
    """The version of this history with the same commit as the branch's first version; None if none is proven."""
    newest_version: int | None
    """The newest version, in the branch's own numbering; None if there is none or it was not read."""


class Predicate(Protocol):
    """A condition on rows, compiled by an engine and used by formats to skip files."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it reads."""
        ...

    def on(self, columns: frozenset[str]) -> "Predicate | None":
        """Return the part of the condition that reads only these columns; None if there is none.

        A row that does not match the part does not match the whole, so files can be skipped by the part.
        """
        ...

    def mask(self, rows: pa.Table) -> pa.BooleanArray:
        """Return for each row whether it matches; null counts as false."""
        ...

    def ruled_out(self, bounds: Bounds) -> pa.StringArray:
        """Return for each file the columns whose values rule it out, as text; null if a row might match."""
        ...

    def points(self, schema: pa.Schema) -> Sequence[pa.Array] | None:
        """Return for each column the only values that matching rows can have; None if other values can match."""
        ...
