"""`%snapshot readability`: which versions can be loaded."""

from snapshot_explorer.frames import Frame
from snapshot_explorer.jupyter.command import TABLE, Command, Invocation


def _readability(invocation: Invocation) -> Frame:
    """Return which versions can be loaded."""
    return invocation.table()[1].readability()


READABILITY = Command(
    name="readability",
    summary="Which versions can be loaded",
    run=_readability,
    python="orders.readability()",
    examples=("%snapshot readability",),
    options=(TABLE,),
    notes="Lists the folders that hold data files, and opens none. The strip has a sign per version, oldest first: "
    "+ can be loaded, ~ its metadata only, - not at all, ? not known.",
)
