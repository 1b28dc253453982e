"""Aggregate functions over arrays and maps. They fold positions and codes of elements instead of values.

The order of elements and entries is undefined in Paimon, which uses a hash table. Here it is the input order.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.merge.aggregates import Fold
from snapshot_explorer.formats.paimon.merge.key_codes import equality_codes, order_codes, value_codes
from snapshot_explorer.formats.paimon.merge.rules import Function


def spans(array: pa.Array) -> list[range | None]:
    """Return the positions of the elements or entries of each value, None for null."""
    offsets = np.asarray(array.offsets).tolist()
    valid = np.asarray(array.is_valid()).tolist()
    return [range(start, end) if ok else None for ok, start, end in zip(valid, offsets, offsets[1:], strict=False)]


def offsets_of(lengths: Iterable[int | None]) -> pa.Array:
    """Return the offsets of lists of these lengths. A null offset makes a null list."""
    offsets: list[int | None] = []
    end = 0
    for length in lengths:
        offsets.append(None if length is None else end)
        end += length or 0
    return pa.array([*offsets, end], pa.int32())


def flat(values: Iterable[Iterable[Any] | None]) -> list[Any]:
    """Return all elements of all values."""
    return [item for value in values if value is not None for item in value]


def lengths_of(values: Iterable[Any]) -> list[int | None]:
    """Return the number of elements of each value."""
    return [None if value is None else len(value) for value in values]


def lister(elements: pa.Array, dtype: pa.DataType) -> Callable[[Iterable[Any]], pa.Array]:
    """Return the function that builds lists from the positions of their elements."""

    def result(values: Iterable[Any]) -> pa.Array:
        listed = list(values)
        taken = elements.take(pa.array(flat(listed), pa.int64()))
        return pa.ListArray.from_arrays(offsets_of(lengths_of(listed)), taken, type=dtype)

    return result


def collect(array: pa.Array, function: Function) -> Fold:
    """Return `collect`. An item is the positions of the elements.

    Nested elements and byte arrays are concatenated without comparing them. Java compares them only for retracts, with
    classes that differ between readers, and some readers fail. Retracts of these therefore raise, except for distinct
    elements, which have a separate comparison.

    Source: paimon FieldCollectAgg.
    """
    compared = function.distinct or not _is_uncomparable(array.values.type)
    codes = value_codes(array.values).tolist() if compared else []

    def add(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        return value + item

    def retract(value: Any, item: Any) -> Any:
        if value is None or not item:
            return value
        if not compared:
            raise refusal(features.COLLECT_RETRACTS, type=array.values.type)
        removed_codes = [codes[index] for index in item]
        left = []
        for index in value:
            if codes[index] in removed_codes:
                removed_codes.remove(codes[index])
            else:
                left.append(index)
        return tuple(left)

    together = _distinct(array.values, codes) if function.distinct else add
    items = [None if span is None else tuple(span) for span in spans(array)]
    return Fold(
        items=items, add=together, add_earlier=together, retract=retract, result=lister(array.values, array.type)
    )


def _is_uncomparable(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_nested(dtype) or pa.types.is_binary(dtype) or pa.types.is_fixed_size_binary(dtype))


def _distinct(elements: pa.Array, codes: list[int]) -> Callable[[Any, Any], Any]:
    nested, is_rows = pa.types.is_nested(elements.type), pa.types.is_struct(elements.type)
    absent = np.asarray(elements.is_null()).tolist()

    def add(value: Any, item: Any) -> Any:
        if value is None and item is None:
            return None
        if is_rows and any(absent[index] for index in (*(value or ()), *(item or ()))):
            raise refusal(features.NULLS_AMONG_DISTINCT_ROWS)
        kept = list(value or ()) if nested else []  # Java treats the previous elements as distinct
        seen = {codes[index] for index in kept}
        for index in (*(() if nested else value or ()), *(item or ())):
            if codes[index] not in seen:
                seen.add(codes[index])
                kept.append(index)
        return tuple(kept)

    return add


def _entries(array: pa.Array) -> tuple[list[dict[int, int] | None], Callable[[Iterable[Any]], pa.Array]]:
    """Return the entry positions of each map by key code, and the function that builds maps from these."""
    codes = equality_codes(pa.chunked_array([array.keys])).tolist()

    def result(values: Iterable[Any]) -> pa.Array:
        listed = [None if value is None else list(value.values()) for value in values]
        indices = pa.array(flat(listed), pa.int64())
        offsets = offsets_of(lengths_of(listed))
        return pa.MapArray.from_arrays(offsets, array.keys.take(indices), array.items.take(indices), type=array.type)

    return [None if span is None else {codes[index]: index for index in span} for span in spans(array)], result


def merge_map(array: pa.Array) -> Fold:
    """Return `merge_map`. An item is the positions of the entries by key code.

    Source: paimon FieldMergeMapAgg.
    """
    items, result = _entries(array)

    def add(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        return {**value, **item}

    def retract(value: Any, item: Any) -> Any:
        if value is None or not item:
            return value
        return {code: index for code, index in value.items() if code not in item}

    return Fold(items=items, add=add, retract=retract, result=result)


def merge_timed_map(array: pa.Array, function: Function) -> Fold:
    """Return `merge_map_with_keytime`: entries are rows that contain their time as text.

    Source: paimon FieldMergeMapWithKeyTimeAgg.
    """
    items, result = _entries(array)
    rows = array.items
    name = function.time_field or rows.type.field(rows.type.num_fields - 1).name
    # Java compares texts by their UTF-16 units.
    times = [None if text is None else text.encode("utf-16-be") for text in rows.field(name).to_pylist()]
    absent = np.asarray(rows.is_null()).tolist()

    def replaces(index: int, present: int | None) -> bool:
        if present is None or absent[present] or times[present] is None:
            return True
        newer, older = times[index], times[present]
        return newer is not None and older is not None and newer > older

    def add(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        merged = dict(value)
        for code, index in item.items():
            if absent[index]:
                merged.pop(code, None)
            elif times[index] is not None and replaces(index, merged.get(code)):
                merged[code] = index
        return merged

    return Fold(items=items, add=add, result=result)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    items: list[tuple[int, ...] | None]
    """The positions of each value's rows."""
    absent: list[bool]
    keys: list[tuple[int, ...]]
    """The key codes of each row; empty without a key."""
    keyless: list[bool]
    """Whether a part of the key is null."""
    ages: list[tuple[int, ...]]
    """The sequence field codes of each row; empty without sequence fields."""
    null_keys: str
    """How to handle rows whose key contains null: merge, ignore or error."""

    def present(self, item: Iterable[int]) -> list[int]:
        return [index for index in item if not self.absent[index]]

    def keyed(self, item: Iterable[int]) -> list[int]:
        """Return the rows that are not null and whose keys are valid."""
        result = self.present(item)
        if self.null_keys == "merge" or not any(self.keyless[index] for index in result):
            return result
        if self.null_keys == "error":
            raise CorruptBytesError(
                "nested rows have a null in their key, which the option nested-key-null-strategy forbids"
            )
        return [index for index in result if not self.keyless[index]]


def _rows(array: pa.Array, function: Function) -> _Rows:
    elements = array.values
    columns = [elements.field(name) for name in function.nested_key]
    orders = [order_codes(pa.chunked_array([elements.field(name)])).tolist() for name in function.nested_sequence]
    return _Rows(
        items=[None if span is None else tuple(span) for span in spans(array)],
        absent=np.asarray(elements.is_null()).tolist(),
        keys=list(zip(*(value_codes(column).tolist() for column in columns), strict=True)) if columns else [],
        keyless=np.any([np.asarray(column.is_null()) for column in columns], axis=0).tolist() if columns else [],
        ages=list(zip(*orders, strict=True)) if orders else [],
        null_keys=function.null_keys,
    )


def nested_update(array: pa.Array, function: Function) -> Fold:
    """Return `nested_update`. An item is the positions of the rows.

    Paimon 2.0 handles the row limit and the first value differently than older releases. Results on which they agree
    are returned, others raise. Options newer than 1.4 are applied as in 2.0.

    Source: paimon FieldNestedUpdateAgg, of 1.4 and pypaimon 2.1.0.
    """
    rows = _rows(array, function)
    # Without a key a retract removes all rows equal to one of its own.
    numbers: Sequence[Hashable] = rows.keys or value_codes(array.values).tolist()
    newest = bool(rows.ages) or function.null_keys != "merge"
    before_2, since_2 = _before_2(rows, function), _since_2(rows, function)

    def add(value: Any, item: Any) -> Any:
        if item is None:
            return value
        if newest:
            return since_2(value, item)
        made = before_2(value, item)
        if (value is None or function.count_limit is not None) and sorted(made) != sorted(since_2(value, item)):
            raise _differing(function, first=value is None)
        return made

    def retract(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return value
        current, retracted = (
            (rows.keyed(value), rows.keyed(item)) if rows.keys else (rows.present(value), rows.present(item))
        )
        removed_codes = {numbers[index] for index in retracted}
        return tuple(index for index in current if numbers[index] not in removed_codes)

    return Fold(items=rows.items, add=add, retract=retract, result=lister(array.values, array.type))


def _before_2(rows: _Rows, function: Function) -> Callable[[Any, Any], Any]:
    count_limit = function.count_limit

    def add(value: Any, item: Any) -> Any:
        if value is None or (count_limit is not None and len(value) >= count_limit):
            return item if value is None else value
        more = rows.present(item)
        more = more if count_limit is None else more[: count_limit - len(value)]
        indices = (*rows.present(value), *more)
        return tuple({rows.keys[index]: index for index in indices}.values()) if rows.keys else indices

    return add


def _since_2(rows: _Rows, function: Function) -> Callable[[Any, Any], Any]:
    count_limit = function.count_limit

    def listed(value: Any, item: Any) -> Any:
        more = rows.present(item)
        if count_limit is not None:
            more = more[: max(0, count_limit - len(value or ()))]
        return (*rows.present(value or ()), *more)

    def keyed(value: Any, item: Any) -> Any:
        kept: dict[tuple[int, ...], int] = {}
        for limit, part in ((None, value or ()), (count_limit, item)):
            for index in rows.keyed(part):
                present = kept.get(rows.keys[index])
                if present is None:
                    if limit is None or len(kept) < limit:
                        kept[rows.keys[index]] = index
                elif not rows.ages or rows.ages[index] >= rows.ages[present]:
                    kept[rows.keys[index]] = index
        return tuple(kept.values())

    return keyed if rows.keys else listed


def _differing(function: Function, *, first: bool) -> UnsupportedFeatureError:
    rows = "nulls or duplicate keys in its first value" if first else "more rows than its option count-limit allows"
    if first and function.count_limit is not None:
        rows = f"nulls, duplicate keys or more than {function.count_limit} rows in its first value"
    return refusal(features.AMBIGUOUS_NESTED_ROWS, what=rows)


def nested_partial_update(array: pa.Array, function: Function) -> Fold:
    """Return `nested_partial_update`. An item is, for each row, the positions of its fields' values.

    Source: paimon FieldNestedPartialUpdateAgg, of 1.4 and pypaimon 2.1.0.
    """
    rows, elements = _rows(array, function), array.values
    dtype = elements.type
    fields = [elements.field(index) for index in range(dtype.num_fields)]
    valid = [np.asarray(field.is_valid()).tolist() for field in fields]
    key = dtype.get_field_index(function.nested_key[0])

    def add(value: Any, item: Any) -> Any:
        if item is None:
            return value
        if value is None and function.null_keys == "merge":
            alike = {rows.keys[position] for position in item}
            if len(alike) < len(item) or any(rows.absent[position] for position in item):
                raise _differing(Function(name=function.name), first=True)
        merged = {rows.keys[row[key]]: list(row) for row in value or ()}
        for position in rows.keyed(item):
            row = merged.setdefault(rows.keys[position], [position] * len(fields))
            for index, is_valid in enumerate(valid):
                if is_valid[position]:
                    row[index] = position
        return list(merged.values())

    def result(values: Iterable[Any]) -> pa.Array:
        listed = list(values)
        flattened = flat(listed)
        columns = [
            field.take(pa.array([row[index] for row in flattened], pa.int64())) for index, field in enumerate(fields)
        ]
        made = pa.StructArray.from_arrays(columns, fields=[dtype.field(index) for index in range(dtype.num_fields)])
        return pa.ListArray.from_arrays(offsets_of(lengths_of(listed)), made, type=array.type)

    return Fold(items=rows.items, add=add, result=result)
