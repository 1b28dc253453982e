"""The records that describe a command of `%snapshot` and one use of it; parsing, help and completion read them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal

from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.jupyter.tables import OpenTables
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.table import Table

ValueType = Literal[
    "ref",
    "range",
    "table",
    "command",
    "kind",
    "engine",
    "sql engine",
    "format",
    "columns",
    "dict",
    "number",
    "text",
    "inspection",
    "measure",
    "time",
    "path",
    "path or table",
    "partition",
    "condition",
    "query",
    "types",
    "user",
]
"""The type of a value, by which it is checked and completed."""

_TYPES: Mapping[str, ValueType] = MappingProxyType(
    {
        "A,B": "columns",
        "A..B": "range",
        "N": "number",
        "TIME": "time",
        "REF": "ref",
        '"SQL"': "condition",
        "FILE": "path",
        "F": "format",
        "VARIABLE": "dict",
        "K": "kind",
        "COLUMN=VALUE": "partition",
        "WHAT": "measure",
        "TYPES": "types",
    }
)
"""The types of the values of options, by the names of values in usage lines."""

Question = Literal[
    "What is there?",
    "What happened?",
    "What differs?",
    "Which rows?",
    "Is it sound?",
    "What is stored, and what does it cost?",
    "Load, query, report",
]
"""The questions that commands answer, by which the help groups them."""

REMOVED: Mapping[str, str] = MappingProxyType(
    {
        "doctor": "health",
        "readability": "verify",
        "timeline": "log --picture",
        "schema": "show --schema",
        "entries": "manifests --entries NAME",
        "tables": "lake PATH --list",
        "anomalies": "profile --anomalies",
        "duplicates": "load --duplicates",
        "plan": "files --plan",
        "twins": "diff --twins",
        "use": "open NAME",
        "close": "open --close NAME",
    }
)
"""Words that were commands, and what is typed in their place."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument without a flag."""

    name: str
    """Its name in the usage line, such as PATH."""
    meaning: str
    _: KW_ONLY
    value_type: ValueType
    required: bool = False
    """Whether the command needs it."""


@dataclass(frozen=True, slots=True)
class Option:
    """An argument with a flag."""

    spelling: str
    """Its flags, the short one first, and the name of its value if it has one, such as `-n, --limit N`."""
    meaning: str
    """The effect of the option, for the help."""
    _: KW_ONLY
    own_type: ValueType | None = None
    """The type of its value, where that does not follow from the name of the value."""
    repeated: bool = False
    """Whether the option may be repeated."""
    keyword: str | None = None
    """A word that replaces the flag between arguments, such as `as`."""
    is_secret: bool = False
    """Whether its value is never expanded and never repeated in a message."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Its spellings; the last, without dashes, is its name."""
        return tuple(word.rstrip(",") for word in self.spelling.split(" ") if word.startswith("-"))

    @property
    def metavar(self) -> str | None:
        """The name of its value in the usage line; None for a flag that stands alone."""
        return self.spelling.partition(f"{self.flags[-1]} ")[2] or None

    @property
    def value_type(self) -> ValueType:
        """The type of its value."""
        return self.own_type or _TYPES.get(self.metavar or "", "text")

    @property
    def name(self) -> str:
        """The key of its value in `Arguments`."""
        return self.flags[-1].lstrip("-")

    @property
    def is_variable(self) -> bool:
        """Whether its value names variables, which a terminal does not have."""
        return (self.metavar or "").startswith("VARIABLE")

    @property
    def usage(self) -> str:
        """The option as the usage line shows it."""
        return f"{self.flags[0]} {self.metavar}" if self.metavar else self.flags[0]


TABLE = Option("-t, --table NAME", "the table, where several are open", own_type="table")
HELP = Option("-h, --help", "show this help")
OUT = Option(
    "-o, --out NAME",
    "put the result into this variable and show nothing; as NAME << ... and as ... as NAME",
    keyword="as",
)
DEBUG = Option("--debug", "show the traceback of an error")
COMMON_OPTIONS = (OUT, DEBUG, HELP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The parsed arguments of a line."""

    values: Mapping[str, str]
    """The values of arguments and options by name in lower case; the value of a bare flag is empty."""
    repeated: Mapping[str, tuple[str, ...]]
    """The values of each repeated option."""

    def get(self, name: str) -> str | None:
        """Return a value as text; None if it was not passed."""
        return self.values.get(name)

    def has(self, name: str) -> bool:
        """Return whether a flag or an option was passed."""
        return name in self.values or name in self.repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSettings:
    """The settings that commands read; `%config SnapshotMagics` shows and sets them."""

    display_limit: int
    """Rows drawn, and commits that `log` reads without `-n`."""
    load_row_limit: int
    """Rows above which `load` requires `--limit` or `--yes`."""
    load_size_limit: int
    """Bytes above which `load` requires `--limit` or `--yes`."""
    engine: str
    """The engine of `load` without `--engine`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One use of a command."""

    arguments: Arguments
    commands: "Sequence[Command]"
    """All commands, in the order of the help."""
    tables: OpenTables
    settings: CommandSettings
    """The settings in force."""
    variables: Mapping[str, object] = field(repr=False)
    """The user's variables, the calling function's before the global ones."""
    show_line: Callable[[str], None]
    """Shows a line to the user at once."""
    show_once: Callable[[str], None]
    """Shows a line like `show_line`, but each line only once in a session."""
    cell_body: str | None = None
    """The cell below the line of a cell magic; never expanded."""

    def table(self) -> Table:
        """Return the table that the line is about."""
        return self.named_table()[1]

    def named_table(self) -> tuple[str, Table]:
        """Return the name of the table that the line is about, and the table."""
        return self.tables.find(self.arguments.get("table"), self.variables)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A public call that a command makes; a hint of that call is spelled as the command."""

    verb: str
    """The call, as in `Hint.verb`."""
    flag: str = ""
    """The flag that selects the call; empty if the command makes it without one."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The argument, or the flag of the option, of each parameter that has another name there; empty for the table that
    the command acts on. Two parameters with the same argument are the sides of a range."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Arguments that the command has without being typed."""
    placeholders: Mapping[str, str] = field(default_factory=dict)
    """The word for an argument that is left to the user, where it is not the argument's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A subcommand."""

    name: str
    question: Question
    """The question that it answers."""
    summary: str
    run: Callable[[Invocation], object]
    """Runs the command, and returns the result of the Python call."""
    python: str
    """The Python that does the same."""
    examples: tuple[str, ...]
    """Lines to type; the first is the shortest useful one."""
    arguments: tuple[Argument, ...] = ()
    """Its arguments without flags, in order."""
    options: tuple[Option, ...] = ()
    """The command's own options, before the options that many commands share."""
    calls: tuple[Call, ...] = ()
    """The public calls that it makes."""
    notes: str = ""
    """Further details, for the help."""
    notes_in_notebooks: str = ""
    """Details that do not apply to a terminal, before the others."""
    accepts_two_tables: bool = False
    """Whether its two refs may be of two tables, `orders@7 copy@3`: `other` is then the name of the second."""
    accepts_body: bool = False
    """Whether it may be a cell magic, whose body it reads."""
    common_options: tuple[Option, ...] = COMMON_OPTIONS
    """The options that every command has."""
    typed: str = ""
    """How its lines begin in a terminal, with the path; empty in a notebook."""

    @property
    def prefix(self) -> str:
        """How a line of it begins."""
        return self.typed or f"%snapshot {self.name}"

    @property
    def accepts_table(self) -> bool:
        """Whether it acts on one open table, which may be named."""
        return TABLE in self.options

    @property
    def begins_with_condition(self) -> bool:
        """Whether its first argument is a condition, which needs no quotes."""
        return bool(self.arguments) and self.arguments[0].value_type == "condition"

    @property
    def accepts_path(self) -> bool:
        """Whether its first argument is the path of a table, or of a folder of tables."""
        return bool(self.arguments) and self.arguments[0].value_type in ("path", "path or table")

    def option(self, flag: str) -> Option | None:
        """Return the option of that spelling."""
        return next((option for option in self.all_options if flag in option.flags), None)

    @property
    def all_options(self) -> tuple[Option, ...]:
        """The options of the command and the options that every command has."""
        return (*self.options, *self.common_options)


def find_command(commands: Sequence[Command], word: str, *, aliases: Sequence[str] = ()) -> Command:
    """Return the command of that name. `aliases` are other names that the message may suggest."""
    known = {command.name: command for command in commands}
    if word in known:
        return known[word]
    removed = {name: line for name, line in REMOVED.items() if line.partition(" ")[0] in known}
    if word in removed:
        name, _, rest = removed[word].partition(" ")
        command = known[name]
        rest = rest.removeprefix("PATH ") if command.typed else rest
        raise UsageError(f"There is no command {word}. Use: {command.prefix} {rest}".rstrip())
    near = get_close_matches(word, [*known, *aliases, *removed], 1)
    hint: tuple[str | Hint, ...] = (f" Did you mean {removed.get(near[0], near[0])}?",) if near else ()
    if not near and ("/" in word or "\\" in word):
        hint = (" To open a table: ", Hint("open_table", {"path": ...}), ".")
    if range_ := re.fullmatch(r"(\d+)(?:-|:|\.{2,3})(\d+)", word):
        hint = (" To compare two versions: ", Hint("table.compare", {"a": int(range_[1]), "b": int(range_[2])}), ".")
    shown = f"command {word}" if word.isidentifier() else "such command"
    raise UsageError(Message(f"There is no {shown}.", *hint, f" Commands: {', '.join(known)}."))
