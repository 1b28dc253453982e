"""The requests with which listings are made where obstore reads the objects: signatures, connections, proxies."""

import base64
import socket
import threading
import time
import urllib.parse
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import pytest

from snapshot_explorer.errors import StorageError
from snapshot_explorer.storage import Storage, origins, retries, store_listings
from snapshot_explorer.storage.failures import UnexpectedResponseError
from snapshot_explorer.storage.origins import Origin
from tests.support.key_server import KeyServer, stores

KEY, SECRET, TOKEN = "AKIATESTKEY", "not-a-real/secret+key", "a/session+token=="


@pytest.fixture
def server():
    running = KeyServer({"t/a b/1": b"1", "t/2": b"2"})
    yield running
    running.close()


@pytest.mark.parametrize("token", [None, TOKEN])
@pytest.mark.parametrize("prefix", ["", "t/", "t/a b+c/é漢/%2F*?#&=~", "t/\t"])
def test_requests_to_s3_are_signed_as_botocore_signs_them(token, prefix, monkeypatch):
    auth, awsrequest, credentials = (
        pytest.importorskip(f"botocore.{name}") for name in ("auth", "awsrequest", "credentials")
    )
    now = datetime(2026, 11, 28, 12, 30, 15, tzinfo=UTC)
    monkeypatch.setattr(store_listings, "datetime", type("Clock", (), {"now": staticmethod(lambda zone: now)}))
    monkeypatch.setattr(auth, "get_current_datetime", lambda: now.replace(tzinfo=None))
    query = {"list-type": "2", "prefix": prefix, "delimiter": "/", "continuation-token": "1/x+y=="}
    payer = {"x-amz-request-payer": "requester"}
    keys = {"access_key_id": KEY, "secret_access_key": SECRET, "token": token}

    headers = store_listings.s3_signature(keys, "eu-west-1", payer)("host.example:9000", "/lake", query)

    url = f"http://host.example:9000/lake?{urllib.parse.urlencode(query, quote_via=urllib.parse.quote)}"
    own = {"x-amz-content-sha256": headers["x-amz-content-sha256"], **payer}
    request = awsrequest.AWSRequest("GET", url, headers=own)
    auth.S3SigV4Auth(credentials.Credentials(KEY, SECRET, token), "s3", "eu-west-1").add_auth(request)
    assert headers["Authorization"] == request.headers["Authorization"]
    assert headers.get("x-amz-security-token") == token


def test_an_anonymous_request_to_s3_has_no_signature(server):
    url, options, _ = stores(server)["s3 by obstore"]
    pytest.importorskip("obstore")
    headers = recorded_headers(server)

    Storage(f"{url}/t", {"anon": True, "endpoint_url": options["endpoint_url"]}).list("")

    assert [name for name in headers[0] if name.lower().startswith(("x-amz", "authorization"))] == []


def recorded_headers(server):
    """Return the headers of requests to a server, as they come."""
    headers, serve = [], server.serve

    def noted(request):
        headers.append(request.headers)
        serve(request)

    server.serve = noted
    return headers


def test_requests_to_google_have_a_token_that_the_service_account_signed(server):
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    jwt = pytest.importorskip("google.auth.jwt")
    pytest.importorskip("obstore")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encoding, text = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, text).decode()
    public = key.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
    account = {
        "type": "service_account",
        "client_email": "reader@lake.example",
        "private_key_id": "1",
        "private_key": private,
        "token_uri": "http://127.0.0.1:9/token",
    }
    headers = recorded_headers(server)

    listed = Storage("gs://lake/t", {"token": account, "endpoint_url": server.url}).list("")

    assert [entry.name for entry in listed] == ["2", "a b"]
    claims = jwt.decode(headers[0]["Authorization"].removeprefix("Bearer "), certs=public)
    assert claims["iss"] == claims["sub"] == "reader@lake.example"
    assert claims["scope"].endswith("devstorage.read_only")
    assert claims["exp"] - claims["iat"] == 3600


def test_requests_to_azure_have_the_shared_access_signature(server):
    pytest.importorskip("obstore")
    options = {
        **stores(server)["azure by obstore"][1],
        "azure_storage_sas_token": "?sv=2023&sig=a%2Bb%3D&se=2027-01-01",
    }
    del options["azure_storage_account_key"]

    listed = Storage("abfs://lake/t", options).list("a b")

    assert [entry.name for entry in listed] == ["1"]
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(server.requests[0][1]).query))
    assert (query["sig"], query["sv"], query["prefix"]) == ("a+b=", "2023", "t/a b/")


def test_a_connection_is_kept_open_and_replaced_when_the_server_has_closed_it():
    connections, ended = [], threading.Event()

    def answer(connection, count):
        connections.append(connection)
        for _ in range(count):
            if not connection.recv(65536):
                return
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        connection.close()
        ended.set()

    with listening(lambda connection: answer(connection, 3)) as url:
        origin = Origin(url, connect_seconds=5, read_seconds=5)
        first = [origin.get("/a", {}).content for _ in range(3)]
        ended.wait(10)
        again = origin.get("/a", {}).content

    assert [*first, again] == [b"ok"] * 4
    assert len(connections) == 2


@contextmanager
def listening(answer):
    """Answer each connection to a socket in a thread; yields the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answered(connection):
            with connection, suppress(OSError):  # whoever asked has gone
                answer(connection)

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answered, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


ANSWERS = {
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n\r\n", UnexpectedResponseError, "did not answer with HTTP"),
    "endless headers": (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 500 + b"\r\n", UnexpectedResponseError, "with HTTP"),
    "an endless line": (b"HTTP/1.1 200 " + b"x" * 100_000, UnexpectedResponseError, "with HTTP"),
    "a part": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", ConnectionResetError, "before the end of its answer"),
    "a part of a chunk": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nok",
        ConnectionResetError,
        "before the end of its answer",
    ),
    "nothing": (b"", ConnectionError, "closed connection without response"),
    "too much": (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000, UnexpectedResponseError, "longer than any listing"),
    "a length that is false": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000000\r\n\r\n" + b"x" * 5000,
        UnexpectedResponseError,
        "longer than any listing",
    ),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_that_is_not_one_is_an_error(kind, monkeypatch):
    content, error, message = ANSWERS[kind]
    monkeypatch.setattr(origins, "_MOST_BYTES", 4000)

    def answer(connection):
        connection.recv(65536)
        connection.sendall(content)

    with listening(answer) as url, pytest.raises(error, match=message):
        Origin(url, connect_seconds=5, read_seconds=5).get("/a", {})


def test_an_answer_that_comes_too_slowly_is_given_up():
    def answer(connection):
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            connection.sendall(b"xy")
            time.sleep(0.05)

    with listening(answer) as url, pytest.raises(TimeoutError, match="less than 1 KiB a second"):
        Origin(url, connect_seconds=5, read_seconds=0.3).get("/a", {})


def test_a_proxy_of_the_environment_is_used_with_its_password(monkeypatch):
    seen = []

    def answer(connection):
        seen.append(connection.recv(65536).decode())
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with listening(answer) as url:
        monkeypatch.setenv("http_proxy", url.replace("://", "://user:pass%40word@"))
        assert Origin("http://s3.example", connect_seconds=5, read_seconds=5).get("/lake?x", {"a": "b"}).status == 200
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert Origin(url, connect_seconds=5, read_seconds=5).get("/direct", {}).status == 200

    assert seen[0].startswith("GET http://s3.example/lake?x HTTP/1.1\r\n")
    assert base64.b64encode(b"user:pass@word").decode() in seen[0]
    assert seen[1].startswith("GET /direct HTTP/1.1\r\n")


def test_https_goes_through_a_tunnel_of_the_proxy(monkeypatch):
    seen = []

    def answer(connection):
        seen.append(connection.recv(65536).decode())
        connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with listening(answer) as url:
        monkeypatch.setenv("https_proxy", url)
        with pytest.raises(OSError, match="Tunnel connection failed: 407"):
            Origin("https://s3.example", connect_seconds=5, read_seconds=5).get("/lake", {})

    assert seen[0].startswith("CONNECT s3.example:443 HTTP/1.")


def test_a_redirect_is_not_followed_and_no_token_leaves(server, monkeypatch):
    pytest.importorskip("obstore")
    monkeypatch.setattr(retries, "FIRST_WAIT", 0)
    url, options, _ = stores(server)["s3 by obstore"]
    headers = recorded_headers(server)
    server.fault = lambda prefix: "redirect"

    with pytest.raises(StorageError, match="the storage answers with a redirect, which is not followed"):
        Storage(f"{url}/t", {**options, "token": TOKEN}).list("")

    assert {urllib.parse.urlsplit(target).path for _, target in server.requests} == {"/lake"}
    assert all(item["x-amz-security-token"] == TOKEN for item in headers)
