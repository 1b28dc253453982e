"""Splits to Arrow on this machine: read in threads, filtered by SQL conditions, in the order of the splits."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from threading import Event
from typing import TYPE_CHECKING, TypeVar, cast

import pyarrow as pa

from snapshot_explorer.engines.conditions import Condition, passing, passing_count
from snapshot_explorer.progress import step

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from snapshot_explorer.engines.scan import Scan
    from snapshot_explorer.model import Split, SplitReader

_THREADS = 8
"""Splits read at once. More wait, so that memory holds few split's worth of rows beyond the result."""
_BYTES_AT_ONCE = 512 * 2**20
"""Size of the files of splits that are read at once, raw ones aside, which are streamed. A larger one is read alone."""

_Result = TypeVar("_Result")


def to_arrow(reader: SplitReader, splits: Sequence[Split], scan: Scan) -> pa.Table:
    """Return the rows of splits as one Arrow table.

    Reads the columns of the scan and of its condition, and no more splits than its limit needs. Rows come in the order
    of the splits; within a split in the format's order.

    Args:
        reader: Reads the splits.
        splits: What to read, as planned with the scan's condition.
        scan: Which columns and rows; of a limit the first ones in the order above.

    Returns:
        A table whose schema is that of the scan's columns, also when there are no rows.
    """
    needed, limit = scan.needed.names, scan.limit
    found: list[pa.Table] = []
    missing = limit
    stop = Event()

    def rows(split: Split) -> list[pa.Table]:
        return list(_rows(reader.read(split, needed), condition=scan.condition, limit=limit, stop=stop))

    planned = splits if limit != 0 else ()
    with step("Reading splits", total=len(planned)) as reading, closing(_in_order(planned, rows, stop)) as parts:
        for part in parts:
            reading.advance()
            for table in part:
                found.append(table if missing is None else table.slice(0, missing))
                missing = None if missing is None else missing - found[-1].num_rows
            if missing == 0:
                break
    return _joined(found, scan.columns)


def count(reader: SplitReader, splits: Sequence[Split], scan: Scan) -> int:
    """Return how many rows the splits hold, after any merge.

    Splits are counted by their metadata where it suffices; the others are read, in as few columns as the merge and the
    condition need. The scan's columns and limit do not matter.
    """
    condition = scan.condition
    numbers = [split.rows if split.raw else split.counted for split in splits]
    known = sum(number or 0 for number in numbers) if condition is None else 0
    unknown = [split for split, number in zip(splits, numbers, strict=True) if condition is not None or number is None]
    needed = sorted(condition.columns) if condition else []
    stop = Event()

    def rows(split: Split) -> int:
        total = 0
        for batch in reader.read(split, needed):
            if stop.is_set():
                break
            table = pa.Table.from_batches([batch])
            total += passing_count(table, condition) if condition else table.num_rows
        return total

    with step("Counting splits", total=len(unknown)) as counting, closing(_in_order(unknown, rows, stop)) as parts:
        for part in parts:
            known += part
            counting.advance()
    return known


def _rows(
    batches: Iterator[pa.RecordBatch], *, condition: Condition | None, limit: int | None, stop: Event
) -> Iterator[pa.Table]:
    """Yield the rows of a split that pass, at least as many as the limit if there are; less once stopped."""
    total = 0
    for batch in batches:
        table = pa.Table.from_batches([batch])
        if condition is not None:
            table = passing(table, condition)
        total += table.num_rows
        yield table
        if stop.is_set() or (limit is not None and total >= limit):
            return


def _in_order(splits: Sequence[Split], task: Callable[[Split], _Result], stop: Event) -> Generator[_Result, None, None]:
    """Yield the task's results in the order of the splits, worked on in threads, only a few ahead.

    When the consumer stops, or is interrupted, what has not begun is dropped and the rest is told to stop.
    """
    waiting = deque(splits)
    ahead: deque[tuple[int, Future[_Result]]] = deque()
    executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="snapshot-rows")
    try:
        while waiting or ahead:
            held = sum(weight for weight, _ in ahead)
            while waiting and len(ahead) < _THREADS and (not ahead or held + _weight(waiting[0]) <= _BYTES_AT_ONCE):
                held += _weight(waiting[0])
                ahead.append((_weight(waiting[0]), executor.submit(task, waiting.popleft())))
            yield ahead.popleft()[1].result()
    finally:
        stop.set()
        executor.shutdown(wait=True, cancel_futures=True)


def _weight(split: Split) -> int:
    return 0 if split.raw else split.size_bytes


def _joined(tables: Sequence[pa.Table], wanted: pa.Schema) -> pa.Table:
    """Return the tables as one of exactly the schema."""
    if not tables:
        return wanted.empty_table()
    if not wanted.names:  # tables without columns cannot be joined, but they do have rows
        return pa.table({"rows": pa.nulls(sum(table.num_rows for table in tables))}).select([])
    # Splits may differ in what may be null and in metadata; tables are joined only if they have one schema.
    return pa.concat_tables([_under(wanted, table.select(wanted.names)) for table in tables])


def _under(schema: pa.Schema, table: pa.Table) -> pa.Table:
    return pa.Table.from_arrays(cast("list[pa.ChunkedArray]", table.columns), schema=schema)
