"""The commands of `%snapshot` in a terminal: `snapshot-explorer log PATH -n 5 --json`.

Nothing here needs IPython.
"""

import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import orjson
import pyarrow as pa

from snapshot_explorer import formats
from snapshot_explorer.analysis.checks import CheckResult
from snapshot_explorer.analysis.diff import RowDiff, RowDiffPlan
from snapshot_explorer.analysis.retention import Verification
from snapshot_explorer.arrow.python_values import distinct_names
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError, TableNotFoundError
from snapshot_explorer.core.hints import Hint, Message, python_call, spell
from snapshot_explorer.core.safe_text import sanitize, sanitize_json
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.url_secrets import hide_url_secrets
from snapshot_explorer.jupyter.arguments import parse
from snapshot_explorer.jupyter.command import (
    DEBUG,
    HELP,
    OUT,
    TABLE,
    Argument,
    Call,
    Command,
    CommandSettings,
    Invocation,
    Option,
    find_command,
)
from snapshot_explorer.jupyter.command_line import ALIASES, LineToken
from snapshot_explorer.jupyter.commands import COMMANDS
from snapshot_explorer.jupyter.commands.discovery import FOLLOW
from snapshot_explorer.jupyter.commands.shared_arguments import split_pairs
from snapshot_explorer.jupyter.cost import DEFAULT_LIMITS
from snapshot_explorer.jupyter.help_text import HelpText, command_help
from snapshot_explorer.jupyter.spelling import command_words
from snapshot_explorer.jupyter.tables import OpenTables
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.lake import Lake, LakeSnapshot, open_lake
from snapshot_explorer.lake.changes import LakeChanges
from snapshot_explorer.results import Frame
from snapshot_explorer.storage.hidden import HiddenOptions, hidden_options
from snapshot_explorer.table import open_table
from snapshot_explorer.view import DRAWN_ROWS, Code, Pairs, Part, codes_of, drawing_of, render_text, spelled
from snapshot_explorer.view.json_values import json_value
from snapshot_explorer.view.text import Paint, leave_plain

_NOT_HERE = ("open",)
"""The command about open tables."""
STORAGE_OPTIONS_VARIABLE = "SNAPSHOT_EXPLORER_STORAGE_OPTIONS"
"""The environment variable with the path of the file of storage options, where no option names one."""
_RUN = "snapshot-explorer"
_JSON = Option("--json", "print the result, or the error, as JSON")
_OPENING = (
    Option("--branch B", "open this branch of the table"),
    Option("--format F", f"open the table as {formats.names()}; found without it"),
    Option(
        "--relocate OLD=NEW",
        "a folder that the metadata records, and where it is now, such as s3://old/data=/new/data",
        repeated=True,
    ),
    Option(
        "--storage-options, --options FILE",
        f"a JSON file of storage options; without it, the file that ${STORAGE_OPTIONS_VARIABLE} names",
    ),
)
_NOTEBOOK_OPTIONS = (OUT, DEBUG, FOLLOW)
_CONDITIONS = ("condition", "query")
_DRAWN = 200
"""Rows of a table that are printed."""
_OPEN_TABLE = re.compile(r"orders\b|-t ")
"""How an example begins that names an open table."""
_ASSIGNED = re.compile(r"(?:\w+ = )?%snapshot (\w+) ?(.*)", re.DOTALL)
_ERROR = 2
"""The exit status of a command that could not be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The output of a command."""

    status: int
    """0, 1 where a check fails, 2 for an error, or where a table of a lake cannot be read."""
    text: str
    is_error: bool = False
    """Whether it belongs to the stream for errors."""


def _shell_line(command: Command, example: str, typed: str) -> str | None:
    """Return an example as a line for a shell; None for an example that only a notebook supports.

    Args:
        typed: How the line begins.
    """
    match = _ASSIGNED.fullmatch(example)
    flags = [flag for item in command.options if item.is_variable and not item.is_secret for flag in item.flags]
    if match is None or match[1] != command.name or any(f"{flag} " in match[2] for flag in flags):
        return None
    if _OPEN_TABLE.match(match[2]):
        return None
    rest = re.sub(r"--options (\w+)", r"--storage-options \1.json", match[2])
    if command.accepts_path:
        rest = rest.partition(" ")[2] if rest and not rest.startswith("-") else rest
    rest = re.sub(r" as \w+$", "", rest)  # a variable
    rest = re.sub(r"(?<= )\w+\*(?!\S)", r"'\g<0>'", rest)  # a shell would replace it by names of files
    if (
        any(item.value_type in _CONDITIONS for item in command.arguments)
        and rest
        and "'" not in rest
        and '"' not in rest
    ):
        condition, dashes, more = rest.partition(" --")
        rest = f'"{condition}"{dashes}{more}'
    return f"{typed} {rest}".rstrip()


def _in_terminal(command: Command, path: str | None = None) -> Command:
    """Return a command with its options and examples for a terminal, where a query is never the body of a cell.

    Args:
        path: The path in its lines; PATH without one.
    """
    typed = f"{_RUN} {command.name} {shlex.quote(path) if path else 'PATH'}"
    own = [item for item in command.options if item not in (TABLE, FOLLOW) and not item.is_variable]
    own_names = {item.name for item in own}
    # A command that opens the table at its path has options of its own for that.
    opening = _OPENING[-1:] if command.accepts_path else [item for item in _OPENING if item.name not in own_names]
    lines = [line for example in command.examples if (line := _shell_line(command, example, typed))]
    return replace(
        command,
        arguments=tuple(
            replace(item, required=item.required or item.value_type == "query") for item in command.arguments
        ),
        options=(*own, *opening, _JSON),
        common_options=(HELP,),
        examples=tuple(lines) or (typed,),
        typed=typed,
    )


_AVAILABLE = tuple(
    command
    for command in COMMANDS
    if command.name not in _NOT_HERE and (command.accepts_table or command.accepts_body or command.accepts_path)
)
_CARD = Command(
    name="",
    question="What is there?",
    summary="What a table is, and its newest commits",
    run=lambda _: None,
    python="open_table(PATH)",
    calls=(Call(verb="open_table"),),
    examples=(_RUN,),
    arguments=(Argument("PATH", "the table's folder", value_type="path", required=True),),
    options=_OPENING,
)
"""A path without a command."""


def names() -> tuple[str, ...]:
    """Return the names of the commands, in the order of the help."""
    return tuple(command.name for command in _AVAILABLE)


def overview(others: Sequence[str]) -> str:
    """Return ten lines: how a line begins, and the commands by their question.

    Args:
        others: The names of the commands that are not about one table.
    """
    groups = [(question, [item.name for item in items]) for question, items in groupby(_AVAILABLE, _question)]
    groups.append(("To begin, and elsewhere", list(others)))
    edge = max(len(question) for question, _ in groups)
    lines = [
        f"{_RUN} PATH              a table, or the tables below a folder; only reads",
        f"{_RUN} COMMAND PATH ...  one of these; --help explains, --json is JSON",
    ]
    return "\n".join([*lines, *(f"  {question:{edge}}  {', '.join(items)}" for question, items in groups)])


def _question(command: Command) -> str:
    return command.question


@lru_cache(maxsize=8)
def commands_for(path: str | None) -> tuple[Command, ...]:
    """Return the commands of a terminal, with the path in their lines; PATH without one."""
    return tuple(_in_terminal(command, path) for command in _AVAILABLE)


def shell_line(hint: Hint, *, path: str | None = None, command: Command | None = None) -> str | None:
    """Return a hint as a line for a shell, or arguments alone as options; None if no command has them.

    Args:
        path: The path of the command that runs, for hints without a path of their own; PATH without one.
        command: The command that runs, whose options spell arguments alone; by default the first that has them.
    """
    if path and hint.arguments.get("path") is ...:
        hint = replace(hint, arguments={**hint.arguments, "path": path})
    commands = (_CARD, *commands_for(path))
    words = command_words(hint, commands, quote=_quote, command=command)
    if words is None:
        return None
    if not hint.verb:
        return " ".join(words[1:])
    name, *others = words
    used = next(item for item in commands if item.name == name)
    return " ".join([f"{_RUN} {name}".rstrip() if used.accepts_path else used.prefix, *others])


def spelling(path: str | None, command: Command | None = None) -> Callable[[Hint], str]:
    """Return how hints are spelled in a terminal: as lines for a shell, in Python where no command has them."""
    return lambda hint: shell_line(hint, path=path, command=command) or python_call(hint)


def _quote(value: str) -> str | None:
    """Return a value as a word for a shell; None if it has invisible characters, or would be read as a flag."""
    return None if value.startswith("-") or sanitize(value) != value else shlex.quote(value)


def run(words: Sequence[str], *, room: int, paint: Paint = leave_plain) -> Output:
    """Run a command on a table, and return its output.

    Args:
        words: The command's name, the table's path, and the words that `%snapshot` accepts after its name; `--json`
            returns the result as JSON, and `--branch`, `--format` and `--options FILE` determine how the table is
            opened.
        room: The width of text.
        paint: Marks text for a terminal; see `render_text`.
    """
    name, *flags = ALIASES.get(words[0], words[:1])
    others = [*words[1:], *flags]
    path = others[0] if others and not others[0].startswith("-") else None
    shown_path = None if path is None else hide_url_secrets(path)
    is_json = "--json" in others
    command: Command | None = None
    try:
        command = find_command(commands_for(shown_path), name)
        if {"-h", "--help"} & set(others):
            return Output(status=0, text=_help(command))
        result = _result(command, path, others[1:])
        call = spelling(shown_path)
        text = _json(result, call) if is_json else text_of(result, call, room, paint=paint)
        return Output(status=status_of(result), text=text)
    except (UsageError, SnapshotExplorerError) as error:
        message = sanitize(" ".join(spell(error.message, spelling(shown_path, command)).split()))
        if is_json:
            details = {"error": {"type": type(error).__name__, "message": message}}
            return Output(status=_ERROR, text=orjson.dumps(details, option=orjson.OPT_INDENT_2).decode())
        return Output(status=_ERROR, text=message, is_error=True)


def status_of(result: object) -> int:
    """Return the exit status of a result; see `Output.status`."""
    match result:
        case CheckResult():
            return result.exit_code
        case Verification():
            return 0 if result.is_ok else 1
        case LakeChanges():
            return _ERROR if result.unread else 0
        case Lake():
            return status_of(result.known_overview or result.overview())
        case LakeSnapshot():
            return status_of(result.versions)
        case Frame() if not result.has_values:
            has_problems = "problem" in result.column_names and result.column("problem").null_count < result.num_rows
            return _ERROR if has_problems else 0
    return 0


def relocated(pairs: Sequence[str]) -> dict[str, str]:
    """Return the recorded folders in the values of `--relocate`, with their new places."""
    return split_pairs(pairs, "relocate", "OLD=NEW, a recorded folder and where it is now")


def storage_options_in(file: str | None) -> HiddenOptions | None:
    """Return the storage options in a JSON file, or in the one that the environment names without it.

    Messages do not contain the content of the file.
    """
    file = file or os.environ.get(STORAGE_OPTIONS_VARIABLE)
    if not file:
        return None
    if file.lstrip().startswith("{"):  # others can see arguments in the list of processes, or in the log of a CI run
        raise InvalidArgumentError("--storage-options is the name of a JSON file, not the options themselves.")
    try:
        options = orjson.loads(Path(file).read_bytes())
    except OSError as error:
        raise InvalidArgumentError(f"--storage-options: {file} cannot be read: {error.strerror}.") from error
    except ValueError:  # of JSON, or of the path
        options = None
    if not isinstance(options, dict):
        raise InvalidArgumentError(f'--storage-options: {file} is not a JSON object such as {{"key": "..."}}.')
    return hidden_options(options)


def _result(command: Command, path: str | None, words: Sequence[str]) -> object:
    if path is None:
        raise UsageError(f"{command.name} needs a path: {command.prefix}.")
    flags = {word.partition("=")[0] for word in words}
    unavailable = next((item.flags[-1] for item in _NOTEBOOK_OPTIONS if flags.intersection(item.flags)), None)
    if unavailable is not None:
        raise UsageError(
            f"{unavailable} is for notebooks. Without it, the result is printed; --json prints it as JSON."
        )
    # The shell has removed the quotes: words with a blank were quoted.
    tokens = [LineToken(word, quote="'" if " " in word and not word.startswith("--") else "") for word in words]
    if command.accepts_path:
        tokens.insert(0, LineToken(path, quote="'"))
    arguments = parse(command, tokens, expand=str, is_table=lambda _: False)
    variables: dict[str, object] = {}
    values = dict(arguments.values)
    storage_options = storage_options_in(values.pop("options", None))
    tables = OpenTables(variables)
    if command.accepts_path and storage_options is not None:
        values["options"], variables["options"] = "options", storage_options
    elif not command.accepts_path:
        own = {item.name for item in _OPENING if item in command.options}
        try:
            table = open_table(
                path,
                branch=values.get("branch") if "branch" in own else None,
                format=values.get("format") if "format" in own else None,
                storage_options=storage_options,
                relocate=relocated(arguments.repeated.get("relocate", ())),
            )
            tables.add(tables.free_name(table.name), table)
        except TableNotFoundError:
            if command.name != "report":
                raise
            variables["lake"] = open_lake(path, storage_options=storage_options)
            values["of"] = "lake"
    call = spelling(hide_url_secrets(path), command)

    def show(line: str) -> None:
        print(sanitize(spell(line, call)), file=sys.stderr)  # noqa: T201 - the output of a program

    invocation = Invocation(
        arguments=replace(arguments, values=values),
        commands=COMMANDS,
        tables=tables,
        variables=variables,
        settings=CommandSettings(
            display_limit=DRAWN_ROWS,
            load_row_limit=DEFAULT_LIMITS.rows,
            load_size_limit=DEFAULT_LIMITS.size_bytes,
            engine="pandas",
        ),
        show_line=show,
        show_once=show,
    )
    return command.run(invocation)


def _help(command: Command) -> str:
    arguments = command.arguments[1:] if command.accepts_path else command.arguments
    # The path is a part of the help's first line, not of the line that was typed.
    shown = replace(next(item for item in commands_for(None) if item.name == command.name), arguments=arguments)
    text = f"{command_help(shown, in_terminal=shown.prefix)}\n\nPATH is a folder or URL."
    if any(item.value_type == "query" for item in shown.arguments):
        text += " In the query, the table has the name of its last part, with _ in place of -, . and blanks."
    return text


def text_of(result: object, call: Callable[[Hint], str], room: int, *, paint: Paint = leave_plain) -> str:
    """Return a result as text, without the next steps that a terminal does not have.

    Args:
        call: Spells a hint.
        room: The width of text.
        paint: Marks text for a terminal; see `render_text`.
    """
    frame = _frame(result)
    shown = result if frame is None else frame
    if not isinstance(shown, Shown):
        return str(result)
    drawing = drawing_of(shown)
    parts = tuple(_part(part) for part in drawing.parts)
    drawing = spelled(replace(drawing, parts=parts), call)
    return render_text(drawing, room=room, limit=_DRAWN, paint=paint).lstrip("\n")


def _part(part: Part) -> Part:
    """Return a part of a drawing without the next steps that a terminal does not have."""
    if not isinstance(part, Pairs):
        return part
    rows = [
        (name, tuple(code for code in codes if _is_typed(code)) if len(codes := codes_of(value)) > 1 else value)
        for name, value in part.rows
    ]
    return Pairs(tuple(rows))


def _is_typed(code: Code) -> bool:
    hints = code.text.hints if isinstance(code.text, Message) else ()
    return all(shell_line(hint) is not None for hint in hints)


def _frame(result: object) -> Frame | None:
    """Return rows of pandas or Arrow, and the overview of a lake, as a frame; None for anything else."""
    if hasattr(result, "__dataframe__") and not isinstance(result, pa.Table):
        named = result.set_axis(distinct_names(list(result.columns)), axis=1)  # type: ignore[attr-defined]
        result = pa.Table.from_pandas(named, preserve_index=False)
    if isinstance(result, Lake):
        return result.known_overview or result.overview()
    return Frame(result, title="", noun="rows", of_rows=True) if isinstance(result, pa.Table) else None


def _json(result: object, call: Callable[[Hint], str]) -> str:
    """Return a result as JSON: a list of rows, or an object of its facts, with a list of rows for each frame.

    A figure is plotly's own JSON. Times are ISO 8601 in UTC, decimals and binary text, and NaN and infinity are null.
    """
    if hasattr(result, "to_plotly_json") and hasattr(result, "to_json"):
        return sanitize_json(str(result.to_json()))
    if isinstance(result, CheckResult | LakeSnapshot):
        return result.to_json() or ""
    if isinstance(result, HelpText) or hasattr(result, "model_id"):  # a widget
        result = {"message": str(result)}
    elif isinstance(result, RowDiffPlan):
        result = _row_diff_facts(result)
    elif isinstance(result, RowDiff):
        rows = _frame(result.to_arrow())
        result = {**_row_diff_facts(result.plan), "counts": result.counts, "rows": rows}
    value = json_value(_frame(result) or result, call)
    return sanitize_json(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode())


def _row_diff_facts(plan: RowDiffPlan) -> dict[str, object]:
    """Return the facts of a row diff's plan: the two versions, the compared columns, and the reads."""
    measures = ("label", "files", "rows", "size_bytes")
    sides = {key: {name: getattr(side, name) for name in measures} for key, side in (("a", plan.a), ("b", plan.b))}
    compared = ("key", "columns", "columns_only_a", "columns_only_b", "conversions", "where")
    names = (*compared, "gaps", "shared_files", "proof", "call")
    return sides | {name: getattr(plan, name) for name in names}
