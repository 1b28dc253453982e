"""Folders of web servers, which they list on pages of links."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

from snapshot_explorer.storage.failures import UnexpectedResponseError
from snapshot_explorer.storage.listings import Entry

_TITLE = re.compile(r"index of|directory listing|directory:|listing of|files within", re.IGNORECASE)
"""Words in the titles that web servers give to the pages on which they list folders."""


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
