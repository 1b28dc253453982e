"""The help of `%snapshot`, written from the commands' records."""

import textwrap
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby

from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.history import history_of
from snapshot_explorer.history.overview import last_part
from snapshot_explorer.jupyter.command import Command
from snapshot_explorer.table import Table

_WIDTH = 98
_REFS = (
    "REF names a version: 17, v17, latest, HEAD, earliest, latest~2 (two back), 17^ (one back), -1 (the newest), "
    "tag:v1, branch:audit (the newest of a branch; main too), 2026-11-01T12:00:00Z (the last one committed by then; "
    "UTC without a zone), 2h, @3d (so long ago), yesterday{variable}. A..B are two of them, also written A B."
)
_REFS_IN_NOTEBOOKS = _REFS.replace("{variable}", ", or the name of a variable") + (
    " orders@17 is version 17 of the table orders."
)
_LINES = (
    "A command returns what its Python call returns: df = %snapshot load 17. A semicolon at the end silences it; "
    "NAME <<, -o NAME or as NAME puts the result into a variable. {variable} and $variable stand for their values. "
    "%snapshot 17 is show 17, %snapshot select ... is sql; history and versions are log, describe is "
    "show --schema, watch is explore --follow, diff3 is diff --three-way, show tables is open. "
    "Details: %snapshot help COMMAND. Settings: %config SnapshotMagics."
)
_RESTORING = ("checkout", "reset", "restore", "revert", "rollback", "undo")
_WRITING = (
    "alter",
    "compact",
    "create",
    "delete",
    "drop",
    "insert",
    "merge",
    "optimize",
    "truncate",
    "update",
    "write",
)


class HelpText:
    """Text that a notebook and a terminal show unchanged."""

    def __init__(self, content: str) -> None:
        self._content = content

    def __repr__(self) -> str:
        return self._content


def overview(commands: Sequence[Command]) -> str:
    """Return the list of commands, grouped by their question, with an example each."""
    edge = max(len(command.name) for command in commands)
    middle = max(len(command.summary) for command in commands)
    lines: list[str] = []
    for question, group in groupby(commands, key=lambda command: command.question):
        lines += ["", question]
        lines += [f"  {command.name:{edge}}  {command.summary:{middle}}  {command.examples[0]}" for command in group]
    return "\n".join(
        [
            "%snapshot COMMAND ...   looks into the past of a table, read-only; %snap is the same",
            *lines,
            "",
            *textwrap.wrap(_REFS_IN_NOTEBOOKS, _WIDTH),
            "",
            *textwrap.wrap(_LINES, _WIDTH),
        ]
    )


def usage(command: Command, *, in_terminal: str | None = None) -> str:
    """Return a command's usage line; see `command_help`."""
    arguments = [item.name if item.required else f"[{item.name}]" for item in command.arguments]
    options = [f"[{item.usage}]" + ("..." if item.repeated else "") for item in command.all_options]
    head = in_terminal or f"%snapshot {command.name}"
    return textwrap.fill(
        " ".join([head, *(part.replace(" ", "\0") for part in [*arguments, *options])]),
        _WIDTH,
        subsequent_indent=" " * (len(head) + 1 if in_terminal is None else 4),
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\0", " ")


def command_help(command: Command, *, in_terminal: str | None = None) -> str:
    """Return the help of a command: usage, meaning of each argument, result, examples.

    Args:
        in_terminal: The start of the usage line in a terminal.
    """
    entries = [(item.name, item.meaning) for item in command.arguments]
    entries += [(item.spelling, item.meaning) for item in command.all_options]
    edge = max(len(name) for name, _ in entries)
    described = [
        textwrap.fill(
            f"  {name:{edge}}  {meaning}",
            _WIDTH,
            subsequent_indent=" " * (edge + 4),
            break_on_hyphens=False,
        )
        for name, meaning in entries
    ]
    notes = textwrap.wrap(command.notes if in_terminal else f"{command.notes_in_notebooks} {command.notes}", _WIDTH)
    takes_refs = any(item.value_type in ("ref", "range") for item in command.arguments)
    refs = _REFS.replace("{variable}", "") if in_terminal else _REFS_IN_NOTEBOOKS
    return "\n".join(
        [
            usage(command, in_terminal=in_terminal),
            "",
            command.summary,
            *(["", *notes] if notes else []),
            "",
            *described,
            *(["", *textwrap.wrap(refs, _WIDTH)] if takes_refs else []),
            "",
            f"In Python: {command.python}",
            "",
            "Examples:",
            *(f"  {example}" for example in command.examples),
        ]
    )


def read_only_sentence(words: Sequence[str], table: Table | None) -> str | None:
    """Return advice in place of a command that would write, such as `restore 3`; None for another word.

    Args:
        words: The name of the command, and the words after it.
    """
    word, *others = words
    if word.lower() not in (*_RESTORING, *_WRITING):
        return None
    sentence = f"%snapshot is read-only and cannot {word.lower()}."
    repairs = None if table is None else history_of(table).table_format.repairs
    if table is None or repairs is None:
        return f"{sentence} Do it in the engine that writes the table."
    fields = {"name": last_part(table.path), "version": "VERSION", "identifier": "SNAPSHOT_ID"}
    with suppress(SnapshotExplorerError):
        commit = table.at(others[0]).commit if others else None
        fields |= {} if commit is None else {"version": str(commit.version), "identifier": str(commit.identifier)}
    command = repairs.restore_command.format(**fields)
    return f"{sentence} Run {command} in your engine to restore a version; %snapshot repair writes the statement."
