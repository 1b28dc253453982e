"""`Scan`: which columns and rows to read, checked against a schema once, for every engine."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import pyarrow as pa

from snapshot_explorer.engines.conditions import Condition, condition, unknown_column
from snapshot_explorer.errors import InvalidArgumentError

_GREATEST_LIMIT = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Which columns and rows to read. Picklable; `scan_of` makes it."""

    columns: pa.Schema
    """The columns to return, in order."""
    needed: pa.Schema
    """The columns to read: those to return, in table order, then others that the condition needs."""
    condition: Condition | None = None
    """Which rows to keep; None for all."""
    limit: int | None = None
    """The maximum number of rows to return; None for all."""


def scan_of(
    schema: pa.Schema, columns: Sequence[str] | None = None, where: str | None = None, limit: int | None = None
) -> Scan:
    """Return a scan of rows with this schema. Reads nothing.

    Args:
        schema: The Arrow schema of the rows, including metadata columns.
        columns: Names of the columns to return, in order; all for None.
        where: A condition in SQL, as DuckDB understands it.
        limit: The maximum number of rows to return.
    """
    predicate = None if where is None else condition(where, schema)
    chosen = _chosen(schema, columns)
    check_limit(limit, "rows")
    kept = frozenset(chosen.names)
    names = [name for name in schema.names if name in kept]
    names += sorted(predicate.columns - set(names)) if predicate else []
    return Scan(
        columns=chosen, needed=pa.schema([schema.field(name) for name in names]), condition=predicate, limit=limit
    )


def check_limit(limit: object, what: str) -> None:
    """Raise InvalidArgumentError unless a limit on the number of `what` is None or a whole number, 0 or more."""
    is_valid = isinstance(limit, SupportsIndex) and not isinstance(limit, bool) and operator.index(limit) >= 0
    if limit is not None and not is_valid:
        raise InvalidArgumentError(f"limit must be 0 or more, got {limit!r}. Leave it out for all {what}.")
    if isinstance(limit, SupportsIndex) and operator.index(limit) > _GREATEST_LIMIT:
        raise InvalidArgumentError(f"limit must be below 2**63, got {limit!r}. Leave it out for all {what}.")


def _chosen(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    if columns is None:
        return schema.remove_metadata()
    if isinstance(columns, str | bytes) or not isinstance(columns, Iterable):
        raise InvalidArgumentError(f"columns must be a list of names, got {columns!r}. Write [{str(columns)!r}].")
    known, seen = set(schema.names), set[str]()
    names: Iterable[object] = columns
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise unknown_column(str(name), schema.names)
        if name in seen:
            raise InvalidArgumentError(f"columns contains {name!r} twice. Write each column once.")
        seen.add(name)
    return pa.schema([schema.field(name) for name in columns])
