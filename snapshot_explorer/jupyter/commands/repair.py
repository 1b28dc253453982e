"""`%snapshot repair`: the statement that puts back rows of an earlier version."""

from snapshot_explorer.jupyter.command import TABLE, Argument, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import column_names, where_of
from snapshot_explorer.repairs import Repair


def _repair(invocation: Invocation) -> Repair:
    """Return the statement that puts rows back; runs nothing."""
    _, table = invocation.table()
    key = invocation.arguments.get("key")
    return table.repair(
        invocation.arguments.get("ref") or "",
        where_of(invocation, table.current),
        key=None if key is None else column_names(key, "--key"),
        name=invocation.arguments.get("name"),
    )


REPAIR = Command(
    name="repair",
    summary="The statement that puts rows back",
    run=_repair,
    python='orders.repair(to=12, where="amount < 0")',
    examples=(
        "%snapshot repair 7",
        '%snapshot repair 7 --where "order_id in (3, 42)"',
        'r = %snapshot repair latest^ --where "amount < 0" --key order_id --name lake.shop.orders',
    ),
    arguments=(Argument(name="REF", value_type="ref", meaning="the version whose rows are put back", required=True),),
    options=(
        Option(
            flags=("--where",),
            metavar='"SQL"',
            value_type="condition",
            meaning="the rows to put back, as they are now or were then; by default the table as a whole",
        ),
        Option(
            flags=("--key",),
            metavar="A,B",
            value_type="columns",
            meaning="with --where: the columns that identify a row; by default the primary key",
        ),
        Option(flags=("--name",), metavar="TABLE", meaning="the table's name in the engine, such as lake.shop.orders"),
        TABLE,
    ),
    notes="Runs nothing. The statement is Spark SQL: RESTORE or a rollback, or with --where MERGE, DELETE and INSERT "
    "from the earlier version; without a key, all rows that match are replaced. r.statement is its text, r.statements "
    "the parts to run one after the other, r.counts the rows to expect by a row diff, r.later the commits since, and "
    "r.check the call that shows afterwards whether the rows are those of the version. Refused where no statement is "
    "certain to be exact.",
)
