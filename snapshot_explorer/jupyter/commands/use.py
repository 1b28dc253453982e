"""`%snapshot use`: make a table the current one."""

from snapshot_explorer.jupyter.grammar import Argument, Call, Command
from snapshot_explorer.table import Table


def _use(call: Call) -> Table:
    """Make a table the current one."""
    return call.tables.use(call.arguments.get("name") or "")


USE = Command(
    name="use",
    summary="Make a table the current one",
    run=_use,
    python="(names are the magic's own)",
    examples=("%snapshot use orders",),
    arguments=(Argument(name="NAME", holds="table", required=True, meaning="the table to act on from now"),),
)
