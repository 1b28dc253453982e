"""`%snapshot sql`: a query over the open tables."""

from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.refs.records import format_time
from snapshot_explorer.jupyter.command import Argument, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.limits import check_read_size
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.lake import Lake, LakeSnapshot, open_lake, open_tables
from snapshot_explorer.table import queries


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
