"""Statistics of data files by column, from the bounds and counts of manifest entries.

Source: iceberg specification, "Manifests"; `InclusiveMetricsEvaluator`.
"""

from collections.abc import Sequence

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergField, arrow_type, is_nested, is_read
from snapshot_explorer.formats.iceberg.metadata.values import single_values
from snapshot_explorer.formats.statistics import bounds_from, with_bounds
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
    return bounds_from({field.name: _of(files, field) for field in fields if is_read(field.type)}, rows)


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


def with_statistics(frame: pa.Table, files: pa.Table, fields: Sequence[IcebergField]) -> pa.Table:
    """Return the FILES frame with `lower`, `upper` and `null_count`: structs with a field per column of the table.

    Args:
        frame: FILES.
        files: The same files in the same order, LIVE with STATISTICS.
    """
    return with_bounds(frame, bounds(files, fields))
