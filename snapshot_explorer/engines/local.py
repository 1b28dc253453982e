"""Read splits into Arrow on this machine: in threads, filtered by SQL conditions, in the order of the splits."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import takewhile
from threading import Event
from typing import TYPE_CHECKING, TypeVar, cast

import pyarrow as pa

from snapshot_explorer.engines import duckdb_files
from snapshot_explorer.engines.conditions import Condition, passing, passing_count
from snapshot_explorer.progress import step

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from snapshot_explorer.engines.scan import Scan
    from snapshot_explorer.model import Split, SplitReader

_THREADS = 8
"""Splits read at once. This bounds the rows in memory beyond the result."""
_BYTES_AT_ONCE = 512 * 2**20
"""Total size of splits read at once, except those that stream. A larger split is read alone."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def to_arrow(reader: SplitReader, splits: Sequence[Split], scan: Scan) -> pa.Table:
    """Return the rows of splits as one Arrow table.

    Reads the columns of the scan and of its condition, and only as many splits as its limit needs. Rows are in the
    order of the splits; within a split, in the format's order.

    Args:
        reader: Reads the splits.
        splits: The splits to read, planned with the scan's condition.
        scan: Which columns and rows. A limit selects the first rows in the order above.

    Returns:
        A table with the schema of the scan's columns, also if there are no rows.
    """
    needed, limit = scan.needed.names, scan.limit
    if scan.condition is not None and limit != 0:
        rows_found = duckdb_files.select(reader, splits, scan)
        if rows_found is not None:
            return rows_found
    found: list[pa.Table] = []
    missing = limit
    stop = Event()

    def rows(split: Split) -> list[pa.Table]:
        return list(_rows(reader.read(split, needed, scan.condition), condition=scan.condition, limit=limit, stop=stop))

    planned = splits if limit != 0 else ()
    with (
        step("Reading splits", total=len(planned)) as reading,
        closing(_in_order(planned, rows, stop, weight=_weight)) as parts,
    ):
        for part in parts:
            reading.advance()
            for table in part:
                found.append(table if missing is None else table.slice(0, missing))
                missing = None if missing is None else missing - found[-1].num_rows
            if missing == 0:
                break
    return _joined(found, scan.columns)


def count(reader: SplitReader, splits: Sequence[Split], scan: Scan) -> int:
    """Return the number of rows in the splits, after any merge.

    Counts from metadata if it is sufficient. Otherwise reads only the columns that the merge and the condition need.
    Ignores the scan's columns and limit.
    """
    condition = scan.condition
    matching = duckdb_files.count(reader, splits, scan)
    if matching is not None:
        return matching
    numbers = [split.rows if split.raw else split.counted for split in splits]
    known = sum(number or 0 for number in numbers) if condition is None else 0
    unknown = [split for split, number in zip(splits, numbers, strict=True) if condition is not None or number is None]
    needed = sorted(condition.columns) if condition else []
    stop = Event()

    def rows(split: Split) -> int:
        total = 0
        for batch in reader.read(split, needed, condition):
            if stop.is_set():
                break
            table = pa.Table.from_batches([batch])
            total += passing_count(table, condition) if condition else table.num_rows
        return total

    with (
        step("Counting splits", total=len(unknown)) as counting,
        closing(_in_order(unknown, rows, stop, weight=_weight)) as parts,
    ):
        for part in parts:
            known += part
            counting.advance()
    return known


def for_each_batch(
    reader: SplitReader,
    splits: Sequence[Split],
    columns: Sequence[str],
    consume: Callable[[tuple[int, int], pa.RecordBatch], object],
) -> None:
    """Call a function with every batch of the splits, in threads and in no order. Nothing is kept.

    Args:
        reader: Reads the splits.
        splits: What to read.
        columns: The columns to read.
        consume: Called with the place of the split and of the batch in it, and the batch; from several threads at once.
    """
    stop = Event()

    def read(item: tuple[int, Split]) -> None:
        number, split = item
        for place, batch in enumerate(reader.read(split, columns)):
            if stop.is_set():
                return
            consume((number, place), batch)

    items = list(enumerate(splits))
    with (
        step("Reading splits", total=len(items)) as reading,
        closing(_in_order(items, read, stop, weight=lambda item: item[1].size_bytes)) as parts,
    ):
        for _ in parts:
            reading.advance()


def _rows(
    batches: Iterator[pa.RecordBatch], *, condition: Condition | None, limit: int | None, stop: Event
) -> Iterator[pa.Table]:
    """Yield the matching rows of a split, at least up to the limit; fewer once stopped."""
    if condition is None and limit is None:
        yield from _tables(takewhile(lambda _: not stop.is_set(), batches))
        return
    total = 0
    for batch in batches:
        table = pa.Table.from_batches([batch])
        if condition is not None:
            table = passing(table, condition)
        total += table.num_rows
        yield table
        if stop.is_set() or (limit is not None and total >= limit):
            return


def _tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches as tables, as many as possible in one: each costs time of its own."""
    alike: list[pa.RecordBatch] = []
    for batch in batches:
        if alike and not batch.schema.equals(alike[0].schema, check_metadata=True):
            yield pa.Table.from_batches(alike)
            alike = []
        alike.append(batch)
    if alike:
        yield pa.Table.from_batches(alike)


def _in_order(
    splits: Sequence[_Item], task: Callable[[_Item], _Result], stop: Event, *, weight: Callable[[_Item], int]
) -> Generator[_Result, None, None]:
    """Yield the results of a task for each split, in order, from threads that work only a few splits ahead.

    If the consumer stops or is interrupted, pending splits are dropped and running ones are stopped.
    """
    waiting = deque(splits)
    ahead: deque[tuple[int, Future[_Result]]] = deque()
    executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="snapshot-rows")
    try:
        while waiting or ahead:
            held = sum(weight for weight, _ in ahead)
            while waiting and len(ahead) < _THREADS and (not ahead or held + weight(waiting[0]) <= _BYTES_AT_ONCE):
                held += weight(waiting[0])
                ahead.append((weight(waiting[0]), executor.submit(task, waiting.popleft())))
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
    if not wanted.names:  # tables without columns cannot be concatenated, but they have rows
        return pa.table({"rows": pa.nulls(sum(table.num_rows for table in tables))}).select([])
    # Splits may differ in nullability and metadata; only tables with equal schemas can be concatenated.
    return pa.concat_tables([_under(wanted, table.select(wanted.names)) for table in tables])


def _under(schema: pa.Schema, table: pa.Table) -> pa.Table:
    return pa.Table.from_arrays(cast("list[pa.ChunkedArray]", table.columns), schema=schema)
