"""Rows that tell of changes: which columns they have, conditions on them, and reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.engines import local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snapshot_explorer.formats import TableFormat
    from snapshot_explorer.model import Split

_ROW_KIND = "rowkind"


def changes_condition(table_format: TableFormat, where: str | None, schema: pa.Schema) -> local.Condition | None:
    """Return a condition on rows that tell of changes: on `rowkind`, the columns of the schema and hidden ones."""
    return None if where is None else local.condition(where, _told(table_format, schema))


def _told(table_format: TableFormat, schema: pa.Schema) -> pa.Schema:
    """Return the columns that rows of changes have, those included that are given only when they are asked for."""
    known = {_ROW_KIND, *schema.names}
    hidden = [field for field in table_format.hidden_change_columns() if field.name not in known]
    return pa.schema([pa.field(_ROW_KIND, pa.string(), nullable=False), *schema, *hidden])


def read_changes(
    table_format: TableFormat,
    splits: Sequence[Split],
    schema: pa.Schema,
    *,
    columns: Sequence[str] | None,
    condition: local.Condition | None,
    limit: int | None = None,
) -> pa.Table:
    """Return rows of splits that tell of changes: `rowkind`, then the columns of the schema or those asked for."""
    shown = [_ROW_KIND, *schema.names]
    wanted = shown if columns is None else columns if isinstance(columns, str) else [_ROW_KIND, *columns]
    together = _told(table_format, schema)
    return local.to_arrow(table_format, splits, columns=wanted, condition=condition, limit=limit, schema=together)
