"""Aggregate functions over arrays of rows, which stand for tables of their own: `nested_update` and its like."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats.paimon.merge.aggregates import Fold
from snapshot_explorer.formats.paimon.merge.engines import Function
from snapshot_explorer.formats.paimon.merge.key_codes import order_codes, value_codes
from snapshot_explorer.formats.paimon.merge.nested_aggregates import flat, lengths_of, lister, offsets_of, spans


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows of all values, told by their positions."""

    items: list[tuple[int, ...] | None]
    """The positions of each value's rows."""
    absent: list[bool]
    """Whether a row is null."""
    keys: list[tuple[int, ...]]
    """Of each row, numbers that stand for its key; empty without a key."""
    keyless: list[bool]
    """Whether a part of the key is null."""
    ages: list[tuple[int, ...]]
    """Of each row, numbers in the order of its sequence fields; empty without such."""
    null_keys: str
    """What becomes of rows whose key has a null: merge, ignore or error."""

    def present(self, item: Iterable[int]) -> list[int]:
        """Return the rows that are not null."""
        return [place for place in item if not self.absent[place]]

    def keyed(self, item: Iterable[int]) -> list[int]:
        """Return the rows that are not null and whose keys count."""
        found = self.present(item)
        if self.null_keys == "merge" or not any(self.keyless[place] for place in found):
            return found
        if self.null_keys == "error":
            raise CorruptBytesError(
                "nested rows have a null in their key, which the option nested-key-null-strategy forbids"
            )
        return [place for place in found if not self.keyless[place]]


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

    The limit of rows is obeyed in different ways before and since 2.0, and so is a first value; what both do alike is
    given. Options that are newer than 1.4 are obeyed as 2.0 does.

    Source: paimon FieldNestedUpdateAgg, of 1.4 and as pypaimon 2.1.0 has it.
    """
    rows = _rows(array, function)
    # Without a key a retract takes away all rows that are equal to one of its own.
    numbers: Sequence[Hashable] = rows.keys or value_codes(array.values).tolist()
    newest = bool(rows.ages) or function.null_keys != "merge"
    before_2, since_2 = _before_2(rows, function), _since_2(rows, function)

    def add(value: Any, item: Any) -> Any:
        if item is None:
            return value
        if newest:
            return since_2(value, item)
        made = before_2(value, item)
        if (value is None or function.most is not None) and sorted(made) != sorted(since_2(value, item)):
            raise _differing(function, first=value is None)
        return made

    def retract(value: Any, item: Any) -> Any:
        if value is None or item is None:
            return value
        mine, theirs = (rows.keyed(value), rows.keyed(item)) if rows.keys else (rows.present(value), rows.present(item))
        away = {numbers[place] for place in theirs}
        return tuple(place for place in mine if numbers[place] not in away)

    return Fold(items=rows.items, add=add, retract=retract, result=lister(array.values, array.type))


def _before_2(rows: _Rows, function: Function) -> Callable[[Any, Any], Any]:
    most = function.most

    def add(value: Any, item: Any) -> Any:
        if value is None or (most is not None and len(value) >= most):
            return item if value is None else value
        more = rows.present(item)
        more = more if most is None else more[: most - len(value)]
        found = (*rows.present(value), *more)
        return tuple({rows.keys[place]: place for place in found}.values()) if rows.keys else found

    return add


def _since_2(rows: _Rows, function: Function) -> Callable[[Any, Any], Any]:
    most = function.most

    def listed(value: Any, item: Any) -> Any:
        more = rows.present(item)
        if most is not None:
            more = more[: max(0, most - len(value or ()))]
        return (*rows.present(value or ()), *more)

    def keyed(value: Any, item: Any) -> Any:
        found: dict[tuple[int, ...], int] = {}
        for limit, part in ((None, value or ()), (most, item)):
            for place in rows.keyed(part):
                present = found.get(rows.keys[place])
                if present is None:
                    if limit is None or len(found) < limit:
                        found[rows.keys[place]] = place
                elif not rows.ages or rows.ages[place] >= rows.ages[present]:
                    found[rows.keys[place]] = place
        return tuple(found.values())

    return keyed if rows.keys else listed


def _differing(function: Function, *, first: bool) -> UnsupportedFeatureError:
    what = "nulls or two rows of one key in its first value" if first else "rows that its option count-limit is for"
    if first and function.most is not None:
        what = f"nulls, two rows of one key or more than {function.most} rows in its first value"
    return UnsupportedFeatureError(
        f"A column of nested rows holds {what}, which Paimon's releases treat in different ways. "
        "Leave the column out, or read it with Paimon's own engines."
    )


def nested_partial_update(array: pa.Array, function: Function) -> Fold:
    """Return `nested_partial_update`. An item is, for each row, the positions of its fields' values.

    Source: paimon FieldNestedPartialUpdateAgg, of 1.4 and as pypaimon 2.1.0 has it.
    """
    rows, elements = _rows(array, function), array.values
    kind = elements.type
    fields = [elements.field(index) for index in range(kind.num_fields)]
    valid = [np.asarray(field.is_valid()).tolist() for field in fields]
    key = kind.get_field_index(function.nested_key[0])

    def add(value: Any, item: Any) -> Any:
        if item is None:
            return value
        if value is None and function.null_keys == "merge":
            alike = {rows.keys[place] for place in item}
            if len(alike) < len(item) or any(rows.absent[place] for place in item):
                raise _differing(Function(name=function.name), first=True)
        merged = {rows.keys[row[key]]: list(row) for row in value or ()}
        for place in rows.keyed(item):
            row = merged.setdefault(rows.keys[place], [place] * len(fields))
            for index, there in enumerate(valid):
                if there[place]:
                    row[index] = place
        return list(merged.values())

    def result(values: Iterable[Any]) -> pa.Array:
        listed = list(values)
        found = flat(listed)
        columns = [
            field.take(pa.array([row[index] for row in found], pa.int64())) for index, field in enumerate(fields)
        ]
        made = pa.StructArray.from_arrays(columns, fields=[kind.field(index) for index in range(kind.num_fields)])
        return pa.ListArray.from_arrays(offsets_of(lengths_of(listed)), made, type=array.type)

    return Fold(items=rows.items, add=add, result=result)
