"""`%snapshot tables`: the open tables, or the tables below a folder."""

import pyarrow as pa

from snapshot_explorer.jupyter.command import Argument, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import STORAGE_OPTIONS, dict_of, whole_number
from snapshot_explorer.lake.discovery import find_tables
from snapshot_explorer.results import Frame


def list_tables(invocation: Invocation) -> Frame:
    """Return the open tables: current (`*`), name, version, format, branch, path. Reads nothing.

    With a path, the tables below that folder instead.
    """
    arguments = invocation.arguments
    if path := arguments.get("path"):
        value = invocation.variables.get(path)
        return find_tables(
            str(value) if isinstance(value, str) or hasattr(value, "__fspath__") else path,
            depth=whole_number("--depth", arguments.get("depth") or "3") or 0,
            sizes=not arguments.has("no-sizes"),
            storage_options=dict_of(invocation, "options"),
        )
    known = invocation.tables.all()
    versions = [table.current.version for table in known.values()]
    rows = pa.table(
        {
            "current": pa.array(["*" if name == invocation.tables.current else None for name in known], pa.string()),
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


TABLES = Command(
    name="tables",
    summary="The open tables; with PATH, the tables below it",
    run=list_tables,
    python='snapshot_explorer.find_tables("PATH", depth=3)',
    examples=(
        "%snapshot tables",
        "%snapshot tables s3://lake/shop.db --options minio",
        "%snapshot tables /data --depth 5 --no-sizes",
    ),
    arguments=(Argument(name="PATH", value_type="path", meaning="a folder or URL; or a variable with the path"),),
    options=(
        Option(
            flags=("--depth",), metavar="N", value_type="number", meaning="levels of folders to search, by default 3"
        ),
        Option(flags=("--no-sizes",), meaning="do not read which files are live: faster, without files and size_bytes"),
        STORAGE_OPTIONS,
    ),
    notes="An asterisk marks the current table. At most 1,000 folders are listed; the title shows how many were.",
)
