"""Rows of several sides by hash: in memory up to a limit, beyond it in temporary files."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Self

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.row_matching import (
    HashedRows,
    Hashes,
    Indices,
    equal_hashes,
    equal_rows,
    unmatched_indices,
)
from snapshot_explorer.arrow.positions import rows_without_columns
from snapshot_explorer.results.outputs import scratch_folder

BEFORE, AFTER, DROPPED = range(3)
"""The sides of a comparison: its two versions, and the hashes of rows that both have."""

_HASH = "hash"
"""The name of the column of hashes in temporary files, which is the last one."""
_MATCHING_BYTES = 64
"""The measured maximum number of bytes that matching needs per row in addition to the row and its hash."""
_SORTING_BYTES = 16
"""The number of bytes that sorting hashes needs for each."""
_BUFFERED_BYTES = 32 * 2**20
"""Bytes of rows of a side that are sorted by bucket and written at a time."""
_BITS = 5
"""Bits of the hash that determine the bucket."""
_BUCKETS = 1 << _BITS
_WORD = 64

_Part = tuple[tuple[int, int], pa.RecordBatch, "Hashes"]


class SplitRows:
    """Rows of several sides, divided by hash so that each part fits in memory.

    Rows with equal hashes are in the same part. Rows can be added from several threads.
    """

    def __init__(self, schemas: Sequence[pa.Schema], *, limit_bytes: int, shift: int = 0) -> None:
        """Start without rows.

        Args:
            schemas: The columns of each side. A side without columns has hashes only.
            limit_bytes: The maximum number of bytes in memory for rows and for matching them; beyond it, rows are
                written to temporary files.
            shift: The number of low bits of the hashes that are the same in all rows.
        """
        self._schemas = schemas
        self._limit_bytes = limit_bytes
        self._shift = shift
        self._lock = Lock()
        self._parts: list[list[_Part]] = [[] for _ in schemas]
        self._held = [0] * len(schemas)
        self._matching = 0
        self._files: _BucketFiles | None = None

    def add(self, side: int, order: tuple[int, int], batch: pa.RecordBatch, hashes: Hashes) -> None:
        """Add rows.

        Args:
            side: The position of their side.
            order: Their position among the rows of their side.
        """
        with self._lock:
            self._parts[side].append((order, batch, hashes))
            self._held[side] += batch.nbytes + hashes.nbytes
            self._matching += len(hashes) * (_MATCHING_BYTES if batch.num_columns else _SORTING_BYTES)
            can_divide = self._shift + _BITS <= _WORD
            if self._files is None and sum(self._held) + self._matching > self._limit_bytes and can_divide:
                self._files = _BucketFiles(self._shift)
                self._flush_all(self._files)
            elif self._files is not None and self._held[side] > _BUFFERED_BYTES:
                self._flush(self._files, side)

    def close(self) -> None:
        """Remove temporary files."""
        if self._files is not None:
            self._files.close()

    def _flush(self, files: "_BucketFiles", side: int) -> None:
        parts = self._parts[side]
        while parts:
            batch, size = [], 0
            while parts and size <= _BUFFERED_BYTES:
                batch.append(parts.pop())
                size += batch[-1][1].nbytes + batch[-1][2].nbytes
            files.write(side, *_joined(self._schemas[side], batch))
        self._held[side] = 0

    def _flush_all(self, files: "_BucketFiles") -> None:
        for side in range(len(self._parts)):
            self._flush(files, side)

    def parts(self) -> Iterator[tuple[HashedRows, ...]]:
        """Yield the rows of each part, of all sides, and drop them."""
        if self._files is None:
            sides = []
            for schema, parts in zip(self._schemas, self._parts, strict=True):
                table, hashes = _joined(schema, sorted(parts, key=_order))
                parts.clear()
                sides.append(HashedRows(rows=table, hashes=hashes))
            yield tuple(sides)
            return
        with self._files as files:
            self._flush_all(files)
            files.finish()
            for bucket in range(_BUCKETS):
                yield from self._of_bucket(files, bucket)

    def _of_bucket(self, files: "_BucketFiles", bucket: int) -> Iterator[tuple[HashedRows, ...]]:
        """Yield the rows of a bucket, divided again if they exceed the limit and their hashes differ."""
        shift = self._shift + _BITS if files.have_different_hashes(bucket) else _WORD
        inner = SplitRows(self._schemas, limit_bytes=self._limit_bytes, shift=shift)
        for side in range(len(self._schemas)):
            for index, (batch, hashes) in enumerate(files.read(bucket, side)):
                inner.add(side, (index, 0), batch, hashes)
        yield from inner.parts()


def _joined(schema: pa.Schema, parts: list[_Part]) -> tuple[pa.Table, Hashes]:
    hashes = [part[2] for part in parts]
    return (
        pa.Table.from_batches([part[1] for part in parts], schema=schema),
        np.concatenate(hashes) if hashes else np.zeros(0, np.uint64),
    )


class _BucketFiles:
    """Temporary files of rows, one per bucket and side, removed on exit."""

    def __init__(self, shift: int) -> None:
        self._shift = shift
        self._stack = ExitStack()
        self._folder = scratch_folder("rows")
        self._stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
        self._writers: dict[tuple[int, int], pa.ipc.RecordBatchStreamWriter] = {}
        self._ranges: dict[int, tuple[np.uint64, np.uint64]] = {}
        """By bucket, the smallest and the largest hash."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def _path(self, bucket: int, side: int) -> str:
        return str(self._folder / f"{bucket}-{side}.arrows")

    def write(self, side: int, rows: pa.Table, hashes: Hashes) -> None:
        buckets = ((hashes >> np.uint64(self._shift)) & np.uint64(_BUCKETS - 1)).astype(np.uint8)
        order = np.argsort(buckets, kind="stable")
        table = rows.append_column(_HASH, pa.array(hashes)).take(pa.array(order))
        hashes = hashes[order]
        ends = np.cumsum(np.bincount(buckets, minlength=_BUCKETS)).tolist()
        for bucket, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if start < end:
                self._writer(bucket, side, table.schema).write_table(table.slice(start, end - start))
                known = self._ranges.get(bucket, (hashes[start], hashes[start]))
                self._ranges[bucket] = min(known[0], hashes[start:end].min()), max(known[1], hashes[start:end].max())

    def have_different_hashes(self, bucket: int) -> bool:
        lower, upper = self._ranges.get(bucket, (0, 0))
        return lower != upper

    def _writer(self, bucket: int, side: int, schema: pa.Schema) -> pa.ipc.RecordBatchStreamWriter:
        result = self._writers.get((bucket, side))
        if result is None:
            sink = self._stack.enter_context(pa.OSFile(self._path(bucket, side), "wb"))
            result = self._writers[bucket, side] = self._stack.enter_context(pa.ipc.new_stream(sink, schema))
        return result

    def finish(self) -> None:
        for writer in self._writers.values():
            writer.close()

    def read(self, bucket: int, side: int) -> Iterator[tuple[pa.RecordBatch, Hashes]]:
        if (bucket, side) not in self._writers:
            return
        with pa.OSFile(self._path(bucket, side)) as source:
            for batch in pa.ipc.open_stream(source):
                # By place: a column of the table may have any name.
                last = batch.num_columns - 1
                yield batch.select(list(range(last))), np.asarray(batch.column(last))
        Path(self._path(bucket, side)).unlink()


_WINDOW_SHARE = 16
"""A side is searched for equal rows when its new rows reach this fraction of the memory limit."""
_HELD_SHARE = 2
"""The fraction of the memory limit that rows may need while they wait for equal ones."""
_SAMPLE = 64
"""One in this many hashes is sampled before rows are compared; a power of two."""


class EqualRows:
    """Drops rows that both versions have, and hands on the others. Rows can be added from several threads.

    Two equal rows are dropped, whatever their places: neither multisets nor rows with a unique key differ by them. If
    fewer than half of the rows have an equal one nearby, all others are handed on as they come.
    """

    def __init__(self, rows: SplitRows, *, limit_bytes: int, keep_hashes: bool) -> None:
        """Begin without rows.

        Args:
            rows: What gets the other rows.
            limit_bytes: The maximum number of bytes in memory that rows need, and comparing them.
            keep_hashes: Whether `rows` also gets a hash for each pair of rows that is dropped, as its side DROPPED.
        """
        self._rows = rows
        self._keep_hashes = keep_hashes
        self._window = limit_bytes // _WINDOW_SHARE
        self._max_held = limit_bytes // _HELD_SHARE
        self._lock = Lock()
        self._parts: tuple[list[_Part], list[_Part]] = ([], [])
        self._held = [0, 0]
        self._next = self._window
        self._is_looking = self._window > 0
        self._has_dropped = False

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
            if sum(self._held) > self._max_held:
                self.finish()

    def finish(self) -> None:
        """Hand on all remaining rows, and rows that are added from now on."""
        if self._is_looking and self._has_dropped and all(self._parts):
            self._look()
        self._is_looking = False
        for side, parts in enumerate(self._parts):
            for part in parts:
                self._rows.add(side, *part)
            parts.clear()

    def _look(self) -> None:
        """Drop the equal rows, if half of the rows of the smaller side may equal rows of the other one."""
        hashes = [np.concatenate([part[2] for part in sorted(parts, key=_order)]) for parts in self._parts]
        before, after = (np.unique(side[side & np.uint64(_SAMPLE - 1) == 0]) for side in hashes)
        if 2 * len(np.intersect1d(before, after, assume_unique=True)) < min(len(before), len(after)):
            self._next = 2 * min(self._held)
            return
        sides = [
            HashedRows(rows=pa.Table.from_batches([part[1] for part in sorted(parts, key=_order)]), hashes=own)
            for parts, own in zip(self._parts, hashes, strict=True)
        ]
        left, right = equal_hashes(*hashes)
        equal = equal_rows(sides[0].rows, sides[1].rows, left, right, sides[0].rows.column_names)
        self._has_dropped = True
        if self._keep_hashes:
            dropped = hashes[BEFORE][left[equal]]
            self._rows.add(DROPPED, (0, 0), rows_without_columns(len(dropped)), dropped)
        for side, indices in enumerate((left[equal], right[equal])):
            self._keep(side, unmatched_indices(len(hashes[side]), indices))
        self._next = max(self._held) + self._window

    def _keep(self, side: int, indices: Indices) -> None:
        """Keep the rows of a side at these places, in the order of its sorted parts."""
        is_kept = np.zeros(sum(len(part[2]) for part in self._parts[side]), bool)
        is_kept[indices] = True
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
