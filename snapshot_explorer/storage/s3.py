"""S3 on top of fsspec: one layer that retries, and checks that a response comes from an object store."""

import re
import socket
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.storage.bounded_answers import Part, call, collect, match_header
from snapshot_explorer.storage.failures import (
    RedirectedError,
    ReplacedFileError,
    UnexpectedResponseError,
    error_chain,
    error_names,
)
from snapshot_explorer.storage.listings import NOT_A_LISTING, Page, Pages, stored_object
from snapshot_explorer.storage.ranges import Range
from snapshot_explorer.storage.web import redirect_guard

RETRIES = {"mode": "standard", "total_max_attempts": 5}
"""How botocore retries: up to four times, after random waits of up to 1, 2, 4 and 8 seconds."""
_DIRECTORY_BUCKET = "--x-s3"
"""The end of the names of directory buckets."""
_NOT_REPEATED = ConnectionRefusedError, socket.gaierror, RedirectedError
"""Errors of a wrong endpoint or port, most often. `Storage` repeats some requests, with shorter waits."""
_PARTIAL, _REDIRECTED = 206, 300
_OBJECTS = frozenset({"GetObject", "HeadObject"})
_LISTINGS = frozenset({"ListObjects", "ListObjectsV2", "ListObjectVersions"})
_CHANGED = "PreconditionFailed"
_DECLARATION = re.compile(rb"<\0?!\0?D\0?O\0?C\0?T\0?Y\0?P\0?E", re.IGNORECASE)
"""The beginning of a declaration, in UTF-8 or UTF-16."""
_GUARDED = "snapshot_explorer_guarded"
_REQUESTED_RANGE = "snapshot_explorer.range"
_RANGE = re.compile(r"bytes[= ](\d+)-(\d*)")


def prepare(filesystem: Any) -> None:
    """Make a file system of s3fs check responses, follow no redirect, and leave retries to botocore and to `Storage`.

    A session from the user stays unchanged.
    """
    filesystem.cache_regions = False  # a client that follows redirects would request the region
    client_of = filesystem.get_s3

    async def guarded_client(bucket: str | None = None) -> Any:
        client = await client_of(bucket)
        _follow_no_redirects(client)
        return client

    filesystem.get_s3 = guarded_client
    if getattr(filesystem, "session", filesystem) is None:
        from aiobotocore.session import AioSession  # noqa: PLC0415 - comes with s3fs, which is optional

        filesystem.session = AioSession(**filesystem.kwargs)
        filesystem.session.register("before-parameter-build.s3.GetObject", _note_range)
        filesystem.session.register("before-parse.s3", _refuse_declarations)
        filesystem.session.register("after-call.s3", _check)
        filesystem.session.register("needs-retry.s3", _leave_to_storage)
    # The five attempts of s3fs would multiply with the attempts of botocore and of Storage.
    filesystem.retries = 1


def _follow_no_redirects(client: Any) -> None:
    """Make a client of aiobotocore follow no redirect to another host: it would send the session token there."""
    http = getattr(getattr(client, "_endpoint", None), "http_session", None)
    if http is None or getattr(http, _GUARDED, False) or "Httpx" in type(http).__name__:  # which follows none
        return
    sessions_of = getattr(http, "_get_session", None)
    if sessions_of is not None:

        async def guarded_session(*args: Any) -> Any:
            return _guard_session(await sessions_of(*args))

        http._get_session = guarded_session  # noqa: SLF001 - there is no setting
    elif hasattr(getattr(http, "_session", None), "trace_configs"):
        _guard_session(http._session)  # noqa: SLF001 - as above, in aiobotocore before 2.14
    else:
        raise UnsupportedFeatureError(
            "The installed aiobotocore cannot be told not to follow redirects, with which a server could have the "
            "credentials sent elsewhere. Install another version of s3fs and aiobotocore."
        )
    setattr(http, _GUARDED, True)


def _guard_session(session: Any) -> Any:
    """Return a session of aiohttp that follows no redirect to another server."""
    if not getattr(session, _GUARDED, False):
        guard = redirect_guard()
        guard.freeze()
        session.trace_configs.append(guard)
        object.__setattr__(session, _GUARDED, True)
    return session


async def read_part(filesystem: Any, address: str, part: Range | None, etag: str | None, most_bytes: int) -> Part:
    """Return a part of an object, or all of it, in one request."""
    bucket, key, _ = filesystem.split_path(address)
    options: dict[str, Any] = {} if part is None else {"Range": f"bytes={part[0]}-{part[1] - 1}"}
    options |= {"IfMatch": etag} if match_header(etag) else {}
    try:
        answer = await filesystem._call_s3(  # noqa: SLF001 - there is no public way to read in pieces
            "get_object", Bucket=bucket, Key=key, **options, **filesystem.req_kw
        )
    except OSError as error:
        if _CHANGED in error_names(error):
            raise ReplacedFileError from error
        raise
    body = answer["Body"]
    try:
        return Part(await collect(body.read, answer.get("ContentLength"), most_bytes), answer.get("ETag"))
    finally:
        body.close()


def is_directory_bucket(bucket: str) -> bool:
    """Return whether a bucket has real folders: it lists only whole ones."""
    return bucket.endswith(_DIRECTORY_BUCKET)


def listings(filesystem: Any, bucket: str) -> Pages:
    """Return the listings of a bucket with its keys unchanged; s3fs would treat them as paths."""

    def page(prefix: str, *, delimiter: str, token: str | None) -> Page:
        options = {"Prefix": prefix, "Delimiter": delimiter, "ContinuationToken": token}
        parameters = {name: value for name, value in options.items() if value}
        request = partial(filesystem._call_s3, Bucket=bucket, **parameters, **filesystem.req_kw)  # noqa: SLF001 - as above
        answer = call(filesystem, request, "list_objects_v2")
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
    """Return the endpoint of an s3fs file system, without user and query; empty before it connects."""
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
    if caught_exception is not None and any(isinstance(link, _NOT_REPEATED) for link in error_chain(caught_exception)):
        raise caught_exception


def _refuse_declarations(response_dict: Mapping[str, Any], **_: object) -> None:
    """Refuse a document that declares entities, which could grow without bounds: no answer of S3 does."""
    body = response_dict.get("body")
    if isinstance(body, bytes | bytearray) and _DECLARATION.search(body):
        raise UnexpectedResponseError("the storage answered with a page, or a document that no object store sends")


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
