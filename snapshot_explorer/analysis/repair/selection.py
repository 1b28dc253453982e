"""The rows that a repair changes: how many, and their keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.records import AFTER, BEFORE, DELETED, INSERTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snapshot_explorer.analysis.diff import RowDiff
    from snapshot_explorer.engines.conditions import Condition

MOST_KEYS = 500
"""Changed keys up to which a statement lists them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """How many rows of the table a repair inserts, deletes and updates."""

    inserted: int
    deleted: int
    updated: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.inserted + self.deleted + self.updated


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedRows:
    """The rows that a repair changes."""

    counts: RowCounts
    keys: tuple[Mapping[str, object], ...] | None
    """Their keys; None if there are more than `MOST_KEYS`, one has a year that Python lacks, or there is no key."""
    are_all: bool
    """Whether no other row differs."""


def selected_rows(diff: RowDiff, condition: Condition | None, key: Sequence[str]) -> SelectedRows:
    """Return the rows of a diff from the current table to an earlier version where either side matches a condition."""
    counts = dict.fromkeys((INSERTED, DELETED, AFTER, BEFORE), 0)
    keys: list[Mapping[str, object]] = []
    is_listed = bool(key)
    total = 0
    for part in diff.changed.parts():
        chosen = part if condition is None else matching_changes(part, condition)
        for row in pc.value_counts(chosen.column(0)).to_pylist():
            counts[row["values"]] += row["counts"]
        total += len(part) - len(chosen)
        if is_listed:
            once = chosen.filter(pc.not_equal(chosen.column(0), BEFORE)).slice(0, MOST_KEYS + 1)
            try:
                keys += once.select(list(key)).to_pylist()
            except OverflowError:  # a year before 1 or after 9999
                is_listed = False
            is_listed = is_listed and len(keys) <= MOST_KEYS
    return SelectedRows(
        counts=RowCounts(inserted=counts[INSERTED], deleted=counts[DELETED], updated=counts[AFTER]),
        keys=tuple(keys) if is_listed else None,
        are_all=not total,
    )


def matching_changes(part: pa.Table, condition: Condition) -> pa.Table:
    """Return the changed rows that match. Both rows of an update, which are adjacent, match or neither does."""
    kinds = np.asarray(part.column(0).to_pylist(), dtype=object)
    matches = np.asarray(condition.mask(part.select(list(range(2, part.num_columns)))).to_pylist(), np.bool_)
    before = np.flatnonzero(kinds == BEFORE)
    either = matches[before] | matches[before + 1]
    matches[before], matches[before + 1] = either, either
    return part.filter(pa.array(matches))
