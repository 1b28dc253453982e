"""Listings of a folder's entries. S3, Azure and Google Cloud Storage have no folders: keys are listed by prefix.

These stores answer in pages of keys, which are kept as they are. What is not in a complete listing is absent; an answer
that is not a listing, or that has no end, is an error.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from snapshot_explorer.storage.failures import EndlessListingError, UnexpectedResponseError, is_missing_bucket
from snapshot_explorer.storage.location import is_plain_name, shorten

_MOST_PAGES = 10_000
"""The maximum number of pages of a listing: ten million keys, of which a page has a thousand."""
_MOST_IDLE = 100
"""The maximum number of consecutive pages without a new key. Azure and Google may return empty pages."""
_SIZES = range(2**63)
NOT_A_LISTING = "the storage did not answer with a listing"


class Entry(NamedTuple):
    """A file or folder of a listing. A tuple, because it is faster to create than a dataclass and a log has many."""

    name: str
    """The name within the folder. On a store without folders, a file's name may contain slashes: see `entries`."""
    is_folder: bool
    size_bytes: int | None
    """Size of a file; null for a folder."""
    modified: datetime | None
    """When it was last written, aware, UTC; null if the storage does not report it."""


EntryFields = tuple[str, bool, int | None, datetime | None]
"""The fields of an `Entry`, as a plain tuple: a large listing takes half the time."""


class StoredObject(NamedTuple):
    """An object in a listing."""

    key: str
    size_bytes: int | None
    modified: datetime | None


def stored_object(
    key: str, size: object, modified: object, parse_time: Callable[[str], datetime] = datetime.fromisoformat
) -> StoredObject:
    """Return an object with its size and time; None if the store does not report them.

    Raises:
        UnexpectedResponseError: The size or the time cannot be parsed.
    """
    try:
        size_bytes = None if size is None else int(str(size))
        written = parse_time(modified) if isinstance(modified, str) else modified
        is_valid = key and (size_bytes or 0) in _SIZES
        if is_valid and written is None:
            return StoredObject(key, size_bytes, None)
        if is_valid and isinstance(written, datetime) and written.tzinfo is not None:
            return StoredObject(key, size_bytes, written.astimezone(UTC))
    except (ValueError, TypeError, OverflowError):
        pass
    raise UnexpectedResponseError(
        f"the storage listed {shorten(key) or 'an object without a key'} with the size {shorten(str(size))} and "
        f"the time {shorten(str(modified))}, which cannot be parsed"
    )


class Page(NamedTuple):
    """A page of a listing."""

    objects: Sequence[StoredObject]
    prefixes: Sequence[str]
    """The keys of folders, each with a slash at its end."""
    token: str | None
    """The continuation token for the next page; None for the last page."""


class Pages(Protocol):
    """Requests the pages of the listings of a bucket."""

    def __call__(self, prefix: str, *, delimiter: str, token: str | None) -> Page:
        """Return a page of the keys that begin with a prefix, in one request.

        Args:
            delimiter: A slash, after which keys are grouped to folders; empty for all keys.
            token: The token in the previous page; None for the first page.
        """
        ...


def entries(pages: Pages, folder: str) -> list[Entry]:
    """Return the entries of a folder.

    Some keys are in a folder that no path can name, such as `a//b`, `a/./b` and `a/../b`. They are listed as files of
    `a` whose name is the rest of the key: `/b`, `./b` and `../b`.
    """
    start = f"{folder}/" if folder else ""
    objects, prefixes = _list_all(pages, start, "/")
    names = {prefix: prefix[len(start) :].removesuffix("/") for prefix in prefixes}
    for prefix, name in names.items():
        if not is_plain_name(name):
            objects += _list_all(pages, prefix, "")[0]
    folders = [Entry(name, is_folder=True, size_bytes=None, modified=None) for name in names.values()]
    return [
        *(entry for entry in folders if is_plain_name(entry.name)),
        *(
            Entry(item.key[len(start) :], is_folder=False, size_bytes=item.size_bytes, modified=item.modified)
            for item in objects
            if not _represents_folder(item)
        ),
    ]


def tree(pages: Pages, folder: str) -> dict[str, int | None]:
    """Return the size of each file below a folder, by its path in it."""
    start = f"{folder}/" if folder else ""
    objects, _ = _list_all(pages, start, "")
    return {item.key[len(start) :]: item.size_bytes for item in objects if not _represents_folder(item)}


def has_object(pages: Pages, key: str) -> bool:
    """Return whether an object of a key is listed. Usually one request."""
    for page in _pages(pages, key, "/"):
        if any(item.key == key for item in page.objects):
            return True
        if page.objects or page.prefixes:
            return False  # it would be the first of all keys that begin with it
    return False


def _represents_folder(item: StoredObject) -> bool:
    return item.key.endswith("/") and not item.size_bytes


def _list_all(pages: Pages, prefix: str, delimiter: str) -> tuple[list[StoredObject], list[str]]:
    """Return the objects and folders of all pages."""
    objects: dict[str, StoredObject] = {}
    prefixes: dict[str, None] = {}
    for page in _pages(pages, prefix, delimiter):
        objects.update((item.key, item) for item in page.objects)
        prefixes.update(dict.fromkeys(page.prefixes))
    return list(objects.values()), list(prefixes)


def _pages(pages: Pages, prefix: str, delimiter: str) -> Iterator[Page]:
    """Yield the pages of a listing. Raises UnexpectedResponseError for answers that are not a listing."""
    token: str | None = None
    tokens: set[str] = set()
    last: tuple[str, ...] = ()
    idle = 0
    for _ in range(_MOST_PAGES):
        try:
            page = pages(prefix, delimiter=delimiter, token=token)
        except FileNotFoundError as error:
            if is_missing_bucket(error):
                raise
            # The listing of a folder that does not exist is empty: it is never missing itself.
            raise UnexpectedResponseError(NOT_A_LISTING) from error
        keys = (*(item.key for item in page.objects), *page.prefixes)
        if any(not key.endswith("/") or key == prefix for key in page.prefixes):
            raise UnexpectedResponseError(NOT_A_LISTING)
        if foreign := next((key for key in keys if not key.startswith(prefix)), None):
            raise UnexpectedResponseError(f"the storage listed {shorten(foreign)}, which is in another folder")
        yield page
        token = page.token
        if token is None:
            return
        idle = idle + 1 if keys in ((), last) else 0
        if token in tokens or idle > _MOST_IDLE:
            raise EndlessListingError("the listing of the storage has no end: its pages repeat themselves")
        tokens.add(token)
        last = keys
    raise EndlessListingError(f"the listing of the storage has more than {_MOST_PAGES:,} pages")
