"""`%snapshot readability`: which versions can be loaded."""

from snapshot_explorer.jupyter.command import TABLE, Command

READABILITY = Command(
    name="readability",
    summary="Which versions can be loaded",
    run=lambda invocation: invocation.table()[1].readability(),
    python="orders.readability()",
    examples=("%snapshot readability",),
    options=(TABLE,),
    notes="Lists the folders with data files, and opens no file. Shows a sign per version, oldest first: + can be "
    "loaded, ~ only its metadata, - not at all, ? unknown.",
)
