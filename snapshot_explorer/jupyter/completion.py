"""Tab completion of `%snapshot` lines, from what is cached; the storage is not read."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import get_args

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from snapshot_explorer import queries
from snapshot_explorer.formats import FORMATS
from snapshot_explorer.frames import PandasTypes
from snapshot_explorer.history import Known
from snapshot_explorer.jupyter.command import TABLE, Argument, Command, Option, ValueType
from snapshot_explorer.jupyter.commands import COMMANDS
from snapshot_explorer.jupyter.cost import ENGINES
from snapshot_explorer.jupyter.tables import OpenTables
from snapshot_explorer.jupyter.tokens import Token, tokenize
from snapshot_explorer.jupyter.variables import dict_variables
from snapshot_explorer.model import Kind
from snapshot_explorer.render.cells import moment
from snapshot_explorer.render.commits import Measure
from snapshot_explorer.table import Table
from snapshot_explorer.visible import logger_of

log = logger_of(__name__)

MATCHER = "snapshot_explorer"
"""The matcher's name in IPython's completer."""
_LINE = re.compile(r"\s*(?:[^\W\d][\w\s,.\[\]'\"]*=\s*)?%snap(?:shot)?\s+(?:\w+\s*<<\s*)?(?P<rest>.*)", re.DOTALL)
_OPEN_CONDITION = re.compile(r"--where[\s=]+([\"'])(?:(?!\1(?:\s|$)).)*$", re.DOTALL)
_MOST_LOGGED = 20
"""Failures of a session that are logged."""
_SHOWN_VERSIONS = 100
_MOST_SHOWN = 1_000
"""How many texts are offered at once, such as names of columns."""
# JupyterLab breaks what a completion is at blanks and hyphens, over the line below.
_UNBROKEN = str.maketrans({" ": "\u00a0", "-": "\u2011"})


@dataclass(frozen=True, slots=True)
class Suggestions:
    """What may follow at the cursor."""

    fragment: str
    """What is already typed of it."""
    items: tuple[tuple[str, str], ...]
    """Texts with what each is, in the order to show."""


def matcher(tables: OpenTables, variables: Mapping[str, object]) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """Return the matcher for IPython's completer: it alone answers on `%snapshot` lines where it has an answer.

    Where finding an answer fails it offers nothing, as IPython would print a traceback on each key; the first failure
    of each kind is logged with its traceback.
    """
    failed: set[tuple[type[Exception], str]] = set()

    def complete_snapshot_line(context: CompletionContext) -> SimpleMatcherResult:
        try:
            found = suggestions(context.text_until_cursor, tables, variables)
        except Exception as error:
            found = Suggestions("", ())
            if (kind := (type(error), str(error))) not in failed and len(failed) < _MOST_LOGGED:
                failed.add(kind)
                log.warning(
                    "Completion of %%snapshot lines failed and offers nothing here: %s", repr(error), exc_info=True
                )
        completions = [SimpleCompletion(text=text, type=kind.translate(_UNBROKEN)) for text, kind in found.items]
        return {
            "completions": completions,
            "matched_fragment": found.fragment,
            "suppress": bool(completions),
            "ordered": True,
        }

    marked: Callable[[CompletionContext], SimpleMatcherResult] = context_matcher(identifier=MATCHER)(
        complete_snapshot_line
    )
    return marked


def suggestions(typed: str, tables: OpenTables, variables: Mapping[str, object]) -> Suggestions:
    """Return what may follow the text before the cursor, a line with or without an assignment. Reads nothing."""
    line = _LINE.fullmatch(typed)
    if line is None:
        return Suggestions("", ())
    rest = line["rest"]
    words = tokenize(rest)
    is_between = not rest or rest[-1].isspace()
    if words and not is_between and words[-1].quote:
        return Suggestions("", ())
    current = Token("") if is_between else words[-1]
    before = words if is_between else words[:-1]
    if not before:
        return _starting(current.text, ((command.name, "command") for command in COMMANDS))
    command = next((command for command in COMMANDS if command.name == before[0].text), None)
    if command is None:
        return Suggestions("", ())
    return _CursorPosition(command, before[1:], current.text, tables, variables).suggestions(rest)


class _CursorPosition:
    """A cursor behind a command."""

    def __init__(
        self,
        command: Command,
        before: Sequence[Token],
        typed: str,
        tables: OpenTables,
        variables: Mapping[str, object],
    ) -> None:
        self._command = command
        self._before = before
        self._typed = typed
        self._tables = tables
        self._variables = variables

    def suggestions(self, rest: str) -> Suggestions:
        if _OPEN_CONDITION.search(rest):
            fragment = re.search(r"\w*$", self._typed)
            return _starting(fragment.group() if fragment else "", self._columns())
        flag, equals, value = self._typed.partition("=")
        option = self._command.option(flag) if equals else self._awaiting()
        if option is not None and option.metavar:
            return self._values(option.value_type, value if equals else self._typed)
        if self._typed.startswith("-"):
            return _starting(self._typed, self._flags())
        argument = self._next_argument()
        found = self._values(argument.value_type, self._typed) if argument else Suggestions(self._typed, ())
        if self._typed:
            return found
        return Suggestions("", (*found.items, *self._flags()))

    def _awaiting(self) -> Option | None:
        """Return the option whose value is at the cursor."""
        if not self._before or self._before[-1].quote:
            return None
        last = self._before[-1].text
        by_word = (option for option in self._command.options if option.keyword == last and len(self._before) > 1)
        return self._command.option(last) or next(by_word, None)

    def _next_argument(self) -> Argument | None:
        """Return the argument without flag that comes next."""
        plain = 0
        is_value = False
        for word in self._before:
            option = None if word.quote or is_value else self._command.option(word.text)
            if option is None and not is_value and not word.flag and not word.text.startswith("-"):
                is_table = self._command.accepts_table and plain == 0 and word.text in self._tables.all()
                plain += not is_table
            is_value = bool(option and option.metavar)
        return self._command.arguments[plain] if plain < len(self._command.arguments) else None

    def _values(self, value_type: ValueType, typed: str) -> Suggestions:
        match value_type:
            case "ref" | "range":
                return self._refs(typed, value_type)
            case "columns":
                *chosen, last = typed.split(",")
                return _starting(last, (item for item in self._columns() if item[0] not in chosen))
            case "dict":
                return _starting(typed, [(name, "dict") for name in dict_variables(self._variables)])
            case "inspection":
                table = self._table(None)
                known = table.inspections if table else ()
                return _starting(typed, [(one.name, one.meaning) for one in known])
            case _:
                return _starting(typed, self._words(value_type))

    def _words(self, value_type: ValueType) -> Iterator[tuple[str, str]]:
        words: Mapping[str, Sequence[str]] = {
            "table": list(self._tables.all()),
            "command": [command.name for command in COMMANDS],
            "kind": get_args(Kind),
            "engine": ENGINES,
            "types": get_args(PandasTypes),
            "measure": get_args(Measure),
            "sql engine": queries.ENGINES,
            "format": [one.name for one in FORMATS],
        }
        return ((word, value_type) for word in words.get(value_type, ()))

    def _flags(self) -> Iterator[tuple[str, str]]:
        given = {word.text for word in self._before}
        for option in self._command.all_options:
            if option.repeated or not given.intersection(option.flags):
                yield option.flags[-1], "option"

    def _refs(self, typed: str, value_type: ValueType) -> Suggestions:
        fragment = typed.rpartition("..")[2] if value_type == "range" else typed
        name, at, behind = fragment.partition("@")
        if at and name in self._tables.all():
            return _starting(behind, _refs_of(self._table(name)))
        items = [*_refs_of(self._table(None))]
        if len(self._tables.all()) > 1:
            items += [(f"{name}@", "table") for name in self._tables.all()]
        return _starting(fragment, items)

    def _columns(self) -> Iterator[tuple[str, str]]:
        table = self._table(None)
        return ((name, "column") for name in (table.cached.columns if table else ()))

    def _table(self, name: str | None) -> Table | None:
        """Return the table that the line names so far, or the current one."""
        tables = self._tables.all()
        named = [name] if name else self._named()
        return tables.get(named[0] if named else self._tables.current or "")

    def _named(self) -> list[str]:
        words = [word.text for word in self._before]
        flagged = [following for flag, following in pairwise(words) if flag in TABLE.flags]
        prefixed = [word.partition("@")[0] for word in words]
        return flagged or [word for word in prefixed[:1] if word in self._tables.all()]


def _refs_of(table: Table | None) -> Iterator[tuple[str, str]]:
    """Yield the refs of a table: words, versions newest first with kind and time, tags."""
    yield "latest", "newest"
    if table is not None:
        known = table.cached
        seen = _commits(known)
        for version in known.versions[: -_SHOWN_VERSIONS - 1 : -1]:
            yield str(version), seen.get(version, "version")
        for tag in known.tags:
            yield f"tag:{tag}", "tag"
    yield "latest~1", "one before"
    yield "earliest", "oldest"


def _commits(known: Known) -> Mapping[int, str]:
    """Return the kind and time of versions whose commits have been read."""
    rows = known.commits.slice(0, _SHOWN_VERSIONS).select(["version", "kind", "committed_at"]).to_pylist()
    return {
        row["version"]: row["kind"] + (f" {moment(row['committed_at'])}" if row["committed_at"] else "") for row in rows
    }


def _starting(fragment: str, items: "Iterator[tuple[str, str]] | Sequence[tuple[str, str]]") -> Suggestions:
    fitting = (item for item in items if item[0].startswith(fragment))
    return Suggestions(fragment, tuple(islice(fitting, _MOST_SHOWN)))
