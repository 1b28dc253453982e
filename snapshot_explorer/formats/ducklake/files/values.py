"""Values of data files and of the catalog, cast to the types of a table's columns.

Source: DuckLake specification 1.0, "Data Types"; reference, "Types", "Inlined data".
"""

import re
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.nesting import TEXTS, plain
from snapshot_explorer.core.old_libraries import installed_version, is_older
from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.ducklake.metadata.data_types import (
    INTEGERS,
    NESTED,
    TIMESTAMPS,
    WIDE_INTEGERS,
    LakeField,
    arrow_type,
    root_of,
    sql_type,
    type_text,
    walk,
)
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.files import variant_columns
from snapshot_explorer.formats.files.field_columns import other_type

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_STRINGS = (pa.string(), pa.large_string(), pa.string_view())
_UUID_BYTES = 16
_INTERVAL_BYTES = 12
_ZONED = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?")
_DAY = 86_400_000_000
_AS_TEXT = frozenset(("varchar", "json", "uuid", "int128", "uint128", "timetz"))
"""Types whose text `conform_leaf` reads; DuckDB casts the text of the others."""
_FIRST_NESTED_TEXT = "1.3"
"""The first release of DuckDB that casts text of nested values correctly."""


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
    root = root_of(field.type)
    if not _CASTS[root](values.type, target):
        raise other_type(values, type_text(field))
    convert = _CONVERSIONS.get(root)
    return values.cast(target) if convert is None else convert(values, target)


def _is_bytes(stored: pa.DataType) -> bool:
    return (stored in TEXTS and stored not in _STRINGS) or pa.types.is_fixed_size_binary(stored)


def _is_narrower_decimal(stored: pa.DataType, target: pa.DataType) -> bool:
    if not pa.types.is_decimal(stored) or target.scale < stored.scale:
        return False
    return bool(target.precision - target.scale >= stored.precision - stored.scale)


def _is_wide_integer(stored: pa.DataType) -> bool:
    is_whole = stored in _INTEGERS or (pa.types.is_decimal(stored) and not stored.scale)
    return is_whole or stored in _STRINGS or pa.types.is_floating(stored)


_CASTS: Mapping[str, Callable[[pa.DataType, pa.DataType], bool]] = {
    **dict.fromkeys(INTEGERS, lambda stored, _: stored in _INTEGERS),
    **dict.fromkeys(WIDE_INTEGERS, lambda stored, _: _is_wide_integer(stored)),
    **dict.fromkeys(("float32", "float64"), lambda stored, target: stored in (pa.float32(), target)),
    **dict.fromkeys(("varchar", "json"), lambda stored, _: stored in TEXTS),
    **dict.fromkeys(("blob", "geometry"), lambda stored, _: _is_bytes(stored)),
    **dict.fromkeys(("time", "time_ns"), lambda stored, _: pa.types.is_time(stored)),
    **dict.fromkeys(TIMESTAMPS, lambda stored, _: pa.types.is_timestamp(stored)),
    "boolean": lambda stored, _: stored in (pa.bool_(), pa.int64()),  # SQLite has numbers
    "date": lambda stored, _: pa.types.is_date(stored),
    "decimal": _is_narrower_decimal,
    "interval": lambda stored, _: stored == pa.binary(_INTERVAL_BYTES),
    "timetz": lambda stored, _: stored in _STRINGS or pa.types.is_time(stored),
    "uuid": lambda stored, _: stored in _STRINGS or stored == pa.binary(_UUID_BYTES),
    "variant": lambda stored, _: pa.types.is_struct(stored),
}
"""Whether values of an Arrow type are read as a type of the table, by that type without its parameters."""


def _each(values: pa.Array, target: pa.DataType, convert: Callable[[Any], object]) -> pa.Array:
    return pa.array([None if value is None else convert(value) for value in values.to_pylist()], target)


def _wide_integers(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return 128-bit integers as text. Data files contain doubles: the stored double is the value."""
    return _each(values, target, lambda value: str(int(value)))


def _uuids(values: pa.Array, target: pa.DataType) -> pa.Array:
    return (
        values.cast(target) if values.type in _STRINGS else _each(values, target, lambda value: str(UUID(bytes=value)))
    )


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


_CONVERSIONS: Mapping[str, Callable[[pa.Array, pa.DataType], pa.Array]] = {
    **dict.fromkeys(WIDE_INTEGERS, _wide_integers),
    **dict.fromkeys(TIMESTAMPS, _timestamps),
    "interval": _intervals,
    "timetz": _zoned_times,
    "uuid": _uuids,
    "variant": _variants,
}
"""How values are converted that Arrow does not cast."""


def cast_texts(texts: pa.Array, field: LakeField) -> pa.Array:
    """Return values that the catalog has as DuckDB's text, in the types in which data files have them, or text.

    DuckDB casts them, without access to files, in UTC. Nested ones have the names of the field's parts.

    Raises:
        ValueError: A text is not of the type.
    """
    if field.type in _AS_TEXT:
        return texts
    if field.type in NESTED and is_older(installed_version("duckdb"), _FIRST_NESTED_TEXT):
        raise refusal(features.OLD_NESTED_TEXT, column=field.name, installed=installed_version("duckdb"))
    if any(item.type == "variant" for item in walk((field,))):
        raise refusal(features.INLINED_VARIANTS, column=field.name)
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), arrow_type(field))
    import duckdb

    configuration = {"enable_external_access": "false", "autoinstall_known_extensions": "false"}
    try:
        with duckdb.connect(config={**configuration, "autoload_known_extensions": "false"}) as connection:
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
