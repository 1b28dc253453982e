"""Paimon's BinaryRow: partition values, keys and statistics as typed Arrow columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import decimals, vectors
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType, PaimonField, arrow_type

_COMPACT_DECIMAL = 18
_MILLIS = 3
_MICROS = 6
_WHOLE: Mapping[str, np.dtype[Any]] = {
    "TINYINT": np.dtype("<i1"),
    "SMALLINT": np.dtype("<i2"),
    "INT": np.dtype("<i4"),
    "DATE": np.dtype("<i4"),
    "TIME": np.dtype("<i4"),
    "BIGINT": np.dtype("<i8"),
    "FLOAT": np.dtype("<f4"),
    "DOUBLE": np.dtype("<f8"),
}
_SLICED = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one arity, with the offsets of their slots."""

    content: Bytes
    """The bytes of all rows, one after another."""
    buffer: pa.Buffer
    starts: Offsets
    """The start of each row, after its arity."""
    ends: Offsets
    slots: int
    """The offset of slot 0 from the start of a row."""

    def gather(self, at: Offsets, width: int) -> Bytes:
        if not len(self.content):
            return np.zeros((len(at), width), np.uint8)
        return np.asarray(self.content[at[:, None] + np.arange(width)])

    def slot(self, index: int) -> Offsets:
        return self.starts + self.slots + 8 * index


def decode(rows: pa.BinaryArray | pa.ChunkedArray, fields: Sequence[PaimonField], *, lenient: bool = False) -> pa.Table:
    """Return serialized BinaryRows as a table with a column per field, of the field's `arrow_type` without vectors.

    A null row is null in every column. Fields of unordered types (ARRAY, MAP, ROW, VARIANT, BLOB,
    ...) are null. Equal rows are decoded once.

    Args:
        rows: The rows, each prefixed with its arity.
        fields: The fields of the rows, in order.
        lenient: Return null for a time that does not fit its Arrow type, instead of raising. For statistics, where null
            means unknown.

    Source: paimon BinaryRow, BinaryRowSerializer.
    """
    encoded = single_chunk(rows).dictionary_encode()
    distinct = encoded.dictionary
    try:
        binary_rows = _open(distinct, len(fields))
        columns = [_column(binary_rows, index, field.type, lenient=lenient) for index, field in enumerate(fields)]
    except pa.ArrowInvalid as error:
        raise _broken_error(f"contains a value that is invalid for its type ({error})") from error
    names = [field.name for field in fields]
    if len(distinct) == len(rows) and not rows.null_count:
        return pa.Table.from_arrays(columns, names=names) if fields else _empty(len(rows))
    if not fields:
        return _empty(len(rows))
    return pa.Table.from_arrays([column.take(encoded.indices) for column in columns], names=names)


def _empty(rows: int) -> pa.Table:
    return pa.table({"rows": pa.nulls(rows)}).select([])


def _broken_error(problem: str) -> CorruptTableError:
    return CorruptTableError(
        f"A partition, key or statistic of the table {problem}. A manifest or a schema file is damaged, or they do not "
        "belong together; compare the table with a copy."
    )


def _open(rows: pa.BinaryArray, arity: int) -> _Rows:
    content = np.frombuffer(rows.buffers()[2] or b"", np.uint8)
    bounds = np.frombuffer(rows.buffers()[1] or bytes(4), np.int32)[rows.offset : rows.offset + len(rows) + 1]
    begins, ends = bounds[:-1].astype(np.int64), bounds[1:].astype(np.int64)
    slots = (arity + 63 + 8) // 64 * 8
    if ((ends - begins) < 4 + slots + 8 * arity).any():
        raise _broken_error(f"is shorter than a row of {arity} fields")
    binary_rows = _Rows(
        content=content,
        buffer=rows.buffers()[2] or pa.py_buffer(b""),
        starts=begins + 4,
        ends=ends,
        slots=slots,
    )
    arities = binary_rows.gather(begins, 4).copy().view(">i4")[:, 0]
    if (arities != arity).any():
        other = int(arities[arities != arity][0])
        raise _broken_error(f"has {other} fields, but the schema has {arity}")
    return binary_rows


def _nulls(rows: _Rows, index: int) -> Mask:
    bit = index + 8
    return (rows.content[rows.starts + bit // 8] >> (bit % 8) & 1).astype(np.bool_)


def _column(rows: _Rows, index: int, data_type: PaimonDataType, *, lenient: bool) -> pa.Array:
    nulls = _nulls(rows, index)
    target = arrow_type(data_type)
    at = rows.slot(index)
    if data_type.root == "BOOLEAN":
        return pa.array(rows.content[at] != 0, mask=nulls)
    if data_type.root in _WHOLE:
        dtype = _WHOLE[data_type.root]
        values = rows.gather(at, dtype.itemsize).copy().view(dtype)[:, 0]
        return _check(pa.array(values, mask=nulls).cast(target))
    if data_type.root in _SLICED:
        return _slices(rows, at, nulls).cast(target)
    if data_type.root == "DECIMAL":
        return _decimals(rows, at, nulls, data_type)
    if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return _timestamps(rows, at, nulls, data_type, lenient=lenient)
    return pa.nulls(len(at), vectors.as_lists(target))


def _check(column: pa.Array) -> pa.Array:
    """Return the column if every value is valid for its type.

    Raises:
        pa.ArrowInvalid: A time of day or a decimal is out of range.
    """
    column.validate(full=True)
    return column


def _pointers(rows: _Rows, at: Offsets, nulls: Mask, size: int | None) -> tuple[Offsets, Offsets]:
    """Return the offset of a field's variable part and the low word of its slot, which is usually its length.

    The variable part must have `size` bytes, or as many as the low word if `size` is None.
    """
    words = rows.gather(at, 8).copy().view("<i4")
    low, high = words[:, 0].astype(np.int64), words[:, 1].astype(np.int64)
    low, high = np.where(nulls, 0, low), np.where(nulls, 0, high)
    length = low if size is None else np.where(nulls, 0, size)
    if ((high < 0) | (low < 0) | (rows.starts + high + length > rows.ends)).any():
        raise _broken_error("points outside of its row")
    return rows.starts + high, low


def _slices(rows: _Rows, at: Offsets, nulls: Mask) -> pa.Array:
    """Return byte strings, which are stored in the slot itself when they have at most seven bytes.

    Each value is stored in its own row, so the values are in order: their starts and ends are the offsets of an array
    whose every second element is a value. It is built without a copy, and the values are selected with one `take`.
    """
    if not len(at):
        return pa.array([], pa.binary())
    mark = rows.content[at + 7]
    inline = (mark & 0x80).astype(np.bool_)
    begins, sizes = _pointers(rows, at, nulls | inline, None)
    begins = np.where(nulls, rows.starts, np.where(inline, at, begins))
    sizes = np.where(nulls, 0, np.where(inline, mark & 0x7F, sizes))
    if (begins + sizes > rows.ends).any():
        raise _broken_error("points outside of its row")
    cuts = np.empty(2 * len(at), np.int32)
    cuts[0::2], cuts[1::2] = begins, begins + sizes
    pieces = pa.Array.from_buffers(pa.binary(), 2 * len(at) - 1, [None, pa.py_buffer(cuts), rows.buffer])
    return pieces.take(pa.array(np.arange(0, 2 * len(at), 2), mask=nulls))


def _decimals(rows: _Rows, at: Offsets, nulls: Mask, data_type: PaimonDataType) -> pa.Array:
    wide = np.zeros((len(at), 2), "<i8")
    if (data_type.precision or 0) <= _COMPACT_DECIMAL:
        wide[:, 0] = rows.gather(at, 8).copy().view("<i8")[:, 0]
        wide[:, 1] = wide[:, 0] >> 63
    else:
        begins, sizes = _pointers(rows, at, nulls, None)
        if (sizes > decimals.BYTES).any() or ((sizes == 0) & ~nulls).any():
            raise _broken_error(f"contains a decimal of {int(sizes.max())} bytes")
        wide = decimals.little_endian(rows.content, begins, np.where(nulls, 0, sizes)).view("<i8")
    wide[nulls] = 0
    validity = pa.array(~nulls).buffers()[1]
    return _check(pa.Array.from_buffers(arrow_type(data_type), len(at), [validity, pa.py_buffer(wide)]))


def _timestamps(rows: _Rows, at: Offsets, nulls: Mask, data_type: PaimonDataType, *, lenient: bool) -> pa.Array:
    dtype = arrow_type(data_type)
    precision = data_type.precision or 0
    if precision <= _MILLIS:
        return pa.array(rows.gather(at, 8).copy().view("<i8")[:, 0], mask=nulls).cast(dtype)
    begins, nanos = _pointers(rows, at, nulls, 8)
    if (nanos > 999_999).any():  # noqa: PLR2004 - nanoseconds within a millisecond
        raise _broken_error("contains a timestamp with more than 999,999 nanoseconds in a millisecond")
    begins = np.where(nulls, at, begins)
    millis = rows.gather(begins, 8).copy().view("<i8")[:, 0]
    factor, more = (1_000, nanos // 1_000) if precision <= _MICROS else (1_000_000, nanos)
    limit = (2**63 - 1) // factor - 1
    far = ~nulls & ((millis > limit) | (millis < -limit))
    if far.any() and not lenient:
        raise refusal(
            features.TIMESTAMPS_OUT_OF_RANGE,
            type=data_type.root,
            precision=precision,
            unit="micro" if precision <= _MICROS else "nano",
        )
    unknown = nulls | far
    return pa.array(np.where(unknown, 0, millis) * factor + more, mask=unknown).cast(dtype)
