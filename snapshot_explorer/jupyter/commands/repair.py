"""`%snapshot repair`: the statement that puts back rows of an earlier version."""

from snapshot_explorer.analysis.repair import Repair
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.jupyter.command import TABLE, Argument, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import names_of, where_of
from snapshot_explorer.jupyter.usage_error import UsageError


def _repair(invocation: Invocation) -> Repair:
    """Return the statement that puts rows back; runs nothing."""
    table = invocation.table()
    to, undo = invocation.arguments.get("ref"), invocation.arguments.get("undo")
    if (to is None) == (undo is None):
        raise UsageError(
            Message(
                "repair needs either the commit to undo, ",
                Hint("table.repair", {"undo": 10}),
                ", or the version to put back, ",
                Hint("table.repair", {"to": 9}),
                ", which undoes every later commit too.",
            )
        )
    return table.repair(
        to,
        where_of(invocation, table.current),
        undo=undo,
        key=names_of(invocation.arguments, "key"),
        name=invocation.arguments.get("name"),
    )


REPAIR = Command(
    name="repair",
    question="Which rows?",
    summary="The statement that puts rows back",
    run=_repair,
    python='orders.repair(undo=8, where="amount < 0")',
    calls=(Call(verb="table.repair", names={"to": "REF"}),),
    examples=(
        "%snapshot repair --undo 8",
        '%snapshot repair --undo 8 --where "amount < 0"',
        "%snapshot repair 7",
        '%snapshot repair 7 --where "order_id in (3, 42)"',
        'r = %snapshot repair latest^ --where "amount < 0" --key order_id --name lake.shop.orders',
    ),
    arguments=(
        Argument(
            "REF",
            "the version whose rows are put back, which undoes every later commit; without it, name --undo",
            value_type="ref",
        ),
    ),
    options=(
        Option(
            "--undo REF", "put back only what this commit removed or changed; rows that later commits changed are left"
        ),
        Option('--where "SQL"', "the rows to put back, as they are now or were then; by default the table as a whole"),
        Option("--key A,B", "with --where or --undo: the columns that identify a row; by default the primary key"),
        Option("--name TABLE", "the table's name in the engine, such as lake.shop.orders"),
        TABLE,
    ),
    notes="Runs nothing. With --undo, rows that one commit removed or changed are put back, and those that it "
    "inserted are deleted, unless later commits changed them too: r.left lists those. With REF, all that changed since "
    "is undone, and r.warnings says how many rows of later commits that concerns. The statement is Spark SQL: RESTORE "
    "or a rollback, or with --undo or --where MERGE, DELETE and INSERT from the earlier version; with REF and without "
    "a key, all rows that match are replaced. r.statement is its text, r.statements the parts to run one after the "
    "other, r.counts the rows to expect by row diffs, r.later the commits since, and r.check the call that shows the "
    "result afterwards. Refused where no statement is certain to be exact.",
)
