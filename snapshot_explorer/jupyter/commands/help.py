"""`%snapshot help`: the list of commands, or the help of one."""

from snapshot_explorer.jupyter.grammar import Argument, Call, Command, find_command
from snapshot_explorer.jupyter.manual import Manual, manual, overview


def _help(call: Call) -> Manual:
    """Return the list of commands, or the help of the one named."""
    word = call.arguments.get("command")
    return Manual(overview(call.commands)) if word is None else Manual(manual(find_command(call.commands, word)))


HELP = Command(
    name="help",
    summary="This list, or the help of a command",
    run=_help,
    python="help(snapshot_explorer.open_table)",
    examples=("%snapshot help load",),
    arguments=(Argument(name="COMMAND", holds="command", meaning="the command to tell about"),),
)
