"""Values as text: as SQL casts them, and as Java prints them."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType

_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_FRACTION_DIGITS = 9
_PLAIN_MIN, _PLAIN_MAX = 1e-3, 1e7


def sql_text(values: pa.Array | pa.ChunkedArray, data_type: PaimonDataType) -> list[str | None]:
    """Return each value as SQL casts it to a string, None for null.

    DATE `2026-01-01`; TIMESTAMP `2026-01-01 12:00:00.123` with as many digits as its precision, local-zone ones in
    UTC; true, false; decimals plain; bytes in hexadecimal.

    Source: paimon CastExecutors, DateTimeUtils.formatTimestamp.
    """
    return _text(values, data_type, _SQL)


def legacy_text(values: pa.Array | pa.ChunkedArray, data_type: PaimonDataType) -> list[str | None]:
    """Return each value as Java prints its internal form, which folder names use by default.

    DATE as days since 1970, TIME as milliseconds of the day, TIMESTAMP `2026-01-01T12:00:00.123` with seconds left
    out when zero and 0, 3, 6 or 9 digits, FLOAT and DOUBLE as `1.0E20`.

    Source: paimon docs, "partition.legacy-name"; java.time.LocalDateTime.toString, java.lang.Double.toString.
    """
    return _text(values, data_type, _LEGACY)


def _text(
    values: pa.Array | pa.ChunkedArray,
    data_type: PaimonDataType,
    formatters: "dict[str, Callable[[Any, PaimonDataType], str]]",
) -> list[str | None]:
    if pa.types.is_temporal(values.type):
        width = pa.int32() if values.type.bit_width == 32 else pa.int64()  # noqa: PLR2004
        values = values.cast(width)
    formatter = formatters.get(data_type.root, _refused)
    return [None if value is None else formatter(value, data_type) for value in values.to_pylist()]


def _plain(value: Any, _: PaimonDataType) -> str:
    return str(value)


def _refused(_: Any, data_type: PaimonDataType) -> str:
    raise refusal(features.BINARY_PARTITION_FOLDERS, type=data_type.root)


def _time(value: Any, data_type: PaimonDataType) -> str:
    seconds, millis = divmod(int(value), 1_000)
    digits = f"{millis:03d}"[: data_type.precision or 0]
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}" + (f".{digits}" if digits else "")


def _seconds_and_fraction(value: int, data_type: PaimonDataType) -> tuple[str, str]:
    precision = data_type.precision or 0
    unit = _UNITS["ms" if precision <= 3 else "us" if precision <= 6 else "ns"]  # noqa: PLR2004
    seconds, rest = divmod(value, unit)
    return str(np.datetime64(seconds, "s")), f"{rest * (_UNITS['ns'] // unit):0{_FRACTION_DIGITS}d}"


def _sql_timestamp(value: Any, data_type: PaimonDataType) -> str:
    moment, fraction = _seconds_and_fraction(int(value), data_type)
    precision = data_type.precision or 0
    kept = fraction[:precision] + fraction[precision:].rstrip("0")
    return moment.replace("T", " ") + (f".{kept}" if kept else "")


def _legacy_timestamp(value: Any, data_type: PaimonDataType) -> str:
    moment, fraction = _seconds_and_fraction(int(value), data_type)
    if not moment.startswith("-") and len(moment.partition("-")[0]) > 4:  # noqa: PLR2004 - Java marks years past 9999
        moment = f"+{moment}"
    kept = next(fraction[:digits] for digits in (0, 3, 6, 9) if not fraction[digits:].strip("0"))
    if kept:
        return f"{moment}.{kept}"
    return moment.removesuffix(":00")


def java_text(number: float, *, single: bool) -> str:
    """Return a float as Java prints it: the shortest digits, with an exponent outside of 0.001 to 10 million.

    Java before 19 printed one digit too many for a few numbers, such as 2.0E23. This is the corrected text.

    Source: java.lang.Double.toString and Float.toString of Java 19 and later.
    """
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "-0.0" if math.copysign(1, number) < 0 else "0.0"
    _, digits, exponent = Decimal(_shortest(number, single=single)).as_tuple()
    point = len(digits) + int(exponent)
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    sign = "-" if number < 0 else ""
    if not _PLAIN_MIN <= abs(number) < _PLAIN_MAX:
        return f"{sign}{figures[0]}.{figures[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{figures}"
    return f"{sign}{figures[:point].ljust(point, '0')}.{figures[point:] or '0'}"


def _shortest(number: float, *, single: bool) -> str:
    """Return the shortest digits that parse to the number; two digits instead of one if they are closer."""
    text = str(np.float32(number)) if single else repr(number)
    if sum(figure != 0 for figure in Decimal(text).normalize().as_tuple().digits) > 1:
        return text
    closer = f"{number:.1e}"
    with np.errstate(under="ignore"):
        same = np.float32(closer) == np.float32(number) if single else float(closer) == number
    return closer if same else text


_SQL: dict[str, Callable[[Any, PaimonDataType], str]] = {
    "BOOLEAN": lambda value, _: "true" if value else "false",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "CHAR", "VARCHAR"), _plain),
    **dict.fromkeys(("FLOAT", "DOUBLE"), lambda value, data_type: java_text(value, single=data_type.root == "FLOAT")),
    **dict.fromkeys(("BINARY", "VARBINARY"), lambda value, _: bytes(value).hex()),
    "DECIMAL": lambda value, _: f"{value:f}",
    "DATE": lambda value, _: str(np.datetime64(int(value), "D")),
    "TIME": _time,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _sql_timestamp),
}
_LEGACY = _SQL | {
    **dict.fromkeys(("DATE", "TIME"), _plain),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _legacy_timestamp),
    **dict.fromkeys(("BINARY", "VARBINARY"), _refused),
}
