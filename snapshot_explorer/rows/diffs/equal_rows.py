"""Rows that are equal on both sides, dropped while both are read: of a copy, few others have to be kept and matched."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.rows.diffs.row_matching import HashedRows, equal_hashes, equal_rows, unmatched

if TYPE_CHECKING:
    from snapshot_explorer.rows.diffs.row_hashes import Hashes
    from snapshot_explorer.rows.diffs.row_matching import Places
    from snapshot_explorer.rows.diffs.spilled_rows import SplitRows

_Part = tuple[tuple[int, int], pa.RecordBatch, "Hashes"]

_WINDOW_SHARE = 16
"""A side is looked through when it has this fraction of the memory limit in new rows."""
_HELD_SHARE = 2
"""The fraction of the memory limit that rows may need while they wait for equal ones."""
_SAMPLE = 64
"""One in so many hashes is looked at before rows are compared."""


class EqualRows:
    """Drops rows that both sides have, and hands on the others. Rows can be added from several threads.

    Two equal rows are dropped, whatever their places: neither multisets nor rows with a unique key differ by them. If
    fewer than half of the rows have an equal one nearby, all others are handed on as they come.
    """

    def __init__(self, rows: SplitRows, *, limit_bytes: int) -> None:
        """Start without rows.

        Args:
            rows: What gets the others.
            limit_bytes: The memory limit of the whole diff.
        """
        self._rows = rows
        self._window = limit_bytes // _WINDOW_SHARE
        self._max_held = limit_bytes // _HELD_SHARE
        self._lock = Lock()
        self._parts: tuple[list[_Part], list[_Part]] = ([], [])
        self._held = [0, 0]
        self._next = self._window
        self._is_looking = self._window > 0
        self._dropped: list[Hashes] = []

    @property
    def dropped(self) -> Hashes:
        """The hashes of the rows that were dropped, sorted; each stands for a row of either side."""
        return np.sort(np.concatenate([np.zeros(0, np.uint64), *self._dropped]))

    def add(self, side: int, order: tuple[int, int], batch: pa.RecordBatch, hashes: Hashes) -> None:
        """Add rows; see `SplitRows.add`."""
        with self._lock:
            if not self._is_looking:
                self._rows.add(side, order, batch, hashes)
                return
            self._parts[side].append((order, batch, hashes))
            self._held[side] += batch.nbytes + hashes.nbytes
            if min(self._held) >= self._next:
                self._look()
            if sum(self._held) > self._max_held or sum(part.nbytes for part in self._dropped) > self._max_held // 2:
                self.finish()

    def finish(self) -> None:
        """Hand on all rows that are left, and those that are added from now on."""
        if self._is_looking and self._dropped and all(self._parts):
            self._look()
        self._is_looking = False
        for side, parts in enumerate(self._parts):
            for part in parts:
                self._rows.add(side, *part)
            parts.clear()

    def _look(self) -> None:
        """Drop the equal rows, if half of the fewer ones may be equal to others."""
        hashes = [np.concatenate([part[2] for part in sorted(parts, key=_order)]) for parts in self._parts]
        before, after = (np.unique(side[side % np.uint64(_SAMPLE) == 0]) for side in hashes)
        if 2 * len(np.intersect1d(before, after, assume_unique=True)) < min(len(before), len(after)):
            self._next = 2 * min(self._held)
            return
        sides = [
            HashedRows(rows=pa.Table.from_batches([part[1] for part in sorted(parts, key=_order)]), hashes=own)
            for parts, own in zip(self._parts, hashes, strict=True)
        ]
        left, right = equal_hashes(*hashes)
        equal = equal_rows(sides[0].rows, sides[1].rows, left, right, sides[0].rows.column_names)
        self._dropped.append(hashes[0][left[equal]])
        for side, places in enumerate((left[equal], right[equal])):
            self._keep(side, unmatched(len(hashes[side]), places))
        self._next = max(self._held) + self._window

    def _keep(self, side: int, places: Places) -> None:
        """Keep the rows of a side at these places, in the order of its sorted parts."""
        is_kept = np.zeros(sum(len(part[2]) for part in self._parts[side]), bool)
        is_kept[places] = True
        kept: list[_Part] = []
        begin = 0
        for order, batch, hashes in sorted(self._parts[side], key=_order):
            mask = is_kept[begin : begin + len(hashes)]
            begin += len(hashes)
            if mask.any():
                kept.append((order, batch.filter(pa.array(mask)), hashes[mask]))
        self._parts[side][:] = kept
        self._held[side] = sum(batch.nbytes + hashes.nbytes for _, batch, hashes in kept)


def _order(part: _Part) -> tuple[int, int]:
    return part[0]
