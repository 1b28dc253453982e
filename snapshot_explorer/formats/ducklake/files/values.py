"""Values of data files and of the catalog, cast to the types of a table's columns.

Source: DuckLake specification 1.0, "Data Types"; reference, "Types", "Inlined data".
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from uuid import UUID

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.nesting import TEXTS, plain
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.old_libraries import installed_version, is_older
from snapshot_explorer.formats.ducklake import features
from snapshot_explorer.formats.ducklake.metadata.data_types import (
    NESTED,
    LakeField,
    arrow_type,
    root_of,
    sql_type,
    type_text,
    walk,
)
from snapshot_explorer.formats.features import FILES_OF_OTHER_TYPES, refusal
from snapshot_explorer.formats.files import variant_columns

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_STRINGS = (pa.string(), pa.large_string(), pa.string_view())
_UUID_BYTES = 16
_INTERVAL_BYTES = 12
_WHOLE = re.compile(r"-?\d+")
_ZONED = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?")
_DAY = 86_400_000_000
_AS_TEXT = frozenset(("varchar", "json", "uuid", "int128", "uint128", "timetz"))
"""Types whose text `conform_leaf` reads; DuckDB casts the text of the others."""
_FIRST_NESTED_TEXT = "1.3"
"""The first release of DuckDB that casts text of nested values correctly."""


def other_type(values: pa.Array, field: LakeField) -> UnsupportedFeatureError:
    """Return the error for values whose type cannot represent the column's."""
    return refusal(FILES_OF_OTHER_TYPES, stored=values.type, type=type_text(field))


def conform_leaf(values: pa.Array, field: LakeField) -> pa.Array:
    """Return values that are not nested in the Arrow type of the table's column.

    Raises:
        UnsupportedFeatureError: Their type cannot represent the column's.
        pyarrow.ArrowException, ValueError: A value is not of the type.
    """
    target = arrow_type(field)
    if values.type == target and field.type != "variant":
        return values
    values = plain(values)
    if pa.types.is_null(values.type) or field.type == "unknown":
        return pa.nulls(len(values), target)
    return _LEAVES[root_of(field.type)](values, field, target)


def _integer(values: pa.Array, field: LakeField, target: pa.DataType) -> pa.Array:
    if values.type not in _INTEGERS:
        raise other_type(values, field)
    return values.cast(target)


def _boolean(values: pa.Array, field: LakeField, target: pa.DataType) -> pa.Array:
    if values.type not in (pa.bool_(), pa.int64()):  # SQLite has numbers
        raise other_type(values, field)
    return values.cast(target)


def _wide_integer(values: pa.Array, field: LakeField, target: pa.DataType) -> pa.Array:
    """Return 128-bit integers as text. Data files contain doubles: the stored double is the value."""
    if values.type in _STRINGS:
        wrong = next((text for text in values.to_pylist() if text is not None and not _WHOLE.fullmatch(text)), None)
        if wrong is not None:
            raise ValueError(f"{wrong[:50]!r} is no integer")
        return values.cast(target)
    if pa.types.is_floating(values.type):
        return pa.array([None if value is None else str(int(value)) for value in values.to_pylist()], target)
    if values.type in _INTEGERS or (pa.types.is_decimal(values.type) and not values.type.scale):
        return pa.array([None if value is None else str(int(value)) for value in values.to_pylist()], target)
    raise other_type(values, field)


def _float(values: pa.Array, field: LakeField, target: pa.DataType) -> pa.Array:
    if values.type not in ((pa.float32(),) if target == pa.float32() else (pa.float32(), pa.float64())):
        raise other_type(values, field)
    return values.cast(target)


def _decimal(values: pa.Array, field: LakeField, target: pa.DataType) -> pa.Array:
    if not pa.types.is_decimal(values.type):
        raise other_type(values, field)
    more = target.scale - values.type.scale
    if more < 0 or target.precision - target.scale < values.type.precision - values.type.scale:
        raise other_type(values, field)
    return values.cast(target)


def _text(values: pa.Array, field: LakeField, target: pa.DataType) -> pa.Array:
    if values.type not in TEXTS:
        raise other_type(values, field)
    return values.cast(target)


def _uuid(values: pa.Array, field: LakeField, target: pa.DataType) -> pa.Array:
    if values.type in _STRINGS:
        return values.cast(target)
    if values.type != pa.binary(_UUID_BYTES):
        raise other_type(values, field)
    return pa.array([None if value is None else str(UUID(bytes=value)) for value in values.to_pylist()], target)


def _bytes(values: pa.Array, field: LakeField, target: pa.DataType) -> pa.Array:
    if values.type in _STRINGS or (values.type not in TEXTS and not pa.types.is_fixed_size_binary(values.type)):
        raise other_type(values, field)
    return values.cast(target)


def _date(values: pa.Array, field: LakeField, target: pa.DataType) -> pa.Array:
    if not pa.types.is_date(values.type):
        raise other_type(values, field)
    return values.cast(target)


def _time(values: pa.Array, field: LakeField, target: pa.DataType) -> pa.Array:
    if field.type == "timetz" and values.type in _STRINGS:
        return pa.array([None if text is None else _utc_micros(text) for text in values.to_pylist()], pa.int64()).view(
            target
        )
    if not pa.types.is_time(values.type):
        raise other_type(values, field)
    return values.cast(target)


def _utc_micros(text: str) -> int:
    """Return the microseconds of the day in UTC of a time with an offset, such as 10:30:00+02."""
    match = _ZONED.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:50]!r} is no time with an offset")
    hours, minutes, seconds, fraction, sign, *offset = match.groups()
    micros = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 1_000_000 + int((fraction or "0").ljust(6, "0"))
    shift = sum(int(part or 0) * unit for part, unit in zip(offset, (3600, 60, 1), strict=True)) * 1_000_000
    return (micros - (shift if sign == "+" else -shift)) % _DAY


def _timestamp(values: pa.Array, field: LakeField, target: pa.DataType) -> pa.Array:
    if not pa.types.is_timestamp(values.type):
        raise other_type(values, field)
    return values.view(pa.timestamp(values.type.unit)).cast(pa.timestamp(target.unit)).view(target)


def _interval(values: pa.Array, field: LakeField, target: pa.DataType) -> pa.Array:
    """Return intervals; data files have 12 bytes: months, days and milliseconds, little-endian."""
    if values.type != pa.binary(_INTERVAL_BYTES):
        raise other_type(values, field)
    parts = [None if value is None else np.frombuffer(value, "<u4").astype(np.int64) for value in values.to_pylist()]
    signed = [
        None
        if part is None
        else (
            int(np.int32(part[0].astype(np.uint32).view(np.int32))),
            int(part[1].astype(np.uint32).view(np.int32)),
            int(part[2]) * 1_000_000,
        )
        for part in parts
    ]
    return pa.array([None if part is None else pa.MonthDayNano(part) for part in signed], target)


def _variant(values: pa.Array, field: LakeField, target: pa.DataType) -> pa.Array:
    if not isinstance(values, pa.StructArray):
        raise other_type(values, field)
    whole = variant_columns.unshred_variants(values, target)
    # Below a null variant DuckDB has nulls, which Spark does not accept there.
    children = [pc.fill_null(whole.field(index), b"") for index in range(target.num_fields)]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=whole.is_null())


_LEAVES: Mapping[str, Callable[[pa.Array, LakeField, pa.DataType], pa.Array]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), _integer),
    **dict.fromkeys(("int128", "uint128"), _wide_integer),
    **dict.fromkeys(("float32", "float64"), _float),
    **dict.fromkeys(("varchar", "json"), _text),
    **dict.fromkeys(("blob", "geometry"), _bytes),
    **dict.fromkeys(("time", "time_ns", "timetz"), _time),
    **dict.fromkeys(
        ("timestamp", "timestamp_us", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz"), _timestamp
    ),
    "boolean": _boolean,
    "decimal": _decimal,
    "uuid": _uuid,
    "date": _date,
    "interval": _interval,
    "variant": _variant,
}


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
