"""What a folder contains: on every storage, only what it lists; and every failure to list it is an error."""

import errno
import os
from types import SimpleNamespace
from unittest import mock

import pytest

from snapshot_explorer.errors import MissingFileError, StorageError, UnsupportedFeatureError
from snapshot_explorer.storage import Entry, Storage, listings, retries
from snapshot_explorer.storage import files as storage_files
from tests.inner.storage import ObjectStoreFiles
from tests.support.key_server import STORES, KeyServer, failures_of, stores

ALL = STORES
"""The stores; those whose packages take long only where stores are tested."""
OF_KEYS = [store for store in ALL if store != "web"]
"""The stores that have keys, and no folders."""


@pytest.fixture(scope="module")
def server():
    running = KeyServer({"t/log/1": b"1", "t/log/2": b"22", "t/data/part=1/a": b"333", "other/1": b"1"})
    yield running
    running.close()


@pytest.fixture(scope="module")
def storages(server):
    """The Storage of each store, made once: some packages take half a second."""
    known = {}

    def storage(name):
        url, options, package = stores(server)[name]
        pytest.importorskip(package or "snapshot_explorer")
        if name not in known:
            known[name] = Storage(f"{url}/t", options)
            is_own = isinstance(known[name]._connection().files, ObjectStoreFiles)
            assert is_own == (package is None)
        return known[name]

    return storage


@pytest.fixture(autouse=True)
def _restored(server):
    objects = dict(server.objects)
    yield
    server.objects, server.fault = objects, lambda prefix: None


@pytest.mark.parametrize("store", ALL)
def test_a_folder_has_what_is_listed_and_what_is_not_listed_is_absent(storages, store):
    storage = storages(store)

    assert [(entry.name, entry.is_folder) for entry in storage.list("")] == [("data", True), ("log", True)]
    assert [entry.name for entry in storage.list("log")] == ["1", "2"]
    assert storage.list("nowhere") == storage.list("lo") == []
    assert storage.folders("data") == ["part=1"]
    assert (storage.exists("log/1"), storage.exists("log/3"), storage.exists("log")) == (True, False, False)
    assert storage.read_present(["log/2", "log/3"]) == [b"22", None]


@pytest.mark.parametrize("store", ALL)
def test_no_failure_of_a_listing_is_an_empty_folder(storages, server, store, monkeypatch):
    monkeypatch.setattr(retries, "FIRST_WAIT", 0)
    storage = storages(store)
    answers = {}

    for failure in failures_of(store):
        server.fault = lambda prefix, failure=failure: failure
        for ask, folder in ((storage.list, "log"), (storage.folders, "nowhere")):
            try:
                answers[failure, folder] = ask(folder)
            except StorageError as error:
                is_absence = isinstance(error, MissingFileError)
                answers[failure, folder] = is_absence, folder in str(error), str(error).isprintable()

    assert set(answers.values()) == {(False, True, True)}, answers


@pytest.mark.parametrize("store", OF_KEYS)
def test_whether_a_file_exists_is_unknown_where_the_listing_fails(storages, server, store):
    storage = storages(store)

    for failure in ("page as XML", "missing page", "error in a success", "denied", "gone"):
        server.fault = lambda prefix, failure=failure: failure
        with pytest.raises(StorageError):
            storage.exists("log/3")


@pytest.mark.parametrize("store", OF_KEYS)
@pytest.mark.parametrize("code", ["page", "plain"])
def test_a_gateway_that_answers_404_to_everything_is_not_an_empty_table(storages, server, store, code):
    storage = storages(store)
    body = b"default backend - 404" if code == "plain" else b"<html><body><h1>404</h1></body></html>"

    with mock.patch.object(KeyServer, "serve", lambda self, request: self._send(request, 404, "text/html", body)):
        for ask in (storage.list, storage.exists, storage.read):
            with pytest.raises(StorageError) as caught:
                ask("log/3")
            assert not isinstance(caught.value, MissingFileError)
        with pytest.raises(StorageError):
            storage.read_present(["log/3"])


ODD = {
    "an empty part": ("t/log//x", "log", "/x"),
    "two empty parts": ("t/log///x", "log", "//x"),
    "an empty part deeper": ("t/log//a/b/x", "log", "/a/b/x"),
    "a dot": ("t/log/./x", "log", "./x"),
    "two dots": ("t/log/../x", "log", "../x"),
    "two dots below a folder": ("t/a/../x", "a", "../x"),
    "a drive": ("t/C:/x", "", "C:/x"),
    "a backslash at the beginning": ("t/\\log/x", "", "\\log/x"),
    "dots between backslashes": ("t/a\\..\\b/x", "", "a\\..\\b/x"),
    "a slash at the end": ("t/log/x/", "log/x", ""),
    "only a dot": ("t/log/.", "log", "."),
    "only two dots": ("t/log/..", "log", ".."),
    "three dots": ("t/log/...", "log", "..."),
    "a tab": ("t/log/a\tb", "log", "a\tb"),
    "a line break": ("t/log/a\nb", "log", "a\nb"),
    "a carriage return": ("t/log/a\rb", "log", "a\rb"),
    "a control character": ("t/log/a\x01b\x1f", "log", "a\x01b\x1f"),
    "escapes": ("t/log/100%/%2F+%25", "log/100%", "%2F+%25"),
    "markup": ("t/log/<a>&amp;'\"", "log", "<a>&amp;'\""),
    "what a URL means": ("t/log/a?b=1#c", "log", "a?b=1#c"),
    "blanks": ("t/log/ a  b ", "log", " a  b "),
    "plus": ("t/log/a+b c", "log", "a+b c"),
    "a glob": ("t/log/*[x]{y}", "log", "*[x]{y}"),
    "other letters": ("t/log/é漢😀", "log", "é漢😀"),
    "a byte order mark": ("t/log/\ufeffx", "log", "\ufeffx"),
    "a long key": ("t/log/" + "x" * 1000, "log", "x" * 1000),
}


@pytest.mark.parametrize("store", OF_KEYS)
def test_keys_are_listed_as_they_are(storages, server, store):
    storage = storages(store)
    healthy = dict(server.objects)
    found, sizes = {}, {}

    for kind, (key, folder, name) in ODD.items():
        server.objects = healthy | {key: b"four"}
        names = {entry.name: entry for entry in storage.list(folder)}
        found[kind] = name in names and not names[name].is_folder and names[name].size_bytes == 4
        if folder == "log":
            assert {"1", "2"} < names.keys(), kind
        many = [f"{number}/x" for number in range(40)]
        sizes[kind] = storage.sizes([*many, f"{folder}/{name}" if folder else name])

    assert [kind for kind, is_listed in found.items() if not is_listed] == []
    assert {kind: list(size.values())[-1:] for kind, size in sizes.items() if 4 not in size.values()} == {}


@pytest.mark.parametrize("store", OF_KEYS)
@pytest.mark.parametrize("key", ["/x", "//x", "/t/log/1", "./x", "../x"])
def test_keys_at_the_root_of_a_bucket_are_listed_as_they_are(server, store, key):
    url, options, package = stores(server)[store]
    pytest.importorskip(package or "snapshot_explorer")
    server.objects |= {key: b"1"}

    names = [entry.name for entry in Storage(url, options).list("")]

    assert names == sorted([key, "other", "t"])


@pytest.mark.parametrize("store", OF_KEYS)
def test_an_object_without_bytes_that_represents_a_folder_is_not_a_file(storages, server, store):
    storage = storages(store)
    server.objects |= {"t/log/": b"", "t/log//": b"", "t/empty/": b""}

    assert [entry.name for entry in storage.list("log")] == ["1", "2"]
    assert storage.list("empty") == []
    assert Entry("empty", is_folder=True, size_bytes=None, modified=None) in storage.list("")


@pytest.mark.parametrize("store", OF_KEYS)
def test_a_key_that_no_folder_contains_is_read_and_has_a_size(storages, server, store):
    keys = ["log//x", "log/./x", "log//a/b//c", "new//x", "log///x"]
    server.objects |= {f"t/{key}": key.encode() for key in keys}
    storage = storages(store)

    sizes = storage.sizes(["log/1", *keys])
    assert {key: sizes.get(key) for key in ("log/1", *keys)} == {"log/1": 1, **{key: len(key) for key in keys}}
    readable = [key for key in keys if "/./" not in key or store != "azure by adlfs"]  # it resolves the dot itself
    assert storage.read_many(readable) == [key.encode() for key in readable]
    assert {key: storage.sizes([key]).get(key) for key in keys} == {key: len(key) for key in keys}


@pytest.mark.parametrize("store", OF_KEYS)
def test_a_file_is_not_a_folder(server, store):
    url, options, package = stores(server)[store]
    pytest.importorskip(package or "snapshot_explorer")

    with pytest.raises(StorageError, match=r"is a file, not a folder. Give the table's own folder"):
        Storage(f"{url}/t/log/1", options).list("")
    with pytest.raises(StorageError, match=r"is a file, not a folder"):
        Storage(f"{url}/t/log/1", options).folders("")


def test_a_key_that_is_not_utf_8_is_listed_with_an_escape(storages, server):
    server.objects |= {"t/log/a\udcff": b"1", "t/\udcfe/b": b"1"}
    storage = storages("s3")
    server.fault = lambda prefix: None

    assert "a\\xff" in [entry.name for entry in storage.list("log")]
    assert "\\xfe" in storage.folders("")
    assert [entry.name for entry in storage.list("\\xfe")] == ["b"]
    with pytest.raises((StorageError, UnsupportedFeatureError)):
        storage.read("log/a\\xff")


PAGES = {
    "the same token": lambda number: "again",
    "two tokens": lambda number: f"again {number % 2}",
    "new tokens": lambda number: f"token {number}",
}


def page_after_page(token):
    """Return what answers a listing with page after page, and how often it did."""
    tokens = []

    def page(listing):
        tokens.append(token(len(tokens)))
        return listing.page_of(f"{listing.prefix}{tokens[-1] if token is NUMBERED else 1}", tokens[-1])

    return page, tokens


NUMBERED = "{}".format


@pytest.mark.parametrize("store", OF_KEYS)
@pytest.mark.parametrize("kind", PAGES)
def test_a_listing_without_an_end_is_an_error(storages, server, store, kind):
    page, tokens = page_after_page(PAGES[kind])
    storage = storages(store)
    server.fault = lambda prefix: page

    with pytest.raises(StorageError, match="the listing of the storage has no end: its pages repeat themselves"):
        storage.list("log")

    assert len(tokens) < 110


def test_a_listing_has_a_page_limit(storages, server, monkeypatch):
    monkeypatch.setattr(listings, "_MOST_PAGES", 20)
    page, tokens = page_after_page(NUMBERED)
    server.fault = lambda prefix: page

    with pytest.raises(StorageError, match="the listing of the storage has more than 20 pages"):
        storages("s3").list("log")

    assert len(tokens) == 20


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ESTALE, errno.ENOTCONN, errno.EMFILE])
def test_a_local_folder_that_cannot_be_listed_is_not_empty(tmp_path, number):
    with mock.patch.object(storage_files.os, "scandir", side_effect=OSError(number, os.strerror(number))):
        for ask in (Storage(tmp_path).list, Storage(tmp_path).folders):
            with pytest.raises(StorageError) as caught:
                ask("a")
            assert not isinstance(caught.value, MissingFileError)


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ESTALE, errno.EHOSTDOWN])
def test_a_link_whose_target_cannot_be_read_is_not_left_out(tmp_path, number):
    def fail(**_):
        raise OSError(number, os.strerror(number))

    link = SimpleNamespace(name="link", path=str(tmp_path / "link"), is_symlink=lambda: True, is_dir=fail, stat=fail)
    listed = mock.MagicMock()
    listed.return_value.__enter__.return_value = [link]

    with mock.patch.object(storage_files.os, "scandir", listed), pytest.raises(StorageError):
        Storage(tmp_path).list("")


def test_a_folder_below_a_file_is_absent_and_a_file_is_not_a_folder(tmp_path):
    (tmp_path / "file").write_bytes(b"1")

    assert Storage(tmp_path).list("file/below") == []
    assert Storage(tmp_path).list("file/below/deeper") == []
    with pytest.raises(StorageError, match="is a file, not a folder"):
        Storage(tmp_path).list("file")


def test_what_the_caller_was_handling_does_not_count_as_an_answer(counted, memory_root):
    filesystem, root = memory_root
    filesystem.pipe_file(f"{root}/a/b", b"1")
    storage = Storage(f"counted://{root}")

    for handled in (ConnectionError("of the caller"), TimeoutError(), PermissionError("no"), OSError(5, "no")):
        try:
            raise handled
        except OSError:
            assert storage.list("nowhere") == []
            assert not storage.exists("nowhere")
            assert storage.read_present(["nowhere", "a/b"]) == [None, b"1"]


INDEXES = {
    "nginx": '<html><head><title>Index of /x/t/</title></head><body><h1>Index of /x/t/</h1><pre><a href="../">../</a>\n'
    '<a href="a%20b/">a b/</a>  11-Nov-2026 00:00  -\n<a href="c.parquet">c.parquet</a> 1\n</pre></body></html>',
    "Apache": '<!DOCTYPE HTML><html><head><title>Index of /x/t</title></head><body><table><tr><th><a href="?C=N;O=D">'
    'Name</a></th></tr><tr><td><a href="/web/">Parent Directory</a></td></tr><tr><td><a href="a%20b/">a b/</a></td>'
    '</tr><tr><td><a href="c.parquet">c.parquet</a></td></tr></table></body></html>',
    "Python": "<!DOCTYPE HTML><html><head><title>Directory listing for /web/t/</title></head><body><ul>"
    '<li><a href="a%20b/">a b/</a></li><li><a href="c.parquet">c.parquet</a></li></ul></body></html>',
    "Caddy": '<!DOCTYPE html><html><head><title>t/</title></head><body><a href="..">Up</a><a href="./a%20b/">a b</a>'
    '<a href="./c.parquet">c.parquet</a></body></html>',
    "IIS": '<html><head><title>host - /web/t/</title></head><body><A HREF="/web/">[To Parent Directory]</A><br>'
    '<A HREF="/web/t/a%20b/">a b</A> <A HREF="/web/t/c.parquet">c.parquet</A></body></html>',
    "Jetty": '<html><head><title>Directory: /web/t/</title></head><body><a href="/web/t/a%20b/">a b/</a>'
    '<a href="/web/t/c.parquet">c.parquet</a></body></html>',
}
NO_INDEXES = {
    "a login": "<html><head><title>Sign in</title></head><body><a href='help'>Help</a></body></html>",
    "a portal with the words": "<html><head><title>Company directory</title></head><body><a href='a'>a</a></html>",
    "another folder": "<html><head><title>Index of /elsewhere/</title></head><body><a href='a'>a</a></body></html>",
    "half a listing": INDEXES["nginx"][:-60],
    "an application": "<!doctype html><html><head><title>App</title><script src=/a.js></script></head></html>",
    "JSON": '[{"name": "c.parquet"}]',
}


@pytest.mark.parametrize("kind", INDEXES)
def test_the_pages_of_web_servers_are_listings(storages, server, kind):
    server.fault = lambda prefix: lambda listing: (200, "text/html", INDEXES[kind])

    listed = storages("web").list("")

    assert [(entry.name, entry.is_folder) for entry in listed] == [("a b", True), ("c.parquet", False)]


@pytest.mark.parametrize("kind", NO_INDEXES)
def test_other_pages_are_not_listings(storages, server, kind):
    server.fault = lambda prefix: lambda listing: (200, "text/html", NO_INDEXES[kind])

    with pytest.raises(StorageError, match="the web server did not answer with a page that lists a folder"):
        storages("web").list("")
