"""`%snapshot status`: what is open, and its newest version."""

from snapshot_explorer.jupyter.commands.tables import list_tables
from snapshot_explorer.jupyter.grammar import TABLE, Call, Command
from snapshot_explorer.table import Table


def _status(call: Call) -> object:
    """Return the state of what is open: the table, or the list of tables where there are several."""
    if call.arguments.get("table") is None and len(call.tables.all()) > 1:
        for table in call.tables.all().values():
            table.update()
        return list_tables(call)
    _, table = call.table()
    table.update()
    return with_schema(table)


def with_schema(table: Table) -> Table:
    """Return the table after reading its schema, so that its card shows the columns and completion knows them."""
    _ = table.current.schema
    return table


STATUS = Command(
    name="status",
    summary="What is open, and its newest version",
    run=_status,
    python="orders.update(); orders",
    examples=("%snapshot", "%snapshot status orders"),
    options=(TABLE,),
    notes="Looks for new versions: one listing for each table. %snapshot alone does the same.",
)
