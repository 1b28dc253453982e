"""The number of rows of splits that match a condition, even if some splits cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.diff import memory_bytes
from snapshot_explorer.analysis.row_history import (
    HistoryScan,
    RowStates,
    SplitHistory,
    collected_from,
    each_state,
    read_states,
)
from snapshot_explorer.analysis.row_history.group_states import Ints
from snapshot_explorer.core.errors import UNREADABLE, StorageError
from snapshot_explorer.core.hints import Message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILURES = (*UNREADABLE, StorageError)
"""Errors of the data, rather than of the condition."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """The matching rows of splits."""

    live: Ints
    """The live rows at each position, as the difference to the position before."""
    stored: dict[int, int] = field(default_factory=dict)
    """By split, the matching rows in its file, deleted ones included. A split of merged files has no number."""
    reasons: dict[int, str] = field(default_factory=dict)
    """Why splits cannot be read, whose rows are in none of the others."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            live=self.live + other.live, stored=self.stored | other.stored, reasons=self.reasons | other.reasons
        )

    @property
    def table(self) -> pa.Table:
        """The counts as one row."""
        values = self.live.tolist(), list(self.stored.items()), list(self.reasons.items())
        columns = [pa.array([value], dtype) for value, dtype in zip(values, _SCHEMA.types, strict=True)]
        return pa.Table.from_arrays(columns, schema=_SCHEMA)

    @classmethod
    def of(cls, row: pa.Table) -> Counts:
        """Return the counts in one row."""
        live, stored, reasons = (column[0].as_py() for column in row.columns)
        return cls(live=np.asarray(live, np.int64), stored=dict(stored), reasons=dict(reasons))


_SCHEMA = pa.schema(
    [
        pa.field("live", pa.list_(pa.int64())),
        pa.field("stored", pa.map_(pa.int64(), pa.int64())),
        pa.field("reasons", pa.map_(pa.int64(), pa.string())),
    ]
)


_Read = Callable[[HistoryScan, Callable[[RowStates], object], Ints], object]


def count_matches(scan: HistoryScan, spark: SparkSession | None = None) -> Counts:
    """Return the matching rows of splits. Reads each once, and in parts again if one cannot be read.

    Args:
        spark: The session whose executors read the splits; None for this machine.
    """
    numbered = list(enumerate(scan.splits))
    if spark is None:
        return _counts(scan, numbered, partial(_read_together, memory_bytes(None)))
    count = partial(_counts_table, replace(scan, splits=()))
    tables = collected_from(spark, count, numbered, lambda item: item[1].split)
    return sum(map(Counts.of, tables), Counts(live=np.zeros(scan.count + 1, np.int64)))


def _counts_table(scan: HistoryScan, numbered: Sequence[tuple[int, SplitHistory]]) -> pa.Table:
    """Return the matching rows of numbered splits as one row. Runs on executors."""
    return _counts(scan, numbered, _read_in_turn).table


def _counts(scan: HistoryScan, numbered: Sequence[tuple[int, SplitHistory]], read: _Read) -> Counts:
    """Return the matching rows of numbered splits. Reads some of them again if one cannot be read."""
    numbers, splits = [number for number, _ in numbered], [item for _, item in numbered]
    live, stored = np.zeros(scan.count + 1, np.int64), np.zeros(len(splits), np.int64)

    def count(states: RowStates) -> None:
        np.add.at(live, states.first, 1)
        np.add.at(live, states.last, -1)

    try:
        read(replace(scan, splits=splits), count, stored)
    except FAILURES as error:
        if len(splits) == 1:
            return Counts(live=np.zeros_like(live), reasons={numbers[0]: Message(error)})
        middle = len(splits) // 2
        return _counts(scan, numbered[:middle], read) + _counts(scan, numbered[middle:], read)
    return Counts(live=live, stored=dict(zip(numbers, stored.tolist(), strict=True)))


def _read_together(memory_limit: int, scan: HistoryScan, keep: Callable[[RowStates], object], matching: Ints) -> None:
    read_states(scan, keep, memory_limit=memory_limit, matching=matching)


def _read_in_turn(scan: HistoryScan, keep: Callable[[RowStates], object], matching: Ints) -> None:
    for states in each_state(scan, matching):
        keep(states)
