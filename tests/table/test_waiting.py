"""What is in memory never waits for the storage, and who asks for the same waits for one read."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import StorageError
from snapshot_explorer.history import history_of
from snapshot_explorer.storage import Storage
from snapshot_explorer.table import parts_of
from snapshot_explorer.view import drawing_of, render_text
from tests.inner.core import SingleFlight, cached_property
from tests.inner.paimon import Layout, Schemas
from tests.support.blocking import SECONDS, blocking
from tests.support.delta.table_builder import DeltaTable
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable


@pytest.fixture(params=["paimon", "delta", "iceberg"])
def slow(request, memory_root, register):
    """A table of three versions on a file system that can hold answers back, and that file system's class."""
    filesystem, root = memory_root
    if request.param == "delta":
        written = DeltaTable(filesystem, root)
        written.append([(1, "a")])
        written.append([(2, "b")])
    else:
        written = (PaimonTable if request.param == "paimon" else IcebergTable)(filesystem, root)
        for number in range(3):
            written.commit([(number, "a")])
    held = register(blocking())
    return open_table(f"blocking://{root}"), held


def in_time(call):
    """Return what a call returns, on a thread of its own; fail if it waits."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert found, "it waits for the storage"
    return found[0]


def listed(snapshot):
    """Read what a snapshot lists: at least one file of it was not read when the table was opened."""
    return snapshot.manifests(), snapshot.files()


def in_thread(call):
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def test_the_card_the_schema_and_completion_do_not_wait_for_a_read(slow):
    table, held = slow
    names = [column.name for column in table.current.schema.columns]
    with held.hold("") as waits:
        reader = in_thread(lambda: listed(table.current))
        assert waits.wait(SECONDS)

        assert list(in_time(lambda: history_of(table).cached).columns) == names
        assert names[0] in in_time(lambda: render_text(drawing_of(table)))
        assert in_time(lambda: table.current.schema) is table.current.schema
        assert in_time(lambda: repr(table))
    reader.join(SECONDS)


@pytest.mark.parametrize("slow", ["paimon", "delta"], indirect=True)  # of Iceberg it is in the metadata that was read
def test_an_uncached_schema_is_not_waited_for(slow):
    table, held = slow
    snapshot = table.at(1)
    with held.hold("") as waits:
        reader = in_thread(lambda: snapshot.schema)
        assert waits.wait(SECONDS)

        assert in_time(lambda: parts_of(snapshot).loaded.cached_schema() or "nothing") == "nothing"
    reader.join(SECONDS)


def test_readers_of_the_same_share_one_read(slow):
    table, held = slow
    snapshot, found = table.at(1), []
    held.asked.clear()
    snapshot_alone = open_table(table.path).at(1)
    held.asked.clear()
    snapshot_alone.manifests()
    alone = len(held.asked)
    held.asked.clear()
    with held.hold("") as waits:
        readers = [in_thread(lambda: found.append(snapshot.manifests().to_arrow())) for _ in range(8)]
        assert waits.wait(SECONDS)
    for reader in readers:
        reader.join(SECONDS)

    assert len(found) == 8
    assert all(one is found[0] or one.equals(found[0]) for one in found)
    assert len(held.asked) <= alone


def test_a_version_that_is_kept_does_not_wait_for_another_that_is_read(memory_root, register):
    written = DeltaTable(*memory_root)
    for number in range(4):
        written.append([(number, "a")])
    written.checkpoint(2)
    held = register(blocking())
    table = open_table(f"blocking://{written.root}")
    newest = table.current
    newest.files()
    with held.hold("") as waits:
        reader = in_thread(lambda: table.at(1).files())
        assert waits.wait(SECONDS)

        assert in_time(lambda: newest.properties) == {}
        assert in_time(lambda: newest.files().num_rows) == 4
        assert in_time(lambda: len(newest.plan().to_arrow())) == 1
    reader.join(SECONDS)


def test_an_update_replaces_a_snapshot_that_is_being_read(slow):
    table, held = slow
    old = table.current
    with held.hold("") as waits:
        reader = in_thread(lambda: listed(old))
        assert waits.wait(SECONDS)

        in_time(lambda: parts_of(old).loaded.uncache() or True)
    reader.join(SECONDS)

    assert old.files().num_rows


def test_a_failure_is_shared_and_not_kept():
    flight, wait, go = SingleFlight(), threading.Event(), threading.Event()
    failures = []

    def fail():
        wait.set()
        assert go.wait(SECONDS)
        raise StorageError("no answer")

    def ask():
        try:
            flight.get("a", fail)
        except StorageError as error:
            failures.append(error)

    threads = [in_thread(ask)]
    assert wait.wait(SECONDS)
    threads.append(in_thread(ask))
    go.set()
    for thread in threads:
        thread.join(SECONDS)

    assert [str(failure) for failure in failures] == ["no answer", "no answer"]
    assert flight.get("a", lambda: 7) == 7


def test_who_waits_for_a_thread_that_is_cancelled_makes_the_value_itself():
    flight, wait, go = SingleFlight(), threading.Event(), threading.Event()
    found = []

    def cancelled():
        wait.set()
        assert go.wait(SECONDS)
        raise KeyboardInterrupt

    def first():
        with pytest.raises(KeyboardInterrupt):
            flight.get("a", cancelled)

    threads = [in_thread(first)]
    assert wait.wait(SECONDS)
    threads.append(in_thread(lambda: found.append(flight.get("a", lambda: 7))))
    go.set()
    for thread in threads:
        thread.join(SECONDS)

    assert found == [7]


def test_an_interrupt_before_the_value_is_made_leaves_nobody_waiting(monkeypatch):
    class Interrupted:
        """A lock in which an interrupt comes as it is released."""

        def __init__(self):
            self._lock, self.left = threading.RLock(), 1

        def __enter__(self):
            self._lock.acquire()

        def __exit__(self, *_):
            self._lock.release()
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    monkeypatch.setattr("snapshot_explorer.core.single_flight.threading.Lock", Interrupted)
    flight = SingleFlight()
    monkeypatch.undo()

    with pytest.raises(KeyboardInterrupt):
        flight.get("a", lambda: 1)
    assert in_time(lambda: flight.get("a", lambda: 7)) == 7


def test_properties_of_two_tables_are_computed_at_the_same_time():
    both = threading.Barrier(2, timeout=SECONDS)

    class Table:
        @cached_property
        def listing(self):
            return both.wait()

    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(lambda table: (table.listing, table.listing), [Table(), Table()]))

    assert sorted(results) == [(0, 0), (1, 1)]


def test_a_cache_keeps_the_newest_values_and_none_that_was_computed_before_it_was_cleared():
    flight = SingleFlight(2)

    assert [flight.get(key, lambda key=key: key) for key in (1, 2, 3)] == [1, 2, 3]
    assert flight.keys() == [2, 3]
    assert flight.get(4, lambda: flight.forget_all() or 4) == 4
    assert flight.keys() == []
    assert flight.get(4, lambda: 5) == 5


def test_threads_that_need_a_schema_at_the_same_time_share_one_request(counted, memory_root):
    PaimonTable(*memory_root).commit([(1, "a")])
    schemas, both = Schemas(Storage(f"counted://{memory_root[1]}"), Layout()), threading.Barrier(8, timeout=SECONDS)

    with ThreadPoolExecutor(8) as threads:
        read = list(threads.map(lambda _: both.wait() >= 0 and schemas.pinned().by_id([0])[0], range(8)))

    assert all(schema is read[0] for schema in read)
    assert [request.path.rpartition("/")[2] for request in counted.requests] == ["schema-0"]
