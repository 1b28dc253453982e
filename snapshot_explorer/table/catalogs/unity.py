"""A client for the REST interface of Unity Catalog: tables, their locations, and temporary keys.

Source: the OpenAPI description of Unity Catalog (`/catalogs`, `/schemas`, `/tables`, `/temporary-table-credentials`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from snapshot_explorer.core.errors import InvalidArgumentError, LimitError, StorageError, UnsupportedFeatureError
from snapshot_explorer.formats import json_text
from snapshot_explorer.storage.location import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_TIMEOUT_SECONDS = 30
_MOST_PAGES = 1000
_OPTIONS = frozenset({"s3.endpoint", "s3.region", "token"})
_STATUS_OK, _STATUS_ABSENT, _STATUSES_DENIED, _STATUS_FAILED = 200, 404, (401, 403), 500
_AWS = {"access_key_id": "key", "secret_access_key": "secret", "session_token": "token"}
"""The members of temporary keys of S3, and the options of fsspec for them."""


class NoSuchTableError(Exception):
    """The catalog has no such table, schema or catalog."""


class UnauthorizedError(Exception):
    """The catalog refused the request."""


class ServerError(Exception):
    """The server of the catalog failed."""


def is_unity(catalog: str) -> bool:
    """Return whether a URI belongs to a Unity Catalog: it ends in `/unity-catalog`."""
    return "://" in catalog and catalog.rstrip("/").endswith("/unity-catalog")


def check_options(options: Mapping[str, Any]) -> None:
    """Raise InvalidArgumentError for an option that has no meaning for a Unity Catalog."""
    if unknown := sorted(set(options) - _OPTIONS):
        raise InvalidArgumentError(
            f"A Unity Catalog has no option {shorten(unknown[0])}. Options: {', '.join(sorted(_OPTIONS))}."
        )


class UnityCatalog:
    """The catalog at a URI such as `https://host/api/2.1/unity-catalog`.

    Args:
        options: `token`, and `s3.endpoint` and `s3.region` of the storage.
        secret: Called with each temporary key, which messages must not contain.
        max_bytes: The maximum size of an answer.
    """

    def __init__(self, uri: str, options: Mapping[str, Any], secret: Callable[[str], object], max_bytes: int) -> None:
        self._uri = uri
        self._options = options
        self._secret = secret
        self._max_bytes = max_bytes

    def table_names(self, namespace: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the names of the tables in all catalogs, in one of them, or in one of its schemas. Without views."""
        if not namespace:
            catalogs = [str(item["name"]) for item in self._listed("catalogs", {})]
            return [name for catalog in catalogs for name in self.table_names([catalog])]
        catalog, *schema = namespace
        if not schema:
            schemas = [str(item["name"]) for item in self._listed("schemas", {"catalog_name": catalog})]
            return [name for schema in schemas for name in self.table_names([catalog, schema])]
        if len(schema) > 1:
            raise NoSuchTableError("it has catalogs and schemas, such as main.shop")
        tables = self._listed("tables", {"catalog_name": catalog, "schema_name": schema[0]})
        return [(catalog, schema[0], str(item["name"])) for item in tables if item.get("storage_location")]

    def table(self, parts: Sequence[str], *, with_storage: bool) -> tuple[str, str, Mapping[str, Any] | None]:
        """Return the location and the format of a table, and temporary keys as options of fsspec."""
        table = self._answer("GET", "tables/" + quote(".".join(parts), safe=""))
        location, table_format = table.get("storage_location"), str(table.get("data_source_format")).lower()
        if not isinstance(location, str) or not location:
            table_type = shorten(str(table.get("table_type")).lower().replace("_", " "))
            raise UnsupportedFeatureError(f"it has the type {table_type} and no location")
        scheme = location.partition("://")[0].lower()
        if not with_storage or scheme not in ("s3", "s3a", "abfs", "abfss", "gs"):
            return location, table_format, None
        request = {"table_id": table.get("table_id"), "operation": "READ"}
        return (
            location,
            table_format,
            self._storage_options(self._answer("POST", "temporary-table-credentials", request)),
        )

    def _storage_options(self, credentials: Mapping[str, Any]) -> Mapping[str, Any]:
        aws, azure, google = (
            credentials.get(name) or {}
            for name in ("aws_temp_credentials", "azure_user_delegation_sas", "gcp_oauth_token")
        )
        keys = {option: aws[name] for name, option in _AWS.items() if isinstance(aws.get(name), str)}
        region, endpoint = self._options.get("s3.region"), self._options.get("s3.endpoint")
        settings: dict[str, Any] = {"client_kwargs": {"region_name": region}} if region and keys else {}
        if endpoint and keys:
            settings["endpoint_url"] = endpoint
        if isinstance(azure.get("sas_token"), str):
            keys = {"sas_token": azure["sas_token"]}
        elif isinstance(google.get("oauth_token"), str):
            keys = {"token": google["oauth_token"]}
        for key in keys.values():
            self._secret(key)
        if not keys:
            raise UnsupportedFeatureError("it returned no temporary keys for S3, Azure or Google: pass storage_options")
        return keys | settings

    def _listed(self, noun: str, query: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        """Yield the entries of a listing, page by page."""
        page: dict[str, str] = {}
        for _ in range(_MOST_PAGES):
            answer = self._answer("GET", noun, query={**query, **page})
            items = answer.get(noun) or []
            if not isinstance(items, list) or not all(isinstance(item, dict) and item.get("name") for item in items):
                raise StorageError(f"its answer has no list of {noun}")
            yield from items
            if not answer.get("next_page_token"):
                return
            page = {"page_token": str(answer["next_page_token"])}
        raise StorageError(f"it has more than {_MOST_PAGES} pages of {noun}")

    def _answer(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the answer to a request. Redirects are not followed, because the token would be sent there."""
        import requests  # noqa: PLC0415 - it comes with the extra `catalogs`

        token = self._options.get("token")
        with requests.request(
            method,
            f"{self._uri}/{path}",
            params=query,
            json=body,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=_TIMEOUT_SECONDS,
            allow_redirects=False,
            stream=True,
        ) as response:
            content = response.raw.read(self._max_bytes + 1, decode_content=True)
        if len(content) > self._max_bytes:
            raise LimitError(f"its answer has more than {self._max_bytes} bytes")
        try:
            answer = json_text.loads(content, "its answer")
        except orjson.JSONDecodeError:
            answer = None
        if response.status_code == _STATUS_OK and isinstance(answer, dict):
            return answer
        message = answer.get("message") if isinstance(answer, dict) else None
        reason = f"status {response.status_code}" + (f", {message}" if isinstance(message, str) else "")
        if response.status_code == _STATUS_ABSENT:
            raise NoSuchTableError(reason)
        if response.status_code in _STATUSES_DENIED:
            raise UnauthorizedError(reason)
        if response.status_code >= _STATUS_FAILED:
            raise ServerError(reason)
        raise StorageError(f"its answer is not that of a Unity Catalog ({reason})")
