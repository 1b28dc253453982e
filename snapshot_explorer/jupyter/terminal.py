"""The commands of `%snapshot` in a terminal: `python -m snapshot_explorer log PATH -n 5 --json`."""

import dataclasses
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
from IPython.core.error import UsageError

from snapshot_explorer.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.frames import Frame
from snapshot_explorer.jupyter.arguments import parse
from snapshot_explorer.jupyter.command import Command, Invocation, Settings, find_command
from snapshot_explorer.jupyter.commands import COMMANDS
from snapshot_explorer.jupyter.cost import DEFAULT_LIMITS
from snapshot_explorer.jupyter.help_text import command_help
from snapshot_explorer.jupyter.spellings import with_commands
from snapshot_explorer.jupyter.tables import OpenTables
from snapshot_explorer.jupyter.tokens import Token
from snapshot_explorer.opening import open_table
from snapshot_explorer.render import DRAWN_ROWS, Code, Drawing, Line, Pairs, Part, text
from snapshot_explorer.visible import visible

if TYPE_CHECKING:
    from snapshot_explorer.table import Table

_NOT_HERE = ("close", "explore", "open", "timeline", "use")
"""Commands about what is open, and those that show a figure."""
TERMINAL_COMMANDS = tuple(
    command for command in COMMANDS if command.name not in _NOT_HERE and (command.accepts_table or command.accepts_body)
)
_OPENING = ("--branch", "--format", "--options")
_NOTEBOOK_OPTIONS = ("out", "debug")
_DRAWN = 200
"""Rows of a table that are printed."""
_SUGGESTED = re.compile(r"%snapshot (\w+)(?: -t \w+)?")


def names() -> tuple[str, ...]:
    """Return the names of the commands, in the order of the help."""
    return tuple(command.name for command in TERMINAL_COMMANDS)


def run(words: Sequence[str], *, room: int) -> tuple[int, str]:
    """Run a command on a table, and return the exit status, 2 for an error, and the text to print.

    Args:
        words: The command's name, the table's path, and what `%snapshot` accepts after its name; `--json` returns the
            result as JSON, and `--branch`, `--format` and `--options FILE` say how the table is opened.
        room: The width of text.
    """
    name, *others = words
    path = others[0] if others and not others[0].startswith("-") else None
    try:
        command = find_command(TERMINAL_COMMANDS, name)
        if {"-h", "--help"} & set(others):
            return 0, _help(command)
        if path is None:
            return 2, f"{name} needs the path of a table: python -m snapshot_explorer {name} PATH."
        opening, rest = _split(others[1:])
        result = _result(command, _opened(path, opening), [word for word in rest if word != "--json"])
        return 0, _json(result) if "--json" in rest else _text(result, path, room)
    except (UsageError, SnapshotExplorerError) as error:
        return 2, _for_terminals(visible(with_commands(" ".join(str(error).split()))), path)


def _split(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options of how the table is opened, and the other words."""
    opening: dict[str, str] = {}
    rest: list[str] = []
    left = list(words)
    while left:
        flag, equals, value = left.pop(0).partition("=")
        if flag not in _OPENING:
            rest.append(f"{flag}{equals}{value}")
        elif equals:
            opening[flag] = value
        elif left:
            opening[flag] = left.pop(0)
        else:
            raise UsageError(f"{flag} needs a value.")
    return opening, rest


def _opened(path: str, opening: Mapping[str, str]) -> "Table":
    options = _storage_options(opening["--options"]) if "--options" in opening else None
    return open_table(path, branch=opening.get("--branch"), format=opening.get("--format"), storage_options=options)


def _storage_options(file: str) -> dict[str, object]:
    """Return the storage options in a JSON file. Messages do not contain what the file does."""
    try:
        options = orjson.loads(Path(file).read_bytes())
    except OSError as error:
        raise InvalidArgumentError(f"--options: {file} cannot be read: {error.strerror}.") from error
    except orjson.JSONDecodeError:
        options = None
    if not isinstance(options, dict):
        raise InvalidArgumentError(f'--options: {file} is not a JSON object such as {{"key": "..."}}.')
    return options


def _result(command: Command, table: "Table", words: Sequence[str]) -> object:
    # The shell has removed the quotes: what contains a blank was quoted.
    tokens = [Token(word, quote="'" if " " in word and not word.startswith("--") else "") for word in words]
    arguments = parse(command, tokens, expand=str, is_table=lambda _: False)
    given = next((name for name in _NOTEBOOK_OPTIONS if arguments.get(name) is not None), None)
    if given is not None:
        raise UsageError(f"--{given} is for notebooks. Without it, the result is printed; --json prints it as JSON.")
    variables: dict[str, object] = {}
    tables = OpenTables(variables)
    tables.add(table.name if table.name.isidentifier() else "orders", table)
    invocation = Invocation(
        arguments=arguments,
        commands=COMMANDS,
        tables=tables,
        variables=variables,
        settings=Settings(
            display_limit=DRAWN_ROWS,
            load_row_limit=DEFAULT_LIMITS.rows,
            load_size_limit=DEFAULT_LIMITS.size_bytes,
            engine="pandas",
        ),
        show_line=_show,
        show_once=_show,
    )
    return command.run(invocation)


def _show(line: str) -> None:
    print(visible(line), file=sys.stderr)  # noqa: T201 - a terminal is where it belongs


def _help(command: Command) -> str:
    return _SUGGESTED.sub(r"python -m snapshot_explorer \1 PATH", command_help(command)) + (
        "\nPATH is the table's folder or URL. --json prints the result as JSON. --branch B, --format F and --options "
        "FILE,\na JSON file of storage options, say how the table is opened."
    )


def _for_terminals(message: str, path: str | None) -> str:
    """Return a message whose suggested commands can be typed in a terminal."""
    where = shlex.quote(path) if path else "PATH"

    def command(match: re.Match[str]) -> str:
        return f"python -m snapshot_explorer {match[1]} {where}" if match[1] in names() else match[0]

    return _SUGGESTED.sub(command, message).replace("%snapshot has no command", "There is no command")


def _text(result: object, path: str, room: int) -> str:
    frame = _frame(result)
    draw = getattr(result if frame is None else frame, "drawing", None)
    if draw is None:
        return str(result)
    drawing: Drawing = draw()
    parts = tuple(_part(part, path) for part in drawing.parts)
    return text(dataclasses.replace(drawing, parts=parts), room=room, limit=_DRAWN).lstrip("\n")


def _part(part: Part, path: str) -> Part:
    """Return a part of a drawing without the commands of notebooks that may come next."""
    if isinstance(part, Line | Code):
        return dataclasses.replace(part, text=_for_terminals(part.text, path))
    if not isinstance(part, Pairs):
        return part
    rows = [
        (name, _for_terminals(value, path) if isinstance(value, str) else value)
        for name, value in part.rows
        if name != "next"
    ]
    return dataclasses.replace(part, rows=tuple(rows))


def _frame(result: object) -> Frame | None:
    """Return rows of pandas or Arrow as a frame; None for anything else."""
    if hasattr(result, "__dataframe__") and not isinstance(result, pa.Table):
        result = pa.Table.from_pandas(result, preserve_index=False)
    return Frame(result, title="", noun="rows") if isinstance(result, pa.Table) else None


def _json(result: object) -> str:
    """Return a result as JSON: a list of rows, or an object of its facts, with a list of rows for each frame.

    Times are ISO 8601 in UTC, decimals and binary text, what JSON has no number for null.
    """
    return orjson.dumps(_json_value(_frame(result) or result), default=str, option=orjson.OPT_INDENT_2).decode()


def _json_value(value: object) -> object:
    if isinstance(value, Frame):
        return orjson.loads(value.to_json())
    if isinstance(value, Mapping):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    return _facts(value) if _is_ours(value) else value


def _facts(result: object) -> dict[str, object]:
    """Return the fields and properties of a result, without other results, Arrow objects and figures in them."""
    names = [
        name for name in dir(result) if not name.startswith("_") and not callable(getattr(type(result), name, None))
    ]
    values = {name: getattr(result, name) for name in names}
    return {name: _json_value(value) for name, value in values.items() if _is_fact(value)}


def _is_fact(value: object) -> bool:
    if _is_ours(value):
        return isinstance(value, Frame) or dataclasses.is_dataclass(value)
    return not callable(value) and type(value).__module__.partition(".")[0] not in ("pyarrow", "plotly")


def _is_ours(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "snapshot_explorer"
