"""`%snapshot readability`: which versions can be loaded."""

from snapshot_explorer.frames import Frame
from snapshot_explorer.jupyter.command import TABLE, Command, Invocation


def _readability(invocation: Invocation) -> Frame:
    return invocation.table()[1].readability()


READABILITY = Command(
    name="readability",
    summary="Which versions can be loaded",
    run=_readability,
    python="orders.readability()",
    examples=("%snapshot readability",),
    options=(TABLE,),
    notes="Lists the folders with data files, and opens no file. Shows a sign per version, oldest first: + can be "
    "loaded, ~ only its metadata, - not at all, ? unknown.",
)
