"""Values of many Avro rows at once, read in parallel lanes.

A lane is a position in a row. Reading a value in every row advances all of them, with a few NumPy operations for each
byte, whatever the number of rows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.formats.avro.arrow_values import (
    AllNull,
    CannotVectorizeError,
    Column,
    Lists,
    Numbers,
    Offsets,
    Reals,
    Records,
    Slices,
    pair_type,
)
from snapshot_explorer.formats.avro.container import Fixed, Items, Primitive, Record, Shape, Union

PADDING = 16
"""The bytes beyond the content that lanes may read."""
_MAX_ITEMS = 4_096
_MAX_STEPS, _MIN_ROWS = 64, 8
"""Items of a list that are read even in few rows. The row-by-row decoder reads long lists of few rows faster."""
_MAX_BLOCKS = 8
"""Blocks of one list. Writers create one, or none for an empty list."""
_LAST_SHIFT = 63
"""The shift of the tenth byte of a varint, which contains the last of its 64 bits."""
_NULL = Primitive("null")
_OF_ONE_BYTE = np.array([byte >> 1 ^ -(byte & 1) for byte in range(128)], np.int64)
"""The zigzag numbers of a single byte."""


class Lanes:
    """Reads many rows at once: one position per row, which advances as values are read.

    A position past the end remains there: the row start was wrong, or the row is cut short.
    """

    def __init__(self, content: npt.NDArray[np.uint8], size: int, at: Offsets) -> None:
        self.content = content
        self.size = size
        self.at = at

    def some(self, where: Offsets) -> "Lanes":
        """Return lanes for some of the rows, in order: new lanes, or these lanes for all rows."""
        return self if len(where) == len(self.at) else Lanes(self.content, self.size, self.at[where])

    def follow(self, where: Offsets, lanes: "Lanes") -> None:
        """Advance some of the rows to the positions of lanes from `some`."""
        if lanes is not self:
            self.at[where] = lanes.at

    def invalidate(self, where: npt.NDArray[np.bool_]) -> None:
        """Move the rows with impossible values past the end."""
        if where.any():
            self.at[where] = self.size + 1

    def byte(self) -> npt.NDArray[np.uint8]:
        """Read a byte in every row: the last one of the padding past the end."""
        byte: npt.NDArray[np.uint8] = self.content.take(self.at, mode="clip")
        self.at += 1
        return byte

    def varint(self) -> Offsets:
        """Read a zigzag number in every row.

        The next byte is read in all rows, even where the number has ended: this is faster than selecting rows.
        """
        byte = self.byte()
        going = byte > 0x7F  # noqa: PLR2004 - the continuation bit
        if not going.any():
            return _OF_ONE_BYTE.take(byte, mode="clip")
        number = (byte & 0x7F).astype(np.uint64)
        shift = 7
        while going.any():
            byte = self.content.take(self.at, mode="clip") * going
            self.at += going
            number |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            going = byte > 0x7F  # noqa: PLR2004
            if shift == _LAST_SHIFT:
                self.at[byte > 1] = self.size + 1
                break
            shift += 7
        return (number >> np.uint64(1)).astype(np.int64) ^ -(number & np.uint64(1)).astype(np.int64)

    def bytes(self, size: int) -> Offsets:
        """Read a fixed number of bytes in every row. Return their offsets."""
        starts = np.minimum(self.at, self.size + 1)
        self.at = starts + size
        # Values past the end belong to a wrong row and are not used.
        starts[self.at > self.size] = 0
        return starts

    def slice(self) -> tuple[Offsets, Offsets]:
        """Read length-prefixed bytes in every row. Return their offsets and lengths."""
        sizes = self.varint()
        impossible = (sizes < 0) | (sizes > self.size)
        if impossible.any():
            sizes[impossible] = 0
            self.invalidate(impossible)
        starts = self.at.copy()
        self.at += sizes
        return starts, sizes


def read_column(shape: Shape, lanes: Lanes, target: pa.DataType | None) -> Column:
    """Read a value in every row. Return it if it is requested."""
    rows = len(lanes.at)
    match shape:
        case Primitive("null"):
            return AllNull(rows)
        case Primitive("int" | "long"):
            return Numbers(lanes.varint(), None)
        case Primitive("bytes" | "string"):
            return Slices(*lanes.slice(), None)
        case Record(fields):
            return _record(fields, lanes, target)
        case Union(branches):
            return _union(branches, lanes, target)
        case Items(item, keyed=keyed):
            return _items(Record((("key", Primitive("string")), ("value", item))) if keyed else item, lanes, target)
        case _:
            return _of_fixed_size(shape, lanes)


def _of_fixed_size(shape: Shape, lanes: Lanes) -> Column:
    """Read a value of a type with a fixed size."""
    match shape:
        case Primitive("boolean"):
            return Numbers((lanes.content.take(lanes.bytes(1), mode="clip") != 0).astype(np.int64), None)
        case Primitive("float"):
            return Reals(_reals(lanes, np.dtype("<f4")), None)
        case Primitive("double"):
            return Reals(_reals(lanes, np.dtype("<f8")), None)
        case Fixed(size):
            return Slices(lanes.bytes(size), np.full(len(lanes.at), size, np.int64), None)
        case _:
            raise CannotVectorizeError


def _reals(lanes: Lanes, dtype: np.dtype[Any]) -> npt.NDArray[np.float64]:
    starts = lanes.bytes(dtype.itemsize)
    parts = lanes.content.take(starts[:, None] + np.arange(dtype.itemsize), mode="clip")
    return parts.reshape(-1).view(dtype).astype(np.float64)


def _record(fields: Sequence[tuple[str, Shape]], lanes: Lanes, target: pa.DataType | None) -> Column:
    requested = {part.name: part.type for part in target} if target is not None else {}
    columns = {name: read_column(part, lanes, requested.get(name)) for name, part in fields}
    return Records({name: columns[name] for name in requested if name in columns}, None, len(lanes.at))


def _union(branches: Sequence[Shape], lanes: Lanes, target: pa.DataType | None) -> Column:
    """Read a value that may be null."""
    parts = [index for index, branch in enumerate(branches) if branch != _NULL]
    if len(branches) != 2 or len(parts) != 1:  # noqa: PLR2004 - null and one other
        raise CannotVectorizeError
    branch = lanes.byte()
    valid = branch == parts[0] << 1
    if valid.all():
        return read_column(branches[parts[0]], lanes, target)
    lanes.invalidate(~valid & (branch != (1 - parts[0]) << 1))
    where = np.flatnonzero(valid)
    if not len(where):
        return AllNull(len(valid))
    present = lanes.some(where)
    column = read_column(branches[parts[0]], present, target)
    lanes.follow(where, present)
    return _spread(column, where, valid) if target is not None else AllNull(len(valid))


def _spread(column: Column, where: Offsets, valid: npt.NDArray[np.bool_]) -> Column:
    """Return a column of some of the rows as a column of all rows, null elsewhere."""

    def spread(values: Offsets) -> Offsets:
        full = np.zeros(len(valid), np.int64)
        full[where] = values
        return full

    def present(within: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
        if within is None:
            return valid
        full = np.zeros(len(valid), np.bool_)
        full[where] = within
        return full

    match column:
        case AllNull():
            return AllNull(len(valid))
        case Numbers(values, within):
            return Numbers(spread(values), present(within))
        case Reals(values, within):
            full = np.zeros(len(valid))
            full[where] = values
            return Reals(full, present(within))
        case Slices(starts, sizes, within):
            # A null row gets an empty slice at the end of the previous one, to keep the order.
            every_start = np.maximum.accumulate(spread(starts + sizes))
            every_start[where] = starts
            return Slices(every_start, spread(sizes), present(within))
        case Lists(sizes, items, within):
            return Lists(spread(sizes), items, present(within))
        case Records(fields, within):
            spread_fields = {name: _spread(part, where, valid) for name, part in fields.items()}
            return Records(spread_fields, present(within), len(valid))


def _items(item: Shape, lanes: Lanes, target: pa.DataType | None) -> Column:
    """Read lists, or maps as lists of records: the first items of all rows, then the second, and so on."""
    requested = None if target is None else _item_type(target)
    sizes = np.zeros(len(lanes.at), np.int64)
    steps: list[tuple[Offsets, Offsets, Column]] = []
    going = np.arange(len(sizes))
    for _ in range(_MAX_BLOCKS):
        if not len(going):
            break
        counts = _read_count(lanes, going)
        left = counts if requested is not None else np.where(_skip_lists(item, lanes, going, counts), 0, counts)
        for step in range(int(left.max(initial=0))):
            rows = going[left > step]
            if step >= _MAX_STEPS and len(rows) < _MIN_ROWS:
                lanes.at[rows] = lanes.size + 1
                break
            part = lanes.some(rows)
            column = read_column(item, part, requested)
            lanes.follow(rows, part)
            if requested is not None:
                steps.append((rows, sizes[rows] + step, column))
        sizes[going] += counts
        going = going[counts > 0]
    # Longer lists are left to the row-by-row decoder.
    lanes.at[going] = lanes.size + 1
    return AllNull(len(sizes)) if requested is None else Lists(sizes, _transpose(steps, sizes, requested), None)


def _skip_lists(item: Shape, lanes: Lanes, rows: Offsets, counts: Offsets) -> npt.NDArray[np.bool_]:
    """Skip lists of small numbers of the most frequent length at once. Return a mask of the rows that were skipped.

    Null counts in statistics are an example: each takes two bytes, the branch of the union and the number.
    """
    passed = np.zeros(len(rows), np.bool_)
    branch, number = None, item
    if isinstance(item, Union):
        branch = next((at for at, part in enumerate(item.branches) if part != _NULL), 0)
        number = item.branches[branch]
    if number not in (Primitive("int"), Primitive("long")) or not len(rows):
        return passed
    usual = int(np.bincount(counts).argmax())
    size = usual * (1 if branch is None else 2)
    if not size or size > lanes.size:
        return passed
    alike = np.flatnonzero((counts == usual) & (lanes.at[rows] + size <= lanes.size))
    items = np.lib.stride_tricks.sliding_window_view(lanes.content, size)[lanes.at[rows[alike]]]
    is_small = (items < 0x80).all(axis=1)  # noqa: PLR2004 - the continuation bit
    if branch is not None:
        is_small &= (items[:, ::2] == branch << 1).all(axis=1)
    passed[alike[is_small]] = True
    lanes.at[rows[passed]] += size
    return passed


def _read_count(lanes: Lanes, rows: Offsets) -> Offsets:
    """Read the number of items that follow in these rows; an impossible number becomes 0."""
    part = lanes.some(rows)
    counts = part.varint()
    sized = np.flatnonzero(counts < 0)
    if len(sized):
        of_size = part.some(sized)
        of_size.varint()
        part.follow(sized, of_size)
        counts = np.abs(counts)
    part.invalidate((counts < 0) | (counts > _MAX_ITEMS))
    counts[part.at > lanes.size] = 0
    lanes.follow(rows, part)
    return counts


def _transpose(steps: Sequence[tuple[Offsets, Offsets, Column]], sizes: Offsets, item_type: pa.DataType) -> Column:
    """Return the items of all rows, row by row, from steps of rows, positions and items."""
    if pa.types.is_struct(item_type):
        return _transpose_records(steps, sizes, item_type)
    if pa.types.is_list(item_type) or pa.types.is_map(item_type):
        return _transpose_lists(steps, sizes, item_type)
    total = int(sizes.sum())
    begins = np.cumsum(sizes) - sizes
    valid = np.zeros(total, np.bool_)
    first = np.zeros(total, np.int64)
    second = np.zeros(total, np.int64)
    for rows, positions, column in steps:
        target = begins[rows] + positions
        match column:
            case AllNull():
                continue
            case Numbers(values, present):
                first[target] = values
            case Slices(starts, lengths, present):
                first[target], second[target] = starts, lengths
            case _:
                raise CannotVectorizeError
        valid[target] = True if present is None else present
    if not valid.any():
        return AllNull(total)
    nulls = None if valid.all() else valid
    if pa.types.is_integer(item_type) or pa.types.is_boolean(item_type):
        return Numbers(first, nulls)
    ends = np.maximum.accumulate(first + second) if total else first
    return Slices(first if nulls is None else np.where(valid, first, ends), second, nulls)


def _transpose_records(
    steps: Sequence[tuple[Offsets, Offsets, Column]], sizes: Offsets, target: pa.StructType
) -> Records:
    """Return the records of all rows, row by row, field by field."""
    if any(not isinstance(column, Records) or column.valid is not None for _, _, column in steps):
        raise CannotVectorizeError
    fields: dict[str, Column] = {}
    for part in target:
        parts = [
            (rows, positions, column.fields[part.name])
            for rows, positions, column in steps
            if isinstance(column, Records) and part.name in column.fields
        ]
        fields[part.name] = _transpose(parts, sizes, part.type) if parts else AllNull(int(sizes.sum()))
    return Records(fields, None, int(sizes.sum()))


def _transpose_lists(
    steps: Sequence[tuple[Offsets, Offsets, Column]], sizes: Offsets, target: pa.ListType | pa.MapType
) -> Lists:
    """Return the lists of all rows, row by row, and their items in the same order."""
    begins = np.cumsum(sizes) - sizes
    inner_sizes = np.zeros(int(sizes.sum()), np.int64)
    valid = np.zeros(len(inner_sizes), np.bool_)
    inner_steps: list[tuple[Offsets, Offsets, Column]] = []
    for rows, positions, column in steps:
        if isinstance(column, AllNull):
            continue
        if not isinstance(column, Lists):
            raise CannotVectorizeError
        lists = begins[rows] + positions
        inner_sizes[lists] = column.sizes
        valid[lists] = True if column.valid is None else column.valid
        firsts = np.repeat(np.cumsum(column.sizes) - column.sizes, column.sizes)
        inner_steps.append((np.repeat(lists, column.sizes), np.arange(len(firsts)) - firsts, column.items))
    items = _transpose(inner_steps, inner_sizes, _item_type(target))
    return Lists(inner_sizes, items, None if valid.all() else valid)


def _item_type(target: pa.ListType | pa.MapType) -> pa.DataType:
    return pair_type(target) if pa.types.is_map(target) else target.value_type
