"""The bytes that the tables of a lake hold, table by table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.usage import usage_frame
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.text import format_size, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from snapshot_explorer.results import Frame
    from snapshot_explorer.table import Table


def usage_row(table: Table) -> dict[str, object]:
    """Return the row of LAKE_USAGE of a table, without its name. Reads its whole history, as `Table.usage`."""
    usage = table.usage()
    row: dict[str, object] = {"version": usage.version, "unread": " ".join(usage.unread) or None}
    summary = usage.summary.to_arrow()
    for column in ("files", "size_bytes", "live_files", "live_bytes", "held_files", "held_bytes"):
        row[column] = pc.sum(summary[column], skip_nulls=False, min_count=0).as_py()
    return row


def lake_usage_frame(
    results: Iterable[tuple[str, dict[str, object] | SnapshotExplorerError]], name: str, prices: Mapping[str, float]
) -> Frame:
    """Return LAKE_USAGE, the tables that hold most first, then those that could not be read."""
    rows = [
        {"name": table, **({"problem": str(result)} if isinstance(result, SnapshotExplorerError) else result)}
        for table, result in results
    ]
    table = pa.Table.from_pylist(rows, frames.LAKE_USAGE)
    table = table.take(pc.sort_indices(table, [("size_bytes", "descending"), ("name", "ascending")]))
    return usage_frame(table, prices, title=f"Usage of {name}", noun="tables", notes=_notes(table), limit=len(table))


def _notes(table: pa.Table) -> tuple[str, ...]:
    """Return the sums, and what they leave out."""
    unread, unknown = (len(table) - table[column].null_count for column in ("problem", "unread"))
    unsized = table["size_bytes"].null_count - unread  # a table that could not be read has no size
    live, held = (format_size(pc.sum(table[column], min_count=0).as_py()) for column in ("live_bytes", "held_bytes"))
    notes = [
        f"The newest versions have {live} in data files. Older versions, tags and branches hold {held} more.",
        "Not counted: metadata, deletion vectors, delete files, changelogs and orphaned files.",
    ]
    if unread:
        notes.append(f"{pluralize(unread, 'table')} could not be read, and may hold more.")
    if unknown:
        notes.append(f"In {pluralize(unknown, 'table')}, not everything that may hold files could be read.")
    if unsized:
        notes.append(f"The sums leave out {pluralize(unsized, 'table')} with files of unknown size.")
    return tuple(notes)
