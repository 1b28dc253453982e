"""`%snapshot readability`: which versions can be loaded."""

from snapshot_explorer.frames import Frame
from snapshot_explorer.jupyter.grammar import TABLE, Call, Command


def _readability(call: Call) -> Frame:
    """Return which versions can be loaded."""
    return call.table()[1].readability()


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
