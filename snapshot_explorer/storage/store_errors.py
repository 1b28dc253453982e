"""Errors of S3, Azure and Google, by the status and the code of an answer."""

import re
from urllib.parse import urlsplit

from snapshot_explorer.storage.failures import MissingBucketError, RedirectedError
from snapshot_explorer.storage.origins import Response

_CODE = re.compile(r"<Code>([A-Za-z0-9]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_EXPECTED_REGION = re.compile(r"<Region>([a-z0-9-]+)</Region>")
_WRONG_REGION = "AuthorizationHeaderMalformed"
_DENIED = (401, 403)
_MISSING = 404
_REDIRECTS = range(300, 400)
_MISSING_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})


class ObjectStoreError(OSError):
    """The store answered with an error."""

    def __init__(self, text: str, status: int | None = None, error_code: str = "") -> None:
        """Keep the HTTP status and the store's own code, such as SlowDown, in addition to the text."""
        super().__init__(text)
        self.status = status
        self.error_code = error_code


class UnreachableStoreError(ConnectionError):
    """The endpoint does not answer, after several attempts."""


def answer_error(response: Response, host: str) -> Exception:
    """Return the error for an answer that is not a success. The answer to a HEAD request has its code in a header.

    Args:
        host: Host and port of the server.
    """
    text = response.content.decode(errors="replace")
    code = response.headers.get("x-ms-error-code", "")
    region = _EXPECTED_REGION.search(text) if _WRONG_REGION in text else None
    if response.status in _REDIRECTS or region:
        named = region[1] if region else response.headers.get("x-amz-bucket-region")
        target = response.headers.get("location", "")
        return RedirectedError("" if urlsplit(target).netloc == host else target, named)
    return status_error(response.status, text or f"<Code>{code}</Code>")


def status_error(status: int, text: str) -> Exception:
    """Return the error for an answer that is not a success.

    Only an answer with the store's own code means that an object is missing: a proxy or a gateway may answer 404, too.

    Args:
        text: The answer, which may contain more.
    """
    code, message = (match[1] if (match := pattern.search(text)) else "" for pattern in (_CODE, _MESSAGE))
    problem = f"{code or f'status {status}'}: {message}".rstrip(": ")
    if code in _MISSING_BUCKET:
        return MissingBucketError(problem)
    if status == _MISSING and code:
        return FileNotFoundError(problem)
    if status in _DENIED:
        return PermissionError(problem)
    return ObjectStoreError(problem, status, code)
