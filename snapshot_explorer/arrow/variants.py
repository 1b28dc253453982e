"""Arrow kernels for variants: values that were shredded into typed columns, as values in the binary encoding.

A value is bytes: a header, and for an object or an array the numbers, offsets and values of its elements. The names of
an object's fields are in the metadata, which shredded values share with the rest of their row. Nothing loops over rows:
bytes of many values are gathered and joined at once. Only the distinct metadata are parsed one by one.

Source: parquet-format, "Variant Binary Encoding", "Variant Shredding".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.nesting import with_fields

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_NULL = b"\x00"
_OBJECT, _ARRAY = 2, 3
_SMALL = 255
"""The maximum number of elements whose number fits in one byte."""
_SHORT = 63
"""The maximum number of bytes of a text whose length is in its header."""
_UUID_WIDTH = 16
_FIXED: Mapping[pa.DataType, tuple[int, int]] = {
    pa.float32(): (14, 4),
    pa.float64(): (7, 8),
    pa.date32(): (11, 4),
    pa.time64("us"): (17, 8),
    pa.timestamp("us"): (13, 8),
    pa.timestamp("us", "UTC"): (12, 8),
    pa.timestamp("ns"): (19, 8),
    pa.timestamp("ns", "UTC"): (18, 8),
    pa.binary(_UUID_WIDTH): (20, _UUID_WIDTH),
}
"""Number and width of the primitive types of one width."""
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DECIMALS = ((9, 8, 4), (18, 9, 8), (38, 10, 16))
"""The maximum number of digits of each decimal type, its number and its width without the scale."""
_TEXTS = (pa.string(), pa.large_string())
_BINARIES = (pa.binary(), pa.large_binary())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The names of fields in distinct metadata."""

    ids: tuple[Mapping[str, int], ...]
    """The number of each name, by metadata."""
    begins: Ints
    """The start of each metadata's ranks."""
    ranks: Ints
    """The rank of each name in the order of the bytes, for all metadata, one after the other."""

    def numbers(self, name: str, which: Ints) -> Ints:
        """Return the number of a name in the metadata of each row; -1 if it is missing."""
        return np.array([known.get(name, -1) for known in self.ids], np.int64)[which]


def is_group(dtype: pa.DataType) -> bool:
    """Return whether a type in a file is a group that stores variants, shredded or not."""
    names = {item.name for item in dtype} if pa.types.is_struct(dtype) else set()
    return names in ({"metadata", "value"}, {"metadata", "typed_value"}, {"metadata", "value", "typed_value"})


def unshred(values: pa.StructArray, target: pa.StructType) -> pa.StructArray:
    """Return variants as a struct of value and metadata, of the fields of `target`; shredded values are assembled.

    Args:
        values: Groups as stored in files, of supported types.
    """
    is_shredded = any(item.name == "typed_value" for item in values.type)
    children = {
        "metadata": values.field("metadata"),
        "value": unshred_values(values) if is_shredded else values.field("value"),
    }
    return with_fields(values, target, [children[item.name].cast(pa.binary()) for item in target])


def unread_type(dtype: pa.DataType) -> pa.DataType | None:
    """Return the type in a shredded group that no variant has, or None."""
    if not pa.types.is_struct(dtype) or not {item.name for item in dtype} <= {"metadata", "value", "typed_value"}:
        return dtype
    typed = next((item.type for item in dtype if item.name == "typed_value"), None)
    if typed is None:
        return None
    if pa.types.is_struct(typed):
        return next((unread for item in typed if (unread := unread_type(item.type)) is not None), None)
    if pa.types.is_list(typed) or pa.types.is_large_list(typed):
        return unread_type(typed.value_type)
    typed = _storage(typed)
    is_known = typed in _FIXED or typed in _INTEGERS or typed in _TEXTS or typed in _BINARIES or typed == pa.bool_()
    return None if is_known or pa.types.is_decimal(typed) else typed


def unshred_values(values: pa.StructArray) -> pa.Array:
    """Return the `value` of shredded variants, a large binary; null where the variant is.

    Args:
        values: Groups of `metadata`, maybe `value`, and `typed_value`, of types that are read.
    """
    metadata = values.field("metadata").cast(pa.large_binary())
    metadata = pc.if_else(
        pc.and_(values.is_valid(), metadata.is_valid()), metadata, pa.scalar(b"\x01\x00", metadata.type)
    )
    encoded = metadata.dictionary_encode()
    names = _parse([item.as_py() for item in encoded.dictionary])
    rebuilt = _rebuild(values, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), names)
    rebuilt = pc.fill_null(rebuilt, pa.scalar(_NULL, pa.large_binary()))
    return pc.if_else(values.is_valid(), rebuilt, pa.scalar(None, pa.large_binary()))


def _parse(metadata: list[bytes]) -> _Names:
    ids, begins, ranks = [], [0], [np.empty(0, np.int64)]
    for item in metadata:
        names = names_of(item)
        order = sorted(range(len(names)), key=names.__getitem__)
        rank = np.empty(len(names), np.int64)
        rank[order] = np.arange(len(names))
        ids.append({name.decode(): number for number, name in enumerate(names)})
        ranks.append(rank)
        begins.append(begins[-1] + len(names))
    return _Names(ids=tuple(ids), begins=np.array(begins, np.int64), ranks=np.concatenate(ranks))


def names_of(metadata: bytes) -> list[bytes]:
    """Return the names of fields in the metadata of a variant, by number."""
    if not metadata or metadata[0] & 0xF != 1:
        raise pa.ArrowInvalid("the metadata of a variant is not of version 1")
    width = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + width], "little")
    if not count:
        return []  # the specification's own examples end here, without an offset
    begin = 1 + width * (count + 2)
    if begin > len(metadata):
        raise pa.ArrowInvalid("the metadata of a variant ends early")
    offsets = [int.from_bytes(metadata[offset : offset + width], "little") for offset in range(1 + width, begin, width)]
    if offsets != sorted(offsets) or begin + offsets[-1] > len(metadata):
        raise pa.ArrowInvalid("the metadata of a variant has names beyond its end")
    return [metadata[begin + first : begin + last] for first, last in pairwise(offsets)]


def _rebuild(group: pa.StructArray, which: Ints, names: _Names) -> pa.Array:
    """Return the values of groups, each from a value, a typed value, or for an object from both; null if missing."""
    parts = _parts(group)
    value = parts["value"].cast(pa.large_binary()) if "value" in parts else None
    if "typed_value" not in parts:
        if value is None:
            raise pa.ArrowInvalid("a shredded variant has neither value nor typed_value")
        return value
    typed = parts["typed_value"]
    if pa.types.is_struct(typed.type):
        result = _objects(value, typed, which, names)
        return result if value is None else pc.coalesce(result, value)
    is_list = pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type)
    result = _arrays(typed, which, names) if is_list else _primitives(typed)
    if value is None:
        return result
    if pc.any(pc.and_(result.is_valid(), value.is_valid())).as_py():
        raise pa.ArrowInvalid("a shredded variant has both a value and a typed value, and is not an object")
    return pc.coalesce(result, value)


def _parts(group: pa.StructArray) -> dict[str, pa.Array]:
    """Return the fields of a group by name, null where the group is null, whatever the file stores for it."""
    return dict(zip((item.name for item in group.type), group.flatten(), strict=True))


def _storage(dtype: pa.DataType) -> pa.DataType:
    return dtype.storage_type if isinstance(dtype, pa.BaseExtensionType) else dtype


def _primitives(typed: pa.Array) -> pa.Array:
    if isinstance(typed, pa.ExtensionArray):
        typed = typed.storage
    if typed.type == pa.bool_():
        true, false = (pa.scalar(bytes([number << 2]), pa.large_binary()) for number in (1, 2))
        return pc.if_else(typed, true, false)
    if typed.type in _TEXTS or typed.type in _BINARIES:
        return _texts(typed.cast(pa.large_binary()), is_text=typed.type in _TEXTS)
    if typed.type in _INTEGERS:
        return _integers(typed.cast(pa.int64()))
    if pa.types.is_decimal(typed.type):
        _, number, width = next(item for item in _DECIMALS if typed.type.precision <= item[0])
        cells = _cells(typed.cast(pa.decimal128(38, typed.type.scale)), 16)[:, :width]
        head = bytes([number << 2, typed.type.scale])
    else:
        number, width = _FIXED[typed.type]
        cells, head = _cells(typed, width), bytes([number << 2])
    whole = np.concatenate([np.tile(np.frombuffer(head, np.uint8), (len(typed), 1)), cells], axis=1)
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(whole.shape[1]), len(typed), [None, pa.py_buffer(np.ascontiguousarray(whole))]
    )
    return pc.if_else(typed.is_valid(), fixed.cast(pa.large_binary()), pa.scalar(None, pa.large_binary()))


def _integers(values: pa.Array) -> pa.Array:
    """Return integers in the smallest width. The width is not part of the value, and shredding may have changed it."""
    numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    size = (numbers != numbers.astype(np.int8)) + (numbers != numbers.astype(np.int16)).astype(np.int64)
    size += numbers != numbers.astype(np.int32)
    cells = np.ascontiguousarray(numbers.astype("<i8")).view(np.uint8).reshape(-1, 8)
    whole = np.concatenate([((3 + size) << 2)[:, None].astype(np.uint8), cells], axis=1)
    return _join(_first_bytes(whole, 1 + (1 << size)), _empty(values))


def _empty(values: pa.Array) -> pa.Array:
    """Return an empty binary for each value, null for null."""
    return pc.if_else(values.is_valid(), pa.scalar(b"", pa.large_binary()), pa.scalar(None, pa.large_binary()))


def _cells(values: pa.Array, width: int) -> Bytes:
    if not len(values):
        return np.empty((0, width), np.uint8)
    return np.frombuffer(values.buffers()[1], np.uint8, len(values) * width, values.offset * width).reshape(-1, width)


def _texts(values: pa.Array, *, is_text: bool) -> pa.Array:
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    is_short = (lengths <= _SHORT) & is_text
    head = np.where(is_short, 1 | lengths << 2, (16 if is_text else 15) << 2)
    cells = np.concatenate([head[:, None].astype(np.uint8), _little(lengths)], axis=1)
    return _join(_first_bytes(cells, np.where(is_short, 1, 5)), values)


def _little(numbers: Ints) -> Bytes:
    """Return numbers of at most 32 bits as four bytes each, little-endian."""
    return np.ascontiguousarray(numbers.astype("<u4")).view(np.uint8).reshape(-1, 4)


def _first_bytes(cells: Bytes, widths: Ints, counts: Ints | None = None) -> pa.Array:
    """Return the first bytes of rows of cells as binary values.

    Args:
        widths: The number of bytes of each row.
        counts: The number of rows of each value; by default one.
    """
    data = cells[np.arange(cells.shape[1]) < widths[:, None]]
    ends = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    if counts is not None:
        ends = ends[np.concatenate([[0], np.cumsum(counts)])]
    return _binary(ends, data)


def _binary(ends: Ints, data: Bytes) -> pa.Array:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends) - 1, buffers)


def _join(*parts: pa.Array) -> pa.Array:
    """Return the concatenated parts of each value; null where a part is null."""
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))


def _widths(numbers: Ints) -> Ints:
    """Return the number of bytes that each number needs, at least one."""
    if len(numbers) and numbers.max() >= 1 << 32:
        raise pa.ArrowInvalid("a variant has more than 4 GiB")
    return 1 + (numbers >= 1 << 8).astype(np.int64) + (numbers >= 1 << 16) + (numbers >= 1 << 24)


def _containers(basic: int, counts: Ints, pieces: pa.Array, ids: Ints | None) -> pa.Array:
    """Return objects or arrays.

    Args:
        counts: The number of elements of each container.
        pieces: The elements of all containers, in order.
        ids: The numbers of their names, for objects.
    """
    owners = np.repeat(np.arange(len(counts)), counts)
    ends = _offsets(pieces)
    begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    sizes = _widths(ends[begins[1:]] - ends[begins[:-1]])
    is_large = (counts > _SMALL).astype(np.int64)
    flags = sizes - 1 | is_large << 2
    names = []
    if ids is not None:
        maximum = np.zeros(len(counts), np.int64)
        np.maximum.at(maximum, owners, ids)
        id_sizes = _widths(maximum)
        flags = sizes - 1 | id_sizes - 1 << 2 | is_large << 4
        names = [_first_bytes(_little(ids), id_sizes[owners], counts)]
    head = np.concatenate([(basic | flags << 2)[:, None].astype(np.uint8), _little(counts)], axis=1)
    # The offsets of the elements of each container, and the end of the last.
    several = np.repeat(np.arange(len(counts)), counts + 1)
    offsets = ends[np.arange(len(several)) - several] - ends[begins[several]]
    data = _binary(ends[begins], _data(pieces))
    return _join(
        _first_bytes(head, np.where(is_large, 5, 2)),
        *names,
        _first_bytes(_little(offsets), sizes[several], counts + 1),
        data,
    )


def _offsets(values: pa.Array) -> Ints:
    return (
        np.frombuffer(values.buffers()[1], np.int64, len(values) + 1, values.offset * 8)
        if len(values)
        else np.zeros(1, np.int64)
    )


def _data(values: pa.Array) -> Bytes:
    buffer = values.buffers()[2]
    return np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(0, np.uint8)


def _arrays(typed: pa.Array, which: Ints, names: _Names) -> pa.Array:
    counts = pc.fill_null(pc.list_value_length(typed), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    pieces = _rebuild(pc.list_flatten(typed), np.repeat(which, counts), names)
    pieces = _contiguous(pc.fill_null(pieces, pa.scalar(_NULL, pa.large_binary())))
    containers = _containers(_ARRAY, counts, pieces, None)
    return pc.if_else(typed.is_valid(), containers, pa.scalar(None, pa.large_binary()))


def _objects(value: pa.Array | None, typed: pa.StructArray, which: Ints, names: _Names) -> pa.Array:
    """Return objects with the shredded fields and the fields in `value`; null without a shredded object."""
    is_object = typed.is_valid()
    rows, ids, pieces = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [pa.array([], pa.large_binary())]
    for name, group in _parts(typed).items():
        child = _rebuild(group, which, names)
        present = pc.and_(child.is_valid(), is_object)
        indices = np.flatnonzero(present.to_numpy(zero_copy_only=False))
        rows.append(indices)
        ids.append(names.numbers(name, which[indices]))
        pieces.append(child.filter(present))
    if value is not None:
        chosen = np.flatnonzero(pc.and_(value.is_valid(), is_object).to_numpy(zero_copy_only=False))
        fields = _fields(value.take(pa.array(chosen)), which[chosen], names)
        rows.append(chosen[fields[0]])
        ids.append(fields[1])
        pieces.append(fields[2])
    row, number = np.concatenate(rows), np.concatenate(ids)
    if (number < 0).any():
        raise pa.ArrowInvalid("the metadata of a shredded variant lack the name of one of its fields")
    order = np.lexsort((names.ranks[names.begins[which[row]] + number], row))
    row, number = row[order], number[order]
    if ((row[1:] == row[:-1]) & (number[1:] == number[:-1])).any():
        raise pa.ArrowInvalid("a shredded variant has a field twice, as a shredded field and in its value")
    counts = np.bincount(row, minlength=len(typed))
    objects = _containers(_OBJECT, counts, _contiguous(pa.concat_arrays(pieces).take(pa.array(order))), number)
    return pc.if_else(is_object, objects, pa.scalar(None, pa.large_binary()))


def _contiguous(values: pa.Array) -> pa.Array:
    """Return values without nulls as an array whose bytes begin at offset 0."""
    offsets = _offsets(values)
    if len(values) and offsets[0]:
        return _binary(offsets - offsets[0], _data(values)[offsets[0] : offsets[-1]])
    return values


def _fields(values: pa.Array, which: Ints, names: _Names) -> tuple[Ints, Ints, pa.Array]:
    """Return the fields of objects: the index of its object, the number of its name, and its value."""
    data, offsets = _data(values), _offsets(values)
    begins, ends = offsets[:-1], offsets[1:]
    if not len(values):
        return np.empty(0, np.int64), np.empty(0, np.int64), pa.array([], pa.large_binary())
    if (ends <= begins).any() or (data[begins] & 3 != _OBJECT).any():
        raise pa.ArrowInvalid("a shredded variant has shredded fields and a value that is not an object")
    flags = data[begins].astype(np.int64) >> 2
    sizes, id_sizes, number_sizes = (flags & 3) + 1, (flags >> 2 & 3) + 1, np.where(flags >> 4 & 1, 4, 1)
    counts = _numbers(data, begins + 1, number_sizes)
    first_ids = begins + 1 + number_sizes
    first_offsets = first_ids + counts * id_sizes
    first_values = first_offsets + (counts + 1) * sizes
    if (first_values > ends).any():
        raise pa.ArrowInvalid("an object of a variant ends early")
    owners = np.repeat(np.arange(len(values)), counts)
    within = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    ids = _numbers(data, first_ids[owners] + within * id_sizes[owners], id_sizes[owners])
    if (ids >= (names.begins[1:] - names.begins[:-1])[which[owners]]).any():
        raise pa.ArrowInvalid("an object of a variant has a field whose name is not in its metadata")
    several = np.repeat(np.arange(len(values)), counts + 1)
    inside = np.arange(len(several)) - np.repeat(np.cumsum(counts + 1) - counts - 1, counts + 1)
    offsets = _numbers(data, first_offsets[several] + inside * sizes[several], sizes[several])
    # Values can be in any order: each ends where the next one begins, the last at the end of the object.
    order = np.lexsort((offsets, several))
    following = np.empty(len(several), np.int64)
    following[order[:-1]] = offsets[order[1:]]
    following[order[-1]] = offsets[order[-1]]
    is_value = inside < counts[several]
    starts, stops = offsets[is_value], following[is_value]
    if (first_values[owners] + stops > ends[owners]).any() or (stops <= starts).any():
        raise pa.ArrowInvalid("an object of a variant has values beyond its end")
    return owners, ids, _spans(data, first_values[owners] + starts, stops - starts)


def _numbers(data: Bytes, offsets: Ints, widths: Ints) -> Ints:
    """Return little-endian unsigned numbers of one to four bytes. Positions beyond the end have any value."""
    result = np.zeros(len(offsets), np.int64)
    last = max(len(data) - 1, 0)
    for byte in range(4):
        result |= np.where(byte < widths, data[np.minimum(offsets + byte, last)].astype(np.int64) << 8 * byte, 0)
    return result


def _spans(data: Bytes, starts: Ints, lengths: Ints) -> pa.Array:
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return _binary(ends, data[np.repeat(starts - ends[:-1], lengths) + np.arange(ends[-1])])
