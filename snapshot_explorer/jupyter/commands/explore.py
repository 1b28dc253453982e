"""`%snapshot explore`: the explorer, a widget."""

from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option


def _explore(invocation: Invocation) -> object:
    from snapshot_explorer.jupyter.explorer import explore as explorer_of  # noqa: PLC0415 - widgets take long to import

    name, table = invocation.table()
    explorer = explorer_of(table, name=name)
    explorer.state.follow = invocation.arguments.has("follow")
    return explorer


EXPLORE = Command(
    name="explore",
    question="What is there?",
    summary="The explorer: timeline, comparison, rows, files",
    run=_explore,
    python="snapshot_explorer.explore(orders)",
    calls=(Call(verb="explore", names={"table": ""}),),
    examples=("%snapshot explore", "e = %snapshot explore -t orders", "%snapshot watch"),
    options=(
        Option(flags=("--follow",), meaning="look for new commits every few seconds, as %snapshot watch does"),
        TABLE,
    ),
    notes="A timeline with markers A and B, and views of the commit, manifests, differences, rows, files, "
    "branches and health, each with the equivalent line of Python. Compare shows the rows that differ, Data blames "
    "rows and bisects a condition, Files has the lives of all files and what changed in each partition. "
    "Works by keyboard; e.state controls it from code, "
    "e.wait() waits for pending reads, e.close() ends it. Without widgets it is a table and a picture.",
)
