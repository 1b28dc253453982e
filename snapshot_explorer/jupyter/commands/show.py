"""`%snapshot show`: one version."""

from snapshot_explorer.jupyter.command import TABLE, Command, Invocation
from snapshot_explorer.jupyter.commands.shared_arguments import REF, snapshot_of
from snapshot_explorer.snapshot import Snapshot


def _show(invocation: Invocation) -> Snapshot:
    return snapshot_of(invocation)


SHOW = Command(
    name="show",
    summary="One version: its commit, files and schema",
    run=_show,
    python="orders.at(17)",
    examples=("%snapshot show 17", "%snapshot show latest~2", "%snapshot show orders@tag:v1"),
    arguments=(REF,),
    options=(TABLE,),
)
