"""`%snapshot lake`: all tables below a folder or in a catalog, and their changes."""

from dataclasses import replace

from snapshot_explorer.analysis.repair import ErasureStatements
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.jupyter.command import Argument, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.open import CATALOG, CATALOG_OPTIONS, SPARK, spark_session
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
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.lake import Lake, LakeSnapshot, LakeTrace, open_lake
from snapshot_explorer.lake.discovery import find_tables
from snapshot_explorer.results import Frame
from snapshot_explorer.table import Table

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
