"""`%snapshot duplicates`: rows whose key occurs several times."""

from snapshot_explorer.jupyter.command import TABLE, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import REF, WHERE, column_names, snapshot_of, where_of
from snapshot_explorer.results import Frame


def _duplicates(invocation: Invocation) -> Frame:
    """Return the keys that several rows of a version have."""
    key = invocation.arguments.get("key")
    snapshot = snapshot_of(invocation)
    return snapshot.duplicates(None if key is None else column_names(key, "--key"), where_of(invocation, snapshot))


DUPLICATES = Command(
    name="duplicates",
    summary="Rows that occur more than once",
    run=_duplicates,
    python='orders.at(17).duplicates("order_id")',
    examples=("%snapshot duplicates --key order_id", "%snapshot duplicates 17", "d = %snapshot duplicates -t orders"),
    arguments=(REF,),
    options=(
        Option(
            flags=("--key",),
            metavar="A,B",
            value_type="columns",
            meaning="the columns that identify a row; by default the primary key, or all columns where there is none",
        ),
        WHERE,
        TABLE,
    ),
    notes="Returns the number of rows and the key, most frequent first. Reads the key columns of all rows.",
)
