"""Rows in a form that two readers' answers can be compared in: JSON values, sorted, independent of how they were read.

`canonical_rows(table)` gives a list of rows, each a list of values in column order: null is None; booleans, integers
and text stay; floats keep 9 significant digits (NaN and the infinities are words); decimals are plain text; binary is
hex; dates, times and timestamps are ISO text without trailing zeros in the fraction, an instant in UTC with Z; a list
is a list, a struct the list of its values, a map its sorted [key, value] pairs.
"""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa

_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock arithmetic; the zone is written by hand


def canonical_rows(table: pa.Table) -> list[list[Any]]:
    """Return the rows of a table in canonical form, sorted by their JSON text."""
    columns = [[_canonical(scalar, column.type) for scalar in column] for column in table.itercolumns()]
    rows = [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(table.num_rows)]
    return sorted(rows, key=json.dumps)


def _canonical(scalar: pa.Scalar, kind: pa.DataType) -> Any:
    if isinstance(scalar, pa.ExtensionScalar):
        scalar, kind = scalar.value, kind.storage_type
    if scalar is None or not scalar.is_valid:
        return None
    if pa.types.is_dictionary(kind):
        return _canonical(scalar.value, kind.value_type)
    if pa.types.is_nested(kind):
        return _nested(scalar, kind)
    if pa.types.is_temporal(kind):
        return _temporal(scalar, kind)
    value = scalar.as_py()
    if pa.types.is_floating(kind):
        return _float(float(value))
    if pa.types.is_decimal(kind):
        return format(value, "f")
    return value.hex() if isinstance(value, bytes) else value


def _nested(scalar: pa.Scalar, kind: pa.DataType) -> list[Any]:
    if pa.types.is_struct(kind):
        return [_canonical(scalar[index], kind.field(index).type) for index in range(kind.num_fields)]
    if pa.types.is_map(kind):
        pairs = [
            [_canonical(pair["key"], kind.key_type), _canonical(pair["value"], kind.item_type)]
            for pair in scalar.values
        ]
        return sorted(pairs, key=str)
    return [_canonical(item, kind.value_type) for item in scalar.values]


def _temporal(scalar: pa.Scalar, kind: pa.DataType) -> Any:
    if pa.types.is_date32(kind):
        return (date(1970, 1, 1) + timedelta(days=scalar.value)).isoformat()
    if pa.types.is_date64(kind):
        return (date(1970, 1, 1) + timedelta(milliseconds=scalar.value)).isoformat()
    if not (pa.types.is_timestamp(kind) or pa.types.is_time(kind)):
        return scalar.as_py()
    seconds, nanos = divmod(scalar.value * _NANOS[kind.unit], 10**9)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    if pa.types.is_time(kind):
        return moment.time().isoformat() + fraction
    return moment.isoformat() + fraction + ("Z" if kind.tz is not None else "")


def _float(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float(f"{value:.9g}") + 0.0
