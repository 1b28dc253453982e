"""Files that a writer replaces between two reads of them: their parts are never mixed, whatever reads them."""

import io
import os
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import open_table, sql
from snapshot_explorer.errors import MissingFileError, StorageError
from snapshot_explorer.storage import Storage, load_of
from tests.support.delta.table_builder import DeltaTable, add
from tests.support.store_server import served

CLIENTS = ("s3", "s3fs", "azure", "azure sas", "adlfs", "google", "gcsfs", "web")
PACKAGES = {"s3fs": "s3fs", "adlfs": "adlfs", "gcsfs": "gcsfs", "web": "aiohttp"}
OLD, NEW = (bytes([value]) * (3 << 20) for value in b"AB")
CHANGES = {
    "the same size": NEW,
    "longer": NEW + NEW,
    "shorter": NEW[: 2 << 20],
    "one other byte": OLD[:-1] + b"x",
    "empty": b"",
}
REPLACED = "it was replaced while it was read, so its parts do not belong together. Repeat the call"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with served(tmp_path_factory.mktemp("replaced")) as running:
        yield running


@pytest.fixture(scope="module", params=CLIENTS)
def storage(request, server):
    """A Storage of one of the clients, which takes long to connect."""
    if request.param in PACKAGES:
        pytest.importorskip(PACKAGES[request.param])
    root, options = server.clients()[request.param]
    return Storage(root, options)


@pytest.fixture
def store(server, storage):
    """The server, and a Storage of it."""
    server.answering, server.requests = None, []
    server.contents.clear()
    server.contents["f"] = OLD
    return server, storage


@pytest.mark.stores
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("size_bytes", [None, len(OLD)], ids=["unknown size", "known size"])
def test_a_part_of_another_content_is_refused(store, change, size_bytes):
    server, storage = store
    with storage.open("f", size_bytes=size_bytes) as opened:
        opened.seek(0)
        assert opened.read(1000) == OLD[:1000]
        server.contents["f"] = CHANGES[change]

        opened.seek(1 << 20)
        with pytest.raises(StorageError) as caught:
            opened.read(1000)
    assert str(caught.value).startswith("Could not read f in ")
    assert REPLACED in str(caught.value)
    assert not isinstance(caught.value, MissingFileError)


@pytest.mark.stores
def test_parts_that_are_fetched_ahead_are_refused_too(store):
    server, storage = store
    with storage.open("f", size_bytes=len(OLD)) as opened:
        server.contents["f"] = NEW

        with pytest.raises(StorageError, match=REPLACED):
            load_of(opened)([(0, 1000), (1 << 20, (1 << 20) + 10)])


@pytest.mark.stores
def test_a_request_for_another_part_says_what_the_file_was(store):
    server, storage = store
    with storage.open("f", size_bytes=len(OLD)) as opened:
        opened.seek(0)
        opened.read(10)

    # One that took too long is asked for again, and may be recorded last.
    asked = [request for request in server.requests if request.method == "GET" and request.key == "f"]
    said = [{**{name.lower(): value for name, value in one.headers.items()}, **one.query} for one in asked]
    known = {one.get("if-match") or one.get("ifGenerationMatch") for one in said}
    etag = server.headers_of(OLD)
    assert known in ({None, etag["ETag"]}, {None, etag["x-goog-generation"]})


@pytest.mark.stores
def test_a_content_that_is_there_again_is_read(store):
    server, storage = store
    with storage.open("f", size_bytes=len(OLD)) as opened:
        server.contents["f"] = NEW
        server.contents["f"] = bytes(OLD)
        opened.seek(0)

        assert opened.read(1000) == OLD[:1000]


@pytest.mark.stores
def test_a_file_that_was_removed_while_it_was_read_is_missing(store):
    server, storage = store
    with storage.open("f", size_bytes=len(OLD)) as opened:
        del server.contents["f"]
        server.contents["other"] = b"1"

        opened.seek(0)
        with pytest.raises(StorageError, match="f does not exist|could not|Could not"):
            opened.read(1000)


@pytest.mark.stores
@pytest.mark.parametrize("header", [None, 'W/"weak"'], ids=["no ETag", "a weak ETag"])
def test_a_web_server_without_a_strong_etag_is_read(server, header):
    server.contents["f"] = OLD
    headers = {} if header is None else {"ETag": header}

    def answering(request):
        if request.key != "f" or request.method == "HEAD":
            return False
        assert "If-Match" not in request.headers
        plain = server.headers_of
        server.headers_of = lambda content: {**{k: v for k, v in plain(content).items() if k != "ETag"}, **headers}
        try:
            server.send_object(request)
        finally:
            server.headers_of = plain
        return True

    server.answering = answering
    root, options = server.clients()["web"]
    with Storage(root, options).open("f", size_bytes=len(OLD)) as opened:
        assert opened.read() == OLD
    server.answering = None


def append(path):
    with path.open("ab") as file:
        file.write(b"x")


def overwrite(path):
    with path.open("r+b") as file:
        file.seek(1 << 20)
        file.write(b"x" * 10)


LOCAL_CHANGES = {
    "overwritten": overwrite,
    "cut short": lambda path: os.truncate(path, 2 << 20),
    "emptied": lambda path: path.write_bytes(b""),
    "appended to": append,
    "written again": lambda path: path.write_bytes(NEW),
}


@pytest.mark.parametrize("change", LOCAL_CHANGES)
def test_a_local_file_that_is_written_to_while_it_is_open_is_refused(tmp_path, change):
    path = tmp_path / "f"
    path.write_bytes(OLD)
    os.utime(path, (1_700_000_000, 1_700_000_000))

    opened = Storage(tmp_path).open("f")
    assert opened.read(1000) == OLD[:1000]
    LOCAL_CHANGES[change](path)
    opened.read(1000)

    with pytest.raises(StorageError, match=f"^Could not read f in .*{REPLACED}"):
        opened.close()


def test_a_local_file_that_another_one_takes_the_place_of_is_read_as_it_was(tmp_path):
    (tmp_path / "f").write_bytes(OLD)
    (tmp_path / "g").write_bytes(NEW)

    with Storage(tmp_path).open("f") as opened:
        assert opened.read(1000) == OLD[:1000]
        (tmp_path / "g").replace(tmp_path / "f")
        (tmp_path / "h").write_bytes(b"1")

        assert opened.read() == OLD[1000:]


ROWS = 200_000


def parquet(value):
    """Return a file of two columns with one value in both."""
    out = io.BytesIO()
    table = pa.table({"x": np.full(ROWS, value), "y": np.full(ROWS, value)})
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table, out, row_group_size=ROWS // 4, **plain)
    return out.getvalue()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The folder of a table with one file of many rows."""
    folder = tmp_path_factory.mktemp("table")
    written = DeltaTable(None, folder / "t", fields=[("x", "long"), ("y", "long")])
    content = parquet(1)
    written.write("f.parquet", content)
    written.commit(add("f.parquet", size=len(content), rows=None))
    return folder


def read_or_refused(read):
    """Return what a call returns; None if it says that the file was replaced."""
    try:
        return read()
    except StorageError as error:
        message = str(error)
    assert re.search(r"Could not read f\.parquet in .*" + REPLACED, message)
    return None


@pytest.mark.stores
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("after", [1, 2])
def test_rows_of_two_contents_are_never_mixed(table, client, after):
    pytest.importorskip(PACKAGES.get(client, "os"))
    old, new = parquet(1), parquet(2)
    assert len(old) == len(new)
    seen = []
    with served(table) as server:

        def answering(request):
            if request.key and request.key.endswith(".parquet"):
                seen.append(request)
                server.send_object(request, old if len(seen) <= after else new)
                return True
            return False

        server.answering = answering
        root, options = server.clients()[client]
        rows = read_or_refused(lambda: open_table(f"{root}/t", storage_options=options).at("latest").to_arrow())
        if rows is not None:
            assert len(seen) <= after
            assert set(rows["x"].to_pylist()) | set(rows["y"].to_pylist()) == {1}


@pytest.mark.parametrize("read", ["rows", "sql", "count"])
def test_rows_of_a_local_table_are_never_mixed(table, tmp_path, read, monkeypatch):
    shutil.copytree(table / "t", tmp_path / "t")
    path = tmp_path / "t" / "f.parquet"
    new, opened = parquet(2), open_table(tmp_path / "t").at("latest")

    class Replacing(pq.ParquetFile):
        def __init__(self, *args, **named):
            super().__init__(*args, **named)
            path.write_bytes(new)  # after the footer was read

    monkeypatch.setattr(pq, "ParquetFile", Replacing)
    calls = {
        "rows": opened.to_arrow,
        "sql": lambda: sql("select count(*) c from t where x <> y", {"t": open_table(tmp_path / "t")}),
        "count": lambda: opened.count("x <> y"),
    }

    found = read_or_refused(calls[read])
    if read == "rows" and found is not None:
        assert found.num_rows == ROWS
        assert len(set(found["x"].to_pylist()) | set(found["y"].to_pylist())) == 1
    elif found is not None:
        assert int(found["c"][0] if read == "sql" else found) == 0
