"""`Blame`: the changes of rows, a line for each. Draws itself and exports."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.row_history.affected_versions import AffectedVersions
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.records import (
    AFTER,
    BEFORE,
    DELETED,
    INSERTED,
    MAINTENANCE_KINDS,
    Gap,
    alternatives_text,
    capitalized,
    gaps_note,
    runs_of,
    runs_text,
)
from snapshot_explorer.formats.unread_versions import read_apart, unread_notes
from snapshot_explorer.history import History, call_text
from snapshot_explorer.history.lifetimes import FileLifetimes
from snapshot_explorer.results import Frame
from snapshot_explorer.results.frame_result import FrameResult


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameRequest:
    """The arguments of a blame: which rows, and how they are compared."""

    where: str | None = None
    """The condition; None for all rows."""
    key: Sequence[str] | None = None
    """The columns that identify a row; None for the primary key, empty for none."""
    columns: Sequence[str] | None = None
    """The columns to compare and to return; None for all."""
    between: str | None = None
    """The range of versions, as the user wrote it."""

    @property
    def call(self) -> str:
        """Return the method call that returns the result."""
        key, columns = (None if names is None else list(names) for names in (self.key, self.columns))
        where = () if self.where is None else (self.where,)
        return "." + call_text("blame", *where, key=key, columns=columns, between=self.between)


@dataclass(slots=True)
class BlameReading:
    """The versions and files that were read, and notes."""

    files: int = 0
    """The number of data files that were opened."""
    compared: int = 0
    """The versions that were compared."""
    unreadable: dict[int, str] = field(default_factory=dict)
    """The versions that might have changed matching rows and could not be read, each with the end of a sentence."""

    def notes(self, gaps: Sequence[Gap], unread: Sequence[str]) -> tuple[str, ...]:
        """Return a sentence on missing versions, and for each reason a sentence on unreadable versions.

        Args:
            unread: Sentences on versions whose metadata cannot be read.
        """
        by_reason: dict[str, list[int]] = {}
        for version, reason in self.unreadable.items():
            by_reason.setdefault(reason, []).append(version)
        unreadable = [
            Message(
                f"{capitalized(runs_text(runs_of(versions)))} cannot be read", reason, f". {capitalized(_SKIPPED)}."
            )
            for reason, versions in by_reason.items()
        ]
        return *gaps_note(gaps, _SKIPPED), *unread, *unreadable


_SKIPPED = "what changed there is shown with the next version, as far as it lasted"


@dataclass(frozen=True, slots=True)
class ChangesAt:
    """The changed rows of a version."""

    version: int
    rows: pa.Table
    """The rows; see `changed_rows.changes_schema`."""
    gaps: tuple[Gap, ...]
    """The gaps right before the version, or before the unreadable versions."""
    unreadable: tuple[int, ...]
    """The versions right before this one that might have changed matching rows and could not be read."""
    is_first: bool
    """Whether no earlier version could be read, so that the rows are all rows of the version."""

    def where(self, *, is_maintenance: bool) -> str:
        """Return the versions that may have made the changes, such as `8 or 9`; empty if it is certainly this one."""
        if not self.gaps and not self.unreadable:
            return ""
        is_named = bool(self.unreadable) or any(gap.missing or gap.unreadable for gap in self.gaps)
        others = is_maintenance and is_named
        return alternatives_text(self.gaps, self.unreadable if others else (*self.unreadable, self.version))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Blame(FrameResult):
    """Every version that inserted, updated or deleted rows of a condition. Draws itself.

    Applied one after another, the lines return the matching rows of every version.
    """

    open_expression: str
    """The Python call that opens the table."""
    request: BlameRequest
    key: tuple[str, ...]
    """The columns that identified a row; empty if whole rows were compared."""
    lines: pa.Table = field(repr=False)
    """BLAME: a row for each change of a row, oldest first, then `before` and `after`, structs with its columns."""
    compared: int
    """The number of versions that were compared because they might have changed matching rows."""
    unreadable: tuple[int, ...]
    """The versions that might have changed matching rows and could not be read, ascending."""
    files: int
    """The number of data files of all versions."""
    admitted_files: int
    """The number of files that might contain matching rows, by their statistics and partitions."""
    opened_files: int
    notes: tuple[str, ...]
    """Further notes; a sentence each."""

    @property
    def call(self) -> str:
        """Return the Python call that returns the result."""
        return self.open_expression + self.request.call

    @property
    def frame(self) -> Frame:
        return Frame(self.lines, title=f"What happened to rows of {self.name}", noun="changes of rows")

    def __len__(self) -> int:
        return int(self.lines.num_rows)


def blame_of(
    source: History,
    affected: AffectedVersions,
    changes: Sequence[ChangesAt],
    *,
    versions: Sequence[int],
    reading: BlameReading,
    request: BlameRequest,
    key: Sequence[str],
) -> Blame:
    """Return the blame of changed rows by version, with their commits. Reads the commits of these versions."""
    is_whole = versions[0] == affected.lifetimes.versions[0] and affected.begins_with_first
    whole = versions[0] if is_whole else None
    return Blame(
        path=source.path,
        name=source.name,
        format=source.format.name,
        open_expression=source.open_expression,
        request=request,
        key=tuple(key),
        lines=_lines_of(source, changes, whole),
        versions=tuple(versions),
        span=source.span_text(versions),
        compared=reading.compared,
        unreadable=tuple(reading.unreadable),
        files=affected.files,
        admitted_files=affected.admitted,
        opened_files=reading.files,
        notes=reading.notes(source.gaps(_known(affected.lifetimes, versions)), _unread(affected.lifetimes, versions)),
    )


def _known(lifetimes: FileLifetimes, versions: Sequence[int]) -> list[int]:
    return [version for version in versions if version not in lifetimes.unread]


def _unread(lifetimes: FileLifetimes, versions: Sequence[int]) -> tuple[str, ...]:
    """Return why some of the versions cannot be read; sentences."""
    before = lifetimes.before_note if versions[0] <= lifetimes.versions[0] else None
    unread = unread_notes({version: error for version, error in lifetimes.unread.items() if version in versions})
    return unread if before is None else (before, *unread)


def _lines_of(source: History, changes: Sequence[ChangesAt], whole: int | None) -> pa.Table:
    """Return changed rows by version as lines, with the commits that made the changes: BLAME, and the rows.

    Args:
        whole: The first version, if its commit made all of its rows.
    """
    commits = _commits(source, [change.version for change in changes if len(change.rows)])
    kinds = dict(zip(commits["version"].to_pylist(), commits["kind"].to_pylist(), strict=True))
    lines, uncertain = [], []
    for change in changes:
        is_maintenance = kinds.get(change.version) in MAINTENANCE_KINDS
        if change.is_first and change.version != whole:
            before = source.listing.predecessor(change.version) if is_maintenance else None
            words = ["", f"present, since {change.version if before is None else before} or earlier", ""]
        else:
            where = change.where(is_maintenance=is_maintenance)
            words = [f"{word} at {where}" if where else word for word in ("delete", "insert", "update")]
        lines.append(_lines(change, words))
        uncertain += [] if words[1] == "insert" else [change.version]
    certain = commits.filter(pc.invert(pc.is_in(commits["version"], pa.array(uncertain, pa.int64()))))
    return _with_commits(pa.concat_tables(lines), certain)


def _lines(change: ChangesAt, words: Sequence[str]) -> pa.Table:
    """Return changed rows of a version as lines: version, change, changed_columns, before, after.

    Args:
        words: The value of `change` for a row that was deleted, inserted, updated.
    """
    kinds = change.rows.column(0)
    parts = [change.rows.filter(pc.equal(kinds, kind)) for kind in (DELETED, INSERTED, BEFORE, AFTER)]
    deleted, inserted, old, new = (_structs(part) for part in parts)
    counts = [len(deleted), len(inserted), len(old)]
    none = [pa.nulls(count, deleted.type) for count in counts]
    return pa.table(
        {
            "version": pa.array(np.full(sum(counts), change.version)),
            "change": pa.array(np.repeat(words, counts).tolist(), pa.string()),
            "changed_columns": pa.chunked_array([*(part.column(1).combine_chunks() for part in parts[:3])]),
            "before": pa.chunked_array([deleted, none[1], old]),
            "after": pa.chunked_array([none[0], inserted, new]),
        }
    )


def _structs(changes: pa.Table) -> pa.StructArray:
    rows = changes.select(list(range(2, changes.num_columns)))
    columns = [column.combine_chunks() for column in rows.columns]
    return pa.StructArray.from_arrays(columns, fields=list(rows.schema))


def _commits(source: History, versions: Sequence[int]) -> pa.Table:
    """Return the COMMITS of versions, without unreadable ones and versions of which only the state is left."""
    read = read_apart(source.format.commits, versions, source.format.storage)
    return pa.concat_tables([frames.COMMITS.empty_table(), *(part for _, part in read.parts)])


def _with_commits(rows: pa.Table, commits: pa.Table) -> pa.Table:
    """Return lines with the commits of their versions: BLAME, and the rows before and after. Null without a commit."""
    indices = pc.index_in(rows["version"], commits["version"].combine_chunks())
    of_commits = {
        name: commits[name].combine_chunks().take(indices) for name in ("committed_at", "kind", "operation", "user")
    }
    columns = {name: rows[name] for name in rows.column_names} | of_commits
    schema = pa.schema([*frames.BLAME, rows.schema.field("before"), rows.schema.field("after")])
    return pa.table([columns[name] for name in schema.names], schema=schema)
