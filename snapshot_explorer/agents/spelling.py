"""Hints as calls of tools, from the tools' records, as `jupyter/spelling.py` spells them as lines."""

from collections.abc import Mapping, Sequence

import orjson

from snapshot_explorer.agents.tool import AgentTool
from snapshot_explorer.core.hints import Hint, python_call
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.url_secrets import hide_url_secrets

_MOST_LETTERS = 1_000
"""Letters of an argument."""


def tool_call(
    hint: Hint, tools: Sequence[AgentTool], *, asked: Mapping[str, object], tool: AgentTool | None = None
) -> dict[str, object] | None:
    """Return a hint as the call of a tool: `tool`, `arguments`, and the arguments that are `left_to_you`.

    None if no tool makes the call, or it has not all of the arguments, or one is a name of a table with invisible
    characters or of extreme length: a model would not repeat it as it is.

    Args:
        asked: The arguments of the call that is answered. A hint without a path is about the same table; a hint
            without a verb repeats the call with further arguments.
        tool: The tool that was called.
    """
    if any(_is_odd(value) for value in hint.arguments.values()):
        return None
    candidates = [(item, item.calls[hint.verb]) for item in tools if hint.verb in item.calls]
    for item, names in [(tool, {})] if tool is not None and not hint.verb else candidates:
        types = {name: schema["type"] for name, schema in item.parameters.items()}
        arguments = {names.get(name, name): value for name, value in hint.arguments.items()}
        if not arguments.keys() <= types.keys():
            continue
        if arguments.get("path") is ...:
            del arguments["path"]
        common = {name: asked[name] for name in ("path", "branch") if name in types and name in asked}
        arguments = (common if hint.verb else dict(asked)) | arguments
        if isinstance(path := arguments.get("path"), str):
            arguments["path"] = hide_url_secrets(path)
        typed = {name: _typed(arguments[name], kind) for name, kind in types.items() if name in arguments}
        return {
            "tool": item.name,
            "arguments": {name: value for name, value in typed.items() if value is not ...},
            "left_to_you": [name for name in types if typed.get(name, ... if name in item.required else None) is ...],
        }
    return None


def tool_text(
    hint: Hint, tools: Sequence[AgentTool], *, asked: Mapping[str, object], tool: AgentTool | None = None
) -> str:
    """Return a hint as the text of such a call; in Python if no tool makes it."""
    call = tool_call(hint, tools, asked=asked, tool=tool)
    if call is None:
        return python_call(hint)
    arguments = orjson.dumps(call["arguments"]).decode()
    return f"{call['tool']} {arguments}" if hint.verb else arguments


def _is_odd(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_odd, value))
    return isinstance(value, str) and (len(value) > _MOST_LETTERS or sanitize(value) != value)


def _typed(value: object, kind: str) -> object:
    """Return an argument in the type of its parameter: refs are texts, and one name is a list."""
    if value is ... or (isinstance(value, Mapping | list | tuple) and any(part is ... for part in value)):
        return ...
    if kind == "array":
        return [str(part) for part in value] if isinstance(value, list | tuple) else [str(value)]
    if kind == "string" and not isinstance(value, str):
        return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return value
