"""Paimon REST catalogs, over pypaimon-rust: the tables in them, their locations, and which are refused."""

import re
from collections.abc import Mapping

from snapshot_explorer.core.errors import (
    MissingDependencyError,
    SnapshotExplorerError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.storage.location import shorten
from snapshot_explorer.storage.masks import Mask

PACKAGE = "pypaimon-rust"
EXPECTED_URI = Message(
    "With ",
    Hint("", {"format": "paimon"}),
    ", catalog must be the URI of a Paimon REST catalog, such as http://host:8080.",
)
_NO_CLIENT = (
    "A Paimon REST catalog needs pypaimon-rust, which is not installed. Install it with: pip install "
    "'snapshot-explorer[paimon-catalogs]'."
)
_RETURNED = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`|\S{32,}')
"""Possible secrets of a server in an error of pypaimon-rust: text in quotes, and long words."""
_SYSTEM_REASON = re.compile(r'Os \{.*?message: "([^"]*)"')
"""Why a connection failed, in the text of an error of pypaimon-rust."""


def table_names(properties: Mapping[str, str], database: str | None) -> list[tuple[str, ...]]:
    """Return the names of the tables in a database, or in all of them."""
    from pypaimon_rust.datafusion import PaimonCatalog

    catalog = PaimonCatalog(dict(properties))
    databases = catalog.list_databases() if database is None else [database]
    return [(name, table) for name in databases for table in catalog.list_tables(name)]


def table(properties: Mapping[str, str], parts: tuple[str, ...]) -> tuple[str, Mapping[str, str]]:
    """Return the location and the options of a table."""
    from pypaimon_rust.datafusion import PaimonCatalog

    table = PaimonCatalog(dict(properties)).get_table((parts[0], parts[1]))
    return table.location(), table.schema().options()


def check_table(name: str, properties: Mapping[str, str]) -> None:
    """Raise if the catalog defines more about the table than its files contain."""
    table_type = properties.get("type", "table")
    if table_type != "table":
        raise UnsupportedFeatureError(
            f"{name} has the type {shorten(repr(table_type))} in its catalog, so it has no snapshots. Tables are read."
        )
    if properties.get("query-auth.enabled", "false").lower() != "false":
        raise UnsupportedFeatureError(
            f"{name} has the option query-auth.enabled: the catalog decides which rows and columns a user may read, "
            "which is not asked here. If you may read all of it, open it by its path."
        )


def client_error(error: Exception, shown: str, name: str, mask: Mask) -> SnapshotExplorerError:
    """Return our error for an error of the client, without the server's text."""
    if isinstance(error, ImportError):
        return MissingDependencyError(_NO_CLIENT)
    text = str(error)
    match = _SYSTEM_REASON.search(text)
    system = match[1] if match else error.strerror if isinstance(error, TimeoutError) else None
    # The client does not return what the server sent.
    reason = shorten(mask(system or _RETURNED.sub("***", text))).rstrip(". ")
    # The client raises ValueError for everything.
    if text.startswith("Table ") and text.endswith(" does not exist."):
        return TableNotFoundError(
            f"The catalog {shown} has no table {name}: {reason}. Check the database and the name."
        )
    unsupported = "Paimon hitting unsupported error "
    if text.startswith(unsupported):
        return UnsupportedFeatureError(f"The catalog {shown} has {name}, but {reason.removeprefix(unsupported)}.")
    advice = "Check the URI and the network, then try again." if system else "Check the URI, warehouse and token."
    return StorageError(f"The catalog {shown} did not return the location of {name}: {reason}. {advice}")
