"""Completion for bash, zsh and fish: scripts that shtab writes, from the records of the commands."""

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from typing import get_args

from snapshot_explorer.core.errors import MissingDependencyError
from snapshot_explorer.core.records import Kind
from snapshot_explorer.formats import FORMATS
from snapshot_explorer.jupyter.command import Argument, Option
from snapshot_explorer.terminal.commands import commands_for

SHELLS = ("bash", "zsh", "fish")
_FILES = ("path", "path or table")
_PATH = Argument("PATH", "the table's folder, or a URL", value_type="path", required=True)
_PAGER = Option("--no-pager", "print without a pager")


def script(shell: str, programs: Sequence[argparse.ArgumentParser]) -> str:
    """Return a script for a shell that completes commands, options, words of closed sets, and files.

    Args:
        shell: One of `SHELLS`.
        programs: The parsers of the commands that are not about one table.

    Raises:
        MissingDependencyError: shtab is not installed.
    """
    if find_spec("shtab") is None:
        raise MissingDependencyError(
            "completion needs shtab, which is not installed. Install it: pip install 'snapshot-explorer[completion]'."
        )
    import shtab  # noqa: PLC0415 - optional

    parser = argparse.ArgumentParser(prog="snapshot-explorer")
    subparsers = parser.add_subparsers()
    for command in commands_for(None):
        added = subparsers.add_parser(command.name, help=command.summary)
        for argument in command.arguments if command.accepts_path else (_PATH, *command.arguments):
            _complete(added.add_argument(argument.name, help=argument.meaning), argument)
        for option in (*command.options, _PAGER):
            if option.metavar is None:
                added.add_argument(*option.flags, help=option.meaning, action="store_true")
            else:
                _complete(added.add_argument(*option.flags, metavar=option.metavar, help=option.meaning), option)
    for program in programs:
        subparsers.add_parser(
            program.prog.rpartition(" ")[2], help=program.description, parents=[program], add_help=False
        )
    return str(shtab.complete(parser, shell))


def _complete(action: argparse.Action, described: Argument | Option) -> None:
    """Let a shell complete a value by its type: files, or a closed set of words."""
    import shtab  # noqa: PLC0415 - optional

    match described.value_type:
        case "kind":
            action.choices = get_args(Kind)
        case "format":
            action.choices = [item.name for item in FORMATS]
        case value_type if value_type in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined] # where shtab looks
