"""`%snapshot log`: commits, newest first."""

from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.command import TABLE, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import COMMIT_FILTERS, MARKED, RANGE, read_commits
from snapshot_explorer.results import Frame


def _log(invocation: Invocation) -> Frame:
    """Return the commits, newest first."""
    frame, limit = read_commits(invocation, invocation.settings.display_limit)
    if invocation.arguments.get("limit") is not None:
        frame.limit = limit
    if note := history_of(invocation.table()[1]).table_format.clock.copied_note(frame.to_arrow()):
        invocation.show_once(note)
    return frame


LOG = Command(
    name="log",
    summary="Commits, newest first",
    run=_log,
    python='orders.history("A..B", limit=20, kind="compact", since="@3d", text="...")',
    examples=(
        "%snapshot log",
        "%snapshot log 10..latest --kind compact -n all",
        "%snapshot log --since @2026-11-01 --grep nightly",
        "h = %snapshot log -t orders -n 100",
    ),
    arguments=(RANGE,),
    options=(
        Option(
            flags=("-n", "--limit"),
            metavar="N",
            value_type="number",
            meaning="the number of commits, or all; by default the setting display_limit (20)",
        ),
        *COMMIT_FILTERS,
        Option(flags=("--stat",), meaning="show the files, rows and bytes that each commit added and removed"),
        MARKED,
        Option(
            flags=("--recorded-times",),
            meaning="show and order by the times that Delta's writers recorded: after a copy, file times differ",
        ),
        TABLE,
    ),
    notes="Reads only the commits that it returns, unless it filters by kind or text. Row counts are those of the "
    "files, without rows that deletion vectors delete: Paimon's keys are not merged, and Iceberg's equality "
    "deletes are not applied.",
)
