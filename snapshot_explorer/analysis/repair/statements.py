"""The statements that put rows back, in Spark SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from snapshot_explorer.analysis.repair.spark_sql import join_items, spark_identifier, text_literal
from snapshot_explorer.core.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from snapshot_explorer.analysis.repair.selection import RowCounts

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CURRENT, EARLIER = "current", "earlier"
"""The aliases of the table and of the version in a MERGE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The table in the engine, and the version to read rows from."""

    name: tuple[str, ...]
    """The parts of its name in the engine."""
    time_travel: str
    """The clause behind the name that reads the version."""
    columns: tuple[str, ...]
    """The columns, in the order of the table."""
    deletes_unknown: bool = False
    """Whether the engine also deletes rows for which a condition is null, unless the condition excludes them."""

    @property
    def table(self) -> str:
        """The name of the table."""
        return ".".join(map(spark_identifier, self.name))

    @property
    def earlier(self) -> str:
        """The table at the version."""
        return f"{self.table} {self.time_travel}"

    def deleted(self, condition: str) -> str:
        """Return the condition on rows to delete."""
        return f"({condition}) IS TRUE" if self.deletes_unknown else condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which rows are put back: the same condition on the table, and on its rows in a MERGE."""

    plain: str
    of_target: str
    of_source: str


def key_statement(
    target: Target, key: Sequence[str], selection: Selection, counts: RowCounts, *, names_keys: bool
) -> tuple[str, ...]:
    """Return the statement that puts rows back by their key: one commit.

    Args:
        names_keys: Whether the selection is a list of keys, so that it selects the same rows in both versions.
    """
    if names_keys and not counts.inserted and not counts.updated:
        return (f"DELETE FROM {target.table}\nWHERE {target.deleted(selection.plain)}",)
    if names_keys and not counts.deleted and not counts.updated:
        return (_insert(target, selection.plain),)
    return (_merge(target, key, selection, names_keys=names_keys),)


def replace_statements(target: Target, selection: Selection, *, at_once: bool) -> tuple[str, ...]:
    """Return the statements that replace all rows of a condition: one commit, or a DELETE and an INSERT."""
    if at_once:
        names = join_items(map(spark_identifier, target.columns))
        rows = f"SELECT {names}\nFROM {target.earlier}\nWHERE {selection.plain}"
        return (f"INSERT INTO {target.table}\nREPLACE WHERE {selection.plain}\n{rows}",)
    return f"DELETE FROM {target.table}\nWHERE {target.deleted(selection.plain)}", _insert(target, selection.plain)


def _insert(target: Target, condition: str) -> str:
    names = join_items(map(spark_identifier, target.columns))
    return f"INSERT INTO {target.table} ({names})\nSELECT {names}\nFROM {target.earlier}\nWHERE {condition}"


def _merge(target: Target, key: Sequence[str], selection: Selection, *, names_keys: bool) -> str:
    columns = list(map(spark_identifier, target.columns))
    keys = list(map(spark_identifier, key))
    rest = [column for column in columns if column not in keys]
    # A list of keys restricts the rows that are read; a condition may hold for one of the two versions of a row.
    source = f"SELECT {join_items(columns)}\n  FROM {target.earlier}" + (
        f"\n  WHERE {selection.plain}" if names_keys else ""
    )
    matched = "" if names_keys else f" AND (({selection.of_target}) OR ({selection.of_source}))"
    new = "" if names_keys else f" AND ({selection.of_source})"
    lines = [
        f"MERGE INTO {target.table} AS {CURRENT}",
        f"USING (\n  {source}\n) AS {EARLIER}",
        "ON " + "\n  AND ".join(f"{CURRENT}.{name} = {EARLIER}.{name}" for name in keys),
    ]
    if rest:
        sets = join_items(f"{name} = {EARLIER}.{name}" for name in rest)  # Paimon does not resolve the alias in front
        lines.append(f"WHEN MATCHED{matched} THEN UPDATE SET\n    {sets}")
    values = join_items(f"{EARLIER}.{name}" for name in columns)
    lines.append(f"WHEN NOT MATCHED{new} THEN INSERT\n    ({join_items(columns)})\n  VALUES\n    ({values})")
    # Without the alias, which Paimon does not resolve here either; only the table's own columns are in scope.
    lines.append(f"WHEN NOT MATCHED BY SOURCE AND (\n    {target.deleted(selection.plain)}\n  ) THEN DELETE")
    return "\n".join(lines)


def engine_statement(
    template: str,
    name: Sequence[str],
    *,
    quote: Callable[[str], str] = spark_identifier,
    refs: Mapping[str, str] = MappingProxyType({}),
    **fields: object,
) -> str:
    """Return a statement of an engine on a table.

    Args:
        template: The statement, with `name` and other fields. A procedure has the name as text, without the catalog,
            whose procedure it is; `catalog`, `schema` and `table` are its parts.
        quote: Returns a name as an identifier.
        refs: Fields that are tags or branches, as text in a procedure, otherwise as identifiers.
    """
    is_procedure = template.startswith("CALL ")
    spelled = {field: (text_literal if is_procedure else quote)(ref) for field, ref in refs.items()}
    if not is_procedure:
        return template.format(name=".".join(map(quote, name)), **spelled, **fields)
    *catalog, schema, table = name if len(name) > 1 else ("", *name)
    parts = [part for part in (schema, table) if part]
    if not all(_PLAIN.fullmatch(part) for part in parts):
        raise UnsupportedFeatureError(
            f"A procedure reads the name of its table as text, and {'.'.join(parts)!r} would need quotes in it. Rename "
            "the table, or give another name=."
        )
    names = {"name": ".".join(parts), "catalog": ".".join(catalog), "schema": schema, "table": table}
    statement = template.format(**names, **spelled, **fields)
    prefix = "".join(f"{spark_identifier(part)}." for part in catalog if _is_of_catalog(template))
    return f"CALL {prefix}{statement.removeprefix('CALL ')}"


def _is_of_catalog(template: str) -> bool:
    """Return whether a procedure belongs to a catalog: it has a schema."""
    return "." in template.partition("(")[0]
