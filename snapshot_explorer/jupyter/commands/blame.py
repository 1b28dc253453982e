"""`%snapshot blame`: the changes of rows."""

from snapshot_explorer.analysis.row_history import RowHistory
from snapshot_explorer.analysis.rows import Blame
from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import CONDITION, condition_of, names_of
from snapshot_explorer.jupyter.usage_error import UsageError


def _blame(invocation: Invocation) -> Blame | RowHistory:
    """Return every version that inserted, updated or deleted rows of a condition, or each state that the rows had."""
    arguments = invocation.arguments
    key, columns = names_of(arguments, "key"), names_of(arguments, "columns")
    table = invocation.table()
    condition = condition_of(invocation, table)
    if arguments.has("states"):
        if key is not None:
            raise UsageError("--states has each state of a row, for which no key is needed. Leave --key out.")
        return table.row_history(condition, columns, arguments.get("between"))
    return table.blame(condition, key=key, columns=columns, between=arguments.get("between"))


BLAME = Command(
    name="blame",
    question="Which rows?",
    summary="The versions that changed rows, before and after",
    run=_blame,
    python='orders.blame("order_id = 42")',
    calls=(
        Call(verb="table.blame", names={"where": "CONDITION"}),
        Call(verb="table.row_history", flag="--states", names={"where": "CONDITION"}),
    ),
    examples=(
        "%snapshot blame order_id = 42",
        '%snapshot blame "amount < 0" --between 5..latest --columns amount,buyer',
        'b = %snapshot blame "event_id = 13" --key event_id',
        "%snapshot blame order_id = 42 --states",
    ),
    arguments=(CONDITION,),
    options=(
        Option("--key A,B", "the columns that identify a row; by default the primary key"),
        Option("--columns A,B", "the columns to compare; by default all"),
        Option("--states", "each state that the rows had once, with its first version and the first one without it"),
        Option("--between A..B", "only these versions"),
        TABLE,
    ),
    notes="Opens only files that a version added or removed and whose statistics allow matching rows; the result shows "
    "how many. Without a key an update is a delete and an insert. A restore is listed with the rows that it "
    "brings back; compactions and added columns change no rows. b.lines has the rows before and after. --states "
    "is orders.row_history() in Python: all versions as one relation.",
)
