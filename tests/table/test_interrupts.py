"""Ctrl-C, as a stop button sends it, in the middle of a long call: it ends soon, and the next call is right."""

import signal
import threading
from contextlib import contextmanager

import pytest

from snapshot_explorer import open_table, sql
from snapshot_explorer.engines import duckdb_sessions
from tests.support import filesystems
from tests.support.canonical import canonical_rows
from tests.support.delta.table_builder import DeltaTable
from tests.support.paimon.table_builder import PaimonTable

COMMITS = 40
SECONDS = 60
"""When the threads of an interrupted call have ended at the latest: one of DuckDB's may still close what it read."""
CALLS = {
    "history": lambda table: table.history().to_arrow(),
    "load": lambda table: table.current.to_arrow(),
    "count": lambda table: table.current.count("id > 3 and name <> 'n7'"),
    "sql": lambda table: int(sql("select sum(id) as s from t", {"t": table})["s"][0]),
    "diff": lambda table: table.diff_rows(2, COMMITS).to_arrow(),
    "row history": lambda table: table.row_history().to_arrow(),
    "file changes": lambda table: table.at("latest").file_changes(since="earliest").to_arrow(),
    "lifetimes": lambda table: table.lifetimes().to_arrow(),
    "readability": lambda table: table.verify().versions.to_arrow(),
}


def delta(root):
    table = DeltaTable(*root)
    for number in range(COMMITS):
        table.append([(number, f"n{number}")])


def paimon(root):
    table = PaimonTable(*root)
    for number in range(COMMITS):
        table.commit([(number, f"n{number}")])


@pytest.fixture(scope="module", params=[delta, paimon])
def root(request):
    import fsspec

    filesystem, path = fsspec.filesystem("memory"), f"/interrupted-{request.param.__name__}"
    request.param((filesystem, path))
    yield path
    filesystem.rm(path, recursive=True)


@pytest.fixture
def stopping(register):
    """The class of stopping://, which reads memory:// and interrupts this process at the request `at`."""

    class Stopping(filesystems.counting("stopping", latency=0.001)):
        at = float("inf")
        once = threading.Lock()

        def record_request(self, kind, path, content=b""):
            super().record_request(kind, path, content)
            with self.once:  # threads ask: two of them would interrupt twice, the second time after the call
                if len(type(self).requests) < type(self).at:
                    return
                type(self).at = float("inf")
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
    yield register(Stopping)
    signal.signal(signal.SIGINT, before)


@contextmanager
def interrupted_soon():
    """Send SIGINT to the main thread half a second after the block began, which does not end before; expect its end."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the timer starts where it may end
        timer.start()
        yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from range(8_000_000) a(x) join range(8_000_000) b(y) on x <> y",  # one task, without end
        "select max(hash(x)) from range(1_000_000_000_000) a(x)",  # many tasks
    ],
)
def test_an_interrupted_query_ends_soon_and_answers_the_next_time(query):
    with interrupted_soon():
        sql(query, {})

    assert not any(thread.name.startswith("snapshot-sql") for thread in threading.enumerate())
    assert sql("select count(*) n from range(3)", {})["n"].tolist() == [3]


def test_a_statement_of_duckdb_in_the_main_thread_is_interrupted_as_any_call():
    with interrupted_soon(), duckdb_sessions.locked_cursor() as cursor:
        cursor.execute("select max(hash(x)) from range(1_000_000_000_000) a(x)")


def plain(answer):
    return answer if isinstance(answer, int) else canonical_rows(answer)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_interrupted_call_ends_soon_and_answers_the_next_time(stopping, root, call):
    table = open_table(f"stopping://{root}")
    before = len(stopping.requests)
    truth = plain(call(table))
    requests = len(stopping.requests) - before
    table = open_table(f"stopping://{root}")
    stopping.at = len(stopping.requests) + max(1, requests // 3)

    with pytest.raises(KeyboardInterrupt):
        call(table)
    for thread in threading.enumerate():
        if thread.name.startswith("snapshot-rows"):
            thread.join(SECONDS)

    assert not any(thread.name.startswith("snapshot-rows") for thread in threading.enumerate())
    assert plain(call(table)) == truth
