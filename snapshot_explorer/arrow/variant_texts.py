"""Variants as JSON text, for pandas, SQL and drawings, and as comparable text that is equal for equal variants.

Numbers keep all digits. Times are ISO 8601, binary is base64, and floats that JSON does not have are texts.

Source: parquet-format, "Variant Binary Encoding", "Conversion to JSON" and "Type equivalence classes".
"""

import base64
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from types import MappingProxyType
from uuid import UUID

import orjson
import pyarrow as pa

from snapshot_explorer.arrow.nesting import with_entries, with_fields, with_items
from snapshot_explorer.arrow.variants import names_of
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.hints import Hint, Message

MARK = b"variant"
"""The key in the metadata of a variant's field `metadata`, which distinguishes it from other structs."""
_DEEPEST = 200
_EPOCH = date(1970, 1, 1)
_INTEGERS = {3: 1, 4: 2, 5: 4, 6: 8}
_DECIMALS = {8: 4, 9: 8, 10: 16}
_MICROS_OF_A_DAY = 86_400_000_000
_TYPES = {
    7: "double ",
    11: "date ",
    12: "timestamp ",
    13: "timestamp_ntz ",
    14: "float ",
    15: "binary ",
    17: "time ",
    18: "timestamp ",
    19: "timestamp_ntz ",
    20: "uuid ",
}
"""The primitive types whose values do not equal values of other types with the same JSON text, by their numbers."""


def is_variant(dtype: pa.DataType) -> bool:
    """Return whether a type is a variant: a struct of value and metadata that is marked as one."""
    if not pa.types.is_struct(dtype) or {item.name for item in dtype} != {"value", "metadata"}:
        return False
    return any((item.metadata or {}).get(MARK) == b"true" for item in dtype)


def has_variant(dtype: pa.DataType) -> bool:
    """Return whether a type is or contains a variant."""
    return is_variant(dtype) or any(has_variant(dtype.field(index).type) for index in range(dtype.num_fields))


def with_texts(rows: pa.Table) -> pa.Table:
    """Return rows with their variants, including nested ones, as JSON text."""
    for index, field in enumerate(rows.schema):
        if not has_variant(field.type):
            continue
        dtype = _text_type(field.type)
        try:
            chunks = [_texts(chunk) for chunk in rows.column(index).chunks]
        except ValueError as error:
            raise CorruptTableError(
                Message(
                    f"The column {field.name!r} cannot be converted to JSON text: {error}. Load it with ",
                    Hint("snapshot.to_arrow"),
                    ", which gives the bytes of its variants.",
                )
            ) from error
        rows = rows.set_column(index, field.with_type(dtype), pa.chunked_array(chunks, dtype))
    return rows


def text_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of `with_texts` for rows of a schema."""
    return pa.schema([field.with_type(_text_type(field.type)) for field in schema], metadata=schema.metadata)


def _text_type(dtype: pa.DataType) -> pa.DataType:
    if is_variant(dtype):
        return pa.string()
    if pa.types.is_struct(dtype):
        return pa.struct([item.with_type(_text_type(item.type)) for item in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(dtype.key_field, dtype.item_field.with_type(_text_type(dtype.item_type)))
    if pa.types.is_list(dtype):
        return pa.list_(dtype.value_field.with_type(_text_type(dtype.value_type)))
    return dtype


def _texts(values: pa.Array) -> pa.Array:
    if is_variant(values.type):
        return json_texts(values)
    if not has_variant(values.type):
        return values
    dtype = _text_type(values.type)
    if isinstance(values, pa.MapArray):
        return with_entries(values, dtype, values.keys, _texts(values.items))
    if isinstance(values, pa.StructArray):
        return with_fields(values, dtype, [_texts(values.field(index)) for index in range(dtype.num_fields)])
    return with_items(values, dtype, _texts(values.values)) if isinstance(values, pa.ListArray) else values


def comparable_texts(values: pa.StructArray) -> pa.Array:
    """Return texts that are equal for variants that are equal, however they are encoded; null where the variant is.

    Integers and decimals of the same value are equal. Other types are not: a date does not equal its text.
    """
    try:
        return json_texts(values, _TYPES)
    except ValueError as error:
        raise CorruptTableError(f"Variants cannot be compared: {error}. Leave their column out.") from error


def json_texts(values: pa.StructArray, types: Mapping[int, str] = MappingProxyType({})) -> pa.Array:
    """Return variants as JSON text, null where the variant is. Each distinct one is converted once.

    Args:
        types: Prefixes for the values of primitive types, by their numbers.
    """
    pairs = zip(values.field("metadata").to_pylist(), values.field("value").to_pylist(), strict=True)
    validity = values.is_valid().to_pylist()
    known: dict[tuple[bytes, bytes], str] = {}
    texts: list[str | None] = []
    for is_there, pair in zip(validity, pairs, strict=True):
        if not is_there or None in pair:
            texts.append(None)
            continue
        if pair not in known:
            known[pair] = json_text(*pair, types)
        texts.append(known[pair])
    return pa.array(texts, pa.string())


def json_text(metadata: bytes, value: bytes, types: Mapping[int, str] = MappingProxyType({})) -> str:
    """Return a variant as JSON text."""
    try:
        return _text(value, 0, _names(metadata), types, 0)
    except (IndexError, struct.error, OverflowError, UnicodeDecodeError) as error:
        raise ValueError(f"the bytes of a variant are damaged ({error})") from error


@lru_cache(maxsize=1000)
def _names(metadata: bytes) -> tuple[str, ...]:
    return tuple(orjson.dumps(name.decode()).decode() for name in names_of(metadata))


def _text(data: bytes, offset: int, names: Sequence[str], types: Mapping[int, str], depth: int) -> str:
    if depth > _DEEPEST:
        raise ValueError(f"a variant is nested deeper than {_DEEPEST} levels")
    basic_type, header = data[offset] & 3, data[offset] >> 2
    if basic_type == 0:
        return types.get(header, "") + _primitive(header, data, offset + 1)
    if basic_type == 1:
        return _quote(_part(data, offset + 1, header).decode())
    is_object = basic_type == 2  # noqa: PLR2004 - an object, otherwise an array
    width, id_width = (header & 3) + 1, (header >> 2 & 3) + 1 if is_object else 0
    count_width = 4 if header >> (4 if is_object else 2) & 1 else 1
    count = _unsigned(data, offset + 1, count_width)
    ids = offset + 1 + count_width
    offsets = ids + count * id_width
    first = offsets + (count + 1) * width
    if first > len(data):
        raise ValueError("a variant ends early")
    parts = []
    for number in range(count):
        begin = first + _unsigned(data, offsets + number * width, width)
        text = _text(data, begin, names, types, depth + 1)
        parts.append(f"{names[_unsigned(data, ids + number * id_width, id_width)]}:{text}" if is_object else text)
    return "{" + ",".join(parts) + "}" if is_object else "[" + ",".join(parts) + "]"


def _part(data: bytes, offset: int, length: int) -> bytes:
    if offset + length > len(data):
        raise ValueError("a variant ends early")
    return data[offset : offset + length]


def _unsigned(data: bytes, offset: int, width: int) -> int:
    return int.from_bytes(_part(data, offset, width), "little")


def _signed(data: bytes, offset: int, width: int) -> int:
    return int.from_bytes(_part(data, offset, width), "little", signed=True)


def _quote(text: str) -> str:
    return orjson.dumps(text).decode()


def _primitive(number: int, data: bytes, offset: int) -> str:
    if number in _INTEGERS:
        return str(_signed(data, offset, _INTEGERS[number]))
    if number in _DECIMALS:
        return _decimal(_signed(data, offset + 1, _DECIMALS[number]), data[offset])
    if number not in _OTHERS:
        raise ValueError(f"a variant has the primitive type {number}, which the specification does not have")
    return _OTHERS[number](data, offset)


def _decimal(unscaled: int, scale: int) -> str:
    while scale and not unscaled % 10:
        # The scale is not part of the value: shredding may change it.
        unscaled, scale = unscaled // 10, scale - 1
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if unscaled < 0 else text


def _float(value: float, text: str) -> str:
    if math.isfinite(value):
        return text
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _single(data: bytes, offset: int) -> str:
    """Return a 32-bit float, with the fewest digits that identify it."""
    (value,) = struct.unpack("<f", _part(data, offset, 4))
    for digits in range(1, 10):
        if not math.isfinite(value) or struct.pack("<f", float(f"{value:.{digits}g}")) == _part(data, offset, 4):
            return _float(value, repr(float(f"{value:.{digits}g}")))
    return repr(value)


def _double(data: bytes, offset: int) -> str:
    (value,) = struct.unpack("<d", _part(data, offset, 8))
    return _float(value, repr(value))


def _day(days: int) -> str:
    return (_EPOCH + timedelta(days=days)).isoformat()


def _date(data: bytes, offset: int) -> str:
    return _quote(_day(_signed(data, offset, 4)))


def _clock(micros: int, nanos: int = 0) -> str:
    seconds, micros = divmod(micros, 1_000_000)
    fraction = f".{micros:06d}" + (f"{nanos:03d}" if nanos else "") if micros or nanos else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"


def _time(data: bytes, offset: int) -> str:
    return _quote(_clock(_signed(data, offset, 8)))


def _timestamp(data: bytes, offset: int, *, per_micro: int, zone: str) -> str:
    micros, nanos = divmod(_signed(data, offset, 8), per_micro)
    days, rest = divmod(micros, _MICROS_OF_A_DAY)
    return _quote(f"{_day(days)}T{_clock(rest, nanos)}{zone}")


def _sized(data: bytes, offset: int) -> bytes:
    return _part(data, offset + 4, _unsigned(data, offset, 4))


_OTHERS: Mapping[int, Callable[[bytes, int], str]] = {
    0: lambda _data, _offset: "null",
    1: lambda _data, _offset: "true",
    2: lambda _data, _offset: "false",
    7: _double,
    11: _date,
    12: lambda data, offset: _timestamp(data, offset, per_micro=1, zone="+00:00"),
    13: lambda data, offset: _timestamp(data, offset, per_micro=1, zone=""),
    14: _single,
    15: lambda data, offset: _quote(base64.b64encode(_sized(data, offset)).decode()),
    16: lambda data, offset: _quote(_sized(data, offset).decode()),
    17: _time,
    18: lambda data, offset: _timestamp(data, offset, per_micro=1000, zone="+00:00"),
    19: lambda data, offset: _timestamp(data, offset, per_micro=1000, zone=""),
    20: lambda data, offset: _quote(str(UUID(bytes=_part(data, offset, 16)))),
}
