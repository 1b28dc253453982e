"""S3 through obstore, whose client is ready in milliseconds; s3fs reads what this would not read in the same way.

obstore is used where it is certain to do what s3fs does: the keys (or `anon`) and the region (or an endpoint) are in
the options or in the environment, and no option is set that only s3fs has. Profiles and roles remain with s3fs.
"""

import builtins  # `list` is a method here
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.storage import s3
from snapshot_explorer.storage.failures import MissingBucketError, UnexpectedResponseError
from snapshot_explorer.storage.files import Entry, RangedFiles, RemoteFiles
from snapshot_explorer.storage.location import Location, shortened

A = TypeVar("A")

_PAGE = 1000
"""The most entries in one response to a listing."""
_OPTIONS = frozenset(
    {"key", "secret", "token", "anon", "endpoint_url", "requester_pays", "client_kwargs", "config_kwargs"}
)
_CLIENT = frozenset({"endpoint_url", "region_name"})
_CONFIG = frozenset({"retries", "read_timeout", "connect_timeout", "max_pool_connections", "s3"})
_STYLE = frozenset({"addressing_style"})
_RETRIES = frozenset({"mode", "total_max_attempts"})
_WITHOUT_EFFECT = frozenset({"skip_instance_cache", "use_listings_cache", "listings_expiry_time", "max_paths"})
_LEFT_TO_S3FS = frozenset(
    {
        "AWS_PROFILE",
        "AWS_DEFAULT_PROFILE",
        "AWS_CONFIG_FILE",
        "AWS_USE_FIPS_ENDPOINT",
        "AWS_USE_DUALSTACK_ENDPOINT",
    }
)
"""Environment variables that obstore does not follow."""
_CERTIFICATES = frozenset({"AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"})
"""Likewise, for https."""
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.\-]*")
_HOST_NAME = re.compile(r"[a-z0-9][a-z0-9\-]*")
_EXPRESS = "--x-s3"
"""The end of the names of directory buckets."""
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z0-9]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_NOT_A_STORE = ("list response", "non-partial", "content-range", "etag", "last-modified", "content-length")
"""Parts of obstore's messages for answers that no object store sends."""
_DENIED = (401, 403)
_MISSING = 404
_users: set[int] = set()
"""The processes that have used obstore. Its threads do not survive a fork."""


class ObjectStoreError(OSError):
    """The store answered with an error."""

    def __init__(self, text: str, status: int | None = None, error_code: str = "") -> None:
        """Keep the HTTP status and the store's own code, such as SlowDown, beside the text."""
        super().__init__(text)
        self.status = status
        self.error_code = error_code


class UnreachableStoreError(ConnectionError):
    """The endpoint does not answer. obstore has already retried."""


class Settings(NamedTuple):
    """How obstore connects."""

    config: Mapping[str, Any]
    client: Mapping[str, Any]
    tries: int
    """Requests that the client makes, before `Storage` starts an attempt of its own."""
    credentials: Mapping[str, Any] | None
    """The keys; None for requests without a signature."""
    addressing: str
    """Where the bucket's name stands: `path`, `virtual` or `auto`, as in botocore."""


def settings(root: Location, options: Mapping[str, Any]) -> Settings | None:
    """Return how obstore connects to a location; None if that is left to fsspec. Opens nothing."""
    bucket = root.address.removeprefix("s3://").partition("/")[0]
    if (
        root.protocol != "s3"
        or not options.keys() <= _OPTIONS | _WITHOUT_EFFECT
        or root.hidden
        or not _BUCKET.fullmatch(bucket)
        or bucket.endswith(_EXPRESS)
        or not _LEFT_TO_S3FS.isdisjoint(os.environ)
        or find_spec("obstore") is None
        or (_users and os.getpid() not in _users)
    ):
        return None
    client, config = (options.get(name) or {} for name in ("client_kwargs", "config_kwargs"))
    if not (_has_only(client, _CLIENT) and _has_only(config, _CONFIG)):
        return None
    style, retries = config.get("s3") or {}, config.get("retries") or {}
    if not (_has_only(style, _STYLE) and _has_only(retries, _RETRIES)):
        return None
    endpoint = options.get("endpoint_url") or client.get("endpoint_url") or _variable("ENDPOINT_URL_S3", "ENDPOINT_URL")
    region = client.get("region_name") or _variable("DEFAULT_REGION")
    credentials = None if options.get("anon") else _credentials(options)
    addressing = style.get("addressing_style") or ("path" if endpoint else "auto")
    if (
        not (credentials or options.get("anon"))
        or not (region or (endpoint and not Path("~/.aws/config").expanduser().exists()))
        or (endpoint and ("@" in str(endpoint) or addressing != "path"))
        or not (_CERTIFICATES.isdisjoint(os.environ) or str(endpoint).startswith("http://"))
    ):
        return None
    seconds = {name: timedelta(seconds=config.get(name) or 60) for name in ("read_timeout", "connect_timeout")}
    retries = {**s3.RETRIES, **retries}
    return Settings(
        {
            "region": region or "us-east-1",
            "request_payer": bool(options.get("requester_pays")),
            "skip_signature": credentials is None,
            "endpoint": str(endpoint).rstrip("/") if endpoint else f"https://s3.{region}.amazonaws.com",
        },
        {"allow_http": True, "timeout": 10 * max(seconds.values()), **seconds},
        int(retries["total_max_attempts"]),
        credentials,
        addressing,
    )


def _has_only(options: Any, names: frozenset[str]) -> bool:
    return isinstance(options, Mapping) and options.keys() <= names


def _variable(*names: str) -> str | None:
    return next(filter(None, (os.environ.get(f"AWS_{name}") for name in names)), None)


def _credentials(options: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the keys in the options, or else in the environment; None if there are none, or not both."""
    key, secret, token = (options.get(name) for name in ("key", "secret", "token"))
    if not (key or secret or token):
        key, secret, token = map(_variable, ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"))
    if not (key and secret):
        return None
    return {
        "access_key_id": str(key),
        "secret_access_key": str(secret),
        "token": str(token) if token else None,
        "expires_at": None,
    }


class ObjectStoreFiles(RangedFiles):
    """Buckets of S3, read-only. An address is `bucket/key`, as in s3fs; every character of it is literal."""

    def __init__(self, connection: Settings, other: Callable[[], RemoteFiles]) -> None:
        """Connect to nothing yet.

        Args:
            other: Creates the file system that lists what obstore cannot list.
        """
        _users.add(os.getpid())
        self._connection = connection
        self._create_other = other
        self._stores: dict[str, Any] = {}
        # obstore does not notice an interrupt. The main thread waits for another one instead, which it can leave.
        self._waiting = ThreadPoolExecutor(8, "snapshot-explorer-s3")

    @property
    def endpoint(self) -> str:
        """The endpoint and region."""
        return s3.shown_endpoint(self._connection.config["endpoint"], self._connection.config["region"])

    def base(self, location: Location) -> str:
        """Return bucket and key."""
        return location.address.removeprefix("s3://").rstrip("/")

    def read(self, address: str, end: int | None = None) -> bytes:
        """Return a file's bytes, or those before an end, in one request."""
        return self._get(address, {} if end is None else {"range": (0, end)})

    def read_range(self, address: str, start: int, end: int) -> bytes:
        """Return a part of a file, in one request."""
        content = self._get(address, {"range": (start, end)})
        if len(content) != end - start:
            raise UnexpectedResponseError(f"the storage answered with {len(content):,} of {end - start:,} bytes")
        return content

    def _get(self, address: str, options: Mapping[str, Any]) -> bytes:
        return self._request(address, lambda store, key: bytes(_checked(store.get(key, options=options)).bytes()))

    def size(self, address: str) -> int | None:
        """Return the size of a file."""
        head = {"head": True}
        return self._request(address, lambda store, key: int(_checked(store.get(key, options=head)).meta["size"]))

    def is_file(self, address: str) -> bool:
        """Return True for a file that exists; otherwise FileNotFoundError is raised."""
        return self.size(address) is not None

    def list(self, address: str) -> list[Entry]:
        """Return the entries of a folder."""
        listed = self._listed(address)
        start = len(_key(address)) + 1 if _key(address) else 0
        folders = [_entry(path[start:], None) for path in listed["common_prefixes"]]
        # The name of an object that represents the folder is that of the folder.
        files = [_entry(item["path"][start:], item) for item in listed["objects"] if len(item["path"]) > start]
        if not folders and not listed["objects"]:
            return self._nothing_listed(address)
        if len(folders) + len(files) >= _PAGE - 1 and not self._is_complete(
            address, {entry.name for entry in (*folders, *files)}
        ):
            return self._other.list(address)
        return folders + files

    def folders(self, address: str) -> builtins.list[str]:
        """Return the names of the folders in a folder."""
        return [entry.name for entry in self.list(address) if entry.is_folder]

    def tree(self, address: str) -> dict[str, int | None] | None:
        """Return the size of each file below a folder."""
        request = self._request(address, lambda store, key: store.list(key or None, chunk_size=_PAGE).collect())
        start = len(_key(address)) + 1 if _key(address) else 0
        files = {item["path"][start:]: item["size"] for item in request if len(item["path"]) > start}
        is_doubtful = not request or len(request) >= _PAGE
        if is_doubtful and not self._is_complete(address, {path.partition("/")[0] for path in files}, files):
            return self._other.tree(address)
        return files

    def _listed(self, address: str) -> Any:
        return self._request(address, lambda store, key: store.list_with_delimiter(key or None))

    def _nothing_listed(self, address: str) -> builtins.list[Entry]:
        """Return no entries, once it is certain that there are none; raise NotADirectoryError for a file.

        obstore also returns an empty listing where a proxy answers with a page of its own. So the folder above has to
        be listed, and to lack this folder.
        """
        above, slash, _ = address.rpartition("/")
        try:
            found = self._listed(above) if slash else None
        except PermissionError:
            found = None  # the keys may only be valid for this folder
        if not found or not (found["objects"] or found["common_prefixes"]):
            return self._other.list(address)
        if _key(address) in found["common_prefixes"]:
            raise UnexpectedResponseError("the storage did not answer with a listing")
        if any(item["path"] == _key(address) for item in found["objects"]):
            raise NotADirectoryError(f"{address} is a file, not a folder")
        return []

    def _is_complete(self, address: str, names: Iterable[str], files: Iterable[str] = ()) -> bool:
        """Return whether a listing of several responses has all of them. One request.

        A page of a proxy in the place of the last response would end it early. So what comes after the last name but
        one is listed, which cannot be empty.
        """
        known = set(names)
        order = sorted(path.encode() for path in files or known)
        if len(order) < 2:  # noqa: PLR2004 - a name before the last one
            return False
        prefix = f"{_key(address)}/" if _key(address) else ""
        offset = prefix + order[-2].decode()
        rest: Any = self._request(
            address, lambda store, key: next(iter(store.list(key or None, offset=offset, chunk_size=_PAGE)), [])
        )
        paths = [item["path"][len(prefix) :] for item in rest]
        is_known = set(paths) <= set(files) if files else {path.partition("/")[0] for path in paths} <= known
        return 0 < len(paths) < _PAGE and is_known

    @property
    def _other(self) -> RemoteFiles:
        # Created anew, because it is rare. fsspec raises its own errors.
        return self._create_other()

    def _request(self, address: str, request: Callable[[Any, str], A]) -> A:
        work = partial(self._translated, address, request)
        is_main = threading.current_thread() is threading.main_thread()
        return self._waiting.submit(work).result() if is_main else work()

    def _translated(self, address: str, request: Callable[[Any, str], A]) -> A:
        try:
            return request(self._store(address.partition("/")[0]), _key(address))
        except (UnexpectedResponseError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - obstore raises several, whose texts have the request and the answer
            failure = _translated(error, address)
        raise failure

    def _store(self, bucket: str) -> Any:
        if bucket not in self._stores:
            from obstore.store import S3Store  # noqa: PLC0415 - it is optional

            config, client, tries, credentials, addressing = self._connection
            is_virtual = addressing == "virtual" or (addressing == "auto" and bool(_HOST_NAME.fullmatch(bucket)))
            host = config["endpoint"].replace("://", f"://{bucket}.", 1) if is_virtual else config["endpoint"]
            # Otherwise a session token in the environment would be added to the keys in the options.
            options: dict[str, Any] = {} if credentials is None else {"credential_provider": lambda: credentials}
            self._stores[bucket] = S3Store(
                bucket,
                config=cast("Any", {**config, "endpoint": host, "virtual_hosted_style_request": is_virtual}),
                client_options=cast("Any", client),
                retry_config={
                    "max_retries": tries - 1,
                    "retry_timeout": timedelta(seconds=30),
                    "backoff": {
                        "init_backoff": timedelta(seconds=0.1),
                        "max_backoff": timedelta(seconds=8),
                        "base": 2,
                    },
                },
                **options,
            )
        return self._stores[bucket]


def _key(address: str) -> str:
    return address.partition("/")[2]


def _entry(name: str, item: Mapping[str, Any] | None) -> Entry:
    modified = None if item is None else item["last_modified"].astimezone(UTC)
    return Entry(
        name=name, is_folder=item is None, size_bytes=None if item is None else item["size"], modified=modified
    )


def _checked(answer: Any) -> Any:
    """Return the answer to a request for a file; raise UnexpectedResponseError for a page in its place."""
    kind = str(answer.attributes.get("Content-Type") or "").lower()
    if not answer.meta["e_tag"] or kind.startswith("text/html"):
        raise UnexpectedResponseError("the storage answered with a page instead of the file")
    return answer


def _translated(error: Exception, address: str) -> Exception:
    """Return an error of Python's for one of obstore, without the request and without the rest of the answer."""
    whole = str(error)
    text = whole.partition("\n")[0]
    if isinstance(error, ValueError) and "parse path" in text:
        return UnsupportedFeatureError(
            f"s3:// cannot read the name {shortened(address)!r}: its library does not accept it. Copy the table to a "
            "local folder to read it."
        )
    if status := _STATUS.search(text):
        return _status_error(int(status[1]), whole)
    if "TooManyRedirects" in whole:
        return ObjectStoreError("too many redirects", error_code="TooManyRedirects")
    for sign, reason in (("dns error", "its name is unknown"), ("ConnectionRefused", "it refuses connections")):
        if sign in whole:
            return UnreachableStoreError(f"Could not connect to the endpoint: {reason}")
    if "kind: Timeout" in whole or "TimedOut" in whole:
        return TimeoutError("the storage did not answer in time")
    if "HTTP error" in text:
        return ConnectionError("the connection to the storage broke")
    if any(part in text.lower() for part in _NOT_A_STORE):
        found = "a listing" if "list response" in text else "the part of the file that was requested"
        return UnexpectedResponseError(f"the storage did not answer with {found}")
    return ObjectStoreError(type(error).__name__)


def _status_error(status: int, text: str) -> Exception:
    code, message = (match[1] if (match := pattern.search(text)) else "" for pattern in (_CODE, _MESSAGE))
    said = f"{code or f'status {status}'}: {message}".rstrip(": ")
    if code == "NoSuchBucket":
        return MissingBucketError(said)
    if status == _MISSING:
        return FileNotFoundError(said)
    if status in _DENIED:
        return PermissionError(said)
    return ObjectStoreError(said, status, code)
