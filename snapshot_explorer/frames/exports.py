"""Rows of any type as JSON text, and as columns that a CSV file can have."""

from __future__ import annotations

import orjson
import pyarrow as pa

_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


def json_text(rows: pa.Table) -> str:
    """Return rows as JSON text, a list with an object per row.

    Times are ISO 8601 in UTC, decimals text, binary hexadecimal text, what JSON has no number for null.
    """
    return _dumped(rows.to_pylist(maps_as_pydicts="lossy"))


def flat(rows: pa.Table) -> pa.Table:
    """Return rows with nested values as JSON text and binary as hexadecimal text."""
    for place, item in enumerate(rows.schema):
        if _is_binary(item.type) or pa.types.is_nested(item.type) or pa.types.is_null(item.type):
            values = rows.select([place]).to_pydict(maps_as_pydicts="lossy")[item.name]
            texts = pa.array([None if one is None else _flat_text(one) for one in values], pa.string())
            rows = rows.set_column(place, item.name, texts)
    return rows


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _flat_text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else _dumped(value)


def _dumped(value: object) -> str:
    return orjson.dumps(value, option=_OPTIONS, default=_json_value).decode()


def _json_value(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
