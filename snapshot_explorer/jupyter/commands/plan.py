"""`%snapshot plan`: the files that a read of a version reads and skips."""

from snapshot_explorer.jupyter.command import TABLE, Command, Invocation
from snapshot_explorer.jupyter.commands.shared_arguments import REF, WHERE, snapshot_of, where_of
from snapshot_explorer.results import Frame


def _plan(invocation: Invocation) -> Frame:
    """Return the files that reading the rows of a version would read and skip."""
    snapshot = snapshot_of(invocation)
    return snapshot.plan(where_of(invocation, snapshot))


PLAN = Command(
    name="plan",
    summary="Files that a read opens, and those it skips",
    run=_plan,
    python='orders.at(17).plan(where="amount > 10")',
    examples=("%snapshot plan 17", '%snapshot plan 17 --where "amount > 10"'),
    arguments=(REF,),
    options=(
        WHERE,
        TABLE,
    ),
    notes="One row per split that is read, and one per partition, bucket and reason for files that are skipped: "
    "partition, bucket, key range or statistics of a column. Reads metadata only.",
)
