"""`%snapshot branches`: the branches."""

from snapshot_explorer.frames import Frame
from snapshot_explorer.jupyter.command import TABLE, Command, Invocation


def _branches(invocation: Invocation) -> Frame:
    return invocation.table()[1].branches()


BRANCHES = Command(
    name="branches",
    summary="Branches other than the main one, and where they begin",
    run=_branches,
    python="orders.branches()",
    examples=("%snapshot branches",),
    options=(TABLE,),
    notes="forked_version is the version of this table with the first commit of the branch; null if none is "
    "proven. Open one with %snapshot open PATH --branch B. Delta tables have none.",
)
