"""`%snapshot close`: forget a table."""

from snapshot_explorer.jupyter.grammar import Argument, Call, Command
from snapshot_explorer.jupyter.manual import Manual


def _close(call: Call) -> Manual:
    """Forget a table and its variable."""
    name, _ = call.tables.find(call.arguments.get("name"))
    call.tables.close(name)
    left = ", ".join(call.tables.all()) or "none"
    return Manual(f"Closed {name}. Open: {left}.")


CLOSE = Command(
    name="close",
    summary="Forget a table and its variable",
    run=_close,
    python="del orders",
    examples=("%snapshot close orders",),
    arguments=(Argument(name="NAME", holds="table", meaning="the table; the current one without it"),),
)
