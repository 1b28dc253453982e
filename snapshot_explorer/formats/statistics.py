"""Statistics of data files as columns of a table of files: structs with a field per column of the table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.records import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsFile:
    """A metadata file that records statistics of data files."""

    path: str
    what: str
    """commit, checkpoint or manifest."""
    first: int
    last: int
    """The first and the last version that need it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsFiles:
    """The metadata files of a table that record statistics of data files."""

    files: Sequence[StatisticsFile]
    read: Callable[[Sequence[StatisticsFile]], Sequence[Sequence[Bounds]]] = lambda files: [() for _ in files]
    """Reads the statistics of some of the files at once, including those of data files that they remove.

    Several for each file: adds and removes, and keys, have their own statistics.
    """
    unread: Sequence[str] = ()
    """Metadata that could not be read, and may name other such files; a sentence each."""


def by_path(files: Sequence[StatisticsFile]) -> list[StatisticsFile]:
    """Return each file once, with all versions that need it. The input is ordered by ascending version."""
    result: dict[str, StatisticsFile] = {}
    for file in files:
        known = result.setdefault(file.path, file)
        if known is not file:
            result[file.path] = replace(known, last=file.last)
    return list(result.values())


def rename_columns(known: Bounds, names: Mapping[str, str]) -> Bounds:
    """Return the bounds with columns renamed; columns without a new name are left out."""
    columns = [name for name in known.lower.column_names if name in names]
    tables = (
        table.select(columns).rename_columns([names[name] for name in columns])
        for table in (known.lower, known.upper, known.null_count)
    )
    lower, upper, null_count = tables
    return Bounds(lower=lower, upper=upper, null_count=null_count, rows=known.rows)


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
    """Return a table of columns, with this number of rows even without columns."""
    return pa.table(dict(columns)) if columns else pa.table({"": pa.nulls(rows)}).select([])
