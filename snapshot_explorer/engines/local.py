"""Read splits into Arrow on this machine: in threads, filtered by SQL conditions, in the order of the splits."""

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from threading import Event
from typing import NamedTuple, TypeVar, cast

import pyarrow as pa

from snapshot_explorer.core.progress import Step, step
from snapshot_explorer.core.records import ROW_KIND, Predicate, Split
from snapshot_explorer.engines import duckdb_files
from snapshot_explorer.engines.conditions import Condition, filter_rows
from snapshot_explorer.engines.even_progress import EvenProgress
from snapshot_explorer.engines.scan import Scan, scan_of
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.formats.interface import RowChanges

_THREADS = 8
"""Splits read at once. This bounds the rows in memory beyond the result."""
REMOTE_THREADS = 64
"""Splits of a remote table read at once, within `REMOTE_BYTES`: most of them wait for a response."""
REMOTE_BYTES = 128 * 2**20
"""Total size of the splits of a remote table that are read at once beyond the first `_THREADS`."""
BYTES_AT_ONCE = 512 * 2**20
"""Total size of splits read at once, except splits that stream. A larger split is read alone."""
_DISTANCE_BYTES = 16 * 2**20
"""Bytes of local files that a thread reads ahead of the last one where versions are read side by side: equal rows are
soon found, and need not be kept."""
_LARGE_FILE_BYTES = 2**20
"""Average size of local files from which each is read by a thread of its own. Smaller ones gain less than it costs."""
_MAX_BATCHES = 2**32
"""More than the batches of any file."""
_BATCH_ROWS = 65_536
"""Rows of a batch of partition values. All batches of a split share them."""

_FILTERED_BYTES = 8 * 2**20
"""Decoded bytes of rows to which a condition is applied at once."""
_SMALL_BYTES = 4 * 2**20
_MAX_SMALL = 32
"""Total size and number of small splits that a thread reads one after another: handing each over costs as much as a
fifth of reading it."""


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def to_arrow(reader: TableVersion, splits: Sequence[Split], scan: Scan) -> pa.Table:
    """Return the rows of splits as one Arrow table.

    Reads the columns of the scan and of its condition, and only as many splits as its limit needs; no file of a split
    whose partition determines these columns, if metadata contains its number of rows. Rows are in the order of the
    splits; within a split, in the format's order.

    Args:
        scan: Which columns and rows. A limit selects the first rows in the order above.

    Returns:
        A table with the schema of the scan's columns, also if there are no rows.
    """
    needed, limit = scan.needed.names, scan.limit
    if scan.condition is not None and limit != 0:
        rows_found = duckdb_files.select_rows(reader, splits, scan)
        if rows_found is not None:
            return rows_found
    tables: list[pa.Table] = []
    missing = limit
    stop = Event()

    def rows(together: Sequence[Split]) -> list[_Rows]:
        batches = chain.from_iterable(
            _partition_rows(reader, split, scan.needed) or reader.read(split, needed, scan.condition)
            for split in together
        )
        return list(_rows(batches, condition=scan.condition, limit=limit, stop=stop))

    later: list[Split] = []
    if limit is None or scan.condition is not None:
        planned, at_once = _spread(reader, splits, needed, limit=limit)
    else:
        chosen = _first(splits, limit)
        spread, at_once = _spread(reader, chosen, needed, limit=limit)
        planned, at_once = _first(spread, limit), at_once if reader.storage.is_local else REMOTE_THREADS
        later = [*spread[len(planned) :], *splits[len(chosen) :]]
    # The files of a remote group would wait for each other.
    are_grouped = limit is None and at_once <= _THREADS
    groups = _small_together(planned, _size) if are_grouped else [(split,) for split in planned]
    with (
        step("Reading splits", total=len(planned)) as reading,
        closing(_in_order(groups, rows, stop, weight=_weight_together, size=_size_together, at_once=at_once)) as parts,
    ):
        for table in _matching(_advancing(reading, groups, parts), scan.needed, scan.condition):
            tables.append(table if missing is None else table.slice(0, missing))
            missing = None if missing is None else missing - tables[-1].num_rows
            if missing == 0:
                break
    if missing and later:
        # A file has fewer rows than its metadata records.
        rest = [replace(split, rows=None, live_rows=None) for split in later]
        tables.append(to_arrow(reader, rest, replace(scan, limit=missing)))
    return _concat_tables(tables, scan.columns)


def batches(reader: TableVersion, splits: Sequence[Split], scan: Scan) -> Iterator[pa.RecordBatch]:
    """Yield all rows of splits in their order, reading only a few splits ahead.

    Args:
        scan: Which columns; without a condition or a limit.
    """
    names = scan.needed.names
    stop = Event()

    def tables(split: Split) -> list[pa.Table]:
        rows = _partition_rows(reader, split, scan.needed) or reader.read(split, names)
        return list(_tables(takewhile(lambda _: not stop.is_set(), rows)))

    planned, at_once = _spread(reader, splits, names)
    with closing(_in_order(planned, tables, stop, weight=_size, size=_size, at_once=at_once)) as parts:
        for table in chain.from_iterable(parts):
            yield from _under(scan.columns, table.select(scan.columns.names)).to_batches()


def count(reader: TableVersion, splits: Sequence[Split], scan: Scan) -> int:
    """Return the number of rows in the splits, after any merge.

    Counts from metadata if it is sufficient: without a condition, or where the partition of a split decides it.
    Otherwise reads only the columns that the merge and the condition need.
    Ignores the scan's columns and limit.
    """
    condition = scan.condition
    known, unknown = _count_from_metadata(reader, splits, scan)
    matching = duckdb_files.count(reader, unknown, scan)
    if matching is not None:
        return known + matching
    needed = pa.schema([field for field in scan.needed if condition and field.name in condition.columns])
    stop = Event()

    def rows(split: Split) -> list[_Rows]:
        parts = _rows(reader.read(split, needed.names, condition), condition=condition, limit=None, stop=stop)
        # Only the number of matching rows is kept: a split may have more rows than fit into memory.
        return [_Rows(part.table.select([]), is_filtered=True) if part.is_filtered else part for part in parts]

    planned, at_once = _spread(reader, unknown, needed.names)
    with (
        step("Counting splits", total=len(planned)) as counting,
        closing(_in_order(planned, rows, stop, weight=_weight, size=_size, at_once=at_once)) as parts,
    ):
        done = _advancing(counting, [(split,) for split in planned], parts)
        return int(known + sum(table.num_rows for table in _matching(done, needed, condition)))


def _spread(
    reader: TableVersion, splits: Sequence[Split], columns: Collection[str], *, limit: int | None = None
) -> tuple[Sequence[Split], int]:
    """Return splits from which to read columns, in the same order of rows, and how many to read at once.

    Remote files need no processor while they are fetched, so more are read at once. Splits of several files become one
    for each file, except where the partition may contain all columns: two threads would share eight files as five and
    three. With a limit the first few splits may be enough, and local files are read one after another.
    """
    largest = max(splits, key=lambda split: split.size_bytes, default=None)
    is_local = reader.storage.is_local
    if largest is None or (is_local and not _is_large(largest)):
        return splits, _local_threads()
    at_once = _local_threads() if is_local else REMOTE_THREADS if limit is None else _THREADS
    if limit is not None and is_local:
        return splits, at_once
    names = frozenset(columns)
    result: list[Split] = []
    for split in splits:
        worth_parallel = not is_local or _is_large(split)
        split_by_file = len(split.files) > 1 and worth_parallel and not names <= split.partition.keys()
        result += reader.split_by_file(split) if split_by_file else [split]
    return result, at_once


def _local_threads() -> int:
    """Return how many local splits are read at once: one more than there are processors.

    Further ones would only hold rows, and small files wait for the interpreter: eight threads take a fifth longer.
    """
    return min(_THREADS, int(pa.cpu_count()) + 1)


def _first(splits: Iterable[Split], limit: int) -> list[Split]:
    """Return the first splits that have this number of rows together, by the metadata."""
    result: list[Split] = []
    rows = 0
    for split in splits:
        if rows >= limit:
            break
        result.append(split)
        rows += _known_rows(split) or 0
    return result


def _is_large(split: Split) -> bool:
    return split.size_bytes >= len(split.files) * _LARGE_FILE_BYTES


def _known_rows(split: Split) -> int | None:
    """Return the number of rows of a split, after any merge; None if the metadata does not contain it."""
    return split.rows if split.raw else split.live_rows


def _count_from_metadata(reader: TableVersion, splits: Sequence[Split], scan: Scan) -> tuple[int, list[Split]]:
    """Return the number of matching rows in splits that metadata is sufficient for, and the other splits."""
    known, unknown = 0, []
    for split, matches in zip(splits, _matches(reader, splits, scan), strict=True):
        rows = _known_rows(split)
        if matches is None or (matches and rows is None):
            unknown.append(split)
        elif matches:
            known += rows or 0
    return known, unknown


def _matches(reader: TableVersion, splits: Sequence[Split], scan: Scan) -> Sequence[bool | None]:
    """Return for each split whether its rows match; None if its partition does not decide it. Reads nothing."""
    condition = scan.condition
    if condition is None:
        return [True] * len(splits)
    result: list[bool | None] = [None] * len(splits)
    if not all(part.columns for part in condition.parts):
        return result  # a part without columns may differ from row to row: random() < 0.5
    needed = pa.schema([scan.needed.field(name) for name in sorted(condition.columns)])
    values = {index: _partition_values(reader, split, needed) for index, split in enumerate(splits)}
    decided = {index: row for index, row in values.items() if row is not None}
    if decided:
        masks = condition.mask(pa.concat_tables(decided.values())).to_pylist()
        for index, matches in zip(decided, masks, strict=True):
            result[index] = matches
    return result


def _partition_values(reader: TableVersion, split: Split, columns: pa.Schema) -> pa.Table | None:
    """Return one row with the values that these columns have in all rows of a split; None if rows may differ."""
    names = frozenset(columns.names)
    if not names or not names <= split.partition.keys():
        return None
    native = reader.native_files.of(split)
    if native is None or native.partition is None or not names <= set(native.partition.column_names):
        return None
    row = native.partition.select(columns.names)
    return _under(columns, row) if row.schema.types == columns.types else None


def _partition_rows(reader: TableVersion, split: Split, columns: pa.Schema) -> Iterator[pa.RecordBatch] | None:
    """Return the rows of a split, if metadata contains their number and their values in these columns."""
    rows = _known_rows(split)
    values = None if rows is None else _partition_values(reader, split, columns)
    if rows is None or values is None:
        return None
    size = min(rows, _BATCH_ROWS)
    repeated = [pa.repeat(value, size) for value in (column[0] for column in values.columns)]
    batch = pa.RecordBatch.from_arrays(repeated, schema=columns)
    return (batch.slice(0, rows - start) for start in range(0, rows, _BATCH_ROWS))


def for_each_batch(
    reader: TableVersion,
    splits: Sequence[Split],
    columns: Sequence[str],
    consume: Callable[[tuple[int, int], pa.RecordBatch], object],
) -> None:
    """Call a function with every batch of the splits, in threads and in no order. Nothing is kept.

    Args:
        consume: Called with the positions of the split and of the batch in it, and the batch; from several threads at
            once.
    """
    for_each_batch_of([(reader, splits, columns)], lambda _, order, batch: consume(order, batch))


def for_each_batch_of(
    sources: Sequence[tuple[TableVersion, Sequence[Split], Sequence[str]]],
    consume: Callable[[int, tuple[int, int], pa.RecordBatch], object],
) -> None:
    """Call a function with every batch of the splits of several versions, which are read side by side.

    Likewise in threads and in no order; the first argument is the position of the version. All versions progress
    evenly, by the share of their bytes that was read.
    """
    stop = Event()
    is_local = all(reader.storage.is_local for reader, _, _ in sources)
    size_bytes = max(sum(map(_size, splits)) for _, splits, _ in sources)
    distance = (_DISTANCE_BYTES if is_local else REMOTE_BYTES) / max(1, size_bytes)
    progress = EvenProgress(distance if len(sources) > 1 else 1.0, stop)

    def read(group: Sequence["_Part"]) -> None:
        with progress:
            for item in group:
                reader, _, columns = sources[item.source]
                progress.wait_for_others(item.begin)
                rows = 0
                for index, batch in enumerate(reader.read(item.split, columns)):
                    if stop.is_set():
                        return
                    consume(item.source, (item.number, item.file * _MAX_BATCHES + index), batch)
                    rows += batch.num_rows
                    progress.wait_for_others(item.begin + item.share * min(1.0, rows / max(1, item.split.rows or 0)))

    items = sorted(
        chain.from_iterable(_parts(source, reader, splits) for source, (reader, splits, _) in enumerate(sources)),
        key=lambda item: item.begin,
    )
    # The files of a remote group would wait for each other.
    groups = _small_together(items, _size_of_part) if is_local else [(item,) for item in items]
    at_once = _local_threads() if is_local else REMOTE_THREADS
    with (
        step("Reading splits", total=len(items)) as reading,
        closing(_in_order(groups, read, stop, weight=_weight_of_parts, size=_size_of_parts, at_once=at_once)) as parts,
    ):
        for group, _ in zip(groups, parts, strict=True):
            reading.advance(len(group))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What to read of a split."""

    number: int
    reader: TableVersion
    split: Split
    columns: Sequence[str]
    predicate: Predicate | None
    """A condition; rows that do not match it may be left out."""


def for_each_batch_in_turn(
    groups: Sequence[Sequence[Reading]],
    consume: Callable[[int, pa.RecordBatch], object],
    finish: Callable[[int], object],
) -> None:
    """Call a function with every batch of splits, in threads: groups of them begin in order, each in one thread.

    Args:
        consume: Called with the number of the split and a batch, from several threads at once.
        finish: Called with the number of each split after its last batch.
    """
    stop = Event()

    def read(together: Sequence[Sequence[Reading]]) -> None:
        for item in chain.from_iterable(together):
            for batch in item.reader.read(item.split, item.columns, item.predicate):
                if stop.is_set():
                    return
                consume(item.number, batch)
            finish(item.number)

    def size(group: Sequence[Reading]) -> int:
        return max(item.split.size_bytes for item in group)

    def size_together(together: Sequence[Sequence[Reading]]) -> int:
        return sum(map(size, together))

    is_local = all(item.reader.storage.is_local for group in groups for item in group)
    tasks = _small_together(groups, size) if is_local else [(group,) for group in groups]
    at_once = _local_threads() if is_local else REMOTE_THREADS
    with (
        step("Reading splits", total=sum(map(len, groups))) as reading,
        closing(_in_order(tasks, read, stop, weight=size_together, size=size_together, at_once=at_once)) as parts,
    ):
        for task, _ in zip(tasks, parts, strict=True):
            reading.advance(sum(map(len, task)))


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a split that a thread reads at a time."""

    source: int
    number: int
    """The position of its split."""
    file: int
    """Its position in the split."""
    split: Split
    begin: float
    """The share of the bytes of its source that is before it."""
    share: float
    """Its own share of these bytes."""


def _size_of_part(part: _Part) -> int:
    return part.split.size_bytes


def _size_of_parts(parts: Sequence[_Part]) -> int:
    return sum(map(_size_of_part, parts))


def _weight_of_parts(parts: Sequence[_Part]) -> int:
    return sum(_weight(part.split) for part in parts)


def _parts(source: int, reader: TableVersion, splits: Sequence[Split]) -> Iterator[_Part]:
    total = max(1, sum(split.size_bytes for split in splits))
    begin = 0
    for number, split in enumerate(splits):
        for file, part in enumerate((split,) if reader.storage.is_local else reader.split_by_file(split)):
            yield _Part(source, number, file, part, begin / total, part.size_bytes / total)
            begin += part.size_bytes


class _Rows(NamedTuple):
    table: pa.Table
    is_filtered: bool
    """Whether they match the condition; otherwise it has not been applied to them."""


def _rows(
    batches: Iterator[pa.RecordBatch], *, condition: Condition | None, limit: int | None, stop: Event
) -> Iterator[_Rows]:
    """Yield the rows of a split that match, at least up to the limit; fewer once stopped.

    Without a limit the condition is not applied to the last few rows: see `_matching`.
    """
    until_stopped = takewhile(lambda _: not stop.is_set(), batches)
    if condition is None and limit is None:
        yield from (_Rows(table, is_filtered=True) for table in _tables(until_stopped))
        return
    total = size = 0
    waiting: list[pa.RecordBatch] = []
    for batch in until_stopped:
        waiting.append(batch)
        size += batch.nbytes
        if limit is None and size < _FILTERED_BYTES:
            continue
        for table in _tables(waiting):
            rows = table if condition is None else filter_rows(table, condition)
            total += rows.num_rows
            yield _Rows(rows, is_filtered=True)
        waiting, size = [], 0
        if limit is not None and total >= limit:
            return
    yield from (_Rows(table, is_filtered=False) for table in _tables(waiting))


def _advancing(reading: Step, groups: Sequence[Sequence[Split]], parts: Iterable[list[_Rows]]) -> Iterator[_Rows]:
    """Yield the rows of groups of splits, and count the splits as read."""
    for group, part in zip(groups, parts, strict=False):
        reading.advance(len(group))
        yield from part


def _matching(parts: Iterable[_Rows], schema: pa.Schema, condition: Condition | None) -> Iterator[pa.Table]:
    """Yield the rows that match, in order. The condition is applied to the rows of many small splits together.

    Evaluating it costs about two milliseconds, however few rows there are: as long as decoding a file of 500 KiB.
    """
    waiting: list[pa.Table] = []
    size = 0
    for rows in chain(parts, (None,)):
        if waiting and (rows is None or rows.is_filtered or size >= _FILTERED_BYTES):
            table = _concat_tables(waiting, schema)
            yield table if condition is None else filter_rows(table, condition)
            waiting, size = [], 0
        if rows is not None and rows.is_filtered:
            yield rows.table
        elif rows is not None:
            waiting.append(rows.table)
            size += rows.table.nbytes


def _tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches as tables, with as many batches as possible in each, because each table has a fixed cost."""
    alike: list[pa.RecordBatch] = []
    for batch in batches:
        if alike and not batch.schema.equals(alike[0].schema, check_metadata=True):
            yield pa.Table.from_batches(alike)
            alike = []
        alike.append(batch)
    if alike:
        yield pa.Table.from_batches(alike)


def _in_order(
    splits: Sequence[_Item],
    task: Callable[[_Item], _Result],
    stop: Event,
    *,
    weight: Callable[[_Item], int],
    size: Callable[[_Item], int],
    at_once: int,
) -> Generator[_Result, None, None]:
    """Yield the results of a task for each split, in order, from threads that work only a few splits ahead.

    If the consumer stops or is interrupted, pending splits are dropped and running ones are stopped.
    """
    waiting = deque(splits)
    ahead: deque[tuple[_Item, Future[_Result]]] = deque()
    executor = ThreadPoolExecutor(at_once, thread_name_prefix="snapshot-rows")

    def is_next_ready() -> bool:
        if not ahead:
            return True
        items = [item for item, _ in ahead] + [waiting[0]]
        if len(items) > at_once or sum(map(weight, items)) > BYTES_AT_ONCE:
            return False
        return len(items) <= _THREADS or sum(map(size, items)) <= REMOTE_BYTES

    try:
        while waiting or ahead:
            while waiting and is_next_ready():
                ahead.append((waiting[0], executor.submit(task, waiting.popleft())))
            yield ahead.popleft()[1].result()
    finally:
        stop.set()
        executor.shutdown(wait=True, cancel_futures=True)


def _small_together(splits: Sequence[_Item], size_of: Callable[[_Item], int]) -> list[tuple[_Item, ...]]:
    """Return the splits in order, consecutive small ones together, in several groups for each thread."""
    limit = min(_MAX_SMALL, len(splits) // (8 * _THREADS))
    groups: list[list[_Item]] = []
    size = 0
    for split in splits:
        size += size_of(split)
        if groups and len(groups[-1]) < limit and size <= _SMALL_BYTES:
            groups[-1].append(split)
        else:
            groups.append([split])
            size = size_of(split)
    return [tuple(group) for group in groups]


def _weight(split: Split) -> int:
    return 0 if split.raw else split.size_bytes


def _size(split: Split) -> int:
    return split.size_bytes


def _size_together(splits: Sequence[Split]) -> int:
    return sum(map(_size, splits))


def _weight_together(splits: Sequence[Split]) -> int:
    return sum(map(_weight, splits))


def _concat_tables(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    if not tables:
        return schema.empty_table()
    if not schema.names:  # tables without columns cannot be concatenated, but they have rows
        return pa.table({"rows": pa.nulls(sum(table.num_rows for table in tables))}).select([])
    # Splits may differ in nullability and metadata; only tables with equal schemas can be concatenated.
    return pa.concat_tables([_under(schema, table.select(schema.names)) for table in tables])


def _under(schema: pa.Schema, table: pa.Table) -> pa.Table:
    return pa.Table.from_arrays(cast("list[pa.ChunkedArray]", table.columns), schema=schema)


def read_changes(
    changes: RowChanges, columns: Sequence[str] | None, where: str | None, *, limit: int | None = None
) -> pa.Table:
    """Return changed rows: `rowkind`, then the given columns, by default all columns of the schema.

    Args:
        columns: The columns after `rowkind`, in order; by default all.
        where: A condition in SQL on `rowkind`, the columns of the schema and the metadata columns.
        limit: Return at most the first rows, this many.
    """
    if ROW_KIND in changes.schema.names:
        changes.splits(None)  # the format raises for a column of that name
    known = {ROW_KIND, *changes.schema.names}
    more = [field for field in changes.metadata_columns if field.name not in known]
    schema = pa.schema([pa.field(ROW_KIND, pa.string(), nullable=False), *changes.schema, *more])
    shown = [ROW_KIND, *changes.schema.names]
    is_list = isinstance(columns, Iterable) and not isinstance(columns, str)
    selected = shown if columns is None else [ROW_KIND, *columns] if is_list else columns
    scan = scan_of(schema, selected, where, limit)
    return to_arrow(changes.reader, changes.splits(scan.condition), scan)
