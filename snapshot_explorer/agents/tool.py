"""The records of a tool and its parameters, and of one call; the server and the spelling of hints read them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from snapshot_explorer.agents.access import Access, CallLimits
from snapshot_explorer.agents.answers import Answer
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.refs.records import brief_repr
from snapshot_explorer.table import Table, open_table

ParameterType = Literal["string", "integer", "array", "object"]
_TYPES = {"string": str, "integer": int, "array": list, "object": dict}
_ITEMS: Mapping[str, Mapping[str, object]] = {
    "array": {"items": {"type": "string"}},
    "object": {"additionalProperties": {"type": "string"}},
}
_MOST_LETTERS = 20_000
"""The maximum number of letters of an argument."""
_TEXT: Mapping[str, object] = {"type": "string"}
_OBJECT: Mapping[str, object] = {"type": "object"}
_NUMBER: Mapping[str, object] = {"type": ["number", "null"]}


def _described(schema: Mapping[str, object], description: str) -> dict[str, object]:
    return {**schema, "description": description}


_TEXTS = {"type": "array", "items": _TEXT}
_EVIDENCE = {
    "table": _described(_TEXT, "the location of the table or the lake"),
    "format": _described({"type": ["string", "null"]}, "the format of the table"),
    "versions": _described({"type": "array"}, "the version looked at, or the first and the last of them"),
    "times": _described(_TEXT, "these versions with their commit times in UTC"),
    "read": _described(_OBJECT, "files, rows, bytes and versions that were read, where they are known"),
    "requests": _described(_NUMBER, "requests to the store; 0 on a local disk, null where they are not counted"),
    "seconds": _NUMBER,
    "python": _described(_TEXT, "the Python call that returns the same"),
    "not_checked": _described(_TEXTS, "what was not looked at, or is uncertain: never report it as fine"),
}
_LIMITS = dict.fromkeys(CallLimits.__dataclass_fields__, _NUMBER) | {
    "reached": _described(_TEXTS, "the limits that cut this answer; ask for less, or in parts")
}
_CALL = {
    "tool": _TEXT,
    "arguments": _OBJECT,
    "left_to_you": _described(_TEXTS, "arguments that are still needed"),
}


def _closed(properties: Mapping[str, object]) -> dict[str, object]:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a tool."""

    name: str
    meaning: str
    type: ParameterType = "string"
    required: bool = False


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTool:
    """A tool."""

    name: str
    use: str
    """When to use it, what comes back, and what it costs: what a model reads before its first call."""
    run: Callable[[ToolRequest], Answer]
    parameters: tuple[Parameter, ...]
    rows: str = ""
    """What the rows of its answer are; empty if it has none."""
    calls: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The public calls that it makes, by their verbs in hints, each with the parameters that have other names here.
    The first is the call that its evidence names."""

    @property
    def input_schema(self) -> dict[str, object]:
        """The JSON schema of its arguments."""
        properties = {
            item.name: {"type": item.type, **_ITEMS.get(item.type, {}), "description": item.meaning}
            for item in self.parameters
        }
        required = [item.name for item in self.parameters if item.required]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    @property
    def output_schema(self) -> dict[str, object]:
        """The JSON schema of its answers."""
        return _closed(
            {
                "answer": _described(_TEXT, "the answer in a few sentences"),
                "facts": _described(_OBJECT, "single facts by their names"),
                "statements": _described(_TEXTS, "SQL that a person may run, in order; exact, and never run here"),
                "rows": _described({"type": "array", "items": _OBJECT}, self.rows or "none"),
                "rows_total": _described(_NUMBER, "the number of all rows, if rows has only the first; null: unknown"),
                "evidence": _closed(_EVIDENCE),
                "limits": _closed(_LIMITS),
                "next_calls": {
                    "type": "array",
                    "items": _closed(_CALL),
                    "description": "what to call next, best first",
                },
                "untrusted": _TEXT,
            }
        )

    def parse(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Return arguments that were checked, without nulls. Raises InvalidArgumentError."""
        parsed = {name: item for name, item in arguments.items() if item is not None}
        known = {item.name: item for item in self.parameters}
        for name, item in parsed.items():
            if name not in known:
                names = ", ".join(known)
                raise InvalidArgumentError(f"{self.name} has no argument {brief_repr(name)}. Arguments: {names}.")
            _check(known[name], item)
        for parameter in self.parameters:
            if parameter.required and parameter.name not in parsed:
                raise InvalidArgumentError(f"{self.name} needs {parameter.name}: {parameter.meaning}.")
        return parsed


def _check(parameter: Parameter, item: Any) -> None:
    texts = [item] if isinstance(item, str) else [*item, *item.values()] if isinstance(item, dict) else item
    is_right = isinstance(item, _TYPES[parameter.type]) and not isinstance(item, bool)
    if not is_right or (isinstance(texts, list) and not all(isinstance(text, str) for text in texts)):
        kind = f"{parameter.type} of strings" if parameter.type in _ITEMS else parameter.type
        raise InvalidArgumentError(
            f"{parameter.name} must be of the type {kind}, got {brief_repr(item)}: {parameter.meaning}."
        )
    if isinstance(texts, list) and any(len(text) > _MOST_LETTERS for text in texts):
        raise InvalidArgumentError(f"{parameter.name} must have at most {_MOST_LETTERS:,} letters.")
