"""S3 on top of fsspec: one layer that retries, and checks that a response comes from an object store."""

import re
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from snapshot_explorer.storage.failures import UnexpectedResponseError, error_chain
from snapshot_explorer.storage.listings import NOT_A_LISTING, Page, Pages, stored_object

RETRIES = {"mode": "standard", "total_max_attempts": 5}
"""How botocore retries: up to four times, after random waits of up to 1, 2, 4 and 8 seconds."""
_DIRECTORY_BUCKET = "--x-s3"
"""The end of the names of directory buckets."""
_NOBODY_THERE = ConnectionRefusedError, socket.gaierror
"""Errors of a wrong endpoint or port, most often. `Storage` repeats the request, with shorter waits."""
_PARTIAL, _REDIRECTED = 206, 300
_OBJECTS = frozenset({"GetObject", "HeadObject"})
_LISTINGS = frozenset({"ListObjects", "ListObjectsV2", "ListObjectVersions"})
_REQUESTED_RANGE = "snapshot_explorer.range"
_RANGE = re.compile(r"bytes[= ](\d+)-(\d*)")


def prepare(filesystem: Any) -> None:
    """Make a file system of s3fs check responses, and leave retries to botocore and to `Storage`.

    A session from the user stays unchanged.
    """
    if getattr(filesystem, "session", filesystem) is None:
        from aiobotocore.session import AioSession  # noqa: PLC0415 - comes with s3fs, which is optional

        filesystem.session = AioSession(**filesystem.kwargs)
        filesystem.session.register("before-parameter-build.s3.GetObject", _note_range)
        filesystem.session.register("after-call.s3", _check)
        filesystem.session.register("needs-retry.s3", _leave_to_storage)
    # The five attempts of s3fs would multiply with those of botocore and of Storage.
    filesystem.retries = 1


def is_directory_bucket(bucket: str) -> bool:
    """Return whether a bucket has real folders: it lists only whole ones."""
    return bucket.endswith(_DIRECTORY_BUCKET)


def listings(filesystem: Any, bucket: str) -> Pages:
    """Return the listings of a bucket with its keys unchanged, which s3fs takes for paths."""

    def page(prefix: str, *, delimiter: str, token: str | None) -> Page:
        options = {"Prefix": prefix, "Delimiter": delimiter, "ContinuationToken": token}
        given = {name: value for name, value in options.items() if value}
        answer = filesystem.call_s3("list_objects_v2", Bucket=bucket, **given, **filesystem.req_kw)
        objects = [
            stored_object(item.get("Key", ""), item.get("Size"), item.get("LastModified"))
            for item in answer.get("Contents", ())
        ]
        prefixes = [item.get("Prefix", "") for item in answer.get("CommonPrefixes", ())]
        next_token = answer.get("NextContinuationToken")
        if answer["IsTruncated"] and not next_token:
            raise UnexpectedResponseError("the storage answered with a part of a listing, and not how it goes on")
        return Page(objects, prefixes, next_token if answer["IsTruncated"] else None)

    return page


def endpoint(filesystem: Any) -> str:
    """Return where a file system of s3fs sends its requests, without user and query; empty before it connects."""
    meta = getattr(getattr(filesystem, "_s3", None), "meta", None)
    return shown_endpoint(str(meta.endpoint_url), meta.region_name) if meta else ""


def shown_endpoint(address: str, region: str | None) -> str:
    """Return an endpoint and its region for messages, without user and query; empty if it is not a URL."""
    try:
        url = urlsplit(address)
        port = f":{url.port}" if url.port else ""
    except ValueError:
        return ""
    return f"endpoint {url.scheme}://{url.hostname}{port}, region {region or 'none'}" if url.hostname else ""


def _leave_to_storage(caught_exception: Exception | None = None, **_: object) -> None:
    """Raise an error of a refused connection or an unknown host at once: botocore would wait up to 15 seconds."""
    if caught_exception is not None and any(isinstance(link, _NOBODY_THERE) for link in error_chain(caught_exception)):
        raise caught_exception


def _note_range(params: Mapping[str, Any], context: dict[str, Any], **_: object) -> None:
    if isinstance(params.get("Range"), str):
        context[_REQUESTED_RANGE] = params["Range"]


def _check(http_response: Any, parsed: Mapping[str, Any], model: Any, context: Mapping[str, Any], **_: object) -> None:
    """Refuse a response that no object store sends: a proxy's page in place of a file, its status or a listing."""
    if http_response.status_code >= _REDIRECTED:
        return
    problem = None
    if model.name in _LISTINGS and "IsTruncated" not in parsed:
        problem = NOT_A_LISTING
    elif model.name in _OBJECTS:
        if not parsed.get("ETag") or str(parsed.get("ContentType", "")).lower().startswith("text/html"):
            problem = "the storage answered with a page instead of the file"
        elif model.name == "GetObject" and not _is_requested_range(
            http_response.status_code, parsed, context.get(_REQUESTED_RANGE)
        ):
            problem = "the storage answered with another part of the file than requested"
    if problem:
        if hasattr(parsed.get("Body"), "close"):
            parsed["Body"].close()
        raise UnexpectedResponseError(problem)


def _is_requested_range(status: int, parsed: Mapping[str, Any], requested: str | None) -> bool:
    range_requested = _RANGE.match(requested or "")
    if range_requested is None:
        return status != _PARTIAL
    if status == _PARTIAL:
        range_returned = _RANGE.match(str(parsed.get("ContentRange", "")))
        return range_returned is not None and range_returned[1] == range_requested[1]
    # A server may answer a range that covers the file with the whole file.
    length = parsed.get("ContentLength")
    return (
        range_requested[1] == "0"
        and isinstance(length, int)
        and (not range_requested[2] or length <= int(range_requested[2]) + 1)
    )
