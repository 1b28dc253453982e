"""Which rows? `%snapshot blame`, `bisect`, `trace` and `repair`."""

from snapshot_explorer.analysis.repair import Repair
from snapshot_explorer.analysis.row_history import RowHistory
from snapshot_explorer.analysis.rows import Bisection, Blame, Trace
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.jupyter.command import TABLE, Argument, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import CONDITION, condition_of, names_of, where_of
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.results import Frame


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


def _trace(invocation: Invocation) -> Trace:
    """Return the versions and files that still have rows of a condition."""
    table = invocation.table()
    return table.trace(condition_of(invocation, table))


TRACE = Command(
    name="trace",
    question="Which rows?",
    summary="Which versions and data files still have rows",
    run=_trace,
    python='orders.trace("customer_id = 42")',
    calls=(Call(verb="table.trace", names={"where": "CONDITION"}),),
    examples=("%snapshot trace order_id = 42", 't = %snapshot trace "event_id = 13 and amount < 0"'),
    arguments=(CONDITION,),
    options=(TABLE,),
    notes="Covers every version of every branch, deleted rows that data files still store, changelogs, and metadata "
    "whose statistics name the value. Opens only data files whose statistics allow matching rows. t.verdict "
    "never says that rows are gone where something could not be read; t.versions, t.files, t.changelogs and t.metadata "
    "have the evidence, t.digest a hash of it. Rows that the merge of a primary-key table drops are not counted.",
)


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
