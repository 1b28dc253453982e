"""The names of the tables in a catalog, as they are typed.

Source: reference, "Schemas, tables, and how a person names them".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snapshot_explorer.core.errors import InvalidArgumentError, TableNotFoundError

_PART = r'(?:[A-Za-z_]\w*|"(?:[^"]|"")+")'
_NAME = re.compile(rf"({_PART})(?:\.({_PART}))?(?:#(\d+))?", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MAIN = "main"
_SHOWN = 20
"""The maximum number of tables that a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTable:
    """A table under one of the names that it had."""

    table_id: int
    schema: str
    table: str
    last: int | None
    """The newest existing snapshot at which it had the name; None if that has expired."""
    is_live: bool
    """Whether it has the name at the newest snapshot."""

    @property
    def name(self) -> str:
        """The name as it is typed."""
        return f"{quoted_name(self.schema)}.{quoted_name(self.table)}"


def quoted_name(part: str) -> str:
    """Return a part of a name as it is typed: in quotes unless it is an ordinary word."""
    return part if _PLAIN.fullmatch(part) else '"' + part.replace('"', '""') + '"'


def is_name(text: str) -> bool:
    """Return whether a text is a name of a table, with or without its schema."""
    return _NAME.fullmatch(text) is not None


def named_tables(schemas: pa.Table, tables: pa.Table, snapshots: np.ndarray) -> list[NamedTable]:
    """Return all tables under all their names, of which a snapshot exists.

    Args:
        schemas: The rows of ducklake_schema.
        tables: The rows of ducklake_table.
        snapshots: The existing snapshots, ascending.
    """
    names = {row["schema_id"]: row["schema_name"] for row in schemas.to_pylist()}
    result = []
    for row in tables.to_pylist():
        begin, end = row["begin_snapshot"], row["end_snapshot"]
        schema, table = names.get(row["schema_id"]), row["table_name"]
        if begin is None or schema is None or table is None:
            continue
        stop = len(snapshots) if end is None else int(np.searchsorted(snapshots, end))
        last = int(snapshots[stop - 1]) if stop and snapshots[stop - 1] >= begin else None
        result.append(NamedTable(table_id=row["table_id"], schema=schema, table=table, last=last, is_live=end is None))
    return [named for named in result if named.last is not None]


def find_table(tables: Sequence[NamedTable], name: str | None, catalog: str) -> NamedTable:
    """Return the table of a name: of several tables, the one that had it last; the only live table without a name.

    Exact names precede names that differ in their case.

    Raises:
        InvalidArgumentError: The name is not valid, or there is none and the catalog has several tables.
        TableNotFoundError: No table had the name.
    """
    if name is None:
        live = [named for named in tables if named.is_live]
        if len(live) == 1:
            return live[0]
        raise _unnamed(live, catalog)
    match = _NAME.fullmatch(name)
    if match is None:
        raise InvalidArgumentError(
            f"{name!r} is not a name of a table in {catalog}. Write schema.table, such as main.orders, with double "
            'quotes around other words: main."my orders".'
        )
    first, second, number = match.groups()
    schema, table = (_MAIN, _unquoted(first)) if second is None else (_unquoted(first), _unquoted(second))
    chosen = [named for named in tables if number is None or named.table_id == int(number)]
    exact = [named for named in chosen if (named.schema, named.table) == (schema, table)]
    folded = [
        named for named in chosen if (named.schema.lower(), named.table.lower()) == (schema.lower(), table.lower())
    ]
    found = exact or folded
    if not found:
        raise TableNotFoundError(f"{catalog} has no table {name}. {_existing(tables)}")
    if not exact and len({(named.schema, named.table) for named in found}) > 1:
        names = ", ".join(sorted({named.name for named in found}))
        raise InvalidArgumentError(f"{name!r} matches several tables of {catalog}: {names}. Write one of them.")
    return max(found, key=lambda named: (named.last or 0, named.is_live))


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def _unnamed(live: Sequence[NamedTable], catalog: str) -> Exception:
    if not live:
        return TableNotFoundError(f"{catalog} has no live table. Name one that was dropped, or check the path.")
    return InvalidArgumentError(f"{catalog} has {len(live)} tables, so its table must be named. {_existing(live)}")


def _existing(tables: Sequence[NamedTable]) -> str:
    names = sorted({named.name for named in tables if named.is_live})
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"Tables: {', '.join(names[:_SHOWN])}{more}." if names else "It has no live table."
