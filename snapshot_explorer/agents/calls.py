"""Calls of tools: the answer of one, and hints as calls, as `jupyter/spelling.py` spells them as lines."""

from collections.abc import Mapping, Sequence
from functools import partial
from time import monotonic

import orjson

from snapshot_explorer.agents.access import Access
from snapshot_explorer.agents.answers import UNTRUSTED, Answer, Reply, calls_of, reply_of
from snapshot_explorer.agents.tool import AgentTool, ToolRequest
from snapshot_explorer.agents.tools import TOOLS
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, python_call, spell
from snapshot_explorer.core.progress import StoppedError, listen, stop_with
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.url_secrets import hide_url_secrets
from snapshot_explorer.history import history_of
from snapshot_explorer.view.json_values import bounded_text

_MESSAGE_LETTERS = 2_000
_MOST_LETTERS = 1_000
"""Letters of an argument in a hint."""


def answer_of(name: str, arguments: Mapping[str, object], access: Access) -> Reply:
    """Return the answer of a tool, or its error, as JSON values. Its long work ends when the call ends."""
    tool = next((item for item in TOOLS if item.name == name), None)
    call = partial(tool_call, tools=TOOLS, asked=arguments, tool=tool)
    spelled = partial(tool_text, tools=TOOLS, asked=arguments, tool=tool)
    began = monotonic()
    listen(access)
    stop_with(access.check_stop)
    try:
        if tool is None:
            raise InvalidArgumentError(f"There is no such tool. Tools: {', '.join(item.name for item in TOOLS)}.")
        request = ToolRequest(access, tool.parse(arguments))
        answer = tool.run(request)
        costs = {"requests": access.requests, "seconds": round(monotonic() - began, 3)}
        return reply_of(answer, access.limits, _evidence(tool, request, answer) | costs, call=call, spelled=spelled)
    except StoppedError:
        return stopped(access)
    except SnapshotExplorerError as error:
        return _failure(type(error).__name__, spell(error.message, spelled), calls_of(call, error.message))
    finally:
        listen(None)
        stop_with(None)


def _evidence(tool: AgentTool, request: ToolRequest, answer: Answer) -> dict[str, object]:
    """Return the table, its versions and times, what was read, and the Python call of the same result."""
    evidence = {"format": None, "times": "", "read": {**answer.read, **request.access.planned}, **answer.evidence}
    if "table" in evidence:
        return evidence
    table, (verb, names) = request.table, next(iter(tool.calls.items()))
    own_names = {own: name for name, own in names.items()}
    chosen = request.chosen or ({"version": "latest"} if verb == "table.at" else {})
    hint = Hint(verb, {own_names.get(name, name): item for name, item in chosen.items()})
    branch = {"branch": request.arguments["branch"]} if "branch" in request.arguments else {}
    opening = python_call(Hint("open_table", {"path": table.path, **branch}))
    return evidence | {
        "table": table.path,
        "format": table.format,
        "times": history_of(table).span_text(answer.versions) if answer.versions else "",
        "python": f"{opening}.{python_call(hint).removeprefix('table.')}",
    }


def stopped(access: Access) -> Reply:
    """Return the error of a call that a limit ended."""
    advice = "Ask for fewer versions, or for a condition that fewer files can match."
    return _failure("LimitError", f"The call {access.reached}, the limit of this server, and was stopped. {advice}")


def _failure(kind: str, message: str, calls: Sequence[Mapping[str, object]] = ()) -> Reply:
    error = {"type": kind, "message": bounded_text(" ".join(message.split()), _MESSAGE_LETTERS)}
    return Reply({"error": error, "next_calls": list(calls), "untrusted": UNTRUSTED})


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
    if hint.verb:
        tool = next((item for item in tools if hint.verb in item.calls), None)
    if tool is None or any(map(_is_odd, hint.arguments.values())):
        return None
    names = tool.calls.get(hint.verb, {})
    arguments = {names.get(name, name): value for name, value in hint.arguments.items()}
    if not arguments.keys() <= tool.parameters.keys():
        return None
    if arguments.get("path") is ...:
        del arguments["path"]
    common = ("path", "branch") if hint.verb else tuple(asked)
    arguments = {name: asked[name] for name in common if name in asked} | arguments
    if isinstance(path := arguments.get("path"), str):
        arguments["path"] = hide_url_secrets(path)
    known = tool.parameters
    typed = {name: _typed(value, known[name]["type"]) for name, value in arguments.items() if name in known}
    return {
        "tool": tool.name,
        "arguments": {name: value for name, value in typed.items() if value is not ...},
        "left_to_you": [name for name in dict.fromkeys((*tool.required, *typed)) if typed.get(name, ...) is ...],
    }


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
