"""Limits on how much a command reads without confirmation, checked from metadata before any row is read."""

from collections.abc import Sequence

from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.text import format_utc
from snapshot_explorer.jupyter.command import Invocation
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.table import Snapshot
from snapshot_explorer.table.cost import Cost, ReadLimits, cost_of
from snapshot_explorer.table.queries import QueryReading


def show_read_size(
    invocation: Invocation,
    name: str,
    snapshot: Snapshot,
    limit: int | None,
    *,
    where: str | None = None,
    ways: str = "Add --limit N for a part, or --yes for all",
) -> None:
    """Show a line with the size of the read, from metadata alone."""
    cost, limits = cost_of(snapshot, where), _limits(invocation)
    if cost.exceeds(limits) and limit is None and not invocation.arguments.has("yes"):
        raise UsageError(
            f"Version {snapshot.version} of {name} would read {cost}: more than {limits} is read only when asked for. "
            f"{ways}."
        )
    part = "" if limit is None else f"; at most {limit:,} rows are returned"
    invocation.show_line(f"{name} {snapshot.label}{_of_time(snapshot)}: reading {cost}{part}")


def _of_time(snapshot: Snapshot) -> str:
    """Return when a version was committed, as a part of a sentence; empty if that is unknown."""
    if snapshot.version is None:
        return ""
    try:
        return f"{',' if snapshot.branch else ''} of {format_utc(snapshot.committed_at)}"
    except CorruptTableError:
        return ""


def check_read_size(invocation: Invocation, readings: Sequence[QueryReading]) -> None:
    """Raise if a query would read more than the settings allow without --yes; from metadata alone."""
    if invocation.arguments.has("yes"):
        return
    limits = _limits(invocation)
    whole = [
        reading
        for reading in readings
        if reading.snapshot.version is not None and (reading.limit is None or reading.limit > limits.rows)
    ]
    cost = sum((item.cost() for item in whole), Cost(rows=0, files=0, size_bytes=0))
    if cost.exceeds(limits):
        names = ", ".join(dict.fromkeys(f"{reading.table} version {reading.snapshot.version}" for reading in readings))
        raise UsageError(
            f"The query would read {cost}, of {names}: more than {limits} is read only when asked for. "
            "Narrow it with conditions or a LIMIT, or add --yes for all."
        )


def _limits(invocation: Invocation) -> ReadLimits:
    return ReadLimits(rows=invocation.settings.load_row_limit, size_bytes=invocation.settings.load_size_limit)
