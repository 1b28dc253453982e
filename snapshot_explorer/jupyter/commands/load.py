"""`%snapshot load`: the rows of a version, or its duplicate rows."""

from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.engines.spark import sessions
from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import (
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
from snapshot_explorer.jupyter.limits import show_read_size
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.results import Frame, check_types, decimal_columns
from snapshot_explorer.table import Snapshot


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
