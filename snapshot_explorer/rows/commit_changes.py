"""Read changed rows: columns, conditions and limit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.engines import local
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.model import ROW_KIND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snapshot_explorer.formats.interface import RowChanges


def read_changes(
    changes: RowChanges, columns: Sequence[str] | None, where: str | None, *, limit: int | None = None
) -> pa.Table:
    """Return changed rows: `rowkind`, then the given columns, by default those of the schema.

    Args:
        columns: The columns after `rowkind`, in order; by default all.
        where: A condition in SQL on `rowkind`, the columns of the schema and the metadata columns.
        limit: Return at most the first rows, this many.
    """
    if ROW_KIND in changes.schema.names:
        changes.splits(None)  # the format raises for a column of that name
    known = {ROW_KIND, *changes.schema.names}
    more = [field for field in changes.metadata_columns if field.name not in known]
    schema = pa.schema([pa.field(ROW_KIND, pa.string(), nullable=False), *changes.schema, *more])
    shown = [ROW_KIND, *changes.schema.names]
    is_list = isinstance(columns, Iterable) and not isinstance(columns, str)
    selected = shown if columns is None else [ROW_KIND, *columns] if is_list else columns
    scan = scan_of(schema, selected, where, limit)
    return local.to_arrow(changes.reader, changes.splits(scan.condition), scan)
