"""Statistics of data files as columns of a table of files: structs with a field per column of the table."""

from collections.abc import Mapping

import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.model import Bounds


def with_bounds(files: pa.Table, known: Bounds) -> pa.Table:
    """Return a table of files with `lower`, `upper` and `null_count`."""
    for name, values in (("lower", known.lower), ("upper", known.upper), ("null_count", known.null_count)):
        files = files.append_column(name, pa.chunked_array([struct_of(values)]))
    return files


def struct_of(values: pa.Table) -> pa.StructArray:
    """Return the rows of a table as structs; empty ones without columns."""
    if not values.num_columns:
        return pa.array([{}] * len(values), pa.struct([]))
    columns = [single_chunk(column) for column in values.columns]
    return pa.StructArray.from_arrays(columns, fields=[pa.field(f.name, f.type) for f in values.schema])


def bounds_from(columns: Mapping[str, tuple[pa.Array, pa.Array, pa.Array]], rows: pa.Array) -> Bounds:
    """Return bounds from the minimum, maximum and null count of each column."""
    ends = (table_of({name: values[index] for name, values in columns.items()}, len(rows)) for index in range(3))
    lower, upper, nulls = ends
    return Bounds(lower=lower, upper=upper, null_count=nulls, rows=rows)


def table_of(columns: Mapping[str, pa.Array], rows: int) -> pa.Table:
    """Return a table of columns, which has these rows also without any."""
    return pa.table(dict(columns)) if columns else pa.table({"": pa.nulls(rows)}).select([])
