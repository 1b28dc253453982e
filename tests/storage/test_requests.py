"""How many requests a question costs, and how many bytes."""

import io
import os

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from snapshot_explorer.errors import StorageError
from snapshot_explorer.storage import Storage
from tests.support import filesystems


@pytest.fixture
def table(counted, memory_root):
    """A Storage of counted://, the class that counts, and a function that writes a file."""
    filesystem, root = memory_root

    def write(path, content):
        filesystem.pipe_file(f"{root}/{path}", content)

    return Storage(f"counted://{root}"), counted, write


def noise(rows):
    """A column of eight bytes a row that nothing makes smaller."""
    return pa.Array.from_buffers(pa.binary(8), rows, [None, pa.py_buffer(os.urandom(8 * rows))])


def kinds(counted):
    return [request.kind for request in counted.requests]


def test_a_read_is_one_request(table):
    storage, counted, write = table
    write("a", b"x")

    storage.read("a")
    storage.read_present(["a", "b"])

    assert kinds(counted) == ["get", "get", "get"]


def test_a_listing_is_one_request_also_of_a_folder_that_is_not_there(table):
    storage, counted, write = table
    write("a/b/c", b"x")

    storage.list("a")
    storage.list("nope")

    assert kinds(counted) == ["list", "list"]


def test_whether_a_file_exists_is_one_request(table):
    storage, counted, write = table
    write("a", b"x")

    storage.exists("a")
    storage.exists("b")

    assert kinds(counted) == ["info", "info"]


def test_making_a_storage_asks_nothing(counted):
    Storage("counted://nowhere/t", {"any": "option"})

    assert counted.requests == []


def test_what_we_decide_about_caches_may_stand_in_the_options(counted, memory_root):
    filesystem, root = memory_root
    options = {"skip_instance_cache": False, "use_listings_cache": True}

    assert Storage(f"counted://{root}", options).list("") == []
    filesystem.pipe_file(f"{root}/a", b"")
    assert len(Storage(f"counted://{root}", options).list("")) == 1


def test_many_files_are_read_at_once(register, memory_root):
    counted = register(filesystems.counting(latency=0.02))
    filesystem, root = memory_root
    for i in range(96):
        filesystem.pipe_file(f"{root}/{i}", b"x")

    Storage(f"counted://{root}").read_many([str(i) for i in range(96)])

    assert 8 < counted.most_at_once <= 32


def test_after_the_first_failure_no_new_file_is_requested(register):
    kind = register(filesystems.failing(PermissionError("no")))

    with pytest.raises(StorageError, match="Could not read f0 in"):
        Storage("failing://lake/t").read_many([f"f{i}" for i in range(10_000)])

    assert len(kind.asked) <= 100


def test_a_small_file_is_fetched_whole_when_it_is_opened(table):
    storage, counted, write = table
    write("a", os.urandom(1 << 20))

    with storage.open("a") as opened:
        opened.seek(5)
        opened.read(10)
        opened.read_at(10, 1000)

    assert kinds(counted) == ["info", "get"]


def test_a_size_from_metadata_saves_the_request_for_it(table):
    storage, counted, write = table
    write("a", b"x" * 1000)

    assert storage.open("a", size_bytes=1000).read() == b"x" * 1000

    assert kinds(counted) == ["get"]


def test_an_end_saves_the_request_for_the_size(table):
    storage, counted, write = table
    write("a", b"x" * 1000)

    assert storage.open("a", end=600).read() == b"x" * 600
    assert kinds(counted) == ["get"]
    assert storage.open("a", end=1200).read() == b"x" * 1000  # shorter than it should be: its size is checked
    assert kinds(counted) == ["get", "get", "info"]


def test_two_columns_of_a_parquet_file_cost_their_bytes(table):
    storage, counted, write = table
    rows = pa.table({f"c{i}": noise(50_000) for i in range(10)})
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, compression="none", use_dictionary=False)
    write("big.parquet", buffer.getvalue())

    with storage.open("big.parquet") as opened:
        read = pq.ParquetFile(opened).read(["c1", "c7"])

    assert read.equals(rows.select(["c1", "c7"]))
    assert kinds(counted)[0] == "info"
    assert len(counted.requests) <= 5
    wanted = 2 * 400_000 + 65_536
    assert sum(request.bytes for request in counted.requests) < wanted + 4 * 65_536


def test_a_column_of_an_orc_file_costs_few_requests(table):
    storage, counted, write = table
    rows = pa.table({f"c{i}": noise(20_000).cast(pa.binary()) for i in range(10)})
    buffer = io.BytesIO()
    orc.write_table(rows, buffer, compression="uncompressed")
    write("big.orc", buffer.getvalue())

    with storage.open("big.orc") as opened:
        read = orc.ORCFile(opened).read(["c3"])

    assert read.equals(rows.select(["c3"]))
    assert len(counted.requests) <= 8
    assert sum(request.bytes for request in counted.requests) < len(buffer.getvalue()) / 2


def test_an_error_while_an_open_file_is_read_is_reported_in_our_words(table, memory_root):
    storage, counted, write = table
    write("a", os.urandom(2 << 20))
    opened = storage.open("a")

    def fail(self, path, **_):
        raise PermissionError("token expired")

    counted.cat_file = fail
    with pytest.raises(StorageError, match="Could not read a in .*: PermissionError: token expired. Check the keys"):
        opened.read(10)


def test_every_question_works_over_a_store_that_refuses_writes(readonly, tmp_path):
    folder = tmp_path / "t"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "small").write_bytes(b"small")
    (folder / "a" / "big").write_bytes(b"b" * (2 << 20))
    storage = Storage(f"readonly://{folder}")
    before = {
        path: (path.read_bytes() if path.is_file() else None, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")
    }

    assert storage.read("a/small") == b"small"
    assert len(storage.read_many(["a/small", "a/big"])) == 2
    assert storage.read_present(["nope"]) == [None]
    assert len(storage.list("a")) == 2
    assert len(storage.list_many(["", "a", "nope"])) == 3
    assert storage.exists("a/small")
    assert storage.open("a/big").read(3) == b"bbb"
    assert storage.read(storage.resolve_external(f"readonly://{folder}/a/small")) == b"small"

    after = {
        path: (path.read_bytes() if path.is_file() else None, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")
    }
    assert after == before


@pytest.mark.parametrize("call", filesystems.WRITES)
def test_the_store_that_refuses_writes_refuses_each(readonly, call):
    filesystem = readonly()

    assert call == "_rm" or hasattr(fsspec.AbstractFileSystem, call) or hasattr(type(filesystem), call)
    with pytest.raises(filesystems.WriteAttempted):
        getattr(filesystem, call)("x")
