"""A server on the loopback interface that is S3, Azure, Google and a web server at once, and lies as a test has it lie.

Objects are the files of a folder, in the bucket `lake`. `answering` is called with each request for an object or a
listing before it is answered: it returns True if it has answered itself.
"""

import contextlib
import hashlib
import http.server
import json
import socket
import threading
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

ACCOUNT, ACCOUNT_KEY = "account", "Y2FuYXJ5LWtleS1vZi1henVyZQ=="
TOKEN = "canary-session-token"
KEYS = {"key": "AKIACANARY", "secret": "canary-secret", "token": TOKEN}
SECRETS = (TOKEN, ACCOUNT_KEY, "canary-secret", "AKIACANARY", "canary-bearer", "canary-signature", "canary-header")
MODIFIED = 1_700_000_000
HOSTS = ("127.0.0.1", "127.0.0.2")


@dataclass
class Request:
    """A request, and how to answer it."""

    handler: http.server.BaseHTTPRequestHandler
    method: str
    target: str
    """Path and query, as they came."""
    headers: dict[str, str]
    key: str | None = None
    """The object's name; None for a listing and everything else."""
    is_listing: bool = False
    query: dict[str, str] = field(default_factory=dict)

    def send(self, status, headers=(), body=b"", *, length=None):
        """Send an answer; with another length than it has, and without one for False."""
        self.start(status, headers, len(body) if length is None else length)
        if self.method != "HEAD":
            self.write(body)

    def start(self, status, headers=(), length=None):
        handler = self.handler
        handler.send_response(status)
        for name, value in dict(headers).items():
            handler.send_header(name, value)
        if length is not None and length is not False:
            handler.send_header("Content-Length", str(length))
        with contextlib.suppress(OSError):
            handler.end_headers()
            handler.wfile.flush()

    def write(self, body):
        """Send bytes, and return whether anybody still listens."""
        try:
            self.handler.wfile.write(body)
            self.handler.wfile.flush()
        except OSError:
            self.handler.close_connection = True
            return False
        return True

    def hang_up(self):
        self.handler.close_connection = True
        with contextlib.suppress(OSError):
            self.handler.connection.shutdown(socket.SHUT_RDWR)

    def redirect(self, to, status=307, headers=()):
        self.send(status, {"Location": to, **dict(headers)})


class StoreServer:
    """Serves a folder."""

    def __init__(self, folder, host="127.0.0.1"):
        self.folder = Path(folder)
        self.answering = None
        self.requests = []
        self.contents = {}
        """Contents of objects in place of their files."""
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self):
                server._answer(self)

            def do_HEAD(self):
                server._answer(self)

            def do_POST(self):
                server._answer(self)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 128

            def handle_error(self, *_):
                pass  # whoever asked has gone

        self._server = Server((host, 0), Handler)
        self.host = f"{host}:{self._server.server_address[1]}"
        self.url = f"http://{self.host}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def clients(self):
        """Return the root of the bucket and the options of each client."""
        s3 = {**KEYS, "client_kwargs": {"endpoint_url": self.url, "region_name": "us-east-1"}}
        once = {"retries": {"mode": "standard", "total_max_attempts": 1}}
        azure = {"account_name": ACCOUNT, "account_key": ACCOUNT_KEY, "azure_endpoint": f"{self.url}/{ACCOUNT}"}
        signed = {
            "account_name": ACCOUNT,
            "sas_token": "sv=1&sig=canary-signature",
            "azure_endpoint": f"{self.url}/{ACCOUNT}",
        }
        google = {"token": "anon", "endpoint_url": self.url}
        return {
            "s3": ("s3://lake", {**s3, "config_kwargs": once}),
            "s3fs": ("s3://lake", {**s3, "config_kwargs": {**once, "user_agent_extra": "x"}}),
            "azure": ("abfs://lake", azure),
            "azure sas": ("abfs://lake", signed),
            "adlfs": ("abfs://lake", {**azure, "location_mode": "primary"}),
            "google": ("gs://lake", google),
            "gcsfs": ("gs://lake", {**google, "token": "canary-bearer"}),
            "web": (f"{self.url}/web", {"headers": {"X-Secret": "canary-header"}}),
        }

    def _answer(self, handler):
        with contextlib.suppress(OSError):
            body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
            request = Request(handler, handler.command, handler.path, dict(handler.headers.items()))
            self.requests.append(request)
            answer = self._recognized(request)
            if self.answering is None or not self.answering(request):
                answer()
            del body

    def _recognized(self, request):
        """Return what answers a request, after it was found out what it is for."""
        url = urlsplit(request.target)
        request.query = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        path = unquote(url.path).lstrip("/")
        if path.startswith(("download/storage/v1/b/lake/o/", "storage/v1/b/lake/o/")):
            request.key = path.partition("/o/")[2]
            is_content = path.startswith("download/") or request.query.get("alt") == "media"
            return lambda: self.send_object(request) if is_content else self._google_object(request)
        if path == "storage/v1/b/lake/o":
            request.is_listing = True
            return lambda: self._google_listing(request)
        if path.startswith("web"):
            request.key = path.partition("/")[2]
            if (self.folder / request.key).is_dir():
                request.is_listing, request.key = True, None
            return lambda: self._web(request, path)
        if request.query.get("comp") == "list":
            request.is_listing = True
            return lambda: self._azure_listing(request)
        parts = path.removeprefix(f"{ACCOUNT}/").partition("/")
        if parts[0] == "lake" and parts[2]:
            request.key = parts[2]
            return lambda: self.send_object(request)
        if parts[0] == "lake" and ("list-type" in request.query or "prefix" in request.query):
            request.is_listing = True
            return lambda: self._s3_listing(request)
        return lambda: request.send(
            404, {"Content-Type": "application/xml"}, b"<Error><Code>NoSuchBucket</Code></Error>"
        )

    def content(self, key):
        """Return an object's content; None if there is none."""
        if key in self.contents:
            return self.contents[key]
        file = self.folder / key
        return file.read_bytes() if file.is_file() else None

    def headers_of(self, content):
        etag = hashlib.md5(content).hexdigest()
        return {
            "ETag": f'"{etag}"',
            "x-goog-generation": str(int(etag[:12], 16)),
            "Last-Modified": formatdate(MODIFIED, usegmt=True),
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
            "x-ms-blob-type": "BlockBlob",
        }

    def send_object(self, request, content=None, headers=()):
        """Send an object, or the part of it that is requested."""
        content = self.content(request.key) if content is None else content
        if content is None:
            code = "BlobNotFound" if "x-ms-version" in {name.lower() for name in request.headers} else "NoSuchKey"
            body = f"<Error><Code>{code}</Code><Message>It is missing.</Message></Error>".encode()
            request.send(404, {"Content-Type": "application/xml", "x-ms-error-code": code}, body)
            return
        given = {name.lower(): value for name, value in request.headers.items()}
        kept = {**self.headers_of(content), **dict(headers)}
        if given.get("if-match", kept.get("ETag")) != kept.get("ETag") or request.query.get(
            "ifGenerationMatch", kept.get("x-goog-generation")
        ) != kept.get("x-goog-generation"):
            body = b"<Error><Code>PreconditionFailed</Code><Message>It has changed.</Message></Error>"
            request.send(412, {"Content-Type": "application/xml", "x-ms-error-code": "ConditionNotMet"}, body)
            return
        wanted = given.get("x-ms-range") or given.get("range")
        if not wanted:
            request.send(200, kept, content)
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(len(content) - int(last), 0)
        end = min(int(last), len(content) - 1) if first and last else len(content) - 1
        if start >= len(content):
            request.send(416, {"Content-Range": f"bytes */{len(content)}", "x-ms-error-code": "InvalidRange"})
            return
        part = content[start : end + 1]
        request.send(206, {**kept, "Content-Range": f"bytes {start}-{end}/{len(content)}"}, part)

    def keys(self):
        files = (file.relative_to(self.folder).as_posix() for file in self.folder.rglob("*") if file.is_file())
        return sorted({*files, *self.contents})

    def _listed(self, request, after):
        """Return the keys and the folders that a listing has."""
        prefix, delimiter = request.query.get("prefix", ""), request.query.get("delimiter", "")
        keys, folders = [], set()
        for key in self.keys():
            rest = key[len(prefix) :]
            if not key.startswith(prefix) or key <= after:
                continue
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
            else:
                keys.append(key)
        return keys, sorted(folders)

    def _s3_listing(self, request):
        keys, folders = self._listed(request, request.query.get("start-after", ""))
        objects = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2023-11-14T22:13:20.000Z</LastModified>"
            f'<ETag>"x"</ETag><Size>{len(self.content(key))}</Size></Contents>'
            for key in keys
        )
        prefixes = "".join(f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders)
        body = (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>lake</Name><IsTruncated>false</IsTruncated>{objects}{prefixes}</ListBucketResult>"
        )
        request.send(200, {"Content-Type": "application/xml"}, body.encode())

    def _azure_listing(self, request):
        keys, folders = self._listed(request, "")
        modified = formatdate(MODIFIED, usegmt=True)
        objects = "".join(
            f"<Blob><Name>{escape(key)}</Name><Properties><Last-Modified>{modified}</Last-Modified><Etag>0x1</Etag>"
            f"<Content-Length>{len(self.content(key))}</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>"
            for key in keys
        )
        prefixes = "".join(f"<BlobPrefix><Name>{escape(folder)}</Name></BlobPrefix>" for folder in folders)
        body = (
            '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="x" ContainerName="lake">'
            f"<Blobs>{objects}{prefixes}</Blobs><NextMarker /></EnumerationResults>"
        )
        request.send(200, {"Content-Type": "application/xml"}, body.encode())

    def _google_object(self, request):
        content = self.content(request.key)
        if content is None:
            request.send(
                404, {"Content-Type": "application/json"}, b'{"error": {"code": 404, "message": "No such object"}}'
            )
            return
        body = json.dumps(self._google_item(request.key, content)).encode()
        request.send(200, {"Content-Type": "application/json"}, body)

    def _google_item(self, key, content):
        headers = self.headers_of(content)
        return {
            "kind": "storage#object",
            "name": key,
            "bucket": "lake",
            "size": str(len(content)),
            "etag": headers["ETag"],
            "generation": headers["x-goog-generation"],
            "updated": "2023-11-14T22:13:20.000Z",
        }

    def _google_listing(self, request):
        keys, folders = self._listed(request, "")
        items = [self._google_item(key, self.content(key)) for key in keys]
        body = json.dumps({"kind": "storage#objects", "items": items, "prefixes": folders}).encode()
        request.send(200, {"Content-Type": "application/json"}, body)

    def _web(self, request, path):
        folder = self.folder / path.partition("/")[2]
        if not folder.is_dir():
            self.send_object(request)
            return
        names = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
        links = "".join(f'<li><a href="{quote(name)}">{escape(name)}</a></li>' for name in names)
        title = f"<title>Directory listing for /{path}</title>"
        page = f"<!DOCTYPE html><html><head>{title}</head><body><ul>{links}</ul></body></html>"
        request.send(200, {"Content-Type": "text/html; charset=utf-8"}, page.encode())


@contextlib.contextmanager
def served(folder, host="127.0.0.1"):
    """Serve a folder for a block."""
    server = StoreServer(folder, host)
    try:
        yield server
    finally:
        server.close()
