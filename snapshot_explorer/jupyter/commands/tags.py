"""`%snapshot tags`: the tags."""

from snapshot_explorer.frames import Frame
from snapshot_explorer.jupyter.command import TABLE, Command, Invocation


def _tags(invocation: Invocation) -> Frame:
    return invocation.table()[1].tags()


TAGS = Command(
    name="tags",
    summary="Tags and the versions they name",
    run=_tags,
    python="orders.tags()",
    examples=("%snapshot tags",),
    options=(TABLE,),
    notes="Delta tables have none.",
)
