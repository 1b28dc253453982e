"""`%snapshot open`: open a table by its path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapshot_explorer import formats
from snapshot_explorer.core.limits import DEFAULT, parse_limits
from snapshot_explorer.engines.spark import sessions
from snapshot_explorer.jupyter.command import Argument, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import STORAGE_OPTIONS, dict_of
from snapshot_explorer.jupyter.commands.status import with_schema
from snapshot_explorer.jupyter.tables import is_variable_name
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.opening import open_table
from snapshot_explorer.storage import parse_external_files
from snapshot_explorer.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _open(invocation: Invocation) -> Table:
    arguments = invocation.arguments
    path, handle = _path_or_table(invocation)
    chosen_name, limits = arguments.get("as"), arguments.get("limits")
    folder = path.rpartition(".")[2] if arguments.has("spark") or arguments.has("catalog") else path
    name = chosen_name or (path if handle else invocation.tables.free_name(folder.strip("`")))
    if not is_variable_name(name):
        raise UsageError(
            f"{name!r} cannot be the name of a variable. Use letters, digits and _: as {_identifier(name)}."
        )
    table = with_schema(
        handle
        or open_table(
            path,
            branch=arguments.get("branch"),
            format=arguments.get("format"),
            storage_options=dict_of(invocation, "options"),
            relocate=dict_of(invocation, "relocate"),
            spark=spark_session() if arguments.has("spark") else None,
            catalog=arguments.get("catalog"),
            catalog_options=dict_of(invocation, "catalog-options"),
            external_files=parse_external_files(arguments.get("external-files") or "allow"),
            limits=DEFAULT if limits is None else parse_limits(limits),
            name=chosen_name,
        )
    )
    if chosen_name is None:
        _refuse_second_table(invocation, name, table)
    invocation.tables.add(name, table)
    return table


def _refuse_second_table(invocation: Invocation, name: str, table: Table) -> None:
    """Raise if a name made from the path would replace another table."""
    known = invocation.tables.all().get(name)
    if known is not None and (known.path, known.current.branch) != (table.path, table.current.branch):
        branch = f" (branch {known.current.branch})" if known.current.branch else ""
        raise UsageError(f"{name} is already the name of {known.path}{branch}. Name this one: as {name}_2.")


def _path_or_table(invocation: Invocation) -> tuple[str, Table | None]:
    """Return the path, or the table; a bare name may be a variable that contains either."""
    path = invocation.arguments.get("path") or ""
    value = invocation.variables.get(path) if path.isidentifier() else None
    if isinstance(value, Table):
        return path, value
    if isinstance(value, str) or hasattr(value, "__fspath__"):
        return str(value), None
    return path, None


def _identifier(name: str) -> str:
    kept = "".join(letter if letter.isalnum() else "_" for letter in name).strip("_")
    return kept if is_variable_name(kept) else f"table_{kept}".rstrip("_")


def spark_session() -> SparkSession:
    """Return the active Spark session, whose catalog has the tables."""
    result = sessions.active_session()
    if result is None:
        raise UsageError("--spark needs an active Spark session, whose catalog has the table. Start one first.")
    return result


SPARK = Option(
    flags=("--spark",), meaning="PATH is a name in the catalog of the active Spark session, such as shop.orders"
)
CATALOG = Option(
    flags=("--catalog",),
    metavar="URI",
    meaning="PATH is a name in this Iceberg REST catalog, such as shop.orders, or with --format paimon in this "
    "Paimon REST catalog; also a catalog by its name in pyiceberg's configuration",
)
CATALOG_OPTIONS = Option(
    flags=("--catalog-options",),
    metavar="VARIABLE",
    value_type="dict",
    is_secret=True,
    meaning="a variable with a dict of the catalog's properties, such as token, credential and warehouse",
)
OPEN = Command(
    name="open",
    summary="Open a table by its path",
    run=_open,
    python='orders = snapshot_explorer.open_table("PATH", branch=None, storage_options=options)',
    examples=(
        "%snapshot open s3://lake/shop.db/orders as orders",
        "%snapshot open /data/shop.db/orders --branch dev --as orders_dev",
        "%snapshot open {path} as orders --options minio",
        "%snapshot open s3://lake/shop/shipments/metadata/v7.metadata.json as shipments",
        "%snapshot open shop.orders --spark --options minio",
        "%snapshot open shop.orders --catalog http://catalog:8181 --catalog-options login",
    ),
    arguments=(
        Argument(
            name="PATH",
            value_type="path",
            required=True,
            meaning="the table's own folder or URL; or a variable with the path or an open table",
        ),
    ),
    options=(
        Option(
            flags=("--as",),
            metavar="NAME",
            keyword="as",
            meaning="the name of the table; also without dashes: as NAME. By default the last part of the path",
        ),
        Option(flags=("--branch",), metavar="B", meaning="open this branch instead of the main one"),
        Option(
            flags=("--format",),
            metavar="F",
            value_type="format",
            meaning=f"require a format: {formats.names()}",
        ),
        SPARK,
        CATALOG,
        CATALOG_OPTIONS,
        STORAGE_OPTIONS,
        Option(
            flags=("--relocate",),
            metavar="VARIABLE",
            value_type="dict",
            meaning="a variable with a dict of folders that an Iceberg table records and where they are now, such as "
            "{'s3://old': '/new'}; a table that was moved as a whole needs none",
        ),
        Option(
            flags=("--external-files",),
            metavar="RULE",
            meaning="allow (the default) or refuse files outside the table's folder that its metadata references",
        ),
        Option(
            flags=("--limits",),
            metavar="NAME=NUMBER,...",
            meaning="raise limits for metadata files, such as metadata_bytes=8589934592",
        ),
    ),
    notes="Makes the table the current one, and assigns it to a variable NAME: NAME.history() works at once. "
    "Tables remain open after %reload_ext as long as their variables exist. The PATH of an Iceberg table may also be "
    "one of its metadata files, for the table as it was then.",
)
