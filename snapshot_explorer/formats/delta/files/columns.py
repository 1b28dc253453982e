"""Columns of a data file as columns of the table: found by name or id at every depth, cast to the table's types.

A column that the file lacks is null. A column of another type than the table's is cast if that preserves every value,
and refused otherwise.

Source: delta PROTOCOL.md, "Reader Requirements for Column Mapping", "Reader Requirements for Type Widening".
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import pyarrow as pa

from snapshot_explorer.arrow import int96, variants
from snapshot_explorer.arrow.nesting import TEXTS, parts_of, plain, with_parts
from snapshot_explorer.core.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.formats.delta.files.calendars import Calendar, rebase
from snapshot_explorer.formats.delta.metadata.data_types import (
    DeltaDataType,
    DeltaField,
    Mode,
    arrow_type,
    pad_texts,
    type_text,
)
from snapshot_explorer.formats.features import FILES_OF_OTHER_TYPES, refusal
from snapshot_explorer.formats.files import variant_columns
from snapshot_explorer.formats.spatial import SPATIAL

_FIELD_ID = b"PARQUET:field_id"
_TODAYS = Calendar()


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The properties of a data file that determine how its columns are read."""

    path: str
    mode: Mode
    calendar: Calendar = _TODAYS


def stored_fields(fields: Sequence[DeltaField], file_fields: pa.Schema, origin: Origin) -> list[pa.Field | None]:
    """Return the column in the file for each requested column; None if the file lacks it."""
    every = list(file_fields)
    if origin.mode == "id" and every and fields and not any(field_id(field) is not None for field in every):
        raise CorruptTableError(
            f"The data file {origin.path} has no field ids, by which the table's columns are found "
            "(delta.columnMapping.mode). It was not written by Delta, or was overwritten; compare it with a copy of "
            "the table."
        )
    columns = _FileColumns(every, origin)
    indices = [None if field.type.root == "void" else columns.position(field) for field in fields]
    return [None if index is None else every[index] for index in indices]


def field_id(field: pa.Field) -> int | None:
    """Return the field id of a file's column; None without one."""
    number = (field.metadata or {}).get(_FIELD_ID)
    return None if number is None else int(number)


class _FileColumns:
    """The columns of a file, or the fields of a struct in it, by their ids and names."""

    def __init__(self, file_fields: Sequence[pa.Field], origin: Origin) -> None:
        self._origin = origin
        self._by_id = _positions(map(field_id, file_fields)) if origin.mode == "id" else {}
        self._by_name = _positions(field.name for field in file_fields)
        self._names = [field.name for field in file_fields]

    @cached_property
    def _by_folded_name(self) -> Mapping[Hashable, Sequence[int]]:
        return _positions(name.lower() for name in self._names)

    def position(self, field: DeltaField) -> int | None:
        """Return the position of the field of a column: by id or exact name, or by name ignoring case."""
        if self._origin.mode == "id" and field.id is not None:
            indices: Sequence[int] = self._by_id.get(field.id, ())
        else:
            indices = self._by_name.get(field.stored) or self._by_folded_name.get(field.stored.lower(), ())
        if len(indices) > 1:
            raise CorruptTableError(
                f"The data file {self._origin.path} has {len(indices)} columns that match {field.name!r}. It may have "
                "been overwritten; compare it with a copy of the table."
            )
        return indices[0] if indices else None


def _positions(keys: Iterable[Hashable]) -> dict[Hashable, list[int]]:
    positions: dict[Hashable, list[int]] = {}
    for position, key in enumerate(keys):
        positions.setdefault(key, []).append(position)
    return positions


def conform(values: pa.Array, data_type: DeltaDataType, origin: Origin) -> pa.Array:
    """Return values of a file cast to the Arrow type of a table's type.

    Raises:
        pyarrow.ArrowException: A value is not of the type.
    """
    target = arrow_type(data_type)
    if data_type.root in _ATOMIC and values.type == target and origin.calendar == _TODAYS:
        return pad_texts(values, data_type)
    values = plain(values)
    if data_type.root in ("struct", "array", "map"):
        columns = _FileColumns(parts_of(values.type), origin)
        result = with_parts(values, target, partial(_part, data_type, columns, origin))
        if result is None:
            raise _unsupported_type(values, data_type)
        return result
    if data_type.root == "variant":
        return _variant(values, data_type, target)
    if data_type.root == "void":
        return pa.nulls(len(values))
    if data_type.root == "timestamp_ntz":
        # Spark always writes these in the Gregorian calendar. Dates that became timestamps are in the Julian calendar.
        days = rebase(values, origin.calendar, is_int96=False) if pa.types.is_date32(values.type) else values
        return _timestamp(days, data_type, target)
    # INT96 is the only type of Spark's timestamps that does not record whether they are in UTC.
    is_int96 = data_type.root == "timestamp" and getattr(values.type, "tz", None) is None
    return rebase(_ATOMIC[data_type.root](values, data_type, target), origin.calendar, is_int96=is_int96)


def is_exact(stored: pa.Field, field: DeltaField, origin: Origin) -> bool:
    """Return whether `conform` returns the values of a file's column as they are."""
    data_type = field.type
    is_same = data_type.root in _ATOMIC and stored.type == arrow_type(data_type) and origin.calendar == _TODAYS
    return bool(is_same) and data_type.char_length is None


def _unsupported_type(values: pa.Array, data_type: DeltaDataType) -> UnsupportedFeatureError:
    return refusal(FILES_OF_OTHER_TYPES, stored=values.type, type=type_text(data_type))


def _part(
    data_type: DeltaDataType, columns: _FileColumns, origin: Origin, index: int, stored: Sequence[pa.Array]
) -> pa.Array | None:
    """Return a part of nested values; None for a field that a struct lacks."""
    if data_type.root == "struct":
        field = data_type.fields[index]
        position = None if field.type.root == "void" else columns.position(field)
        return None if position is None else conform(stored[position], field.type, origin)
    part = data_type.key if data_type.root == "map" and not index else data_type.element
    return None if part is None else conform(stored[index], part, origin)


def _variant(values: pa.Array, data_type: DeltaDataType, target: pa.StructType) -> pa.Array:
    if not isinstance(values, pa.StructArray) or not variants.is_group(values.type):
        raise _unsupported_type(values, data_type)
    return variant_columns.unshred_variants(values, target)


def _is(values: pa.Array, *dtypes: pa.DataType) -> bool:
    return any(values.type == dtype for dtype in dtypes)


_SMALL = (pa.int8(), pa.int16(), pa.int32())
_INTEGERS: Mapping[str, Sequence[pa.DataType]] = {
    # Parquet has no type below 32 bits, and a writer may omit the narrower logical type. The cast checks each value.
    "byte": (*_SMALL, pa.uint8()),
    "short": (*_SMALL, pa.uint8(), pa.uint16()),
    "integer": (*_SMALL, pa.uint8(), pa.uint16()),
    "long": (*_SMALL, pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
}


def _number(values: pa.Array, data_type: DeltaDataType, target: pa.DataType) -> pa.Array:
    if not _is(values, *_INTEGERS[data_type.root]):
        raise _unsupported_type(values, data_type)
    return values.cast(target)


def _float(values: pa.Array, data_type: DeltaDataType, target: pa.DataType) -> pa.Array:
    known = (pa.float16(), pa.float32())
    if not _is(values, *known, *((pa.float64(), *_SMALL) if data_type.root == "double" else ())):
        raise _unsupported_type(values, data_type)
    return values.cast(target)


def _decimal(values: pa.Array, data_type: DeltaDataType, target: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(values.type):
        more = data_type.scale - values.type.scale
        if more >= 0 and data_type.precision - data_type.scale >= values.type.precision - values.type.scale:
            return values.cast(target)
    elif _is(values, *_SMALL, pa.int64()):
        digits = 20 if values.type == pa.int64() else 10
        if data_type.precision - data_type.scale >= digits:
            return values.cast(pa.decimal128(digits, 0)).cast(target)
    raise _unsupported_type(values, data_type)


def _boolean(values: pa.Array, data_type: DeltaDataType, target: pa.DataType) -> pa.Array:
    if values.type != target:
        raise _unsupported_type(values, data_type)
    return values


def _text(values: pa.Array, data_type: DeltaDataType, target: pa.DataType) -> pa.Array:
    if not _is(values, *TEXTS) and not (data_type.root == "binary" and pa.types.is_fixed_size_binary(values.type)):
        raise _unsupported_type(values, data_type)
    return pad_texts(values.cast(target), data_type)


def _spatial(values: pa.Array, data_type: DeltaDataType, target: pa.DataType) -> pa.Array:
    """Return WKB; a text would be another notation."""
    if not _is(values, *TEXTS) or _is(values, pa.string(), pa.large_string()):
        raise _unsupported_type(values, data_type)
    return values.cast(target)


def _date(values: pa.Array, data_type: DeltaDataType, target: pa.DataType) -> pa.Array:
    if not pa.types.is_date(values.type):
        raise _unsupported_type(values, data_type)
    return values.cast(target)


def _timestamp(values: pa.Array, data_type: DeltaDataType, target: pa.TimestampType) -> pa.Array:
    """Return timestamps; one without a zone is read as UTC, and one with a zone as its time in UTC.

    Source: spark ParquetVectorUpdaterFactory.
    """
    if pa.types.is_fixed_size_binary(values.type) and values.type.byte_width == int96.WIDTH:
        return int96.timestamps(values, "us").view(target)
    if data_type.root == "timestamp_ntz" and pa.types.is_date32(values.type):
        return values.cast(target)
    if not pa.types.is_timestamp(values.type):
        raise _unsupported_type(values, data_type)
    return values.view(pa.timestamp(values.type.unit)).cast(pa.timestamp(target.unit)).view(target)


_ATOMIC: Mapping[str, Callable[[pa.Array, DeltaDataType, pa.DataType], pa.Array]] = {
    **dict.fromkeys(_INTEGERS, _number),
    "float": _float,
    "double": _float,
    "decimal": _decimal,
    "boolean": _boolean,
    "string": _text,
    "binary": _text,
    **dict.fromkeys(SPATIAL, _spatial),
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp,
}
