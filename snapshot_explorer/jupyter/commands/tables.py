"""`%snapshot tables`: the open tables."""

import pyarrow as pa

from snapshot_explorer.frames import Frame
from snapshot_explorer.jupyter.command import Command, Invocation


def list_tables(invocation: Invocation) -> Frame:
    """Return the open tables: current (`*`), name, version, format, branch, path. Reads nothing."""
    known = invocation.tables.all()
    versions = [table.current.version for table in known.values()]
    rows = pa.table(
        {
            "current": pa.array(["*" if name == invocation.tables.current else None for name in known], pa.string()),
            "name": pa.array(list(known), pa.string()),
            "version": pa.array(versions, pa.int64()),
            "format": pa.array([table.format for table in known.values()], pa.string()),
            "branch": pa.array([table.branch for table in known.values()], pa.string()),
            "path": pa.array([table.path for table in known.values()], pa.string()),
        }
    )
    return Frame(rows, title="Open tables", noun="tables")


TABLES = Command(
    name="tables",
    summary="The open tables; * marks the current one",
    run=list_tables,
    python="orders.path, orders.format, orders.branch, orders.current.version",
    examples=("%snapshot tables",),
)
