"""Rows of metadata files as Arrow: manifests and manifest lists in Avro, ORC or Parquet, detected by their first bytes.

The file names have no extension. An Arrow schema selects the fields to read, by name: a field that a file lacks is
null, a field outside of the schema is skipped.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import orc_tail, parquet_pages
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.nesting import with_items
from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.limits import DEFAULT, Limits
from snapshot_explorer.formats.avro.container import MAGIC, Container, Shape, read_container
from snapshot_explorer.formats.avro.files import decode, in_order

_BATCH = 128 * 2**20


def rows(
    files: Sequence[tuple[str, bytes]], schema: pa.Schema, *, limits: Limits = DEFAULT
) -> tuple[pa.Table, list[int]]:
    """Return the rows of metadata files, in the order of the files, and the number of rows of each.

    Files with one Avro schema are decoded together, so that many small files cost little more than one large one.

    Args:
        files: Path, for messages, and content of each.
        schema: The fields to read, nested as in the files. A field that is not nullable is required.

    Source: paimon docs, "Manifest"; Avro specification.
    """
    shapes: dict[bytes, Shape] = {}
    containers: dict[int, Container] = {}
    tables: list[tuple[Sequence[int], pa.Table]] = []
    counts = np.zeros(len(files), np.int64)
    for index, (path, content) in enumerate(files):
        if content[: len(MAGIC)] == MAGIC:
            containers[index] = read_container(content, path, shapes, limits=limits)
            counts[index] = containers[index].rows
        else:
            table = _columnar(content, path, schema, limits)
            tables.append(((index,), table))
            counts[index] = table.num_rows
    target = pa.struct(list(schema))
    tables += [
        (part.files, _table(part.rows, schema, part.containers[0].path))
        for part in decode(containers, lambda _: target, batch_bytes=_BATCH, broken=_broken_error)
    ]
    if not tables:
        return schema.empty_table(), []
    order = [index for indices, _ in tables for index in indices]
    return in_order(pa.concat_tables([table for _, table in tables]), order, counts), counts.tolist()


def _table(records: pa.StructArray, schema: pa.Schema, path: str) -> pa.Table:
    table = pa.Table.from_arrays(records.flatten(), schema=schema)
    for field, column in zip(schema, table.columns, strict=True):
        if not field.nullable and column.null_count:
            raise _broken_error(path, f"a row has no {field.name}")
    return table


def _broken_error(path: str, problem: str) -> CorruptTableError:
    return CorruptTableError(
        f"{path} is not readable metadata: {problem}. It is cut short or damaged; "
        "compare it with a copy of the table, or choose another version."
    )


def _columnar(content: bytes, path: str, schema: pa.Schema, limits: Limits) -> pa.Table:
    if not (content[:3] == b"ORC" or content[:4] == b"PAR1"):
        raise _broken_error(
            path, f"it begins with {content[:4]!r}, which is not Avro, ORC or Parquet" if content else "it is empty"
        )
    try:
        read = _orc if content[:3] == b"ORC" else _parquet
        table = read(content, path, schema, limits)
        conformed = _conform(table, schema, path)
        # Detects text that is not UTF-8.
        conformed.validate(full=True)
    except (pa.ArrowException, OSError, CorruptBytesError, UnicodeDecodeError) as error:
        resources.check(error, f"{path} could not be read")
        raise _broken_error(path, str(error)) from error
    return conformed


def _orc(content: bytes, path: str, schema: pa.Schema, limits: Limits) -> pa.Table:
    from pyarrow import orc  # noqa: PLC0415 - not every table has such manifests, and it takes time to load

    orc_tail.check_types(pa.BufferReader(content))
    orc_tail.check_stripes(pa.BufferReader(content))
    file = orc.ORCFile(pa.BufferReader(content))
    limits.check_rows(path, len(content), file.nrows)
    return file.read(columns=[name for name in schema.names if name in file.schema.names])


def _parquet(content: bytes, path: str, schema: pa.Schema, limits: Limits) -> pa.Table:
    source = pa.BufferReader(content)
    file = parquet_pages.open_metadata_file(source)
    columns = [name for name in schema.names if name in file.schema_arrow.names]
    parquet_pages.check(file, source, path, columns=columns, limits=limits)
    if not file.num_row_groups:  # pyarrow before 19 fails
        return file.schema_arrow.empty_table().select(columns)
    return file.read(columns=columns)


def _conform(table: pa.Table, schema: pa.Schema, path: str) -> pa.Table:
    columns = []
    for field in schema:
        if field.name in table.column_names:
            columns.append(_as(single_chunk(table.column(field.name)), field.type))
        elif field.nullable:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            raise _broken_error(path, f"it has no field {field.name}")
        if not field.nullable and columns[-1].null_count:
            raise _broken_error(path, f"a row has no {field.name}")
    return pa.Table.from_arrays(columns, schema=schema)


def _as(column: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_list(target) and pa.types.is_list(column.type):
        return with_items(column, target, _as(column.values, target.value_type))
    if not pa.types.is_struct(target):
        return column.cast(target, safe=not pa.types.is_timestamp(target))
    if not pa.types.is_struct(column.type):
        raise pa.ArrowInvalid(f"{column.type} where a record was expected")
    present = {part.name: child for part, child in zip(column.type, column.flatten(), strict=True)}
    parts = [
        _as(present[part.name], part.type) if part.name in present else pa.nulls(len(column), part.type)
        for part in target
    ]
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=mask)
