"""`%snapshot help`: the list of commands, or the help of one."""

from snapshot_explorer.jupyter.command import Argument, Command, Invocation, find_command
from snapshot_explorer.jupyter.command_line import ALIASES
from snapshot_explorer.jupyter.help_text import HelpText, command_help, overview


def _help(invocation: Invocation) -> HelpText:
    """Return the list of commands, or the help of the one named."""
    word = invocation.arguments.get("command")
    word = ALIASES[word][0] if word is not None and word in ALIASES else word
    return (
        HelpText(overview(invocation.commands))
        if word is None
        else HelpText(command_help(find_command(invocation.commands, word)))
    )


HELP = Command(
    name="help",
    question="What is there?",
    summary="The list of commands, or the help of one",
    run=_help,
    python="help(snapshot_explorer.open_table)",
    examples=("%snapshot help load",),
    arguments=(Argument("COMMAND", "the command; by default all", value_type="command"),),
)
