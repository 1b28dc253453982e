"""Rows that tell of changes: which columns they have, conditions on them, and reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.engines import local
from snapshot_explorer.engines.scan import scan_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snapshot_explorer.model import RowChanges

_ROW_KIND = "rowkind"


def read_changes(
    changes: RowChanges, columns: Sequence[str] | None, where: str | None, *, limit: int | None = None
) -> pa.Table:
    """Return changed rows: `rowkind`, then the columns of the schema or the given ones.

    Args:
        changes: The rows.
        columns: The columns behind `rowkind`, in order; all without it.
        where: A condition in SQL on `rowkind`, the columns of the schema and the metadata columns.
        limit: Return at most this many rows, the first ones.
    """
    if _ROW_KIND in changes.schema.names:
        changes.splits(None)  # the format refuses a column of that name
    known = {_ROW_KIND, *changes.schema.names}
    more = [field for field in changes.metadata_columns if field.name not in known]
    schema = pa.schema([pa.field(_ROW_KIND, pa.string(), nullable=False), *changes.schema, *more])
    shown = [_ROW_KIND, *changes.schema.names]
    wanted = shown if columns is None else columns if isinstance(columns, str) else [_ROW_KIND, *columns]
    scan = scan_of(schema, wanted, where, limit)
    return local.to_arrow(changes.reader, changes.splits(scan.condition), scan)
