"""How much a command may read without being asked to, told from metadata before anything is read."""

from collections.abc import Sequence

import pyarrow.compute as pc
from IPython.core.error import UsageError

from snapshot_explorer.errors import BrokenTableError
from snapshot_explorer.jupyter.grammar import Call
from snapshot_explorer.queries import Reading
from snapshot_explorer.render.cells import moment, size
from snapshot_explorer.snapshot import NO_VERSION, Snapshot
from snapshot_explorer.table import Table


def say_size(
    call: Call,
    name: str,
    table: Table,
    snapshot: Snapshot,
    limit: int | None,
    *,
    ways: str = "Add --limit N for a part, or --yes for all",
) -> None:
    """Say in a line what will be read, from metadata alone.

    Raises:
        UsageError: It is more than the settings allow without being asked for.
    """
    rows, files_read, size_bytes = _planned(snapshot, call.arguments.get("where"))
    what = f"{rows:,} rows (before any merge), {files_read:,} files, {size(size_bytes)}"
    if _is_large(call, rows, size_bytes) and limit is None and not call.arguments.has("yes"):
        raise UsageError(f"Version {snapshot.version} of {name} would read {what}: {_asked_for(call)} {ways}.")
    part = "" if limit is None else f"; at most {limit:,} rows are returned"
    call.say(f"{name} version {snapshot.version}{_of_time(table, snapshot.version)}: reading {what}{part}")


def _of_time(table: Table, version: int) -> str:
    """Return when a version was committed as a part of a sentence; nothing where nobody knows."""
    try:
        return f" of {moment(table.committed_at([version])[0])}"
    except BrokenTableError:
        return ""


def check_readings(call: Call, readings: Sequence[Reading]) -> None:
    """Raise where a query would read more than the settings allow without being asked for; from metadata alone."""
    if call.arguments.has("yes"):
        return
    rows = size_bytes = 0
    for one in readings:
        if one.snapshot.version == NO_VERSION or (one.limit is not None and one.limit <= call.settings.load_row_limit):
            continue
        plan_rows, _, plan_bytes = _planned(one.snapshot, one.where)
        rows, size_bytes = rows + plan_rows, size_bytes + plan_bytes
    if _is_large(call, rows, size_bytes):
        names = ", ".join(dict.fromkeys(f"{one.table} version {one.snapshot.version}" for one in readings))
        raise UsageError(
            f"The query would read {rows:,} rows (before any merge) in files of {size(size_bytes)}, of {names}: "
            f"{_asked_for(call)} Narrow it with conditions or a LIMIT, or add --yes for all."
        )


def _planned(snapshot: Snapshot, where: str | None) -> tuple[int, int, int]:
    """Return the rows before any merge, files and bytes that reading a version would read."""
    plan = snapshot.plan(where).to_arrow()
    plan = plan.filter(pc.is_null(plan["skipped"]))
    rows, files_read, size_bytes = (pc.sum(plan[column]).as_py() or 0 for column in ("rows", "files", "size_bytes"))
    return rows, files_read, size_bytes


def _is_large(call: Call, rows: int, size_bytes: int) -> bool:
    return rows > call.settings.load_row_limit or size_bytes > call.settings.load_size_limit


def _asked_for(call: Call) -> str:
    settings = call.settings
    return (
        f"more than {settings.load_row_limit:,} rows or {size(settings.load_size_limit)} is read only when asked for."
    )
