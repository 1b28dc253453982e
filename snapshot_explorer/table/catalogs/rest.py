"""pyiceberg's client for REST catalogs, with limits on what a server's answers may do.

Properties in an answer can name modules that pyiceberg imports and calls, and hosts to which it sends credentials. So
only listed properties reach it, and an answer's size is limited. Only imported where pyiceberg is installed.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import orjson
from pyiceberg.catalog.rest import RestCatalog  # noqa: TID253 - this module is only imported for a REST catalog
from requests.adapters import BaseAdapter
from requests.exceptions import ConnectionError as RequestsConnectionError

from snapshot_explorer.core.errors import LimitError, StorageError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.limits import opening_with
from snapshot_explorer.formats import json_text
from snapshot_explorer.storage.failures import error_chain
from snapshot_explorer.storage.location import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from requests import PreparedRequest, Response, Session

_MAX_PROPERTIES = 1000
_MAX_PROPERTY_CHARACTERS = 100_000
"""The maximum number of properties in an answer, and of their characters: messages are searched for each property."""
_CHUNK_BYTES = 1 << 16
_TIMEOUT_SECONDS = 30
"""The time in which a server must accept a connection, or send the next bytes."""
_CLIENT_PROPERTIES = frozenset({"namespace-separator", "prefix", "uri"})
"""Properties of the catalog that a server may set; the URI only within the same origin."""
_STORAGE_PROPERTIES = frozenset(
    {
        "client.access-key-id",
        "client.region",
        "client.secret-access-key",
        "client.session-token",
        "s3.access-key-id",
        "s3.anonymous",
        "s3.endpoint",
        "s3.force-virtual-addressing",
        "s3.path-style-access",
        "s3.region",
        "s3.secret-access-key",
        "s3.session-token",
    }
)
"""Properties of the storage that a server may set. Not the name of a profile: it would select the user's own keys."""
_PUBLIC = frozenset({"client.region", "namespace-separator", "prefix", "s3.region", "uri", "warehouse"})
"""Properties in answers whose values are not secret."""
_WORDS = frozenset({"true", "false", "none", "null"})
"""Values that are not secret in any property."""


class LimitedRestCatalog(RestCatalog):
    """A REST catalog whose answers are limited.

    Args:
        secret: Called with each text in an answer that messages must not contain.
        max_bytes: The maximum size of an answer, decompressed.
    """

    def __init__(
        self, name: str, properties: Mapping[str, Any], secret: Callable[[str], object], max_bytes: int
    ) -> None:
        self._secret = secret
        self._max_bytes = max_bytes
        super().__init__(name, **properties)

    def _config_headers(self, session: Session) -> None:
        # The first step for a new session: the next ones may already send requests, for tokens.
        super()._config_headers(session)
        self._limit(session)

    def _create_session(self) -> Session:
        session = super()._create_session()
        self._limit(session)  # the adapter that signs requests for AWS is new
        return session

    def _limit(self, session: Session) -> None:
        for prefix, adapter in list(session.adapters.items()):
            if not isinstance(adapter, _LimitedAdapter):
                session.mount(prefix, _LimitedAdapter(adapter, self._limited, self._max_bytes))

    def _limited(self, content: bytes, *, is_error: bool) -> bytes:
        """Return an answer with only the properties that pyiceberg may have."""
        try:
            answer = json_text.loads(content, "its answer")
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            if is_error:
                return content
            raise StorageError("its answer is not a JSON object")
        secrets = list(_secrets(answer))
        if len(secrets) > _MAX_PROPERTIES or sum(map(len, secrets)) > _MAX_PROPERTY_CHARACTERS:
            raise StorageError(f"its answer has more than {_MAX_PROPERTIES} properties, or longer ones than usual")
        for text in secrets:
            self._secret(text)
        try:
            return orjson.dumps(_without_unlisted(answer, self.properties["uri"]))
        except (orjson.JSONEncodeError, RecursionError):
            problem = f"its answer has values within each other to more than {json_text.WRITTEN_LEVELS} levels"
        raise LimitError(problem)  # not above: the context would have a thousand frames


class _LimitedAdapter(BaseAdapter):
    """An adapter of requests that passes each answer through a function."""

    def __init__(self, adapter: BaseAdapter, limited: Callable[..., bytes], max_bytes: int) -> None:
        super().__init__()
        self._adapter = adapter
        self._limited = limited
        self._max_bytes = max_bytes

    def send(self, request: PreparedRequest, *args: Any, **options: Any) -> Response:
        """Return the answer to a request, which has been read. Repeats a GET once if the connection was closed."""
        options |= {"stream": True, "timeout": options.get("timeout") or _TIMEOUT_SECONDS}
        try:
            response = self._adapter.send(request, *args, **options)
        except RequestsConnectionError as error:
            # A server may close a connection that was kept open just when the next request is sent over it.
            is_closed = any(isinstance(link, ConnectionResetError | BrokenPipeError) for link in error_chain(error))
            if request.method != "GET" or not is_closed:
                raise
            response = self._adapter.send(request, *args, **options)
        with response:
            if response.is_redirect:
                _check_redirect(str(request.url), response.headers["location"])
            content = _content(response, self._max_bytes)
        is_error = response.status_code >= HTTPStatus.BAD_REQUEST
        # There is no public way to replace the content.
        response._content = b"" if response.is_redirect else self._limited(content, is_error=is_error)  # noqa: SLF001
        response._content_consumed = True  # noqa: SLF001
        response.encoding = "utf-8"
        return response

    def close(self) -> None:
        self._adapter.close()


def _check_redirect(url: str, target: str) -> None:
    """Raise StorageError for a redirect to another server: requests would send it all but the token."""
    target = urljoin(url, target)
    if (origin := _origin(target)) != _origin(url):
        where = f" to {shorten('://'.join(origin))}" if origin and "@" not in origin[1] else ""
        raise StorageError(
            f"it redirects{where}, which is not followed, because credentials would be sent there. If you trust that "
            "address, give it as the catalog"
        )


def _content(response: Response, max_bytes: int) -> bytes:
    content = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        content += chunk
        if len(content) > max_bytes:
            raise LimitError(
                Message(
                    f"its answer has more than {max_bytes} bytes. If it is valid, raise the limit: ",
                    opening_with("value_bytes", 2 * max_bytes),
                )
            )
    return bytes(content)


def _without_unlisted(answer: Mapping[str, Any], uri: str) -> Mapping[str, Any]:
    """Return an answer of the REST protocol without the properties that are not listed."""
    limited = dict(answer)
    for member in ("defaults", "overrides", "config"):
        if member in limited:
            limited[member] = _listed_properties(limited[member], uri)
    credentials = limited.get("storage-credentials")
    if isinstance(credentials, list):
        limited["storage-credentials"] = [
            {**entry, "config": _listed_properties(entry.get("config"), uri)}
            for entry in credentials
            if isinstance(entry, dict)
        ]
    metadata = limited.get("metadata")
    if isinstance(metadata, dict):
        # Everyone who writes to the table can set them.
        limited["metadata"] = {**metadata, "properties": {}}
    return limited


def _listed_properties(properties: object, uri: str) -> dict[str, str]:
    """Return the listed properties whose values are simple. A URI of another origin is left out."""
    if not isinstance(properties, dict):
        return {}
    listed = _CLIENT_PROPERTIES | _STORAGE_PROPERTIES
    return {
        name: str(value)
        for name, value in properties.items()
        if name in listed and isinstance(value, str | int) and (name != "uri" or _origin(value) == _origin(uri))
    }


def _origin(uri: object) -> tuple[str, str] | None:
    try:
        parts = urlsplit(str(uri))
    except ValueError:
        return None
    return parts.scheme.lower(), parts.netloc.lower()


def _secrets(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts in the properties and tokens of an answer, without texts in the metadata and messages."""
    for name, value in answer.items():
        if name in ("defaults", "overrides", "config", "storage-credentials") or "token" in name:
            yield from _texts(value)


def _texts(value: object, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _texts(member, key)
    elif isinstance(value, list):
        for member in value:
            yield from _texts(member, name)
    elif name not in _PUBLIC and isinstance(value, str | int | float) and str(value).lower() not in _WORDS:
        yield str(value)
