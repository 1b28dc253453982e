"""Column statistics of manifest entries: lower and upper bounds, null counts and key ranges."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import vectors
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.records import Bounds
from snapshot_explorer.formats.paimon.metadata import binary_row
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonField, arrow_type
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.paimon.scan.metadata_columns import HIDDEN
from snapshot_explorer.formats.statistics import struct_of, table_of, with_bounds

_EMPTY_ROW = 12
"""Bytes of a row without fields."""
_PART_ENTRIES = 65_536
"""Entries whose statistics are decoded at a time."""

ColumnPart = tuple[npt.NDArray[np.int64], pa.Array]
Names = tuple[str, ...] | None
_HIDDEN = {field.name: field for field in HIDDEN}


def with_statistics(
    files: pa.Table, entries: pa.Table, schema: PaimonSchema, file_schemas: Mapping[int, PaimonSchema]
) -> pa.Table:
    """Return the FILES frame with `lower`, `upper`, `null_count`, and for keyed tables `min_key` and `max_key`.

    Each is a struct with a field per column of `schema`. Columns are matched by field id with the schema that a
    file was written with. Null is unknown: no statistics, an unordered type, a column whose type has changed since, or
    a column that another file may contain for the same rows. Otherwise a column that a file lacks has as many nulls
    as the file has rows. Bounds of text may be truncated: a lower bound is never greater and an upper bound never less
    than the actual values.

    Source: paimon docs, "Manifest"; paimon SimpleStatsEvolution.
    """
    # Decoding takes many times the space of its result, so only some entries are decoded at a time.
    starts = range(0, max(len(entries), 1), _PART_ENTRIES)
    return pa.concat_tables(
        [
            _with_statistics(
                files.slice(start, _PART_ENTRIES), entries.slice(start, _PART_ENTRIES), schema, file_schemas
            )
            for start in starts
        ]
    )


def _with_statistics(
    files: pa.Table, entries: pa.Table, schema: PaimonSchema, file_schemas: Mapping[int, PaimonSchema]
) -> pa.Table:
    files = with_bounds(files, bounds(entries, schema.fields, file_schemas))
    if not schema.trimmed_primary_keys:
        return files
    keys = whole_keys(entries, schema)
    for name, values in (("min_key", keys.lower), ("max_key", keys.upper)):
        files = files.append_column(name, pa.chunked_array([struct_of(values)]))
    return files


def whole_keys(entries: pa.Table, schema: PaimonSchema) -> Bounds:
    """Return the minimum and the maximum key of each file. As a whole they bound its keys; columns alone do not."""
    fields = [schema.field(name) for name in schema.trimmed_primary_keys]
    lower, upper = (binary_row.decode(entries.column(name), fields, lenient=True) for name in ("min_key", "max_key"))
    unknown = pa.table([pa.nulls(len(entries), pa.int64()) for _ in fields], names=[field.name for field in fields])
    return Bounds(lower=lower, upper=upper, null_count=unknown, rows=single_chunk(entries.column("rows")))


def bounds(entries: pa.Table, fields: Sequence[PaimonField], file_schemas: Mapping[int, PaimonSchema]) -> Bounds:
    """Return the bounds and null counts of columns; see `with_statistics`.

    Args:
        entries: ENTRIES of files, with the rows of each.
        file_schemas: The schemas that the files were written with, by id.
    """
    lower, upper, nulls = _values(entries, fields, file_schemas)
    types = [vectors.as_lists(arrow_type(field.type)) for field in fields]
    names = [field.name for field in fields]
    return Bounds(
        lower=_table(lower, names, types, len(entries)),
        upper=_table(upper, names, types, len(entries)),
        null_count=_table(nulls, names, [pa.int64()] * len(names), len(entries)),
        rows=single_chunk(entries.column("rows")),
    )


def key_bounds(entries: pa.Table, schema: PaimonSchema, file_schemas: Mapping[int, PaimonSchema]) -> Bounds:
    """Return the bounds of the key columns, from the minimum and maximum keys and from key statistics.

    The minimum and maximum whole keys bound only the first column. Bounds are unknown for a file written with another
    key or with other key types.

    Source: paimon docs, "Manifest"; paimon KeyValueFileStoreScan.
    """
    fields = [schema.field(name) for name in schema.trimmed_primary_keys]
    key_fields = [(field.id, replace(field.type, nullable=True)) for field in fields]
    same_keys = [
        number
        for number, other in file_schemas.items()
        if [(f.id, replace(f.type, nullable=True)) for f in map(other.field, other.trimmed_primary_keys)] == key_fields
    ]
    is_known = pc.is_in(entries.column("schema_id"), pa.array(same_keys, pa.int64()))
    ends = {
        name: binary_row.decode(
            pc.if_else(is_known, entries.column(name), pa.scalar(None, pa.binary())), fields, lenient=True
        )
        for name in ("min_key", "max_key", "key_min", "key_max")
    }
    unknown = pa.table([pa.nulls(len(entries), pa.int64()) for _ in fields], names=[field.name for field in fields])
    return Bounds(
        lower=_first_from(ends["min_key"], ends["key_min"]),
        upper=_first_from(ends["max_key"], ends["key_max"]),
        null_count=unknown,
        rows=single_chunk(entries.column("rows")),
    )


def _first_from(keys: pa.Table, others: pa.Table) -> pa.Table:
    return pa.Table.from_arrays([keys.column(0), *others.columns[1:]], names=keys.column_names)


def _table(
    columns: Sequence[Sequence[ColumnPart]],
    names: Sequence[str],
    types: Sequence[pa.DataType],
    rows: int,
) -> pa.Table:
    """Return a table with these columns, each assembled from parts: row numbers and their values."""
    arrays = []
    for parts, dtype in zip(columns, types, strict=True):
        if len(parts) == 1 and len(parts[0][0]) == rows:
            arrays.append(parts[0][1])
            continue
        indices = np.full(rows, -1, np.int64)
        begin = 0
        for at, values in parts:
            indices[at] = np.arange(begin, begin + len(values))
            begin += len(values)
        joined = pa.concat_arrays([values for _, values in parts]) if parts else pa.nulls(0, dtype)
        arrays.append(joined.take(pa.array(indices, mask=indices < 0)))
    if not arrays:
        return table_of({}, rows)
    return pa.Table.from_arrays(arrays, schema=pa.schema(list(zip(names, types, strict=True))))


def _values(
    entries: pa.Table, value_fields: Sequence[PaimonField], file_schemas: Mapping[int, PaimonSchema]
) -> tuple[list[list[ColumnPart]], list[list[ColumnPart]], list[list[ColumnPart]]]:
    """Return for each requested column the parts of its lower bounds, upper bounds and null counts."""
    lower: list[list[ColumnPart]] = [[] for _ in value_fields]
    upper: list[list[ColumnPart]] = [[] for _ in value_fields]
    nulls: list[list[ColumnPart]] = [[] for _ in value_fields]
    for fields, covered, at in _groups(entries, file_schemas):
        group = entries if len(at) == len(entries) else entries.take(pa.array(at))
        minimum = binary_row.decode(group.column("value_min"), covered, lenient=True)
        maximum = binary_row.decode(group.column("value_max"), covered, lenient=True)
        positions = {field.id: position for position, field in enumerate(covered)}
        in_file = {field.id: field for field in fields}
        for index, field in enumerate(value_fields):
            position = positions.get(field.id)
            if position is None:
                if field.id not in in_file:
                    nulls[index].append((at, _missing_null_counts(group)))
                continue
            # A cast may truncate or round values, or make them null: bounds of another type are unknown.
            if replace(covered[position].type, nullable=True) == replace(field.type, nullable=True):
                nulls[index].append((at, null_counts(group.column("value_null_counts"), position)))
                lower[index].append((at, single_chunk(minimum.column(position))))
                upper[index].append((at, single_chunk(maximum.column(position))))
    return lower, upper, nulls


def _missing_null_counts(group: pa.Table) -> pa.Array:
    """Return the null counts of a column that files lack: unknown if another file may contain it for these rows."""
    spread = pc.is_valid(group.column("first_row_id"))
    return pc.if_else(spread, pa.scalar(None, pa.int64()), group.column("rows")).combine_chunks()


def null_counts(column: pa.ChunkedArray, position: int) -> pa.Array:
    """Return the element at a position of each list in a column; null where a list is shorter or null."""
    lists = single_chunk(column)
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    begins = np.cumsum(sizes) - sizes
    is_present = sizes > position
    return lists.flatten().take(pa.array(begins + position, mask=~is_present).cast(pa.int64()))


def _groups(
    entries: pa.Table, file_schemas: Mapping[int, PaimonSchema]
) -> Sequence[tuple[Sequence[PaimonField], Sequence[PaimonField], npt.NDArray[np.int64]]]:
    """Return groups of entries whose statistics cover the same columns.

    Each is the columns of the files, the columns with statistics, and the row numbers.
    """
    groups: dict[tuple[int, Names, Names], npt.NDArray[np.int64] | list[int]] = {}
    numbers, lists = (
        entries.column("schema_id"),
        [entries.column(name) for name in ("write_columns", "value_stats_columns")],
    )
    without = _without_fields(entries)
    if not without.any() and all(column.null_count == len(column) for column in lists):
        of_rows = numbers.to_numpy()
        groups = {(number, None, None): np.flatnonzero(of_rows == number) for number in pc.unique(numbers).to_pylist()}
    else:
        rows_of: dict[tuple[int, Names, Names], list[int]] = {}
        keys = zip(numbers.to_pylist(), *map(_tuples, lists), strict=True)
        for row, (number, written, covered) in enumerate(keys):
            key = number, written, () if covered is None and without[row] else covered
            rows_of.setdefault(key, []).append(row)
        groups |= rows_of
    result = []
    for (schema_id, written, covered), rows in groups.items():
        schema = file_schemas[schema_id]
        fields = schema.fields if written is None else [_field(schema, name) for name in written]
        of = fields if covered is None else [_field(schema, name) for name in covered]
        result.append((fields, of, np.array(rows, np.int64)))
    return result


def _without_fields(entries: pa.Table) -> npt.NDArray[np.bool_]:
    """Return for each entry whether its statistics have no fields, as pypaimon writes them for files of vectors."""
    lengths = pc.fill_null(pc.binary_length(entries.column("value_min")), 0)
    return np.asarray(lengths.to_numpy() == _EMPTY_ROW)


def _tuples(column: pa.ChunkedArray) -> list[Names]:
    if column.null_count == len(column):
        return [None] * len(column)
    return [None if names is None else tuple(names) for names in column.to_pylist()]


def _field(schema: PaimonSchema, name: str) -> PaimonField:
    return _HIDDEN.get(name) or schema.field(name)
