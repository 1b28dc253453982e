"""Detection of transient storage errors, and the number and delays of retries."""

import errno
import random
import time
from collections.abc import Iterable, Mapping

from snapshot_explorer.storage.failures import DENIED, UnexpectedResponseError, error_chain, error_names

TRIES = 5
"""Attempts in all, after transient errors."""
LAST_START = 30.0
"""Seconds after the first attempt; no attempt starts later."""
FIRST_WAIT = 0.1
"""Mean seconds before the second attempt; each further wait is twice as long."""
_STATUSES = frozenset({408, 429, 500, 502, 503, 504, 509})
_ERRNOS = frozenset(
    getattr(errno, name)
    for name in ("EAGAIN", "EBUSY", "ECONNABORTED", "ECONNRESET", "EPIPE", "EREMOTEIO", "ETIMEDOUT", "ENETRESET")
    if hasattr(errno, name)
)
_NAMES = (
    "connectionclosed",
    "connectionerror",
    "connectionreset",
    "disconnected",
    "httpclienterror",
    "incompleteread",
    "internalerror",
    "payloaderror",
    "responseparser",
    "responsestreaming",
    "serverbusy",
    "serviceunavailable",
    "slowdown",
    "throttl",
    "timedout",
    "timeout",
    "toomanyrequests",
)
"""Parts of the names of transient errors, and of S3 error codes."""
_TRIED_BY_CLIENT = frozenset({"ConnectTimeoutError", "ProxyConnectionError", "SSLError", "UnreachableStoreError"})
"""Errors while connecting, which botocore or `buckets` has already retried."""
_FINAL = frozenset(
    {
        "EndlessListingError",
        "OversizedAnswerError",
        "RecursionError",
        "RedirectedError",
        "ReplacedFileError",
        "TooManyRedirects",
        "UnsupportedFeatureError",
    }
)


class Attempts:
    """Counts the attempts of one request. Created before the first one."""

    def __init__(self, tries: int = TRIES) -> None:
        self._tries = tries
        self._made = 0
        self._began = time.monotonic()

    def wait(self, error: BaseException) -> bool:
        """Wait and return True if the error is transient and an attempt is left; otherwise return False at once."""
        self._made += 1
        if self._made >= self._tries or not is_transient(error):
            return False
        # Random, so that many clients throttled at once do not retry at the same time.
        pause = FIRST_WAIT * 2 ** (self._made - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - not for a secret
        if time.monotonic() + pause - self._began > LAST_START:
            return False
        time.sleep(pause)
        return True


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may succeed later: throttling, an overloaded server, a broken connection."""
    links = list(error_chain(error))
    classes = {item.__name__ for link in links for item in type(link).__mro__}
    if not classes.isdisjoint(_TRIED_BY_CLIENT | _FINAL) or any(isinstance(link, PermissionError) for link in links):
        return False
    names = [name.lower() for name in error_names(error)]
    if _any_contains(DENIED, names):
        return False
    return any(_is_transient_link(link) for link in links) or _any_contains(_NAMES, names)


def _any_contains(words: Iterable[str], names: Iterable[str]) -> bool:
    return any(word in name for name in names for word in words)


def _is_transient_link(error: BaseException) -> bool:
    if (
        isinstance(error, ConnectionError | TimeoutError | UnexpectedResponseError)
        or getattr(error, "errno", None) in _ERRNOS
    ):
        return True
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        metadata = response.get("ResponseMetadata")
        statuses = [metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None]
    else:
        statuses = [getattr(source, name, None) for source in (error, response) for name in ("status", "status_code")]
        if not any(statuses):  # aiohttp warns when `code` is read from an error with a status
            statuses.append(getattr(error, "code", None))
    return any(isinstance(status, int) and status in _STATUSES for status in statuses)
