"""`%snapshot orphans`: files that no metadata names."""

from snapshot_explorer.analysis.retention import Orphans
from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option


def _orphans(invocation: Invocation) -> Orphans:
    """Return the files below the table's folder that no version, tag or branch names."""
    table, older_than = invocation.table(), invocation.arguments.get("older-than")
    return table.orphans() if older_than is None else table.orphans(older_than)


ORPHANS = Command(
    name="orphans",
    question="Is it sound?",
    summary="Files that no version, tag or branch names",
    run=_orphans,
    python='orders.orphans(older_than="3d")',
    calls=(Call(verb="table.orphans"),),
    examples=("%snapshot orphans", "%snapshot orphans --older-than 12h", "o = %snapshot orphans --older-than 0d"),
    options=(
        Option(
            "--older-than AGE",
            "the minimum age of the files, such as 12h or 3d, the default; longer than any commit takes",
        ),
        TABLE,
    ),
    notes="Deletes nothing, and shows the engine's own command. Lists each folder of the table once, then reads all "
    "metadata of all branches. o.files lists the files, with what the engine's clean-up would do; o.unread lists "
    "metadata that could not be read; if there is any, no file is called an orphan.",
)
