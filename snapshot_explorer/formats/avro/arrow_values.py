"""Columns of decoded values, as integers and byte offsets, and their conversion to Arrow."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.arrays import from_numpy

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AllNull:
    """A column that is not requested, or contains only nulls."""

    rows: int


@dataclass(frozen=True, slots=True)
class Numbers:
    """Integers, a value per row."""

    values: Offsets
    valid: npt.NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class Reals:
    """Floating-point numbers, a value per row."""

    values: npt.NDArray[np.float64]
    valid: npt.NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class Slices:
    """Bytes or text: their offsets and lengths, per row."""

    starts: Offsets
    sizes: Offsets
    valid: npt.NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists: the number of items per row, and the items of all rows one after another."""

    sizes: Offsets
    items: "Column"
    valid: npt.NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class Records:
    """Records: a column per requested field."""

    fields: "dict[str, Column]"
    valid: npt.NDArray[np.bool_] | None
    rows: int


Column = AllNull | Numbers | Reals | Slices | Lists | Records


class CannotVectorizeError(Exception):
    """The rows cannot be decoded in parallel lanes."""


def select_rows(column: Column, kept: npt.NDArray[np.bool_]) -> Column:
    """Return the selected rows of a column."""

    def of(valid: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_] | None:
        return None if valid is None else valid[kept]

    match column:
        case AllNull():
            return AllNull(int(kept.sum()))
        case Numbers(values, valid):
            return Numbers(values[kept], of(valid))
        case Reals(values, valid):
            return Reals(values[kept], of(valid))
        case Slices(starts, sizes, valid):
            return Slices(_in_order(starts[kept], of(valid)), sizes[kept], of(valid))
        case Lists(sizes, items, valid):
            return Lists(sizes[kept], select_rows(items, np.repeat(kept, sizes)), of(valid))
        case Records(fields, valid, _):
            return Records({name: select_rows(part, kept) for name, part in fields.items()}, of(valid), int(kept.sum()))


def _in_order(starts: Offsets, valid: npt.NDArray[np.bool_] | None) -> Offsets:
    """Return the offsets of slices in order: the empty slice of a null row starts no later than the next slice."""
    if valid is None or valid.all():
        return starts
    latest = np.minimum.accumulate(starts[::-1])[::-1]
    return np.where(valid, starts, latest)


def to_arrow(column: Column, target: pa.DataType, content: pa.Buffer) -> pa.Array:
    """Return a column as an Arrow array of a type.

    Raises:
        pa.ArrowInvalid: A value does not fit the type, or text is not UTF-8.
    """
    match column:
        case AllNull(rows):
            return pa.nulls(rows, target)
        case Numbers(values, valid):
            array = from_numpy(values, None if valid is None else ~valid)
            return array if array.type == target else array.cast(target)
        case Reals(values, valid):
            return from_numpy(values, None if valid is None else ~valid).cast(target)
        case Slices():
            return _gather(column, content).cast(target)
        case Lists(sizes, items, valid):
            offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
            mask = None if valid is None else from_numpy(~valid)
            if pa.types.is_map(target):
                return as_map(from_numpy(offsets), to_arrow(items, pair_type(target), content), target, mask)
            child = to_arrow(items, target.value_type, content)
            return pa.ListArray.from_arrays(from_numpy(offsets), child, type=target, mask=mask)
        case Records(_, valid, rows) if not target.num_fields:
            # Only from buffers has a struct without fields a length.
            bits = None if valid is None else from_numpy(valid).buffers()[1]
            return pa.StructArray.from_buffers(target, rows, [bits], children=[])
        case Records(fields, valid, rows):
            arrays = [to_arrow(fields.get(part.name, AllNull(rows)), part.type, content) for part in target]
            mask = None if valid is None else from_numpy(~valid)
            return pa.StructArray.from_arrays(arrays, fields=list(target), mask=mask)


def pair_type(dtype: pa.MapType) -> pa.StructType:
    """Return the type of the records of a map: fields `key` and `value`."""
    return pa.struct([("key", dtype.key_type), ("value", dtype.item_type)])


def as_map(offsets: pa.Array, pairs: pa.StructArray, target: pa.MapType, mask: pa.Array | None) -> pa.MapArray:
    """Return lists of records with `key` and `value` as maps. Lists that the mask makes null have no items.

    Raises:
        pa.ArrowInvalid: A key is null.
    """
    keys, items = pairs.flatten()
    if keys.null_count:
        raise pa.ArrowInvalid("a map has a null key")
    return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=mask)


def _gather(column: Slices, content: pa.Buffer) -> pa.Array:
    """Return slices of the bytes as a binary array.

    The slices of a column are in the order of their rows. Their starts and ends are the offsets of a binary array,
    built without a copy, whose every second value is a slice. `take` then copies each slice once.
    """
    rows = len(column.starts)
    if not rows:
        return pa.nulls(0, pa.binary())
    cuts = np.empty(2 * rows + 1, np.int32)
    cuts[0:-1:2] = column.starts
    cuts[1::2] = column.starts + column.sizes
    cuts[-1] = cuts[-2]
    if (np.diff(cuts) < 0).any():
        raise CannotVectorizeError
    pieces = pa.Array.from_buffers(pa.binary(), 2 * rows, [None, pa.py_buffer(cuts), content])
    chosen = from_numpy(np.arange(0, 2 * rows, 2), None if column.valid is None else ~column.valid)
    return pieces.take(chosen)
