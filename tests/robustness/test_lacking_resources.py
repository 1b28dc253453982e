"""A machine without memory, threads, disk space or free file descriptors: said as such, not as a damaged table."""

import errno
import resource
import shutil
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import diff, find_tables, open_lake, open_table, samples, sql, twins
from snapshot_explorer.engines import duckdb_sessions
from snapshot_explorer.errors import CorruptTableError, ResourceError, StorageError
from snapshot_explorer.storage import Storage
from tests.support import filesystems
from tests.support.delta.table_builder import DeltaTable

DELTA = samples.path("payments")
CALLS = {
    "load": lambda table: table.current.to_arrow(),
    "pandas": lambda table: table.current.to_pandas(),
    "count": lambda table: table.current.count("amount > 3"),
    "diff": lambda table: table.diff_rows(2, "latest"),
    "sql": lambda table: sql("select sum(amount) from t", {"t": table}),
    "diff of two": lambda table: diff(table.at(2), table.at(5), preview=False),
    "blame": lambda table: table.blame("amount > 3"),
    "trace": lambda table: table.trace("amount > 3"),
    "bisect": lambda table: table.bisect("count(*) > 10000"),
    "history": lambda table: table.history().to_arrow(),
}
LACKS = {
    "malloc": (pa.ArrowMemoryError("malloc of size 4096000 failed"), "there is not enough memory. Read fewer columns"),
    "python": (MemoryError(), "there is not enough memory. Read fewer columns"),
    "numpy": (MemoryError("Unable to allocate 3.81 MiB for an array"), "there is not enough memory. Read fewer"),
    "system": (OSError(errno.ENOMEM, "Cannot allocate memory"), "there is not enough memory. Read fewer columns"),
    "threads": (RuntimeError("can't start new thread"), "no further thread can be started. End what else runs threads"),
    "disk": (OSError(errno.ENOSPC, "No space left on device"), "there is no space left on the disk. Free some"),
    "quota": (OSError(errno.EDQUOT, "Disk quota exceeded"), "there is no space left on the disk. Free some"),
    "files": (OSError(errno.EMFILE, "Too many open files"), "too many files are open. Close what else has files open"),
    "all files": (OSError(errno.ENFILE, "Too many open files in system"), "too many files are open."),
}


@pytest.fixture
def lacking(register, memory_root):
    """A function that returns the table `payments`, and from then on has reads of its data files raise an error."""
    filesystem, root = memory_root
    filesystem.put(DELTA, f"{root}/payments", recursive=True)

    class Lacking(filesystems.counting("lacking")):
        error = None

        def record_request(self, kind, path, content=b""):
            if self.error is not None and path.endswith(".parquet"):
                raise self.error
            super().record_request(kind, path, content)

    def opened(error):
        Lacking.error = None
        table = open_table(f"lacking://{root}/payments")
        assert table.current.schema.columns
        Lacking.error = error
        return table

    register(Lacking)
    return opened


@pytest.mark.parametrize("lack", LACKS)
def test_what_a_reader_lacks_is_no_damage_of_the_file(lacking, lack):
    error, message = LACKS[lack]

    with pytest.raises(StorageError if isinstance(error, OSError) else ResourceError) as caught:
        lacking(error).current.to_arrow()

    assert "could not be read" in str(caught.value) or "Could not read" in str(caught.value)
    assert ".parquet" in str(caught.value)
    assert message in str(caught.value)
    assert "cut short" not in str(caught.value)


@pytest.mark.parametrize("size", [9223372036854775807, 1152921504606846976])
def test_memory_that_no_machine_has_is_a_claim_of_a_damaged_file(monkeypatch, size):
    table = open_table(DELTA)
    assert table.current.schema.columns

    def refuse(*_, **__):
        raise pa.ArrowMemoryError(f"malloc of size {size} failed")

    for name in ("iter_batches", "read_row_group", "read_row_groups", "read"):
        monkeypatch.setattr(pq.ParquetFile, name, refuse)
    with pytest.raises(CorruptTableError, match=r"\.parquet cannot be read as parquet: .*alloc of size"):
        table.at("latest~1").to_arrow()


def test_a_file_that_could_not_be_verified_for_lack_of_memory_is_not_called_unreadable(lacking):
    with pytest.raises(ResourceError, match="there is not enough memory"):
        lacking(pa.ArrowMemoryError("malloc of size 4096000 failed")).verify("bytes")


def failure_of(call):
    """Return the message of the ResourceError that a call raises; None if it needs no thread."""
    try:
        call()
    except ResourceError as error:
        return str(error)
    return None


@pytest.mark.parametrize("call", CALLS)
def test_a_call_without_a_thread_for_it_says_so(call, monkeypatch):
    table = open_table(DELTA)

    def refuse(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        message = failure_of(lambda: CALLS[call](table))

    assert message is None or "no further thread can be started" in message
    CALLS[call](table)


def test_functions_without_a_table_say_what_they_lack(tmp_path, monkeypatch):
    shutil.copytree(samples.path("invoices"), tmp_path / "invoices")

    def refuse(*_, **__):
        raise MemoryError

    monkeypatch.setattr(Storage, "__init__", refuse)
    for call in (open_table, find_tables, open_lake, twins):
        with pytest.raises(
            ResourceError, match=r"(open_table|find_tables|open_lake|twins) did not finish: there is not enough memory"
        ):
            call(str(tmp_path / "invoices"))


@contextmanager
def limited(kind, number):
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (number, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


def test_a_full_folder_for_temporary_files_is_said_with_what_to_set(tmp_path):
    written = DeltaTable(None, tmp_path)
    written.append([(number, "x" * number) for number in range(4)])
    written.append([(9, "y")])
    table = open_table(written.root)
    table.diff_rows(1, 2, memory_limit=10)  # everything that it needs is loaded

    with (
        pytest.raises(ResourceError, match=r"^Table.diff_rows did not finish: there is no space left .* TMPDIR"),
        limited(resource.RLIMIT_FSIZE, 100),
    ):
        table.diff_rows(1, 2, memory_limit=10)


def test_a_table_that_is_read_with_too_many_open_files_is_not_called_missing(tmp_path):
    shutil.copytree(DELTA, tmp_path / "t")
    table = open_table(tmp_path / "t")
    table.at(3).to_arrow()  # everything that it needs is loaded

    with pytest.raises(StorageError, match="too many files are open"), limited(resource.RLIMIT_NOFILE, 3):
        table.at("latest").to_arrow()


def test_a_query_without_memory_is_not_called_wrong(monkeypatch):
    table = open_table(DELTA)
    monkeypatch.setattr(duckdb_sessions, "memory_limit_of", lambda connection, share: "50MB")
    monkeypatch.setattr(duckdb_sessions, "os", SimpleNamespace(getpid=lambda: -2))  # has no open instance

    with pytest.raises(ResourceError, match="^The query did not finish: there is not enough memory. Read fewer"):
        sql("select list(range) from t, range(3000000)", {"t": table})
