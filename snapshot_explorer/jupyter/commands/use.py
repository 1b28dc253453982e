"""`%snapshot use`: make a table the current one."""

from snapshot_explorer.jupyter.command import Argument, Command, Invocation
from snapshot_explorer.table import Table


def _use(invocation: Invocation) -> Table:
    return invocation.tables.use(invocation.arguments.get("name") or "")


USE = Command(
    name="use",
    summary="Make a table the current one",
    run=_use,
    python="(only commands use names of tables)",
    examples=("%snapshot use orders",),
    arguments=(Argument(name="NAME", value_type="table", required=True, meaning="the table to use from now on"),),
)
