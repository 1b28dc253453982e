"""Requests for listings of S3, Azure and Google, and their answers, where obstore reads the objects.

obstore cannot list all keys: it raises for `a//b` and `a/./b`, and drops a slash at either end of a key. It also
returns an empty listing for a page of a proxy, and follows pages without an end.
"""

import base64
import hashlib
import hmac
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any
from urllib.parse import quote, unquote, unquote_plus
from xml.etree import ElementTree as ET

from snapshot_explorer.storage.failures import UnexpectedResponseError
from snapshot_explorer.storage.listings import NOT_A_LISTING, Page, stored_object
from snapshot_explorer.storage.origins import Origin
from snapshot_explorer.storage.retries import Attempts
from snapshot_explorer.storage.store_errors import UnreachableStoreError, status_error

Query = Mapping[str, str]
Sign = Callable[[str, str, Query], Mapping[str, str]]
"""Returns the headers of a request for a host, a path and a query, which prove who sends it."""
_OK = 200
_NO_CONTENT = hashlib.sha256(b"").hexdigest()
_AZURE_VERSION = "2023-11-03"
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/devstorage.read_only"
_TOKEN_SECONDS = 3600
_DECLARATION = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
"""What no listing has, but pages of the web, and documents whose entities grow without bounds."""


class StoreListings:
    """The listings of a bucket; see `listings.Pages`."""

    def __init__(
        self,
        origin: Origin,
        path: str,
        sign: Sign,
        *,
        query: Query,
        continuation: str,
        parse: Callable[[ET.Element], Page],
        tries: int,
    ) -> None:
        """Request nothing yet.

        Args:
            path: The path of the bucket on the server.
            query: The parameters of every request for a listing.
            continuation: The parameter that requests the next page.
            tries: The requests for a page before `Storage` starts an attempt of its own.
        """
        self._origin, self._path, self._sign = origin, origin.path + path, sign
        self._query, self._continuation = query, continuation
        self._parse = parse
        self._tries = tries

    def __call__(self, prefix: str, *, delimiter: str, token: str | None) -> Page:
        """Return a page of a listing."""
        query = {**self._query, "prefix": prefix, "delimiter": delimiter, self._continuation: token}
        return self._page({name: value for name, value in query.items() if value})

    def _page(self, query: Query) -> Page:
        page = self._parsed(query)
        if page is not None and not any("\n" in key for key in _keys(page)):
            return page
        # XML has no form for some control characters, and reads a carriage return as a line break.
        encoded = self._parsed({**query, "encoding-type": "url"}) if "encoding-type" not in query else page
        if encoded is None:
            raise UnexpectedResponseError(NOT_A_LISTING)
        return encoded

    def _parsed(self, query: Query) -> Page | None:
        """Return the page that a request is answered with; None if it is not XML."""
        root = parse_xml(self._content(query))
        return None if root is None else self._parse(root)

    def _content(self, query: Query) -> bytes:
        attempts = Attempts(self._tries)
        while True:
            try:
                return self._answer(query)
            except Exception as error:
                if not attempts.wait(error):
                    raise

    def _answer(self, query: Query) -> bytes:
        headers = self._sign(self._origin.host, self._path, query)
        try:
            response = self._origin.get(f"{self._path}?{_encoded(query)}", headers)
        except (ConnectionRefusedError, socket.gaierror) as error:
            reason = "its name is unknown" if isinstance(error, socket.gaierror) else "it refuses connections"
            raise UnreachableStoreError(f"Could not connect to the endpoint: {reason}") from error
        if response.status != _OK:
            raise status_error(response.status, response.content.decode(errors="replace"))
        return response.content


def s3_listings(origin: Origin, path: str, sign: Sign, *, tries: int) -> StoreListings:
    """Return the listings of a bucket of S3, or of Google, whose XML interface is the same.

    Source: Amazon S3 API Reference, "ListObjectsV2".
    """
    query = {"list-type": "2"}
    return StoreListings(
        origin,
        path,
        sign,
        query=query,
        continuation="continuation-token",
        parse=_s3_page,
        tries=tries,
    )


def azure_listings(origin: Origin, path: str, sign: Sign, *, sas_token: str, tries: int) -> StoreListings:
    """Return the listings of a container of Azure.

    Args:
        sas_token: The signature in the query of every request; empty without one.

    Source: Azure Storage, "List Blobs".
    """
    signature = {
        unquote(name): unquote(value) for name, _, value in (part.partition("=") for part in sas_token.split("&"))
    }
    query = {"restype": "container", "comp": "list", **signature}
    return StoreListings(origin, path, sign, query=query, continuation="marker", parse=azure_page, tries=tries)


def parse_xml(content: bytes) -> ET.Element | None:
    """Return the root of a document; None if it is not XML. Raises the error that the document contains."""
    if _DECLARATION.search(content):
        raise UnexpectedResponseError(NOT_A_LISTING)
    try:
        root = ET.fromstring(content, ET.XMLParser(encoding="utf-8"))  # noqa: S314 - see `_DECLARATION`
    except (ET.ParseError, ValueError, LookupError):
        return None
    if _tag(root) == "Error":
        raise status_error(_OK, content.decode(errors="replace"))
    return root


def unsigned(headers: Mapping[str, str], _host: str, _path: str, _query: Query) -> Mapping[str, str]:
    """Return the headers of an anonymous request."""
    return headers


def google_signature(key: Mapping[str, Any]) -> Sign:
    """Return what signs requests with the key of a service account of Google. Needs google-auth.

    Source: Google Identity, "Service account authorization without OAuth".
    """

    def sign(_host: str, _path: str, _query: Query) -> Mapping[str, str]:
        from google.auth import crypt, jwt  # noqa: PLC0415 - it is optional

        signer = crypt.RSASigner.from_service_account_info(key)  # type: ignore[no-untyped-call] # google-auth has few types
        now = int(time.time())
        email = key["client_email"]
        claims = {"iss": email, "sub": email, "scope": _GOOGLE_SCOPE, "iat": now, "exp": now + _TOKEN_SECONDS}
        signed = jwt.encode(signer, claims).decode()  # type: ignore[no-untyped-call] # as above
        return {"Authorization": f"Bearer {signed}"}

    return sign


def s3_signature(credentials: Mapping[str, Any], region: str, common: Mapping[str, str]) -> Sign:
    """Return what signs requests with the key of an AWS account, or of another store that has S3's interface.

    Args:
        common: Headers of every request.

    Source: AWS General Reference, "Create a signed AWS API request".
    """

    def sign(host: str, path: str, query: Query) -> Mapping[str, str]:
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        token = {"x-amz-security-token": credentials["token"]} if credentials["token"] else {}
        headers = {"host": host, "x-amz-content-sha256": _NO_CONTENT, "x-amz-date": now, **common, **token}
        names = ";".join(sorted(headers))
        lines = [f"{name}:{headers[name]}" for name in sorted(headers)]
        request = "\n".join(("GET", path or "/", _encoded(query), *lines, "", names, _NO_CONTENT))
        scope = f"{now[:8]}/{region}/s3/aws4_request"
        text = "\n".join(("AWS4-HMAC-SHA256", now, scope, hashlib.sha256(request.encode()).hexdigest()))
        key = f"AWS4{credentials['secret_access_key']}".encode()
        for part in scope.split("/"):
            key = _hmac(key, part)
        access = f"{credentials['access_key_id']}/{scope}"
        signed = f"Credential={access}, SignedHeaders={names}, Signature={_hmac(key, text).hex()}"
        return {**headers, "Authorization": f"AWS4-HMAC-SHA256 {signed}"}

    return sign


def azure_signature(account: str, key: str | None) -> Sign:
    """Return what signs requests with the key of a storage account of Azure; without a key it names only the version.

    Source: Azure Storage, "Authorize with Shared Key".
    """

    def sign(_host: str, path: str, query: Query) -> Mapping[str, str]:
        headers = {"x-ms-date": format_datetime(datetime.now(UTC), usegmt=True), "x-ms-version": _AZURE_VERSION}
        if key is None:
            return headers
        lines = [f"{name}:{headers[name]}" for name in sorted(headers)]
        resource = [f"/{account}{path}", *(f"{name.lower()}:{query[name]}" for name in sorted(query))]
        # Eleven standard headers that the request does not have are empty lines.
        text = "\n".join(("GET", *[""] * 11, *lines, *resource))
        signature = base64.b64encode(_hmac(base64.b64decode(key), text)).decode()
        return {**headers, "Authorization": f"SharedKey {account}:{signature}"}

    return sign


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(errors="surrogateescape"), "sha256")


def _encoded(query: Query) -> str:
    """Return a query, sorted and encoded as signatures need it."""
    pairs = ((quote(name, safe="-_.~"), quote(query[name], safe="-_.~", errors="surrogateescape")) for name in query)
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


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
    """Return the page of a document; raise UnexpectedResponseError if it is none."""
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
