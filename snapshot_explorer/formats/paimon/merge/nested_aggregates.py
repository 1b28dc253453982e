"""Aggregate functions over arrays and maps. Values stay unseen: positions and numbers that stand for them are folded.

The order of elements and entries means nothing in Paimon, whose own order is that of a hash table; here they stay in
the order in which they came.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats.paimon.merge.aggregates import Fold
from snapshot_explorer.formats.paimon.merge.engines import Function
from snapshot_explorer.formats.paimon.merge.key_codes import equality_codes, value_codes


def spans(array: pa.Array) -> list[range | None]:
    """Return where the elements or entries of each value are, None for null."""
    offsets = np.asarray(array.offsets).tolist()
    valid = np.asarray(array.is_valid()).tolist()
    return [range(start, end) if ok else None for ok, start, end in zip(valid, offsets, offsets[1:], strict=False)]


def offsets_of(lengths: Iterable[int | None]) -> pa.Array:
    """Return the offsets of lists of these lengths; a null offset makes a null."""
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
    """Return how many elements each value has."""
    return [None if value is None else len(value) for value in values]


def lister(elements: pa.Array, kind: pa.DataType) -> Callable[[Iterable[Any]], pa.Array]:
    """Return what makes lists of elements that are given as positions."""

    def result(values: Iterable[Any]) -> pa.Array:
        listed = list(values)
        taken = elements.take(pa.array(flat(listed), pa.int64()))
        return pa.ListArray.from_arrays(offsets_of(lengths_of(listed)), taken, type=kind)

    return result


def collect(array: pa.Array, function: Function) -> Fold:
    """Return `collect`. An item is the positions of the elements.

    Elements that are themselves nested, or byte arrays, are joined without a look at their values; to take some back,
    Java compares them by classes that differ from reader to reader, some of which refuse it. That is refused here, but
    for distinct elements, which have a comparison of their own.

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
            raise UnsupportedFeatureError(
                f"A column of the aggregate function collect has elements of type {array.values.type} taken back, "
                "which Paimon's own readers compare in different ways, or fail on. Leave the column out."
            )
        away = [codes[place] for place in item]
        left = []
        for place in value:
            if codes[place] in away:
                away.remove(codes[place])
            else:
                left.append(place)
        return tuple(left)

    together = _distinct(array.values, codes) if function.distinct else add
    items = [None if span is None else tuple(span) for span in spans(array)]
    return Fold(
        items=items, add=together, add_earlier=together, retract=retract, result=lister(array.values, array.type)
    )


def _is_uncomparable(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _distinct(elements: pa.Array, codes: list[int]) -> Callable[[Any, Any], Any]:
    """Return what adds elements that are not there yet."""
    nested, is_rows = pa.types.is_nested(elements.type), pa.types.is_struct(elements.type)
    absent = np.asarray(elements.is_null()).tolist()

    def add(value: Any, item: Any) -> Any:
        if value is None and item is None:
            return None
        if is_rows and any(absent[place] for place in (*(value or ()), *(item or ()))):
            raise UnsupportedFeatureError(
                "A column whose distinct rows are collected holds null among them, on which Paimon itself fails. "
                "Leave the column out."
            )
        kept = list(value or ()) if nested else []  # Java takes what was collected before for distinct
        seen = {codes[place] for place in kept}
        for place in (*(() if nested else value or ()), *(item or ())):
            if codes[place] not in seen:
                seen.add(codes[place])
                kept.append(place)
        return tuple(kept)

    return add


def _entries(array: pa.Array) -> tuple[list[dict[int, int] | None], Callable[[Iterable[Any]], pa.Array]]:
    """Return the positions of each map's entries by the numbers of their keys, and what makes maps of such again."""
    codes = equality_codes(pa.chunked_array([array.keys])).tolist()

    def result(values: Iterable[Any]) -> pa.Array:
        listed = [None if value is None else list(value.values()) for value in values]
        places = pa.array(flat(listed), pa.int64())
        offsets = offsets_of(lengths_of(listed))
        return pa.MapArray.from_arrays(offsets, array.keys.take(places), array.items.take(places), type=array.type)

    return [None if span is None else {codes[place]: place for place in span} for span in spans(array)], result


def merge_map(array: pa.Array) -> Fold:
    """Return `merge_map`. An item is the positions of the entries by the numbers of their keys.

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
        return {code: place for code, place in value.items() if code not in item}

    return Fold(items=items, add=add, retract=retract, result=result)


def merge_timed_map(array: pa.Array, function: Function) -> Fold:
    """Return `merge_map_with_keytime`: entries are rows that hold their time as text.

    Source: paimon FieldMergeMapWithKeyTimeAgg.
    """
    items, result = _entries(array)
    rows = array.items
    name = function.time_field or rows.type.field(rows.type.num_fields - 1).name
    # Java compares texts by their UTF-16 units.
    times = [None if text is None else text.encode("utf-16-be") for text in rows.field(name).to_pylist()]
    absent = np.asarray(rows.is_null()).tolist()

    def replaces(place: int, present: int | None) -> bool:
        if present is None or absent[present] or times[present] is None:
            return True
        newer, older = times[place], times[present]
        return newer is not None and older is not None and newer > older

    def add(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        merged = dict(value)
        for code, place in item.items():
            if absent[place]:
                merged.pop(code, None)
            elif times[place] is not None and replaces(place, merged.get(code)):
                merged[code] = place
        return merged

    return Fold(items=items, add=add, result=result)
