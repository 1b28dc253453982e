"""Azure on top of fsspec: `Storage` alone repeats requests, and the credentials that are missing are named."""

from typing import Any

from snapshot_explorer.storage.failures import UnexpectedResponseError
from snapshot_explorer.storage.listings import NOT_A_LISTING, Page, Pages
from snapshot_explorer.storage.store_listings import azure_page, parse_xml

_OK = 200
PROTOCOLS = frozenset({"abfs", "abfss", "az"})


def prepare(filesystem: Any) -> None:
    """Make a file system of adlfs leave retries to `Storage`.

    Azure's client waits 18 seconds and more before a second attempt, also where credentials are missing.
    """
    configuration = getattr(getattr(filesystem, "service_client", None), "_config", None)
    policy = getattr(configuration, "retry_policy", None)
    if policy is not None:
        policy.total_retries = 0


def listings(filesystem: Any, container: str) -> Pages:
    """Return the listings of a container with its keys unchanged, which adlfs takes for paths.

    The answers are parsed here, because Azure's client returns an empty listing for any other document.
    """
    from fsspec.asyn import sync  # noqa: PLC0415 - local tables do without it, and it takes long to import

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
        result: Page = sync(filesystem.loop, page_of, prefix, delimiter, token)
        return result

    return page
