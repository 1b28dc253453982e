"""`%snapshot branches`: the branches."""

from typing import TYPE_CHECKING

from snapshot_explorer.jupyter.command import TABLE, Command, Invocation, Option

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from snapshot_explorer.results import Frame


def _branches(invocation: Invocation) -> "Frame | go.Figure":
    frame = invocation.table()[1].branches()
    return frame.picture() if invocation.arguments.has("picture") else frame


BRANCHES = Command(
    name="branches",
    question="What happened?",
    summary="Branches other than the main one, and where they begin",
    run=_branches,
    python="orders.branches()",
    examples=("%snapshot branches", "%snapshot branches --picture"),
    options=(
        Option(flags=("-p", "--picture"), meaning="as a graph: a lane of commits for each branch, with tags"),
        TABLE,
    ),
    notes="forked_version is the version of this table with the first commit of the branch; null if none is "
    "proven. Open one with %snapshot open PATH --branch B. Delta and Hudi tables have none; their graph has one lane.",
)
