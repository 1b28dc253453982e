"""The values of a column after merging: vectorized over all keys where possible, otherwise key by key."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.group_ids import Codes
from snapshot_explorer.formats.paimon.merge import (
    aggregates,
    nested_aggregates,
)
from snapshot_explorer.formats.paimon.merge.aggregates import BLANKS
from snapshot_explorer.formats.paimon.merge.key_codes import equality_codes, order_codes
from snapshot_explorer.formats.paimon.merge.rules import Function
from snapshot_explorer.formats.paimon.merge.steps import (
    ADD,
    ADD_EARLIER,
    CLEAR,
    RETRACT,
    SET,
    SKIP,
    Actions,
    ColumnSteps,
    KeyGroups,
)

_RETRACTABLE = (
    "primary_key",
    "sum",
    "product",
    "last_value",
    "last_non_null_value",
    "collect",
    "merge_map",
    "nested_update",
)
_EXTREMES = ("max", "min", "bool_and", "bool_or")


def fold_column(values: pa.ChunkedArray, key_groups: KeyGroups, steps: ColumnSteps) -> pa.Array:
    """Return the value of each key.

    Raises:
        CorruptBytesError: A null in a column without nulls, a number out of range, or a retract that the function does
            not support. Paimon also fails on these.
    """
    array = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    if not len(key_groups.starts):
        return array.slice(0, 0)
    valid = np.asarray(array.is_valid()).astype(bool)
    if not steps.nullable and steps.checked is not None and (steps.checked & ~valid).any():
        raise CorruptBytesError("a row with a null in a NOT NULL column")
    steps = _without_ignored(steps)
    assigned = _assignments(steps, valid)
    if assigned is not None:
        return _take(array, _last(assigned, key_groups, steps.begins))
    picked = _pick(array, valid, key_groups, steps)
    if picked is not None:
        return _take(array, picked)
    folded = fold(array, valid, key_groups, steps)
    return _by_key(array, key_groups, steps) if folded is None else folded


def _take(array: pa.Array, indices: Codes) -> pa.Array:
    return array.take(pa.array(indices, mask=indices < 0))


def _without_ignored(steps: ColumnSteps) -> ColumnSteps:
    """Return the steps without ignored retracts. Raise for retracts that the function does not support."""
    function = steps.function
    if function is None or not (steps.actions == RETRACT).any():
        return steps
    if function.ignore_retract:
        actions = np.where(steps.actions == RETRACT, np.int8(SKIP), steps.actions)
        return ColumnSteps(actions=actions, function=function, begins=steps.begins)
    if function.name not in _RETRACTABLE:
        raise CorruptBytesError(
            f"rows of kind -U or -D, which the aggregate function {function.name} cannot retract, "
            "and the column's option ignore-retract is off"
        )
    return steps


def _assignments(steps: ColumnSteps, valid: npt.NDArray[np.bool_]) -> Actions | None:
    """Return the actions as only SET, CLEAR and SKIP, if the function allows it."""
    actions = steps.actions
    name = None if steps.function is None else steps.function.name
    match name:
        case None:
            return actions
        case "primary_key":
            return np.where(np.isin(actions, (ADD, RETRACT)), np.int8(SET), actions)
        case "last_value":
            actions = np.where(actions == ADD, np.int8(SET), actions)
            actions = np.where(actions == ADD_EARLIER, np.int8(SKIP), actions)
            return np.where(actions == RETRACT, np.int8(CLEAR), actions)
        case "last_non_null_value" if not (actions == ADD_EARLIER).any():
            made = np.where(actions == ADD, np.int8(SET), actions)
            made = np.where(actions == RETRACT, np.int8(CLEAR), made)
            is_aggregated = np.isin(actions, (ADD, RETRACT))
            return np.where(is_aggregated & ~valid, np.int8(SKIP), made)
    return None


def _last(actions: Actions, key_groups: KeyGroups, begins: npt.NDArray[np.bool_] | None) -> Codes:
    """Return the row with the final value of each key, -1 for null."""
    acting = np.where(actions == SKIP, np.int64(-1), np.arange(len(actions)))
    last = np.maximum.reduceat(acting, key_groups.starts)
    start = np.full(len(key_groups.starts), -1) if begins is None else np.where(begins, key_groups.starts, -1)
    result: Codes = np.where(last < 0, start, np.where(actions[last] == CLEAR, -1, last))
    return result


def _pick(array: pa.Array, valid: npt.NDArray[np.bool_], key_groups: KeyGroups, steps: ColumnSteps) -> Codes | None:
    """Return the row with the final value of each key, for functions that select one value by its order."""
    name = "" if steps.function is None else steps.function.name
    if (steps.actions == SET).any() or (steps.begins is not None and steps.begins.any()):
        return None
    if name in _EXTREMES:
        rows = np.flatnonzero(np.isin(steps.actions, (ADD, ADD_EARLIER)) & valid)
        ranks = order_codes(pa.chunked_array([array.take(pa.array(rows))]))
        order = np.lexsort((-rows, ranks if name in ("max", "bool_or") else -ranks, key_groups.groups[rows]))
        return _chosen(rows[order], key_groups)
    if name in ("first_value", "first_non_null_value") and not (steps.actions == ADD_EARLIER).any():
        rows = np.flatnonzero((steps.actions == ADD) & (valid | (name == "first_value")))
        return _chosen(rows[::-1], key_groups)
    return None


def _chosen(rows: Codes, key_groups: KeyGroups) -> Codes:
    chosen = np.full(len(key_groups.starts), -1, np.int64)
    chosen[key_groups.groups[rows]] = rows  # the last of several is kept
    return chosen


def _by_key(array: pa.Array, key_groups: KeyGroups, steps: ColumnSteps) -> pa.Array:
    function = steps.function
    if function is None:
        raise CorruptBytesError("steps without a function")
    made = _MAKERS.get(function.name, aggregates.choice)(array, function)
    begins = np.zeros(len(key_groups.starts), bool) if steps.begins is None else steps.begins
    spans = zip(key_groups.starts.tolist(), (key_groups.ends + 1).tolist(), begins.tolist(), strict=True)
    return made.result(_results(made, spans, steps.actions.tolist()))


def _results(made: aggregates.Fold, spans: Iterator[tuple[int, int, bool]], actions: list[int]) -> Iterator[object]:
    items, add, add_earlier, reset = made.items, made.add, made.add_earlier, made.reset
    retract = made.retract or _refuse
    for start, end, begins in spans:
        if reset is not None:
            reset()
        value = items[start] if begins else None
        for row in range(start, end):
            match actions[row]:
                case 0:  # SKIP
                    continue
                case 1:  # SET
                    value = items[row]
                case 2:  # CLEAR
                    value = None
                case 3:  # ADD
                    value = add(value, items[row])
                case 4:  # ADD_EARLIER
                    value = add(items[row], value) if add_earlier is None else add_earlier(value, items[row])
                case _:
                    value = retract(value, items[row])
        yield value


def _refuse(value: object, item: object) -> object:
    raise CorruptBytesError(f"a retract of a function that has none, of {item} from {value}")


_MAKERS: Mapping[str, Callable[[pa.Array, Function], aggregates.Fold]] = {
    "sum": lambda array, _: aggregates.total(array),
    "product": lambda array, _: aggregates.product(array),
    "listagg": aggregates.texts,
    "collect": nested_aggregates.collect,
    "merge_map": lambda array, _: nested_aggregates.merge_map(array),
    "merge_map_with_keytime": nested_aggregates.merge_timed_map,
    "nested_update": nested_aggregates.nested_update,
    "nested_partial_update": nested_aggregates.nested_partial_update,
    "rbm32": lambda array, _: aggregates.bitmap(array),
    "rbm64": lambda array, _: aggregates.bitmap_64(array),
    "hll_sketch": lambda array, _: aggregates.hll_sketch(array),
    "theta_sketch": lambda array, _: aggregates.theta_sketch(array),
}
"""Functions that fold values. All others select one."""


_Flags = npt.NDArray[np.bool_]
_ROWS_PER_ROUND = 20
"""The minimum number of rows per round of `floats`; with fewer rows, a loop over the keys is faster."""
_SAFE = 0.999
"""The fraction of a type's range that estimates in floats may reach."""


def fold(array: pa.Array, valid: _Flags, key_groups: KeyGroups, steps: ColumnSteps) -> pa.Array | None:
    """Return the value of each key, if the column's function and the actions allow it; arguments as `fold_column`."""
    name = "" if steps.function is None else steps.function.name
    if name in ("sum", "product") and pa.types.is_floating(array.type):
        return floats(array, valid, key_groups, steps)
    if (steps.begins is not None and steps.begins.any()) or np.isin(steps.actions, (SET, CLEAR)).any():
        return None
    if name == "sum":
        return sums(array, valid, key_groups, steps)
    if steps.function is None or (steps.actions == RETRACT).any():
        return None
    rows = np.flatnonzero(np.isin(steps.actions, (ADD, ADD_EARLIER)) & valid)
    if name == "collect" and not (steps.function.distinct and pa.types.is_nested(array.type.value_type)):
        return lists(array, rows, key_groups, distinct=steps.function.distinct)
    if (steps.actions == ADD_EARLIER).any():
        return None
    if name == "listagg" and not steps.function.distinct:
        return texts(array, rows, key_groups, delimiter=steps.function.delimiter)
    return maps(array, rows, key_groups) if name == "merge_map" else None


def sums(array: pa.Array, valid: _Flags, key_groups: KeyGroups, steps: ColumnSteps) -> pa.Array | None:
    """Return sums of integers and decimals, unless an order of addition could exceed the range of their type."""
    dtype = array.type
    whole = aggregates.as_int64(array)
    if whole is None:
        return None
    is_aggregated = valid & np.isin(steps.actions, (ADD, ADD_EARLIER, RETRACT))
    sizes = np.add.reduceat(np.where(is_aggregated, np.abs(whole.astype(np.float64)), 0.0), key_groups.starts)
    if sizes.max(initial=0) >= float(aggregates.limit(dtype)) * _SAFE:
        return None
    signed = np.where(is_aggregated, np.where(steps.actions == RETRACT, -whole, whole), np.int64(0))
    added = np.add.reduceat(signed, key_groups.starts)
    return aggregates.from_int64(added, np.logical_or.reduceat(is_aggregated, key_groups.starts), dtype)


def floats(array: pa.Array, valid: _Flags, key_groups: KeyGroups, steps: ColumnSteps) -> pa.Array | None:
    """Return sums or products of floats: the first row of every key, then the second of every key, and so on.

    Floats are added in Java's order, because the sum depends on the order.
    """
    sizes = key_groups.ends + 1 - key_groups.starts
    longest = int(sizes.max(initial=0))
    if steps.function is None or longest * _ROWS_PER_ROUND > max(len(array), _ROWS_PER_ROUND**2):
        return None
    numbers = np.asarray(array.fill_null(0))
    value = np.zeros(len(sizes), numbers.dtype)
    has_value = np.zeros(len(sizes), bool)
    if steps.begins is not None:
        has_value = steps.begins & valid[key_groups.starts]
        value = np.where(has_value, numbers[key_groups.starts], value)
    by_size = np.argsort(-sizes, kind="stable")
    counts = np.searchsorted(-sizes[by_size], -np.arange(longest), side="left")
    is_sum = steps.function.name == "sum"
    with np.errstate(all="ignore"):  # Java's floats overflow silently
        for number, count in enumerate(counts.tolist()):
            keys = by_size[:count]
            rows = key_groups.starts[keys] + number
            value[keys], has_value[keys] = _round(
                value[keys], has_value[keys], numbers[rows], valid[rows], steps.actions[rows], is_sum=is_sum
            )
    return pa.array(value, array.type, mask=~has_value)


def _round(
    value: npt.NDArray[np.floating],
    has_value: _Flags,
    item: npt.NDArray[np.floating],
    valid: _Flags,
    actions: npt.NDArray[np.int8],
    *,
    is_sum: bool,
) -> tuple[npt.NDArray[np.floating], _Flags]:
    """Return the values, and whether they exist, after applying a row of each key."""
    adds, retracts = np.isin(actions, (ADD, ADD_EARLIER)) & valid, (actions == RETRACT) & valid
    sets, clears = actions == SET, actions == CLEAR
    joined = np.where(has_value, value + item if is_sum else value * item, item)
    retracted = np.where(has_value, value - item, -item) if is_sum else value / item
    retracts &= has_value | is_sum
    made = np.where(adds, joined, np.where(retracts, retracted, np.where(sets, item, value)))
    return made.astype(value.dtype), np.where(sets, valid, (has_value & ~clears) | adds | retracts)


def texts(array: pa.Array, rows: Codes, key_groups: KeyGroups, *, delimiter: str) -> pa.Array | None:
    """Return concatenated texts, unless one is blank: releases handle blank texts differently."""
    chosen = array.take(pa.array(rows))
    if pc.any(pc.equal(pc.utf8_trim(chosen, BLANKS), "")).as_py():
        return None
    counts = _counts(rows, key_groups)
    lists_of = pa.LargeListArray.from_arrays(
        pa.array(np.append(0, np.cumsum(counts)), pa.int64()), chosen.cast(pa.large_string())
    )
    joined = pc.binary_join(lists_of, pa.scalar(delimiter, pa.large_string())).cast(array.type)
    return pc.if_else(pa.array(counts > 0), joined, pa.scalar(None, array.type))


def lists(array: pa.Array, rows: Codes, key_groups: KeyGroups, *, distinct: bool) -> pa.Array:
    """Return concatenated lists; with `distinct` the first occurrence of each element."""
    chosen = array.take(pa.array(rows))
    elements, owners = chosen.flatten(), _owners(chosen, rows, key_groups)
    if distinct:
        kept = np.sort(np.unique(_pairs(owners, elements), return_index=True)[1])
        elements, owners = elements.take(pa.array(kept)), owners[kept]
    counts = np.bincount(owners, minlength=len(key_groups.starts))
    offsets = pa.array(np.append(0, np.cumsum(counts)), mask=np.append(_counts(rows, key_groups) == 0, [False]))
    return pa.ListArray.from_arrays(offsets.cast(pa.int32()), elements, type=array.type)


def maps(array: pa.Array, rows: Codes, key_groups: KeyGroups) -> pa.Array:
    """Return merged maps, with the last entry of each map key."""
    chosen = array.take(pa.array(rows))
    owners = _owners(chosen, rows, key_groups)
    start, end = chosen.offsets[0].as_py(), chosen.offsets[-1].as_py()
    keys, items = chosen.keys.slice(start, end - start), chosen.items.slice(start, end - start)
    pairs = _pairs(owners, keys)
    _, first, numbers = np.unique(pairs, return_index=True, return_inverse=True)
    last = np.zeros(len(first), np.int64)
    last[numbers] = np.arange(len(pairs))  # the last of several is kept
    order = np.argsort(first)
    kept = pa.array(last[order])
    counts = np.bincount(owners[first], minlength=len(key_groups.starts))
    offsets = pa.array(np.append(0, np.cumsum(counts)), mask=np.append(_counts(rows, key_groups) == 0, [False]))
    return pa.MapArray.from_arrays(offsets.cast(pa.int32()), keys.take(kept), items.take(kept), type=array.type)


def _counts(rows: Codes, key_groups: KeyGroups) -> Codes:
    return np.bincount(key_groups.groups[rows], minlength=len(key_groups.starts))


def _owners(chosen: pa.Array, rows: Codes, key_groups: KeyGroups) -> Codes:
    """Return the key of each element of lists or maps."""
    return np.repeat(key_groups.groups[rows], np.diff(np.asarray(chosen.offsets)))


def _pairs(owners: Codes, elements: pa.Array) -> Codes:
    """Return a code per element, equal for equal elements of a key, contiguous per key."""
    codes = np.unique(equality_codes(pa.chunked_array([elements])), return_inverse=True)[1]
    return owners * (int(codes.max(initial=0)) + 1) + codes
