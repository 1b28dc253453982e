"""Files and folders of web servers on top of fsspec. Folders are listed on pages of links."""

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from snapshot_explorer.storage.bounded_answers import Part, collect, match_header, until_first_byte
from snapshot_explorer.storage.failures import RedirectedError, ReplacedFileError, UnexpectedResponseError
from snapshot_explorer.storage.listings import Entry
from snapshot_explorer.storage.ranges import Range

MOST_PAGE_BYTES = 64 * 2**20
"""The maximum number of bytes of a page that lists a folder."""
_CHANGED = 412
_REDIRECTS = range(300, 400)
_PORTS = {"http": 80, "https": 443}
_TITLE = re.compile(r"index of|directory listing|directory:|listing of|files within", re.IGNORECASE)
"""Words in the titles that web servers give to the pages on which they list folders."""


def within_origin(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return options with which an fsspec file system follows no redirect to another server.

    Args:
        name: The option with the arguments of aiohttp's session.
    """
    session = dict(options.get(name) or {})
    return {**options, name: {**session, "trace_configs": [*(session.get("trace_configs") or ()), redirect_guard()]}}


def redirect_guard() -> Any:
    """Return a trace config that makes an aiohttp session raise RedirectedError for a redirect to another server."""
    import aiohttp  # noqa: PLC0415 - comes with fsspec's packages for the web and for S3, which are optional

    config = aiohttp.TraceConfig()
    config.on_request_redirect.append(_check_redirect)
    return config


async def _check_redirect(_session: object, _context: object, redirect: Any) -> None:
    """Raise RedirectedError for a redirect to another server: headers with secrets would be sent there."""
    response, url = redirect.response, str(redirect.url)
    target = urljoin(url, str(response.headers.get("Location") or response.headers.get("URI") or ""))
    if _origin(target) != _origin(url):
        response.close()
        raise RedirectedError(target, response.headers.get("x-amz-bucket-region"))


def _origin(url: str) -> tuple[str, str | None, int | None] | None:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None


async def read_part(filesystem: Any, address: str, part: Range | None, etag: str | None, most_bytes: int) -> Part:
    """Return a part of a file, or all of it, in one request."""
    options = dict(filesystem.kwargs)
    headers = {**(options.pop("headers", None) or {}), **match_header(etag)}
    if part is not None:
        headers["Range"] = f"bytes={part[0]}-{part[1] - 1}"
    if address.endswith("/"):
        options["allow_redirects"] = False  # a redirect may lead to a page on which people sign in
    session = await filesystem.set_session()
    async with (
        until_first_byte() as limit,
        session.get(filesystem.encode_url(address), headers=headers, **options) as response,
    ):
        limit.reschedule(None)
        if response.status == _CHANGED and etag:
            raise ReplacedFileError
        if response.status in _REDIRECTS:
            raise RedirectedError
        filesystem._raise_not_found_for_status(response, address)  # noqa: SLF001 - as fsspec does
        is_encoded = "Content-Encoding" in response.headers
        content = await collect(response.content.read, None if is_encoded else response.content_length, most_bytes)
        return Part(content, response.headers.get("ETag"))


def entries_of_page(page: bytes, url: str) -> list[Entry]:
    """Return the entries of a folder, without sizes and times, which servers write in many ways.

    Args:
        url: The address of the folder, with a slash at its end.

    Raises:
        UnexpectedResponseError: The page does not list the folder: it has neither a title with its name nor a link to
            the folder above; or it was cut short.
    """
    text = page.decode(errors="surrogateescape")
    links = _Links()
    links.feed(text)
    links.close()
    is_cut = "<html" in text.lower() and "</html" not in text.lower()
    folder = urlsplit(url)
    start, above = unquote(folder.path), unquote(urlsplit(urljoin(url, "..")).path)
    entries: dict[str, Entry] = {}
    has_parent = False
    for link in links.targets:
        try:
            target = urlsplit(urljoin(url, link))
        except ValueError:
            continue  # it is not a URL
        path = unquote(target.path, errors="surrogateescape")
        has_parent = has_parent or (path == above and start != "/")
        name = path.removeprefix(start).removesuffix("/")
        is_entry = path.startswith(start) and name and "/" not in name and not target.query
        if is_entry and target.netloc in ("", folder.netloc.rpartition("@")[2], folder.netloc):
            entries[name] = Entry(name, is_folder=path.endswith("/"), size_bytes=None, modified=None)
    own_name = re.escape(start.rstrip("/").rpartition("/")[2])
    has_title = _TITLE.search(links.title) and re.search(rf"[\s/]{own_name}/?(\s|$)", links.title)
    if is_cut or not (has_parent or has_title):
        raise UnexpectedResponseError("the web server did not answer with a page that lists a folder")
    return list(entries.values())


class _Links(HTMLParser):
    """Collects the targets of the links of a page, and its titles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.targets: list[str] = []
        self.title = ""
        self._is_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_title = tag in ("title", "h1")
        target = dict(attrs).get("href") if tag == "a" else None
        if target:
            self.targets.append(target)

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - any ends a title
        self._is_title = False

    def handle_data(self, data: str) -> None:
        if self._is_title:
            self.title += f" {data}"
