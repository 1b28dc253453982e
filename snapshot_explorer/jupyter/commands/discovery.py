"""What is there? `%snapshot open`, `status`, `lake`, `explore` and `help`."""

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer import formats
from snapshot_explorer.analysis.repair import ErasureStatements
from snapshot_explorer.core.errors import TableNotFoundError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.limits import DEFAULT, parse_limits
from snapshot_explorer.engines.spark import sessions
from snapshot_explorer.jupyter.command import TABLE, Argument, Call, Command, Invocation, Option, find_command
from snapshot_explorer.jupyter.command_line import ALIASES
from snapshot_explorer.jupyter.commands.shared_arguments import (
    PRICE,
    STORAGE_OPTIONS,
    check_options,
    dict_of,
    path_of,
    price_of,
    split_pairs,
    whole_number,
)
from snapshot_explorer.jupyter.help_text import HelpText, command_help, overview
from snapshot_explorer.jupyter.tables import OpenTables, is_variable_name
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.lake import Lake, LakeSnapshot, LakeTrace, open_lake
from snapshot_explorer.lake.discovery import find_tables
from snapshot_explorer.results import Frame
from snapshot_explorer.storage import parse_external_files
from snapshot_explorer.table import Table, open_table, read_overview

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def spark_session() -> "SparkSession":
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


def _status(invocation: Invocation) -> Frame | Table:
    """Return the open table, or the list of tables if there are several."""
    if invocation.arguments.get("table") is None and len(invocation.tables.all()) > 1:
        for table in invocation.tables.all().values():
            table.update()
        return list_tables(invocation.tables)
    table = invocation.table()
    table.update()
    return with_schema(table)


def with_schema(table: Table) -> Table:
    """Return the table after reading the facts for its card and for completion."""
    read_overview(table)
    return table


def list_tables(tables: OpenTables) -> Frame:
    """Return the open tables: current (`*`), name, version, format, branch, path. Reads nothing."""
    known = tables.all()
    versions = [table.current.version for table in known.values()]
    rows = pa.table(
        {
            "current": pa.array(["*" if name == tables.current else None for name in known], pa.string()),
            "name": pa.array(list(known), pa.string()),
            "version": pa.array(versions, pa.int64()),
            "format": pa.array([table.format for table in known.values()], pa.string()),
            "branch": pa.array([table.current.branch for table in known.values()], pa.string()),
            "path": pa.array([table.path for table in known.values()], pa.string()),
        }
    )
    path = pa.field("path", pa.string(), metadata={"meaning": "the path for `open_table`", "whole": "yes"})
    rows = rows.cast(rows.schema.set(rows.schema.get_field_index("path"), path))
    return Frame(rows, title="Open tables", noun="tables")


STATUS = Command(
    name="status",
    question="What is there?",
    summary="What is open, and its newest version",
    run=_status,
    python="orders.update(); orders",
    examples=("%snapshot", "%snapshot status orders"),
    options=(TABLE,),
    notes_in_notebooks="With several open tables, lists them. %snapshot alone does the same.",
    notes="Checks for new versions: one listing for each table.",
)


_RESULTS = ("changes", "pin", "diff", "usage", "trace")
_COLUMN = "a pattern of tables and the column's name there, such as crm.*=cust_no"
_NOT_OF_A_LIST = (*_RESULTS, "since", "at", "match", "health", "format", "spark", "catalog", "catalog-options")
"""The options that `--list` excludes."""


def _lake(invocation: Invocation) -> ErasureStatements | Lake | LakeSnapshot | LakeTrace | Frame:
    """Return the lake with its overview, or the result that the options name in its place."""
    arguments = invocation.arguments
    check_options(arguments, "usage", only_with=("price",))
    check_options(arguments, "trace", only_with=("column", "statements"))
    check_options(arguments, "list", only_with=("no-sizes",), never_with=_NOT_OF_A_LIST)
    if arguments.has("list"):
        return _list(invocation, arguments.get("path") or "")
    chosen = [name for name in _RESULTS if arguments.get(name) is not None or arguments.has(name)]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} name two results. Use one of them.")
    lake = _lake_of(invocation, arguments.get("path") or "")
    since = arguments.get("since")
    if arguments.has("changes"):
        return lake.changes(since or "yesterday")
    if arguments.has("pin"):
        return lake.at()
    if arguments.has("usage"):
        return lake.usage(price=price_of(arguments))
    if (where := arguments.get("trace")) is not None:
        trace = lake.trace(where, split_pairs(arguments.repeated.get("column", ()), "column", _COLUMN))
        return trace.statements() if arguments.has("statements") else trace
    if (before := arguments.get("diff")) is not None:
        other = invocation.variables.get(before)
        return lake.diff(other if isinstance(other, Lake | LakeSnapshot) else before)
    lake.overview(since or "1d", health=arguments.has("health"))
    return lake


def _list(invocation: Invocation, path: str) -> Frame:
    """Return the tables below a folder."""
    if isinstance(invocation.variables.get(path), Lake):
        raise UsageError(
            Message(
                f"--list needs a folder, and {path} is a lake. ",
                Hint("open_lake", {"path": path}),
                " lists its tables.",
            )
        )
    return find_tables(
        path_of(invocation, path),
        depth=_depth(invocation),
        sizes=not invocation.arguments.has("no-sizes"),
        storage_options=dict_of(invocation, "options"),
    )


def _depth(invocation: Invocation) -> int:
    return whole_number("--depth", invocation.arguments.get("depth") or "3") or 0


def _lake_of(invocation: Invocation, path: str) -> Lake:
    """Return the lake in a variable, or at a path, with the options of the line."""
    arguments = invocation.arguments
    value = invocation.variables.get(path)
    patterns = arguments.repeated.get("match", ())
    if isinstance(value, Lake):
        return value.matching(*patterns) if patterns else value
    if isinstance(value, Table):
        raise UsageError(
            Message(
                f"{path} is one table. Give the folder that contains it, such as ",
                Hint("open_lake", {"path": "s3://lake/shop.db"}),
                ".",
            )
        )
    return open_lake(
        path_of(invocation, path),
        arguments.get("at"),
        pattern=patterns or None,
        depth=_depth(invocation),
        storage_options=dict_of(invocation, "options"),
        spark=spark_session() if arguments.has("spark") else None,
        catalog=arguments.get("catalog"),
        catalog_options=dict_of(invocation, "catalog-options"),
        format=arguments.get("format"),
    )


LAKE = Command(
    name="lake",
    question="What is there?",
    summary="All tables below a folder, and which of them are late",
    run=_lake,
    python='snapshot_explorer.open_lake("PATH").overview(since="1d"); snapshot_explorer.find_tables("PATH")',
    calls=(
        Call(verb="open_lake", names={"pattern": "--match", "storage_options": "--options"}),
        Call(verb="find_tables", flag="--list", names={"sizes": "--no-sizes", "storage_options": "--options"}),
        Call(verb="lake.overview"),
        Call(verb="lake.usage", flag="--usage"),
        Call(verb="lake.trace", flag="--trace"),
    ),
    examples=(
        "%snapshot lake s3://lake/shop.db",
        "%snapshot lake s3://lake/shop.db --since yesterday --match ord* as lake",
        "%snapshot lake s3://lake/shop.db --changes --since 3h",
        '%snapshot lake s3://lake/shop.db --at "2026-11-22 03:00" --pin as night',
        "%snapshot lake /data/production --diff yesterday",
        "%snapshot lake /data/production --usage --price 0.02",
        '%snapshot lake /data/production --trace "customer_id = 42"',
        "%snapshot lake shop.* --catalog http://catalog:8181",
        "%snapshot lake /data --list --depth 5 --no-sizes",
    ),
    arguments=(
        Argument(
            "PATH",
            "a folder or URL; or a variable with the path or a lake; or with a catalog, such as shop.*",
            value_type="path",
            required=True,
        ),
    ),
    options=(
        Option("--since TIME", "count changes from this time; by default 1d"),
        Option("--at TIME", "the tables as they were at this time"),
        Option("--match PATTERN", "only tables whose names match, such as ord*", repeated=True),
        Option("--health", "also read the health of each newest version"),
        Option("--changes", "the commits of all tables in one log, in place of the overview"),
        Option("--pin", "the version of every table at that time, in place of the overview"),
        Option("--diff TIME", "what differs since this time, table by table; or a variable with another lake"),
        Option("--usage", "the bytes that each table holds, in place of the overview"),
        replace(PRICE, meaning=f"with --usage: {PRICE.meaning}"),
        Option(
            '--trace "SQL"', "where such rows still exist, in versions and any other file, in place of the overview"
        ),
        Option(
            "--column PATTERN=NAME",
            "with --trace: what the column is called in some tables, such as crm.*=cust_no",
            repeated=True,
        ),
        Option("--statements", "with --trace: the statements with which engines erase these rows, not run"),
        Option("--list", "only which tables there are, in place of the overview"),
        Option("--no-sizes", "with --list: do not read which files are live; faster, without files and size_bytes"),
        Option("--depth N", "levels of folders to search, by default 3"),
        Option("--format F", "paimon for a Paimon REST catalog"),
        SPARK,
        CATALOG,
        CATALOG_OPTIONS,
        STORAGE_OPTIONS,
    ),
    notes="A row per table, the most urgent first, from metadata alone; a table that cannot be read is a row with its "
    "error. With as NAME, the variable has the lake: NAME.at(TIME).sql(QUERY) queries all tables at one instant, and "
    "NAME['orders'] opens one. Times are UTC without a zone. --list lists at most 1,000 folders; the title shows "
    "how many were.",
)


FOLLOW = Option("--follow", "look for new commits every few seconds, as %snapshot watch does")


def _explore(invocation: Invocation) -> object:
    from snapshot_explorer.jupyter.explorer import explore as explorer_of  # noqa: PLC0415 - widgets take long to import

    arguments = invocation.arguments
    check_options(arguments, "html", only_with=("versions", "overwrite"), never_with=("follow", "save-page"))
    versions: dict[str, Any] = {}
    if (number := arguments.get("versions")) is not None:
        versions["versions"] = whole_number("--versions", number, minimum=1)
    name, table = invocation.named_table()
    explorer = explorer_of(table, name=name, save_page=arguments.has("save-page"))
    if (file := arguments.get("html")) is not None:
        with closing(explorer):
            target = explorer.to_html(file, overwrite=arguments.has("overwrite"), **versions)
        return HelpText(f"Wrote {target}, {target.stat().st_size / 1000:,.0f} kB.")
    explorer.state.follow = arguments.has("follow")
    return explorer


EXPLORE = Command(
    name="explore",
    question="What is there?",
    summary="The explorer: timeline, comparison, rows, files",
    run=_explore,
    python="snapshot_explorer.explore(orders)",
    calls=(Call(verb="explore", names={"table": ""}),),
    examples=(
        "%snapshot explore",
        "e = %snapshot explore -t orders",
        "%snapshot watch",
        "%snapshot explore --html orders.html",
    ),
    options=(
        FOLLOW,
        Option("--save-page", "save the page of --html with the notebook: the explorer then works without a kernel"),
        Option("--html FILE", "write it into one file that works without Python"),
        Option("--versions N", "with --html: the number of newest versions that can be looked into, by default 50"),
        Option("--overwrite", "with --html: replace the file if it exists"),
        TABLE,
    ),
    notes="A timeline with markers A and B, and views of the commit, manifests, differences, rows, files, "
    "branches and health, each with the equivalent line of Python. Compare shows the rows that differ, Data blames "
    "rows and bisects a condition, Files has the lives of all files and what changed in each partition. "
    "Works by keyboard; e.state controls it from code, "
    "e.wait() waits for pending reads, e.close() ends it. Without widgets it is a table and a picture. "
    "--html writes a page of at most 2 MB that needs neither Python nor network, with what it recorded of the commits, "
    "of the newest versions, and of pairs of them. It cannot be written into the folder of a table.",
)


def _help(invocation: Invocation) -> HelpText:
    """Return the list of commands, or the help of the one named."""
    word = invocation.arguments.get("command")
    word = ALIASES[word][0] if word is not None and word in ALIASES else word
    return (
        HelpText(overview(invocation.commands))
        if word is None
        else HelpText(command_help(find_command(invocation.commands, word)))
    )


HELP = Command(
    name="help",
    question="What is there?",
    summary="The list of commands, or the help of one",
    run=_help,
    python="help(snapshot_explorer.open_table)",
    examples=("%snapshot help load",),
    arguments=(Argument("COMMAND", "the command; by default all", value_type="command"),),
)
