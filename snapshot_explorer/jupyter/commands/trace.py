"""`%snapshot trace`: versions and files that still have rows."""

from snapshot_explorer.analysis.rows import Trace
from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation
from snapshot_explorer.jupyter.commands.shared_arguments import CONDITION, condition_of


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
