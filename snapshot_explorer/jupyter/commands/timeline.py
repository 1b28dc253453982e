"""`%snapshot timeline`: commits as a figure."""

from typing import TYPE_CHECKING, get_args

from snapshot_explorer.core.records import Measure
from snapshot_explorer.jupyter.command import TABLE, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import COMMIT_FILTERS, MARKED, RANGE, read_commits
from snapshot_explorer.jupyter.usage_error import UsageError

if TYPE_CHECKING:
    import plotly.graph_objects as go

TIMELINE_COMMITS = 10_000
"""Commits that `timeline` reads without `-n`."""


def _timeline(invocation: Invocation) -> "go.Figure":
    y = invocation.arguments.get("y") or "rows"
    if y not in get_args(Measure):
        raise UsageError(f"-y must be one of {', '.join(get_args(Measure))}, got {y!r}. Example: -y files.")
    frame, _ = read_commits(invocation, TIMELINE_COMMITS)
    return frame.picture(y=y)


TIMELINE = Command(
    name="timeline",
    summary="Commits as a figure, with a table beside it",
    run=_timeline,
    python='orders.history("A..B", limit=10_000).picture(y="rows")',
    examples=(
        "%snapshot timeline",
        "%snapshot timeline 100..200 -y files",
        "%snapshot timeline --since @7d --no-maintenance",
        "%snapshot timeline --anomalies",
        "p = %snapshot timeline -y bytes -n all",
    ),
    arguments=(RANGE,),
    options=(
        Option(flags=("-y",), metavar="WHAT", value_type="measure", meaning="what the bars show: rows, files or bytes"),
        Option(
            flags=("-n", "--limit"),
            metavar="N",
            value_type="number",
            meaning=f"the number of newest commits, or all; by default {TIMELINE_COMMITS:,}",
        ),
        *COMMIT_FILTERS,
        MARKED,
        TABLE,
    ),
    notes="Bars above the axis show what a commit added, bars below what it removed, by kind; the line is the total. "
    "Tags are flags, dotted lines are new schemas; versions on grey can no longer be loaded. --anomalies marks "
    "versions where a number jumps, with the rule on hover and below the table; it reads the statistics of all "
    "files. Without figures, only the table is shown. p is a plotly figure; rows are counted as "
    "%snapshot log counts them.",
)
