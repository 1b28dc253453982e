"""Arrow rows as pandas, in the types that a user chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.variant_texts import with_texts
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.text import did_you_mean

if TYPE_CHECKING:
    import pandas as pd


def as_pandas(rows: pa.Table, *, maps_as_dicts: bool = False) -> pd.DataFrame:
    """Return Arrow rows as pandas with Arrow dtypes, without loss; variants become JSON text.

    Integers with nulls stay integers, decimals stay decimals, nanoseconds and nested values survive. Intervals, for
    which pandas has no Arrow dtype, become objects of `pandas.DateOffset`.

    Args:
        maps_as_dicts: Convert maps to dicts, with unique keys, instead of lists of pairs.
    """
    import pandas as pd

    def dtype(arrow_type: pa.DataType) -> pd.api.extensions.ExtensionDtype | None:
        is_object = pa.types.is_interval(arrow_type) or (maps_as_dicts and pa.types.is_map(arrow_type))
        return None if is_object else pd.ArrowDtype(arrow_type)

    rows = with_texts(rows)
    converted: pd.DataFrame = rows.to_pandas(types_mapper=dtype, maps_as_pydicts="strict", ignore_metadata=True)
    return converted


PandasTypes = Literal["arrow", "numpy", "nullable"]
_EXACT_IN_FLOATS = 2**53


def rows_as_pandas(rows: pa.Table, types: PandasTypes = "arrow") -> pd.DataFrame:
    """Return Arrow rows as pandas.

    Args:
        types: `arrow`: Arrow dtypes, without loss. `numpy`: the types of `pandas.read_parquet`: decimals become the
            nearest float64, integers with nulls float64, dates datetime64, and booleans with nulls objects.
            `nullable`: pandas' own types with NA, such as Int64: only decimals lose digits, as they become Float64.
            Values inside of lists, structs and maps stay as they are. Variants become JSON text.
    """
    match check_types(types):
        case "arrow":
            return as_pandas(rows)
        case "numpy":
            _check_integers(rows)
            return _convert(_with_floats(rows), {})
        case _:
            return _convert(_with_floats(rows), _nullable_types())


def check_types(types: str) -> PandasTypes:
    """Return the types if they are known."""
    known: tuple[PandasTypes, ...] = get_args(PandasTypes)
    for name in known:
        if types == name:
            return name
    near = did_you_mean(types, known)
    raise InvalidArgumentError(Message(Hint("", {"types": types}), f" is unknown.{near} Types: {', '.join(known)}."))


def decimal_columns(schema: pa.Schema) -> list[str]:
    """Return the names of the decimal columns."""
    return [field.name for field in schema if pa.types.is_decimal(field.type)]


def _with_floats(rows: pa.Table) -> pa.Table:
    for position, field in enumerate(rows.schema):
        if pa.types.is_decimal(field.type):
            # By way of text: Arrow's own cast to float64 is off by one in the last place for some values.
            floats = pc.cast(pc.cast(rows.column(position), pa.string()), pa.float64())
            rows = rows.set_column(position, field.name, floats)
    return rows


def _check_integers(rows: pa.Table) -> None:
    """Raise InvalidArgumentError for a column of integers with nulls that float64 cannot hold exactly."""
    for position, field in enumerate(rows.schema):
        column = rows.column(position)
        if not pa.types.is_integer(field.type) or not column.null_count or field.type.bit_width < 64:  # noqa: PLR2004 - bits
            continue
        extremes = pc.min_max(column).as_py()
        if max(abs(value or 0) for value in extremes.values()) > _EXACT_IN_FLOATS:
            raise InvalidArgumentError(
                Message(
                    f"Column {field.name!r} has nulls and integers beyond 2**53, which NumPy would hold as rounded "
                    "floats. Use ",
                    Hint("", {"types": "nullable"}),
                    ", or leave the column or its nulls out.",
                )
            )


def _nullable_types() -> dict[pa.DataType, object]:
    import pandas as pd

    integers = {getattr(pa, f"{sign}int{bits}")(): f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    named = {dtype: name.replace("int", "Int").replace("u", "U") for dtype, name in integers.items()}
    named |= {pa.float32(): "Float32", pa.float64(): "Float64", pa.bool_(): "boolean"}
    result: dict[pa.DataType, object] = {dtype: pd.api.types.pandas_dtype(name) for dtype, name in named.items()}
    return result | dict.fromkeys((pa.string(), pa.large_string()), pd.StringDtype())


def _convert(rows: pa.Table, types: dict[pa.DataType, object]) -> pd.DataFrame:
    converted: pd.DataFrame = with_texts(rows).to_pandas(
        types_mapper=types.get, date_as_object=False, ignore_metadata=True, maps_as_pydicts=None
    )
    return converted
