"""`%snapshot anomalies`: versions at which a number jumps."""

from snapshot_explorer.analysis.rows import AnomalyRules
from snapshot_explorer.jupyter.command import TABLE, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import RANGE, column_names, columns_and_range, whole_number
from snapshot_explorer.results import Frame


def _anomalies(invocation: Invocation) -> Frame:
    """Return the versions at which a number of the table or of a column jumps."""
    arguments = invocation.arguments
    columns, between = columns_and_range(invocation)
    window = arguments.get("window")
    number = None if window is None else whole_number("--window", window, minimum=1)
    rules = (
        AnomalyRules()
        if number is None
        else AnomalyRules(window=number, min_changes=min(number, AnomalyRules().min_changes))
    )
    key = arguments.get("key")
    keyed = None if key is None else column_names(key, "--key")
    return invocation.table()[1].anomalies(columns, between, rules=rules, key=keyed)


ANOMALIES = Command(
    name="anomalies",
    summary="Versions where a number jumps, and by which rule",
    run=_anomalies,
    python='orders.anomalies(["amount"], "10..latest")',
    examples=(
        "%snapshot anomalies",
        "%snapshot anomalies 10..latest --columns amount,buyer",
        "%snapshot anomalies --key order_id",
        "a = %snapshot anomalies --window 20",
    ),
    arguments=(RANGE,),
    options=(
        Option(flags=("--columns",), metavar="A,B", value_type="columns", meaning="the columns; by default all"),
        Option(
            flags=("--key",),
            metavar="A,B",
            value_type="columns",
            meaning="also mark versions where rows begin to have the same key; reads its columns at all versions",
        ),
        Option(
            flags=("--window",),
            metavar="N",
            value_type="number",
            meaning="the number of previous changes to compare with; by default 10",
        ),
        TABLE,
    ),
    notes="A version is listed if its change is more than 5 times the usual change of the versions before it, and at "
    "least 20 % of rows, files or bytes, 5 points of a null rate, or half of a column's range. Reads only "
    "metadata, except with --key. In Python table.anomalies(rules=AnomalyRules(...)) has all thresholds.",
)
