"""The cost of reading the rows of a version, from metadata alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.text import format_size, pluralize

if TYPE_CHECKING:
    from snapshot_explorer.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """The limits of a read without confirmation; `%config SnapshotMagics` sets them."""

    rows: int
    """Rows in data files."""
    size_bytes: int
    """Bytes of data files."""

    def __str__(self) -> str:
        return f"{self.rows:,} rows or {format_size(self.size_bytes)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The size of a read of rows, from metadata alone."""

    rows: int | None
    """Rows in the data files; None if the metadata does not contain the number."""
    files: int
    size_bytes: int

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            rows=None if self.rows is None or other.rows is None else self.rows + other.rows,
            files=self.files + other.files,
            size_bytes=self.size_bytes + other.size_bytes,
        )

    def exceeds(self, limits: ReadLimits) -> bool:
        """Return whether the size exceeds the limits; if the number of rows is unknown, only the bytes count."""
        return (self.rows or 0) > limits.rows or self.size_bytes > limits.size_bytes

    def __str__(self) -> str:
        return f"{pluralize(self.rows, 'row')} in {pluralize(self.files, 'file')}, {format_size(self.size_bytes)}"


def cost_of(snapshot: Snapshot, where: str | None) -> Cost:
    """Return the cost of reading the rows of a condition. Reads metadata."""
    plan = snapshot.plan(where).to_arrow()
    plan = plan.filter(pc.is_null(plan["skipped"]))
    files, size_bytes = (pc.sum(plan[name]).as_py() or 0 for name in ("files", "size_bytes"))
    rows = None if plan["rows"].null_count else pc.sum(plan["rows"]).as_py() or 0
    return Cost(rows=rows, files=files, size_bytes=size_bytes)
