"""What DuckDB's plan of a query says of the rows that it needs: columns, and what stands right above a scan."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.engines import data_skipping
from snapshot_explorer.engines.conditions import condition
from snapshot_explorer.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PREFIX = "plan__"
"""How the names of columns in plans begin."""
_SCAN = "ARROW_SCAN"
_LIMITS = ("LIMIT", "STREAMING_LIMIT")
_NAME = re.compile(r"plan__(\d+)__(?:\d+|rows)")
_TOKEN = re.compile(
    r"""(?P<column>plan__\d+__\d+)
    |CAST\('(?:[^']|'')*'\ AS\ (?:DATE|TIMESTAMP)\)
    |'(?:[^']|'')*'(?:::(?:DATE|TIMESTAMP)\b)?
    |-?\d+(?:\.\d+)?
    |\b(?:AND|OR|NOT|IS|NULL|BETWEEN|IN|DISTINCT|FROM)\b
    |!=|<>|<=|>=|[=<>(),]
    |\s+""",
    re.VERBOSE,
)
"""What a condition that is pushed may be made of: comparisons of columns with constants, and nothing that computes."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan of a relation in a plan."""

    columns: tuple[str, ...]
    """The names, in the plan, of the columns that it reads."""
    condition: str | None
    """The condition that its rows have to pass before anything else is done with them, as DuckDB spells it."""
    limit: int | None = None
    """How many of its rows are taken, whichever they are; None if all are."""


def column_name(number: int, at: int) -> str:
    """Return the name that the column at a place of a relation has in plans."""
    return f"plan__{number}__{at}"


def rows_name(number: int) -> str:
    """Return the name that the rows of a relation have in plans, where they are only counted."""
    return f"plan__{number}__rows"


def number_of(name: str) -> int | None:
    """Return the relation that a name in a plan belongs to."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def scans(plan: object) -> Sequence[Scan]:
    """Return the scans of a plan that DuckDB explained as JSON."""
    return tuple(_scans(plan, "", {}))


def _scans(node: object, parent: str, parent_info: Mapping[str, Any]) -> Iterator[Scan]:
    """Yield the scans in a part of a plan, below a node of this name that tells this."""
    if isinstance(node, list):
        for child in node:
            yield from _scans(child, parent, parent_info)
        return
    if not isinstance(node, dict):
        return
    name, info = str(node.get("name", "")).strip(), node.get("extra_info") or {}
    if name.endswith(_SCAN):
        columns, condition = info.get("Projections") or [], parent_info.get("Expression")
        yield Scan(
            (columns,) if isinstance(columns, str) else tuple(columns),
            condition if parent == "FILTER" and isinstance(condition, str) else None,
            _limit(parent_info) if parent in _LIMITS and "Filters" not in info else None,
        )
    yield from _scans(node.get("children") or [], name, info)


def _limit(info: Mapping[str, Any]) -> int | None:
    """Return how many rows a LIMIT with an OFFSET needs; None where that is computed, or there is no LIMIT."""
    limit, offset = str(info.get("Limit", "")), str(info.get("Offset", "0"))
    return int(limit) + int(offset) if limit.isdecimal() and offset.isdecimal() else None


def limit_of(found: Sequence[Scan]) -> int | None:
    """Return how many rows are enough for all of a relation's scans; None if one takes all."""
    limits = [scan.limit for scan in found if scan.limit is not None]
    return max(limits) if limits and len(limits) == len(found) else None


def condition_of(found: Sequence[Scan], names: Mapping[str, str], schema: pa.Schema) -> str | None:
    """Return a condition in SQL that every row passes which one of a relation's scans needs; None if there is none.

    Only what is sure to mean the same outside of the query is used: comparisons of columns with constants of a fitting
    type. Of other conditions nothing is lost, since the query evaluates all of its own.

    Args:
        found: All scans of the relation.
        names: The columns' own names by their names in the plan.
        schema: The relation's schema.
    """
    planned = pa.schema([schema.field(column).with_name(name) for name, column in names.items()])
    pushed = [_pushed(scan.condition, planned) for scan in found]
    sides = [side for side in dict.fromkeys(pushed) if side is not None]
    if not sides or None in pushed:
        return None
    return _renamed(" OR ".join(f"({side})" for side in sides), names)


def _pushed(text: str | None, planned: pa.Schema) -> str | None:
    """Return those parts of a condition that are sure to mean the same, with the plan's names."""
    if text is None or not _NAME.search(text):
        return None
    try:
        parts = condition(text, planned).parts
    except InvalidArgumentError:  # not a condition on a row's own values
        return None
    safe = [
        part.text
        for part in parts
        if part.columns and _is_equivalent(part.form) and _has_plain_tokens(part.text, planned)
    ]
    return " AND ".join(f"({part})" for part in safe) or None


def _is_equivalent(form: data_skipping.Form) -> bool:
    """Return whether bounds can be concluded from, with every part of it understood."""
    match form:
        case data_skipping.And(parts) | data_skipping.Or(parts):
            return all(_is_equivalent(part) for part in parts)
        case data_skipping.Not(part):
            return _is_equivalent(part)
        case data_skipping.Unsupported() | data_skipping.StartsWith():
            return False
        case _:
            return True


def _has_plain_tokens(text: str, planned: pa.Schema) -> bool:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or (found["column"] and not _is_exact(planned.field(found["column"]).type)):
            return False
        at = found.end()
    return True


def _is_exact(kind: pa.DataType) -> bool:
    """Return whether DuckDB's spelling of a constant of the type is the constant itself."""
    is_number = pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    is_time = pa.types.is_date32(kind) or (pa.types.is_timestamp(kind) and kind.tz is None and kind.unit == "us")
    return bool(is_number or is_time or pa.types.is_string(kind))


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """Return the text with the columns' own names, quoted, and strings as they are."""

    def own(found: re.Match[str]) -> str:
        column = found["column"]
        return '"' + names[column].replace('"', '""') + '"' if column else found.group()

    return _TOKEN.sub(own, text)
