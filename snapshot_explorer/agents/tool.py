"""The record of a tool, and one call of it; the server and the spelling of hints read them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from snapshot_explorer.agents.access import Access, CallLimits
from snapshot_explorer.agents.answers import Answer
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.refs.records import brief_repr
from snapshot_explorer.table import Table, open_table

Schema = Mapping[str, Any]
"""A JSON schema."""

_MOST_LETTERS = 20_000
"""The maximum number of letters of an argument."""
_TYPES = {"string": str, "integer": int, "array": list, "object": dict}
_TEXT: Schema = {"type": "string"}
_OBJECT: Schema = {"type": "object"}
_NUMBER: Schema = {"type": ["number", "null"]}
_TEXTS: Schema = {"type": "array", "items": _TEXT}


def _described(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def _closed(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


_REF = "17, latest, latest~2 (two back), 17^ (the one before), tag:v1, @2026-11-01T12:00 (UTC), @2h, @yesterday"
_MEANINGS = {
    "path": "the folder or URL of a table, or above tables for a tool about many; find_tables lists those allowed",
    "branch": "the branch of the table; the main one without it",
    "version": f"the version; the newest without it: {_REF}",
    "a": f"the version before the changes: {_REF}",
    "b": "the version after the changes; latest without it",
    "between": "only these versions, as A..B, such as 5..12 or @yesterday..",
    "where": "a condition on the rows in DuckDB's SQL, such as order_id = 42 or amount < 0",
    "key": "the columns that identify a row; the primary key without it",
    "columns": "only these columns; all without it",
    "since": "only commits from this time on: 1d, 3h, yesterday, 2026-11-01 03:00",
    "until": "only commits up to this time",
    "at": "the tables as they were at this time; now without it",
    "depth": "the levels of folders to search; 3 without it",
    "limit": "the most commits",
    "kind": "append, overwrite, compact, delete, update, merge, schema or restore",
    "user": "only commits whose user contains this text",
    "text": "only commits whose recorded details contain this text",
    "condition": "the condition, in DuckDB's SQL",
    "good": "a version where it does not hold; the earliest without it",
    "bad": "a later version where it holds; the newest without it",
    "query": "one SELECT, WITH, FROM, DESCRIBE or EXPLAIN",
    "tables": 'the path of each table by its name in the query, such as {"orders": "/data/orders"}',
    "by": "holder (without it), version, commit, operation, user, day, partition, size, time (growth), or column "
    "(reads a footer per live file)",
    "to_free": "find the mildest expiry that frees this, such as 5 GB",
    "undo": "the version whose commit alone is undone; in place of to",
    "to": "the version whose rows are put back; in place of undo",
}
_INTEGER: Schema = {"type": "integer"}
_NAMES: Schema = {"type": "object", "additionalProperties": _TEXT}
_KINDS = {"key": _TEXTS, "columns": _TEXTS, "tables": _NAMES, "depth": _INTEGER, "limit": _INTEGER}
PARAMETERS: Mapping[str, Schema] = {
    name: _described(_KINDS.get(name, _TEXT), meaning) for name, meaning in _MEANINGS.items()
}
"""The schemas of all parameters. A name means the same in each tool."""
_EVIDENCE = {
    "table": _described(_TEXT, "the location of the table or the lake"),
    "format": _described({"type": ["string", "null"]}, "the format of the table"),
    "versions": _described({"type": "array"}, "the version looked at, or the first and the last of them"),
    "times": _described(_TEXT, "these versions with their commit times in UTC"),
    "read": _described(_OBJECT, "files, rows, bytes and versions that were read, where they are known"),
    "requests": _described(_NUMBER, "files and folders requested from a store; 0 on a local disk, null: not counted"),
    "seconds": _NUMBER,
    "python": _described(_TEXT, "the Python call that returns the same"),
    "not_checked": _described(_TEXTS, "what was not looked at, or is uncertain: never report it as fine"),
}
_REACHED = _described(_TEXTS, "the limits that cut this answer; ask for less, or in parts")
_CALL = {
    "tool": _TEXT,
    "arguments": _OBJECT,
    "left_to_you": _described(_TEXTS, "arguments that are still needed"),
}
OUTPUT_SCHEMA = _closed(
    {
        "answer": _described(_TEXT, "the answer in a few sentences"),
        "facts": _described(_OBJECT, "single facts by their names"),
        "statements": _described(_TEXTS, "SQL that a person may run, in order; exact, and never run here"),
        "rows": _described({"type": "array", "items": _OBJECT}, "what the description of the tool calls rows"),
        "rows_total": _described(_NUMBER, "the number of all rows, if rows has only the first; null: unknown"),
        "evidence": _closed(_EVIDENCE),
        "limits": _closed({item.name: _NUMBER for item in fields(CallLimits)} | {"reached": _REACHED}),
        "next_calls": _described({"type": "array", "items": _closed(_CALL)}, "what to call next, best first"),
        "untrusted": _TEXT,
    }
)
"""The JSON schema of all answers."""


class ToolRequest:
    """One call of a tool."""

    def __init__(self, access: Access, arguments: Mapping[str, Any]) -> None:
        self.access = access
        self.arguments = arguments

    @property
    def chosen(self) -> dict[str, Any]:
        """The arguments that are about the table that is open."""
        return {name: item for name, item in self.arguments.items() if name not in ("path", "branch")}

    @cached_property
    def table(self) -> Table:
        """The table at the path, opened at its first use."""
        return self.open(self.arguments["path"], self.arguments.get("branch"))

    def open(self, path: str, branch: str | None = None) -> Table:
        """Return the table at a path. Its files are read only below the allowed folders."""
        return open_table(path, branch=branch, storage_options=self.access.options_for(path))


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool."""

    run: Callable[[ToolRequest], Answer]
    """Answers a call. Its name is the tool's; its docstring is what a model reads before its first call."""
    calls: Mapping[str, Mapping[str, str]]
    """The public calls that it makes, by their verbs in hints, each with the parameters that have other names here.
    The first is the call that its evidence names."""
    required: tuple[str, ...]
    """The names of the parameters that it needs."""
    optional: tuple[str, ...]
    """The names of its other parameters."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.run.__name__

    @property
    def use(self) -> str:
        """When to use it, what comes back, and what it costs."""
        return " ".join((self.run.__doc__ or "").split())

    @property
    def parameters(self) -> Mapping[str, Schema]:
        """The schemas of its parameters."""
        return {name: PARAMETERS[name] for name in (*self.required, *self.optional)}

    @property
    def input_schema(self) -> Schema:
        """The JSON schema of its arguments."""
        properties, required = self.parameters, list(self.required)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def parse(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Return arguments that were checked, without nulls. Raises InvalidArgumentError."""
        parsed = {name: item for name, item in arguments.items() if item is not None}
        for name, item in parsed.items():
            if name not in self.parameters:
                names = ", ".join(self.parameters)
                raise InvalidArgumentError(f"{self.name} has no argument {brief_repr(name)}. Arguments: {names}.")
            _check(name, item)
        for name in self.required:
            if name not in parsed:
                raise InvalidArgumentError(f"{self.name} needs {name}: {PARAMETERS[name]['description']}.")
        return parsed


def _check(name: str, item: Any) -> None:
    kind = PARAMETERS[name]["type"]
    texts = [*item, *item.values()] if isinstance(item, dict) else item if isinstance(item, list) else [str(item)]
    if type(item) is not _TYPES[kind] or not all(isinstance(text, str) for text in texts):
        kind = f"{kind} of strings" if kind in ("array", "object") else kind
        meaning = PARAMETERS[name]["description"]
        raise InvalidArgumentError(f"{name} must be of the type {kind}, got {brief_repr(item)}: {meaning}.")
    if any(len(text) > _MOST_LETTERS for text in texts):
        raise InvalidArgumentError(f"{name} must have at most {_MOST_LETTERS:,} letters.")
