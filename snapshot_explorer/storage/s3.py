"""What S3 needs beside fsspec: one place that asks again, and answers that prove that an object store gave them."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from snapshot_explorer.storage.failures import NotTheFileError

RETRIES = {"mode": "standard", "total_max_attempts": 5}
"""How botocore asks again: up to four times, after up to 1, 2, 4 and 8 seconds, each of random length."""
_PARTIAL, _REDIRECTED = 206, 300
_OBJECTS = frozenset({"GetObject", "HeadObject"})
_LISTINGS = frozenset({"ListObjects", "ListObjectsV2", "ListObjectVersions"})
_ASKED = "snapshot_explorer.range"
_RANGE = re.compile(r"bytes[= ](\d+)-(\d*)")


def prepare(filesystem: Any) -> None:
    """Have a file system of s3fs check what is answered, and leave asking again to botocore and to us.

    A session that the user gave is left as it is.
    """
    if getattr(filesystem, "session", filesystem) is None:
        from aiobotocore.session import AioSession  # noqa: PLC0415 - comes with s3fs, which is optional

        filesystem.session = AioSession(**filesystem.kwargs)
        filesystem.session.register("before-parameter-build.s3.GetObject", _note_range)
        filesystem.session.register("after-call.s3", _check)
    # Its own five would multiply with those of botocore and of ours.
    filesystem.retries = 1


def endpoint(filesystem: Any) -> str:
    """Return where a file system of s3fs sends its requests, without user and query; empty before it connects."""
    meta = getattr(getattr(filesystem, "_s3", None), "meta", None)
    try:
        url = urlsplit(str(meta.endpoint_url)) if meta else None
        port = f":{url.port}" if url and url.port else ""
    except ValueError:
        return ""
    if url is None or not url.hostname or meta is None:
        return ""
    return f"endpoint {url.scheme}://{url.hostname}{port}, region {meta.region_name or 'none'}"


def _note_range(params: Mapping[str, Any], context: dict[str, Any], **_: object) -> None:
    if isinstance(params.get("Range"), str):
        context[_ASKED] = params["Range"]


def _check(http_response: Any, parsed: Mapping[str, Any], model: Any, context: Mapping[str, Any], **_: object) -> None:
    """Refuse what no object store answers: a proxy's page in the place of a file, of its status or of a listing.

    Raises:
        NotTheFileError: The answer is of another kind than what was asked for, or another part of the file.
    """
    if http_response.status_code >= _REDIRECTED:
        return
    problem = None
    if model.name in _LISTINGS and "IsTruncated" not in parsed:
        problem = "the storage answered with something else than a listing"
    elif model.name in _OBJECTS:
        if not parsed.get("ETag") or str(parsed.get("ContentType", "")).lower().startswith("text/html"):
            problem = "the storage answered with a page instead of the file"
        elif model.name == "GetObject" and not _is_asked_part(http_response.status_code, parsed, context.get(_ASKED)):
            problem = "the storage answered with another part of the file than was asked for"
    if problem:
        if hasattr(parsed.get("Body"), "close"):
            parsed["Body"].close()
        raise NotTheFileError(problem)


def _is_asked_part(status: int, parsed: Mapping[str, Any], asked: str | None) -> bool:
    wanted = _RANGE.match(asked or "")
    if wanted is None:
        return status != _PARTIAL
    if status == _PARTIAL:
        given = _RANGE.match(str(parsed.get("ContentRange", "")))
        return given is not None and given[1] == wanted[1]
    # A server may answer with the whole file where that is what was asked for.
    length = parsed.get("ContentLength")
    return wanted[1] == "0" and isinstance(length, int) and (not wanted[2] or length <= int(wanted[2]) + 1)
