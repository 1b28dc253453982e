"""Rows of Avro blocks as Arrow columns, decoded in parallel lanes.

Avro rows have no length prefix: a reader must decode a row to find the next. To decode many rows at once, their starts
are guessed from the first bytes, or the first text, of the first row. All rows are decoded, and the guess is verified:
every row must end where the next starts, and the counts must match. Otherwise `rows` decodes them one by one. Where
the starts are recorded, as in log files of Hudi, nothing is guessed.
"""

import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.formats.avro.arrow_values import CannotVectorizeError, Column, Offsets, select_rows, to_arrow
from snapshot_explorer.formats.avro.container import (
    MARKER_BYTES,
    Primitive,
    Record,
    Shape,
    Union,
    varint,
)
from snapshot_explorer.formats.avro.lanes import PADDING, Lanes, read_column

_PART_BYTES = 4 * 2**20
"""Decoded bytes of blocks whose rows are read at once. Reading a byte of each row is a pass over them all, which takes
a quarter less time where they fit in the processor's cache."""
_FEW_ROWS = 64
"""Fewer rows are decoded faster one by one."""
_PREFIX = 4
_TEXT_PREFIX = 8
"""The number of bytes of the first text that are used to find rows."""
_SAMPLE = 512
"""The number of texts from which the number of bytes before texts is estimated."""
_MAX_LEAD = 11
"""The maximum number of bytes of a number that may be null."""
_MAX_FIRST = 4
"""The zigzag form of 2, the maximum status of a manifest entry."""
_PIECE = 2**20
_LARGEST_SMALL = 3


def decode_rows(blocks: Sequence[tuple[int, bytes]], shape: Shape, target: pa.StructType) -> pa.StructArray:
    """Return the rows of blocks of one shape as a struct array. Arguments as for `decode`.

    Raises:
        CorruptBytesError: The blocks end too early or violate the format.
    """
    parts = [
        _decode_part(part, shape, target) for part in pack(blocks, lambda block: len(block[1]), target=_PART_BYTES)
    ]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts or [pa.nulls(0, target)])


def _decode_part(blocks: Sequence[tuple[int, bytes]], shape: Shape, target: pa.StructType) -> pa.StructArray:
    # pyarrow imports pandas, which takes longer than the rows, when it first converts values from Python.
    is_small = "pandas" in sys.modules and sum(rows for rows, _ in blocks) < _FEW_ROWS
    columns = None if is_small else decode(blocks, shape, target)
    if columns is not None:
        return columns
    from snapshot_explorer.formats.avro import rows  # noqa: PLC0415 - for fastavro

    return rows.decode(blocks, shape, target)


def decode(blocks: Sequence[tuple[int, bytes]], shape: Shape, target: pa.StructType) -> pa.StructArray | None:
    """Return the rows of blocks of one shape as a struct array, None if the row starts cannot be verified.

    Args:
        blocks: Number of rows and uncompressed bytes, together under 2 GB.
        target: The fields to return and their types; fields that the shape lacks are null.
    """
    content = b"".join([*(block for _, block in blocks), bytes(PADDING)])
    size = len(content) - PADDING
    padded = np.frombuffer(content, np.uint8)
    bounds = np.cumsum([0, *(len(block) for _, block in blocks)], dtype=np.int64)
    counts = np.array([rows for rows, _ in blocks], np.int64)
    try:
        for starts in guesses(content, padded, bounds[:-1][counts > 0], shape):
            column, ends = _decode(padded, size, starts, shape, target)
            if not offsets_consistent(starts, ends, bounds, counts):
                kept = chain(starts, ends, size)
                if not offsets_consistent(starts[kept], ends[kept], bounds, counts):
                    continue
                column = select_rows(column, kept)
            return to_arrow(column, target, pa.py_buffer(padded))
    except (CorruptBytesError, CannotVectorizeError):
        pass
    return None


def decode_at(
    content: bytes,
    starts: Offsets,
    shape: Shape,
    target: pa.StructType,
    choose: Callable[[Offsets], npt.NDArray[np.bool_]] | None = None,
) -> tuple[pa.StructArray, Offsets] | None:
    """Return the rows at known positions as a struct array, and where each ends.

    None if they are not rows of the shape. The caller checks the ends: a damaged row may end within another one.

    Args:
        content: The bytes with the rows, under 2 GB.
        starts: Where each row starts.
        target: The fields to return and their types; fields that the shape lacks are null.
        choose: Returns which of the positions are rows, from their ends, if `starts` are only candidates.
    """
    padded = np.frombuffer(content + bytes(PADDING), np.uint8)
    try:
        column, ends = _decode(padded, len(content), starts, shape, target)
        if choose is not None:
            chosen = choose(ends)
            column, ends = select_rows(column, chosen), ends[chosen]
        if not (ends > len(content)).any():
            return to_arrow(column, target, pa.py_buffer(padded)), ends
    except (CorruptBytesError, CannotVectorizeError):
        pass
    return None


def only_rows(content: bytes, bounds: Offsets) -> tuple[npt.NDArray[np.bool_], Offsets, Offsets]:
    """Return which of many uncompressed Avro files are one block of one row, and the start and end of the rows.

    Args:
        content: The bytes after the headers of the files, under 2 GB.
        bounds: The start of each file in the content, and the end of the last one.
    """
    padded = np.frombuffer(content + bytes(2 * MARKER_BYTES), np.uint8)
    lanes = Lanes(padded, len(content), bounds[:-1] + MARKER_BYTES)
    counts = lanes.varint()
    starts, sizes = lanes.slice()
    ends = starts + sizes
    is_whole = (counts == 1) & (ends + MARKER_BYTES == bounds[1:])
    markers = np.lib.stride_tricks.sliding_window_view(padded, MARKER_BYTES)
    is_whole[is_whole] = (markers[ends[is_whole]] == markers[bounds[:-1][is_whole]]).all(axis=1)
    return is_whole, starts, ends


def _decode(
    padded: npt.NDArray[np.uint8], size: int, starts: Offsets, shape: Shape, target: pa.DataType
) -> tuple[Column, Offsets]:
    lanes = Lanes(padded, size, starts.copy())
    return read_column(shape, lanes, target), lanes.at


def guesses(content: bytes, padded: npt.NDArray[np.uint8], firsts: Offsets, shape: Shape) -> Iterator[Offsets]:
    """Yield candidates for row starts, the likeliest first."""
    try:
        result = _guess(content, padded, firsts, shape)
    except CannotVectorizeError:
        yield from _guesses_by_text(content, padded, firsts, shape)
    else:
        yield result


def _guesses_by_text(content: bytes, padded: npt.NDArray[np.uint8], firsts: Offsets, shape: Shape) -> Iterator[Offsets]:
    """Yield candidates for row starts: positions from which the fields before the first text end at such a text.

    The first text of every row must begin with the same bytes as the first row's. In Iceberg's metadata this text is a
    path, preceded only by small numbers and ids. Their size in bytes is estimated from some of the rows; if the
    candidates are not enough, every size is tried.
    """
    before = _before_text(shape)
    if not len(firsts):
        yield firsts
        return
    size = len(content) - PADDING
    lanes = Lanes(padded, size, firsts[:1].copy())
    for part in before:
        read_column(part, lanes, None)
    begins, sizes = lanes.slice()
    prefix = content[int(begins[0]) : int(begins[0]) + min(int(sizes[0]), _TEXT_PREFIX)]
    if len(prefix) < _PREFIX or lanes.at[0] > lanes.size:
        raise CannotVectorizeError
    hits = _occurrences(padded, prefix)
    # The length of the text takes one byte or two. A byte that another one follows does not end a number.
    of_two = padded[hits - 2] > 0x7F  # noqa: PLR2004
    texts = hits - 1 - of_two
    if not before:
        yield _distinct([firsts, texts], size)
        yield _distinct([firsts, texts, hits - 1], size)
        return
    yield _distinct([firsts, *_likely_starts(texts, before, padded, size)], size)
    leads = range(len(before), _MAX_LEAD * len(before) + 1)
    yield _distinct([firsts, *(_leading_to(texts, lead, before, padded, size)[0] for lead in leads)], size)


def _occurrences(padded: npt.NDArray[np.uint8], part: bytes) -> Offsets:
    """Return the positions at which a part of at most eight bytes occurs."""
    words: npt.NDArray[np.uint64] = np.ndarray((len(padded) - PADDING,), "<u8", padded, strides=(1,))
    pattern = np.uint64(int.from_bytes(part, "little"))
    if len(part) < _TEXT_PREFIX:
        words = words & np.uint64(2 ** (8 * len(part)) - 1)
    return np.flatnonzero(words == pattern)


def _distinct(indices: Sequence[Offsets], size: int) -> Offsets:
    """Return the distinct positions among these, ascending. Each of the sequences is nearly sorted."""
    together = np.sort(np.concatenate(indices), kind="stable")
    is_new = (together >= 0) & (together <= size)
    is_new[1:] &= together[1:] != together[:-1]
    return together[is_new]


def _before_text(shape: Shape) -> list[Shape]:
    """Return the fields of a row before its first text, which must be numbers that may be null."""
    before: list[Shape] = []
    pending = [shape]
    while pending:
        match pending.pop(0):
            case Record(fields):
                pending[:0] = [part for _, part in fields]
            case Primitive("string"):
                return before
            case Primitive("int" | "long") as part:
                before.append(part)
            case Union(branches) as part if {*branches} <= {Primitive("null"), Primitive("int"), Primitive("long")}:
                before.append(part)
            case _:
                break
    raise CannotVectorizeError


def _likely_starts(
    texts: Offsets, before: Sequence[Shape], padded: npt.NDArray[np.uint8], size: int
) -> Iterator[Offsets]:
    """Yield the positions from which the fields before a text end at one of these texts.

    Only numbers of bytes that occur before some of the texts are tried, then before some of the remaining texts.
    """
    every = np.arange(len(before), _MAX_LEAD * len(before) + 1)
    tried: set[int] = set()
    while len(texts):
        sample = texts[:: -(-len(texts) // _SAMPLE)]
        starts, ends = _leading_to(np.repeat(sample, len(every)), np.tile(every, len(sample)), before, padded, size)
        leads = set(np.unique(ends - starts).tolist()) - tried
        if not leads:
            return
        tried |= leads
        is_left = np.ones(len(texts), np.bool_)
        for lead in leads:
            starts, ends = _leading_to(texts, lead, before, padded, size)
            is_left[np.searchsorted(texts, ends)] = False
            yield starts
        texts = texts[is_left]


def _leading_to(
    texts: Offsets, leads: Offsets | int, before: Sequence[Shape], padded: npt.NDArray[np.uint8], size: int
) -> tuple[Offsets, Offsets]:
    """Return the positions, this many bytes before texts, from which fields end at the text; also return the texts."""
    starts = texts - leads
    # The first number is small, and a union has two branches.
    likely = (starts >= 0) & (padded[starts] <= _MAX_FIRST)
    if len(before) > 1 and isinstance(before[1], Union):
        likely &= padded[starts + 1] <= _LARGEST_SMALL
    starts, texts = starts[likely], texts[likely]
    lanes = Lanes(padded, size, starts.copy())
    for part in before:
        read_column(part, lanes, None)
    is_there = lanes.at == texts
    return starts[is_there], texts[is_there]


def _guess(content: bytes, padded: npt.NDArray[np.uint8], firsts: Offsets, shape: Shape) -> Offsets:
    """Return candidates for row starts: positions whose bytes match the first row's, up to its first bytes or text.

    The first number of a row must be equal, the others before the first bytes or text small, and the first four
    bytes of that value equal. This is true for all metadata of Paimon: a version number comes first, then a BinaryRow,
    which begins with its arity, or a file name, which begins with a fixed word.
    """
    if not len(firsts):
        return firsts
    begin = int(firsts[0])
    lead = _lead(content, begin, shape)
    if not lead:
        raise CannotVectorizeError
    head = content[begin : begin + lead]
    prefix = content[begin + lead + 1 : begin + lead + 1 + _PREFIX]
    last = len(content) - PADDING - lead - _PREFIX - 1
    if last <= 0:
        return firsts
    # In chunks that fit the processor's cache.
    pieces = [np.flatnonzero(padded[at : min(at + _PIECE, last)] == head[0]) + at for at in range(0, last, _PIECE)]
    indices = np.concatenate(pieces)
    for index, byte in enumerate(head[1:], 1):
        candidates = padded[indices + index]
        indices = indices[(candidates <= _LARGEST_SMALL) | (candidates == byte)]
    behind = indices + lead + 1 + (padded[indices + lead] > 0x7F)  # noqa: PLR2004 - lengths take 1 or 2 bytes
    same = np.ones(len(indices), np.bool_)
    for index, byte in enumerate(prefix):
        same &= padded[behind + index] == byte
    likeliest = indices[same]
    is_likely = _among(firsts, likeliest)
    return likeliest if is_likely.all() else np.sort(np.concatenate([likeliest, firsts[~is_likely]]))


def _among(these: Offsets, those: Offsets) -> npt.NDArray[np.bool_]:
    if not len(those):
        return np.zeros(len(these), np.bool_)
    nearest = np.minimum(np.searchsorted(those, these), len(those) - 1)
    among: npt.NDArray[np.bool_] = those[nearest] == these
    return among


def _lead(content: bytes, at: int, shape: Shape) -> int:
    """Return the number of bytes before the length of the first bytes or text of a row."""
    begin = at
    pending = [shape]
    while pending:
        match pending.pop(0):
            case Record(fields):
                pending[:0] = [part for _, part in fields]
            case Union(branches):
                branch, at = varint(content, at)
                if not 0 <= branch < len(branches):
                    break
                pending[:0] = [branches[branch]]
            case Primitive("int" | "long"):
                _, at = varint(content, at)
            case Primitive("bytes" | "string"):
                if at - begin > _PREFIX or varint(content, at)[0] < _PREFIX:
                    break
                return at - begin
            case _:
                break
    raise CannotVectorizeError


def chain(starts: Offsets, ends: Offsets, size: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the starts on the chain from the first row: each row starts where the previous one ends.

    The mask is empty if the chain does not cover the bytes from their start to their end.
    """
    indices = np.searchsorted(starts, ends)
    follow = np.minimum(indices, len(starts) - 1)
    # The chain stops at a row that does not end at a start. The last row must end with the bytes.
    indices[(starts[follow] != ends) | (indices <= np.arange(len(starts)))] = len(starts)
    after, at = indices.tolist(), 0
    kept = np.zeros(len(starts), np.bool_)
    chain: list[int] = []
    while at < len(after):
        chain.append(at)
        at = after[at]
    if chain and starts[0] == 0 and ends[chain[-1]] == size:
        kept[chain] = True
    return kept


def offsets_consistent(starts: Offsets, ends: Offsets, bounds: Offsets, counts: Offsets) -> bool:
    """Return whether the rows fill the blocks without a gap, and each block has its recorded number of rows."""
    if not len(starts):
        return int(bounds[-1]) == 0
    return bool(
        starts[0] == 0
        and ends[-1] == bounds[-1]
        and np.array_equal(starts[1:], ends[:-1])
        and _among(bounds[:-1][counts > 0], starts).all()
        and np.array_equal(np.diff(np.searchsorted(starts, bounds)), counts)
    )
