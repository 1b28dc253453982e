"""`%snapshot load`: the rows of a version."""

from IPython.core.error import UsageError

from snapshot_explorer.engines.spark import sessions
from snapshot_explorer.jupyter.command import TABLE, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import REF, WHERE, column_names, ref_of, whole_number
from snapshot_explorer.jupyter.cost import ENGINES
from snapshot_explorer.jupyter.limits import show_read_size


def _load(invocation: Invocation) -> object:
    """Return the rows, after a line with the amount to read; more than the limits is refused without `--yes`."""
    arguments = invocation.arguments
    engine = arguments.get("engine") or invocation.settings.engine
    if engine not in ENGINES:
        raise UsageError(f"The engine {engine!r} is unknown. Use --engine {' or --engine '.join(ENGINES)}.")
    limit = None if arguments.get("limit") is None else whole_number("--limit", arguments.get("limit") or "")
    columns = None if arguments.get("columns") is None else column_names(arguments.get("columns") or "")
    where = arguments.get("where")
    name, table = invocation.table()
    snapshot = table.at(ref_of(invocation))
    if engine == "spark":  # lazy: nothing is read yet, however much it is
        return snapshot.to_spark(
            sessions.session(notify=invocation.show_line), columns=columns, where=where, limit=limit
        )
    if snapshot.version is not None:
        show_read_size(invocation, name, table, snapshot, limit)
    read = snapshot.to_arrow if engine == "arrow" else snapshot.to_pandas
    return read(columns=columns, where=where, limit=limit)


LOAD = Command(
    name="load",
    summary="The rows of a version as a DataFrame",
    run=_load,
    python='orders.at(17).to_pandas(columns=["id"], where="amount > 10", limit=100)',
    examples=(
        "df = %snapshot load 17",
        'df = %snapshot load 17 --columns id,amount --where "amount > 10"',
        "df = %snapshot load @2026-11-01T12:00:00Z --limit 1000",
        "t = %snapshot load tag:v1 --engine arrow",
        "df = %snapshot load latest --engine spark",
    ),
    arguments=(REF,),
    options=(
        Option(
            flags=("--engine",),
            metavar="ENGINE",
            value_type="engine",
            meaning="pandas (a DataFrame with Arrow types), arrow (a pyarrow Table) or spark (a lazy DataFrame)",
        ),
        Option(flags=("--columns",), metavar="A,B", value_type="columns", meaning="only these columns, in this order"),
        WHERE,
        Option(
            flags=("-n", "--limit"),
            metavar="N",
            value_type="number",
            meaning="the maximum number of rows; which ones is not defined",
        ),
        Option(flags=("-y", "--yes"), meaning="read regardless of the amount"),
        TABLE,
    ),
    notes="First shows the amount to read, from metadata. More than the settings load_row_limit or load_size_limit "
    "is read only with --limit or --yes. Sizes are decimal: 1 MB is 1,000,000 bytes. With --engine spark nothing "
    "is read before an action on the DataFrame; uses the active session, or starts a local one.",
)
