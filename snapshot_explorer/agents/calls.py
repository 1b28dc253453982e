"""One call of a tool: its answer or its error, with the evidence."""

from collections.abc import Mapping, Sequence
from functools import partial
from time import monotonic

from snapshot_explorer.agents.access import Access
from snapshot_explorer.agents.answers import UNTRUSTED, Answer, Reply, bounded_text, reply_of
from snapshot_explorer.agents.spelling import tool_call, tool_text
from snapshot_explorer.agents.tool import AgentTool, ToolRequest
from snapshot_explorer.agents.tools import TOOLS
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, python_call, spell
from snapshot_explorer.core.progress import Listener, StoppedError, listen, stop_with
from snapshot_explorer.history import history_of

_MESSAGE_LETTERS = 2_000


def answer_of(name: str, arguments: Mapping[str, object], access: Access, listener: Listener | None = None) -> Reply:
    """Return the answer of a tool, or its error, as JSON values. Its long work ends when the call ends.

    Args:
        name: The name of the tool.
        listener: Shows the progress of the work.
    """
    tool = next((item for item in TOOLS if item.name == name), None)
    call = partial(tool_call, tools=TOOLS, asked=arguments, tool=tool)
    spelled = partial(tool_text, tools=TOOLS, asked=arguments, tool=tool)
    began = monotonic()
    listen(listener)
    stop_with(access.check_stop)
    try:
        if tool is None:
            raise InvalidArgumentError(f"There is no such tool. Tools: {', '.join(item.name for item in TOOLS)}.")
        request = ToolRequest(access, tool.parse(arguments))
        answer = tool.run(request)
        costs = {"requests": access.requests, "seconds": round(monotonic() - began, 3)}
        evidence = _evidence(tool, request, answer) | costs
        return reply_of(answer, access.limits, evidence, call=call, spelled=spelled)
    except StoppedError:
        return stopped(access)
    except SnapshotExplorerError as error:
        calls = [item for hint in getattr(error.message, "hints", ()) if (item := call(hint)) is not None]
        return _failure(type(error).__name__, spell(error.message, spelled), calls)
    finally:
        listen(None)
        stop_with(None)


def _evidence(tool: AgentTool, request: ToolRequest, answer: Answer) -> dict[str, object]:
    """Return which table and versions an answer is about, what it cost, and the Python that returns the same."""
    if answer.path:
        return {"table": answer.path, "format": None, "times": "", "python": answer.python}
    table, (verb, names) = request.table, next(iter(tool.calls.items()))
    own_names = {own: name for name, own in names.items()}
    chosen = request.chosen or ({"version": "latest"} if verb == "table.at" else {})
    hint = Hint(verb, {own_names.get(name, name): item for name, item in chosen.items()})
    branch = {"branch": request.arguments["branch"]} if "branch" in request.arguments else {}
    opening = python_call(Hint("open_table", {"path": table.path, **branch}))
    past = history_of(table)
    return {
        "table": table.path,
        "format": table.format,
        "times": past.span_text(answer.versions) if answer.versions else "",
        "python": f"{opening}.{python_call(hint).removeprefix('table.')}",
    }


def stopped(access: Access) -> Reply:
    """Return the error of a call that a limit ended."""
    advice = "Ask for fewer versions, or for a condition that fewer files can match."
    return _failure("LimitError", f"The call {access.reached}, the limit of this server, and was stopped. {advice}")


def _failure(kind: str, message: str, calls: Sequence[Mapping[str, object]] = ()) -> Reply:
    error = {"type": kind, "message": bounded_text(" ".join(message.split()), _MESSAGE_LETTERS)}
    return Reply({"error": error, "next_calls": list(calls), "untrusted": UNTRUSTED})
