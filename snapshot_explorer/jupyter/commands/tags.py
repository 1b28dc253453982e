"""`%snapshot tags`: the tags."""

from snapshot_explorer.jupyter.command import TABLE, Call, Command

TAGS = Command(
    name="tags",
    question="What happened?",
    summary="Tags and the versions they name",
    run=lambda invocation: invocation.table().tags(),
    python="orders.tags()",
    calls=(Call(verb="table.tags"),),
    examples=("%snapshot tags",),
    options=(TABLE,),
    notes="Delta tables have none.",
)
