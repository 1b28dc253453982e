"""Stores that are not trusted: no client follows a redirect elsewhere, or lets a server choose memory and time."""

import functools
import gzip
import itertools
import shutil
import time
from contextlib import contextmanager

import pyarrow as pa
import pytest

from snapshot_explorer import Limits, find_tables, open_table, samples
from snapshot_explorer.errors import LimitError, MissingFileError, SnapshotExplorerError, StorageError
from snapshot_explorer.storage import Storage, bounded_answers
from tests.inner.core import DEFAULT
from tests.support.outputs import shown_by
from tests.support.store_server import HOSTS, SECRETS, served

pytestmark = pytest.mark.stores
CLIENTS = ("s3", "s3fs", "azure", "azure sas", "adlfs", "google", "gcsfs", "web")
PACKAGES = {"s3fs": "s3fs", "adlfs": "adlfs", "gcsfs": "gcsfs", "web": "aiohttp"}
STATUSES = (301, 302, 303, 307, 308)
COMMIT = "payments/_delta_log/00000000000000000021.json"
BIG = "big.bin"


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A server that is asked, and two others, at another port and at another address."""
    folder = tmp_path_factory.mktemp("hostile")
    shutil.copytree(samples.path("payments"), folder / "payments")
    (folder / BIG).write_bytes(bytes(range(256)) * 2**13)
    with served(folder) as store, served(folder) as port, served(folder, HOSTS[1]) as host:
        yield store, (port, host)


@pytest.fixture
def store(stores, monkeypatch):
    """The server, as it is before it lies; what is slow for it is a fifth of a second."""
    monkeypatch.setattr(bounded_answers, "GRACE_SECONDS", 0.2)
    server, others = stores
    for one in (server, *others):
        one.answering, one.requests = None, []
        one.contents.clear()
    return server


@pytest.fixture(params=CLIENTS)
def client(request):
    if request.param in PACKAGES:
        pytest.importorskip(PACKAGES[request.param])
    return request.param


@functools.cache
def storage_of(store, client, folder="", limits=DEFAULT):
    """Return a Storage of a client, which takes long to connect."""
    root, options = store.clients()[client]
    return Storage(f"{root}/{folder}".rstrip("/"), options, limits=limits)


def check_secrets(error):
    assert not [text for text in shown_by(error) if any(secret in text for secret in SECRETS)]


READS = {
    "read": lambda storage: storage.read("a"),
    "read if present": lambda storage: storage.read_present(["a"]),
    "open": lambda storage: storage.open("a"),
    "open a large one": lambda storage: storage.open("a", size_bytes=5 << 20),
    "open a part": lambda storage: storage.open("a", end=100),
    "list": lambda storage: storage.list("f"),
    "names": lambda storage: storage.names_many(["f"]),
    "exists": lambda storage: storage.exists("a"),
    "sizes": lambda storage: storage.sizes(["f/a", "g/a"]),
}


@pytest.mark.parametrize("read", READS)
def test_a_redirect_to_another_server_is_an_error_and_nothing_arrives_there(stores, store, client, read):
    others = stores[1]
    targets = itertools.cycle(
        [
            *(f"{other.url}/lake/a" for other in others),
            others[0].url.replace("127.0.0.1", "localhost") + "/x?sig=canary-signature",
            f"//{others[0].host}/x",
        ]
    )
    storage = storage_of(store, client, "t")
    for status in STATUSES:
        store.answering = lambda request, status=status: request.redirect(next(targets), status) or True

        with pytest.raises(StorageError, match="redirect") as caught:
            READS[read](storage)

        assert not isinstance(caught.value, MissingFileError)
        assert "which is not followed" in str(caught.value)
        check_secrets(caught.value)
    assert [other.requests for other in others] == [[], []]


def test_a_table_whose_files_are_redirected_is_not_read(stores, store, client):
    root, options = store.clients()[client]
    table = open_table(f"{root}/payments", storage_options=options)
    other = stores[1][1]
    store.answering = lambda request: request.key and (request.redirect(other.url + request.target) or True)

    for question in (
        lambda: open_table(f"{root}/payments", storage_options=options),
        table.at("latest~1").to_arrow,
        lambda: table.verify("footers"),
        lambda: table.diff_rows(3, 5).to_arrow(),
    ):
        with pytest.raises(StorageError, match="redirect"):
            question()
    assert other.requests == []


@pytest.mark.parametrize("client", ["web", "gcsfs"])
def test_a_redirect_within_a_server_is_followed(store, client):
    pytest.importorskip(PACKAGES[client])
    moved = []

    def answering(request):
        if request.key == COMMIT and not moved:
            moved.append(request)
            request.redirect(request.target, 302)
            return True
        return False

    store.answering = answering

    assert storage_of(store, client).read(COMMIT) == (store.folder / COMMIT).read_bytes()
    assert moved


@pytest.mark.parametrize("client", ["s3", "s3fs"])
@pytest.mark.parametrize("status", [301, 307, 400])
def test_the_region_that_s3_names_is_what_to_set(store, client, status):
    def answering(request):
        code = "AuthorizationHeaderMalformed" if status == 400 else "PermanentRedirect"
        region = "<Region>eu-west-1</Region>" if status == 400 else ""
        body = f"<Error><Code>{code}</Code><Message>The bucket is elsewhere.</Message>{region}</Error>".encode()
        request.send(status, {"Content-Type": "application/xml", "x-amz-bucket-region": "eu-west-1"}, body)
        return True

    store.answering = answering

    with pytest.raises(StorageError) as caught:
        storage_of(store, client).read("a")
    assert "the bucket is in the region eu-west-1" in str(caught.value)
    assert "{'client_kwargs': {'region_name': 'eu-west-1'}}" in str(caught.value)


def test_a_region_that_is_no_region_is_not_shown(store):
    headers = {"x-amz-bucket-region": "evil.example/x?canary"}
    store.answering = lambda request: request.send(301, headers) or True

    with pytest.raises(StorageError, match="which is not followed. Check the endpoint") as caught:
        storage_of(store, "s3").read("a")
    assert "evil" not in str(caught.value)


def claimed(length, *, body=b"x"):
    """Return an answer to requests for objects that announces a length, sends a little and hangs up."""

    def answering(request):
        if request.key is None:
            return False
        headers = {"ETag": '"x"', "x-goog-generation": "1", "Content-Type": "application/octet-stream"}
        part = request.headers.get("Range") or request.headers.get("x-ms-range")
        if part:
            headers["Content-Range"] = f"bytes 0-{length - 1}/{length}"
        request.start(206 if part else 200, headers, length)
        request.write(body)
        request.hang_up()
        return True

    return answering


@pytest.mark.parametrize("client", [client for client in CLIENTS if client != "adlfs"])
@pytest.mark.parametrize("length", [10**13, 2**63 - 1, (1 << 30) + 1])
def test_a_length_beyond_the_limit_is_refused_before_a_byte_is_read(store, client, length):
    storage = storage_of(store, client)
    store.answering = claimed(length)

    before = pa.total_allocated_bytes()
    with pytest.raises(SnapshotExplorerError) as caught:
        storage.read(COMMIT)

    assert isinstance(caught.value, LimitError)
    assert pa.total_allocated_bytes() - before < 2**20
    check_secrets(caught.value)


def test_a_length_beyond_the_limit_is_refused_after_the_first_part_that_azures_client_reads(store):
    pytest.importorskip("adlfs")

    def answering(request):
        headers = {**store.headers_of(b"0123456789"), "Content-Range": f"bytes 0-9/{10**13}"}
        return request.key is not None and (request.send(206, headers, b"0123456789") or True)

    store.answering = answering

    with pytest.raises(LimitError, match="has 10000000000000 bytes or more"):
        storage_of(store, "adlfs").read(COMMIT)


def test_limits_that_are_raised_hold_for_the_size_of_a_file(store, client):
    size = (store.folder / BIG).stat().st_size
    strict = Limits(metadata_bytes=size // 4 - 1, metadata_ratio=1)

    with pytest.raises(LimitError, match=rf"{BIG} has {size} bytes or more.*metadata_bytes={size // 4}"):
        storage_of(store, client, limits=strict).read(BIG)
    assert len(storage_of(store, client, limits=Limits(metadata_bytes=size // 4)).read(BIG)) == size


@pytest.mark.parametrize("client", ["s3", "azure", "google", "gcsfs", "web"])
def test_an_answer_without_a_length_is_read_until_the_limit(store, client):
    sent = []

    def answering(request):
        if request.key is None:
            return False
        request.start(200, {"ETag": '"x"', "Content-Type": "application/octet-stream", "Transfer-Encoding": "chunked"})
        while request.write(b"100000\r\n" + bytes(2**20) + b"\r\n"):
            sent.append(2**20)
        return True

    store.answering = answering
    with pytest.raises(LimitError, match="has .* bytes or more"):
        storage_of(store, client, limits=Limits(metadata_bytes=2**20)).read("a")
    assert sum(sent) < 64 * 2**20


@pytest.mark.parametrize("client", ["web", "gcsfs"])
def test_an_answer_that_decompresses_to_very_much_is_read_until_the_limit(store, client):
    body = gzip.compress(bytes(64 * 2**20))
    headers = {"ETag": '"x"', "Content-Encoding": "gzip", "Content-Type": "application/octet-stream"}
    store.answering = lambda request: request.key is not None and (request.send(200, headers, body) or True)

    with pytest.raises(LimitError, match="has .* bytes or more"):
        storage_of(store, client, limits=Limits(metadata_bytes=2**20)).read("a")


def dripping(store, *, body=None, pause=0.02, head=b""):
    """Return an answer that sends an object byte by byte."""

    def answering(request):
        if request.key is None or request.method == "HEAD":
            return False
        content = store.content(request.key) or bytes(10_000)
        headers = {
            **store.headers_of(content),
            **(
                {"Content-Range": f"bytes 0-{len(content) - 1}/{len(content)}"}
                if request.headers.get("x-ms-range")
                else {}
            ),
        }
        request.start(206 if "Content-Range" in headers else 200, headers, len(content))
        for byte in content:
            if not request.write(bytes([byte])):
                break
            time.sleep(pause)
        return True

    return answering


@contextmanager
def soon(seconds=50):
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


@pytest.mark.parametrize("pause", [0.02, 30], ids=["slow", "stalled"])
def test_what_comes_too_slowly_is_given_up(store, client, pause):
    store.answering = dripping(store, pause=pause)

    with soon(), pytest.raises(StorageError) as caught:
        storage_of(store, client).read(COMMIT)

    assert "stalled, or sends too slowly" in str(caught.value) or "Timeout" in str(caught.value)
    assert not isinstance(caught.value, MissingFileError)


@pytest.mark.parametrize("client", ["s3", "azure", "google"])
def test_headers_that_never_end_are_given_up(store, client):
    def answering(request):
        request.handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while request.write(b"X: y\r\n"):
            time.sleep(0.01)
        return True

    store.answering = answering
    with soon(), pytest.raises(StorageError, match="stalled, or sends too slowly"):
        storage_of(store, client).read("a")


@pytest.mark.parametrize("client", ["s3", "azure", "google"])
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n\r\n",
        b"HTTP/1.1 999 Odd\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9" + b"9" * 30 + b"\r\n\r\n",
        b'HTTP/1.1 200 OK\r\nETag: "x"\r\nTransfer-Encoding: gzip\r\n\r\nhello',
        b'HTTP/1.1 200 OK\r\nETag: "x"\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello',
        b'HTTP/1.1 200 OK\r\nETag: "x"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello, there',
        b'HTTP/1.1 200 OK\r\nETag: "x"\r\nContent-Length: 500\r\n\r\nhello',
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b'HTTP/1.1 206 Partial Content\r\nETag: "x"\r\nContent-Length: 5\r\n\r\nhello',
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    ],
)
def test_what_is_no_answer_of_a_store_is_refused(store, client, answer):
    def answering(request):
        request.write(answer)
        request.hang_up()
        return True

    store.answering = answering
    with pytest.raises(StorageError) as caught:
        storage_of(store, client).read("a")
    assert not isinstance(caught.value, MissingFileError)
    assert str(caught.value).endswith("a login page.") or "try again" in str(caught.value)


ENTITIES = b"""<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>"""
PAGES = {
    "s3": b"<ListBucketResult><Name>lake</Name><IsTruncated>false</IsTruncated><Contents><Key>&c;</Key><Size>1</Size>"
    b"<LastModified>2023-11-14T22:13:20.000Z</LastModified></Contents></ListBucketResult>",
    "azure": b"<EnumerationResults><Blobs><Blob><Name>&c;</Name></Blob></Blobs></EnumerationResults>",
}


@pytest.mark.parametrize("client", ["s3", "s3fs", "azure", "adlfs", "google"])
def test_entities_in_an_answer_are_never_expanded(store, client):
    page = ENTITIES + PAGES["azure" if client in ("azure", "adlfs") else "s3"]
    for body in (page, page.decode().encode("utf-16"), page.replace(b"DOCTYPE", b"doctype"), b" " * 9 + page):
        store.answering = lambda request, body=body: (
            request.send(200, {"Content-Type": "application/xml"}, body) or True
        )

        with pytest.raises(StorageError) as caught:
            storage_of(store, client).list("a")
        assert "aaaa" not in str(caught.value)


def test_a_listing_that_is_sent_too_slowly_is_given_up(store, client, monkeypatch):
    monkeypatch.setattr(bounded_answers, "_CALL_SECONDS", 1.0)

    def answering(request):
        request.start(200, {"Content-Type": "application/xml"}, 5000)
        while request.write(b" "):
            time.sleep(0.02)
        return True

    store.answering = answering
    with soon(), pytest.raises(StorageError):
        storage_of(store, client).list("a")


@pytest.mark.parametrize("lie", [0, 1, 1000, 10**13])
def test_a_size_that_a_store_makes_up_changes_no_byte(store, client, lie):
    """HEAD, or what is in its place, claims another size than the object has."""
    content = (store.folder / BIG).read_bytes()

    def answering(request):
        if request.key == BIG and (
            request.method == "HEAD" or ("/storage/v1/" in request.target and "alt=media" not in request.target)
        ):
            if request.method == "HEAD":
                request.send(200, store.headers_of(content), length=lie)
            else:
                request.send(
                    200, {"Content-Type": "application/json"}, b'{"name": "%s", "size": "%d"}' % (BIG.encode(), lie)
                )
            return True
        return False

    store.answering = answering
    try:
        with storage_of(store, client).open(BIG) as opened:
            read = opened.read()
    except SnapshotExplorerError as error:
        check_secrets(error)
    else:
        assert read in (content, content[:lie])


def test_tables_are_found_beside_a_folder_that_is_redirected(stores, store):
    root, options = store.clients()["s3"]

    found = find_tables(root, storage_options=options)

    assert found["name"].to_pylist() == ["payments"]
