"""`%snapshot close`: forget a table."""

from snapshot_explorer.jupyter.command import Argument, Command, Invocation
from snapshot_explorer.jupyter.help_text import HelpText


def _close(invocation: Invocation) -> HelpText:
    name, _ = invocation.tables.find(invocation.arguments.get("name"))
    invocation.tables.close(name)
    left = ", ".join(invocation.tables.all()) or "none"
    return HelpText(f"Closed {name}. Open: {left}.")


CLOSE = Command(
    name="close",
    summary="Forget a table and its variable",
    run=_close,
    python="del orders",
    examples=("%snapshot close orders",),
    arguments=(Argument(name="NAME", value_type="table", meaning="the table; by default the current one"),),
)
