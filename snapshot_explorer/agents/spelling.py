"""Hints as calls of tools, from the tools' records, as `jupyter/spelling.py` spells them as lines."""

from collections.abc import Mapping, Sequence

import orjson

from snapshot_explorer.agents.tool import AgentTool
from snapshot_explorer.core.hints import Hint, python_call


def tool_call(
    hint: Hint, tools: Sequence[AgentTool], *, path: str | None, tool: AgentTool | None = None
) -> dict[str, object] | None:
    """Return a hint as the call of a tool: `tool`, `arguments`, and the arguments that are `left_to_you`.

    None if no tool makes the call, or it has not all of the arguments.

    Args:
        path: The table that hints without a path are about.
        tool: The tool that was called, whose parameters spell arguments alone.
    """
    candidates = [(item, item.calls[hint.verb]) for item in tools if hint.verb in item.calls]
    for item, names in [(tool, {})] if tool is not None and not hint.verb else candidates:
        types = {parameter.name: parameter.type for parameter in item.parameters}
        arguments = {names.get(name, name): value for name, value in hint.arguments.items()}
        if not arguments.keys() <= types.keys():
            continue
        if hint.verb and "path" in types and path is not None and arguments.get("path", ...) is ...:
            arguments["path"] = path
        typed = {name: _typed(arguments[name], kind) for name, kind in types.items() if name in arguments}
        needed = [parameter.name for parameter in item.parameters if parameter.required]
        return {
            "tool": item.name,
            "arguments": {name: value for name, value in typed.items() if value is not ...},
            "left_to_you": [name for name in types if typed.get(name, ... if name in needed else None) is ...],
        }
    return None


def tool_text(hint: Hint, tools: Sequence[AgentTool], *, path: str | None, tool: AgentTool | None = None) -> str:
    """Return a hint as the text of such a call; in Python if no tool makes it."""
    call = tool_call(hint, tools, path=path, tool=tool)
    if call is None:
        return python_call(hint)
    arguments = orjson.dumps(call["arguments"]).decode()
    return f"{call['tool']} {arguments}" if hint.verb else arguments


def _typed(value: object, kind: str) -> object:
    """Return an argument in the type of its parameter: refs are texts, and one name is a list."""
    if value is ... or (isinstance(value, Mapping | list | tuple) and any(part is ... for part in value)):
        return ...
    if kind == "array":
        return [str(part) for part in value] if isinstance(value, list | tuple) else [str(value)]
    if kind == "string" and not isinstance(value, str):
        return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return value
