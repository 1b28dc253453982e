"""The location of a table in a Spark session's catalog.

Only SQL is sent, so it works over Spark Connect, and with any catalog that answers DESCRIBE.
"""

from __future__ import annotations

from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from snapshot_explorer.core.errors import (
    SnapshotExplorerError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.engines.spark.sessions import check_session
from snapshot_explorer.formats import FORMATS, titles
from snapshot_explorer.storage.location import shorten
from snapshot_explorer.table.catalogs import CatalogTable, name_parts, quoted_name, split_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

_LONGEST = 300
"""The characters of a catalog's own message that an error quotes."""


def locate(spark: SparkSession, name: str) -> CatalogTable:
    """Return the location of a table in the session's catalog. One DESCRIBE; a second query for Iceberg and Paimon.

    Args:
        name: `orders`, `shop.orders` or `catalog.shop.orders`, with backticks around odd names, as in Spark SQL.
    """
    parts = name_parts(name, "With spark=, give its name in the catalog, such as shop.orders; without, its path.")
    quoted = ".".join("`" + part.replace("`", "``") + "`" for part in parts)
    details = _details(_ask(check_session(spark), f"DESCRIBE TABLE EXTENDED {quoted}", name))
    table_type, provider = details.get("Type", "").upper(), details.get("Provider", "").lower()
    if "VIEW" in table_type:
        raise TableNotFoundError(f"{name} is a view in Spark's catalog. Open one of the tables that it reads.")
    table_format = next((candidate for candidate in FORMATS if candidate.name == provider), None)
    if table_format is None:
        description = f"a table of {provider}" if provider else "a table of an unknown format"
        path = details.get("Location")
        advice = f" If it is one of these, open it by its path, {shorten(path)}." if path else ""
        raise UnsupportedFeatureError(
            f"Spark's catalog says that {name} is {description}. Tables of {titles()} are read.{advice}"
        )
    facts = table_format.catalog
    if facts.file_query is not None:
        files = _ask(spark, facts.file_query.format(table=quoted), name)
        if files:
            return CatalogTable(path=str(files[0]["file"]), format=provider)
    if facts.branch_sign is not None and facts.branch_sign in parts[-1]:
        raise UnsupportedFeatureError(
            f"{name} is a branch of a {table_format.title} table. Open the table by its own name, with branch= for the "
            "branch."
        )
    path = details.get("Location") or _path_property(spark, quoted, name)
    if not path:
        raise TableNotFoundError(f"Spark's catalog does not say where {name} is. Open it by its path.")
    return CatalogTable(path=path, format=provider)


def table_names(spark: SparkSession, pattern: str) -> Sequence[str]:
    """Return the names of the tables in the session's catalog, sorted, without views.

    Two queries for each namespace, and up to two to find the namespaces.

    Args:
        pattern: A namespace such as `shop`, a pattern such as `shop.*`, the name of a catalog, alone or as in `lake.*`,
            or `*` for all of the current catalog.
    """
    namespace, glob = split_pattern(pattern)
    used = check_session(spark)
    spaces = _namespaces(used, namespace, pattern)
    names = []
    for space in spaces:
        parts = name_parts(space, "Give a namespace such as shop, or a pattern such as shop.*.")
        quoted = quoted_name(parts)
        tables = {
            str(row["tableName"]) for row in _ask(used, f"SHOW TABLES IN {quoted}", pattern) if not row["isTemporary"]
        }
        with suppress(SnapshotExplorerError):  # catalogs without views refuse the question
            tables -= {str(row["viewName"]) for row in _ask(used, f"SHOW VIEWS IN {quoted}", pattern)}
        names += [quoted_name((*parts, table)) for table in tables]
    return sorted(name for name in names if fnmatchcase(name, glob))


def _namespaces(spark: SparkSession, name: str | None, pattern: str) -> list[str]:
    """Return the namespaces of a catalog; of the current one without a name. The name itself if it is a namespace."""
    if name is None:
        return [str(row["namespace"]) for row in _ask(spark, "SHOW NAMESPACES", pattern)]
    parts = name_parts(name, "Give a namespace such as shop, or a pattern such as shop.*.")
    with suppress(SnapshotExplorerError):
        _ask(spark, f"SHOW TABLES IN {quoted_name(parts)}", pattern)
        return [name]
    inner = _ask(spark, f"SHOW NAMESPACES IN {quoted_name(parts)}", pattern)
    return [f"{name}.{quoted_name(str(row['namespace']).split('.'))}" for row in inner]


def _ask(spark: SparkSession, query: str, name: str) -> list[Mapping[str, object]]:
    from pyspark.errors import AnalysisException

    try:
        return [row.asDict() for row in spark.sql(query).collect()]
    except AnalysisException as error:
        message = _first_line(error)
        # Catalogs raise it for a lack of permissions too.
        if "NOT_FOUND" in message:
            failure: SnapshotExplorerError = TableNotFoundError(
                f"Spark's catalog has no table {name}: {message} Check the name with SHOW TABLES."
            )
        else:
            failure = StorageError(f"Spark's catalog could not say where {name} is: {message}")
    except Exception as error:  # noqa: BLE001 - a catalog's client may raise anything
        failure = StorageError(f"Spark's catalog could not say where {name} is: {_first_line(error)}")
    raise failure


def _first_line(error: Exception) -> str:
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _details(rows: list[Mapping[str, object]]) -> Mapping[str, str]:
    """Return the properties in a DESCRIBE, below `# Detailed Table Information`."""
    names = [str(row["col_name"]) for row in rows]
    # The last one: a column can have any name.
    begin = max((index for index, name in enumerate(names) if name.startswith("# Detailed")), default=len(names))
    return {str(row["col_name"]).strip(): str(row["data_type"] or "") for row in rows[begin + 1 :]}


def _path_property(spark: SparkSession, quoted: str, name: str) -> str | None:
    """Return the property `path` of a table: its location in Paimon's catalog."""
    rows = _ask(spark, f"SHOW TBLPROPERTIES {quoted}", name)
    return next((str(row["value"]) for row in rows if row["key"] == "path"), None)
