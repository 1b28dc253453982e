"""Python values of Arrow data, in which maps are dicts."""

from collections.abc import Sequence
from itertools import count
from typing import Any, Literal

import pyarrow as pa

from snapshot_explorer.core.old_libraries import PYARROW_MAPS_AS_DICTS


def with_dicts(values: pa.Table | pa.Array | pa.ChunkedArray, keys: Literal["strict", "lossy"]) -> list[Any]:
    """Return Python values, in which maps are dicts: of a table, a list with a dict per row.

    Args:
        keys: What happens if a map has a key twice: `strict` raises KeyError, `lossy` keeps the last value.
    """
    if not PYARROW_MAPS_AS_DICTS.applies():
        rows: list[Any] = values.to_pylist(maps_as_pydicts=keys)
        return rows
    if isinstance(values, pa.Table):
        columns = [with_dicts(column, keys) for column in values.columns]
        rows = [dict(zip(values.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
        return rows if columns else values.to_pylist()
    return [_value(value, values.type, keys) for value in values.to_pylist()]


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names of columns that all differ: to a repeated name its position is added, as in `id (3)`."""
    taken, result, seen = set(names), list[str](), set[str]()
    for position, name in enumerate(names, 1):
        own = name
        if name in seen:
            own = next(text for number in count(position) if (text := f"{name} ({number})") not in taken)
            taken.add(own)
        seen.add(name)
        result.append(own)
    return result


def _value(value: Any, dtype: pa.DataType, keys: str) -> Any:
    """Return a Python value of a type with its maps, which are lists of pairs, as dicts."""
    if value is None or not dtype.num_fields:
        return value
    if pa.types.is_struct(dtype):
        fields = [dtype.field(index) for index in range(dtype.num_fields)]
        return {field.name: _value(value[field.name], field.type, keys) for field in fields}
    if pa.types.is_map(dtype):
        pairs = [(key, _value(item, dtype.item_type, keys)) for key, item in value]
        if keys == "strict" and len(dict(pairs)) < len(pairs):
            raise KeyError("a map has a key twice")
        return dict(pairs)
    return [_value(item, dtype.value_type, keys) for item in value]
