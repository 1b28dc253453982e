"""Columns of a data file as columns of the table: found by name or id at every depth, cast to the table's types.

What a file lacks is null. A type that is not the table's is cast where that keeps every value, and refused elsewhere.

Source: delta PROTOCOL.md, "Reader Requirements for Column Mapping", "Reader Requirements for Type Widening".
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import int96, variants
from snapshot_explorer.arrow.nesting import as_list, plain, with_entries, with_fields, with_items
from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.formats.delta import features
from snapshot_explorer.formats.delta.files.calendars import Calendar, rebased
from snapshot_explorer.formats.delta.metadata.data_types import DeltaDataType, DeltaField, Mode, arrow_type, type_text
from snapshot_explorer.formats.features import refusal

_FIELD_ID = b"PARQUET:field_id"
_TODAYS = Calendar()


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The properties of a data file that decide how its columns are read."""

    path: str
    """The file, for messages."""
    mode: Mode
    """How to find columns."""
    calendar: Calendar = _TODAYS


def found(fields: Sequence[DeltaField], file_fields: pa.Schema, origin: Origin) -> list[pa.Field | None]:
    """Return the file's column of each column; None where the file lacks it."""
    every = list(file_fields)
    if origin.mode == "id" and every and fields and not any(field_id(field) is not None for field in every):
        raise CorruptTableError(
            f"The data file {origin.path} has no field ids, by which the table's columns are found "
            "(delta.columnMapping.mode). It was not written by Delta, or was overwritten; compare it with a copy of "
            "the table."
        )
    columns = _FileColumns(every, origin)
    places = [None if field.type.root == "void" else columns.position(field) for field in fields]
    return [None if place is None else every[place] for place in places]


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
            places: Sequence[int] = self._by_id.get(field.id, ())
        else:
            places = self._by_name.get(field.stored) or self._by_folded_name.get(field.stored.lower(), ())
        if len(places) > 1:
            raise CorruptTableError(
                f"The data file {self._origin.path} has {len(places)} columns that match {field.name!r}. It may have "
                "been overwritten; compare it with a copy of the table."
            )
        return places[0] if places else None


def _positions(keys: Iterable[Hashable]) -> dict[Hashable, list[int]]:
    positions: dict[Hashable, list[int]] = {}
    for position, key in enumerate(keys):
        positions.setdefault(key, []).append(position)
    return positions


def conform(values: pa.Array, kind: DeltaDataType, origin: Origin) -> pa.Array:
    """Return values of a file cast to the Arrow type of a table's type.

    Raises:
        pyarrow.ArrowException: A value is not of the type.
    """
    target = arrow_type(kind)
    if kind.root in _ATOMIC and values.type == target and origin.calendar == _TODAYS:
        return padded(values, kind)
    values = plain(values)
    if kind.root == "struct":
        return _struct(values, kind, target, origin)
    if kind.root == "array" and kind.element:
        return _array(values, kind.element, target, origin)
    if kind.root == "map" and kind.key and kind.element:
        if not isinstance(values, pa.MapArray):
            raise _unsupported_type(values, kind)
        keys, items = conform(values.keys, kind.key, origin), conform(values.items, kind.element, origin)
        return with_entries(values, target, keys, items)
    if kind.root == "variant":
        return _variant(values, target)
    if kind.root == "void":
        return pa.nulls(len(values))
    if kind.root == "timestamp_ntz":
        # Spark always writes these in the Gregorian calendar. Dates that became timestamps are in the Julian calendar.
        days = rebased(values, origin.calendar, is_int96=False) if pa.types.is_date32(values.type) else values
        return _timestamp(days, kind, target)
    # Of the types that Spark writes timestamps in, only INT96 does not record whether they are in UTC.
    is_int96 = kind.root == "timestamp" and getattr(values.type, "tz", None) is None
    return rebased(_ATOMIC[kind.root](values, kind, target), origin.calendar, is_int96=is_int96)


def is_exact(stored: pa.Field, field: DeltaField, origin: Origin) -> bool:
    """Return whether `conform` returns the values of a file's column as they are."""
    kind = field.type
    is_same = kind.root in _ATOMIC and stored.type == arrow_type(kind) and origin.calendar == _TODAYS
    return bool(is_same) and kind.char_length is None


def padded(values: pa.Array, kind: DeltaDataType) -> pa.Array:
    """Return values of a type, those of a char(n) padded with spaces.

    Writers may omit the spaces, and Delta's own reader adds them.
    """
    return values if kind.char_length is None else pc.utf8_rpad(values, kind.char_length)


def _unsupported_type(values: pa.Array, kind: DeltaDataType) -> UnsupportedFeatureError:
    return refusal(features.FILES_OF_OTHER_TYPES, found=values.type, type=type_text(kind))


def _struct(values: pa.Array, kind: DeltaDataType, target: pa.StructType, origin: Origin) -> pa.Array:
    if not isinstance(values, pa.StructArray):
        raise _unsupported_type(values, kind)
    columns = _FileColumns(list(values.type), origin)
    children = []
    for field in kind.fields:
        place = None if field.type.root == "void" else columns.position(field)
        children.append(
            pa.nulls(len(values), arrow_type(field.type))
            if place is None
            else conform(values.field(place), field.type, origin)
        )
    return with_fields(values, target, children)


def _array(values: pa.Array, element: DeltaDataType, target: pa.ListType, origin: Origin) -> pa.Array:
    if isinstance(values, pa.MapArray) or not hasattr(values.type, "value_type"):
        raise refusal(features.FILES_OF_OTHER_TYPES, found=values.type, type=f"array<{type_text(element)}>")
    values = as_list(values)
    return with_items(values, target, conform(values.values, element, origin))


def _variant(values: pa.Array, target: pa.StructType) -> pa.Array:
    """Return variants as value and metadata; shredded ones are assembled.

    Source: delta PROTOCOL.md, "Variant Data Type"; parquet-format, "Variant Binary Encoding", "Variant Shredding".
    """
    if not isinstance(values, pa.StructArray) or not variants.is_group(values.type):
        raise refusal(features.FILES_OF_OTHER_TYPES, found=values.type, type="variant")
    unread = variants.unread_type(values.type)
    if unread is not None:
        raise refusal(features.SHREDDED_FILES, found=unread)
    return variants.stored(values, target)


def _is(values: pa.Array, *kinds: pa.DataType) -> bool:
    return any(values.type == kind for kind in kinds)


_SMALL = (pa.int8(), pa.int16(), pa.int32())
_INTEGERS: Mapping[str, Sequence[pa.DataType]] = {
    # Parquet has no type below 32 bits, and a writer may omit the narrower logical type. The cast checks each value.
    "byte": (*_SMALL, pa.uint8()),
    "short": (*_SMALL, pa.uint8(), pa.uint16()),
    "integer": (*_SMALL, pa.uint8(), pa.uint16()),
    "long": (*_SMALL, pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
}
_TEXTS = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view())


def _number(values: pa.Array, kind: DeltaDataType, target: pa.DataType) -> pa.Array:
    if not _is(values, *_INTEGERS[kind.root]):
        raise _unsupported_type(values, kind)
    return values.cast(target)


def _float(values: pa.Array, kind: DeltaDataType, target: pa.DataType) -> pa.Array:
    known = (pa.float16(), pa.float32())
    if not _is(values, *known, *((pa.float64(), *_SMALL) if kind.root == "double" else ())):
        raise _unsupported_type(values, kind)
    return values.cast(target)


def _decimal(values: pa.Array, kind: DeltaDataType, target: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(values.type):
        more = kind.scale - values.type.scale
        if more >= 0 and kind.precision - kind.scale >= values.type.precision - values.type.scale:
            return values.cast(target)
    elif _is(values, *_SMALL, pa.int64()):
        digits = 20 if values.type == pa.int64() else 10
        if kind.precision - kind.scale >= digits:
            return values.cast(pa.decimal128(digits, 0)).cast(target)
    raise _unsupported_type(values, kind)


def _boolean(values: pa.Array, kind: DeltaDataType, target: pa.DataType) -> pa.Array:
    if values.type != target:
        raise _unsupported_type(values, kind)
    return values


def _text(values: pa.Array, kind: DeltaDataType, target: pa.DataType) -> pa.Array:
    if not _is(values, *_TEXTS) and not (kind.root == "binary" and pa.types.is_fixed_size_binary(values.type)):
        raise _unsupported_type(values, kind)
    return padded(values.cast(target), kind)


def _date(values: pa.Array, kind: DeltaDataType, target: pa.DataType) -> pa.Array:
    if not pa.types.is_date(values.type):
        raise _unsupported_type(values, kind)
    return values.cast(target)


def _timestamp(values: pa.Array, kind: DeltaDataType, target: pa.TimestampType) -> pa.Array:
    """Return timestamps; one without a zone is read as UTC, and one with a zone as its time in UTC.

    Source: spark ParquetVectorUpdaterFactory.
    """
    if pa.types.is_fixed_size_binary(values.type) and values.type.byte_width == int96.WIDTH:
        return int96.timestamps(values, "us").view(target)
    if kind.root == "timestamp_ntz" and pa.types.is_date32(values.type):
        return values.cast(target)
    if not pa.types.is_timestamp(values.type):
        raise _unsupported_type(values, kind)
    return values.view(pa.timestamp(values.type.unit)).cast(pa.timestamp(target.unit)).view(target)


_ATOMIC: Mapping[str, Callable[[pa.Array, DeltaDataType, pa.DataType], pa.Array]] = {
    **dict.fromkeys(_INTEGERS, _number),
    "float": _float,
    "double": _float,
    "decimal": _decimal,
    "boolean": _boolean,
    "string": _text,
    "binary": _text,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp,
}
