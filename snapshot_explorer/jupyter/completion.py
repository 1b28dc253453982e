"""Tab completion of `%snapshot` lines and of tables and snapshots in Python, from caches; reads no storage."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import get_args

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.records import Kind, Measure
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.core.text import format_utc
from snapshot_explorer.formats import FORMATS
from snapshot_explorer.history import CachedMetadata, history_of
from snapshot_explorer.jupyter.command import TABLE, Argument, Command, Option, ValueType
from snapshot_explorer.jupyter.command_line import ALIASES, LineToken, tokenize
from snapshot_explorer.jupyter.commands import COMMANDS
from snapshot_explorer.jupyter.cost import ENGINES
from snapshot_explorer.jupyter.query_completion import Names, query_items
from snapshot_explorer.jupyter.tables import OpenTables
from snapshot_explorer.jupyter.variables import dict_variables
from snapshot_explorer.results import PandasTypes
from snapshot_explorer.storage import Storage
from snapshot_explorer.table import Snapshot, Table, parts_of, queries

log = logger_of(__name__)

MATCHER = "snapshot_explorer"
"""The matcher's name in IPython's completer."""
_LINE = re.compile(r"\s*(?:[^\W\d][\w\s,.\[\]'\"]*=\s*)?%snap(?:shot)?\s+(?:\w+\s*<<\s*)?(?P<rest>.*)", re.DOTALL)
_OPEN_CONDITION = re.compile(r"--where[\s=]+([\"'])(?P<condition>(?:(?!\1(?:\s|$)).)*)$", re.DOTALL)
_CELL = re.compile(r"\s*%%snap(?:shot)?\s*(?:$|-|\w+\s*<<\s*sql\b|sql\b|select\b|with\b|from\b)", re.IGNORECASE)
_QUERY = re.compile(
    r"(?:sql\s+(?:(?:--engine|-o|--out)[\s=]+\S+\s+|(?:-y|--yes)\s+)*[\"']?)?(?P<query>(?:select|with|from|explain)\s.*)",
    re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"(?:.*[^\w.])?(?P<name>[^\W\d]\w*)\.(?P<typed>\w*)", re.DOTALL)
_AT = re.compile(r"(?:.*[^\w.])?(?P<name>[^\W\d]\w*)\.at\((?P<quote>[\"']?)(?P<typed>[^\"'()]*)", re.DOTALL)
_COLUMNS = re.compile(
    r"(?:.*[^\w.])?(?P<name>[^\W\d]\w*)(?:\.at\([^()]*\)|\.current)?\.\w+\([^()]*columns\s*=\s*\["
    r"(?:\s*(?:'[^']*'|\"[^\"]*\")\s*,)*\s*[\"'](?P<typed>[^\"']*)",
    re.DOTALL,
)
"""A column that is typed in `orders.at(7).to_pandas(columns=["id", "na`."""
_PLAIN_USER = re.compile(r"\w[\w.@+-]*(?: [\w.@+-]+)*")
"""Names that can stand on a line, in quotes if they have blanks; a brace or a dollar would be expanded."""
_BLANK = re.compile(r"\s")
_MOST_LOGGED = 20
"""Failures of a session that are logged."""
_SHOWN_VERSIONS = 100
_MOST_SHOWN = 1_000
"""The maximum number of texts that are offered at once, such as names of columns."""
# JupyterLab wraps the type of a completion at blanks and hyphens, over the next line.
_UNBROKEN = str.maketrans({" ": "\u00a0", "-": "\u2011"})


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The suggestions at the cursor."""

    fragment: str
    """The part of the suggestions that is already typed."""
    items: tuple[tuple[str, str], ...]
    """Texts, each with its description, in the order to show."""


def matcher(tables: OpenTables, variables: Mapping[str, object]) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """Return the matcher for IPython's completer. Where it has an answer, no other matcher runs, such as Jedi's.

    If this fails, it offers nothing, since IPython would print a traceback at each keystroke; the first failure of each
    kind is logged with its traceback.
    """
    failed: set[tuple[type[Exception], str]] = set()

    def complete_snapshot_line(context: CompletionContext) -> SimpleMatcherResult:
        try:
            typed = context.text_until_cursor
            shown = _in_a_cell(context, tables) or _in_python(typed, variables) or suggestions(typed, tables, variables)
        except Exception as error:
            shown = Suggestions("", ())
            if (failure := (type(error), str(error))) not in failed and len(failed) < _MOST_LOGGED:
                failed.add(failure)
                log.warning(
                    "Completion of %%snapshot lines failed and offers nothing here: %s", repr(error), exc_info=True
                )
        completions = [SimpleCompletion(text=text, type=kind.translate(_UNBROKEN)) for text, kind in shown.items]
        return {
            "completions": completions,
            "matched_fragment": shown.fragment,
            "suppress": bool(completions),
            "ordered": True,
        }

    marked: Callable[[CompletionContext], SimpleMatcherResult] = context_matcher(identifier=MATCHER)(
        complete_snapshot_line
    )
    return marked


def _in_a_cell(context: CompletionContext, tables: OpenTables) -> Suggestions | None:
    """Return suggestions for the query of a cell; None outside of a query, and in frontends that pass only a line."""
    lines = context.full_text.split("\n")
    head = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if context.cursor_line <= head or not _CELL.match(lines[head]):
        return None
    before = "\n".join([*lines[head + 1 : context.cursor_line], context.text_until_cursor])
    return _in_a_query(before, "\n".join(lines[head + 1 :]), tables)


def _in_python(typed: str, variables: Mapping[str, object]) -> Suggestions | None:
    """Return suggestions after a variable that holds a table or a snapshot; None after anything else."""
    if typed.lstrip().startswith(("%", "!")):
        return None
    for pattern in (_AT, _COLUMNS, _ATTRIBUTE):
        match = pattern.fullmatch(typed)
        target = variables.get(match["name"]) if match else None
        # Proxies of other libraries may load the object that they represent when their `__class__` is read.
        if match is None or not issubclass(type(target), Table | Snapshot):
            continue
        if pattern is _ATTRIBUTE:
            return _starting(match["typed"], _attributes(target, match["typed"]))
        if pattern is _COLUMNS:
            return _starting(match["typed"], [(name, "column") for name in _column_names(target)])
        if isinstance(target, Table):
            refs = _refs_of(target)
            items = refs if match["quote"] else ((ref if ref.isdigit() else f'"{ref}"', kind) for ref, kind in refs)
            return _starting(match["typed"], items)
    return None


def _attributes(target: object, typed: str) -> Iterator[tuple[str, str]]:
    """Yield the public names of an object; the private ones once an underscore is typed. Evaluates no property."""
    for name in dir(target):
        if typed.startswith("_") or not name.startswith("_"):
            yield name, "function" if callable(getattr(type(target), name, None)) else "property"


def _column_names(target: object) -> Sequence[str]:
    if isinstance(target, Table):
        return history_of(target).cached.columns
    schema = parts_of(target).loaded.cached_schema() if isinstance(target, Snapshot) else None
    return [column.name for column in schema.columns] if schema else ()


def _in_a_query(before: str, whole: str, tables: OpenTables) -> Suggestions:
    names = Names(tables=tables.all(), refs=_refs_of, times=_times_of)
    fragment, items = query_items(before, whole, names)
    return _starting(fragment, items)


def suggestions(typed: str, tables: OpenTables, variables: Mapping[str, object]) -> Suggestions:
    """Return suggestions for the text before the cursor, a line with or without an assignment. Reads nothing."""
    line = _LINE.fullmatch(typed)
    if line is None:
        return Suggestions("", ())
    rest = line["rest"]
    if query := _QUERY.match(rest):
        return _in_a_query(query["query"], query["query"], tables)
    words = tokenize(rest)
    is_between = not rest or rest[-1].isspace()
    if words and not is_between and words[-1].quote:
        return Suggestions("", ())
    current = LineToken("") if is_between else words[-1]
    before = words if is_between else words[:-1]
    if not before:
        named = [(command.name, "command") for command in COMMANDS]
        aliases = (
            [(alias, f"the command {' '.join(words)}") for alias, words in ALIASES.items()] if current.text else []
        )
        return _starting(current.text, [*named, *aliases])
    name = ALIASES.get(before[0].text, (before[0].text,))[0]
    command = next((command for command in COMMANDS if command.name == name), None)
    if command is None:
        return Suggestions("", ())
    return _CursorPosition(command, before[1:], current.text, tables, variables).suggestions(rest)


class _CursorPosition:
    def __init__(
        self,
        command: Command,
        before: Sequence[LineToken],
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
        if condition := _OPEN_CONDITION.search(rest):
            return self._conditions(condition["condition"])
        flag, equals, value = self._typed.partition("=")
        glued = self._command.option(flag) if equals else None
        option = glued or self._awaiting()
        if option is not None and option.metavar:
            return self._values(option.value_type, value if glued else self._typed)
        if self._typed.startswith("-"):
            return _starting(self._typed, self._flags())
        argument = self._next_argument()
        result = self._values(argument.value_type, self._typed) if argument else Suggestions(self._typed, ())
        if self._typed:
            return result
        return Suggestions("", (*result.items, *self._flags()))

    def _awaiting(self) -> Option | None:
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

    def _values(self, value_type: ValueType, typed: str) -> Suggestions:  # noqa: C901, PLR0911 - one per type
        match value_type:
            case "ref" | "range":
                return self._refs(typed, value_type)
            case "columns":
                *chosen, last = typed.split(",")
                return _starting(last, (item for item in self._columns() if item[0] not in chosen))
            case "condition":
                return self._conditions(typed)
            case "partition":
                return self._partitions(typed)
            case "path":
                return _paths(typed)
            case "path or table":
                return self._tables_and_paths(typed)
            case "time":
                table = self._table(None)
                return _starting(typed, _times_of(table) if table else ())
            case "dict":
                return _starting(typed, [(name, "dict") for name in dict_variables(self._variables)])
            case "user":
                return _starting(typed, _users_of(self._table(None)))
            case "inspection":
                table = self._table(None)
                known = history_of(table).table_format.inspections if table else ()
                return _starting(typed, [(item.name, item.meaning) for item in known])
            case _:
                return _starting(typed, self._words(value_type))

    def _tables_and_paths(self, typed: str) -> Suggestions:
        named = [(name, "table") for name in self._tables.all() if name.startswith(typed)]
        folders = _paths(typed)
        return Suggestions(folders.fragment, (*named, *folders.items))

    def _conditions(self, typed: str) -> Suggestions:
        """Return columns, and behind a comparison of a partition column its values."""
        compared = re.search(r"\b(?P<name>\w+)\s*(?:=|<>|!=|in\s*\()\s*(?P<value>'?[^'\s]*)$", typed, re.IGNORECASE)
        values = self._values_of(compared["name"]) if compared else []
        if compared and values:
            return _starting(compared["value"], [(f"'{value}'", "value") for value in values if value is not None])
        fragment = re.search(r"\w*$", typed)
        return _starting(fragment.group() if fragment else "", self._columns())

    def _partitions(self, typed: str) -> Suggestions:
        """Return the partition columns with an equals sign, and behind one the values of the column."""
        name, equals, value = typed.rpartition("/")[2].partition("=")
        if equals:
            known = ["null" if item is None else item for item in self._values_of(name)]
            return _starting(value, [(item, "value") for item in known])
        table = self._table(None)
        schema = parts_of(table.current).loaded.cached_schema() if table else None
        return _starting(name, [(f"{key}=", "partition column") for key in (schema.partition_keys if schema else ())])

    def _values_of(self, name: str) -> Sequence[str | None]:
        """Return the values of a partition column in the files whose metadata has been read."""
        table = self._table(None)
        return parts_of(table.current).loaded.cached_partition_values(name) if table else ()

    def _words(self, value_type: ValueType) -> Iterator[tuple[str, str]]:
        words: Mapping[str, Sequence[str]] = {
            "table": list(self._tables.all()),
            "command": [command.name for command in COMMANDS],
            "kind": get_args(Kind),
            "engine": ENGINES,
            "types": get_args(PandasTypes),
            "measure": get_args(Measure),
            "sql engine": queries.ENGINES,
            "format": [item.name for item in FORMATS],
        }
        return ((word, value_type) for word in words.get(value_type, ()))

    def _flags(self) -> Iterator[tuple[str, str]]:
        words = {word.text for word in self._before}
        for option in self._command.all_options:
            if option.repeated or not words.intersection(option.flags):
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
        return ((name, "column") for name in (history_of(table).cached.columns if table else ()))

    def _table(self, name: str | None) -> Table | None:
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
        known = history_of(table).cached
        seen = _commits(known)
        for version in known.versions[: -_SHOWN_VERSIONS - 1 : -1]:
            yield str(version), seen.get(version, "version")
        for tag in known.tags:
            yield f"tag:{tag}", "tag"
        for branch in known.branches:
            yield f"branch:{branch}", "branch"
    yield "latest~1", "one before"
    yield "earliest", "oldest"


def _commits(known: CachedMetadata) -> Mapping[int, str]:
    """Return the kind and time of versions whose commits have been read."""
    rows = known.commits.slice(0, _SHOWN_VERSIONS).select(["version", "kind", "committed_at"]).to_pylist()
    return {
        row["version"]: row["kind"] + (f" {format_utc(row['committed_at'])}" if row["committed_at"] else "")
        for row in rows
    }


def _times_of(table: Table) -> Iterator[tuple[str, str]]:
    """Yield the commit times of a table, newest first, with version and kind; only of commits that have been read."""
    rows = (
        history_of(table)
        .cached.commits.slice(0, _SHOWN_VERSIONS)
        .select(["version", "kind", "committed_at"])
        .to_pylist()
    )
    for row in rows:
        if row["committed_at"]:
            yield row["committed_at"].isoformat().replace("+00:00", "Z"), f"{row['version']} {row['kind']}"


def _users_of(table: Table | None) -> Iterator[tuple[str, str]]:
    """Yield the users of the commits that have been read, the most recent first."""
    users = history_of(table).cached.commits.column("user").unique().to_pylist() if table else []
    for user in users:
        if user and _PLAIN_USER.fullmatch(user):
            yield (f'"{user}"' if " " in user else user), "user"


def _paths(typed: str) -> Suggestions:
    """Return the local folders whose path begins with the text; tables are marked. None for a remote storage."""
    if "://" in typed:
        return Suggestions(typed, ())
    folder, slash, start = typed.rpartition("/")
    try:
        entries = os.scandir(Path(folder + slash).expanduser())
        with entries:
            matches = islice((entry for entry in entries if entry.name.startswith(start)), _MOST_SHOWN)
            names = sorted(entry.name for entry in matches if entry.is_dir() and (start or entry.name[0] != "."))
    except OSError:
        return Suggestions(typed, ())
    return _starting(typed, [_path(f"{folder}{slash}{name}") for name in names if not _BLANK.search(name)])


def _path(path: str) -> tuple[str, str]:
    """Return the path of a table with its format, or the path of another folder with a slash."""
    storage = Storage(Path(path).expanduser())
    try:
        folders = storage.folders("")
        name = next((candidate.name for candidate in FORMATS if candidate.recognizes(storage, folders)), None)
    except SnapshotExplorerError:  # a folder that cannot be listed
        name = None
    return (f"{path}/", "folder") if name is None else (path, f"{name} table")


def _starting(fragment: str, items: "Iterator[tuple[str, str]] | Sequence[tuple[str, str]]") -> Suggestions:
    fitting = (item for item in items if item[0].startswith(fragment))
    return Suggestions(fragment, tuple(islice(fitting, _MOST_SHOWN)))
