"""The details that a writer stored about a commit as JSON text, as names and values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from snapshot_explorer.arrow.value_text import truncate
from snapshot_explorer.view.drawing import Line, Pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snapshot_explorer.view.drawing import Part

_SHOWN_DETAILS = 60
_LONGEST_DETAILS = 1_000_000
_LONGEST_VALUE = 300
_METRICS = "operationMetrics"


def stored_details(text: str | None) -> tuple[Part, ...]:
    """Return the details of a commit as parts of a drawing: the numbers that the operation counted, then the rest."""
    details = _details(text)
    metrics = [(name[len(_METRICS) + 1 :], value) for name, value in details if name.startswith(f"{_METRICS}.")]
    rest = [pair for pair in details if not pair[0].startswith(f"{_METRICS}.")]
    parts: list[Part] = []
    for heading, pairs in (("What the operation counted:", metrics), ("As it is stored:", rest)):
        if pairs:
            cut_off = len(pairs) - _SHOWN_DETAILS
            notes = (
                [Line(f"{cut_off:,} more are not shown; the commit's details have them all.")] if cut_off > 0 else []
            )
            parts += [Line(heading), Pairs(tuple(pairs[:_SHOWN_DETAILS])), *notes]
    return tuple(parts)


def _details(text: str | None) -> list[tuple[str, object]]:
    """Return JSON as names and values, nested names joined by dots; numbers keep their spelling."""
    if not text:
        return []
    if len(text) > _LONGEST_DETAILS:
        return [("details", truncate(text, _LONGEST_VALUE))]
    try:
        value_of_text = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return [("details", truncate(text, _LONGEST_VALUE))]
    return [(name or "details", value) for name, value in _flat("", value_of_text)]


def _flat(name: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value and name.count(".") < 3:  # noqa: PLR2004 - deeper levels are JSON
        for key, inner in value.items():
            yield from _flat(f"{name}.{truncate(key, 80)}" if name else truncate(key, 80), inner)
    elif isinstance(value, str):
        yield name, truncate(value, _LONGEST_VALUE)
    elif value is None or isinstance(value, bool):
        yield name, value
    else:
        yield name, truncate(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
