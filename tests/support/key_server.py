"""A server of keys on the loopback interface, as S3, Google, Azure and a web server, whose listings fail as told.

It is small, so that every answer can be replaced; that real stores are read too is tested in tests/storage.
"""

import base64
import contextlib
import hashlib
import http.server
import json
import socket
import struct
import threading
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.sax.saxutils import escape

BUCKET = "lake"
ACCOUNT = "account"
MODIFIED = "2026-11-11T00:00:00.000Z"
HTTP_TIME = "Wed, 11 Nov 2026 00:00:00 GMT"
_KEY = base64.b64encode(b"key of the account").decode()
PAGE = "<!DOCTYPE html><html><head><title>Sign in</title></head><body><a href='help'>Help</a></body></html>"
XHTML = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><body><a href='/'>Home</a></body></html>"
BOMB = (
    "<?xml version='1.0'?><!DOCTYPE lolz [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>]>"
    "<html><body>&b;</body></html>"
)


def _answer(status, body, content_type="application/xml"):
    return lambda listing: (status, content_type, body)


def _error(code):
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>Please try again</Message></Error>"


FAILURES = {
    "page": _answer(200, PAGE, "text/html"),
    "page as XML": _answer(200, XHTML),
    "JSON page": _answer(200, '{"message": "please sign in"}', "application/json"),
    "JSON list": _answer(200, "[]", "application/json"),
    "text": _answer(200, "default backend", "text/plain"),
    "nothing": _answer(200, ""),
    "no content": _answer(204, ""),
    "error in a success": _answer(200, _error("InternalError")),
    "missing key in a success": _answer(200, _error("NoSuchKey")),
    "other document": _answer(200, "<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>"),
    "empty document": _answer(200, "<ListBucketResult/>"),
    "entities": _answer(200, BOMB),
    "bytes": _answer(200, b"\xff\xfe\x00\x80" * 8, "application/octet-stream"),
    "unauthorized": _answer(401, ""),
    "denied": _answer(403, _error("AccessDenied")),
    "missing without a code": _answer(404, "default backend - 404", "text/plain"),
    "missing page": _answer(404, PAGE, "text/html"),
    "missing key": _answer(404, _error("NoSuchKey")),
    "gone": _answer(410, "gone", "text/plain"),
    "bad request": _answer(400, _error("InvalidArgument")),
    "redirect": _answer(307, ""),
    "not implemented": _answer(501, _error("NotImplemented")),
    "internal error": _answer(500, _error("InternalError")),
    "slow down": _answer(503, _error("SlowDown")),
    "date": lambda listing: listing.written(modified="yesterday"),
    "no date": lambda listing: listing.written(modified=""),
    "far date": lambda listing: listing.written(modified="123456-11-11T00:00:00Z"),
    "size": lambda listing: listing.written(size="big"),
    "negative size": lambda listing: listing.written(size="-1"),
    "endless size": lambda listing: listing.written(size="9" * 40),
    "half": lambda listing: listing.cut(),
    "part without a token": lambda listing: listing.written(is_part=True, token=""),
    "same page": lambda listing: listing.written(token="again"),
    "other folder": lambda listing: listing.moved(),
    "cut": "cut",
    "reset": "reset",
    "no HTTP": "no HTTP",
}
"""What may come in place of a listing. None of it says what a folder contains."""
_OF_PAGES = frozenset({"missing without a code", "missing page", "missing key"})
_OF_KEYS = frozenset(
    {"date", "no date", "far date", "size", "negative size", "endless size", "part without a token", "same page"}
)


def failures_of(store):
    """Return the failures that a store may have. The status 404 is how a web server says that there is no folder."""
    left_out = {"web": _OF_PAGES | _OF_KEYS}.get(
        store, frozenset() if store.startswith("s3") else {"part without a token"}
    )
    return [name for name in FAILURES if name not in left_out]


@dataclass(frozen=True)
class Listing:
    """What a listing is asked for, and how its answer is written."""

    style: str
    """xml, json, azure or web."""
    prefix: str
    objects: dict[str, int]
    """Sizes by key."""
    folders: list[str]
    is_encoded: bool = False

    def written(self, *, modified=None, size=None, is_part=False, token=""):
        """Return status, content type and text, with values of the first object replaced."""
        rows = [
            (key, str(number), modified if modified is not None else self.time) for key, number in self.objects.items()
        ]
        if size is not None:
            rows = [(key, size, time) for key, _, time in rows] or [(f"{self.prefix}x", size, self.time)]
        elif modified is not None and not rows:
            rows = [(f"{self.prefix}x", "1", modified)]
        return 200, *getattr(self, f"_{self.style}")(rows, is_part=is_part or bool(token), token=token)

    def page_of(self, key, token):
        """Return a page of one key, after which another one comes."""
        return 200, *getattr(self, f"_{self.style}")([(key, "1", self.time)], is_part=True, token=token)

    def cut(self):
        """Return the first half of the document."""
        status, content_type, text = self.written()
        return status, content_type, text[: len(text) // 2]

    def moved(self):
        """Return the listing of another folder."""
        objects = {f"elsewhere/{key}": size for key, size in self.objects.items()} or {"elsewhere/x": 1}
        return Listing(self.style, "elsewhere/", objects, []).written()

    @property
    def time(self):
        return HTTP_TIME if self.style == "azure" else MODIFIED

    def _text(self, key):
        return escape(urllib.parse.quote(key, safe="/", errors="surrogateescape") if self.is_encoded else key)

    def _xml(self, rows, *, is_part, token):
        parts = [
            f"<Contents><Key>{self._text(key)}</Key><LastModified>{time}</LastModified><ETag>x</ETag>"
            f"<Size>{size}</Size></Contents>"
            for key, size, time in rows
        ]
        parts += [f"<CommonPrefixes><Prefix>{self._text(key)}</Prefix></CommonPrefixes>" for key in self.folders]
        parts += [f"<NextContinuationToken>{token}</NextContinuationToken>"] if token else []
        encoding = "<EncodingType>url</EncodingType>" if self.is_encoded else ""
        return "application/xml", (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{BUCKET}</Name>{encoding}<IsTruncated>{str(is_part).lower()}</IsTruncated>{''.join(parts)}"
            "</ListBucketResult>"
        )

    def _azure(self, rows, *, is_part, token):
        def name(key):
            is_plain = all(letter >= " " for letter in key)
            return (
                f"<Name>{escape(key)}</Name>" if is_plain else f'<Name Encoded="true">{urllib.parse.quote(key)}</Name>'
            )

        parts = [
            f"<Blob>{name(key)}<Properties><Last-Modified>{time}</Last-Modified><Etag>x</Etag>"
            f"<Content-Length>{size}</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>"
            for key, size, time in rows
        ]
        parts += [f"<BlobPrefix>{name(key)}</BlobPrefix>" for key in self.folders]
        return "application/xml", (
            f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="{BUCKET}">'
            f"<Blobs>{''.join(parts)}</Blobs><NextMarker>{token}</NextMarker></EnumerationResults>"
        )

    def _json(self, rows, *, is_part, token):
        items = [{"name": key, "size": size, "updated": time, "bucket": BUCKET} for key, size, time in rows]
        answer = {"kind": "storage#objects", "items": items, "prefixes": self.folders}
        return "application/json", json.dumps(answer | ({"nextPageToken": token} if token else {}))

    def _web(self, rows, *, is_part, token):
        names = [*self.folders, *(key for key, _, _ in rows)]
        links = [urllib.parse.quote(name[len(self.prefix) :], errors="surrogateescape") for name in names]
        items = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
        return (
            "text/html",
            f"<html><head><title>Index of /{escape(self.prefix)}</title></head><body>{items}</body></html>",
        )


class KeyServer:
    """Serves keys of one bucket.

    `fault` returns how a listing of a prefix fails: one of `FAILURES`, or a function that returns status, content type
    and text for a `Listing`; None for none.
    """

    def __init__(self, objects):
        self.objects = dict(objects)
        self.fault = lambda prefix: None
        self.listed = []
        """The prefixes that were listed."""
        self.requests = []
        """The method and the target of each request."""
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_GET(self):
                server.serve(self)

            def do_HEAD(self):
                server.serve(self)

            def log_message(self, *_):
                pass

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # whoever asked has gone
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self._http.shutdown()
        self._http.server_close()

    def serve(self, request):
        url = urllib.parse.urlsplit(request.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True, errors="surrogateescape"))
        path = url.path.removeprefix("/download")
        self.requests.append((request.command, request.path))
        json_items, azure = f"/storage/v1/b/{BUCKET}/o", f"/{ACCOUNT}/{BUCKET}"
        if path.startswith("/web"):
            key = urllib.parse.unquote(path[5:], errors="surrogateescape")
            is_folder = not key or key.endswith("/")
            return self._list(request, "web", key, query) if is_folder else self._object(request, key)
        if path == json_items:
            return self._list(request, "json", query.get("prefix", ""), query)
        if path.rstrip("/") == azure:
            return self._list(request, "azure", query.get("prefix", ""), query)
        if path.rstrip("/") == f"/{BUCKET}":
            return self._list(request, "xml", query.get("prefix", ""), query)
        start = next(start for start in (f"{json_items}/", f"{azure}/", f"/{BUCKET}/", "/") if path.startswith(start))
        return self._object(request, urllib.parse.unquote(path[len(start) :]), is_described=start[:4] == "/sto")

    def _list(self, request, style, prefix, query):
        self.listed.append(prefix)
        delimiter = "/" if style == "web" else query.get("delimiter", "")
        folders, objects = {}, {}
        for key in sorted(self.objects):
            rest = key[len(prefix) :]
            if not key.startswith(prefix) or not (rest or style != "web"):
                continue
            head, slash, _ = rest.partition(delimiter) if delimiter else (rest, "", "")
            if slash:
                folders[f"{prefix}{head}/"] = None
            else:
                objects[key] = len(self.objects[key])
        listing = Listing(style, prefix, objects, list(folders), is_encoded=query.get("encoding-type") == "url")
        failure = self.fault(prefix)
        failure = FAILURES.get(failure, failure)
        if style == "web" and not folders and not objects and not failure:
            return self._send(request, 404, "text/plain", b"no such folder")
        if failure in ("cut", "reset", "no HTTP"):
            return self._broken(request, failure, listing)
        status, content_type, text = failure(listing) if failure else listing.written()
        return self._send(
            request, status, content_type, text if isinstance(text, bytes) else text.encode(errors="surrogateescape")
        )

    def _broken(self, request, failure, listing):
        request.close_connection = True
        if failure == "reset":
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.connection.close()
        elif failure == "no HTTP":
            request.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        else:
            text = listing.written()[2].encode()
            self._send(request, 200, "application/xml", text[: len(text) // 2], length=len(text))

    def _object(self, request, key, *, is_described=False):
        content = self.objects.get(key)
        if content is None:
            code = "BlobNotFound" if f"/{ACCOUNT}/" in request.path else "NoSuchKey"
            return self._send(request, 404, "application/xml", _error(code).encode(), {"x-ms-error-code": code})
        if is_described and "alt=media" not in request.path:
            about = {
                "kind": "storage#object",
                "name": key,
                "bucket": BUCKET,
                "size": str(len(content)),
                "updated": MODIFIED,
            }
            return self._send(request, 200, "application/json", json.dumps(about).encode())
        headers = {
            "ETag": f'"{hashlib.sha256(content).hexdigest()[:16]}"',
            "Last-Modified": HTTP_TIME,
            "x-ms-blob-type": "BlockBlob",
        }
        asked = request.headers.get("Range") or request.headers.get("x-ms-range") or ""
        start, _, end = asked.removeprefix("bytes=").partition("-")
        if not asked or (start and int(start) >= len(content)):
            return self._send(request, 200, "application/octet-stream", content, headers)
        first = int(start) if start else max(len(content) - int(end), 0)
        last = min(int(end), len(content) - 1) if start and end else len(content) - 1
        headers |= {"Content-Range": f"bytes {first}-{last}/{len(content)}", "Accept-Ranges": "bytes"}
        return self._send(request, 206, "application/octet-stream", content[first : last + 1], headers)

    def _send(self, request, status, content_type, body, headers=None, length=None):
        headers = headers or {}
        with contextlib.suppress(OSError):
            request.send_response(status)
            for name, value in {"Content-Type": content_type, **headers}.items():
                request.send_header(name, value)
            if status == 307:
                request.send_header("Location", f"{self.url}/elsewhere")
            request.send_header("Content-Length", str(len(body) if length is None else length))
            request.end_headers()
            if request.command != "HEAD":
                request.wfile.write(body)
            request.wfile.flush()


_S3 = {"key": "AKIATESTKEY", "secret": "not-a-real-secret", "config_kwargs": {"retries": {"total_max_attempts": 1}}}


def stores(server) -> dict[str, tuple[str, dict[str, Any], str | None]]:
    """Return by name the URL of the bucket, the storage options, and the package that reads it; None for none."""
    s3 = {**_S3, "endpoint_url": server.url}
    azure = {
        "azure_storage_account_name": ACCOUNT,
        "azure_storage_account_key": _KEY,
        "azure_endpoint": f"{server.url}/{ACCOUNT}",
    }
    google = {"google_skip_signature": "true", "google_base_url": server.url}
    return {
        "s3": (f"s3://{BUCKET}", s3, None),
        "s3 by s3fs": (f"s3://{BUCKET}", {**s3, "use_ssl": False}, "s3fs"),
        "azure": (f"abfs://{BUCKET}", azure, None),
        "azure by adlfs": (f"abfs://{BUCKET}", {**azure, "location_mode": "primary"}, "adlfs"),
        "google": (f"gs://{BUCKET}", google, None),
        "google by gcsfs": (f"gs://{BUCKET}", {**google, "consistency": "none"}, "gcsfs"),
        "web": (f"{server.url}/web", {}, "aiohttp"),
    }


PACKAGES = {name: package for name, (_, _, package) in stores(SimpleNamespace(url="")).items()}
"""The package that reads each store."""
STORES = tuple(PACKAGES)
"""The names of the stores."""


def keys_of(folder, name):
    """Return the content of each file below a folder of this machine, by its key in a folder of a name."""
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {f"{name}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files}
