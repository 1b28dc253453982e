"""`%snapshot bisect`: the first version where a condition holds."""

from snapshot_explorer.analysis.rows import Bisection
from snapshot_explorer.jupyter.command import TABLE, Argument, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import condition_of
from snapshot_explorer.results import Frame


def _bisect(invocation: Invocation) -> Bisection | Frame:
    """Return the first version at which a condition holds, with its commit; with `--all` all changes."""
    arguments = invocation.arguments
    table = invocation.table()
    condition = condition_of(invocation, table)
    bisection = table.bisect(
        condition,
        arguments.get("good"),
        arguments.get("bad"),
        announce=lambda reading: invocation.show_line(str(reading)),
        every=arguments.has("all"),
    )
    return bisection.changes if arguments.has("all") else bisection


BISECT = Command(
    name="bisect",
    question="Which rows?",
    summary="The first version where a condition holds",
    run=_bisect,
    python='orders.bisect("amount < 0", good=5, bad="latest")',
    calls=(Call(verb="table.bisect", names={"every": "--all"}),),
    examples=(
        "%snapshot bisect amount < 0 --bad 8",
        '%snapshot bisect "count(*) filter (where buyer is null) > 0" --good 3 --bad latest',
        '%snapshot bisect "rows > 1000000"',
        "%snapshot bisect amount < 0 --all",
        "b = %snapshot bisect \"'channel' in columns\"",
    ),
    arguments=(
        Argument(
            "CONDITION", "SQL on the rows, aggregates included, or on metadata", value_type="condition", required=True
        ),
    ),
    options=(
        Option("--good REF", "a version where it does not hold; by default the earliest"),
        Option("--bad REF", "a version where it holds; by default the newest"),
        Option("--all", "each version where the condition begins or ceases to hold; reads all rows"),
        TABLE,
    ),
    notes="The condition needs no quotes; options follow it. A condition without an aggregate holds if any row "
    "matches. Metadata: rows, files, bytes, committed_at, columns, types, null_count.COLUMN, null_rate.COLUMN; every "
    "version is evaluated from the log. A condition on rows loads about log2(n) of n versions, only the columns "
    "that it names, and the answer then says what it assumes: that the condition changes only once. If the table is "
    "small, or reading each file once is not more, every version is evaluated. Versions that are missing or cannot be "
    "read are skipped and named.",
)
