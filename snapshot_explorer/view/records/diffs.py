"""What is drawn of a row diff and of its plan."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from snapshot_explorer.analysis.diff import RowDiff, RowDiffPlan
from snapshot_explorer.arrow.value_text import format_cell, truncate
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import AFTER, BEFORE, DELETED, INSERTED, gaps_text
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.view.dispatch import draw, drawing_of
from snapshot_explorer.view.drawing import Code, Drawing, Grid, Line, Pairs, fact_line
from snapshot_explorer.view.grid import drawn_field

_WIDEST_CELL = 60
CHANGE_WORDS = {DELETED: "- deleted", INSERTED: "+ inserted", AFTER: "~ updated"}


@draw.register
def _plan(plan: RowDiffPlan) -> Drawing:
    partitions = () if plan.by_partition is None else drawing_of(plan.by_partition).parts
    return Drawing(
        title=f"{plan.title}, not read",
        parts=(
            Line(plan.announcement),
            Pairs(
                (
                    *_facts(plan),
                    ("call", Code(plan.call)),
                    ("at most deleted or updated rows", _or_unknown(plan.most_deleted)),
                    ("at most inserted or updated rows", _or_unknown(plan.most_inserted)),
                )
            ),
            *partitions,
        ),
    )


def _or_unknown(count: int | None) -> int | str:
    return "unknown: not in the metadata" if count is None else count


def _facts(plan: RowDiffPlan) -> list[tuple[str, object]]:
    """Return the facts of the comparison as names and values for a drawing."""
    lines: list[tuple[str, object]] = [
        *((("format", plan.format),) if plan.format else ()),
        ("A", plan.a.named),
        ("B", plan.b.named),
        ("key", ", ".join(plan.key) if plan.key else "none: whole rows are compared"),
    ]
    if plan.gaps:
        lines.append(("between", gaps_text(plan.gaps)))
    if plan.where is not None:
        lines.append(("where", plan.where))
    if plan.columns_only_a:
        lines.append(("only in A, not compared", ", ".join(plan.columns_only_a)))
    if plan.columns_only_b:
        lines.append(("only in B, not compared", ", ".join(plan.columns_only_b)))
    if plan.conversions:
        lines.append(("types that differ", "; ".join(plan.conversions)))
    lines += plan.rules.facts
    return lines


@draw.register
def _diff(diff: RowDiff) -> Drawing:
    """Return the diff as a drawing: how many rows changed, the first of them, and facts of the comparison."""
    words = ", ".join(f"{count:,} {name}" for name, count in diff.counts.items())
    first = Line("No row differs." if diff.is_empty else f"Rows: {words}.")
    keyed = _with_key(diff)
    hint = () if keyed is None else (Pairs((("next", Code(Message(keyed))),)),)
    grid = () if diff.is_empty else (_grid(diff),)
    return Drawing(title=diff.plan.title, parts=(first, *grid, *hint, comparison_facts(diff), Code(diff.plan.call)))


def comparison_facts(diff: RowDiff) -> Line:
    """Return what was compared, what metadata proves, and what was read."""
    plan = diff.plan
    read = [f"{pluralize(side.files, 'file') if side.files else 'rows'} of {side.title}" for side in (plan.a, plan.b)]
    shared = f"; not read: {pluralize(plan.shared_files, 'file')} that both have" if plan.shared_files else ""
    reading = ("read", f"{' and '.join(read)}{shared}")
    proof = (("proven by metadata", plan.proof),) if plan.proof else ()
    return fact_line((*_facts(plan), *proof, reading))


def _with_key(diff: RowDiff) -> Hint | None:
    """Return the same call with the suggested key; None without one, or between two histories."""
    plan, name = diff.plan, diff.suggested_key
    if name is None or any(side.branch or side.table for side in (plan.a, plan.b)):
        return None
    are_selected = len(plan.columns) < len(plan.b.version.arrow_schema)
    chosen = {"columns": [*plan.columns] if are_selected else None, "where": plan.where}
    arguments = {argument: value for argument, value in chosen.items() if value is not None}
    return Hint("table.diff_rows", {"a": plan.a.number, "b": plan.b.number, "key": [name], **arguments})


def _grid(diff: RowDiff) -> Grid:
    """Return the first changed rows: an updated one as one row, with both values in changed cells."""
    heads = diff.changed.heads
    sizes = {kind: len(heads[kind]) for kind in (DELETED, INSERTED, AFTER) if kind in heads}
    shares = _shares(sizes, diff.drawn_rows)
    indices = [(kind, index) for kind, count in shares.items() for index in range(count)]
    rows, marked = drawn_changes(heads, diff.plan.key_first, indices)
    total = sum(diff.counts.values())
    return Grid(rows, total=total, noun="changed rows", limit=diff.drawn_rows, marked=marked)


def _shares(sizes: Mapping[str, int], limit: int) -> dict[str, int]:
    """Return how many rows of each kind are drawn: equal shares, and the remainder from the kinds with more."""
    shares = dict.fromkeys(sizes, 0)
    left = min(limit, sum(sizes.values()))
    while left:
        open_kinds = [kind for kind in sizes if shares[kind] < sizes[kind]]
        for kind in open_kinds:
            more = min(max(1, left // len(open_kinds)), sizes[kind] - shares[kind], left)
            shares[kind] += more
            left -= more
    return shares


def drawn_changes(
    heads: Mapping[str, pa.Table], names: Sequence[str], indices: Sequence[tuple[str, int]]
) -> tuple[pa.Table, frozenset[tuple[int, int]]]:
    """Return some changed rows as they are drawn, all text, and the cells that changed.

    Args:
        heads: Rows of each kind, as `Changes.heads`.
        indices: Which rows: their kind, of an updated one `AFTER`, and their index in the rows of that kind.
    """
    columns: list[list[str | None]] = [[CHANGE_WORDS[kind] for kind, _ in indices]]
    marked: set[tuple[int, int]] = set()
    for column, name in enumerate(names, 1):
        cells = [_shown(heads, kind, name, index) for kind, index in indices]
        columns.append([shown for shown, _ in cells])
        marked.update((row, column) for row, (_, is_changed) in enumerate(cells) if is_changed)
    arrays = [pa.array(values, pa.string()) for values in columns]
    values = next(iter(heads.values()), None)
    fields = [drawn_field("change", pa.string())]
    fields += [drawn_field(name, pa.string() if values is None else values.schema.field(name).type) for name in names]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields)), frozenset(marked)


def _shown(heads: Mapping[str, pa.Table], kind: str, name: str, index: int) -> tuple[str | None, bool]:
    """Return the text of a cell, None for an unchanged null, and whether its value changed."""
    rows = heads[kind]
    scalar = rows.column(name)[index]
    value = format_cell(scalar).text
    if kind != AFTER or name not in (rows.column(1)[index].as_py() or ()):
        return value if scalar.is_valid else None, False
    old = format_cell(heads[BEFORE].column(name)[index]).text
    return f"{truncate(old, _WIDEST_CELL)} → {truncate(value, _WIDEST_CELL)}", True
