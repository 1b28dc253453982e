"""Azure on top of fsspec: only `Storage` retries requests, and errors name the missing credentials."""

import errno
from typing import Any

from snapshot_explorer.storage.bounded_answers import Part, call, seconds_for, until_first_byte
from snapshot_explorer.storage.failures import OversizedAnswerError, ReplacedFileError, UnexpectedResponseError
from snapshot_explorer.storage.listings import NOT_A_LISTING, Page, Pages
from snapshot_explorer.storage.ranges import Range

_OK, _CHANGED = 200, 412
PROTOCOLS = frozenset({"abfs", "abfss", "az"})


def prepare(filesystem: Any) -> None:
    """Make a file system of adlfs leave retries to `Storage`, and follow no redirects.

    Azure's client waits 18 seconds and more before a second attempt, even if credentials are missing.
    """
    client = getattr(filesystem, "service_client", None)
    policy = getattr(getattr(client, "_config", None), "retry_policy", None)
    if policy is not None:
        policy.total_retries = 0
    for policy in getattr(getattr(client, "_pipeline", None), "_impl_policies", ()):
        if "RedirectPolicy" in {cls.__name__.removeprefix("Async") for cls in type(policy).__mro__}:
            policy.allow = False


async def read_part(filesystem: Any, address: str, part: Range | None, etag: str | None, most_bytes: int) -> Part:
    """Return a part of a blob, or all of it, in one request for each 32 MiB."""
    from azure.core import MatchConditions  # noqa: PLC0415 - comes with adlfs, which is optional
    from azure.core.exceptions import HttpResponseError, ResourceNotFoundError  # noqa: PLC0415 - as above

    container, blob, _ = filesystem.split_path(address)
    options: dict[str, Any] = {} if part is None else {"offset": part[0], "length": part[1] - part[0]}
    options |= {"etag": etag, "match_condition": MatchConditions.IfNotModified} if etag else {}
    async with (
        filesystem.service_client.get_blob_client(container=container, blob=blob) as client,
        until_first_byte() as limit,
    ):

        def allow(size_bytes: int) -> None:
            limit.reschedule(filesystem.loop.time() + seconds_for(size_bytes))

        def check(response: Any) -> None:
            length = str(response.http_response.headers.get("Content-Length") or 0)
            allow(int(length) if length.isdecimal() else 0)

        try:
            stream = await client.download_blob(max_concurrency=1, raw_response_hook=check, **options)
        except ResourceNotFoundError as error:
            raise FileNotFoundError(errno.ENOENT, "it does not exist", address) from error
        except HttpResponseError as error:
            if error.status_code == _CHANGED and etag:
                raise ReplacedFileError from error
            raise
        if stream.size > most_bytes:
            raise OversizedAnswerError(stream.size, most_bytes)
        allow(stream.size)
        return Part(await stream.readall(), stream.properties.etag)


def listings(filesystem: Any, container: str) -> Pages:
    """Return the listings of a container with its keys unchanged; adlfs would treat them as paths.

    The answers are parsed here, because Azure's client returns an empty listing for any other document.
    """
    from snapshot_explorer.storage.store_listings import azure_page, parse_xml  # noqa: PLC0415 - local tables do without it

    async def page_of(prefix: str, delimiter: str, token: str | None) -> Page:
        pages: list[Page] = []

        def parse(response: Any) -> None:
            if response.http_response.status_code != _OK:
                return  # which the client raises
            root = parse_xml(response.http_response.body())
            if root is None:
                raise UnexpectedResponseError(NOT_A_LISTING)
            pages.append(azure_page(root))

        async with filesystem.service_client.get_container_client(container) as client:
            options = {"name_starts_with": prefix or None, "raw_response_hook": parse}
            blobs = client.walk_blobs(delimiter=delimiter, **options) if delimiter else client.list_blobs(**options)
            await anext(blobs.by_page(token))
        return pages[0]

    def page(prefix: str, *, delimiter: str, token: str | None) -> Page:
        found: Page = call(filesystem, page_of, prefix, delimiter, token)
        return found

    return page
