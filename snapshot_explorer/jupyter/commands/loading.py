"""Load, query, report: `%snapshot load`, `sql` and `report`."""

from pathlib import Path

from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.refs.records import format_time
from snapshot_explorer.engines.spark import sessions
from snapshot_explorer.jupyter.command import TABLE, Argument, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import (
    RANGE,
    REF,
    WHERE,
    check_options,
    column_names,
    names_of,
    ref_of,
    snapshot_of,
    where_of,
    whole_number,
)
from snapshot_explorer.jupyter.cost import ENGINES
from snapshot_explorer.jupyter.help_text import HelpText
from snapshot_explorer.jupyter.limits import check_read_size, show_read_size
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.lake import Lake, LakeSnapshot, open_lake, open_tables
from snapshot_explorer.results import Frame, check_types, decimal_columns
from snapshot_explorer.table import Snapshot, queries
from snapshot_explorer.view.reports import report


def _load(invocation: Invocation) -> object:
    """Return the rows, after a line with the amount to read; more than the limits is refused without `--yes`."""
    arguments = invocation.arguments
    check_options(arguments, "duplicates", only_with=("key",), never_with=_ONLY_OF_ROWS)
    if arguments.has("duplicates"):
        return _duplicates(invocation)
    engine = arguments.get("engine") or invocation.settings.engine
    if engine not in ENGINES:
        raise UsageError(f"The engine {engine!r} is unknown. Use --engine {' or --engine '.join(ENGINES)}.")
    limit = None if arguments.get("limit") is None else whole_number("--limit", arguments.get("limit") or "")
    types = check_types(arguments.get("types") or "arrow")
    if arguments.has("types") and engine != "pandas":
        raise UsageError(
            f"--types is for pandas, and the engine is {engine}. Leave out --types, or use --engine pandas."
        )
    name, table = invocation.named_table()
    snapshot = table.at(ref_of(invocation))
    columns, where = _column_names(invocation, snapshot), where_of(invocation, snapshot)
    if engine == "spark":  # lazy: nothing is read yet
        return snapshot.to_spark(
            sessions.session(notify=invocation.show_line), columns=columns, where=where, limit=limit
        )
    if snapshot.version is not None:
        show_read_size(invocation, name, snapshot, limit, where=where)
    if engine == "arrow":
        return snapshot.to_arrow(columns=columns, where=where, limit=limit)
    if types == "arrow" and _loads_decimals(snapshot, columns):
        invocation.show_once(_DECIMALS)
    return snapshot.to_pandas(columns=columns, where=where, limit=limit, types=types)


def _duplicates(invocation: Invocation) -> Frame:
    """Return the keys that several rows of a version have, with the same limits."""
    name, _ = invocation.named_table()
    snapshot, key = snapshot_of(invocation), names_of(invocation.arguments, "key")
    where = where_of(invocation, snapshot)
    if snapshot.version is not None:
        ways = "Narrow it with --where, or add --yes for all"
        show_read_size(invocation, name, snapshot, None, where=where, ways=ways)
    return snapshot.duplicates(key, where)


def _loads_decimals(snapshot: Snapshot, columns: list[str] | None) -> bool:
    decimals = decimal_columns(snapshot.arrow_schema)
    return bool(decimals) if columns is None else not set(decimals).isdisjoint(columns)


def _column_names(invocation: Invocation, snapshot: Snapshot) -> list[str] | None:
    """Return the names of --columns; a single name that is not a column may be a variable with a list of names."""
    text = invocation.arguments.get("columns")
    if text is None:
        return None
    value = invocation.variables.get(text)
    if isinstance(value, list | tuple) and value and text not in snapshot.arrow_schema.names:
        return [str(name) for name in value]
    return column_names(text)


_ONLY_OF_ROWS = ("engine", "types", "columns", "limit")
"""The options that `--duplicates` excludes."""
_DECIMALS = Message(
    "Decimals are exact, as Arrow dtypes, which NumPy functions and merges with floats do not accept. For floats: ",
    Hint("", {"types": "numpy"}),
    ".",
)

LOAD = Command(
    name="load",
    question="Load, query, report",
    summary="The rows of a version as a DataFrame",
    run=_load,
    python='orders.at(17).to_pandas(columns=["id"], where="amount > 10", limit=100)',
    calls=(
        Call(verb="snapshot.to_pandas"),
        Call(verb="snapshot.to_arrow", flag="--engine arrow"),
        Call(verb="snapshot.to_spark", flag="--engine spark", names={"spark": ""}),
        Call(verb="snapshot.duplicates", flag="--duplicates"),
    ),
    examples=(
        "df = %snapshot load 17",
        'df = %snapshot load 17 --columns id,amount --where "amount > 10"',
        "%snapshot load 17 --types numpy as df",
        "df = %snapshot load @2026-11-01T12:00:00Z --limit 1000",
        "t = %snapshot load tag:v1 --engine arrow",
        "df = %snapshot load latest --engine spark",
        "%snapshot load 17 --duplicates --key order_id",
    ),
    arguments=(REF,),
    options=(
        Option(
            "--engine ENGINE",
            "pandas (a DataFrame with Arrow types), arrow (a pyarrow Table) or spark (a lazy DataFrame)",
            own_type="engine",
        ),
        Option(
            "--types TYPES",
            "for pandas: arrow (exact, the default), numpy (decimals and integers with nulls become float64, "
            "booleans with nulls objects) or nullable (Int64, Float64, string: only decimals lose digits)",
        ),
        Option("--columns A,B", "only these columns, in this order"),
        WHERE,
        Option("-n, --limit N", "the maximum number of rows, which can be any of them"),
        Option("-y, --yes", "read without a limit on the amount"),
        Option("--duplicates", "the keys that several rows have, with the number of their rows, most frequent first"),
        Option(
            "--key A,B",
            "with --duplicates: the columns that identify a row; by default the primary key; "
            "without a primary key, all columns",
        ),
        TABLE,
    ),
    notes="First shows the amount to read, from metadata. More than the settings load_row_limit or load_size_limit "
    "is read only with --limit or --yes. Sizes are decimal: 1 MB is 1,000,000 bytes. With --engine spark nothing "
    "is read before an action on the DataFrame; uses the active session, or starts a local one. --duplicates reads the "
    'key columns of all rows; in Python orders.at(17).duplicates("order_id").',
)


def _sql(invocation: Invocation) -> object:
    """Return the result of a query over the open tables."""
    query = invocation.arguments.get("query")
    if invocation.cell_body is not None and query is not None:
        raise UsageError("There is a query in the line and another one below it. Use one of them.")
    text = query if invocation.cell_body is None else invocation.cell_body
    if text is None or not text.strip():
        raise UsageError(
            Message(
                "sql needs a query. Write it below %%snapshot sql, or after it: ",
                Hint("sql", {"query": "select * from orders version as of 17"}),
                ".",
            )
        )
    if (time := invocation.arguments.get("at")) is not None or invocation.arguments.get("lake") is not None:
        return _at_one_instant(invocation, text, time)
    if not invocation.tables.all():
        invocation.table()  # raises, with how to open one
    engine = invocation.arguments.get("engine") or "duckdb"
    return queries.sql(
        text, invocation.tables.all(), engine=engine, before=lambda readings: check_read_size(invocation, readings)
    )


def _at_one_instant(invocation: Invocation, query: str, time: str | None) -> object:
    """Return the result of a query over a lake, or the open tables, at a time; names the versions that it read."""
    path = invocation.arguments.get("lake")
    value = None if path is None else invocation.variables.get(path)
    if isinstance(value, LakeSnapshot):
        if time is not None:
            raise UsageError(f"{path} is a record of versions at one time. Leave --at out.")
        pinned = value
    elif path is not None:
        pinned = (value if isinstance(value, Lake) else open_lake(path)).at(time)
    else:
        if not invocation.tables.all():
            invocation.table()  # raises, with how to open one
        pinned = open_tables(invocation.tables.all()).at(time)
    engine = invocation.arguments.get("engine") or "duckdb"
    result = pinned.sql(query, engine=engine, before=lambda readings: check_read_size(invocation, readings))
    sources = pinned.sources(query).to_dict()
    names = ", ".join(f"{source['name']}@{source['version']}" for source in sources)
    invocation.show_line(f"Read at {format_time(pinned.time)}: {names or 'no table'}.")
    return result


SQL = Command(
    name="sql",
    question="Load, query, report",
    summary="A query over the open tables at any version",
    run=_sql,
    python='snapshot_explorer.sql("select * from orders version as of 17", {"orders": orders}, engine="duckdb")',
    calls=(Call(verb="sql"),),
    examples=(
        "%snapshot sql select * from orders@17",
        "%%snapshot sql -o gone  (and the query below, in the same cell)",
        '%snapshot sql "select * from orders version as of 17 except select * from orders"',
        "%%snapshot sql --at yesterday  (and the query below, over all open tables as they were then)",
        "%snapshot sql \"select count(*) from orders timestamp as of '2026-11-01'\" --engine spark",
    ),
    arguments=(Argument("QUERY", "the query, unless it is below the line", value_type="query"),),
    options=(
        Option(
            "--engine ENGINE",
            "duckdb (returns a pandas DataFrame with Arrow types) or spark (a Spark DataFrame); by default duckdb",
            own_type="sql engine",
        ),
        Option("--at TIME", "read every table at the version that was current at this time, such as yesterday or 3h"),
        Option("--lake PATH", "the tables of a lake, by its folder or its variable, in place of the open ones"),
        Option("-y, --yes", "read without a limit on the amount"),
    ),
    notes_in_notebooks="The query is below %%snapshot sql, or below %%snapshot, in the same cell, where nothing is "
    "expanded. In a line it needs no quotes; only the options --yes, --engine, --out and --debug may follow it.",
    notes="The query uses the names of open tables, each followed by version as of 17, version as of 'latest~2' (any "
    "REF, or a tag), timestamp as of '2026-11-01 12:00' (UTC without a zone) or '2h'; by default the newest "
    "version. DuckDB reads the columns and files that the query needs, into memory: more than the settings "
    "load_row_limit or load_size_limit is read only with --yes. Only read-only statements are allowed.",
    accepts_body=True,
)


def _report(invocation: Invocation) -> HelpText:
    """Write a report on a table, or on the results in variables, and return its path."""
    arguments = invocation.arguments
    file, overwrite, title = arguments.get("file") or "", arguments.has("overwrite"), arguments.get("title")
    names = arguments.get("of")
    if names is None:
        between, where = arguments.get("a..b"), arguments.get("where")
        target = report(file, invocation.table(), between=between, where=where, title=title, overwrite=overwrite)
    else:
        alone = next((name for name in ("a..b", "where") if arguments.get(name) is not None), None)
        if alone is not None:
            shown = "A..B" if alone == "a..b" else f"--{alone}"
            raise UsageError(f"{shown} is for a report on one table. Leave it out.")
        results = [_result(invocation, name.strip()) for name in names.split(",")]
        target = report(file, *results, title=title, overwrite=overwrite)
    return HelpText(f"Wrote {target}, {Path(target).stat().st_size / 1000:,.0f} kB.")


def _result(invocation: Invocation, name: str) -> object:
    if name not in invocation.variables:
        raise UsageError(f"--of takes names of variables with results, and {name!r} has none. Example: --of b,orders.")
    return invocation.variables[name]


REPORT = Command(
    name="report",
    question="Load, query, report",
    summary="One HTML file to hand over",
    run=_report,
    python='report("night.html", orders, between="7..8", where="order_id = 42")',
    calls=(Call(verb="report", names={"path": "FILE"}),),
    examples=(
        "%snapshot report night.html",
        '%snapshot report night.html 7..8 --where "order_id = 42"',
        "%snapshot report night.html --of b,lake --overwrite",
    ),
    arguments=(
        Argument("FILE", "the file, on the local disk", value_type="text", required=True),
        RANGE,
    ),
    options=(
        WHERE,
        Option("--of VARIABLES", "the results in these variables, instead of the table"),
        Option("--title TEXT", "the heading; by default the first part's"),
        Option("--overwrite", "replace the file if it exists"),
        TABLE,
    ),
    notes="The file contains the table's card, a picture of its commits and the newest of them; with A..B also the "
    "comparison of the two versions and the rows that differ, with --where the history of the rows of a condition. It "
    "names the code that was run and what was not read, needs no network, and has no script. It cannot be written into "
    "the folder of a table.",
)
