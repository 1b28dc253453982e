"""How many requests a question costs, and how many bytes."""

import io
import os
from concurrent.futures import ThreadPoolExecutor, wait

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from snapshot_explorer import storage as storage_package
from snapshot_explorer.arrow import parquet_batches
from snapshot_explorer.errors import StorageError
from snapshot_explorer.storage import Storage, load_of
from tests.inner.formats import OrcFile
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
    counted = register(filesystems.counting(in_rounds=True))
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


def test_files_that_are_read_ahead_are_requested_once_and_not_kept_longer_than_asked(table):
    storage, counted, write = table
    write("a", b"1")

    with storage.reading_ahead(["a", "none", "later"]):
        assert [storage.exists("a"), storage.exists("none")] == [True, False]
        assert storage.read_present(["a", "none"]) == [b"1", None]
        assert kinds(counted) == ["get", "get", "get"]
        write("a", b"2")
        assert storage.read("a") == b"2"
    write("later", b"3")

    assert storage.read("later") == b"3"


def test_a_failure_while_reading_ahead_is_not_told_in_a_later_call(register, monkeypatch):
    kind = register(filesystems.failing(PermissionError("no")))
    submitted = []

    class Pool(ThreadPoolExecutor):
        def submit(self, *arguments, **named):
            submitted.append(super().submit(*arguments, **named))
            return submitted[-1]

    monkeypatch.setattr(storage_package, "ThreadPoolExecutor", Pool)
    storage = Storage("failing://lake/t")
    with storage.reading_ahead(["a"]):
        wait(submitted)
    kind.cat_file = lambda *_, **__: b"1"

    assert storage.read("a") == b"1"


def test_a_folder_is_listed_once_for_two_listings_while_reading_ahead(table):
    storage, counted, write = table
    write("a/1", b"1")

    with storage.reading_ahead([]):
        assert storage.list("a") == storage.list("a")
        assert kinds(counted) == ["list"]
        write("a/2", b"2")
        assert len(storage.list("a")) == 2
    write("a/3", b"3")

    assert len(storage.list("a")) == 3


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
    assert len(counted.requests) <= 4
    wanted = 2 * 400_000 + 65_536
    assert sum(request.bytes for request in counted.requests) < wanted + 4 * 65_536


def parquet(rows, row_groups):
    """Return a parquet file of four columns of noise, and its table."""
    table = pa.table({f"c{i}": noise(rows) for i in range(4)})
    out = io.BytesIO()
    pq.write_table(
        table, out, compression="none", use_dictionary=False, row_group_size=rows // row_groups, write_statistics=False
    )
    return out.getvalue(), table


def read_in_batches(storage, path, size_bytes, columns):
    with storage.open(path, size_bytes=size_bytes) as opened:
        reader = pq.ParquetFile(opened)
        return pa.Table.from_batches(list(parquet_batches.batches(reader, columns, load=load_of(opened))))


def test_columns_are_fetched_in_a_round_after_the_footer_each_in_a_request_of_its_own(register, memory_root):
    counted = register(filesystems.counting(in_rounds=True))
    filesystem, root = memory_root
    content, table = parquet(60_000, 1)
    filesystem.pipe_file(f"{root}/a", content)

    read = read_in_batches(Storage(f"counted://{root}"), "a", len(content), ["c0", "c2"])

    assert read.equals(table.select(["c0", "c2"]))
    assert kinds(counted) == ["get", "get", "get"]
    assert counted.rounds == 2
    assert sum(request.bytes for request in counted.requests) < 2 * 480_000 + 140_000


def test_row_groups_are_fetched_ahead_within_a_budget_of_bytes(register, memory_root, monkeypatch):
    filesystem, root = memory_root
    content, table = parquet(2_400_000, 3)  # 25 MB each: more than are decoded together
    filesystem.pipe_file(f"{root}/a", content)
    most = {}
    for budget in (0, 30_000_000):
        monkeypatch.setattr(storage_package, "AHEAD_BYTES", budget)
        counted = register(filesystems.counting(latency=0.01))
        storage = Storage(f"counted://{root}")
        with storage.open("a", size_bytes=len(content)) as opened:
            for batch in parquet_batches.batches(pq.ParquetFile(opened), table.column_names, load=load_of(opened)):
                held = sum(len(one.result()) for one in opened._content.loaded.values())
                most[budget] = max(most.get(budget, 0), held)
                assert batch.num_rows
        assert counted.most_bytes_at_once <= most[budget]

    group = len(content) // 3 + 1000
    assert most[0] <= group
    assert group < most[30_000_000] <= 2 * group


def test_what_was_fetched_ahead_is_given_back_when_a_file_is_closed(table):
    storage, _, write = table
    content, _ = parquet(60_000, 2)
    write("a", content)
    budget = storage._connection().ahead

    with storage.open("a", size_bytes=len(content)) as opened:
        load_of(opened)([(0, 1000)], [(500_000, 600_000)])
        assert not budget.take(storage_package.AHEAD_BYTES)

    assert budget.take(storage_package.AHEAD_BYTES)


@pytest.mark.parametrize("recorded", [1 << 20, (2 << 20) + 7, 3 << 20])
def test_a_wrong_size_in_the_metadata_changes_no_byte_that_is_read(table, recorded):
    storage, _, write = table
    content = os.urandom(3 << 20)
    write("a", content[: 2 << 20])

    with storage.open("a", size_bytes=recorded) as opened:
        assert opened.size() == 2 << 20
        assert opened.read() == content[: 2 << 20]


def test_a_web_server_that_ignores_ranges_is_read(table):
    storage, counted, write = table
    content = os.urandom(3 << 20)
    write("a", content)
    whole = counted.cat_file
    counted.cat_file = lambda self, path, **_: whole(self, path)

    with storage.open("a", size_bytes=len(content)) as opened:
        opened.seek(1000)
        assert opened.read(70_000) == content[1000:71_000]


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


@pytest.mark.parametrize("columns", [["c0", "c1"], ["c1"]])
def test_stripes_of_an_orc_file_are_fetched_ahead_each_in_one_request(register, memory_root, columns):
    counted = register(filesystems.counting(in_rounds=True))
    filesystem, root = memory_root
    rows = pa.table({f"c{i}": noise(160_000).cast(pa.binary()) for i in range(2)})
    buffer = io.BytesIO()
    orc.write_table(rows, buffer, compression="uncompressed", stripe_size=700_000)
    stripes = orc.ORCFile(buffer).nstripes
    filesystem.pipe_file(f"{root}/a", buffer.getvalue())

    with Storage(f"counted://{root}").open("a", size_bytes=len(buffer.getvalue())) as opened:
        batches = [batch.select(columns) for batch in OrcFile(opened).batches(columns)]

    assert pa.Table.from_batches(batches).equals(rows.select(columns))
    assert stripes > 2
    assert len(counted.requests) == stripes + 1
    # The tail; the first two stripes; each of the others after the decoding of one.
    assert counted.rounds <= stripes


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
