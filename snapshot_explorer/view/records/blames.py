"""What is drawn of a blame: the changes of rows, and a track for each row."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.rows import Blame
from snapshot_explorer.arrow.value_text import format_cell, truncate
from snapshot_explorer.core.text import pluralize, short_user
from snapshot_explorer.view.dispatch import depict, draw
from snapshot_explorer.view.drawing import Code, Drawing, Grid, Line, fact_line
from snapshot_explorer.view.figures import Picture
from snapshot_explorer.view.grid import drawn_field
from snapshot_explorer.view.tracks.svg import TracksPicture
from snapshot_explorer.view.tracks.tracks import MOST_TRACKS, Mark, Span, Track, Tracks

_DRAWN_LINES = 20
_DRAWN_COLUMNS = 8
_WIDEST_CELL = 40
_NAMED_VERSIONS = 8
_MAX_LINES = 2_000
"""Changes that are drawn."""
_NAMED = 2
"""Columns that are named in the label of a row without a key."""
_WIDEST = 24
_ROOM = 0.07
"""The part of the versions that the text of a mark covers: the next mark so near has none."""
_GROUPS = {"i": "inserted", "p": "inserted", "u": "updated", "d": "deleted"}
"""By the first letter of a change: insert, present, update, delete."""


@draw.register
def _blame(blame: Blame) -> Drawing:
    """Return the lines as a drawing. A changed cell has the values before and after, with an arrow between them."""
    where = "" if blame.request.where is None else f" where {blame.request.where}"
    lacking = f", {len(blame.unreadable):,} could not be read" if blame.unreadable else ""
    compared = f"{blame.compared:,} of {pluralize(len(blame.versions), 'version')}{lacking}"
    facts = [
        ("format", blame.format),
        ("versions", blame.span),
        ("compared", f"{compared}: no other can have changed such rows"),
        ("files", _read_files(blame)),
        *([("changes", _counts(blame))] if len(blame) > _DRAWN_LINES else []),
    ]
    rows, marked = _drawn_changes(blame.lines.slice(0, _DRAWN_LINES))
    grid = Grid(rows, total=len(blame.lines), noun="changes of rows", limit=_DRAWN_LINES, marked=marked)
    notes = [Line(note) for note in blame.notes]
    title = f"What happened to rows of {blame.name}{where}"
    return Drawing(title=title, parts=(*notes, grid, fact_line(facts), Code(blame.call)))


@depict.register
def _picture(blame: Blame) -> Picture:
    """Return the history of each row as a line over the versions, with its values at each change."""
    title = f"{pluralize(len(blame), 'change')} of rows"
    return TracksPicture(_blame(blame), lambda: row_tracks(blame.lines, blame.key, blame.versions, title=title))


def _counts(blame: Blame) -> str:
    """Return how many changes each version made, oldest first, up to a number of versions."""
    counts = blame.lines["version"].value_counts().to_pylist()
    named = [f"{item['counts']:,} at version {item['values']}" for item in counts[:_NAMED_VERSIONS]]
    more = len(counts) - len(named)
    return ", ".join(named) + (f", others at {more:,} more" if more else "")


def _read_files(blame: Blame) -> str:
    ruled_out = blame.files - blame.admitted_files
    others = f"; statistics and partitions rule out {ruled_out:,}" if ruled_out else ""
    return f"opened {blame.opened_files:,} of {pluralize(blame.files, 'data file')}{others}"


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
            sides = [truncate(format_cell(side[name]).text, _WIDEST_CELL) for side in (before, after) if side.is_valid]
            is_changed = len(sides) == 2 and name in (changed or ())  # noqa: PLR2004 - before and after
            last = sides[-1] if (after if after.is_valid else before)[name].is_valid else None
            cells.append(" \N{RIGHTWARDS ARROW} ".join(sides) if is_changed else last)
            if is_changed:
                marked.add((row, len(heads) + index))
        shown = shown.append_column(drawn_field(name, item.type), pa.array(cells, pa.string()))
    return shown, frozenset(marked)


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
