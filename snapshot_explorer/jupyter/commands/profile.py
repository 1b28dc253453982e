"""`%snapshot profile`: the numbers of columns over versions."""

from snapshot_explorer.analysis.rows import Profile
from snapshot_explorer.jupyter.command import TABLE, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import RANGE, columns_and_range


def _profile(invocation: Invocation) -> Profile:
    """Return rows, nulls and the range of columns at every version."""
    arguments = invocation.arguments
    columns, between = columns_and_range(invocation)
    _, table = invocation.table()
    return table.profile_over(columns, between, exact=arguments.has("exact"))


PROFILE = Command(
    name="profile",
    summary="Rows, nulls and ranges of columns over versions",
    run=_profile,
    python='orders.profile_over(["amount"], "10..latest")',
    examples=(
        "%snapshot profile",
        "%snapshot profile 10..latest --columns amount,buyer",
        "p = %snapshot profile --columns amount --exact",
    ),
    arguments=(RANGE,),
    options=(
        Option(
            flags=("--columns",),
            metavar="A,B",
            value_type="columns",
            meaning="the columns, also without the flag; by default all",
        ),
        Option(flags=("--exact",), meaning="read the rows, each file once, where statistics are bounds or missing"),
        TABLE,
    ),
    notes="Computed from the file statistics in the metadata; the column bounds shows which numbers are bounds, and "
    "why. p.frame is the table, p.picture() the lines, p.anomalies the versions where a number jumps, each with "
    "its rule.",
)
