"""DataFrames and Arrow data as an Arrow table in types that columns of tables have."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.analysis.given.arrow_types import with_plain_types
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message

if TYPE_CHECKING:
    import pandas as pd

_EXACT_FLOATS = 2**53
"""Integers from here on are not exact in a float64, to which pandas converts integers with nulls."""


def is_rows(value: object) -> bool:
    """Return whether a value is a DataFrame, of pandas or Spark too, or has rows as Arrow data."""
    return is_spark_frame(value) or _is_pandas(value) or hasattr(type(value), "__arrow_c_stream__")


def is_spark_frame(value: object) -> bool:
    """Return whether a value is a DataFrame of Spark."""
    return type(value).__module__.startswith("pyspark.sql") and hasattr(value, "mapInArrow")


def name_of(value: object) -> str:
    """Return a name for a DataFrame in titles, such as `pandas DataFrame`."""
    kind = type(value)
    return f"{kind.__module__.partition('.')[0].lstrip('_')} {kind.__name__}"


def arrow_table(value: object, like: pa.Schema | None) -> pa.Table:
    """Return the rows of a DataFrame or of Arrow data; a stream is read once and held in memory.

    Args:
        like: The types of the columns that the rows are compared with, for pandas' columns of Python objects, and for
            integers with nulls, which pandas holds as floats.

    Raises:
        InvalidArgumentError: It has no rows in columns with unique names of text.
        UnsupportedFeatureError: A value does not fit the type in which its column is compared.
    """
    if _is_pandas(value):
        rows = _of_pandas(value, like or pa.schema([]))  # type: ignore[arg-type]
    else:
        source: Any = value
        try:
            rows = pa.RecordBatchReader.from_stream(source).read_all()
        except (pa.ArrowException, OSError, TypeError, ValueError) as error:
            raise InvalidArgumentError(f"The {name_of(value)} has no rows that Arrow can read: {error}") from error
    repeated = next((name for name, times in Counter(rows.column_names).items() if times > 1), None)
    if repeated is not None:
        raise InvalidArgumentError(
            f"The {name_of(value)} has several columns {repeated!r}. Rename all but one of them."
        )
    return with_plain_types(rows)


def _is_pandas(value: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def _of_pandas(frame: pd.DataFrame, like: pa.Schema) -> pa.Table:
    """Return the columns of a frame, after the levels of its index that have names."""
    index: Any = frame.index
    levels = [name for name in index.names if name is not None]
    clash = next((name for name in levels if name in frame.columns), None)
    if clash is not None:
        raise InvalidArgumentError(f"The pandas DataFrame has a column and an index {clash!r}. Rename one of them.")
    frame = frame.reset_index(level=levels) if levels else frame
    names: list[Any] = list(frame.columns)
    wrong = next((name for name in names if not isinstance(name, str)), None)
    if wrong is not None:
        raise InvalidArgumentError(f"The pandas DataFrame has a column {wrong!r}, which is not text. Rename it.")
    columns = [_column(frame.iloc[:, index], name, like) for index, name in enumerate(names)]
    return pa.Table.from_arrays(columns, names=names)


def _column(values: pd.Series[Any], name: str, like: pa.Schema) -> pa.Array:
    dtype = like.field(name).type if like.names.count(name) == 1 else None
    if values.dtype == object:
        for target in (dtype, None):
            try:
                return pa.array([_with_pairs(value, target) for value in values], target, from_pandas=True)
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError) as error:
                problem = error
        raise InvalidArgumentError(
            Message(
                f"The column {name!r} of the pandas DataFrame has values of several types: {problem}. Convert it to "
                "one type, or leave it out: ",
                Hint("", {"exclude": [...]}),
                ".",
            )
        )
    array = pa.array(values, from_pandas=True)
    if pa.types.is_float64(array.type) and array.null_count == len(array):
        return pa.nulls(len(array))  # the type that pandas gives a column without values
    if dtype is not None and pa.types.is_integer(dtype) and pa.types.is_float64(array.type):
        return _integers(array)
    return array


def _with_pairs(value: object, dtype: pa.DataType | None) -> object:
    """Return a value whose dicts are the pairs of a map where the type is one."""
    if dtype is None or value is None:
        return value
    if pa.types.is_map(dtype) and isinstance(value, dict):
        return [(key, _with_pairs(item, dtype.item_type)) for key, item in value.items()]
    if pa.types.is_struct(dtype) and isinstance(value, dict):
        types = {field.name: field.type for field in dtype}
        return {key: _with_pairs(item, types.get(key)) for key, item in value.items()}
    if pa.types.is_list(dtype) and isinstance(value, list):
        return [_with_pairs(item, dtype.value_type) for item in value]
    return value


def _integers(array: pa.Array) -> pa.Array:
    """Return floats as integers if all of them are; otherwise the floats, whose type is then compared."""
    largest = pc.max(pc.abs(array)).as_py()
    if largest is not None and not largest < _EXACT_FLOATS:
        return array
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid:
        return array
