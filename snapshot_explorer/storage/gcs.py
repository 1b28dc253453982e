"""Google Cloud Storage on top of fsspec: only `Storage` retries requests, and no second service is called."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from snapshot_explorer.storage.bounded_answers import ERROR_BYTES, Part, call, collect, until_first_byte
from snapshot_explorer.storage.failures import MissingBucketError, ReplacedFileError, UnexpectedResponseError
from snapshot_explorer.storage.listings import NOT_A_LISTING, Page, Pages, stored_object
from snapshot_explorer.storage.ranges import Range

PROTOCOLS = frozenset({"gs", "gcs"})
_LOGINS = frozenset({"anon", "browser", "cache", "cloud", "google_default", "token"})
"""Keywords that gcsfs accepts as `token`, in addition to a file, its contents, and a token."""
_SUCCESS, _CHANGED = range(200, 300), 412
_MOST_ANSWER_BYTES = 64 * 2**20
"""The maximum number of bytes of a page of a listing, or of the metadata of an object."""


def plain_file_system(filesystem: type) -> type:
    """Return the file system of gcsfs that reads over HTTP alone.

    The file system that newer releases choose requests the type of each bucket from another service over gRPC, and
    waits a minute for it. Only zonal buckets need that.
    """
    return next((base for base in filesystem.__mro__ if base.__module__ == "gcsfs.core"), filesystem)


def connect(create: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return a file system of gcsfs; without the option `token` one with the default credentials, or with none.

    gcsfs itself then also waits 15 seconds for a virtual machine's credentials, which are default credentials too.
    """
    token = options.get("token")
    if isinstance(token, str) and token not in _LOGINS and not Path(token).expanduser().exists():
        from google.oauth2.credentials import Credentials  # noqa: PLC0415 - comes with gcsfs, which is optional

        credentials: Any = Credentials
        # gcsfs would send the token to another service, in a URL, to learn when it expires.
        return create(**{**options, "token": credentials(token)})
    if token is not None:
        return create(**options)
    from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - comes with gcsfs, which is optional

    try:
        return create(**{**options, "token": "google_default"})
    except GoogleAuthError:
        return create(**{**options, "token": "anon"})


async def read_part(filesystem: Any, address: str, part: Range | None, etag: str | None, most_bytes: int) -> Part:
    """Return a part of an object, or all of it, in one request.

    Source: Cloud Storage JSON API, "Objects: get".
    """
    url = filesystem.url(address) + (f"&ifGenerationMatch={etag}" if etag else "")
    headers = {} if part is None else {"Range": f"bytes={part[0]}-{part[1] - 1}"}
    return await _get(filesystem, url, headers=headers, most_bytes=most_bytes)


async def size(filesystem: Any, address: str) -> int:
    """Return the size of an object, in one request.

    Source: Cloud Storage JSON API, "Objects: get".
    """
    bucket, _, key = address.partition("/")
    url = f"{filesystem.base}b/{_quote(bucket)}/o/{_quote(key)}"
    answer = await _get(filesystem, url, most_bytes=_MOST_ANSWER_BYTES)
    try:
        return int(json.loads(answer.content)["size"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UnexpectedResponseError("the storage did not answer with the size of the object") from error


def listings(filesystem: Any, bucket: str) -> Pages:
    """Return the listings of a bucket with its keys unchanged; gcsfs would treat them as paths.

    Source: Cloud Storage JSON API, "Objects: list".
    """
    url = f"{filesystem.base}b/{_quote(bucket)}/o"

    def page(prefix: str, *, delimiter: str, token: str | None) -> Page:
        query = {"prefix": prefix or None, "delimiter": delimiter or None, "pageToken": token}
        request = partial(_get, filesystem, url, query=query, most_bytes=_MOST_ANSWER_BYTES)
        try:
            answer = json.loads(call(filesystem, request, is_limited=True).content)
        except FileNotFoundError as error:  # only where the bucket is missing: an empty listing is not an error
            raise MissingBucketError(f"the bucket {bucket} does not exist") from error
        except (ValueError, RecursionError) as error:
            raise UnexpectedResponseError(NOT_A_LISTING) from error
        if not isinstance(answer, dict) or answer.get("kind") != "storage#objects":
            raise UnexpectedResponseError(NOT_A_LISTING)
        items, prefixes = answer.get("items") or [], answer.get("prefixes") or []
        objects = [stored_object(str(item.get("name", "")), item.get("size"), item.get("updated")) for item in items]
        return Page(objects, list(map(str, prefixes)), answer.get("nextPageToken") or None)

    return page


async def _get(
    filesystem: Any,
    url: str,
    *,
    query: Mapping[str, str | None] = MappingProxyType({}),
    headers: Mapping[str, str] = MappingProxyType({}),
    most_bytes: int,
) -> Part:
    """Return the answer to a request, with the session and the credentials of gcsfs.

    gcsfs has no requests without retries, and none within limits of size and time.
    """
    from gcsfs.retry import validate_response  # noqa: PLC0415 - it is optional

    own = filesystem
    await own._set_session()  # noqa: SLF001 - there is no public way
    sent = own._get_headers(headers)  # noqa: SLF001 - as above
    async with (
        until_first_byte() as limit,
        own.session.get(url, params=own._get_params(query), headers=sent) as response,  # noqa: SLF001 - as above
    ):
        limit.reschedule(None)
        if response.status == _CHANGED:
            raise ReplacedFileError
        if response.status not in _SUCCESS:
            error = bytes(await response.content.read(ERROR_BYTES))
            validate_response(response.status, error, url, ())
        content = await collect(response.content.read, response.content_length, most_bytes)
        return Part(content, response.headers.get("x-goog-generation"))


def _quote(name: str) -> str:
    return quote(name, safe="")
