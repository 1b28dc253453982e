"""Answers of tools as bounded JSON: what was found, the evidence for it, its limits, and the calls to make next."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from itertools import islice
from typing import Any, Literal

import orjson
import pyarrow as pa

from snapshot_explorer.agents.access import CallLimits
from snapshot_explorer.agents.tool import UNTRUSTED, Answer, ToolSpelling
from snapshot_explorer.arrow.python_values import distinct_names, with_dicts
from snapshot_explorer.core.hints import Hint, spell
from snapshot_explorer.results import Frame
from snapshot_explorer.view.json_values import JsonBounds, bounded_text, json_value

_MOST_CALLS = 6
_MOST_NOTES = 20
_OWN_LETTERS = 2_000
"""Letters of a text of ours, which may quote names of a table."""
_TOO_LONG = "The statements are too long for an answer, and left out whole: the Python call returns them."


def _schema(meaning: str, kind: object = "string", **more: object) -> Mapping[str, object]:
    return {"type": kind, "description": meaning, **more}


def _texts(meaning: str) -> Mapping[str, object]:
    return _schema(meaning, "array", items={"type": "string"})


def _record(meaning: str, **properties: Mapping[str, object]) -> Mapping[str, object]:
    return _schema(meaning, "object", properties=properties, required=list(properties))


_NUMBER = ["number", "null"]
_NEXT_CALL = _record(
    "a call with all of its arguments, unless some are left to you",
    tool=_schema("the tool"),
    arguments=_schema("its arguments", "object"),
    left_to_you=_texts("the arguments that you must add"),
)
OUTPUT_SCHEMA = _record(
    "the answer, its evidence, and what to call next",
    answer=_schema("the answer in a few sentences"),
    facts=_schema("single facts by their names", "object"),
    statements=_texts("SQL that a person may run, in order; exact, and never run here"),
    rows=_schema("what the description of the tool calls rows", "array", items={"type": "object"}),
    rows_total=_schema("the number of all rows, if rows has only the first; null: unknown", _NUMBER),
    evidence=_record(
        "what the answer is from: cite it",
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
        "the limits of a call, which the server sets",
        **{item.name: {"type": _NUMBER} for item in fields(CallLimits)},
        reached=_texts("the limits that cut this answer; ask for less, or in parts"),
    ),
    next_calls=_schema("what to call next, best first", "array", items=_NEXT_CALL),
    untrusted=_schema("what comes from tables"),
)
"""The JSON schema of all answers."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, or an error, as JSON values."""

    content: dict[str, Any]
    """The answer, within the limits."""
    resource: dict[str, Any] = field(default_factory=dict)
    """The answer with as many rows as a resource has; empty without rows."""
    picture: bytes = b""
    """The figure of the answer."""


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
    ends = [*answer.versions[:1], *answer.versions[1:][-1:]]
    content = {
        "answer": text,
        "facts": value(answer.facts),
        "statements": list(answer.statements) if has_statements else [],
        "rows": rows,
        "rows_total": total,
        "evidence": {**value({"versions": ends, "read": answer.read, **evidence}), "not_checked": notes},
        "limits": {**asdict(limits), "reached": reached},
        "next_calls": suggested_calls(spelling, *answer.hints, answer.text, *answer.not_checked)[:_MOST_CALLS],
        "untrusted": UNTRUSTED,
    }
    resource = content | {"rows": kept, "limits": {**asdict(limits), "reached": left_out}} if kept else {}
    return Reply(content, resource, answer.picture)


def suggested_calls(spelling: ToolSpelling, *sources: Hint | str) -> list[dict[str, object]]:
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
