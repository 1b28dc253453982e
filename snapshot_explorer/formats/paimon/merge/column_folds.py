"""Aggregate functions over all keys at once, for the columns whose rows ask for no more than these can.

Each returns None where it cannot tell; then `folding` goes from key to key.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.formats.paimon.merge import number_aggregates
from snapshot_explorer.formats.paimon.merge.aggregates import BLANKS
from snapshot_explorer.formats.paimon.merge.key_codes import Codes, equality_codes
from snapshot_explorer.formats.paimon.merge.steps import ADD, ADD_EARLIER, CLEAR, RETRACT, SET, ColumnSteps, KeyGroups

_Flags = npt.NDArray[np.bool_]
_ROWS_PER_ROUND = 20
"""How many rows there must be for each round of `floats`, so that going from key to key is not faster."""
_SAFE = 0.999
"""The part of a type's range that estimates in floats may reach."""


def fold(array: pa.Array, valid: _Flags, crowd: KeyGroups, steps: ColumnSteps) -> pa.Array | None:
    """Return the value of each key, if the column's function and the actions allow it; arguments as `fold_column`."""
    name = "" if steps.function is None else steps.function.name
    if name in ("sum", "product") and pa.types.is_floating(array.type):
        return floats(array, valid, crowd, steps)
    if (steps.begins is not None and steps.begins.any()) or np.isin(steps.actions, (SET, CLEAR)).any():
        return None
    if name == "sum":
        return sums(array, valid, crowd, steps)
    if steps.function is None or (steps.actions == RETRACT).any():
        return None
    rows = np.flatnonzero(np.isin(steps.actions, (ADD, ADD_EARLIER)) & valid)
    if name == "collect" and not (steps.function.distinct and pa.types.is_nested(array.type.value_type)):
        return lists(array, rows, crowd, distinct=steps.function.distinct)
    if (steps.actions == ADD_EARLIER).any():
        return None
    if name == "listagg" and not steps.function.distinct:
        return texts(array, rows, crowd, delimiter=steps.function.delimiter)
    return maps(array, rows, crowd) if name == "merge_map" else None


def sums(array: pa.Array, valid: _Flags, crowd: KeyGroups, steps: ColumnSteps) -> pa.Array | None:
    """Return sums of integers and decimals, if no order of adding them could leave their type's range."""
    kind = array.type
    whole = number_aggregates.small(array)
    if whole is None:
        return None
    asked = valid & np.isin(steps.actions, (ADD, ADD_EARLIER, RETRACT))
    sizes = np.add.reduceat(np.where(asked, np.abs(whole.astype(np.float64)), 0.0), crowd.starts)
    if sizes.max(initial=0) >= float(number_aggregates.limit(kind)) * _SAFE:
        return None
    signed = np.where(asked, np.where(steps.actions == RETRACT, -whole, whole), np.int64(0))
    added = np.add.reduceat(signed, crowd.starts)
    return number_aggregates.from_small(added, np.logical_or.reduceat(asked, crowd.starts), kind)


def floats(array: pa.Array, valid: _Flags, crowd: KeyGroups, steps: ColumnSteps) -> pa.Array | None:
    """Return sums or products of floats: the first row of every key, then the second of every key, and so on.

    Floats are added in the order in which Java adds them, as another order gives another sum.
    """
    sizes = crowd.ends + 1 - crowd.starts
    longest = int(sizes.max(initial=0))
    if steps.function is None or longest * _ROWS_PER_ROUND > max(len(array), _ROWS_PER_ROUND**2):
        return None
    numbers = np.asarray(array.fill_null(0))
    value = np.zeros(len(sizes), numbers.dtype)
    there = np.zeros(len(sizes), bool)
    if steps.begins is not None:
        there = steps.begins & valid[crowd.starts]
        value = np.where(there, numbers[crowd.starts], value)
    by_size = np.argsort(-sizes, kind="stable")
    counts = np.searchsorted(-sizes[by_size], -np.arange(longest), side="left")
    is_sum = steps.function.name == "sum"
    with np.errstate(all="ignore"):  # Java's floats overflow without a word
        for number, count in enumerate(counts.tolist()):
            keys = by_size[:count]
            rows = crowd.starts[keys] + number
            value[keys], there[keys] = _round(
                value[keys], there[keys], numbers[rows], valid[rows], steps.actions[rows], is_sum=is_sum
            )
    return pa.array(value, array.type, mask=~there)


def _round(
    value: npt.NDArray[np.floating],
    there: _Flags,
    item: npt.NDArray[np.floating],
    valid: _Flags,
    actions: npt.NDArray[np.int8],
    *,
    is_sum: bool,
) -> tuple[npt.NDArray[np.floating], _Flags]:
    """Return the values, and whether they are there, after a row of each key has acted."""
    adds, retracts = np.isin(actions, (ADD, ADD_EARLIER)) & valid, (actions == RETRACT) & valid
    sets, clears = actions == SET, actions == CLEAR
    joined = np.where(there, value + item if is_sum else value * item, item)
    taken = np.where(there, value - item, -item) if is_sum else value / item
    retracts &= there | is_sum
    made = np.where(adds, joined, np.where(retracts, taken, np.where(sets, item, value)))
    return made.astype(value.dtype), np.where(sets, valid, (there & ~clears) | adds | retracts)


def texts(array: pa.Array, rows: Codes, crowd: KeyGroups, *, delimiter: str) -> pa.Array | None:
    """Return texts joined, if none is blank: releases do not agree on what becomes of those."""
    chosen = array.take(pa.array(rows))
    if pc.any(pc.equal(pc.utf8_trim(chosen, BLANKS), "")).as_py():
        return None
    counts = _counts(rows, crowd)
    lists_of = pa.LargeListArray.from_arrays(_offsets(counts), chosen.cast(pa.large_string()))
    joined = pc.binary_join(lists_of, pa.scalar(delimiter, pa.large_string())).cast(array.type)
    return pc.if_else(pa.array(counts > 0), joined, pa.scalar(None, array.type))


def lists(array: pa.Array, rows: Codes, crowd: KeyGroups, *, distinct: bool) -> pa.Array:
    """Return lists joined; with `distinct` each element once, where it came first."""
    chosen = array.take(pa.array(rows))
    elements, owners = chosen.flatten(), _owners(chosen, rows, crowd)
    if distinct:
        kept = np.sort(np.unique(_pairs(owners, elements), return_index=True)[1])
        elements, owners = elements.take(pa.array(kept)), owners[kept]
    counts = np.bincount(owners, minlength=len(crowd.starts))
    offsets = pa.array(np.append(0, np.cumsum(counts)), mask=np.append(_counts(rows, crowd) == 0, [False]))
    return pa.ListArray.from_arrays(offsets.cast(pa.int32()), elements, type=array.type)


def maps(array: pa.Array, rows: Codes, crowd: KeyGroups) -> pa.Array:
    """Return maps joined: of the entries of a key the last counts."""
    chosen = array.take(pa.array(rows))
    owners = _owners(chosen, rows, crowd)
    start, end = chosen.offsets[0].as_py(), chosen.offsets[-1].as_py()
    keys, items = chosen.keys.slice(start, end - start), chosen.items.slice(start, end - start)
    pairs = _pairs(owners, keys)
    _, first, numbers = np.unique(pairs, return_index=True, return_inverse=True)
    last = np.zeros(len(first), np.int64)
    last[numbers] = np.arange(len(pairs))  # of several the last one stays
    order = np.argsort(first)
    kept = pa.array(last[order])
    counts = np.bincount(owners[first], minlength=len(crowd.starts))
    offsets = pa.array(np.append(0, np.cumsum(counts)), mask=np.append(_counts(rows, crowd) == 0, [False]))
    return pa.MapArray.from_arrays(offsets.cast(pa.int32()), keys.take(kept), items.take(kept), type=array.type)


def _counts(rows: Codes, crowd: KeyGroups) -> Codes:
    """Return how many of the rows each key has."""
    return np.bincount(crowd.groups[rows], minlength=len(crowd.starts))


def _offsets(counts: Codes) -> pa.Array:
    return pa.array(np.append(0, np.cumsum(counts)), pa.int64())


def _owners(chosen: pa.Array, rows: Codes, crowd: KeyGroups) -> Codes:
    """Return the key of each element of lists or maps."""
    return np.repeat(crowd.groups[rows], np.diff(np.asarray(chosen.offsets)))


def _pairs(owners: Codes, elements: pa.Array) -> Codes:
    """Return a number for each element, equal for equal elements of one key, those of a key side by side."""
    codes = np.unique(equality_codes(pa.chunked_array([elements])), return_inverse=True)[1]
    return owners * (int(codes.max(initial=0)) + 1) + codes
