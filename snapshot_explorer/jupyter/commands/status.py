"""`%snapshot status`: the open table, and its newest version."""

from snapshot_explorer.jupyter.command import TABLE, Command, Invocation
from snapshot_explorer.jupyter.commands.tables import list_tables
from snapshot_explorer.table import Table, read_overview


def _status(invocation: Invocation) -> object:
    """Return the open table, or the list of tables if there are several."""
    if invocation.arguments.get("table") is None and len(invocation.tables.all()) > 1:
        for table in invocation.tables.all().values():
            table.update()
        return list_tables(invocation)
    _, table = invocation.table()
    table.update()
    return with_schema(table)


def with_schema(table: Table) -> Table:
    """Return the table after reading the facts for its card and for completion."""
    read_overview(table)
    return table


STATUS = Command(
    name="status",
    summary="What is open, and its newest version",
    run=_status,
    python="orders.update(); orders",
    examples=("%snapshot", "%snapshot status orders"),
    options=(TABLE,),
    notes="Checks for new versions: one listing for each table. %snapshot alone does the same.",
)
