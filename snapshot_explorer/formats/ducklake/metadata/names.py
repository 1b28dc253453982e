"""The names of the tables in a catalog, as they are typed.

Source: reference, "Schemas, tables, and how a person names them".
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snapshot_explorer.core.errors import InvalidArgumentError, TableNotFoundError
from snapshot_explorer.core.text import list_names
from snapshot_explorer.formats.ducklake.metadata.data_types import quoted

_WORD = r"[A-Za-z_]\w*"
_PART = rf'(?:{_WORD}|"(?:[^"]|"")+")'
_NAME = re.compile(rf"(?:({_PART})\.)?({_PART})(?:#(\d+))?", re.ASCII)
MAIN = "main"
"""The schema of a table that is named alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTable:
    """A table under one of the names that it had."""

    table_id: int
    parts: tuple[str, str]
    """Its schema and its table."""
    last: int
    """The newest existing snapshot at which it had the name."""
    is_live: bool
    """Whether it has the name at the newest snapshot."""

    @property
    def name(self) -> str:
        """The name as it is typed."""
        return typed_name(self.parts)

    @property
    def recency(self) -> tuple[int, bool]:
        """The order of several tables that had a name, or of several names of a table; the newest is last."""
        return self.last, self.is_live


def typed_name(parts: Sequence[str]) -> str:
    """Return a name as it is typed: parts are in quotes unless they are ordinary words."""
    return ".".join(part if re.fullmatch(_WORD, part, re.ASCII) else quoted(part) for part in parts)


def named_tables(rows: Mapping[str, pa.Table]) -> list[NamedTable]:
    """Return all tables under all their names, of which a snapshot exists.

    Args:
        rows: The rows of ducklake_schema, ducklake_table and ducklake_snapshot, ascending.
    """
    names = {row["schema_id"]: row["schema_name"] for row in rows["schema"].to_pylist()}
    snapshots = rows["snapshot"].column("snapshot_id").to_numpy()
    result = []
    for row in rows["table"].to_pylist():
        begin, end = row["begin_snapshot"], row["end_snapshot"]
        schema, table = names.get(row["schema_id"]), row["table_name"]
        stop = len(snapshots) if end is None else int(np.searchsorted(snapshots, end))
        if None in (row["table_id"], begin, schema, table) or not stop or snapshots[stop - 1] < begin:
            continue
        parts, last = (str(schema), str(table)), int(snapshots[stop - 1])
        result.append(NamedTable(table_id=row["table_id"], parts=parts, last=last, is_live=end is None))
    return result


def find_table(tables: Sequence[NamedTable], name: str | None, catalog: str) -> NamedTable:
    """Return the table of a name: of several tables, the one that had it last; the only live table without a name.

    Exact names precede names that differ in their case.

    Raises:
        InvalidArgumentError: The name is not valid, or there is none and the catalog has several tables.
        TableNotFoundError: No table had the name.
    """
    live = [named for named in tables if named.is_live]
    if name is None:
        if len(live) == 1:
            return live[0]
        if not live:
            raise TableNotFoundError(f"{catalog} has no live table. Name one that was dropped, or check the path.")
        raise InvalidArgumentError(f"{catalog} has {len(live)} tables, so its table must be named. {_listed(live)}")
    match = _NAME.fullmatch(name)
    if match is None:
        raise InvalidArgumentError(
            f"{name!r} is not a name of a table in {catalog}. Write schema.table, such as main.orders, with double "
            'quotes around other words: main."my orders".'
        )
    parts = tuple(_unquoted(part or MAIN) for part in match.groups()[:2])
    folded = [
        named for named in tables if match[3] in (None, str(named.table_id)) and _folded(named.parts) == _folded(parts)
    ]
    exact = [named for named in folded if named.parts == parts]
    if not folded:
        raise TableNotFoundError(f"{catalog} has no table {name}. {_listed(live)}")
    if not exact and len({named.parts for named in folded}) > 1:
        several = ", ".join(sorted({named.name for named in folded}))
        raise InvalidArgumentError(f"{name!r} matches several tables of {catalog}: {several}. Write one of them.")
    return max(exact or folded, key=lambda named: named.recency)


def _listed(live: Sequence[NamedTable]) -> str:
    names = sorted({named.name for named in live})
    return f"Tables: {list_names(names)}." if names else "It has no live table."


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def _folded(parts: Sequence[str]) -> list[str]:
    return [part.lower() for part in parts]
