"""`%snapshot manifests`: the manifests of a version, or the entries of one."""

from snapshot_explorer.jupyter.command import TABLE, Call, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import REF, snapshot_of
from snapshot_explorer.results import Frame


def _manifests(invocation: Invocation) -> Frame:
    """Return the manifests of a version, or the entries of the named one."""
    manifest = invocation.arguments.get("entries")
    snapshot = snapshot_of(invocation)
    return snapshot.manifests() if manifest is None else snapshot.entries(manifest)


MANIFESTS = Command(
    name="manifests",
    question="What is stored, and what does it cost?",
    summary="Manifests: base, delta, changelog, index",
    run=_manifests,
    python='orders.at(17).manifests(); orders.at(17).entries("manifest-5d3f-0")',
    calls=(
        Call(verb="snapshot.manifests"),
        Call(verb="snapshot.entries", names={"manifest": "--entries"}),
    ),
    examples=(
        "%snapshot manifests 17",
        "%snapshot manifests 17 --entries manifest-5d3f-0",
        "%snapshot manifests --entries 0017.json",
        "m = %snapshot manifests latest^",
    ),
    arguments=(REF,),
    options=(
        Option(
            "--entries NAME",
            "the data files that one of the manifests adds and removes: its path as listed, its name, or an "
            "unambiguous suffix",
        ),
        TABLE,
    ),
    notes="For Delta, base is the checkpoint of the version, and delta the commits after it; with --entries, a "
    "manifest is a commit, a checkpoint file or a sidecar, and a remove in a checkpoint is a tombstone: the file was "
    "removed before. For Iceberg, base has the manifests of earlier commits, delta those of the version's own commit, "
    "and index those of delete files.",
)
