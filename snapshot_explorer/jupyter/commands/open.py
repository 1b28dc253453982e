"""`%snapshot open`: open a table by its path, make an open one the current one, or forget it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapshot_explorer import formats
from snapshot_explorer.core.errors import TableNotFoundError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.limits import DEFAULT, parse_limits
from snapshot_explorer.engines.spark import sessions
from snapshot_explorer.jupyter.command import Argument, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import STORAGE_OPTIONS, check_options, dict_of, path_of
from snapshot_explorer.jupyter.commands.status import list_tables, with_schema
from snapshot_explorer.jupyter.help_text import HelpText
from snapshot_explorer.jupyter.tables import is_variable_name
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.storage import parse_external_files
from snapshot_explorer.table import Table, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from snapshot_explorer.results import Frame


_OF_A_PATH = (
    *("branch", "format", "options", "relocate", "spark", "catalog", "catalog-options", "external-files", "limits"),
)
"""The options that say how a path is opened."""


def _open(invocation: Invocation) -> Table | Frame | HelpText:
    """Return the opened table; without a path the list of open tables, with `--close` a line about the closed one."""
    arguments, tables = invocation.arguments, invocation.tables
    check_options(arguments, "close", never_with=("as", *_OF_A_PATH))
    name = arguments.get("path")
    if arguments.has("close"):
        return _close(invocation, name)
    if name is None:
        if not tables.all():
            raise UsageError(tables.hint())
        return list_tables(tables)
    is_named = name in tables.all() and not isinstance(invocation.variables.get(name), str)
    if is_named and not any(arguments.has(option) for option in ("as", *_OF_A_PATH)):
        return with_schema(tables.use(name))
    try:
        return _open_path(invocation)
    except TableNotFoundError as error:
        if not (name.isidentifier() and tables.all()):
            raise
        raise TableNotFoundError(Message(error, f" {tables.hint(name)}")) from error


def _close(invocation: Invocation, name: str | None) -> HelpText:
    name, _ = invocation.tables.find(name)
    invocation.tables.close(name)
    left = ", ".join(invocation.tables.all()) or "none"
    return HelpText(f"Closed {name}. Open: {left}.")


def _open_path(invocation: Invocation) -> Table:
    """Return the table at a path, or the table in a variable, under its name."""
    arguments = invocation.arguments
    path, handle = _path_or_table(invocation)
    if handle is not None and (option := next((item for item in _OF_A_PATH if arguments.has(item)), None)):
        raise UsageError(f"{path} is an open table, and --{option} is for a path. Use its path: {handle.path}.")
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
    value = invocation.variables.get(path)
    if isinstance(value, Table):
        return path, value
    return path_of(invocation, path), None


def _identifier(name: str) -> str:
    kept = "".join(letter if letter.isalnum() else "_" for letter in name).strip("_")
    return kept if is_variable_name(kept) else f"table_{kept}".rstrip("_")


def spark_session() -> SparkSession:
    """Return the active Spark session, whose catalog has the tables."""
    result = sessions.active_session()
    if result is None:
        raise UsageError("--spark needs an active Spark session, whose catalog has the table. Start one first.")
    return result


SPARK = Option("--spark", "PATH is a name in the catalog of the active Spark session, such as shop.orders")
CATALOG = Option(
    "--catalog URI",
    "PATH is a name in this Iceberg REST catalog, such as shop.orders, or with --format paimon in this "
    "Paimon REST catalog; also a catalog by its name in pyiceberg's configuration",
)
CATALOG_OPTIONS = Option(
    "--catalog-options VARIABLE",
    "a variable with a dict of the catalog's properties, such as token, credential and warehouse",
    is_secret=True,
)

OPEN = Command(
    name="open",
    question="What is there?",
    summary="Open a table, or list, choose and close open ones",
    run=_open,
    python='orders = snapshot_explorer.open_table("PATH", branch=None, storage_options=options)',
    calls=(Call(verb="open_table", names={"storage_options": "--options", "name": "--as"}),),
    examples=(
        "%snapshot open s3://lake/shop.db/orders as orders",
        "%snapshot open /data/shop.db/orders --branch dev --as orders_dev",
        "%snapshot open {path} as orders --options minio",
        "%snapshot open s3://lake/shop/shipments/metadata/v7.metadata.json as shipments",
        "%snapshot open shop.orders --spark --options minio",
        "%snapshot open shop.orders --catalog http://catalog:8181 --catalog-options login",
        "%snapshot open orders",
        "%snapshot open --close orders",
        "%snapshot open",
    ),
    arguments=(
        Argument(
            "PATH",
            "the table's own folder or URL, or a variable with it; or the name of an open table, which becomes "
            "the current one; without it, the open tables are listed, an asterisk at the current one",
            value_type="path or table",
        ),
    ),
    options=(
        Option(
            "--as NAME",
            "the name of the table; also without dashes: as NAME. By default the last part of the path",
            keyword="as",
        ),
        Option("--branch B", "open this branch instead of the main one"),
        Option("--format F", f"require a format: {formats.names()}"),
        Option("--close", "forget the open table and its variable; by default the current one"),
        SPARK,
        CATALOG,
        CATALOG_OPTIONS,
        STORAGE_OPTIONS,
        Option(
            "--relocate VARIABLE",
            "a variable with a dict of folders that an Iceberg table records and where they are now, such as "
            "{'s3://old': '/new'}; a table that was moved as a whole needs none",
        ),
        Option(
            "--external-files RULE",
            "allow (the default) or refuse files outside the table's folder that its metadata references",
        ),
        Option("--limits NAME=NUMBER,...", "raise limits for metadata files, such as metadata_bytes=8589934592"),
    ),
    notes="Makes the table the current one, and assigns it to a variable NAME: NAME.history() works at once. "
    "Tables remain open after %reload_ext as long as their variables exist. The PATH of an Iceberg table may also be "
    "one of its metadata files, for the table as it was then.",
)
