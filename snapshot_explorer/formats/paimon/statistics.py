"""What entries say of the values in their files: least, greatest and number of nulls per column, and key ranges."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.formats.paimon import binary_row
from snapshot_explorer.formats.paimon.schema import DataType, Field, Schema, arrow_type

Piece = tuple[npt.NDArray[np.int64], pa.Array]
Names = tuple[str, ...] | None
_ROW_TRACKING = {
    "_ROW_ID": Field(id=2147483642, name="_ROW_ID", type=DataType(root="BIGINT")),
    "_SEQUENCE_NUMBER": Field(id=2147483646, name="_SEQUENCE_NUMBER", type=DataType(root="BIGINT")),
}


def with_statistics(files: pa.Table, entries: pa.Table, schema: Schema, file_schemas: Mapping[int, Schema]) -> pa.Table:
    """Return the FILES frame with `lower`, `upper`, `null_count`, and for keyed tables `min_key` and `max_key`.

    Each is a struct with a field per column of `schema`. Columns are followed by field id from the schema that a
    file was written with. Null is unknown: no statistics, a type without order, a column whose type has changed
    since, a column that another file may have for the same rows. A column that a file lacks otherwise has as many nulls
    as the file has rows. Bounds of text may be cut: the least
    is at most the real one, the greatest at least.

    Source: paimon docs, "Manifest"; paimon SimpleStatsEvolution.
    """
    lower, upper, nulls = _values(entries, schema, file_schemas)
    types = [arrow_type(field.type) for field in schema.fields]
    names = [field.name for field in schema.fields]
    files = files.append_column("lower", _struct(lower, names, types, len(entries)))
    files = files.append_column("upper", _struct(upper, names, types, len(entries)))
    files = files.append_column("null_count", _struct(nulls, names, [pa.int64()] * len(names), len(entries)))
    keys = schema.trimmed_primary_keys
    if not keys:
        return files
    fields = [schema.field(name) for name in keys]
    for name in ("min_key", "max_key"):
        values = binary_row.decode(entries.column(name), fields, lenient=True)
        files = files.append_column(name, pa.chunked_array([_whole(values)]))
    return files


def _whole(values: pa.Table) -> pa.StructArray:
    columns = [column.combine_chunks() for column in values.columns]
    return pa.StructArray.from_arrays(columns, fields=[pa.field(f.name, f.type) for f in values.schema])


def _struct(
    columns: Sequence[Sequence[Piece]],
    names: Sequence[str],
    types: Sequence[pa.DataType],
    rows: int,
) -> pa.StructArray:
    """Return a struct with a field per column, from pieces: row numbers and values."""
    arrays = []
    for pieces, kind in zip(columns, types, strict=True):
        places = np.full(rows, -1, np.int64)
        begin = 0
        for at, values in pieces:
            places[at] = np.arange(begin, begin + len(values))
            begin += len(values)
        together = pa.concat_arrays([values for _, values in pieces]) if pieces else pa.nulls(0, kind)
        arrays.append(together.take(pa.array(places, mask=places < 0)))
    fields = [pa.field(name, kind) for name, kind in zip(names, types, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _values(
    entries: pa.Table, schema: Schema, file_schemas: Mapping[int, Schema]
) -> tuple[list[list[Piece]], list[list[Piece]], list[list[Piece]]]:
    """Return for each column of the schema the pieces of lower, upper and null count."""
    lower: list[list[Piece]] = [[] for _ in schema.fields]
    upper: list[list[Piece]] = [[] for _ in schema.fields]
    nulls: list[list[Piece]] = [[] for _ in schema.fields]
    for fields, covered, at in _groups(entries, file_schemas):
        group = entries.take(pa.array(at))
        least = binary_row.decode(group.column("value_min"), covered, lenient=True)
        greatest = binary_row.decode(group.column("value_max"), covered, lenient=True)
        positions = {field.id: position for position, field in enumerate(covered)}
        in_file = {field.id for field in fields}
        for index, field in enumerate(schema.fields):
            position = positions.get(field.id)
            if position is None:
                if field.id not in in_file:
                    nulls[index].append((at, _without(group)))
                continue
            nulls[index].append((at, _null_counts(group, position)))
            if arrow_type(covered[position].type) == arrow_type(field.type):
                lower[index].append((at, least.column(position).combine_chunks()))
                upper[index].append((at, greatest.column(position).combine_chunks()))
    return lower, upper, nulls


def _without(group: pa.Table) -> pa.Array:
    """Return how many nulls a column has that a file lacks: unknown where another file may have it for these rows."""
    spread = pc.is_valid(group.column("first_row_id"))
    return pc.if_else(spread, pa.scalar(None, pa.int64()), group.column("rows")).combine_chunks()


def _null_counts(group: pa.Table, position: int) -> pa.Array:
    lists = group.column("value_null_counts").combine_chunks()
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    begins = np.cumsum(sizes) - sizes
    there = sizes > position
    return lists.flatten().take(pa.array(begins + position, mask=~there).cast(pa.int64()))


def _groups(
    entries: pa.Table, file_schemas: Mapping[int, Schema]
) -> Sequence[tuple[Sequence[Field], Sequence[Field], npt.NDArray[np.int64]]]:
    """Return entries by what their statistics cover: the file's columns, the covered ones, and the row numbers."""
    keys = list(
        zip(
            entries.column("schema_id").to_pylist(),
            _tuples(entries.column("write_columns")),
            _tuples(entries.column("value_stats_columns")),
            strict=True,
        )
    )
    groups: dict[tuple[int, Names, Names], list[int]] = {}
    for row, key in enumerate(keys):
        groups.setdefault(key, []).append(row)
    found = []
    for (schema_id, written, covered), rows in groups.items():
        schema = file_schemas[schema_id]
        fields = schema.fields if written is None else [_field(schema, name) for name in written]
        of = fields if covered is None else [_field(schema, name) for name in covered]
        found.append((fields, of, np.array(rows, np.int64)))
    return found


def _tuples(column: pa.ChunkedArray) -> list[Names]:
    if column.null_count == len(column):
        return [None] * len(column)
    return [None if names is None else tuple(names) for names in column.to_pylist()]


def _field(schema: Schema, name: str) -> Field:
    return _ROW_TRACKING.get(name) or schema.field(name)
