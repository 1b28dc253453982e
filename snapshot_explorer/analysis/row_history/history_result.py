"""`RowHistory`: the states of rows, each with the versions that have it. Draws itself and exports."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.text import format_size, pluralize
from snapshot_explorer.history import call_text
from snapshot_explorer.results import Exportable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from snapshot_explorer.analysis.row_history.planning import SplitHistory
    from snapshot_explorer.results.stored_rows import StoredRows


@dataclass(frozen=True, slots=True, kw_only=True)
class RowHistoryRequest:
    """The arguments of a row history."""

    where: str | None = None
    """The condition; None for all rows."""
    columns: Sequence[str] | None = None
    """The columns of the states; None for all."""
    between: str | None = None
    """The range of versions, as the user wrote it."""

    @property
    def call(self) -> str:
        """Return the method call that returns the result."""
        where = () if self.where is None else (self.where,)
        columns = None if self.columns is None else list(self.columns)
        return "." + call_text("row_history", *where, columns=columns, between=self.between)


def history_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of a row history: the columns of the rows, then those of ROW_HISTORY."""
    taken = set(columns.names)
    fields = []
    for period in frames.ROW_HISTORY:
        name = period.name
        while name in taken:
            name += "_"
        fields.append(period.with_name(name))
    return pa.schema([*columns, *fields])


def stored_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema in which a row history is stored: its own, then the order of the rows in their files."""
    return history_schema(columns).append(pa.field("order", pa.int64()))


@dataclass(frozen=True, kw_only=True, repr=False)
class RowHistoryPlan(Shown):
    """What a row history reads. Draws itself."""

    path: str
    """The table's location."""
    name: str
    """The table's name."""
    format: str
    """The table's format."""
    open_expression: str
    """The Python call that opens the table."""
    request: RowHistoryRequest
    versions: tuple[int, ...]
    """The versions whose rows are in the history, ascending."""
    span: str
    """The first and the last version with their times."""
    columns: pa.Schema
    """The columns of the states, with the names of the last version, each in a type that has the values of all."""
    splits: tuple[SplitHistory, ...] = field(repr=False)
    """The splits that are read, each once."""
    all_files: int
    """The number of data files of all versions."""
    notes: tuple[str, ...]
    """Versions whose rows are unknown, a sentence each."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return history_schema(self.columns)

    @property
    def call(self) -> str:
        """The Python call that returns the result."""
        return self.open_expression + self.request.call

    @cached_property
    def files(self) -> int:
        """The number of data files that are read."""
        return len({path for item in self.splits for path in item.split.files})

    @property
    def size_bytes(self) -> int:
        """The bytes of the data files that are read; a file that is merged with others counts once for each merge."""
        return sum(item.split.size_bytes for item in self.splits)

    @property
    def rows(self) -> int | None:
        """The number of rows to read, before merges and deletes; None if the metadata does not contain it."""
        known = [item.split.rows for item in self.splits]
        return None if None in known else sum(rows or 0 for rows in known)

    @property
    def title(self) -> str:
        """The rows whose history it is."""
        where = "" if self.request.where is None else f" where {self.request.where}"
        return f"History of rows of {self.name}{where}"

    @property
    def reading(self) -> str:
        """The data to read, as display text."""
        left = self.all_files - self.files
        others = f"; not read: {pluralize(left, 'other file')}" if left else ""
        return (
            f"{pluralize(self.files, 'file')}, {pluralize(self.rows, 'row')} and {format_size(self.size_bytes)} for "
            f"{pluralize(len(self.versions), 'version')}{others}"
        )


class HistoryStates:
    """The states of a row history, in `stored_schema`: on this machine."""

    def __init__(self, stored: StoredRows, count: int) -> None:
        """Contain stored states."""
        self._stored = stored
        self.count = count
        """The number of states."""

    def parts(self) -> Iterator[pa.Table]:
        """Yield the states, part by part."""
        return self._stored.parts()

    def to_spark(self) -> DataFrame:
        """Return the states as a lazy DataFrame."""
        raise InvalidArgumentError(
            Message(
                "The row history was computed on this machine. For a DataFrame of Spark, pass ",
                Hint("", {"engine": "spark"}),
                ".",
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RowHistory(Exportable, Shown):
    """Each state that rows of a table had, with the first version that has it and the first later one without it.

    The rows of version v are the states with `_from_version <= v` and `_to_version > v` or null, as multisets. Draws
    itself. Up to 100,000 states in memory are in the order of their versions; more are in no order.
    """

    plan: RowHistoryPlan
    """The plan: the versions, and what was read."""
    states: HistoryStates = field(repr=False)
    """The states with their order; Spark computes them at their first use."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows, then those of ROW_HISTORY."""
        return self.plan.schema

    def __len__(self) -> int:
        return self.states.count

    def to_spark(self) -> DataFrame:
        """Return the states as a lazy Spark DataFrame; columns as `to_arrow`, in Spark's types.

        The rows stay on executors.

        Raises:
            InvalidArgumentError: The row history was computed on this machine.
        """
        return self.states.to_spark()

    def to_arrow(self) -> pa.Table:
        return pa.concat_tables([self.schema.empty_table(), *self.tables()])

    def ordered(self) -> pa.Table:
        """Return the states as stored: by their first version, then by the version that ended them, then by file."""
        rows = pa.concat_tables([stored_schema(self.plan.columns).empty_table(), *self.states.parts()])
        first, last, order = (rows.column(rows.num_columns - index) for index in (5, 4, 1))
        ends = np.asarray(last.fill_null(np.iinfo(np.int64).max))
        return rows.take(pa.array(np.lexsort((np.asarray(order), ends, np.asarray(first))))).combine_chunks()

    def tables(self) -> Iterator[pa.Table]:
        """Yield the states, part by part."""
        indices = list(range(len(self.schema)))
        return (part.select(indices) for part in self.states.parts())

    def head(self, rows: int) -> pa.Table:
        """Return the first states."""
        parts = [self.schema.empty_table()]
        for part in self.tables():
            parts.append(part.slice(0, rows - sum(map(len, parts))))
            if sum(map(len, parts)) >= rows:
                break
        return pa.concat_tables(parts)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        batches = (batch for part in self.tables() for batch in part.to_batches())
        return pa.RecordBatchReader.from_batches(self.schema, batches).__arrow_c_stream__(requested_schema)

    def _parts(self) -> tuple[pa.Schema, Iterable[pa.Table]]:
        return self.schema, self.tables()
