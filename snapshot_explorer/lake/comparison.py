"""Two lakes, or a lake at two instants, table by table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.compare.schemas import compare_schemas
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.refs.records import format_time
from snapshot_explorer.lake.pair_diff import diff
from snapshot_explorer.results import Frame, non_empty_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from snapshot_explorer.core.records import TableSchema
    from snapshot_explorer.lake.instant import LakeSnapshot, PinnedTable
    from snapshot_explorer.table import Snapshot

_ORDER = ("only in A", "only in B", "changed", None, "counts differ", "counts equal", "same")
_ANSWER = ("name", "change", "inserted", "deleted", "updated", "problem")
"""The columns that are drawn first."""


def diff_row(
    name: str, a: LakeSnapshot, b: LakeSnapshot, keys: Mapping[str, str | Sequence[str] | None]
) -> dict[str, object]:
    """Return the row of LAKE_DIFF of a table. Reads the list of files of each side; rows only of tables in `keys`."""
    sides = [_side(lake, name) for lake in (a, b)]
    problem = next((side.problem for side in sides if side is not None and side.problem), None)
    if problem:
        return {"name": name, "problem": problem}
    snapshots = [
        None if side is None or side.version is None else lake.snapshot(side)
        for side, lake in zip(sides, (a, b), strict=True)
    ]
    row: dict[str, object] = {"name": name}
    for letter, snapshot in zip("ab", snapshots, strict=True):
        if snapshot is not None:
            row |= _counts(snapshot, letter)
    first, second = snapshots
    if first is None or second is None:
        return row | {"change": "same" if first is second else "only in B" if first is None else "only in A"}
    if len({side.path for side in sides if side is not None}) == 1:
        changes = _schema_changes(first.schema, second.schema)
        paths = [pa.array(snapshot.files().to_arrow()["path"].to_pylist(), pa.string()) for snapshot in (first, second)]
        row["shared_files"] = pc.sum(pc.is_in(paths[0], paths[1])).as_py() or 0
        is_equal = bool(row["shared_files"] == row["files_a"] == row["files_b"])
        row["change"] = "same" if is_equal and not changes else "changed"
    else:
        changes = _column_changes(first.arrow_schema, second.arrow_schema)
        is_equal = row["rows_a"] == row["rows_b"] is not None
        row["change"] = "changed" if changes else "counts equal" if is_equal else "counts differ"
    row["schema_changes"] = changes
    if name in keys:
        row |= (counts := diff(first, second, key=keys[name]).counts)
        row["change"] = "changed" if changes or any(counts.values()) else "same"
    return row


def diff_frame(
    results: Iterable[tuple[str, dict[str, object] | SnapshotExplorerError]], a: LakeSnapshot, b: LakeSnapshot
) -> Frame:
    """Return LAKE_DIFF, tables that differ first."""
    rows = [
        {"name": name, "problem": str(result)} if isinstance(result, SnapshotExplorerError) else result
        for name, result in results
    ]
    rows.sort(key=lambda row: (_ORDER.index(row.get("change")), str(row["name"])))
    table = pa.Table.from_pylist(rows, schema=frames.LAKE_DIFF)
    title = f"A: {a.name} at {format_time(a.time)}; B: {b.name} at {format_time(b.time)}"
    filled = non_empty_columns(table)
    # The answer is seen in a narrow terminal too, where the last columns are left out.
    drawn = [*(name for name in _ANSWER if name in filled), *(name for name in filled if name not in _ANSWER)]
    return Frame(table, title=title, noun="tables", drawn=tuple(drawn), limit=len(table))


def _side(lake: LakeSnapshot, name: str) -> PinnedTable | None:
    return next((table for table in lake.tables if table.name == name), None)


def _counts(snapshot: Snapshot, letter: str) -> dict[str, object]:
    files = snapshot.files().to_arrow()
    numbers = {
        f"{noun}_{letter}": pc.sum(files[column], skip_nulls=False, min_count=0).as_py()
        for noun, column in (("rows", "rows"), ("bytes", "size_bytes"))
    }
    return {f"version_{letter}": snapshot.version, f"files_{letter}": len(files), **numbers}


def _schema_changes(a: TableSchema, b: TableSchema) -> list[str]:
    return [
        f"{row['change']} {row['column'] or ''}".strip()
        + (f": {row['before']} to {row['after']}" if row["before"] and row["after"] else "")
        for row in compare_schemas(a, b).to_pylist()
    ]


def _column_changes(a: pa.Schema, b: pa.Schema) -> list[str]:
    """Return how the columns of two tables differ, by name and by Arrow type: formats name their types differently."""
    before, after = ({field.name: field.type for field in schema} for schema in (a, b))
    both = [name for name in before if name in after]
    return [
        *(f"dropped {name}" for name in before if name not in after),
        *(f"added {name}" for name in after if name not in before),
        *(f"retyped {name}: {before[name]} to {after[name]}" for name in both if before[name] != after[name]),
    ]
