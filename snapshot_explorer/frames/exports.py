"""Rows of any type as JSON text, and as columns that a CSV file can have; the path of a file to write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa

from snapshot_explorer.arrow.python_values import with_dicts
from snapshot_explorer.errors import InvalidArgumentError

if TYPE_CHECKING:
    from os import PathLike

_IN_TABLES = ("_delta_log", "metadata/*.metadata.json", "schema/schema-[0-9]*", ".hoodie/hoodie.properties*")
"""What the folder of a table contains, by format."""
_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


def output_path(path: str | PathLike[str]) -> str:
    """Return the path of a file to write; `~` is the home folder."""
    try:
        target = Path(path).expanduser()
        resolved = target.resolve()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidArgumentError(f"path must be the path of a file, got {path!r}: {error}.") from error
    if "://" in str(path):
        raise InvalidArgumentError(f"{path} is a URL, but files are written to the local disk. Choose a path there.")
    if target.is_dir():
        raise InvalidArgumentError(f"{target} is a folder. Give the path of a file in it.")
    for folder in resolved.parents:
        if any(any(folder.glob(pattern)) for pattern in _IN_TABLES):
            raise InvalidArgumentError(
                f"{path} is in the table {folder}, which is only read. Choose a file outside of it."
            )
    return str(target)


def json_text(rows: pa.Table) -> str:
    """Return rows as JSON text, a list with an object per row.

    Times are ISO 8601 in UTC, decimals text, binary hexadecimal text, what JSON has no number for null.
    """
    return _dumped(with_dicts(rows, "lossy"))


def flat(rows: pa.Table) -> pa.Table:
    """Return rows in one chunk, with nested values as JSON text and binary as hexadecimal text."""
    for index, item in enumerate(rows.schema):
        if _is_binary(item.type) or pa.types.is_nested(item.type) or pa.types.is_null(item.type):
            values = with_dicts(rows.column(index), "lossy")
            texts = pa.array([None if item is None else _flat_text(item) for item in values], pa.string())
            rows = rows.set_column(index, item.name, texts)
    return rows.combine_chunks()  # see PYARROW_CSV_CHUNKS


def indented_json(rows: pa.Table) -> str:
    """Return the first value of rows with one column as JSON in indented lines."""
    (value,) = with_dicts(rows.column(0).slice(0, 1), "lossy")
    return value if isinstance(value, str) else _dumped(value, orjson.OPT_INDENT_2)


def _is_binary(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype) or pa.types.is_fixed_size_binary(dtype))


def _flat_text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else _dumped(value)


def _dumped(value: object, more: int = 0) -> str:
    return orjson.dumps(value, option=_OPTIONS | more, default=_json_value).decode()


def _json_value(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
