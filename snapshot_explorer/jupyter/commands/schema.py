"""`%snapshot schema`: columns, types and keys at a version."""

from snapshot_explorer.jupyter.commands.shared_arguments import REF, ref_of
from snapshot_explorer.jupyter.grammar import TABLE, Call, Command


def _schema(call: Call) -> object:
    """Return the schema at a version; without one the newest, which a table has before its first commit."""
    _, table = call.table()
    if call.arguments.get("ref") is None:
        return table.update(staleness_acceptable=True).schema
    return table.schema(ref_of(call))


SCHEMA = Command(
    name="schema",
    summary="Columns, types and keys at a version",
    run=_schema,
    python="orders.schema(17)",
    examples=("%snapshot schema 17", "%snapshot schema"),
    arguments=(REF,),
    options=(TABLE,),
)
