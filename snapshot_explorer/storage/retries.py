"""Which errors of a storage pass by themselves, and how often and how long it is asked again."""

import errno
import random
import time
from collections.abc import Iterable, Mapping

from snapshot_explorer.storage.failures import DENIED, NotTheFileError, links_of, names_of

TRIES = 5
"""How often the storage is asked in all, where it fails in a way that passes."""
LAST_START = 30.0
"""Seconds after the first try from which on no further one begins."""
_FIRST_WAIT = 0.1
"""Seconds before the second try, on average; each further wait is twice as long."""
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
"""What the names of such errors, and the codes of S3, have in them."""
_TRIED_BY_BOTOCORE = frozenset({"ConnectTimeoutError", "ProxyConnectionError", "SSLError"})
"""Errors of a connection that never was: botocore has tried it often enough."""
_FINAL = frozenset({"TooManyRedirects", "RecursionError", "UnsupportedFeatureError"})


class Attempts:
    """Counts the tries of one question. Made where the first one has failed."""

    def __init__(self) -> None:
        """Begin to count."""
        self._made = 0
        self._began = time.monotonic()

    def wait(self, error: BaseException) -> bool:
        """Wait, and return True, if the error may pass and there is a try left; otherwise return False at once."""
        self._made += 1
        if self._made >= TRIES or not is_transient(error):
            return False
        # Of many that were refused at once, each comes back at another time.
        pause = _FIRST_WAIT * 2 ** (self._made - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - no secret hangs on it
        if time.monotonic() + pause - self._began > LAST_START:
            return False
        time.sleep(pause)
        return True


def is_transient(error: BaseException) -> bool:
    """Return whether the same question may succeed later: throttling, an overloaded server, a broken connection."""
    links = list(links_of(error))
    classes = {one.__name__ for link in links for one in type(link).__mro__}
    if not classes.isdisjoint(_TRIED_BY_BOTOCORE | _FINAL) or any(isinstance(link, PermissionError) for link in links):
        return False
    names = [name.lower() for name in names_of(error)]
    if _any_in(DENIED, names):
        return False
    return any(_passes(link) for link in links) or _any_in(_NAMES, names)


def _any_in(words: Iterable[str], names: Iterable[str]) -> bool:
    return any(word in name for name in names for word in words)


def _passes(error: BaseException) -> bool:
    if isinstance(error, ConnectionError | TimeoutError | NotTheFileError) or getattr(error, "errno", None) in _ERRNOS:
        return True
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        metadata = response.get("ResponseMetadata")
        statuses = [metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None]
    else:
        statuses = [getattr(place, name, None) for place in (error, response) for name in ("status", "status_code")]
        statuses.append(getattr(error, "code", None))
    return any(isinstance(status, int) and status in _STATUSES for status in statuses)
