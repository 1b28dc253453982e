"""What each command of `%snapshot` does: one call of the Python interface, and its result as it is."""

from collections.abc import Mapping
from typing import get_args

import pyarrow as pa
from IPython.core.error import UsageError

from snapshot_explorer import queries
from snapshot_explorer.compare import Comparison
from snapshot_explorer.engines.spark import sessions
from snapshot_explorer.frames import Frame
from snapshot_explorer.health import Health
from snapshot_explorer.jupyter.cost import ENGINES
from snapshot_explorer.jupyter.grammar import Call
from snapshot_explorer.jupyter.limits import check_readings, say_size
from snapshot_explorer.jupyter.manual import Manual
from snapshot_explorer.jupyter.variables import dict_variables
from snapshot_explorer.opening import open_table
from snapshot_explorer.refs import parse_range
from snapshot_explorer.render.commits import Measure
from snapshot_explorer.render.figures import Picture
from snapshot_explorer.retention import Retention
from snapshot_explorer.snapshot import Snapshot
from snapshot_explorer.storage import parse_external_files
from snapshot_explorer.table import Table

DIFF_PARTS = {
    "stat": "summary",
    "commits": "commits",
    "schema": "schema",
    "properties": "properties",
    "partitions": "partitions",
    "files": "files",
    "manifests": "manifests",
}
"""The flags of `diff`, and the part of the comparison that each asks for."""
TIMELINE_COMMITS = 10_000
"""Commits that `timeline` reads unless told otherwise."""


def open_(call: Call) -> Table:
    """Open a table, give it a name and make it the current one."""
    given = call.arguments
    path, handle = _path_or_table(call)
    asked = given.get("as")
    name = asked or (path if handle else call.tables.free_name(path))
    if not name.isidentifier():
        raise UsageError(
            f"{name!r} cannot be the name of a variable. Use letters, digits and _: as {_identifier(name)}."
        )
    table = _with_columns(
        handle
        or open_table(
            path,
            branch=given.get("branch"),
            format=given.get("format"),
            storage_options=_storage_options(call),
            external_files=parse_external_files(given.get("external-files") or "allow"),
        )
    )
    if asked is None:
        _refuse_second_table(call, name, table)
    call.tables.add(name, table)
    return table


def _refuse_second_table(call: Call, name: str, table: Table) -> None:
    """Raise if a name that nobody asked for would take the place of another table."""
    known = call.tables.all().get(name)
    if known is not None and (known.path, known.branch) != (table.path, table.branch):
        branch = f" (branch {known.branch})" if known.branch else ""
        raise UsageError(f"{name} is already the name of {known.path}{branch}. Name this one: as {name}_2.")


def _path_or_table(call: Call) -> tuple[str, Table | None]:
    """Return the path, taken from a variable where a bare name is given; or the table that the variable holds."""
    path = call.arguments.get("path") or ""
    value = call.variables.get(path) if path.isidentifier() else None
    if isinstance(value, Table):
        return path, value
    if isinstance(value, str) or hasattr(value, "__fspath__"):
        return str(value), None
    return path, None


def _identifier(name: str) -> str:
    kept = "".join(letter if letter.isalnum() else "_" for letter in name).strip("_")
    return kept if kept.isidentifier() else f"table_{kept}".rstrip("_")


def _storage_options(call: Call) -> Mapping[str, object] | None:
    """Return the dict that `--options` names. Neither it nor the name given is ever part of a message."""
    name = call.arguments.get("options")
    if name is None:
        return None
    value = call.variables.get(name)
    if isinstance(value, Mapping):
        return value
    dicts = dict_variables(call.variables)
    have = f"Variables that hold one: {', '.join(dicts)}." if dicts else "No variable holds one."
    raise UsageError(f"--options names no variable that holds a dict. {have} Define it first: options = {{...}}.")


def status(call: Call) -> object:
    """Return the state of what is open: the table, or the list of tables where there are several."""
    if call.arguments.get("table") is None and len(call.tables.all()) > 1:
        for table in call.tables.all().values():
            table.update()
        return tables(call)
    _, table = call.table()
    table.update()
    return _with_columns(table)


def _with_columns(table: Table) -> Table:
    """Return the table after reading its schema, so that its card shows the columns and completion knows them."""
    _ = table.current.schema
    return table


def tables(call: Call) -> Frame:
    """Return the open tables: current (`*`), name, version, format, branch, path. Reads nothing."""
    known = call.tables.all()
    versions = [table.current.version for table in known.values()]
    rows = pa.table(
        {
            "current": pa.array(["*" if name == call.tables.current else None for name in known], pa.string()),
            "name": pa.array(list(known), pa.string()),
            "version": pa.array(versions, pa.int64()),
            "format": pa.array([table.format for table in known.values()], pa.string()),
            "branch": pa.array([table.branch for table in known.values()], pa.string()),
            "path": pa.array([table.path for table in known.values()], pa.string()),
        }
    )
    return Frame(rows, title="Open tables", noun="tables")


def log(call: Call) -> Frame:
    """Return the commits, newest first."""
    frame, limit = _commits(call, call.settings.display_limit)
    if call.arguments.get("limit") is not None:
        frame.limit = limit
    return frame


def timeline(call: Call) -> Picture:
    """Return the commits as a figure, with a table beside it."""
    y = call.arguments.get("y") or "rows"
    if y not in get_args(Measure):
        raise UsageError(f"-y wants {', '.join(get_args(Measure))}, not {y!r}. Example: -y files.")
    frame, _ = _commits(call, TIMELINE_COMMITS)
    return frame.picture(y=y)


def explore(call: Call) -> object:
    """Return the explorer of a table, a widget."""
    from snapshot_explorer.jupyter.explorer import explore as explorer_of  # noqa: PLC0415 - widgets take long to import

    name, table = call.table()
    return explorer_of(table, name=name)


def _commits(call: Call, most: int) -> tuple[Frame, int | None]:
    """Return the commits that the line asks for, and how many at most: without -n so many as given."""
    given = call.arguments
    asked = given.get("limit")
    limit = most if asked is None else _number("-n", asked, also="all")
    _, table = call.table()
    frame = table.history(
        given.get("a..b"),
        limit=limit,
        kind=given.get("kind"),
        operation=given.get("operation"),
        user=given.get("user"),
        since=given.get("since"),
        until=given.get("until"),
        text=given.get("grep"),
        maintenance=not given.has("no-maintenance"),
        stat=given.has("stat"),
    )
    return frame, limit


def diff(call: Call) -> Comparison | Frame:
    """Return how two versions differ, or the one part that was asked for."""
    given = call.arguments
    text = given.get("a..b") or "latest^..latest"
    a, b = parse_range(text if ".." in text else f"{text}..latest")
    _, table = call.table()
    comparison = table.compare(a, b)
    asked = [part for flag, part in DIFF_PARTS.items() if given.has(flag)]
    if len(asked) == 1:
        part: Frame = getattr(comparison, asked[0])
        return part
    return comparison.showing(*asked)


def health(call: Call) -> Health | Frame:
    """Return how well a version is kept, or with `--over` the same numbers for many."""
    over = call.arguments.get("over")
    if over is not None and call.arguments.get("ref") is not None:
        raise UsageError("A REF and --over were both given. Give one version, or --over A..B for all of a range.")
    _, table = call.table()
    return table.health(_ref(call)) if over is None else table.health_history(over)


def show(call: Call) -> Snapshot:
    """Return a snapshot."""
    _, table = call.table()
    return table.at(_ref(call))


def schema(call: Call) -> object:
    """Return the schema at a version; without one the newest, which a table has before its first commit."""
    _, table = call.table()
    if call.arguments.get("ref") is None:
        return table.update(staleness_acceptable=True).schema
    return table.schema(_ref(call))


def manifests(call: Call) -> Frame:
    """Return the manifests of a version."""
    return show(call).manifests()


def entries(call: Call) -> Frame:
    """Return the entries of one of the manifests of a version."""
    return show(call).entries(call.arguments.get("manifest") or "")


def files(call: Call) -> Frame:
    """Return the live files of a version."""
    return show(call).files(_partition(call.arguments.repeated.get("partition", ())))


def _partition(texts: tuple[str, ...]) -> Mapping[str, str | None] | None:
    """Return `k=v` texts, of which several may be joined by `/`, as a mapping. `k=null` is the null partition."""
    partition: dict[str, str | None] = {}
    for text in (part for whole in texts for part in whole.split("/")):
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"--partition wants column=value, not {text!r}. Example: --partition dt=2026-01-01.")
        partition[name] = None if value == "null" else _unquoted(value)
    return partition or None


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


def plan(call: Call) -> Frame:
    """Return what reading the rows of a version would read and skip."""
    return show(call).plan(call.arguments.get("where"))


def inspect(call: Call) -> Frame:
    """Return a system table; say first what will be read, and ask where it is much, if it holds the table's rows."""
    name, table = call.table()
    asked, ref = call.arguments.get("name") or "", call.arguments.get("ref")
    if any(one.name == asked and one.of_rows for one in table.inspections):
        snapshot = table.update() if ref is None else table.at(ref)
        if snapshot.version is not None:
            say_size(call, name, table, snapshot, None, ways="Add --yes to read them all")
    return table.inspect(asked, ref)


def retention(call: Call) -> Retention:
    """Return what a rule would take from the table."""
    given = call.arguments
    last = given.get("keep-last")
    keep_last = None if last is None else _number("--keep-last", last, least=1)
    return call.table()[1].retention(given.get("keep"), keep_last=keep_last)


def readability(call: Call) -> Frame:
    """Return which versions can be loaded."""
    return call.table()[1].readability()


def tags(call: Call) -> Frame:
    """Return the tags."""
    return call.table()[1].tags()


def branches(call: Call) -> Frame:
    """Return the branches."""
    return call.table()[1].branches()


def load(call: Call) -> object:
    """Say what will be read, ask where it is much, and return the rows."""
    given = call.arguments
    engine = given.get("engine") or call.settings.engine
    if engine not in ENGINES:
        raise UsageError(f"The engine {engine!r} is unknown. Use --engine {' or --engine '.join(ENGINES)}.")
    limit = None if given.get("limit") is None else _number("--limit", given.get("limit") or "")
    columns = None if given.get("columns") is None else _names(given.get("columns") or "")
    where = given.get("where")
    name, table = call.table()
    snapshot = table.at(_ref(call))
    if engine == "spark":  # lazy: nothing is read yet, however much it is
        return snapshot.to_spark(sessions.session(say=call.say), columns=columns, where=where, limit=limit)
    if snapshot.version is not None:
        say_size(call, name, table, snapshot, limit)
    read = snapshot.to_arrow if engine == "arrow" else snapshot.to_pandas
    return read(columns=columns, where=where, limit=limit)


def sql(call: Call) -> object:
    """Return what a query over the open tables gives."""
    query = call.arguments.get("query")
    if call.body is not None and query is not None:
        raise UsageError("A query stands in the line and another one below it. Write one of them.")
    text = query if call.body is None else call.body
    if text is None or not text.strip():
        raise UsageError(
            "%snapshot sql needs a query. Write it below %%snapshot sql, or in quotes: "
            '%snapshot sql "select * from orders version as of 17".'
        )
    if not call.tables.all():
        call.table()  # which says how to open one
    engine = call.arguments.get("engine") or "duckdb"
    return queries.sql(text, call.tables.all(), engine=engine, before=lambda readings: check_readings(call, readings))


def use(call: Call) -> Table:
    """Make a table the current one."""
    return call.tables.use(call.arguments.get("name") or "")


def close(call: Call) -> Manual:
    """Forget a table and its variable."""
    name, _ = call.tables.find(call.arguments.get("name"))
    call.tables.close(name)
    left = ", ".join(call.tables.all()) or "none"
    return Manual(f"Closed {name}. Open: {left}.")


def _ref(call: Call) -> str:
    return call.arguments.get("ref") or "latest"


def _names(text: str) -> list[str]:
    names = [_unquoted(name.strip()) for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError("--columns names no column. Write names with commas between: --columns id,amount.")
    return names


def _number(flag: str, text: str, *, least: int = 0, also: str = "") -> int | None:
    if also and text == also:
        return None
    digits = text.replace("_", "").replace(",", "")
    if not (digits.isascii() and digits.isdigit()):
        other = f", or {also}" if also else ""
        raise UsageError(f"{flag} wants a whole number, {least} or more{other}, not {text!r}. Example: {flag} 20.")
    return int(digits)
