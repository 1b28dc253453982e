"""What is drawn of a lake: its overview, its versions at one instant, and tables that name the same files."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from snapshot_explorer.analysis.health import RHYTHM_RULE, span
from snapshot_explorer.arrow.value_text import DRAWN, truncate
from snapshot_explorer.core.hints import Hint, Message, join
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.text import format_size, format_utc, list_names, pluralize
from snapshot_explorer.lake import Lake, LakeSnapshot
from snapshot_explorer.lake.overview import STATES, LakeOverview
from snapshot_explorer.lake.table_twins import Twins
from snapshot_explorer.view.dispatch import draw, drawing_of
from snapshot_explorer.view.drawing import Code, Drawing, Grid, Line, Pairs, Part
from snapshot_explorer.view.palette import GREEN, VERMILLION
from snapshot_explorer.view.row_changes import row_counts_text

_EXPLAINED = 50
"""The maximum number of tables whose problems are written out below the overview; the frame has all."""
_LOST = 0.2
"""The share of its rows whose loss is in the first sentence."""
_MOST_NAMED, _LONGEST_NAME = 3, 40
"""The maximum number of tables of a kind that this sentence names, and of characters of a name."""
_BARS = "▁▂▃▄▅▆▇█"
_UNCHECKED = {
    "unreadable": "versions that cannot be loaded",
    "health": Message("health, which ", Hint("lake.overview", {"health": True}), " reads"),
}
"""Columns that are not drawn if they were checked for no table, by their names in words."""
_WHOLE = ("table", "age", "every")
"""Drawn columns that are never cut."""


@draw.register
def _lake(lake: Lake) -> Drawing:
    """The newest overview, which is read if there is none."""
    return drawing_of(lake.known_overview or lake.overview())


@draw.register
def _instant(instant: LakeSnapshot) -> Drawing:
    """The version of each table."""
    return drawing_of(instant.versions)


@draw.register
def _twins(result: Twins) -> Drawing:
    """Return the result as a drawing: the verdict, both tables, and the versions that correspond."""
    facts: list[tuple[str, object]] = []
    for title, table, side in zip(result.names, (result.a, result.b), result.sides, strict=True):
        newest = side.versions[-1] if side.versions else None
        time = None if newest is None else side.times[newest]
        newest_text = "no version" if newest is None else f"version {newest:,}"
        facts.append((title, f"{newest_text}{'' if time is None else f' of {format_utc(time)}'}, {table.path}"))
    compared = "unknown"
    if result.is_known:
        only = f"{result.only_a:,} only in {result.names[0]}, {result.only_b:,} only in {result.names[1]}"
        compared = f"{pluralize(result.shared, 'data file')} in both, {only}"
    facts += [
        ("newest versions", compared),
        ("deletes", "not checked" if result.deletes is None else result.deletes),
    ]
    notes = [note for side in result.sides for note in side.notes]
    if result.are_copies and result.shared:
        notes.append("No file is in both: files count as the same by their path below the folder, and their size.")
    parts: list[Part] = [
        Line(result.verdict),
        Pairs(tuple(facts)),
        *map(Line, notes),
        *drawing_of(result.versions).parts,
    ]
    if result.is_known and not result.is_in_step:
        paths = dict.fromkeys(repr(table.path) for table in (result.a, result.b))
        parts += [Line("Which rows differ:"), Code(f"twins({', '.join(paths)}).diff()")]
    return Drawing(title=f"Twins: {result.names[0]} and {result.names[1]}", parts=tuple(parts))


@draw.register
def _overview(overview: LakeOverview) -> Drawing:
    """Return the overview as a drawing."""
    rows, limit = overview.to_arrow().to_pylist(), overview.limit or 0
    counts = Counter(row["state"] for row in rows)
    states = ", ".join(f"{counts[state]:,} {state}" for state in STATES if counts[state])
    at = format_utc(overview.request.now).removesuffix(".000Z").removesuffix("Z")
    since = format_utc(overview.request.since).partition(".")[0]
    next_table = next((row["name"] for row in rows if row["problem"] is None), None)
    notes = [
        Line(f"{pluralize(len(rows), 'table')}: {states or 'none'}. At {at} UTC; changes since {since} UTC."),
        *([Line(overview.search, is_faint=True)] if overview.search else []),
    ]
    notes_of = Counter(row["note"] for row in rows if row["note"])
    shared = {note: count for note, count in notes_of.items() if count > 1}
    explained = [row | {"note": None} if row["note"] in shared else row for row in rows]
    marked = [(str(row["name"]), sentence) for row in explained if (sentence := event_text(row)) is not None]
    ending: list[Part] = []
    if len(rows) > limit:
        ending.append(
            Line(
                f"{len(rows) - limit:,} more tables are not drawn. `matching` of the lake draws those of a name, such "
                "as ord*; the overview has all."
            )
        )
    ending += [Pairs(tuple(marked[:_EXPLAINED]))] if marked else []
    if len(marked) > _EXPLAINED:
        ending.append(Line(f"{len(marked) - _EXPLAINED:,} more tables have a problem, a note or a change."))
    ending += [Line(f"A note on {pluralize(count, 'table')}: {note}") for note, count in shared.items()]
    unchecked = [words for name, words in _UNCHECKED.items() if all(row[name] is None for row in rows)]
    ending += [Line(Message("Not checked: ", join("; ", unchecked), "."), is_faint=True)] if unchecked and rows else []
    if next_table is not None:
        ending.append(Code(f"snapshot_explorer.explore(lake[{next_table!r}])"))
    drawn = rows[: overview.limit]
    pictures = {"recent": [_rhythm_svg(row) for row in drawn]}
    grid = Grid(_drawn(drawn), total=len(rows), noun="tables", limit=overview.limit, pictures=pictures)
    answer = _answer(rows)
    title = f"{overview.title}: {answer}" if answer else overview.title
    return Drawing(title=title, parts=(*notes, grid, *ending))


def _answer(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return which tables are late, cannot be read or lost many rows, in a clause; empty if none is known to."""
    overdue = [row for row in rows if row["rhythm"] == "late"]
    overdue.sort(key=lambda row: row["late_after_seconds"] / max(1, row["age_seconds"]))
    late = [str(row["name"]) for row in overdue]
    unread = [str(row["name"]) for row in rows if row["problem"] is not None]
    lost = sorted((share, str(row["name"])) for row in rows if (share := _lost_share(row)) >= _LOST)[::-1]
    parts = [
        f"{len(names):,} {what} "
        f"({list_names([truncate(sanitize(name), _LONGEST_NAME) for name in names], _MOST_NAMED)})"
        for what, names in (("late", late), ("cannot be read", unread))
        if names
    ]
    parts += [f"{name} lost {share:.0%} of its rows" for share, name in lost[:_MOST_NAMED]]
    parts += [f"{len(lost) - _MOST_NAMED:,} more lost rows"] if len(lost) > _MOST_NAMED else []
    return f"of {pluralize(len(rows), 'table')}, {', '.join(parts)}" if parts else ""


def _lost_share(row: Mapping[str, Any]) -> float:
    """Return the share of its rows that a table lost since the start of the overview; 0 if it is not known."""
    inserted, deleted, total = row["rows_inserted"], row["rows_deleted"], row["total_rows"]
    if inserted is None or deleted is None or total is None or deleted <= inserted:
        return 0
    return float((deleted - inserted) / (total + deleted - inserted))


def _drawn(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    columns: dict[str, list[str | None]] = {
        "state": [row["state"] for row in rows],
        "table": [row["name"] for row in rows],
        "age": [None if row["age_seconds"] is None else _span(row["age_seconds"]) for row in rows],
        "every": [None if row["usual_seconds"] is None else _span(row["usual_seconds"]) for row in rows],
        "rhythm": [row["rhythm"] for row in rows],
        "commits": [None if row["commits"] is None else f"{row['commits']:,}" for row in rows],
        "rows": [_rows_text(row) for row in rows],
        "bytes": [_change_text(row["added_bytes"], row["removed_bytes"], format_size) for row in rows],
        "recent": [sparkline(row["recent_rows"] or []) for row in rows],
        "format": [row["format"] for row in rows],
        "unreadable": ["not checked" if row["unreadable"] is None else f"{row['unreadable']:,}" for row in rows],
        "health": [row["health"] or "not checked" for row in rows],
    }
    meanings = {
        "age": "the age of the newest commit that changes data",
        "every": "the median time between recent commits that change data",
        "rows": "rows inserted, deleted and updated; where they are not counted, rows in added files",
        "rhythm": RHYTHM_RULE,
        "recent": "rows inserted by each recent commit that changes data, oldest first; then the time from the "
        "newest one to now, the time at which the next one is usual (dotted), and from which it is late (red)",
    }
    drawn = [name for name in columns if name not in _UNCHECKED or any(row[name] is not None for row in rows)]
    fields = [
        pa.field(
            name,
            pa.string(),
            metadata={**DRAWN, "meaning": meanings.get(name, ""), **({"whole": "yes"} if name in _WHOLE else {})},
        )
        for name in drawn
    ]
    return pa.table([pa.array(columns[name], pa.string()) for name in drawn], schema=pa.schema(fields))


def _span(seconds: int) -> str:
    return span(timedelta(seconds=seconds))


def _rows_text(row: Mapping[str, Any]) -> str | None:
    counts = [row[f"rows_{name}"] for name in ("inserted", "updated", "deleted")]
    if None in counts:
        return None if row["added_rows"] is None else f"{row['added_rows']:,} written"
    return row_counts_text(*counts) if any(counts) else "0"


def _change_text(added: int | None, removed: int | None, shown: Callable[[int], str]) -> str | None:
    if added is None or removed is None:
        return None
    return " ".join(f"{sign}{shown(count)}" for sign, count in (("+", added), ("-", removed)) if count) or "0"


def event_text(row: Mapping[str, Any]) -> str | None:
    """Return the problems and changes of a table as text; None if there are none."""
    parts = [row["problem"]] if row["problem"] else []
    if row["rhythm"] == "late":
        parts.append(f"late by {_span(row['age_seconds'] - row['late_after_seconds'])}")
    if row["schema_changes"]:
        parts.append("the schema changed")
    parts += [*(row["anomalies"] or []), *([row["note"]] if row["note"] else [])]
    return "; ".join(parts) or None


_BAR, _HIGH, _TAIL = 6, 18, 60
"""In pixels: a bar and the distance to the next, its maximum height, and the time after the newest commit."""


def _rhythm_svg(row: Mapping[str, Any]) -> str:
    """Return recent commits of a table and its expected rhythm as SVG, whose title is the sparkline as text."""
    values = row["recent_rows"] or []
    age, usual, late = (row[f"{name}_seconds"] for name in ("age", "usual", "late_after"))
    most = max((value for value in values if value is not None), default=0) or 1
    parts = [
        f'<path d="M{_BAR * at + 1},{_HIGH}v-{1 if not value else max(2, round(_HIGH * value / most))}h{_BAR - 2}v20" '
        f'fill="{"none" if value is None else "currentColor"}"/>'
        for at, value in enumerate(values)
    ]
    start = _BAR * len(values)
    if age is not None and usual is not None and late is not None:
        scale = (_TAIL - 4) / max(age, late, 1)
        color = VERMILLION if age > late else GREEN
        parts += [
            f'<path d="M{start},{_HIGH - 3}h{max(1, round(age * scale))}" stroke="{color}" stroke-width="6"/>',
            f'<path d="M{start + usual * scale:.0f},0v{_HIGH}" stroke="currentColor" stroke-dasharray="2 2"/>',
            f'<path d="M{start + late * scale:.0f},0v{_HIGH}" stroke="{VERMILLION}" stroke-width="2"/>',
        ]
    wide = start + _TAIL
    return (
        f'<svg width="{wide}" height="{_HIGH}" viewBox="0 0 {wide} {_HIGH}" role="img" '
        f'style="overflow:hidden;vertical-align:middle"><title>{sparkline(values)}</title>{"".join(parts)}</svg>'
    )


def sparkline(values: Sequence[int | None]) -> str:
    """Return a bar per value, from 0 to the maximum; a dot for an unknown value."""
    most = max((value for value in values if value is not None), default=0)
    return "".join(
        "·" if value is None else _BARS[0] if not most else _BARS[min(7, value * 8 // (most + 1))] for value in values
    )
