"""`GivenRows`: rows in memory, and rows of a Spark DataFrame, which a row diff reads like a version of a table."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import ReadPlan, Split
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from snapshot_explorer.core.records import Predicate

_SPLIT_ROWS = 2**20
"""The rows that one thread compares at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Consecutive rows of a table in memory."""

    start: int
    rows: int | None

    @property
    def identity(self) -> tuple[int, int | None]:
        """The place of the rows."""
        return self.start, self.rows


class GivenRows(TableVersion):
    """The rows of an Arrow table. They are pickled with it."""

    def __init__(self, rows: pa.Table) -> None:
        """Hold the rows."""
        super().__init__(Storage(os.curdir), None)  # from which nothing is read
        self._rows = rows

    @property
    def arrow_schema(self) -> pa.Schema:
        return self._rows.schema

    def files(self, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        return frames.FILES.empty_table()

    def plan(self, predicate: Predicate | None = None) -> ReadPlan:
        starts = range(0, len(self._rows), _SPLIT_ROWS)
        slices = [Slice(start=start, rows=min(_SPLIT_ROWS, len(self._rows) - start)) for start in starts]
        return ReadPlan(splits=tuple(map(self._split, slices)), skipped=frames.SKIPPED.empty_table)

    def _split(self, part: Slice) -> Split:
        size = self._rows.slice(part.start, part.rows).nbytes
        return Split(
            files=(),
            raw=False,
            partition={},
            rows=part.rows,
            live_rows=part.rows,
            size_bytes=size,
            detail=part,
        )

    def read(
        self, split: Split, columns: Sequence[str], predicate: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        yield from self._rows.select(list(columns)).slice(*split.detail.identity).to_batches()  # type: ignore[misc]


class SparkRows(TableVersion):
    """The rows of a Spark DataFrame, which only Spark reads. Pickled without the DataFrame."""

    def __init__(self, frame: DataFrame, schema: pa.Schema) -> None:
        """Hold the DataFrame, whose rows have the schema. Runs nothing."""
        super().__init__(Storage(os.curdir), None)  # from which nothing is read
        self.frame: DataFrame | None = frame
        self._schema = schema

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "frame": None}

    @property
    def arrow_schema(self) -> pa.Schema:
        return self._schema

    def files(self, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        return frames.FILES.empty_table()

    def plan(self, predicate: Predicate | None = None) -> ReadPlan:
        everything = Slice(start=0, rows=None)
        split = Split(files=(), raw=False, partition={}, rows=None, size_bytes=0, detail=everything)
        return ReadPlan(splits=(split,), skipped=frames.SKIPPED.empty_table)

    def read(
        self, split: Split, columns: Sequence[str], predicate: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        raise InvalidArgumentError(
            Message(
                "Only Spark reads the rows of a Spark DataFrame: pass ",
                Hint("", {"engine": "spark"}),
                ". Or convert it to pandas.",
            )
        )
