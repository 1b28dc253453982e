"""Splits to Arrow: order, columns, limits, conditions, threads."""

import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest

from snapshot_explorer.engines import local
from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError
from tests.inner.core import Split
from tests.inner.engines import filter_rows, scan_of
from tests.inner.formats import NativeFiles

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("part", pa.int32())])


class Numbers:
    """A format whose split n holds ten rows, in batches of three: ids n*10 to n*10+9."""

    native_files = NativeFiles()

    def __init__(self, *, slow=(), broken=()):
        self.reads = []
        self.batches = 0
        self.closed = 0
        self.slow, self.broken = slow, broken
        self.lock = threading.Lock()
        self.storage = SimpleNamespace(is_local=False)

    def read(self, split, columns, predicate=None):
        with self.lock:
            self.reads.append((split.detail, tuple(columns)))
        if split.detail in self.slow:
            time.sleep(0.05)
        if split.detail in self.broken:
            raise CorruptTableError(f"file {split.detail}")
        if not columns:
            yield pa.record_batch([pa.nulls(10)], ["rows"]).select([])
            return
        first = split.detail * 10
        rows = pa.table(
            {
                "id": range(first, first + 10),
                "name": [f"n{number}" for number in range(first, first + 10)],
                "part": pa.array([split.detail] * 10, pa.int32()),
            }
        ).select(list(columns))
        try:
            for batch in rows.to_batches(max_chunksize=3):
                with self.lock:
                    self.batches += 1
                yield batch
        finally:
            self.closed += 1


def splits(number, *, raw=True):
    return [
        Split(files=(f"{n}",), raw=raw, partition={}, bucket=0, rows=10, size_bytes=1, detail=n) for n in range(number)
    ]


def read(table_format, parts, *, columns=None, where=None, limit=None):
    return local.to_arrow(table_format, parts, scan_of(SCHEMA, columns, where, limit))


def test_rows_come_in_the_order_of_the_splits_however_long_each_takes():
    found = read(Numbers(slow=(0, 3)), splits(40))

    assert found.column("id").to_pylist() == list(range(400))
    assert found.schema == SCHEMA


def test_columns_come_in_the_order_requested_and_with_their_nullability():
    found = read(Numbers(), splits(2), columns=["part", "id"])

    assert found.schema == pa.schema([SCHEMA.field("part"), SCHEMA.field("id")])
    assert found.column("part").to_pylist() == [0] * 10 + [1] * 10


def test_columns_of_the_condition_are_read_and_dropped():
    table_format = Numbers()

    found = read(table_format, splits(3), columns=["name"], where="id % 10 = 4 AND part > 0")

    assert found.to_pydict() == {"name": ["n14", "n24"]}
    assert set(table_format.reads) == {(n, ("name", "id", "part")) for n in range(3)}


def test_no_rows_keep_the_schema():
    assert read(Numbers(), []).schema == SCHEMA
    assert read(Numbers(), splits(2), where="id < 0", columns=["name"]).schema == pa.schema([SCHEMA.field("name")])
    assert read(Numbers(), splits(2), where="id < 0").num_rows == 0


def test_rows_without_columns_are_counted():
    assert read(Numbers(), splits(2), columns=[], where="id > 4").shape == (15, 0)


def test_a_limit_gives_the_first_rows_and_leaves_the_rest_unread():
    table_format = Numbers()

    found = read(table_format, splits(500), limit=13)

    assert found.column("id").to_pylist() == list(range(13))
    assert len(table_format.reads) < 50


def test_a_limit_stops_inside_of_a_split():
    table_format = Numbers()

    assert read(table_format, splits(1), limit=2).num_rows == 2
    assert table_format.batches == 1


def test_a_limit_counts_rows_that_pass():
    assert read(Numbers(), splits(9), where="id % 2 = 1", limit=7).column("id").to_pylist() == [1, 3, 5, 7, 9, 11, 13]


def test_a_limit_of_zero_reads_nothing():
    table_format = Numbers()

    assert read(table_format, splits(3), limit=0).schema == SCHEMA
    assert table_format.reads == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"limit": -1}, "limit must be 0 or more, got -1."),
        ({"columns": ["id", "nam"]}, "Unknown column 'nam'. Did you mean name"),
        ({"columns": ["id", "part", "id"]}, "columns contains 'id' twice"),
        ({"columns": "id"}, r"columns must be a list of names, got 'id'. Write \['id'\]"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_before_reading(arguments, said):
    table_format = Numbers()

    with pytest.raises(InvalidArgumentError, match=said):
        read(table_format, splits(3), **arguments)
    assert table_format.reads == []


@pytest.mark.parametrize(("most_bytes", "evaluations"), [(2**20, 1), (1, 40 * 4)])
def test_a_condition_is_applied_to_many_small_splits_together(monkeypatch, most_bytes, evaluations):
    evaluated = []
    monkeypatch.setattr(local, "_FILTERED_BYTES", most_bytes)
    monkeypatch.setattr(local, "filter_rows", lambda *rows: evaluated.append(rows) or filter_rows(*rows))

    rows = read(Numbers(), splits(40), where="id % 7 = 0")

    assert rows["id"].to_pylist() == [number for number in range(400) if number % 7 == 0]
    assert len(evaluated) == evaluations
    assert local.count(Numbers(), splits(40), scan_of(SCHEMA, [], "id % 7 = 0")) == len(rows)


def test_an_error_in_a_split_ends_the_reading():
    table_format = Numbers(broken=(2,))

    with pytest.raises(CorruptTableError, match="file 2"):
        read(table_format, splits(500))
    # Two splits were returned before the error, and so many were read ahead.
    assert max(number for number, _ in table_format.reads) < 2 + local.REMOTE_THREADS


class Meeting:
    """Threads that wait here for one another; without so many, the wait ends after a while."""

    def __init__(self, count, patience=60):
        self.changed, self.count, self.patience = threading.Condition(), count, patience
        self.here = self.most = 0

    @contextmanager
    def attended(self):
        """Be one of those that are here."""
        with self.changed:
            self.here += 1
            self.most = max(self.most, self.here)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.most >= self.count, self.patience)
        yield
        with self.changed:
            self.here -= 1


def test_splits_too_large_to_be_held_together_are_read_one_after_another():
    class Counting(Numbers):
        def __init__(self, *meeting):
            super().__init__()
            self.meeting = Meeting(*meeting)

        def read(self, split, columns, predicate=None):
            with self.meeting.attended():
                yield from super().read(split, columns)

    small, large, raw = Counting(2), Counting(2, 0.05), Counting(2)
    heavy = [replace(split, size_bytes=local.BYTES_AT_ONCE) for split in splits(5, raw=False)]

    found = [read(small, splits(5, raw=False)), read(large, heavy), read(raw, [replace(s, raw=True) for s in heavy])]

    assert found[0] == found[1] == found[2]
    assert large.meeting.most == 1
    assert small.meeting.most > 1 < raw.meeting.most


class Files(Numbers):
    """The same rows in splits of several files, which other readers may read."""

    def __init__(self, *, is_local=True, **options):
        super().__init__(**options)
        self.storage = SimpleNamespace(is_local=is_local)
        self.parts = []

    def read(self, split, columns, predicate=None):
        with self.lock:
            self.parts.append(split.files)
        for file in split.files:
            yield from super().read(replace(split, detail=int(file)), columns)

    def split_by_file(self, split):
        return [replace(split, files=(file,), rows=10, size_bytes=split.size_bytes // 3) for file in split.files]


def test_each_large_or_remote_file_of_a_split_is_read_by_a_thread_of_its_own():
    def of_files(size, **options):
        return [
            replace(split, files=tuple(str(3 * n + file) for file in range(3)), size_bytes=3 * size, rows=30, **options)
            for n, split in enumerate(splits(2, raw=False))
        ]

    def parts(table_format, size=2**20, partition=(), **options):
        found = read(table_format, of_files(size, partition=dict(partition)), columns=["id"], **options)
        assert found.column("id").to_pylist() == list(range(options.get("limit", 60)))
        return sorted(table_format.parts)

    together, apart = [("0", "1", "2"), ("3", "4", "5")], [(str(file),) for file in range(6)]

    assert parts(Files(slow=(0, 3))) == apart
    assert parts(Files(), partition={"part": "0"}) == apart
    assert parts(Files(), partition={"id": "0"}) == together
    assert parts(Files(), size=2**19) == together
    assert parts(Files(is_local=False), size=2**10) == apart
    assert set(apart[:4]) <= set(parts(Files(is_local=False), limit=31)) <= set(apart)
    assert parts(Files(), limit=31) == together
    assert local.count(Files(), of_files(2**20), scan_of(SCHEMA, [], "id % 2 = 0")) == 30


def test_of_local_files_no_more_are_read_at_once_than_processors_need(monkeypatch):
    monkeypatch.setattr(pa, "cpu_count", lambda: 1)

    class Counting(Files):
        def __init__(self, *meeting, **options):
            super().__init__(**options)
            self.meeting = Meeting(*meeting)

        def read(self, split, columns, predicate=None):
            with self.meeting.attended():
                yield from Numbers.read(self, split, columns)

    small, large, remote = Counting(3, 0.05), Counting(3, 0.05), Counting(3, is_local=False)
    files = [replace(split, size_bytes=2**20) for split in splits(20)]

    found = [read(small, splits(20)), read(large, files), read(remote, files)]

    assert found[0] == found[1] == found[2]
    assert small.meeting.most == large.meeting.most == 2 < remote.meeting.most


def test_versions_read_side_by_side_progress_evenly_within_their_files():
    begun = [threading.Event() for _ in range(2)]

    class Fast(Numbers):
        def read(self, split, columns, predicate=None):
            begun[split.detail].wait(10)  # on a busy machine the thread of the other one starts late
            return super().read(split, columns, predicate)

    class Slow(Numbers):
        def read(self, split, columns, predicate=None):
            begun[split.detail].set()
            return super().read(split, columns, predicate)

    fast, slow = Fast(), Slow(slow=(0, 1))
    for reader in (fast, slow):
        reader.storage = SimpleNamespace(is_local=True)
    parts = [replace(split, size_bytes=2**30) for split in splits(2)]
    done, most = [0.0, 0.0], 0.0
    lock = threading.Lock()

    def consume(side, order, batch):
        nonlocal most
        with lock:
            done[side] += batch.num_rows / 20
            most = max(most, done[0] - done[1])
        time.sleep(0.02 if side else 0)

    local.for_each_batch_of([(fast, parts, ["id"]), (slow, parts, ["id"])], consume)

    assert done == pytest.approx([1.0, 1.0])
    assert most <= 0.4  # at most a batch of three rows per thread


def test_an_error_of_one_version_ends_the_threads_that_wait_for_it():
    fine, broken = Numbers(), Numbers(slow=(0,), broken=(0,))
    for reader in (fine, broken):
        reader.storage = SimpleNamespace(is_local=True)
    parts = [replace(split, size_bytes=2**30) for split in splits(3)]

    with pytest.raises(CorruptTableError, match="file 0"):
        local.for_each_batch_of([(fine, parts, ["id"]), (broken, parts, ["id"])], lambda *_: None)


def test_an_interrupt_ends_the_threads():
    class Interrupted(Numbers):
        def read(self, split, columns, predicate=None):
            if split.detail == 3:
                raise KeyboardInterrupt
            return super().read(split, columns)

    table_format = Interrupted(slow=range(500))

    with pytest.raises(KeyboardInterrupt):
        read(table_format, splits(500))
    assert len(table_format.reads) < 100  # 64 of a store are read at the same time
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("snapshot-rows")]


def test_counting_raw_splits_reads_nothing():
    table_format = Numbers()

    assert local.count(table_format, splits(5), scan_of(SCHEMA)) == 50
    assert table_format.reads == []


def test_counting_reads_no_split_whose_rows_the_metadata_counts():
    table_format = Numbers()
    counted = [replace(split, live_rows=7) for split in splits(3, raw=False)]

    assert local.count(table_format, counted, scan_of(SCHEMA)) == 21
    assert table_format.reads == []
    assert local.count(table_format, counted, scan_of(SCHEMA, [], "id >= 28")) == 2


def test_counting_reads_what_must_be_merged_and_what_a_condition_asks_for():
    table_format = Numbers()

    assert local.count(table_format, splits(2, raw=False) + splits(1), scan_of(SCHEMA)) == 30
    assert {columns for _, columns in table_format.reads} == {()}
    assert local.count(table_format, splits(5), scan_of(SCHEMA, [], "id >= 42")) == 8
    assert local.count(table_format, splits(5), scan_of(SCHEMA, [], "id < 0")) == 0
    assert local.count(table_format, splits(5), scan_of(SCHEMA, [], "1 = 1")) == 50
