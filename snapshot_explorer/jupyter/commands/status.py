"""`%snapshot status`: the open table, and its newest version."""

import pyarrow as pa

from snapshot_explorer.jupyter.command import TABLE, Command, Invocation
from snapshot_explorer.jupyter.tables import OpenTables
from snapshot_explorer.results import Frame
from snapshot_explorer.table import Table, read_overview


def _status(invocation: Invocation) -> Frame | Table:
    """Return the open table, or the list of tables if there are several."""
    if invocation.arguments.get("table") is None and len(invocation.tables.all()) > 1:
        for table in invocation.tables.all().values():
            table.update()
        return list_tables(invocation.tables)
    table = invocation.table()
    table.update()
    return with_schema(table)


def with_schema(table: Table) -> Table:
    """Return the table after reading the facts for its card and for completion."""
    read_overview(table)
    return table


def list_tables(tables: OpenTables) -> Frame:
    """Return the open tables: current (`*`), name, version, format, branch, path. Reads nothing."""
    known = tables.all()
    versions = [table.current.version for table in known.values()]
    rows = pa.table(
        {
            "current": pa.array(["*" if name == tables.current else None for name in known], pa.string()),
            "name": pa.array(list(known), pa.string()),
            "version": pa.array(versions, pa.int64()),
            "format": pa.array([table.format for table in known.values()], pa.string()),
            "branch": pa.array([table.current.branch for table in known.values()], pa.string()),
            "path": pa.array([table.path for table in known.values()], pa.string()),
        }
    )
    path = pa.field("path", pa.string(), metadata={"meaning": "the path for `open_table`", "whole": "yes"})
    rows = rows.cast(rows.schema.set(rows.schema.get_field_index("path"), path))
    return Frame(rows, title="Open tables", noun="tables")


STATUS = Command(
    name="status",
    question="What is there?",
    summary="What is open, and its newest version",
    run=_status,
    python="orders.update(); orders",
    examples=("%snapshot", "%snapshot status orders"),
    options=(TABLE,),
    notes_in_notebooks="With several open tables, lists them. %snapshot alone does the same.",
    notes="Checks for new versions: one listing for each table.",
)
