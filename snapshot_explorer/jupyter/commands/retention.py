"""`%snapshot retention`: the files that expiry would free."""

from snapshot_explorer.analysis.retention import Retention
from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import whole_number


def _retention(invocation: Invocation) -> Retention:
    arguments = invocation.arguments
    last = arguments.get("keep-last")
    keep_last = None if last is None else whole_number("--keep-last", last, minimum=1)
    return invocation.table().retention(arguments.get("keep"), keep_last=keep_last)


RETENTION = Command(
    name="retention",
    question="What is stored, and what does it cost?",
    summary="What expiry would delete, and what keeps the rest",
    run=_retention,
    python='orders.retention(keep="7d", keep_last=10)',
    calls=(Call(verb="table.retention"),),
    examples=(
        "%snapshot retention",
        "%snapshot retention --keep 7d --keep-last 10",
        "r = %snapshot retention --keep 0d --keep-last 1",
    ),
    options=(
        Option("--keep AGE", "keep versions up to this age, such as 7d or 36h; by default the table's setting"),
        Option("--keep-last N", "keep at least this many of the newest versions; by default the table's setting"),
        TABLE,
    ),
    notes="Deletes nothing, and shows the engine's own command: sys.expire_snapshots of Paimon, VACUUM of Delta, "
    "system.expire_snapshots of Iceberg. r.versions, r.unloadable, r.freed and r.holders are frames, r.commands the "
    "commands.",
)
