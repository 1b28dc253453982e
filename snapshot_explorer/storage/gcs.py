"""Google Cloud Storage on top of fsspec: only `Storage` retries requests, and no second service is called."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MethodType
from typing import Any

from snapshot_explorer.storage.bounded_answers import ERROR_BYTES, Part, call, collect, until_first_byte
from snapshot_explorer.storage.failures import MissingBucketError, ReplacedFileError, UnexpectedResponseError
from snapshot_explorer.storage.listings import NOT_A_LISTING, Page, Pages, stored_object
from snapshot_explorer.storage.ranges import Range

PROTOCOLS = frozenset({"gs", "gcs"})
_LOGINS = frozenset({"anon", "browser", "cache", "cloud", "google_default", "token"})
"""Keywords that gcsfs accepts as `token`, in addition to a file, its contents, and a token."""
_SUCCESS, _CHANGED = range(200, 300), 412
_LISTING = "b/{}/o"
"""The path of a listing, in gcsfs. It is missing only where the bucket is: an empty listing is not an error."""


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


def prepare(filesystem: Any) -> None:
    """Make a gcsfs file system leave retries to `Storage`, and distinguish a missing bucket from a missing file."""
    decorated = type(filesystem)._request  # noqa: SLF001 - the decorator, which retries, has no setting
    request = getattr(decorated, "__wrapped__", decorated)

    async def checked_request(own: Any, method: str, path: str, *names: Any, **options: Any) -> Any:
        try:
            return await request(own, method, path, *names, **options)
        except FileNotFoundError as error:
            if path == _LISTING:
                raise MissingBucketError(f"the bucket {names[0]} does not exist") from error
            raise

    filesystem._request = MethodType(checked_request, filesystem)  # noqa: SLF001 - as above


async def read_part(filesystem: Any, address: str, part: Range | None, etag: str | None, most_bytes: int) -> Part:
    """Return a part of an object, or all of it, in one request.

    Source: Cloud Storage JSON API, "Objects: get".
    """
    from gcsfs.retry import validate_response  # noqa: PLC0415 - it is optional

    own = filesystem
    await own._set_session()  # noqa: SLF001 - there is no public way to read in pieces
    url = own.url(address) + (f"&ifGenerationMatch={etag}" if etag else "")
    headers = own._get_headers({} if part is None else {"Range": f"bytes={part[0]}-{part[1] - 1}"})  # noqa: SLF001 - as above
    async with (
        until_first_byte() as limit,
        own.session.get(url, params=own._get_params({}), headers=headers) as response,  # noqa: SLF001 - as above
    ):
        limit.reschedule(None)
        if response.status == _CHANGED and etag:
            raise ReplacedFileError
        if response.status not in _SUCCESS:
            error = bytes(await response.content.read(ERROR_BYTES))
            validate_response(response.status, error, url, ())
        content = await collect(response.content.read, response.content_length, most_bytes)
        return Part(content, response.headers.get("x-goog-generation"))


def listings(filesystem: Any, bucket: str) -> Pages:
    """Return the listings of a bucket with its keys unchanged; gcsfs would treat them as paths.

    Source: Cloud Storage JSON API, "Objects: list".
    """

    def page(prefix: str, *, delimiter: str, token: str | None) -> Page:
        query = {"prefix": prefix or None, "delimiter": delimiter or None, "pageToken": token}
        try:
            request = partial(filesystem._call, json_out=True, **query)  # noqa: SLF001 - it has no limit of time
            answer = call(filesystem, request, "GET", _LISTING, bucket)
        except ValueError as error:
            raise UnexpectedResponseError(NOT_A_LISTING) from error
        if not isinstance(answer, dict) or answer.get("kind") != "storage#objects":
            raise UnexpectedResponseError(NOT_A_LISTING)
        items, prefixes = answer.get("items") or [], answer.get("prefixes") or []
        objects = [stored_object(str(item.get("name", "")), item.get("size"), item.get("updated")) for item in items]
        return Page(objects, list(map(str, prefixes)), answer.get("nextPageToken") or None)

    return page
