"""The lives of rows as tracks, from the lines of a blame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.render.cells import cell, cut
from snapshot_explorer.render.commits import short_user
from snapshot_explorer.render.tracks import MOST_TRACKS, Mark, Span, Track, Tracks

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

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
    """Return a track for each row, in the order of its first change, with values where it changed.

    Args:
        lines: The lines of a blame, oldest first.
        key: The columns that identify a row; empty where only equal rows are the same.
        versions: The versions that were searched, ascending.
    """
    if "before" not in lines.column_names:
        return Tracks(title=title, versions=tuple(versions), tracks=(), total=0, noun="rows")
    known = np.asarray(versions, np.int64)
    by_row: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    names = [field.name for field in lines.schema.field("before").type]
    places = np.searchsorted(known, lines["version"].to_numpy())
    for index, row in enumerate(_records(lines.slice(0, _MAX_LINES), names)):
        identity = tuple(row["values"][name] for name in key or names)
        by_row.setdefault(identity, []).append({**row, "place": int(places[index])})
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
        result.append({**head, "values": {name: cut(cell(row[name]).text, _WIDEST) for name in names}})
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
        text = by.strip() if group == "deleted" else _text(change, group, shown)
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


def _text(change: Mapping[str, Any], group: str, shown: str) -> str:
    """Return the value that changed; of a row that was inserted, the one that changes later."""
    is_shown = shown and (group == "inserted" or shown in (change["changed_columns"] or ()))
    return str(change["values"][shown]) if is_shown else ""
