"""The record of a tool with its schemas, and one call of it."""

from collections.abc import Callable, Mapping
from dataclasses import fields
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


def _schema(meaning: str, kind: object = "string", **more: object) -> Schema:
    return {"type": kind, **more, "description": meaning}


def _texts(meaning: str) -> Schema:
    return _schema(meaning, "array", items={"type": "string"})


def _record(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


_REF = "17, latest, latest~2 (two back), 17^ (the one before), tag:v1, @2026-11-01T12:00 (UTC), @2h, @yesterday"
_TABLES = 'the path of each table by its name in the query, such as {"orders": "/data/orders"}'
_BY = "holder (without it), version, commit, operation, user, day, partition, size, time, or column (from footers)"
_TEXT_PARAMETERS = {
    "path": "the folder or URL of a table, or above tables for a tool about many; find_tables lists those allowed",
    "branch": "the branch of the table; the main one without it",
    "version": f"the version; the newest without it: {_REF}",
    "a": f"the version before the changes: {_REF}",
    "b": "the version after the changes; latest without it",
    "between": "only these versions, as A..B, such as 5..12 or @yesterday..",
    "where": "a condition on the rows in DuckDB's SQL, such as order_id = 42 or amount < 0",
    "since": "only commits from this time on: 1d, 3h, yesterday, 2026-11-01 03:00",
    "until": "only commits up to this time",
    "at": "the tables as they were at this time; now without it",
    "kind": "append, overwrite, compact, delete, update, merge, schema or restore",
    "user": "only commits whose user contains this text",
    "text": "only commits whose recorded details contain this text",
    "condition": "the condition, in DuckDB's SQL",
    "good": "a version where it does not hold; the earliest without it",
    "bad": "a later version where it holds; the newest without it",
    "query": "one SELECT, WITH, FROM, DESCRIBE or EXPLAIN",
    "by": _BY,
    "to_free": "find the mildest expiry that frees this, such as 5 GB",
    "undo": "the version whose commit alone is undone; in place of to",
    "to": "the version whose rows are put back; in place of undo",
}
PARAMETERS: Mapping[str, Schema] = {
    **{name: _schema(meaning) for name, meaning in _TEXT_PARAMETERS.items()},
    "key": _texts("the columns that identify a row; the primary key without it"),
    "columns": _texts("only these columns; all without it"),
    "tables": _schema(_TABLES, "object", additionalProperties={"type": "string"}),
    "depth": _schema("the levels of folders to search; 3 without it", "integer"),
    "limit": _schema("the most commits", "integer"),
}
"""The schemas of all parameters. A name means the same in each tool."""

_NUMBER = ["number", "null"]
OUTPUT_SCHEMA = _record(
    answer=_schema("the answer in a few sentences"),
    facts=_schema("single facts by their names", "object"),
    statements=_texts("SQL that a person may run, in order; exact, and never run here"),
    rows=_schema("what the description of the tool calls rows", "array", items={"type": "object"}),
    rows_total=_schema("the number of all rows, if rows has only the first; null: unknown", _NUMBER),
    evidence=_record(
        table=_schema("the location of the table or the lake"),
        format=_schema("the format of the table", ["string", "null"]),
        versions=_schema("the version looked at, or the first and the last of them", "array"),
        times=_schema("these versions with their commit times in UTC"),
        read=_schema("files and versions that were read, where known; size_bytes: at most so many bytes", "object"),
        requests=_schema("files and folders requested from a store; 0 on a local disk, null: not counted", _NUMBER),
        seconds=_schema("the time that the call took", _NUMBER),
        python=_schema("the Python call that returns the same"),
        not_checked=_texts("what was not looked at, or is uncertain: never report it as fine"),
    ),
    limits=_record(
        **{item.name: {"type": _NUMBER} for item in fields(CallLimits)},
        reached=_texts("the limits that cut this answer; ask for less, or in parts"),
    ),
    next_calls=_schema(
        "what to call next, best first",
        "array",
        items=_record(
            tool=_schema("the tool"),
            arguments=_schema("its arguments", "object"),
            left_to_you=_texts("arguments that are still needed"),
        ),
    ),
    untrusted=_schema("what comes from tables"),
)
"""The JSON schema of all answers."""


class ToolRequest:
    """One call of a tool."""

    def __init__(self, access: Access, arguments: Mapping[str, Any]) -> None:
        self.access, self.arguments = access, arguments
        self.chosen = {name: item for name, item in arguments.items() if name not in ("path", "branch")}
        """The arguments that are about the table that is open."""

    @cached_property
    def table(self) -> Table:
        """The table at the path, opened at its first use."""
        return self.open(self.arguments["path"], self.arguments.get("branch"))

    def open(self, path: str, branch: str | None = None) -> Table:
        """Return the table at a path. Its files are read only below the allowed folders."""
        return open_table(path, branch=branch, storage_options=self.access.options_for(path))


class AgentTool:
    """A tool: a function, whose name is the tool's and whose docstring a model reads before its first call."""

    def __init__(
        self, run: Callable[[ToolRequest], Answer], calls: Mapping[str, Mapping[str, str]], arguments: str
    ) -> None:
        """Describe a function that answers calls.

        Args:
            calls: The public calls that it makes, by their verbs in hints, each with the parameters that have other
                names here. The first is the call that its evidence names.
            arguments: The names of its parameters, with a question mark behind those that it can do without.
        """
        self.run, self.calls = run, calls
        self.name, self.use = run.__name__, " ".join((run.__doc__ or "").split())
        self.required = [name for name in arguments.split() if not name.endswith("?")]
        self.parameters = {name: PARAMETERS[name] for name in arguments.replace("?", "").split()}
        self.input_schema: Schema = {
            "type": "object",
            "properties": self.parameters,
            "required": self.required,
            "additionalProperties": False,
        }

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
    kind, meaning = PARAMETERS[name]["type"], PARAMETERS[name]["description"]
    texts = [*item, *item.values()] if isinstance(item, dict) else item if isinstance(item, list) else [str(item)]
    if type(item) is not _TYPES[kind] or not all(isinstance(text, str) for text in texts):
        kind = f"{kind} of strings" if kind in ("array", "object") else kind
        raise InvalidArgumentError(f"{name} must be of the type {kind}, got {brief_repr(item)}: {meaning}.")
    if any(len(text) > _MOST_LETTERS for text in texts):
        raise InvalidArgumentError(f"{name} must have at most {_MOST_LETTERS:,} letters.")
