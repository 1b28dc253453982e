"""Requests to one HTTP server: connections that are kept, encrypted or behind a proxy, and answers in every form."""

import base64
import contextlib
import datetime as dt
import http.server
import select
import socket
import socketserver
import ssl
import threading
import time
import traceback
import urllib.parse

import pytest

from snapshot_explorer.errors import StorageError
from snapshot_explorer.storage import Storage, bounded_answers, origins
from tests.inner.storage import (
    ObjectStoreFiles,
    Origin,
    OversizedAnswerError,
    RemoteFiles,
    SlowAnswerError,
    UnexpectedResponseError,
)

BODY = bytes(range(256)) * 400
OPTIONS = {"key": "AKIAKEY", "secret": "secret"}


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "SSL_CERT_FILE",
        "AWS_CA_BUNDLE",
        "REQUESTS_CA_BUNDLE",
    ):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class Scripted:
    """A server that answers each connection as scripted: a list of answers, each bytes or parts that come slowly."""

    def __init__(self, *connections, tls=None):
        self.requests, self.connections = [], 0
        script = list(connections)
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                outer.connections += 1
                answers = script.pop(0) if script else []
                for answer in answers:
                    request = b""
                    while b"\r\n\r\n" not in request:
                        part = self.request.recv(65536)
                        if not part:
                            return
                        request += part
                    outer.requests.append(request.decode())
                    if answer is None:
                        return
                    for part in (answer,) if isinstance(answer, bytes) else answer:
                        self.request.sendall(part)
                        time.sleep(0 if part is answer else 0.01)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address, daemon_threads = True, True

            def get_request(self):
                connection, address = super().get_request()
                return (tls.wrap_socket(connection, server_side=True) if tls else connection), address

            def handle_error(self, *_):
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://localhost:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def answered(body=BODY, head=""):
    return f"HTTP/1.1 200 OK\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def origin_of(server):
    return Origin(server.url, connect_seconds=5, read_seconds=5)


FORMS = {
    "a length": answered(),
    "nothing": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"".join(b"%x;name=value\r\n%b\r\n" % (len(part), part) for part in (BODY[:5], BODY[5:70_000], BODY[70_000:]))
    + b"0\r\nTrailer: x\r\n\r\n",
    "no length": b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
    "continue first": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\nLink: x\r\n\r\n" + answered(),
    "two equal lengths": answered(head=f"content-length: {len(BODY)}\r\n"),
    "no reason": answered().replace(b"200 OK", b"200"),
    "one part at a time": answered(head="X: " + "y" * 60_000 + "\r\n"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_an_answer_is_read(form):
    with Scripted([FORMS[form]]) as server:
        response = origin_of(server).get("/a?b=c", {"X-One": "1"})

        assert response.status == 200
        assert bytes(response.content) == (b"" if form == "nothing" else BODY)
        assert server.requests[0].startswith("GET /a?b=c HTTP/1.1\r\n")
        assert f"host: localhost:{server.port}\r\n" in server.requests[0]
        assert "X-One: 1\r\n" in server.requests[0]


def test_the_answer_to_a_request_for_headers_has_no_content():
    with Scripted([b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", answered()]) as server:
        origin = origin_of(server)

        assert origin.get("/", {}, method="HEAD").headers["content-length"] == "5000"
        assert bytes(origin.get("/", {}).content) == BODY
    assert server.connections == 1


def test_a_connection_is_kept_until_the_server_closes_it():
    closing = answered(head="Connection: close\r\n")
    with Scripted([answered(), answered(), closing], [answered()]) as server:
        origin = origin_of(server)
        for _ in range(4):
            assert bytes(origin.get("/", {}).content) == BODY

    assert server.connections == 2


def test_a_connection_that_was_closed_meanwhile_is_replaced():
    with Scripted([answered()], [answered(), None], [answered()]) as server:
        origin = origin_of(server)
        for _ in range(3):
            assert bytes(origin.get("/", {}).content) == BODY
            time.sleep(0.05)

    assert server.connections == 3


def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch):
    with Scripted([answered()], [answered()]) as server:
        origin = origin_of(server)
        origin.get("/", {})
        monkeypatch.setattr(origins, "_IDLE_SECONDS", 0)
        origin.get("/", {})

    assert server.connections == 2


def test_a_connection_with_more_than_the_answer_is_not_used_again():
    with Scripted([answered() + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"], [answered()]) as server:
        origin = origin_of(server)

        assert bytes(origin.get("/", {}).content) == BODY
        assert bytes(origin.get("/", {}).content) == BODY
    assert server.connections == 2


def test_an_error_is_read_as_far_as_its_code():
    body = b"<Error><Code>SlowDown</Code></Error>" + b" " * 10**6
    with Scripted([b"HTTP/1.1 503 Slow\r\nContent-Length: %d\r\n\r\n" % len(body) + body]) as server:
        response = origin_of(server).get("/", {}, most_bytes=10)

    assert (response.status, len(response.content)) == (503, 10)


def test_a_line_break_in_a_header_is_refused():
    with Scripted([answered()]) as server, pytest.raises(ValueError, match="Invalid header value"):
        origin_of(server).get("/", {"X": "1\r\nY: 2"})
    assert server.requests == []


ENDLESS = b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BROKEN = {
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n\r\n", UnexpectedResponseError, "did not answer with HTTP"),
    "many headers": (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 500 + b"\r\n", UnexpectedResponseError, "with HTTP"),
    "a long line": (b"HTTP/1.1 200 " + b"x" * 100_000, UnexpectedResponseError, "with HTTP"),
    "continued for ever": (ENDLESS, UnexpectedResponseError, "more around the content"),
    "long lines between chunks": (
        CHUNKED + (b"1;" + b"x" * 60_000 + b"\r\ny\r\n") * 20,
        UnexpectedResponseError,
        "more around the content",
    ),
    "headers after the chunks for ever": (
        CHUNKED + b"0\r\n" + b"X: y\r\n" * 100_000,
        UnexpectedResponseError,
        "more around the content",
    ),
    "a negative chunk": (CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n", UnexpectedResponseError, "did not answer with HTTP"),
    "half of the headers": (b'HTTP/1.1 200 OK\r\nETag: "x"\r\n', ConnectionResetError, "without an answer"),
    "half of a line": (b"HTTP/1.1 200 OK\r\nContent-Le", ConnectionResetError, "without an answer"),
    "a part": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", ConnectionResetError, "before the end"),
    "a part of a chunk": (CHUNKED + b"9\r\nok", ConnectionResetError, "before the end of its answer"),
    "no last chunk": (CHUNKED + b"2\r\nok\r\n", ConnectionResetError, "before the end of its answer"),
    "nothing": (b"", ConnectionResetError, "without an answer"),
    "too much": (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000, OversizedAnswerError, "4,000 are read at most"),
    "too much in chunks": (CHUNKED + b"1388\r\n" + b"x" * 5000, OversizedAnswerError, "4,000 are read at most"),
    "a false length": (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\nx", OversizedAnswerError, "4,000"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_answer_is_an_error(kind):
    content, error, message = BROKEN[kind]

    with Scripted([content]) as server, pytest.raises(error, match=message):
        origin_of(server).get("/a", {}, most_bytes=4000)


def test_headers_that_trickle_are_given_up(monkeypatch):
    monkeypatch.setattr(bounded_answers, "GRACE_SECONDS", 0.2)
    trickle = (b"HTTP/1.1 200 OK\r\n", *[b"X: y\r\n"] * 1000)

    with Scripted([trickle]) as server, pytest.raises(SlowAnswerError, match="sends too slowly"):
        origin_of(server).get("/a", {})


def test_an_anonymous_request_has_no_signature():
    with Scripted([answered(head='ETag: "x"\r\n')]) as server:
        Storage("s3://lake/t", {"anon": True, "endpoint_url": server.url}).read("a")

    assert "x-amz" not in server.requests[0].lower()
    assert "authorization" not in server.requests[0].lower()


def test_requests_to_azure_have_the_shared_access_signature():
    options = {
        "account_name": "account",
        "sas_token": "?sv=2023&sig=a%2Bb%3D&se=2027-01-01",
    }
    with Scripted([answered(head='ETag: "x"\r\n')]) as server:
        Storage("abfs://lake/t", {**options, "azure_endpoint": f"{server.url}/account"}).read("a b")

    path, _, query = server.requests[0].split(" ")[1].partition("?")
    assert path == "/account/lake/t/a%20b"
    assert dict(urllib.parse.parse_qsl(query)) == {"sv": "2023", "sig": "a+b=", "se": "2027-01-01"}


def test_a_token_with_a_line_break_is_neither_sent_nor_shown():
    token = "session-canary\r\nX-Other: canary"
    with Scripted([answered()]) as server, pytest.raises(StorageError) as caught:
        Storage("s3://lake/t", {**OPTIONS, "token": token, "endpoint_url": server.url}).read("a")

    assert "canary" not in "".join(traceback.format_exception(caught.value))
    assert server.requests == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """The files of a certificate for localhost that no system knows, and its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("certificate")
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / "key.pem").write_bytes(private)
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def tls(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


def test_an_encrypted_connection_is_read_if_its_certificate_is_known(certificate, tls, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with Scripted([answered(), answered()], tls=tls) as server:
        origin = origin_of(server)

        assert bytes(origin.get("/", {}).content) == BODY
        assert bytes(origin.get("/", {}).content) == BODY
    assert server.connections == 1


def test_a_certificate_that_is_not_known_is_an_error(tls):
    with Scripted(tls=tls) as server, pytest.raises(StorageError, match="certificate verify failed.*Check the "):
        Storage("s3://lake/t", {**OPTIONS, "endpoint_url": server.url}).read("a")


class Proxy(http.server.BaseHTTPRequestHandler):
    """A proxy that forwards, and notes what it was asked for."""

    seen: list

    def do_CONNECT(self):
        self.seen.append((self.command, self.path, self.headers.get("Proxy-Authorization")))
        host, _, port = self.path.partition(":")
        with socket.create_connection((host, int(port))) as there:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            here = self.connection
            while True:
                ready, _, _ = select.select([here, there], [], [], 5)
                for source in ready:
                    data = source.recv(65536)
                    if not data:
                        return
                    (there if source is here else here).sendall(data)
                if not ready:
                    return

    def do_GET(self):
        self.seen.append((self.command, self.path, self.headers.get("Proxy-Authorization")))
        self.wfile.write(answered(head='ETag: "x"\r\n'))
        self.close_connection = True

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def proxy():
    class Own(Proxy):
        seen: list = []  # noqa: RUF012 - each proxy has its own

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Own)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://me:p%40ss@127.0.0.1:{server.server_address[1]}", Own.seen
    server.shutdown()
    server.server_close()


LOGIN = "Basic " + base64.b64encode(b"me:p@ss").decode()


def test_a_proxy_of_the_environment_is_asked_for_the_whole_address(monkeypatch):
    with proxy() as (url, seen):
        monkeypatch.setenv("http_proxy", url)
        storage = Storage("s3://lake/t", {**OPTIONS, "endpoint_url": "http://store.example:9000"})

        assert storage.read("a") == BODY
    assert seen == [("GET", "http://store.example:9000/lake/t/a", LOGIN)]


def test_an_encrypted_connection_goes_through_a_tunnel_of_the_proxy(certificate, tls, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with proxy() as (url, seen), Scripted([answered()], tls=tls) as server:
        monkeypatch.setenv("https_proxy", url)

        assert bytes(origin_of(server).get("/", {}).content) == BODY
    assert seen == [("CONNECT", f"localhost:{server.port}", LOGIN)]
    assert "Proxy-Authorization" not in server.requests[0]


def test_no_proxy_is_asked_for_hosts_without_one(monkeypatch):
    with proxy() as (url, seen), Scripted([answered()]) as server:
        monkeypatch.setenv("http_proxy", url)
        monkeypatch.setenv("no_proxy", "localhost")

        assert bytes(origin_of(server).get("/", {}).content) == BODY
    assert seen == []


@pytest.mark.parametrize(("kind", "files"), [("socks5://127.0.0.1:1", RemoteFiles), ("127.0.0.1:1", ObjectStoreFiles)])
def test_a_proxy_of_another_kind_is_left_to_s3fs(kind, files, monkeypatch):
    pytest.importorskip("s3fs")
    monkeypatch.setenv("http_proxy", kind)

    storage = Storage("s3://lake/t", {**OPTIONS, "endpoint_url": "http://store.example:9000"})

    assert type(storage._connection().files) is files
