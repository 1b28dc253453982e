"""Data files and delete files: the ids of columns, values in the types of the table, and deleted positions.

The columns of a data file have their field ids stored in the file, by name, or by position.

Source: DuckLake specification 1.0, "Data Types", "Field Identifiers", "Name Mapping", "ducklake_delete_file";
reference, "Types", "Inlined data", "Columns and their evolution", "Deletes".
"""

import os
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import uuids
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.nesting import TEXTS, parts_of, plain
from snapshot_explorer.arrow.roaring import NOTHING, Positions
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.old_libraries import installed_version, is_older
from snapshot_explorer.formats.corrupt_files import named_in_errors
from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.ducklake.metadata.data_types import (
    NESTED,
    LakeField,
    arrow_type,
    sql_type,
    type_of,
    type_text,
    walk,
)
from snapshot_explorer.formats.ducklake.metadata.databases import CONFINED
from snapshot_explorer.formats.ducklake.metadata.paths import absent_data_error
from snapshot_explorer.formats.ducklake.metadata.schemas import damaged
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.files import variant_columns
from snapshot_explorer.formats.files.field_columns import FieldRules, FileField, file_field, has_id, other_type
from snapshot_explorer.formats.files.parquet_file import open_parquet
from snapshot_explorer.formats.files.vector_blobs import checked_body, positions_of
from snapshot_explorer.storage import Storage

if TYPE_CHECKING:
    import duckdb

_STRINGS = (pa.string(), pa.large_string(), pa.string_view())
_INTERVAL_BYTES = 12
_ZONED = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?")
_DAY = 86_400_000_000
_FIRST_NESTED_TEXT = "1.3"
"""The first release of DuckDB that casts text of nested values correctly."""
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_MAX_POSITION = 1 << 62
_SNAPSHOTS = "_ducklake_internal_snapshot_id"
DELETE_FORMATS = ("parquet", "puffin")


def conform_leaf(values: pa.Array, field: LakeField) -> pa.Array:
    """Return values that are not nested in the Arrow type of the table's column.

    Raises:
        UnsupportedFeatureError: Their type cannot represent the column's.
        pyarrow.ArrowException, ValueError: A value is not of the type.
    """
    target = arrow_type(field)
    values = plain(values)
    if values.type == target and field.type != "variant":
        return values
    if pa.types.is_null(values.type) or field.type == "unknown":
        return pa.nulls(len(values), target)
    is_readable, convert = _CONVERSIONS[type_of(field.type).family]
    if not is_readable(values.type, target):
        raise other_type(values, type_text(field))
    return convert(values, target)


def _is_bytes(stored: pa.DataType) -> bool:
    return (stored in TEXTS and stored not in _STRINGS) or pa.types.is_fixed_size_binary(stored)


def _is_narrower_decimal(stored: pa.DataType, target: pa.DataType) -> bool:
    if not pa.types.is_decimal(stored) or target.scale < stored.scale:
        return False
    return bool(target.precision - target.scale >= stored.precision - stored.scale)


def _is_wide_integer(stored: pa.DataType) -> bool:
    is_whole = pa.types.is_integer(stored) or (pa.types.is_decimal(stored) and not stored.scale)
    return is_whole or stored in _STRINGS or pa.types.is_floating(stored)


def _each(values: pa.Array, target: pa.DataType, convert: Callable[[Any], object]) -> pa.Array:
    return pa.array([None if value is None else convert(value) for value in values.to_pylist()], target)


def _wide_integers(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return 128-bit integers as text. Data files contain doubles: the stored double is the value."""
    return _each(values, target, lambda value: str(int(value)))


def _uuids(values: pa.Array, target: pa.DataType) -> pa.Array:
    return values.cast(target) if values.type in _STRINGS else uuids.uuid_texts(values)


def _zoned_times(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_time(values.type):
        return values.cast(target)
    return _each(values, pa.int64(), _utc_micros).view(target)


def _utc_micros(text: str) -> int:
    """Return the microseconds of the day in UTC of a time with an offset, such as 10:30:00+02."""
    match = _ZONED.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:50]!r} is no time with an offset")
    hours, minutes, seconds, fraction, sign, *offset = match.groups()
    micros = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 1_000_000 + int((fraction or "0").ljust(6, "0"))
    shift = sum(int(part or 0) * unit for part, unit in zip(offset, (3600, 60, 1), strict=True)) * 1_000_000
    return (micros - (shift if sign == "+" else -shift)) % _DAY


def _timestamps(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return timestamps; whether the file marks them as UTC does not matter."""
    return values.view(pa.timestamp(values.type.unit)).cast(pa.timestamp(target.unit)).view(target)


def _intervals(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return intervals; data files have 12 bytes: months, days and milliseconds, little-endian."""

    def interval(value: bytes) -> pa.MonthDayNano:
        months, days, millis = struct.unpack("<iiI", value)
        return pa.MonthDayNano((months, days, millis * 1_000_000))

    return _each(values, target, interval)


def _variants(values: pa.Array, target: pa.DataType) -> pa.Array:
    whole = variant_columns.unshred_variants(values, target)
    # Below a null variant DuckDB has nulls, which Spark does not accept there.
    children = [pc.fill_null(whole.field(index), b"") for index in range(target.num_fields)]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=whole.is_null())


def _cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    return values.cast(target)


_CONVERSIONS: Mapping[
    str, tuple[Callable[[pa.DataType, pa.DataType], bool], Callable[[pa.Array, pa.DataType], pa.Array]]
] = {
    "boolean": (lambda stored, target: stored == target, _cast),
    "bytes": (lambda stored, _: _is_bytes(stored), _cast),
    "date": (lambda stored, _: pa.types.is_date(stored), _cast),
    "decimal": (_is_narrower_decimal, _cast),
    "float": (lambda stored, target: stored in (pa.float32(), target), _cast),
    "integer": (lambda stored, _: pa.types.is_integer(stored), _cast),
    "interval": (lambda stored, _: stored == pa.binary(_INTERVAL_BYTES), _intervals),
    "text": (lambda stored, _: stored in TEXTS, _cast),
    "time": (lambda stored, _: pa.types.is_time(stored), _cast),
    "timestamp": (lambda stored, _: pa.types.is_timestamp(stored), _timestamps),
    "uuid": (lambda stored, _: stored in _STRINGS or stored == pa.binary(uuids.WIDTH), _uuids),
    "variant": (lambda stored, _: pa.types.is_struct(stored), _variants),
    "wide integer": (lambda stored, _: _is_wide_integer(stored), _wide_integers),
    "zoned time": (lambda stored, _: stored in _STRINGS or pa.types.is_time(stored), _zoned_times),
}
"""Whether values of an Arrow type are read as a type of the table, by its family, and how."""


@cache
def _confined_duckdb(process: int) -> "duckdb.DuckDBPyConnection":  # noqa: ARG001 - DuckDB does not survive a fork
    """Return an instance of DuckDB without access to files. Opening one takes ten times as long as a cast."""
    import duckdb

    return duckdb.connect(config=CONFINED)


def cast_texts(texts: pa.Array, field: LakeField) -> pa.Array:
    """Return values that the catalog has as DuckDB's text, in the types in which data files have them, or text.

    DuckDB casts them, without access to files, in UTC. Nested ones have the names of the field's parts.

    Raises:
        ValueError: A text is not of the type.
    """
    if type_of(field.type).sql == "VARCHAR":
        return texts  # `conform_leaf` reads them
    if field.type in NESTED and is_older(installed_version("duckdb"), _FIRST_NESTED_TEXT):
        raise refusal(features.OLD_NESTED_TEXT, column=field.name, installed=installed_version("duckdb"))
    if any(item.type == "variant" for item in walk((field,))):
        raise refusal(features.INLINED_VARIANTS, column=field.name)
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), arrow_type(field))
    import duckdb

    try:
        with closing(_confined_duckdb(os.getpid()).cursor()) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("texts", pa.table({"position": np.arange(len(texts)), "value": texts}))
            query = f"SELECT CAST(value AS {sql_type(field)}) AS value FROM texts ORDER BY position"  # noqa: S608 - no text of the table
            return connection.sql(query).to_arrow_table().column(0).combine_chunks()
    except duckdb.Error as error:
        raise ValueError(str(error).splitlines()[0]) from error


@lru_cache(maxsize=1024)
def default_value(field: LakeField) -> pa.Scalar:
    """Return the value of a field in files that lack it: its initial default, or null.

    Source: DuckLake specification 1.0, "Field Identifiers"; reference, "Columns and their evolution".
    """
    target = arrow_type(field)
    if field.initial_default is None or field.type in ("variant", "unknown"):
        return pa.scalar(None, target)
    return conform_leaf(cast_texts(pa.array([field.initial_default]), field), field)[0]


RULES: FieldRules[LakeField] = FieldRules(
    arrow_type=arrow_type,
    type_text=type_text,
    parts=lambda field: field.children,
    convert=conform_leaf,
    default=default_value,
    readers="DuckDB's own extension",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedName:
    """An entry of a name mapping: a field of a file without ids, and the id of the column that it is."""

    name: str
    id: int | None
    is_partition: bool
    """Whether the value is in the path of the file, not in the file."""
    children: tuple["MappedName", ...] = ()


def file_columns(
    schema: pa.Schema, mapping: tuple[MappedName, ...] | None, positions: Sequence[LakeField]
) -> tuple[FileField, ...]:
    """Return the columns of a data file with their ids: stored, by name, or by position where there are none.

    Args:
        mapping: The name mapping of the file; None without one.
        positions: The columns of the table in order, for files without ids and mapping.
    """
    if mapping is not None:
        return tuple(_with_names(column, mapping) for column in schema)
    columns = tuple(map(file_field, schema))
    if any(map(has_id, columns)):
        return columns
    return tuple(_by_position(column, item) for column, item in zip(columns, positions, strict=False))


def _by_position(column: FileField, item: LakeField) -> FileField:
    children = tuple(_by_position(child, part) for child, part in zip(column.children, item.children, strict=False))
    return replace(column, id=item.id, children=children)


def _with_names(column: pa.Field, mapping: Sequence[MappedName]) -> FileField:
    """Return a column with the ids of a mapping. Names compare exactly first, then without case."""
    names = [(item.name, item) for item in mapping if not item.is_partition]
    folded = {name.lower(): item for name, item in reversed(names)}
    return _mapped(column, dict(reversed(names)).get(column.name) or folded.get(column.name.lower()))


def _mapped(column: pa.Field, mapped: MappedName | None) -> FileField:
    parts, below = parts_of(column.type), () if mapped is None else mapped.children
    if pa.types.is_struct(column.type):
        children = tuple(_with_names(part, below) for part in parts)
    elif len(below) == len(parts):  # a list, or a map, whose mapping has keys first
        ordered = sorted(below, key=lambda item: item.name.lower() == "value") if len(parts) > 1 else below
        children = tuple(map(_mapped, parts, ordered))
    else:
        children = tuple(_mapped(part, None) for part in parts)
    own = None if mapped is None else mapped.id
    return FileField(id=own, name=column.name, type=column.type, children=children)


def partition_constants(
    path: str, mapping: tuple[MappedName, ...] | None, fields: Sequence[LakeField]
) -> dict[int, pa.Scalar]:
    """Return the values of columns that an added file has in its path, by column id.

    Source: reference, "Added files and name mapping".
    """
    by_id = {item.id: item for item in fields}
    folders = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    folded = {name.lower(): text for name, text in folders.items()}
    result = {}
    for mapped in mapping or ():
        item = by_id.get(mapped.id or 0)
        if not mapped.is_partition or item is None:
            continue
        text = folders.get(mapped.name, folded.get(mapped.name.lower()))
        if text is None:
            raise damaged(
                f"The data file {path} has the column {mapped.name!r} in its path by its mapping, but the path has no "
                f"folder {mapped.name}=."
            )
        value = None if text == _HIVE_NULL else unquote(text)
        result[item.id] = conform_leaf(cast_texts(pa.array([value], pa.string()), item), item)[0]
    return result


def columns_like(item: LakeField, name: str) -> FileField:
    """Return the column of values that have the parts of a field, in its order, under any names."""
    children = tuple(columns_like(child, child.name) for child in item.children)
    return FileField(id=item.id, name=name, type=pa.null(), children=children)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """A delete file of one data file. Picklable."""

    path: str
    """Its path for `Storage`."""
    format: str
    size_bytes: int | None
    up_to: int | None
    """The last snapshot whose deletes count, if the file may contain later ones; None if all count."""


def deleted_positions(
    storage: Storage, files: Sequence[DeleteFile], inlined: Sequence[int], rows: int, path: str
) -> Positions:
    """Return the positions of the deleted rows of a data file, ascending: the union of all its deletes.

    Args:
        inlined: Positions of inlined deletes.
        rows: The number of rows of the data file.
        path: The data file, for messages.

    Raises:
        CorruptTableError: A delete file is missing or damaged, or a position is outside of the data file.
    """
    parts = [read_delete_file(storage, file) for file in files]
    if inlined:
        parts.append(np.asarray(inlined, np.int64))
    if not parts:
        return NOTHING
    result = np.unique(np.concatenate(parts))
    if len(result) and not 0 <= result[0] <= result[-1] < rows:
        raise CorruptTableError(
            f"The deletes of the data file {path} name the position {result[-1] if result[0] >= 0 else result[0]}, and "
            f"it has {rows} rows. The catalog or a delete file is damaged; compare them with a copy."
        )
    return result


def read_delete_file(storage: Storage, file: DeleteFile) -> Positions:
    """Return the positions in a delete file that count."""
    missing = partial(absent_data_error, storage, f"The delete file {file.path}")
    with named_in_errors(file.path, file.format, missing):
        if file.format == "puffin":
            # A bare blob, not in a Puffin file.
            return positions_of(checked_body(storage.read(file.path, size_bytes=file.size_bytes)), _MAX_POSITION)
        with storage.open(file.path, size_bytes=file.size_bytes) as source:
            parquet = open_parquet(source)
            names = parquet.reader.schema_arrow.names
            if "pos" not in names:
                raise CorruptBytesError("it has no column pos")
            chosen = ["pos", _SNAPSHOTS] if _SNAPSHOTS in names and file.up_to is not None else ["pos"]
            groups = range(parquet.reader.metadata.num_row_groups)
            rows = pa.Table.from_batches(
                parquet.batches(chosen, groups, parquet.reader.metadata.num_rows),
                pa.schema([parquet.reader.schema_arrow.field(name) for name in chosen]),
            )
    positions = np.asarray(rows.column("pos").cast(pa.int64()).to_numpy(), np.int64)
    if len(chosen) > 1:
        positions = positions[np.asarray(rows.column(_SNAPSHOTS).to_numpy()) <= file.up_to]
    return positions
