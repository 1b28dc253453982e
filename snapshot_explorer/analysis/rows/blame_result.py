"""`Blame`: the changes of rows, a line for each. Draws itself and exports."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.rows.affected_versions import AffectedVersions
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
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
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats.unread_versions import read_apart, unread_notes
from snapshot_explorer.history import History, call_text
from snapshot_explorer.history.lifetimes import FileLifetimes
from snapshot_explorer.results import Frame
from snapshot_explorer.results.frame_result import FrameResult
from snapshot_explorer.view import Code, Drawing, Grid, Line
from snapshot_explorer.view.cells import fact_line, format_cell, truncate
from snapshot_explorer.view.commits import short_user
from snapshot_explorer.view.figures import Picture
from snapshot_explorer.view.grid import drawn_field
from snapshot_explorer.view.tracks import MOST_TRACKS, Mark, Span, Track, Tracks, tracks_figure

_DRAWN_LINES = 20
_DRAWN_COLUMNS = 8
_WIDEST_CELL = 40
_NAMED_VERSIONS = 8


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

    files: set[str] = field(default_factory=set)
    """The data files that were opened."""
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
            f"{capitalized(runs_text(runs_of(versions)))} cannot be read{reason}. {capitalized(_SKIPPED)}."
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

    opened: str
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
        return self.opened + self.request.call

    @property
    def frame(self) -> Frame:
        return Frame(self.lines, title=f"What happened to rows of {self.name}", noun="changes of rows")

    def __len__(self) -> int:
        return int(self.lines.num_rows)

    def drawing(self) -> Drawing:
        """Return the lines as a drawing. A changed cell has the values before and after, with an arrow between them."""
        where = "" if self.request.where is None else f" where {self.request.where}"
        lacking = f", {len(self.unreadable):,} could not be read" if self.unreadable else ""
        compared = f"{self.compared:,} of {pluralize(len(self.versions), 'version')}{lacking}"
        facts = [
            ("format", self.format),
            ("versions", self.span),
            ("compared", f"{compared}: no other can have changed such rows"),
            ("files", self._read_files()),
            *([("changes", self._counts())] if len(self) > _DRAWN_LINES else []),
        ]
        rows, marked = _drawn_changes(self.lines.slice(0, _DRAWN_LINES))
        grid = Grid(rows, total=len(self.lines), noun="changes of rows", limit=_DRAWN_LINES, marked=marked)
        notes = [Line(note) for note in self.notes]
        title = f"What happened to rows of {self.name}{where}"
        return Drawing(title=title, parts=(*notes, grid, fact_line(facts), Code(self.call)))

    def tracks(self) -> Tracks:
        """Return the history of each row as a track: its insert, updates and delete."""
        return row_tracks(self.lines, self.key, self.versions, title=f"{pluralize(len(self), 'change')} of rows")

    def picture(self) -> Picture:
        """Return the history of each row as a line over the versions, with its values at each change."""
        return Picture(self.drawing(), lambda: tracks_figure(self.tracks()))

    def _counts(self) -> str:
        """Return how many changes each version made, oldest first, up to a number of versions."""
        counts = self.lines["version"].value_counts().to_pylist()
        named = [f"{item['counts']:,} at version {item['values']}" for item in counts[:_NAMED_VERSIONS]]
        more = len(counts) - len(named)
        return ", ".join(named) + (f", others at {more:,} more" if more else "")

    def _read_files(self) -> str:
        ruled_out = self.files - self.admitted_files
        others = f"; statistics and partitions rule out {ruled_out:,}" if ruled_out else ""
        return f"opened {self.opened_files:,} of {pluralize(self.files, 'data file')}{others}"


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
        opened=source.open_expression,
        request=request,
        key=tuple(key),
        lines=_lines_of(source, changes, whole),
        versions=tuple(versions),
        span=source.span_text(versions),
        compared=reading.compared,
        unreadable=tuple(reading.unreadable),
        files=affected.files,
        admitted_files=affected.admitted,
        opened_files=len(reading.files),
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


def _drawn_changes(lines: pa.Table) -> tuple[pa.Table, frozenset[tuple[int, int]]]:
    heads = ["version", "committed_at", "operation", "kind", "user", "change"]
    heads = [name for name in heads if lines[name].null_count < len(lines) or name in ("version", "change")]
    if "operation" in heads:
        heads.remove("kind")
    shown = lines.select(heads)
    if "user" in heads:
        users = [None if user is None else short_user(user) for user in lines["user"].to_pylist()]
        field = lines.schema.field("user")
        shown = shown.set_column(heads.index("user"), field, pa.array(users, pa.string()))
    if "before" not in lines.column_names:
        return shown, frozenset()
    marked = set()
    for index, item in enumerate([*lines.schema.field("before").type][:_DRAWN_COLUMNS]):
        name = item.name
        cells: list[str | None] = []
        for row, (before, after, changed) in enumerate(
            zip(lines["before"], lines["after"], lines["changed_columns"].to_pylist(), strict=True)
        ):
            sides = [_text(side[name]) for side in (before, after) if side.is_valid]
            is_changed = len(sides) == 2 and name in (changed or ())  # noqa: PLR2004 - before and after
            last = sides[-1] if (after if after.is_valid else before)[name].is_valid else None
            cells.append(" \N{RIGHTWARDS ARROW} ".join(sides) if is_changed else last)
            if is_changed:
                marked.add((row, len(heads) + index))
        shown = shown.append_column(drawn_field(name, item.type), pa.array(cells, pa.string()))
    return shown, frozenset(marked)


def _text(value: pa.Scalar) -> str:
    return truncate(format_cell(value).text, _WIDEST_CELL)


_MAX_LINES = 2_000
"""Changes that are drawn."""
_NAMED = 2
"""Columns that are named in the label of a row without a key."""
_WIDEST = 24
_ROOM = 0.07
"""The part of the versions that the text of a mark covers: the next mark so near has none."""
_GROUPS = {"i": "inserted", "p": "inserted", "u": "updated", "d": "deleted"}
"""By the first letter of a change: insert, present, update, delete."""


def row_tracks(lines: pa.Table, key: Sequence[str], versions: Sequence[int], *, title: str) -> Tracks:
    """Return a track for each row, in the order of its first change, with values at each change.

    Args:
        lines: The lines of a blame, oldest first.
        versions: The versions that were searched, ascending.
    """
    if "before" not in lines.column_names:
        return Tracks(title=title, versions=tuple(versions), tracks=(), total=0, noun="rows")
    known = np.asarray(versions, np.int64)
    by_row: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    names = [field.name for field in lines.schema.field("before").type]
    indices = np.searchsorted(known, lines["version"].to_numpy())
    for index, row in enumerate(_records(lines.slice(0, _MAX_LINES), names)):
        identity = tuple(row["values"][name] for name in key or names)
        by_row.setdefault(identity, []).append({**row, "place": int(indices[index])})
    rows = lines.schema.field("before").type
    plain = {
        rows.field(index).name for index in range(rows.num_fields) if not pa.types.is_temporal(rows.field(index).type)
    }
    tracks = [_track(changes, key, names, plain, len(known) - 1) for changes in [*by_row.values()][:MOST_TRACKS]]
    return Tracks(title=title, versions=tuple(versions), tracks=tuple(tracks), total=len(by_row), noun="rows")


def _records(lines: pa.Table, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return each change with the values that the row has after it, or had before it was deleted, as text."""
    heads = lines.select(["version", "change", "changed_columns", "operation", "kind", "user"]).to_pylist()
    result = []
    for head, before, after in zip(heads, lines["before"], lines["after"], strict=True):
        row = after if after.is_valid else before
        result.append({**head, "values": {name: truncate(format_cell(row[name]).text, _WIDEST) for name in names}})
    return result


def _track(
    changes: Sequence[Mapping[str, Any]], key: Sequence[str], names: Sequence[str], plain: Collection[str], last: int
) -> Track:
    updated = dict.fromkeys(name for change in changes for name in change["changed_columns"] or ())
    # A column of times changes with each update and is long.
    shown = next((name for name in updated if name in plain and name not in key), "")
    spans, marks, begins, free = [], [], None, 0.0
    for change in changes:
        group, index = _GROUPS[change["change"][0]], change["place"]
        by = f" by {short_user(change['user'])}" if change["user"] else ""
        text = by.strip() if group == "deleted" else _changed_text(change, group, shown)
        text = text if index >= free else ""
        free = index + _ROOM * (last + 1) if text else free
        hover = f"version {change['version']}: {change['change']} {change['operation'] or change['kind'] or ''}{by}"
        marks.append(Mark(place=index, group=group, text=text, hover=" ".join(hover.split())))
        if group == "deleted" and begins is not None:
            spans.append(Span(first=begins, last=index, group="present"))
            begins = None
        elif begins is None and group != "deleted":
            begins = index
    if begins is not None:
        spans.append(Span(first=begins, last=last, group="present"))
    values = changes[0]["values"]
    label = ", ".join(f"{name} {values[name]}" for name in [*key, *names][: len(key) or _NAMED])
    return Track(label=label, spans=tuple(spans), marks=tuple(marks))


def _changed_text(change: Mapping[str, Any], group: str, shown: str) -> str:
    """Return the value that changed; for an inserted row, the value that changes later."""
    is_shown = shown and (group == "inserted" or shown in (change["changed_columns"] or ()))
    return str(change["values"][shown]) if is_shown else ""
