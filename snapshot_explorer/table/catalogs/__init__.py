"""Locate tables by their names in a catalog, through pyiceberg, pypaimon-rust for Paimon REST catalogs, or `unity`.

A catalog returns only the location of a table, and an Iceberg catalog also credentials. This package reads the rest.
"""

from __future__ import annotations

import errno
import re
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from snapshot_explorer.core.errors import (
    InvalidArgumentError,
    LimitError,
    MissingDependencyError,
    SnapshotExplorerError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.limits import DEFAULT, Limits, check_limits
from snapshot_explorer.formats import formats_by_name, metadata_file_format, titles
from snapshot_explorer.storage.failures import error_chain, error_text
from snapshot_explorer.storage.hidden import HiddenTexts, hidden_options, hidden_text, with_bare_errors
from snapshot_explorer.storage.location import parse_location, shorten
from snapshot_explorer.storage.masks import Mask
from snapshot_explorer.table.catalogs import paimon_rest
from snapshot_explorer.table.catalogs.unity import UnityCatalog, check_options, is_unity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_PART = re.compile(r"`((?:[^`]|``)+)`|([\w-]+)")
_REST = re.compile(r"(https?://)(?:([^/?#@\s]*)@)?([^/?#@\s][^?#@\s]*)", re.IGNORECASE)
_NAME = re.compile(r"[\w.-]+")
_S3 = re.compile(r"s3[an]?://", re.IGNORECASE)
_PUBLIC = frozenset({"metastore", "token.provider", "type", "uri"})
"""Properties of a catalog whose values are not secret, apart from user and password in a URI."""
_NOT_KEYS = frozenset({"client.region", "s3.force-virtual-addressing", "s3.path-style-access", "s3.region"})
"""Properties of S3 that are not credentials."""
_CATALOG = "catalog must be the URI of an Iceberg REST catalog, or the name of a catalog in pyiceberg's configuration."
_SEPARATORS = re.compile(r"[:\s]+")
"""The separator of an id and its secret, and of `Bearer` and its token."""
_ABSENT = frozenset({"NoSuchTableError", "NoSuchNamespaceError", "NoSuchIdentifierError"})
"""The names of pyiceberg's errors for a table that does not exist."""
_ADVICE = (
    (
        frozenset({"UnauthorizedError", "ForbiddenError", "AuthorizationExpiredError", "OAuthError"}),
        "Check the token or the credential in catalog_options.",
    ),
    (
        frozenset({"ServerError", "ServiceUnavailableError", "TooManyRequestsError"}),
        "Try again later, or look into the log of the catalog's server.",
    ),
    (frozenset({"SSLError"}), "Check the certificates, and ssl in catalog_options."),
    (frozenset({"ConnectionError", "Timeout", "TimeoutError"}), "Check the URI and the network, then try again."),
)
"""Advice after an error, by the names of its class and bases. The first match counts."""
_UNITY_SCHEME = re.compile(r"(uc|unity):")
_ONLY_ICEBERG = Message(" If it is a Paimon REST catalog, add ", Hint("", {"format": "paimon"}), ".")
MAX_SECONDS = 60
"""The time in which a catalog must answer."""
_WILDCARD = re.compile(r"[*?\[]")
_PLAIN = re.compile(r"[\w-]+")

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """A table as a catalog describes it."""

    path: str
    """Its folder or, where its format has one, its current metadata file."""
    format: str
    """The name of its format."""
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    """The credentials that the catalog returned, as options of fsspec; None if it returned none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """The settings of a catalog's client."""

    shown: str
    """The URI without user and password, or the name in pyiceberg's configuration."""
    name: str
    properties: Mapping[str, Any] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    """Texts that no message may contain, in addition to the values of the properties."""


def name_parts(name: str, advice: str) -> tuple[str, ...]:
    """Return the parts of a table's name, without the backticks that odd parts need, as in Spark SQL.

    Raises:
        InvalidArgumentError: It is not the name of a table. The message ends with the advice.
    """
    parts, end = [], 0
    while match := _PART.match(name, end):
        parts.append(match[2] or match[1].replace("``", "`"))
        end = match.end()
        if end == len(name):
            return tuple(parts)
        if name[end] != ".":
            break
        end += 1
    raise InvalidArgumentError(f"{shorten(repr(name))} is not the name of a table. {advice}")


@with_bare_errors
def locate(
    catalog: str,
    name: str,
    options: Mapping[str, Any] | None = None,
    *,
    table_format: str | None = None,
    limits: Limits = DEFAULT,
    with_storage: bool = True,
) -> CatalogTable:
    """Return the location of a table in a catalog: its folder, or the current metadata file of an Iceberg table.

    Two requests to the catalog, which must answer within 60 seconds.

    Args:
        catalog: The URI of a REST catalog, or the name of a catalog in pyiceberg's configuration.
        name: Namespace and name, such as `shop.orders`, with backticks around odd parts.
        options: Properties of the catalog, such as `token` and `warehouse`, as its client names them. Never shown.
        table_format: A format with REST catalogs of its own, for one of these; otherwise it is not used.
        limits: The maximum size of an answer of an Iceberg REST catalog (`value_bytes`).
        with_storage: Whether to return the catalog's credentials and settings of the storage.

    Raises:
        InvalidArgumentError: The name or the catalog is not valid.
        TableNotFoundError: The catalog has no such table.
        StorageError: The catalog did not answer in time, or refused.
        LimitError: Its answer is too large.
        UnsupportedFeatureError: The catalog does not name a metadata file, or it filters what a user may read.
        MissingDependencyError: The catalog's client, or a package that it needs, is not installed.
    """
    catalog, options = hidden_text(catalog), hidden_options(options, "catalog_options")
    parts = name_parts(name, "With catalog=, give namespace and name, such as shop.orders; without, the table's path.")
    if len(parts) == 1:
        raise InvalidArgumentError(f"{name} has no namespace. Give it with the name, such as shop.{name}.")
    is_paimon_rest = _is_paimon_rest(catalog, table_format)
    check_limits(limits)
    if table_format is not None and is_paimon_rest:
        return _in_paimon_rest(catalog, name, parts, options or {}, table_format)
    if is_unity(catalog):
        return _in_unity(catalog, name, parts, options or {}, limits, with_storage=with_storage)
    settings = (
        _rest_settings(catalog, options or {}) if "://" in catalog else _configured_settings(catalog, options or {})
    )
    secrets = HiddenTexts()
    failure: SnapshotExplorerError
    try:
        location, options_of_table = _within_limit(
            lambda: _load_table(settings, parts, secrets.append, limits, with_storage=with_storage)
        )
    except Exception as error:  # noqa: BLE001 - a catalog's client may raise anything
        failure = _failure(error, settings.shown, name, _mask(settings, secrets))
    else:
        mask = _mask(settings, secrets)
        named_format = None if location is None else metadata_file_format(location)
        if location is not None and named_format is not None:
            return CatalogTable(path=location, format=named_format, storage_options=options_of_table)
        metadata_file = f"{shorten(mask(location))} as the metadata file" if location else "no metadata file"
        failure = UnsupportedFeatureError(
            f"The catalog {settings.shown} names {metadata_file} of {name}. Files named *.metadata.json are read."
        )
    raise failure  # not above: the client's error, which holds requests with secrets, would be its context


@with_bare_errors
def table_names(
    catalog: str,
    pattern: str,
    options: Mapping[str, Any] | None = None,
    *,
    table_format: str | None = None,
    limits: Limits = DEFAULT,
) -> Sequence[str]:
    """Return the names of the tables in a catalog, sorted: in a namespace, or with names that match a pattern.

    A request for each namespace; all of them must be answered within 60 seconds. Arguments and errors as `locate`.

    Args:
        pattern: A namespace such as `shop`, a pattern such as `shop.*`, or `*` for all namespaces.
    """
    catalog, options = hidden_text(catalog), hidden_options(options, "catalog_options")
    is_paimon_rest = _is_paimon_rest(catalog, table_format)
    check_limits(limits)
    namespace, glob = split_pattern(pattern)
    secrets = HiddenTexts()
    failure: SnapshotExplorerError
    settings = _settings(catalog, options or {}, is_paimon_rest=is_paimon_rest)
    try:
        names = _within_limit(
            lambda: _list_tables(settings, namespace, secrets.append, limits, is_paimon_rest=is_paimon_rest)
        )
    except Exception as error:  # noqa: BLE001 - a catalog's client may raise anything
        mask = _mask(settings, secrets)
        to_error = paimon_rest.client_error if is_paimon_rest else _failure
        failure = to_error(error, settings.shown, glob, mask)
    else:
        return sorted(name for name in map(quoted_name, names) if fnmatchcase(name, glob))
    raise failure  # not above, as in locate


def _is_paimon_rest(catalog: object, table_format: str | None) -> bool:
    """Return whether a catalog is read by `paimon_rest`. Raises InvalidArgumentError if it is not text."""
    chosen = formats_by_name().get(table_format or "")
    is_paimon_rest = chosen is not None and chosen.catalog.rest_client == paimon_rest.PACKAGE
    if not isinstance(catalog, str):
        expected = paimon_rest.EXPECTED_URI if is_paimon_rest else _CATALOG
        raise InvalidArgumentError(Message(expected, f" Got {type(catalog).__name__}."))
    return is_paimon_rest


def _settings(catalog: str, options: Mapping[str, Any], *, is_paimon_rest: bool) -> _Settings:
    if is_paimon_rest:
        return _paimon_rest(catalog, options)
    if is_unity(catalog):
        return _unity(catalog, options)
    return _rest_settings(catalog, options) if "://" in catalog else _configured_settings(catalog, options)


def _list_tables(
    settings: _Settings, namespace: str | None, secret: Callable[[str], object], limits: Limits, *, is_paimon_rest: bool
) -> list[tuple[str, ...]]:
    """Return the names of the tables in a namespace; None for all."""
    if is_paimon_rest:
        return paimon_rest.table_names(settings.properties, namespace)
    if is_unity(settings.shown):
        parts = name_parts(namespace, "Give a catalog and a schema, such as main.shop.") if namespace else ()
        return UnityCatalog(settings.shown, settings.properties, secret, limits.value_bytes).table_names(parts)
    with _client(settings, secret, limits.value_bytes) as client:
        spaces = client.list_namespaces() if namespace is None else [tuple(namespace.split("."))]
        return [tuple(name) for space in spaces for name in client.list_tables(space)]


def check_is_folder(path: object) -> None:
    """Raise InvalidArgumentError for the address of a catalog where a path is expected."""
    if isinstance(path, str) and (_UNITY_SCHEME.match(path) or is_unity(path.partition("?")[0])):
        raise InvalidArgumentError(
            "The path is the address of a Unity Catalog, not a folder. Give a name in the catalog as the path, such as "
            "main.shop or main.shop.orders, and the address of its server as catalog, such as "
            "https://HOST/api/2.1/unity-catalog. A token goes into catalog_options."
        )


def split_pattern(pattern: str) -> tuple[str | None, str]:
    """Return the namespace that a pattern is in, None for all, and the pattern of whole names."""
    if not pattern.strip():
        raise InvalidArgumentError(
            "An empty text names no tables of a catalog. Give a namespace such as shop, or a pattern such as shop.*."
        )
    before, *wild = _WILDCARD.split(pattern, maxsplit=1)
    return (before.rpartition(".")[0] or None, pattern) if wild else (pattern, f"{pattern}.*")


def quoted_name(parts: Sequence[str]) -> str:
    """Return a name that `name_parts` accepts, with backticks around odd parts."""
    return ".".join(part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`" for part in parts)


def _load_table(
    settings: _Settings,
    parts: tuple[str, ...],
    secret: Callable[[str], object],
    limits: Limits,
    *,
    with_storage: bool,
) -> tuple[str | None, Mapping[str, Any] | None]:
    """Return the metadata file of a table, and the credentials that the catalog returned."""
    with _client(settings, secret, limits.value_bytes) as client:
        table = client.load_table(parts)
    location: str | None = table.metadata_location
    if location is None or not with_storage:
        return location, None
    vended = _storage_properties(table)
    if _S3.match(location) and _is_rest(settings.properties):
        vended = _protect_own_keys(vended, settings.properties)
    return location, _s3fs_options(location, vended)


def _within_limit(work: Callable[[], _Result]) -> _Result:
    """Return the result of work with a catalog's client, which must end in time.

    In a daemon thread, which Ctrl-C and the end of the process do not wait for: no client limits the time in which a
    server sends its answer byte by byte.

    Raises:
        TimeoutError: The work did not end in time.
    """
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
            future.set_exception(error)

    Thread(target=run, name="snapshot-catalog", daemon=True).start()
    wait([future], MAX_SECONDS)
    if not future.done():
        raise TimeoutError(errno.ETIMEDOUT, f"no answer within {MAX_SECONDS} seconds")
    return future.result()


def _rest_settings(catalog: str, options: Mapping[str, Any]) -> _Settings:
    """Return the settings for the URI of an Iceberg REST catalog. A user and password become basic authentication."""
    match = _REST.fullmatch(catalog)
    if match is None:
        raise InvalidArgumentError(
            "catalog must be the URI of an Iceberg REST catalog, such as http://host:8181, without a query; or the "
            "name of a catalog in pyiceberg's configuration. The URI of a Unity Catalog ends in /unity-catalog. "
            "Everything else goes into catalog_options."
        )
    user, _, password = (unquote(part) for part in (match[2] or "").partition(":"))
    uri = match[1] + match[3]
    basic = {"auth": {"type": "basic", "basic": {"username": user, "password": password}}} if user else {}
    return _Settings(
        shown=uri.rstrip("/"),
        # The name of a configured catalog would add its properties, secrets included, to requests to this URI.
        name="snapshot_explorer",
        # Only the location of the answer is used, so the server may leave out most snapshots.
        properties={**basic, **options, "snapshot-loading-mode": "refs", "type": "rest", "uri": uri},
        secrets=(user, password),
    )


def _configured_settings(catalog: str, options: Mapping[str, Any]) -> _Settings:
    if not _NAME.fullmatch(catalog):
        raise InvalidArgumentError(_CATALOG)
    try:
        from pyiceberg.utils.config import Config

        config = Config()
        properties, known = config.get_catalog_config(catalog), config.get_known_catalogs()
    except ImportError as error:
        raise _missing(error) from None
    except Exception as error:  # noqa: BLE001 - the parser of the user's file may raise anything
        failure = type(error).__name__
    else:
        if properties or options:
            return _Settings(shown=catalog, name=catalog, properties={**(properties or {}), **options}, secrets=())
        has = f"Configured: {', '.join(sorted(known))}." if known else "None is configured."
        raise InvalidArgumentError(
            f"pyiceberg's configuration has no catalog {catalog}. {shorten(has)} Or give the URI of an Iceberg REST "
            "catalog."
        )
    raise InvalidArgumentError(f"pyiceberg's configuration cannot be read: {failure}. Check .pyiceberg.yaml.")


def _mask(settings: _Settings, secrets: Sequence[str] = ()) -> Mask:
    uri = settings.properties.get("uri")
    hidden = parse_location(uri).hidden if isinstance(uri, str) and "://" in uri else ()
    values = {name: value for name, value in settings.properties.items() if name not in _PUBLIC}
    return Mask(values, (*settings.secrets, *hidden, *_parts_of_secrets(values), *secrets))


def _parts_of_secrets(properties: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of `id:secret` and `Bearer token`: a server may repeat one of them."""
    for name, value in properties.items():
        if isinstance(value, str) and ("credential" in name or name.startswith("header.")):
            yield from _SEPARATORS.split(value)


def _client(settings: _Settings, secret: Callable[[str], object], max_bytes: int) -> Catalog:
    """Return pyiceberg's client. It requests the configuration of a REST catalog."""
    from pyiceberg.catalog import load_catalog

    if _is_rest(settings.properties):
        from snapshot_explorer.table.catalogs.rest import LimitedRestCatalog  # noqa: PLC0415 - it imports pyiceberg

        return LimitedRestCatalog(settings.name, settings.properties, secret, max_bytes)
    client = load_catalog(settings.name, **settings.properties)
    load = client._load_file_io  # noqa: SLF001 - there is no public way to prevent this import

    def load_known_class(properties: Mapping[str, Any] | None = None, location: str | None = None) -> object:
        # pyiceberg imports and calls what this property names, and everyone who writes to the table can set it.
        return load({key: value for key, value in (properties or {}).items() if key != "py-io-impl"}, location)

    vars(client)["_load_file_io"] = load_known_class
    return client


def _is_rest(properties: Mapping[str, Any]) -> bool:
    """Return whether pyiceberg would use its own client for REST catalogs."""
    if "py-catalog-impl" in properties:
        return False
    return str(properties.get("type") or "").lower() == "rest" or (
        not properties.get("type") and str(properties.get("uri")).startswith("http")
    )


def _storage_properties(table: Table) -> Mapping[str, Any]:
    """Return the storage properties from the catalog and the user.

    Properties in the table's metadata are not used: everyone who writes to the table can set them, and they would
    choose where credentials are sent.
    """
    own = table.metadata.properties
    others = {name: value for name, value in table.io.properties.items() if own.get(name) != value}
    return {**table.catalog.properties, **table.config, **others}


def _protect_own_keys(vended: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the properties of a storage, so that no key of the user is sent to an endpoint that a server chose.

    Args:
        vended: The properties from the server and the user.
        own: The user's properties.

    Raises:
        UnsupportedFeatureError: The server named an endpoint without keys for it.
    """
    endpoint = vended.get("s3.endpoint")
    if not endpoint or endpoint == own.get("s3.endpoint"):
        return vended
    of_server = {
        name: value for name, value in vended.items() if name in _NOT_KEYS or name not in own or own[name] != value
    }
    has_keys = any(f"{prefix}.secret-access-key" in of_server for prefix in ("s3", "client"))
    if has_keys or str(of_server.get("s3.anonymous")).lower() == "true":
        # A session token of the user would not fit the server's keys, and is not sent either.
        return of_server
    if own.get("s3.endpoint"):
        return {**vended, "s3.endpoint": own["s3.endpoint"]}
    raise UnsupportedFeatureError(
        Message(
            f"it names the endpoint {shorten(str(endpoint))} for the table's files, but returns no keys for it, so "
            "that your own would be sent there. If it is right, add it: ",
            Hint("", {"catalog_options": {"s3.endpoint": ...}}),
        )
    )


def _s3fs_options(location: str, properties: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return options of s3fs for Iceberg's properties; None if there are none, or the storage is another one."""

    def first(*names: str) -> str | None:
        return next((str(properties[name]) for name in names if properties.get(name)), None)

    def is_true(name: str) -> bool:
        return str(properties.get(name)).lower() == "true"

    if not _S3.match(location):
        return None
    key, secret = (first(f"s3.{name}", f"client.{name}") for name in ("access-key-id", "secret-access-key"))
    keys = {"key": key, "secret": secret, "token": first("s3.session-token", "client.session-token")}
    client = {"endpoint_url": first("s3.endpoint"), "region_name": first("s3.region", "client.region")}
    style = "path" if is_true("s3.path-style-access") else "virtual" if is_true("s3.force-virtual-addressing") else None
    options: dict[str, Any] = {
        **(keys if key and secret else {}),
        "anon": is_true("s3.anonymous") or None,
        "profile": first("s3.profile-name", "client.profile-name"),
        "client_kwargs": {name: value for name, value in client.items() if value} or None,
        "config_kwargs": {"s3": {"addressing_style": style}} if style else None,
    }
    return {name: value for name, value in options.items() if value} or None


def _failure(error: Exception, shown: str, name: str, mask: Mask) -> SnapshotExplorerError:
    if isinstance(error, ImportError):
        return _missing(error)
    names = {cls.__name__ for cls in type(error).__mro__}
    reason = _reason(error, mask)
    if isinstance(error, UnsupportedFeatureError):
        return UnsupportedFeatureError(Message(f"The catalog {shown} has {name}, but ", reason, "."))
    if isinstance(error, LimitError):
        return LimitError(Message(f"The catalog {shown} did not return the location of {name}: ", reason, "."))
    if "NotInstalledError" in names:
        return MissingDependencyError(f"pyiceberg needs a package for the catalog {shown}: {reason}.")
    paimon = _ONLY_ICEBERG if "://" in shown and not is_unity(shown) else ""
    if names & _ABSENT:
        return TableNotFoundError(
            Message(f"The catalog {shown} has no table {name}: {reason}. Check the namespace and the name.", paimon)
        )
    advice = (text for classes, text in _ADVICE if names & classes)
    return StorageError(
        Message(
            f"The catalog {shown} did not return the location of {name}: {reason}. ",
            next(advice, Message("Check the URI and catalog_options.", paimon)),
        )
    )


def _in_paimon_rest(
    catalog: str, name: str, parts: tuple[str, ...], options: Mapping[str, Any], table_format: str
) -> CatalogTable:
    settings = _paimon_rest(catalog, options)
    if len(parts) != 2:  # noqa: PLR2004 - database and table
        raise InvalidArgumentError(f"{name} has {len(parts)} parts. In a Paimon catalog, give database and table.")
    if "$" in parts[1]:
        raise UnsupportedFeatureError(
            f"{name} is a branch or a system table. Open the table by its own name, with branch= for a branch."
        )
    mask = _mask(settings)
    failure: SnapshotExplorerError
    try:
        path, properties = _within_limit(lambda: paimon_rest.table(settings.properties, parts))
    except Exception as error:  # noqa: BLE001 - a catalog's client may raise anything
        failure = paimon_rest.client_error(error, settings.shown, name, mask)
    else:
        paimon_rest.check_table(name, properties)
        return CatalogTable(path=path, format=table_format)
    raise failure  # not above, as in locate


def _in_unity(
    catalog: str,
    name: str,
    parts: tuple[str, ...],
    options: Mapping[str, Any],
    limits: Limits,
    *,
    with_storage: bool,
) -> CatalogTable:
    settings = _unity(catalog, options)
    if len(parts) != 3:  # noqa: PLR2004 - catalog, schema and table
        raise InvalidArgumentError(
            f"{name} has {len(parts)} parts. In a Unity Catalog, give catalog, schema and table: main.shop.orders."
        )
    secrets = HiddenTexts()
    failure: SnapshotExplorerError
    try:
        client = UnityCatalog(settings.shown, settings.properties, secrets.append, limits.value_bytes)
        path, table_format, keys = _within_limit(lambda: client.table(parts, with_storage=with_storage))
    except Exception as error:  # noqa: BLE001 - as in locate
        failure = _failure(error, settings.shown, name, _mask(settings, secrets))
    else:
        if table_format in formats_by_name():
            return CatalogTable(path=path, format=table_format, storage_options=keys)
        failure = UnsupportedFeatureError(
            f"The catalog {settings.shown} says that {name} is a table of {shorten(table_format)}. "
            f"Tables of {titles()} are read."
        )
    raise failure  # not above, as in locate


def _unity(catalog: str, options: Mapping[str, Any]) -> _Settings:
    match = _REST.fullmatch(catalog)
    if match is None or match[2]:
        raise InvalidArgumentError(
            "catalog must be the URI of a Unity Catalog without user, password and query, such as "
            "https://host/api/2.1/unity-catalog. The token goes into catalog_options."
        )
    check_options(options)
    uri = catalog.rstrip("/")
    return _Settings(shown=uri, name="snapshot_explorer", properties={**options, "uri": uri}, secrets=())


def _paimon_rest(catalog: str, options: Mapping[str, Any]) -> _Settings:
    match = _REST.fullmatch(catalog)
    if match is None or match[2]:
        raise InvalidArgumentError(
            Message(
                paimon_rest.EXPECTED_URI,
                " Leave out user, password and query: everything else goes into catalog_options.",
            )
        )
    provider = {"token.provider": "bear"} if "token" in options else {}
    properties = {**provider, **{key: str(value) for key, value in options.items()}}
    return _Settings(
        shown=catalog.rstrip("/"),
        name="snapshot_explorer",
        properties={**properties, "metastore": "rest", "uri": catalog.rstrip("/")},
        secrets=(),
    )


def _reason(error: Exception, mask: Mask) -> str:
    """Return the system's reason for a failed connection, otherwise the message of the catalog or its client."""
    if isinstance(error, SnapshotExplorerError):
        return error.message
    if type(error).__module__.startswith("pydantic"):
        return f"its answer is not valid: {shorten(mask(_invalid_members(error)))}"
    reasons = [item.strerror for item in error_chain(error) if isinstance(item, OSError) and item.strerror]
    return shorten(mask(str(reasons[-1]))) if reasons else error_text(error, mask)


def _invalid_members(error: Any) -> str:
    """Return which members of an answer pydantic refuses. Its own text quotes the answer, with parts of secrets."""
    members = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, member['loc']))}: {member['msg']}" for member in members)


def _missing(error: ImportError) -> MissingDependencyError:
    if error.name and error.name.partition(".")[0] != "pyiceberg":
        return MissingDependencyError(f"pyiceberg needs a package that is not installed: {shorten(str(error))}.")
    return MissingDependencyError(
        "catalog= needs pyiceberg, which is not installed. Install it with: pip install 'snapshot-explorer[catalogs]'."
    )
