"""Statistics of data files by column, from the bounds and counts of manifest entries.

Source: iceberg specification, "Manifests"; `InclusiveMetricsEvaluator`.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.formats.iceberg.metadata.types import IcebergField, arrow_type, is_nested, is_read
from snapshot_explorer.formats.iceberg.metadata.values import single_values
from snapshot_explorer.model import Bounds

_UNORDERED = ("uuid", "variant", "unknown")
"""Types whose bounds are not used: Java's order of uuids is not that of their text."""


def bounds(files: pa.Table, fields: Sequence[IcebergField]) -> Bounds:
    """Return the bounds of columns in data files. Unknown is null.

    Bounds of text and binary may be cut: the least is at most the real one, the greatest at least. Deleted rows count.

    Args:
        files: LIVE with STATISTICS.
    """
    rows = single_chunk(files.column("record_count"))
    lower, upper, nulls = {}, {}, {}
    for field in fields:
        if not is_read(field.type):
            continue
        lower[field.name], upper[field.name], nulls[field.name] = _of(files, field)
    return Bounds(lower=_table(lower, rows), upper=_table(upper, rows), null_count=_table(nulls, rows), rows=rows)


def _of(files: pa.Table, field: IcebergField) -> tuple[pa.Array, pa.Array, pa.Array]:
    key = pa.scalar(field.id, pa.int32())
    nulls = pc.map_lookup(single_chunk(files.column("null_value_counts")), key, "first")
    nulls = pc.if_else(pc.less(nulls, 0), pa.scalar(None, pa.int64()), nulls)
    if is_nested(field.type) or field.type.root in _UNORDERED:
        unknown = pa.nulls(len(files), arrow_type(field.type))
        return unknown, unknown, nulls
    ends = (
        _without_nan(single_values(pc.map_lookup(single_chunk(files.column(name)), key, "first"), field.type))
        for name in ("lower_bounds", "upper_bounds")
    )
    lower, upper = ends
    return lower, upper, nulls


def _without_nan(values: pa.Array) -> pa.Array:
    """Return values, NaN as unknown: early writers used it as a bound."""
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)


def _table(columns: Mapping[str, pa.Array], rows: pa.Array) -> pa.Table:
    return pa.table(dict(columns)) if columns else pa.table({"rows": rows}).select([])


def with_statistics(frame: pa.Table, files: pa.Table, fields: Sequence[IcebergField]) -> pa.Table:
    """Return the FILES frame with `lower`, `upper` and `null_count`: structs with a field per column of the table.

    Args:
        frame: FILES.
        files: The same files in the same order, LIVE with STATISTICS.
    """
    known = bounds(files, fields)
    for name, values in (("lower", known.lower), ("upper", known.upper), ("null_count", known.null_count)):
        columns = [single_chunk(column) for column in values.columns]
        whole = (
            pa.StructArray.from_arrays(columns, fields=[pa.field(f.name, f.type) for f in values.schema])
            if columns
            else pa.array([{}] * len(files), pa.struct([]))
        )
        frame = frame.append_column(name, pa.chunked_array([whole]))
    return frame
