"""`%snapshot schema`: columns, types and keys at a version."""

from snapshot_explorer.jupyter.command import TABLE, Command, Invocation
from snapshot_explorer.jupyter.commands.shared_arguments import REF, ref_of


def _schema(invocation: Invocation) -> object:
    """Return the schema at a version; by default the newest one, which exists before the first commit."""
    _, table = invocation.table()
    if invocation.arguments.get("ref") is None:
        return table.update(staleness_acceptable=True).schema
    return table.at(ref_of(invocation)).schema


SCHEMA = Command(
    name="schema",
    summary="Columns, types and keys at a version",
    run=_schema,
    python="orders.at(17).schema",
    examples=("%snapshot schema 17", "%snapshot schema"),
    arguments=(REF,),
    options=(TABLE,),
)
