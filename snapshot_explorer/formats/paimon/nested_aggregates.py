"""Aggregate functions over arrays and maps. Values stay unseen: positions and numbers that stand for them are folded.

The order of elements and entries means nothing in Paimon, whose own order is that of a hash table; here they stay in
the order in which they came.
"""

# ruff: noqa: D102 - Aggregate says what its methods do

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats.paimon.aggregates import Aggregate
from snapshot_explorer.formats.paimon.key_codes import equality_codes, value_codes
from snapshot_explorer.formats.paimon.merge_engines import Function


def _spans(array: pa.Array) -> list[range | None]:
    """Return where the elements or entries of each value are, None for null."""
    offsets = np.asarray(array.offsets).tolist()
    valid = np.asarray(array.is_valid()).tolist()
    return [range(start, end) if ok else None for ok, start, end in zip(valid, offsets, offsets[1:], strict=False)]


def _offsets(lengths: Iterable[int | None]) -> pa.Array:
    """Return the offsets of lists of these lengths; a null offset makes a null."""
    offsets: list[int | None] = []
    end = 0
    for length in lengths:
        offsets.append(None if length is None else end)
        end += length or 0
    return pa.array([*offsets, end], pa.int32())


def _flat(values: Iterable[Iterable[Any] | None]) -> list[Any]:
    return [item for value in values if value is not None for item in value]


def _lengths(values: Iterable[Any]) -> list[int | None]:
    return [None if value is None else len(value) for value in values]


def _listed(values: list[Any], elements: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return lists of elements, given as positions."""
    taken = elements.take(pa.array(_flat(values), pa.int64()))
    return pa.ListArray.from_arrays(_offsets(_lengths(values)), taken, type=kind)


class Collect(Aggregate):
    """`collect`. An item is the positions of the elements.

    Source: paimon FieldCollectAgg.
    """

    def __init__(self, array: pa.Array, function: Function) -> None:
        self._kind = array.type
        self._elements = array.values
        self._codes = value_codes(array.values).tolist()
        self._nested = pa.types.is_nested(self._elements.type)
        self._is_rows = pa.types.is_struct(self._elements.type)
        self._distinct = function.distinct
        self._absent = np.asarray(self._elements.is_null()).tolist()
        self.items = [None if span is None else tuple(span) for span in _spans(array)]

    def add(self, value: Any, item: Any) -> Any:
        if value is None and item is None:
            return None
        if not self._distinct:
            return item if value is None else value if item is None else value + item
        if self._is_rows and any(self._absent[place] for place in (*(value or ()), *(item or ()))):
            raise UnsupportedFeatureError(
                "A column whose distinct rows are collected holds null among them, on which Paimon itself fails. "
                "Leave the column out."
            )
        kept = list(value or ()) if self._nested else []  # Java takes what was collected before for distinct
        seen = {self._codes[place] for place in kept}
        for place in (*(() if self._nested else value or ()), *(item or ())):
            if self._codes[place] not in seen:
                seen.add(self._codes[place])
                kept.append(place)
        return tuple(kept)

    def add_earlier(self, value: Any, item: Any) -> Any:
        return self.add(value, item)

    def retract(self, value: Any, item: Any) -> Any:
        if value is None or not item:
            return value
        away = [self._codes[place] for place in item]
        left = []
        for place in value:
            if self._codes[place] in away:
                away.remove(self._codes[place])
            else:
                left.append(place)
        return tuple(left)

    def result(self, values: Iterable[Any]) -> pa.Array:
        return _listed(list(values), self._elements, self._kind)


class MergeMap(Aggregate):
    """`merge_map`. An item is the positions of the entries by the numbers of their keys.

    Source: paimon FieldMergeMapAgg.
    """

    def __init__(self, array: pa.Array) -> None:
        self._kind = array.type
        self._keys, self._values = array.keys, array.items
        codes = equality_codes(pa.chunked_array([self._keys])).tolist()
        self.items = [None if span is None else {codes[place]: place for place in span} for span in _spans(array)]

    def add(self, value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        return {**value, **item}

    def retract(self, value: Any, item: Any) -> Any:
        if value is None or not item:
            return value
        return {code: place for code, place in value.items() if code not in item}

    def result(self, values: Iterable[Any]) -> pa.Array:
        listed = [None if value is None else list(value.values()) for value in values]
        places = pa.array(_flat(listed), pa.int64())
        return pa.MapArray.from_arrays(
            _offsets(_lengths(listed)), self._keys.take(places), self._values.take(places), type=self._kind
        )


class MergeTimedMap(MergeMap):
    """`merge_map_with_keytime`: entries are rows that hold their time as text.

    Source: paimon FieldMergeMapWithKeyTimeAgg.
    """

    def __init__(self, array: pa.Array, function: Function) -> None:
        super().__init__(array)
        rows = self._values
        name = function.time_field or rows.type.field(rows.type.num_fields - 1).name
        texts = rows.field(name).to_pylist()
        # Java compares texts by their UTF-16 units.
        self._times = [None if text is None else text.encode("utf-16-be") for text in texts]
        self._absent = np.asarray(rows.is_null()).tolist()

    def add(self, value: Any, item: Any) -> Any:
        if value is None or item is None:
            return item if value is None else value
        merged = dict(value)
        for code, place in item.items():
            if self._absent[place]:
                merged.pop(code, None)
            elif self._times[place] is not None and self._replaces(place, merged.get(code)):
                merged[code] = place
        return merged

    def _replaces(self, place: int, present: int | None) -> bool:
        if present is None or self._absent[present] or self._times[present] is None:
            return True
        newer, older = self._times[place], self._times[present]
        return newer is not None and older is not None and newer > older

    def retract(self, value: Any, item: Any) -> Any:
        return Aggregate.retract(self, value, item)


class _Tables(Aggregate):
    """Arrays of rows. Releases differ over a first value with nulls or two rows of one key, which is refused."""

    def __init__(self, array: pa.Array, function: Function) -> None:
        self._kind = array.type
        self._elements = array.values
        self._absent = np.asarray(self._elements.is_null()).tolist()
        self.items = [None if span is None else tuple(span) for span in _spans(array)]
        columns = [self._elements.field(name) for name in function.nested_key]
        self._keys = list(zip(*(value_codes(column).tolist() for column in columns), strict=True)) if columns else []

    def _present(self, item: Sequence[int]) -> list[int]:
        return [place for place in item if not self._absent[place]]

    def _check_first(self, item: Sequence[int]) -> None:
        """Refuse a first value that releases before 2.0 keep as it is, and later ones do not."""
        keys = {self._keys[place] for place in item} if self._keys else item
        if len(keys) < len(item) or any(self._absent[place] for place in item):
            raise UnsupportedFeatureError(
                "A column of nested rows holds nulls or two rows of one key in its first value, which Paimon's "
                "releases treat in different ways. Leave the column out, or read it with Paimon's own engines."
            )


class NestedUpdate(_Tables):
    """`nested_update`. An item is the positions of the rows.

    Source: paimon FieldNestedUpdateAgg.
    """

    def __init__(self, array: pa.Array, function: Function) -> None:
        super().__init__(array, function)
        # Without a key a retract takes away all rows that are equal to one of its own.
        self._numbers = self._keys or value_codes(self._elements).tolist()

    def add(self, value: Any, item: Any) -> Any:
        if value is None or item is None:
            if item is not None:
                self._check_first(item)
            return item if value is None else value
        rows = (*self._present(value), *self._present(item))
        return tuple({self._keys[place]: place for place in rows}.values()) if self._keys else rows

    def retract(self, value: Any, item: Any) -> Any:
        if value is None or item is None:
            return value
        away = {self._numbers[place] for place in self._present(item)}
        return tuple(place for place in self._present(value) if self._numbers[place] not in away)

    def result(self, values: Iterable[Any]) -> pa.Array:
        return _listed(list(values), self._elements, self._kind)


class NestedPartialUpdate(_Tables):
    """`nested_partial_update`. An item is, for each row, the positions of its fields' values.

    Source: paimon FieldNestedPartialUpdateAgg.
    """

    def __init__(self, array: pa.Array, function: Function) -> None:
        super().__init__(array, function)
        kind = self._elements.type
        self._fields = [self._elements.field(index) for index in range(kind.num_fields)]
        self._valid = [np.asarray(field.is_valid()).tolist() for field in self._fields]
        self._key = kind.get_field_index(function.nested_key[0])

    def add(self, value: Any, item: Any) -> Any:
        if item is None:
            return value
        if value is None:
            self._check_first(item)
        merged = {self._keys[row[self._key]]: list(row) for row in value or ()}
        for place in self._present(item):
            row = merged.setdefault(self._keys[place], [place] * len(self._fields))
            for index, valid in enumerate(self._valid):
                if valid[place]:
                    row[index] = place
        return list(merged.values())

    def result(self, values: Iterable[Any]) -> pa.Array:
        listed = list(values)
        rows = _flat(listed)
        columns = [
            field.take(pa.array([row[index] for row in rows], pa.int64())) for index, field in enumerate(self._fields)
        ]
        kind = self._elements.type
        made = pa.StructArray.from_arrays(columns, fields=[kind.field(index) for index in range(kind.num_fields)])
        return pa.ListArray.from_arrays(_offsets(_lengths(listed)), made, type=self._kind)
