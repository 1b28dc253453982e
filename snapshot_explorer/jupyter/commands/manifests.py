"""`%snapshot manifests`: the manifests of a version."""

from snapshot_explorer.frames import Frame
from snapshot_explorer.jupyter.commands.shared_arguments import REF, snapshot_of
from snapshot_explorer.jupyter.grammar import TABLE, Call, Command


def _manifests(call: Call) -> Frame:
    """Return the manifests of a version."""
    return snapshot_of(call).manifests()


MANIFESTS = Command(
    name="manifests",
    summary="Manifests: base, delta, changelog, index",
    run=_manifests,
    python="orders.at(17).manifests()",
    examples=("%snapshot manifests 17", "m = %snapshot manifests latest^"),
    arguments=(REF,),
    options=(TABLE,),
    notes="Of Delta, base is the checkpoint that the version is made from, and delta the commits after it.",
)
