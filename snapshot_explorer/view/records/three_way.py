"""What is drawn of a three-way diff."""

import pyarrow as pa

from snapshot_explorer.analysis.pairs import ThreeWayDiff
from snapshot_explorer.arrow.value_text import format_cell, truncate
from snapshot_explorer.view.dispatch import draw
from snapshot_explorer.view.drawing import Drawing, Grid, Line, fact_line
from snapshot_explorer.view.grid import drawn_field

_DRAWN_ROWS = 20
_WIDEST_VALUE = 40
_WORDS = {
    "ours": "changed by ours alone",
    "theirs": "by theirs alone",
    "both": "by both to the same",
    "merged": "by both in different columns",
    "conflict": "in conflict",
}


@draw.register
def _three_way(diff: ThreeWayDiff) -> Drawing:
    counts = diff.counts
    changed = ", ".join(f"{counts[status]:,} {words}" for status, words in _WORDS.items() if counts[status])
    first = f"Rows: {changed}." if changed else "Neither side changed a row."
    if changed and not diff.has_conflicts:
        first += " A merge needs no decision."
    facts = [("base", diff.base), ("ours", diff.ours), ("theirs", diff.theirs), ("key", ", ".join(diff.key))]
    if diff.columns_not_compared:
        facts.append(("not compared", ", ".join(diff.columns_not_compared)))
    grid = (_grid(diff),) if changed else ()
    return Drawing(title=diff.title, parts=(Line(first), *grid, fact_line(facts)))


def _grid(diff: ThreeWayDiff) -> Grid:
    """Return the first changed rows, conflicts first; a changed cell as `base → ours | theirs`."""
    rows = diff.rows.slice(0, _DRAWN_ROWS)
    versions = [diff.side(rows, version) for version in ("base", "ours", "theirs")]
    columns = [rows.column(0).to_pylist(), *(rows.column(index).to_pylist() for index in (1, 2))]
    marked: set[tuple[int, int]] = set()
    names = [*diff.key, *(name for name in diff.columns if name not in diff.key)]
    for column, name in enumerate(names, len(columns)):
        cells = [_cell([version[name][row] for version in versions]) for row in range(len(rows))]
        columns.append([text for text, _ in cells])
        marked.update((row, column) for row, (_, is_changed) in enumerate(cells) if is_changed)
    fields = [drawn_field(name, pa.string()) for name in ("status", "ours", "theirs")]
    fields += [drawn_field(name, versions[0].schema.field(name).type) for name in names]
    arrays = [pa.array(values, pa.string()) for values in columns]
    drawn = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    return Grid(drawn, total=len(diff.rows), noun="changed rows", limit=_DRAWN_ROWS, marked=frozenset(marked))


def _cell(values: list[pa.Scalar]) -> tuple[str | None, bool]:
    """Return the text of a cell, None for an unchanged null, and whether a side changed it."""
    base, ours, theirs = (truncate(format_cell(value).text, _WIDEST_VALUE) for value in values)
    if base == ours == theirs:
        return (base if values[0].is_valid else None), False
    if ours == theirs:
        return f"{base} → {ours}", True
    if base == ours:
        return f"{base} → {theirs}", True
    return (f"{base} → {ours}" if base == theirs else f"{base} → {ours} | {theirs}"), True
