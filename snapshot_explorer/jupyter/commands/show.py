"""`%snapshot show`: one version, or its schema."""

from snapshot_explorer.core.records import TableSchema
from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import REF, snapshot_of
from snapshot_explorer.table import Snapshot


def _show(invocation: Invocation) -> Snapshot | TableSchema:
    """Return a version, or its schema; the newest schema exists before the first commit."""
    if not invocation.arguments.has("schema"):
        return snapshot_of(invocation)
    if invocation.arguments.get("ref") is not None:
        return snapshot_of(invocation).schema
    return invocation.table().update(staleness_acceptable=True).schema


SHOW = Command(
    name="show",
    question="What happened?",
    summary="One version: its commit, files and schema",
    run=_show,
    python="orders.at(17); orders.at(17).schema",
    calls=(Call(verb="table.at"),),
    examples=(
        "%snapshot show 17",
        "%snapshot show latest~2",
        "%snapshot show orders@tag:v1",
        "%snapshot show 17 --schema",
    ),
    arguments=(REF,),
    options=(Option("--schema", "only columns, types and keys"), TABLE),
)
