"""The rows that differ between A and B: first the cost, then the rows; no widget."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from snapshot_explorer.analysis.diff import RowDiff, keep_counts
from snapshot_explorer.core.records import AFTER, DELETED, INSERTED, Split
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.explorer.contents.distributions import distributions
from snapshot_explorer.jupyter.explorer.contents.grid_rows import GridRows, grid_rows
from snapshot_explorer.jupyter.explorer.contents.lens import direction
from snapshot_explorer.jupyter.explorer.contents.row_conditions import row_conditions
from snapshot_explorer.jupyter.explorer.contents.view_requests import DRAWN, SnapshotCache, ViewRequest, ViewResult
from snapshot_explorer.jupyter.explorer.environment import load_limits
from snapshot_explorer.table.cost import Cost, ReadLimits
from snapshot_explorer.view import Drawing, Grid, Line, Part, drawing_of
from snapshot_explorer.view.records.diffs import CHANGE_WORDS, comparison_facts, drawn_changes

_SMALL = ReadLimits(rows=100_000, size_bytes=10_000_000)
"""The limits of a read without a click on a button."""
_KINDS = {"updated": AFTER, "inserted": INSERTED, "deleted": DELETED}
"""The kinds in the order in which their rows are shown."""
_NO_KEY = "There is no primary key. Name columns under Key to find updated rows."
_MOST_COLUMNS = 50
_MOST_ROWS = 200_000
"""Changed rows whose distributions are compared."""


def changed_rows(cache: SnapshotCache, request: ViewRequest, other: str = "") -> ViewResult:
    """Return the rows that differ, or the cost of reading them if it is high and not confirmed.

    If B is the version after A, the log has the counts of the changed rows from then on.

    Args:
        other: The table that B is compared with; empty for A.
    """
    a, b, key = (request[name] for name in ("a", "b", "key"))
    diff = cache.known_row_diff(a, b, key, other)
    plan = diff.plan if diff is not None else cache.diff_plan(a, b, key, other)
    if other:
        code, source = plan.call, f"{cache.cited(b)}, and {plan.path}, {plan.b.named}"
        way = f"From version {plan.a.label} to version {plan.b.label}: inserted rows are only in the latter."
    else:
        arguments = f"{a}, {b}" + (f", key={list(key)!r}" if key else "")
        code, source, way = f"{request.name}.diff_rows({arguments})", cache.cited(a, b), direction(a, b)
    if diff is None:
        if not is_small([*plan.a.splits, *plan.b.splits]) and request["rows_read"] != (a, b, key, other):
            return ViewResult(drawing=drawing_of(plan), code=code, source=source, is_announcement=True)
        diff = cache.row_diff(a, b, key, other)
    if not other and request.commits is not None:
        keep_counts(history_of(cache.table), request.commits, diff)
    kinds = [_KINDS[name] for name in _KINDS if request["row_kind"] in ("all", name)]
    heads = diff.changed.heads
    places = [(kind, index) for kind in kinds if kind in heads for index in range(len(heads[kind]))]
    shown = places[:DRAWN]
    names, notes = _columns(diff, kinds, hide_unchanged=request["hide_unchanged"])
    parts: list[Part] = [
        *([] if a < b and not other else [Line(way, is_faint=True)]),
        comparison_facts(diff),
        *(Line(note) for note in [*([] if diff.plan.key else [_NO_KEY]), *_cut_off(diff, kinds), *notes]),
    ]
    grid = None
    if shown:
        rows, marked = drawn_changes(heads, names, shown)
        parts.append(Grid(rows, total=len(places), noun="changed rows", limit=DRAWN, marked=marked))
        types = {column.name: column.type for column in plan.b.version.schema.columns}
        grid = _grid(diff, names, places, kinds, types)
    elif not diff.is_empty:
        parts.append(Line(f"No row was {request['row_kind']}."))
    conditions = [row_conditions(heads[kind].slice(index, 1), diff.plan.key) for kind, index in shown]
    return ViewResult(
        drawing=Drawing(title=f"{plan.title}: {_answer(diff)}", parts=tuple(parts)),
        answer=_answer(diff),
        suggested_key=diff.suggested_key,
        code=code,
        source=source,
        choices=tuple((text, text) for texts in conditions for text in texts),
        grid=grid,
        tiles=_tiles(diff),
    )


def _tiles(diff: RowDiff) -> list[dict[str, Any]]:
    """Return how the values of the columns moved from the changed rows in A to the changed rows in B."""
    if not 0 < sum(diff.counts.values()) <= _MOST_ROWS:
        return []
    names = [name for name in diff.plan.key_first if name not in diff.plan.key]
    return distributions(diff.before, diff.after, names)


def _grid(
    diff: RowDiff, names: list[str], places: list[tuple[str, int]], kinds: list[str], types: Mapping[str, str]
) -> GridRows:
    """Return changed rows as a grid: sorted and filtered by their values, updated ones by the new values."""
    heads = diff.changed.heads
    parts = [heads[kind].select(names) for kind in kinds if kind in heads]
    words = pa.array([CHANGE_WORDS[kind] for kind, _ in places], pa.string())
    rows = pa.concat_tables(parts, promote_options="permissive").add_column(0, "change", words)
    # This table does not have the history of a row of two tables.
    choices = [
        text
        for kind in kinds
        if kind in heads and diff.plan.b.table is None
        for text in row_conditions(heads[kind], diff.plan.key, keep_places=True)
    ]
    total = sum(diff.counts[name] for name, kind in _KINDS.items() if kind in kinds and kind in heads)
    return grid_rows(
        rows,
        noun="changed rows",
        types=types,
        sample=f"{total:,} changed rows" if len(rows) < total else "",
        draw=lambda chosen: drawn_changes(heads, names, [places[at] for at in chosen]),
        opens="blame" if choices else None,
        choices=choices,
    )


def is_small(splits: Sequence[Split]) -> bool:
    """Return whether splits are read without confirmation; the settings may allow even less."""
    cost = Cost(
        rows=sum(split.rows or 0 for split in splits),
        files=sum(len(split.files) for split in splits),
        size_bytes=sum(split.size_bytes for split in splits),
    )
    return not cost.exceeds(_SMALL) and not cost.exceeds(load_limits())


def _answer(diff: RowDiff) -> str:
    """Return a sentence on the differences, the most frequent change first."""
    counts = sorted(diff.counts.items(), key=lambda item: -item[1])
    parts = [f"{count:,} {name}" for name, count in counts if count]
    if not parts:
        return "No row differs"
    first, *others = parts
    number, _, name = first.partition(" ")
    return ", ".join([f"{number} {'row' if number == '1' else 'rows'} {name}", *others])


def _cut_off(diff: RowDiff, kinds: list[str]) -> list[str]:
    """Return a note for each kind with rows that cannot be shown."""
    heads, counts = diff.changed.heads, diff.counts
    return [
        f"The first {len(heads[kind]):,} of {counts[name]:,} {name} rows are shown; the line of code returns all."
        for name, kind in _KINDS.items()
        if kind in kinds and kind in heads and len(heads[kind]) < counts[name]
    ]


def _columns(diff: RowDiff, kinds: list[str], *, hide_unchanged: bool) -> tuple[list[str], list[str]]:
    """Return the columns to show, key columns first, and notes on others."""
    names, notes = list(diff.plan.key_first), []
    updated = diff.changed.heads.get(AFTER)
    if hide_unchanged and AFTER in kinds and updated is not None:
        changed = {name for names in updated.column(1).to_pylist() for name in names or ()}
        kept = [name for name in names if name in changed or name in diff.plan.key]
        if len(kept) < len(names):
            hidden = pluralize(len(names) - len(kept), "column")
            is_cut = len(updated) < diff.counts["updated"]
            which = f"none of the first {len(updated):,} updated rows changes" if is_cut else "no updated row changes"
            notes.append(f"Hidden: {hidden} that {which}.")
        names = kept
    elif hide_unchanged and not diff.is_empty:
        notes.append("No column is hidden: inserted and deleted rows have no unchanged columns.")
    if len(names) > _MOST_COLUMNS:
        notes.append(f"{_MOST_COLUMNS} of {len(names):,} columns are shown.")
    return names[:_MOST_COLUMNS], notes
