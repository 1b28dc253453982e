"""Google Cloud Storage on top of fsspec: `Storage` alone repeats requests, and no second service is asked."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MethodType
from typing import Any

from snapshot_explorer.storage.failures import MissingBucketError, UnexpectedResponseError
from snapshot_explorer.storage.listings import NOT_A_LISTING, Page, Pages, stored_object

PROTOCOLS = frozenset({"gs", "gcs"})
_LOGINS = frozenset({"anon", "browser", "cache", "cloud", "google_default", "token"})
"""What gcsfs accepts as `token` beside a file, the contents of one, and a token."""
_LISTING = "b/{}/o"
"""The path of a listing, in gcsfs. It is missing only where the bucket is: an empty listing is not an error."""


def plain_file_system(filesystem: type) -> type:
    """Return the file system of gcsfs that reads over HTTP alone.

    The one that newer releases choose asks another service, over gRPC, for the type of each bucket, and waits a minute
    for it. Only zonal buckets need that.
    """
    return next((base for base in filesystem.__mro__ if base.__module__ == "gcsfs.core"), filesystem)


def connect(create: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return a file system of gcsfs; without the option `token` one with the default credentials, or with none.

    gcsfs itself then also waits 15 seconds for a virtual machine's credentials, which are among the default ones.
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
    """Make a file system of gcsfs leave retries to `Storage`, and tell a missing bucket from a missing file."""
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


def listings(filesystem: Any, bucket: str) -> Pages:
    """Return the listings of a bucket with its keys unchanged, which gcsfs takes for paths.

    Source: Cloud Storage JSON API, "Objects: list".
    """

    def page(prefix: str, *, delimiter: str, token: str | None) -> Page:
        query = {"prefix": prefix or None, "delimiter": delimiter or None, "pageToken": token}
        try:
            answer = filesystem.call("GET", _LISTING, bucket, json_out=True, **query)
        except ValueError as error:
            raise UnexpectedResponseError(NOT_A_LISTING) from error
        if not isinstance(answer, dict) or answer.get("kind") != "storage#objects":
            raise UnexpectedResponseError(NOT_A_LISTING)
        items, prefixes = answer.get("items") or [], answer.get("prefixes") or []
        objects = [stored_object(str(item.get("name", "")), item.get("size"), item.get("updated")) for item in items]
        return Page(objects, list(map(str, prefixes)), answer.get("nextPageToken") or None)

    return page
