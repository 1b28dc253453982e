"""What reading the rows of a version takes, told from metadata before any is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from snapshot_explorer.render.cells import size

if TYPE_CHECKING:
    from snapshot_explorer.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is read without being asked for twice; `%config SnapshotMagics` sets it."""

    rows: int
    """Rows, before any merge."""
    size_bytes: int
    """Bytes of data files."""

    def __str__(self) -> str:
        return f"{self.rows:,} rows or {size(self.size_bytes)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What reading rows would read, from metadata alone."""

    rows: int
    """Rows, before any merge."""
    files: int
    """Data files."""
    size_bytes: int
    """Their size."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            rows=self.rows + other.rows, files=self.files + other.files, size_bytes=self.size_bytes + other.size_bytes
        )

    def exceeds(self, limits: Limits) -> bool:
        """Return whether it is more than the limits allow."""
        return self.rows > limits.rows or self.size_bytes > limits.size_bytes

    def __str__(self) -> str:
        return f"{self.rows:,} rows (before any merge), {self.files:,} files, {size(self.size_bytes)}"


def cost_of(snapshot: Snapshot, where: str | None) -> Cost:
    """Return what reading the rows that a condition asks for would read; reads metadata."""
    plan = snapshot.plan(where).to_arrow()
    plan = plan.filter(pc.is_null(plan["skipped"]))
    rows, files, size_bytes = (pc.sum(plan[name]).as_py() or 0 for name in ("rows", "files", "size_bytes"))
    return Cost(rows=rows, files=files, size_bytes=size_bytes)
