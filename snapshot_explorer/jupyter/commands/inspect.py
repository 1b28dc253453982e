"""`%snapshot inspect`: a table of metadata under the format's own name."""

from typing import TYPE_CHECKING

from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.command import TABLE, Argument, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.limits import show_read_size

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from snapshot_explorer.results import Frame


def _inspect(invocation: Invocation) -> "Frame | go.Figure":
    """Return a system table or its figure, or without a name their list; a table of rows is limited like `load`."""
    name, table = invocation.named_table()
    system_table, ref = invocation.arguments.get("name"), invocation.arguments.get("ref")
    if system_table is None:
        return table.inspect()
    if any(
        inspection.name == system_table and inspection.of_rows
        for inspection in history_of(table).table_format.inspections
    ):
        snapshot = table.update() if ref is None else table.at(ref)
        if snapshot.version is not None:
            show_read_size(invocation, name, snapshot, None, ways="Add --yes to read them all")
    frame = table.inspect(system_table, ref)
    return frame.picture() if invocation.arguments.has("picture") else frame


INSPECT = Command(
    name="inspect",
    question="What is stored, and what does it cost?",
    summary="A table of metadata, under the format's own name",
    run=_inspect,
    python='orders.inspect("files", 17)',
    calls=(Call(verb="table.inspect"),),
    examples=(
        "%snapshot inspect files 17",
        "%snapshot inspect",
        "%snapshot inspect history",
        "p = %snapshot inspect partitions",
        "%snapshot inspect audit_log 17",
        "%snapshot inspect timeline --picture",
    ),
    arguments=(
        Argument(
            "NAME",
            "which: snapshots, schemas, options, manifests, files, file_key_ranges, partitions, buckets, "
            "tags, branches, consumers, statistics, aggregation_fields, table_indexes, file_indexes of Paimon, and "
            "with the table's own rows audit_log, binlog, ro, row_tracking; history, detail, properties, "
            "transactions, domains of Delta; snapshots, history, refs, metadata_log_entries, specs, sort_orders, "
            "schemas, properties, statistics, manifests, entries, files, data_files, delete_files, partitions of "
            "Iceberg, and of all versions all_manifests, all_entries, all_files, all_data_files, all_delete_files; "
            "timeline, file_groups, file_slices, savepoints, cleans, rollbacks, compactions of Hudi; "
            "without it, those of the open table are listed",
            value_type="inspection",
        ),
        Argument("REF", "the version, for tables that describe one; by default latest", value_type="ref"),
    ),
    options=(
        Option("-p, --picture", "as a figure, with a table beside it: timeline and file_groups of Hudi have one"),
        Option("-y, --yes", "read all rows, whatever their number"),
        TABLE,
    ),
    notes="Columns, types and texts match SELECT * FROM orders$files in Paimon, where times without zone are UTC, "
    "DESCRIBE HISTORY and DESCRIBE DETAIL in Delta, and orders.files in Iceberg. The timeline of Hudi shows which "
    "actions were requested, are running, completed or were rolled back, how long each ran and which ran at the "
    "same time; file_groups shows when each file slice was live, and its log files. Tables with rows cost as much "
    "as load and have the same limits; they show the first rows and return all.",
)
