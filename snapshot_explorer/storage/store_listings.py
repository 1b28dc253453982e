"""Listings of S3, Azure and Google: the requests, and the parsers of the pages in the answers."""

from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import unquote, unquote_plus
from xml.etree import ElementTree as ET

from snapshot_explorer.storage.buckets import Bucket
from snapshot_explorer.storage.failures import UnexpectedResponseError
from snapshot_explorer.storage.listings import NOT_A_LISTING, Page, stored_object
from snapshot_explorer.storage.store_errors import status_error

_OK = 200


class StoreListings:
    """The listings of a bucket; see `listings.Pages`."""

    def __init__(
        self, bucket: Bucket, *, query: Mapping[str, str], continuation: str, parse: Callable[[ET.Element], Page]
    ) -> None:
        """Request nothing yet.

        Args:
            query: The parameters of every request for a listing.
            continuation: The parameter that requests the next page.
        """
        self._bucket = bucket
        self._query, self._continuation = query, continuation
        self._parse = parse

    def __call__(self, prefix: str, *, delimiter: str, token: str | None) -> Page:
        """Return a page of a listing."""
        query = {**self._query, "prefix": prefix, "delimiter": delimiter, self._continuation: token}
        return self._page({name: value for name, value in query.items() if value})

    def _page(self, query: Mapping[str, str]) -> Page:
        page = self._parsed(query)
        if page is not None and not any("\n" in key for key in _keys(page)):
            return page
        # XML has no form for some control characters, and reads a carriage return as a line break.
        encoded = self._parsed({**query, "encoding-type": "url"}) if "encoding-type" not in query else page
        if encoded is None:
            raise UnexpectedResponseError(NOT_A_LISTING)
        return encoded

    def _parsed(self, query: Mapping[str, str]) -> Page | None:
        """Return the page that a request is answered with; None if it is not XML."""
        root = parse_xml(self._bucket.answer(query))
        return None if root is None else self._parse(root)


def s3_listings(bucket: Bucket) -> StoreListings:
    """Return the listings of a bucket of S3, or of Google, whose XML interface is the same.

    Source: Amazon S3 API Reference, "ListObjectsV2".
    """
    return StoreListings(bucket, query={"list-type": "2"}, continuation="continuation-token", parse=_s3_page)


def azure_listings(bucket: Bucket) -> StoreListings:
    """Return the listings of a container of Azure.

    Source: Azure Storage, "List Blobs".
    """
    query = {"restype": "container", "comp": "list"}
    return StoreListings(bucket, query=query, continuation="marker", parse=azure_page)


class _Builder(ET.TreeBuilder):
    """Builds a document, and refuses one with declarations: its entities may grow without bounds."""

    def doctype(self, *_: object) -> None:
        raise UnexpectedResponseError(NOT_A_LISTING)


def parse_xml(content: bytes) -> ET.Element | None:
    """Return the root of a document; None if it is not XML. Raises the error that the document contains."""
    parser = ET.XMLParser(target=_Builder())  # noqa: S314 - see `_Builder`
    try:
        parser.feed(content)
        root: ET.Element = parser.close()
    except (ET.ParseError, ValueError, LookupError):
        return None
    if _tag(root) == "Error":
        raise status_error(_OK, content.decode(errors="replace"))
    return root


def _s3_page(root: ET.Element) -> Page:
    fields = _fields(root)
    truncated = fields.get("IsTruncated", "false").lower()
    if _tag(root) != "ListBucketResult" or "Name" not in fields or truncated not in ("true", "false"):
        raise UnexpectedResponseError(NOT_A_LISTING)
    token = fields.get("NextContinuationToken")
    is_truncated = truncated == "true"
    if is_truncated and not token:
        raise UnexpectedResponseError("the storage answered with a part of a listing, and not how it goes on")
    is_encoded = fields.get("EncodingType", "").lower() == "url"

    def key(text: str) -> str:
        return unquote_plus(text, errors="surrogateescape") if is_encoded else text

    objects = [
        stored_object(key(item.get("Key", "")), item.get("Size"), item.get("LastModified"))
        for item in map(_fields, _children(root, "Contents"))
    ]
    prefixes = [key(_fields(item).get("Prefix", "")) for item in _children(root, "CommonPrefixes")]
    return Page(objects, prefixes, token if is_truncated else None)


def azure_page(root: ET.Element) -> Page:
    """Return the page of a document. Raises UnexpectedResponseError if the document is not a page of a listing."""
    listed = next(_children(root, "Blobs"), None)
    if _tag(root) != "EnumerationResults" or listed is None:
        raise UnexpectedResponseError(NOT_A_LISTING)
    objects = []
    for item in _children(listed, "Blob"):
        properties = next(map(_fields, _children(item, "Properties")), {})
        if properties.get("ResourceType") == "directory":
            continue  # with a hierarchical namespace, folders are listed like objects, too
        size, modified = properties.get("Content-Length"), properties.get("Last-Modified")
        objects.append(stored_object(_azure_name(item), size, modified, parsedate_to_datetime))
    prefixes = [_azure_name(item) for item in _children(listed, "BlobPrefix")]
    return Page(objects, prefixes, _fields(root).get("NextMarker") or None)


def _azure_name(item: ET.Element) -> str:
    name = next(_children(item, "Name"), None)
    text = "" if name is None else name.text or ""
    is_encoded = name is not None and name.get("Encoded") == "true"
    return unquote(text, errors="surrogateescape") if is_encoded else text


def _keys(page: Page) -> Iterator[str]:
    yield from (item.key for item in page.objects)
    yield from page.prefixes


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _children(element: ET.Element, tag: str) -> Iterator[ET.Element]:
    return (child for child in element if _tag(child) == tag)


def _fields(element: ET.Element) -> dict[str, str]:
    """Return the texts of an element's children."""
    return {_tag(child): child.text or "" for child in element}
