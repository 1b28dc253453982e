"""`%snapshot profile`: the numbers of columns over versions, and where they jump."""

from snapshot_explorer.analysis.profile import AnomalyRules, Profile
from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import (
    RANGE,
    check_options,
    columns_and_range,
    names_of,
    whole_number,
)
from snapshot_explorer.results import Frame


def _profile(invocation: Invocation) -> Profile | Frame:
    """Return rows, nulls and the range of columns at every version, or the versions at which a number jumps."""
    arguments = invocation.arguments
    check_options(arguments, "anomalies", only_with=("key", "window"), never_with=("exact",))
    columns, between = columns_and_range(invocation)
    table = invocation.table()
    if not arguments.has("anomalies"):
        return table.profile_over(columns, between, exact=arguments.has("exact"))
    rules = _rules(arguments.get("window"))
    return table.anomalies(columns, between, rules=rules, key=names_of(arguments, "key"))


def _rules(window: str | None) -> AnomalyRules:
    number = None if window is None else whole_number("--window", window, minimum=1)
    if number is None:
        return AnomalyRules()
    return AnomalyRules(window=number, min_changes=min(number, AnomalyRules().min_changes))


PROFILE = Command(
    name="profile",
    question="What differs?",
    summary="Rows, nulls and ranges over versions, and their jumps",
    run=_profile,
    python='orders.profile_over(["amount"], "10..latest"); orders.anomalies(["amount"])',
    calls=(
        Call(verb="table.profile_over", names={"between": "A..B"}),
        Call(verb="table.anomalies", flag="--anomalies", names={"between": "A..B"}),
    ),
    examples=(
        "%snapshot profile",
        "%snapshot profile 10..latest --columns amount,buyer",
        "p = %snapshot profile --columns amount --exact",
        "%snapshot profile --anomalies",
        "%snapshot profile --anomalies --key order_id",
        "a = %snapshot profile 10..latest --anomalies --window 20",
    ),
    arguments=(RANGE,),
    options=(
        Option("--columns A,B", "the columns, also without the flag; by default all"),
        Option("--exact", "read the rows, each file once, where statistics are bounds or missing"),
        Option("--anomalies", "the versions where a number jumps, each with its rule"),
        Option(
            "--key A,B",
            "with --anomalies: also versions where rows begin to have the same key; reads its columns at all versions",
        ),
        Option("--window N", "with --anomalies: the number of previous changes to compare with; by default 10"),
        TABLE,
    ),
    notes="Computed from the file statistics in the metadata; the column bounds shows which numbers are bounds, and "
    "why. p.frame is the table, p.picture() the lines, p.anomalies the versions where a number jumps. --anomalies "
    "lists a version if its change is more than 5 times the usual change of the versions before it, and at least 20 % "
    "of rows, files or bytes, 5 points of a null rate, or half of a column's range. Reads only metadata, except with "
    "--exact and --key. In Python table.anomalies(rules=AnomalyRules(...)) has all thresholds.",
)
