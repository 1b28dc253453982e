"""`%snapshot manifests`: the manifests of a version."""

from snapshot_explorer.jupyter.command import TABLE, Command
from snapshot_explorer.jupyter.commands.shared_arguments import REF, snapshot_of

MANIFESTS = Command(
    name="manifests",
    summary="Manifests: base, delta, changelog, index",
    run=lambda invocation: snapshot_of(invocation).manifests(),
    python="orders.at(17).manifests()",
    examples=("%snapshot manifests 17", "m = %snapshot manifests latest^"),
    arguments=(REF,),
    options=(TABLE,),
    notes="For Delta, base is the checkpoint of the version, and delta the commits after it. For Iceberg, base has the "
    "manifests of earlier commits, delta those of the version's own commit, and index those of delete files.",
)
