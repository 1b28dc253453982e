"""`%snapshot explore`: the explorer, a widget."""

from snapshot_explorer.jupyter.command import TABLE, Command, Invocation


def _explore(invocation: Invocation) -> object:
    """Return the explorer of a table, a widget."""
    from snapshot_explorer.jupyter.explorer import explore as explorer_of  # noqa: PLC0415 - widgets take long to import

    name, table = invocation.table()
    return explorer_of(table, name=name)


EXPLORE = Command(
    name="explore",
    summary="A widget to travel through time by hand",
    run=_explore,
    python="snapshot_explorer.explore(orders)",
    examples=("%snapshot explore", "e = %snapshot explore -t orders"),
    options=(TABLE,),
    notes="A timeline with markers A and B, and views of the commit, manifests, what differs, rows, files and "
    "health, each with the line of Python that gives the same. Works by keyboard; e.state drives it from code, "
    "e.wait() waits for what is being read, e.close() ends it. Without widgets it is a table and a picture.",
)
