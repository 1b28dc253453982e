"""Answers of calls as bounded JSON: what was found, the evidence for it, its limits, and the calls to make next."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from itertools import islice
from time import monotonic
from typing import Any, Literal

import orjson
import pyarrow as pa

from snapshot_explorer.agents.access import Access, CallLimits
from snapshot_explorer.agents.tool import UNTRUSTED, AgentTool, Answer, ToolRequest, schema
from snapshot_explorer.agents.tools import TOOLS
from snapshot_explorer.arrow.python_values import distinct_names, with_dicts
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, python_call, spell
from snapshot_explorer.core.progress import StoppedError, listen, stop_with
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.url_secrets import hide_url_secrets
from snapshot_explorer.history import history_of
from snapshot_explorer.results import Frame
from snapshot_explorer.view.json_values import JsonBounds, bounded_text, json_value

_MOST_CALLS = 6
_MOST_LETTERS = 1_000
"""Letters of an argument in a hint."""
_MOST_NOTES = 20
_OWN_LETTERS = 2_000
"""Letters of a text of ours, which may quote names of a table."""
_TOO_LONG = "The statements are too long for an answer, and left out whole: the Python call returns them."


def _texts(meaning: str) -> Mapping[str, object]:
    return schema(meaning, "array", items={"type": "string"})


def _record(meaning: str, **properties: Mapping[str, object]) -> Mapping[str, object]:
    return schema(meaning, "object", properties=properties, required=list(properties))


_NUMBER = ["number", "null"]
_NEXT_CALL = _record(
    "a call with all of its arguments, unless some are left to you",
    tool=schema("the tool"),
    arguments=schema("its arguments", "object"),
    left_to_you=_texts("the arguments that you must add"),
)
OUTPUT_SCHEMA = _record(
    "the answer, its evidence, and what to call next",
    answer=schema("the answer in a few sentences"),
    facts=schema("single facts by their names", "object"),
    statements=_texts("SQL that a person may run, in order; exact, and never run here"),
    rows=schema("what the description of the tool calls rows", "array", items={"type": "object"}),
    rows_total=schema("the number of all rows, if rows has only the first; null: unknown", _NUMBER),
    evidence=_record(
        "what the answer is from: cite it",
        table=schema("the location of the table or the lake"),
        format=schema("the format of the table", ["string", "null"]),
        versions=schema("the version looked at, or the first and the last of them", "array"),
        times=schema("these versions with their commit times in UTC"),
        read=schema("files and versions that were read, where known; size_bytes: at most so many bytes", "object"),
        requests=schema("files and folders requested from a store; 0 on a local disk, null: not counted", _NUMBER),
        seconds=schema("the time that the call took", _NUMBER),
        python=schema("the Python call that returns the same"),
        not_checked=_texts("what was not looked at, or is uncertain: never report it as fine"),
    ),
    limits=_record(
        "the limits of a call, which the server sets",
        **{item.name: {"type": _NUMBER} for item in fields(CallLimits)},
        reached=_texts("the limits that cut this answer; ask for less, or in parts"),
    ),
    next_calls=schema("what to call next, best first", "array", items=_NEXT_CALL),
    untrusted=schema("what comes from tables"),
)
"""The JSON schema of all answers."""


class ToolSpelling:
    """Spells the hints in the answer of a call as calls of tools."""

    def __init__(self, asked: Mapping[str, object], tool: AgentTool | None = None) -> None:
        """Keep the arguments of the call and its tool: hints without a path are about its table."""
        self._asked, self._tool = asked, tool

    def call(self, hint: Hint) -> dict[str, object] | None:
        """Return a hint as the call of a tool: `tool`, `arguments`, and the arguments that are `left_to_you`.

        A hint without a verb is the same call with further arguments. None if no tool makes the call or has all of the
        arguments, or one is a name of a table with invisible characters or of extreme length: a model would not repeat
        it as it is.
        """
        tool, common = self._tool, self._asked
        if hint.verb:
            tool = next((item for item in TOOLS if hint.verb in item.verbs), None)
            common = {name: item for name, item in self._asked.items() if name in ("path", "branch")}
        own = {name: item for name, item in hint.arguments.items() if (name, item) != ("path", ...)}
        if tool is None or not own.keys() <= tool.parameters.keys() or any(map(_is_odd, own.values())):
            return None
        known = {name: item for name, item in {**common, **own}.items() if name in tool.parameters}
        values = {name: _in_type(item, tool.parameters[name]["type"]) for name, item in known.items()}
        call = {name: item for name, item in values.items() if item is not ...}
        if isinstance(path := call.get("path"), str):
            call["path"] = hide_url_secrets(path)
        needed = dict.fromkeys((*tool.required, *values))
        return {"tool": tool.name, "arguments": call, "left_to_you": [name for name in needed if name not in call]}

    def text(self, hint: Hint) -> str:
        """Return a hint as the text of such a call; in Python if no tool makes it."""
        if (call := self.call(hint)) is None:
            return python_call(hint)
        arguments = orjson.dumps(call["arguments"]).decode()
        return f"{call['tool']} {arguments}" if hint.verb else arguments


def _is_odd(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_odd, value))
    return isinstance(value, str) and (len(value) > _MOST_LETTERS or sanitize(value) != value)


def _in_type(value: object, kind: str) -> object:
    """Return an argument in the type of its parameter: refs are texts, and one name is a list."""
    parts = value if isinstance(value, list | tuple) else [value]
    if any(part is ... for part in parts):
        return ...
    texts = [str(part) for part in parts]
    return texts if kind == "array" else ",".join(texts) if kind == "string" else value


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, or an error, as JSON values."""

    content: dict[str, Any]
    """The answer, within the limits."""
    resource: dict[str, Any] = field(default_factory=dict)
    """The answer with as many rows as a resource has; empty without rows."""
    picture: bytes = b""
    """The figure of the answer."""


def answer_of(name: str, arguments: Mapping[str, object], access: Access) -> Reply:
    """Return the answer of a tool, or its error. Its long work ends when the call ends."""
    began = monotonic()
    tool = next((item for item in TOOLS if item.name == name), None)
    spelling = ToolSpelling(arguments, tool)
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
        calls = _suggested_calls(spelling, error.message)
        return _failure(type(error).__name__, spell(error.message, spelling.text), calls)
    finally:
        listen(None)
        stop_with(None)


def stopped(access: Access) -> Reply:
    """Return the error of a call that a limit ended."""
    advice = "Ask for fewer versions, or for a condition that fewer files can match."
    return _failure("LimitError", f"The call {access.reached}, the limit of this server, and was stopped. {advice}")


def _failure(kind: str, message: str, calls: Sequence[Mapping[str, object]] = ()) -> Reply:
    error = {"type": kind, "message": bounded_text(" ".join(message.split()), _OWN_LETTERS)}
    return Reply({"error": error, "next_calls": list(calls), "untrusted": UNTRUSTED})


def _evidence(tool: AgentTool, request: ToolRequest, answer: Answer) -> dict[str, object]:
    """Return the table, its versions and times, what was read, and the Python call of the same result."""
    evidence: dict[str, object] = {
        "table": answer.table,
        "format": None,
        "versions": [*answer.versions[:1], *answer.versions[1:][-1:]],
        "times": "",
        "read": {**answer.read, **request.access.planned},
        "python": answer.python,
    }
    if answer.table:
        return evidence
    history, verb = history_of(request.table), tool.verbs[0]
    hint = Hint(verb, request.chosen or ({"ref": "latest"} if verb == "table.at" else {}))
    return evidence | {
        "table": request.table.path,
        "format": request.table.format,
        "times": history.span_text(answer.versions) if answer.versions else "",
        "python": f"{history.open_expression}.{python_call(hint).removeprefix('table.')}",
    }


def reply_of(answer: Answer, limits: CallLimits, evidence: Mapping[str, object], spelling: ToolSpelling) -> Reply:
    """Return an answer, with further evidence, as JSON values within the limits."""
    value = partial(json_value, call=spelling.text, bounds=JsonBounds(letters=limits.text_letters))
    has_statements = sum(map(len, answer.statements)) <= limits.answer_bytes
    notes = [*([] if has_statements else [_TOO_LONG]), *answer.not_checked[:_MOST_NOTES]]
    text, *notes = (bounded_text(spell(item, spelling.text), _OWN_LETTERS) for item in (answer.text, *notes))
    table = answer.rows.to_arrow() if isinstance(answer.rows, Frame) else answer.rows or pa.table({})
    table = table.rename_columns(distinct_names(table.column_names))
    total = None if answer.rows_total is None else max(answer.rows_total, len(table))
    values = map(value, with_dicts(table.slice(0, limits.resource_rows), "lossy"))
    kept, left_out = _within(values, limits, total, "resource")
    rows, reached = _within(kept, limits, total, "answer")
    content = {
        "answer": text,
        "facts": value(answer.facts),
        "statements": list(answer.statements) if has_statements else [],
        "rows": rows,
        "rows_total": total,
        "evidence": {**value(evidence), "not_checked": notes},
        "limits": {**asdict(limits), "reached": reached},
        "next_calls": _suggested_calls(spelling, *answer.hints, answer.text, *answer.not_checked)[:_MOST_CALLS],
        "untrusted": UNTRUSTED,
    }
    resource = content | {"rows": kept, "limits": {**asdict(limits), "reached": left_out}} if kept else {}
    return Reply(content, resource, answer.picture)


def _suggested_calls(spelling: ToolSpelling, *sources: Hint | str) -> list[dict[str, object]]:
    """Return hints, and those in texts, as calls of tools, each once."""
    hints = [hint for item in sources for hint in ([item] if isinstance(item, Hint) else getattr(item, "hints", ()))]
    calls = [call for hint in hints if (call := spelling.call(hint)) is not None]
    return [call for at, call in enumerate(calls) if call not in calls[:at]]


def _within(
    rows: Iterable[object], limits: CallLimits, total: int | None, part: Literal["answer", "resource"]
) -> tuple[list[object], list[str]]:
    """Return the first rows within the limits of a part, and the limits that leave out others."""
    row_limit = "rows" if part == "answer" else "resource_rows"
    kept: list[object] = []
    size_bytes = 0
    for row in islice(rows, getattr(limits, row_limit)):
        size_bytes += len(orjson.dumps(row))
        if size_bytes > getattr(limits, f"{part}_bytes"):
            return kept, [f"{part}_bytes"]
        kept.append(row)
    return kept, [] if len(kept) == total else [row_limit]
