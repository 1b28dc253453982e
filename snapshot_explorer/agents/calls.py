"""The answer of a call, or its error."""

from collections.abc import Mapping, Sequence
from time import monotonic

from snapshot_explorer.agents.access import Access
from snapshot_explorer.agents.answers import Reply, reply_of, suggested_calls
from snapshot_explorer.agents.tool import UNTRUSTED, VERSION, AgentTool, Answer, ToolRequest, ToolSpelling
from snapshot_explorer.agents.tools import TOOLS
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, python_call, spell
from snapshot_explorer.core.progress import StoppedError, listen, stop_with
from snapshot_explorer.history import history_of
from snapshot_explorer.view.json_values import bounded_text

_MESSAGE_LETTERS = 2_000


def answer_of(name: str, arguments: Mapping[str, object], access: Access) -> Reply:
    """Return the answer of a tool, or its error, as JSON values. Its long work ends when the call ends."""
    began = monotonic()
    tool = next((item for item in TOOLS if item.name == name), None)
    spelling = ToolSpelling(TOOLS, arguments, tool)
    listen(access)
    stop_with(access.check_stop)
    try:
        if tool is None:
            raise InvalidArgumentError(f"There is no such tool. Tools: {', '.join(item.name for item in TOOLS)}.")
        request = ToolRequest(access, tool.parse(arguments))
        answer = tool.run(request)
        costs = {"requests": access.requests, "seconds": round(monotonic() - began, 3)}
        return reply_of(answer, access.limits, _evidence(tool, request, answer) | costs, spelling)
    except StoppedError:
        return stopped(access)
    except SnapshotExplorerError as error:
        calls = suggested_calls(spelling, error.message)
        return _failure(type(error).__name__, spell(error.message, spelling.text), calls)
    finally:
        listen(None)
        stop_with(None)


def _evidence(tool: AgentTool, request: ToolRequest, answer: Answer) -> dict[str, object]:
    """Return the table, its versions and times, what was read, and the Python call of the same result."""
    evidence = {"format": None, "times": "", "read": {**answer.read, **request.access.planned}, **answer.evidence}
    if "table" in evidence:
        return evidence
    history, verb = history_of(request.table), tool.verbs[0]
    own_names = {own: name for name, own in VERSION.items()}
    chosen = request.chosen or ({"version": "latest"} if verb == "table.at" else {})
    hint = Hint(verb, {own_names.get(name, name): item for name, item in chosen.items()})
    return evidence | {
        "table": request.table.path,
        "format": request.table.format,
        "times": history.span_text(answer.versions) if answer.versions else "",
        "python": f"{history.open_expression}.{python_call(hint).removeprefix('table.')}",
    }


def stopped(access: Access) -> Reply:
    """Return the error of a call that a limit ended."""
    advice = "Ask for fewer versions, or for a condition that fewer files can match."
    return _failure("LimitError", f"The call {access.reached}, the limit of this server, and was stopped. {advice}")


def _failure(kind: str, message: str, calls: Sequence[Mapping[str, object]] = ()) -> Reply:
    error = {"type": kind, "message": bounded_text(" ".join(message.split()), _MESSAGE_LETTERS)}
    return Reply({"error": error, "next_calls": list(calls), "untrusted": UNTRUSTED})
