"""`%snapshot twins`: whether two tables name the same data files."""

from snapshot_explorer.jupyter.command import TABLE, Argument, Command, Invocation
from snapshot_explorer.jupyter.commands.shared_arguments import STORAGE_OPTIONS, dict_of
from snapshot_explorer.lake.table_twins import Twins, twins


def _twins(invocation: Invocation) -> Twins:
    """Return whether the table and its twin name the same data files."""
    _, table = invocation.table()
    other = invocation.arguments.get("other")
    if other is None:
        return twins(table)
    known = invocation.tables.all().get(other)
    if known is not None:
        return twins(table, known)
    value = invocation.variables.get(other)
    path = str(value) if isinstance(value, str) or hasattr(value, "__fspath__") else other
    return twins(table, path, storage_options=dict_of(invocation, "options"))


TWINS = Command(
    name="twins",
    summary="Whether a table and its twin name the same files",
    run=_twins,
    python='snapshot_explorer.twins("PATH")',
    examples=(
        "%snapshot twins",
        "%snapshot twins orders copy",
        "t = %snapshot twins s3://lake/shop.db/orders_iceberg --options minio",
    ),
    arguments=(
        Argument(
            name="OTHER",
            value_type="text",
            meaning="another open table, or a path; by default the metadata of another format in the table's folder",
        ),
    ),
    options=(STORAGE_OPTIONS, TABLE),
    notes="OTHER is not needed for a table whose folder also has the metadata of another format: Delta with UniForm, "
    "Paimon with Iceberg compatibility, XTable. Shows which versions name the same data files, how far one table "
    "is behind the other, and since when. Opens no data file; t.diff(key=...) compares the rows of the newest "
    "versions. t.versions is a frame.",
)
