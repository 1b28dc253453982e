"""`%snapshot entries`: the entries of a manifest."""

from snapshot_explorer.jupyter.command import TABLE, Argument, Command, Invocation
from snapshot_explorer.jupyter.commands.shared_arguments import REF, snapshot_of
from snapshot_explorer.results import Frame


def _entries(invocation: Invocation) -> Frame:
    return snapshot_of(invocation).entries(invocation.arguments.get("manifest") or "")


ENTRIES = Command(
    name="entries",
    summary="Data files that one of the manifests adds and removes",
    run=_entries,
    python='orders.at(17).entries("manifest-5d3f-0")',
    examples=("%snapshot entries manifest-5d3f-0 17", "%snapshot entries 0017.json"),
    arguments=(
        Argument(
            name="MANIFEST",
            value_type="text",
            required=True,
            meaning="its path as shown by manifests, its name, or an unambiguous suffix",
        ),
        REF,
    ),
    options=(TABLE,),
    notes="For Delta, a manifest is a commit, a checkpoint file or a sidecar; a remove in a checkpoint is a "
    "tombstone: the file was removed before.",
)
