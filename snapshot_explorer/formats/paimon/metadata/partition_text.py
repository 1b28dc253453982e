"""Partition values as text: as SQL prints them, and as the folders of a table spell them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats.paimon.metadata.schema import DataType

_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_FRACTION_DIGITS = 9
_PLAIN_FROM = 1e-3
_PLAIN_UNTIL = 1e7


def sql_text(values: pa.Array | pa.ChunkedArray, kind: DataType) -> list[str | None]:
    """Return each value as SQL's cast to string prints it, None for null.

    DATE `2026-01-01`; TIMESTAMP `2026-01-01 12:00:00.123` with as many digits as its precision, local-zone ones in
    UTC; true, false; decimals plain; bytes in hexadecimal.

    Source: paimon CastExecutors, DateTimeUtils.formatTimestamp.
    """
    return _text(values, kind, _SQL)


def legacy_text(values: pa.Array | pa.ChunkedArray, kind: DataType) -> list[str | None]:
    """Return each value as Java prints its internal form, which is how folders spell it by default.

    DATE as days since 1970, TIME as milliseconds of the day, TIMESTAMP `2026-01-01T12:00:00.123` with seconds left
    out when zero and 0, 3, 6 or 9 digits, FLOAT and DOUBLE as `1.0E20`.

    Raises:
        UnsupportedFeatureError: Bytes have no such form.

    Source: paimon docs, "partition.legacy-name"; java.time.LocalDateTime.toString, java.lang.Double.toString.
    """
    return _text(values, kind, _LEGACY)


def _text(
    values: pa.Array | pa.ChunkedArray, kind: DataType, spelled: "dict[str, Callable[[Any, DataType], str]]"
) -> list[str | None]:
    """Return the text of each value, from its whole number where the type is a time."""
    if pa.types.is_temporal(values.type):
        width = pa.int32() if values.type.bit_width == 32 else pa.int64()  # noqa: PLR2004
        values = values.cast(width)
    spell = spelled.get(kind.root, _refused)
    return [None if value is None else spell(value, kind) for value in values.to_pylist()]


def _boolean(value: Any, _: DataType) -> str:
    return "true" if value else "false"


def _plain(value: Any, _: DataType) -> str:
    return str(value)


def _decimal(value: Any, _: DataType) -> str:
    return f"{value:f}"


def _hexadecimal(value: Any, _: DataType) -> str:
    return bytes(value).hex()


def _refused(_: Any, kind: DataType) -> str:
    raise UnsupportedFeatureError(f"Folders of partitions by a {kind.root} column cannot be named; it is not read.")


def _date(value: Any, _: DataType) -> str:
    return str(np.datetime64(int(value), "D"))


def _time(value: Any, kind: DataType) -> str:
    seconds, millis = divmod(int(value), 1_000)
    digits = f"{millis:03d}"[: kind.precision or 0]
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}" + (f".{digits}" if digits else "")


def _moment(value: int, kind: DataType) -> tuple[str, str]:
    """Return date and time of day to the second, and nine digits of fraction."""
    precision = kind.precision or 0
    unit = _UNITS["ms" if precision <= 3 else "us" if precision <= 6 else "ns"]  # noqa: PLR2004
    seconds, rest = divmod(value, unit)
    return str(np.datetime64(seconds, "s")), f"{rest * (_UNITS['ns'] // unit):0{_FRACTION_DIGITS}d}"


def _sql_timestamp(value: Any, kind: DataType) -> str:
    moment, fraction = _moment(int(value), kind)
    precision = kind.precision or 0
    kept = fraction[:precision] + fraction[precision:].rstrip("0")
    return moment.replace("T", " ") + (f".{kept}" if kept else "")


def _legacy_timestamp(value: Any, kind: DataType) -> str:
    moment, fraction = _moment(int(value), kind)
    if not moment.startswith("-") and len(moment.partition("-")[0]) > 4:  # noqa: PLR2004 - Java marks years past 9999
        moment = f"+{moment}"
    kept = next(fraction[:digits] for digits in (0, 3, 6, 9) if not fraction[digits:].strip("0"))
    if kept:
        return f"{moment}.{kept}"
    return moment.removesuffix(":00")


def _java_float(value: Any, kind: DataType) -> str:
    """Return a number as Java prints it: plain from 0.001 to 10 million, else with an exponent."""
    number = np.float32(value) if kind.root == "FLOAT" else np.float64(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_UNTIL:
        return str(np.format_float_positional(number, unique=True, trim="0"))
    digits, _, exponent = np.format_float_scientific(number, unique=True, trim="0").partition("e")
    return f"{digits}E{int(exponent)}"


_SQL: dict[str, Callable[[Any, DataType], str]] = {
    "BOOLEAN": _boolean,
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "CHAR", "VARCHAR"), _plain),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _java_float),
    **dict.fromkeys(("BINARY", "VARBINARY"), _hexadecimal),
    "DECIMAL": _decimal,
    "DATE": _date,
    "TIME": _time,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _sql_timestamp),
}
_LEGACY = _SQL | {
    **dict.fromkeys(("DATE", "TIME"), _plain),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _legacy_timestamp),
    **dict.fromkeys(("BINARY", "VARBINARY"), _refused),
}
