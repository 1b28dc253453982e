"""`%snapshot use`: make a table the current one."""

from snapshot_explorer.jupyter.command import Argument, Command

USE = Command(
    name="use",
    summary="Make a table the current one",
    run=lambda invocation: invocation.tables.use(invocation.arguments.get("name") or ""),
    python="(only commands use names of tables)",
    examples=("%snapshot use orders",),
    arguments=(Argument(name="NAME", value_type="table", required=True, meaning="the table to use from now on"),),
)
