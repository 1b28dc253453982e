"""`%snapshot branches`: the branches."""

from typing import TYPE_CHECKING

from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from snapshot_explorer.results import Frame


def _branches(invocation: Invocation) -> "Frame | go.Figure":
    frame = invocation.table().branches()
    return frame.picture() if invocation.arguments.has("picture") else frame


BRANCHES = Command(
    name="branches",
    question="What happened?",
    summary="Branches other than the main one, and where they begin",
    run=_branches,
    python="orders.branches()",
    calls=(Call(verb="table.branches"),),
    examples=("%snapshot branches", "%snapshot branches --picture"),
    options=(
        Option("-p, --picture", "as a graph: a lane of commits for each branch, with tags"),
        TABLE,
    ),
    notes_in_notebooks="Open a branch with %snapshot open PATH --branch B.",
    notes="forked_version is the version of this table with the first commit of the branch; null if none is "
    "proven. Delta and Hudi tables have no branches; their graph has one lane.",
)
