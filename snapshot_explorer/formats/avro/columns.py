"""Rows of Avro blocks as Arrow columns, decoded in parallel lanes.

Avro rows have no length prefix: a reader must decode a row to find the next. To decode many rows at once, their starts
are guessed from the first bytes, or the first text, of the first row. All rows are decoded, and the guess is verified:
every row must end where the next starts, and the counts must match. Otherwise `records` decodes the rows one by one.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.formats.avro.arrow_values import (
    Column,
    Lists,
    Nothing,
    Numbers,
    Places,
    Reals,
    Records,
    Slices,
    Unproven,
    chosen,
    pair_type,
    to_arrow,
)
from snapshot_explorer.formats.avro.container import Atom, Cut, Fixed, Items, Record, Shape, Union, varint

_PADDING = 16
_PREFIX = 4
_TEXT_PREFIX = 8
"""The bytes of the first text by which rows are found."""
_SAMPLE = 512
"""Texts by which the numbers of bytes before texts are found."""
_GREATEST_LEAD = 11
"""The most bytes of a number that may be null."""
_GREATEST_FIRST = 4
"""The zigzag form of 2, the greatest status of a manifest entry."""
_PIECE = 2**20
_LARGEST_SMALL = 3
_MOST_ITEMS = 4_096
_MOST_BLOCKS = 8
"""Blocks of one list. Writers create one, or none for an empty list."""
_LAST_SHIFT = 63
"""The shift of the tenth byte of a varint, which contains the last of its 64 bits."""
_OF_ONE_BYTE = np.array([byte >> 1 ^ -(byte & 1) for byte in range(128)], np.int64)
"""The zigzag numbers of a single byte."""


class Lanes:
    """Reads many rows at once: one position per row, which advances as values are read.

    A position past the end stays there: the row start was wrong, or the row is cut short.
    """

    def __init__(self, content: npt.NDArray[np.uint8], size: int, at: Places) -> None:
        self.content = content
        self.size = size
        self.at = at

    def some(self, where: Places) -> "Lanes":
        """Return lanes for some of the rows, in order: new lanes, or these lanes for all rows."""
        return self if len(where) == len(self.at) else Lanes(self.content, self.size, self.at[where])

    def follow(self, where: Places, some: "Lanes") -> None:
        """Advance some of the rows to the positions of lanes from `some`."""
        if some is not self:
            self.at[where] = some.at

    def lose(self, where: npt.NDArray[np.bool_]) -> None:
        """Move the rows with impossible values past the end."""
        if where.any():
            self.at[where] = self.size + 1

    def varint(self) -> Places:
        """Read a zigzag number in every row.

        The next byte is read in all rows, even where the number has ended: this is faster than selecting rows.
        """
        np.minimum(self.at, self.size + 1, out=self.at)
        # Every position is within the padded bytes: `take` can skip the bounds check.
        byte = self.content.take(self.at, mode="clip")
        self.at += 1
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

    def bytes(self, size: int) -> Places:
        """Read a fixed number of bytes in every row. Return their offsets."""
        starts = np.minimum(self.at, self.size + 1)
        self.at = starts + size
        # What lies past the end is of a wrong row, and is not read.
        starts[self.at > self.size] = 0
        return starts

    def slice(self) -> tuple[Places, Places]:
        """Read length-prefixed bytes in every row. Return their offsets and lengths."""
        sizes = self.varint()
        impossible = (sizes < 0) | (sizes > self.size)
        if impossible.any():
            sizes[impossible] = 0
            self.lose(impossible)
        starts = self.at.copy()
        self.at += sizes
        return starts, sizes


def decode(blocks: Sequence[tuple[int, bytes]], shape: Shape, wanted: pa.StructType) -> pa.StructArray | None:
    """Return the rows of blocks of one shape as a struct array, None if the row starts cannot be verified.

    Args:
        blocks: Number of rows and uncompressed bytes, together under 2 GB.
        shape: The shape of each row.
        wanted: The fields to return and their types; fields that the shape lacks are null.
    """
    content = b"".join([*(block for _, block in blocks), bytes(_PADDING)])
    size = len(content) - _PADDING
    padded = np.frombuffer(content, np.uint8)
    bounds = np.cumsum([0, *(len(block) for _, block in blocks)], dtype=np.int64)
    counts = np.array([rows for rows, _ in blocks], np.int64)
    try:
        for starts in _guesses(content, padded, bounds[:-1][counts > 0], shape):
            column, ends = _decoded(padded, size, starts, shape, wanted)
            if not _proven(starts, ends, bounds, counts):
                kept = _chain(starts, ends, size)
                if not _proven(starts[kept], ends[kept], bounds, counts):
                    continue
                column = chosen(column, kept)
            return to_arrow(column, wanted, pa.py_buffer(padded))
    except (Cut, Unproven):
        pass
    return None


def _decoded(
    padded: npt.NDArray[np.uint8], size: int, starts: Places, shape: Shape, wanted: pa.DataType
) -> tuple[Column, Places]:
    lanes = Lanes(padded, size, starts.copy())
    return _column(shape, lanes, wanted), lanes.at


def _guesses(content: bytes, padded: npt.NDArray[np.uint8], firsts: Places, shape: Shape) -> Iterator[Places]:
    """Yield candidates for row starts, the likeliest first."""
    try:
        found = _guess(content, padded, firsts, shape)
    except Unproven:
        yield from _guesses_by_text(content, padded, firsts, shape)
    else:
        yield found


def _guesses_by_text(content: bytes, padded: npt.NDArray[np.uint8], firsts: Places, shape: Shape) -> Iterator[Places]:
    """Yield candidates for row starts: positions from which the fields before the first text end at such a text.

    The first text of every row must begin with the same bytes as that of the first row. In Iceberg's metadata that is a
    path, before which there are only small numbers and ids. How many bytes these take is found from some of the rows;
    if the candidates are not enough, every size is tried.
    """
    before = _before_text(shape)
    if not len(firsts):
        yield firsts
        return
    size = len(content) - _PADDING
    lanes = Lanes(padded, size, firsts[:1].copy())
    for part in before:
        _column(part, lanes, None)
    begins, sizes = lanes.slice()
    prefix = content[int(begins[0]) : int(begins[0]) + min(int(sizes[0]), _TEXT_PREFIX)]
    if len(prefix) < _PREFIX or lanes.at[0] > lanes.size:
        raise Unproven
    hits = _occurrences(padded, prefix)
    # The length of the text takes one byte or two. A byte that another one follows does not end a number.
    of_two = padded[hits - 2] > 0x7F  # noqa: PLR2004
    texts = hits - 1 - of_two
    if not before:
        yield _distinct([firsts, texts], size)
        yield _distinct([firsts, texts, hits - 1], size)
        return
    yield _distinct([firsts, *_likely_starts(texts, before, padded, size)], size)
    leads = range(len(before), _GREATEST_LEAD * len(before) + 1)
    yield _distinct([firsts, *(_leading_to(texts, lead, before, padded, size)[0] for lead in leads)], size)


def _occurrences(padded: npt.NDArray[np.uint8], part: bytes) -> Places:
    """Return where a part of at most eight bytes occurs."""
    words: npt.NDArray[np.uint64] = np.ndarray((len(padded) - _PADDING,), "<u8", padded, strides=(1,))
    wanted = np.uint64(int.from_bytes(part, "little"))
    if len(part) < _TEXT_PREFIX:
        words = words & np.uint64(2 ** (8 * len(part)) - 1)
    return np.flatnonzero(words == wanted)


def _distinct(places: Sequence[Places], size: int) -> Places:
    """Return the distinct positions among these, ascending. Each of the sequences is nearly sorted."""
    together = np.sort(np.concatenate(places), kind="stable")
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
            case Atom("string"):
                return before
            case Atom("int" | "long") as part:
                before.append(part)
            case Union(branches) as part if {*branches} <= {Atom("null"), Atom("int"), Atom("long")}:
                before.append(part)
            case _:
                break
    raise Unproven


def _likely_starts(
    texts: Places, before: Sequence[Shape], padded: npt.NDArray[np.uint8], size: int
) -> Iterator[Places]:
    """Yield the positions from which the fields before a text end at one of these texts.

    Only those numbers of bytes are tried that occur before some of the texts, then before some of those that are left.
    """
    every = np.arange(len(before), _GREATEST_LEAD * len(before) + 1)
    tried: set[int] = set()
    while len(texts):
        some = texts[:: -(-len(texts) // _SAMPLE)]
        starts, ends = _leading_to(np.repeat(some, len(every)), np.tile(every, len(some)), before, padded, size)
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
    texts: Places, leads: Places | int, before: Sequence[Shape], padded: npt.NDArray[np.uint8], size: int
) -> tuple[Places, Places]:
    """Return the positions this many bytes before texts from which the fields before a text end at it.

    Returns the texts, too.
    """
    starts = texts - leads
    # The first number is small, and a union has two branches.
    likely = (starts >= 0) & (padded[starts] <= _GREATEST_FIRST)
    if len(before) > 1 and isinstance(before[1], Union):
        likely &= padded[starts + 1] <= _LARGEST_SMALL
    starts, texts = starts[likely], texts[likely]
    lanes = Lanes(padded, size, starts.copy())
    for part in before:
        _column(part, lanes, None)
    is_there = lanes.at == texts
    return starts[is_there], texts[is_there]


def _guess(content: bytes, padded: npt.NDArray[np.uint8], firsts: Places, shape: Shape) -> Places:
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
        raise Unproven
    head = content[begin : begin + lead]
    prefix = content[begin + lead + 1 : begin + lead + 1 + _PREFIX]
    last = len(content) - _PADDING - lead - _PREFIX - 1
    if last <= 0:
        return firsts
    # In chunks that fit the processor's cache.
    pieces = [np.flatnonzero(padded[at : min(at + _PIECE, last)] == head[0]) + at for at in range(0, last, _PIECE)]
    places = np.concatenate(pieces)
    for index, byte in enumerate(head[1:], 1):
        there = padded[places + index]
        places = places[(there <= _LARGEST_SMALL) | (there == byte)]
    behind = places + lead + 1 + (padded[places + lead] > 0x7F)  # noqa: PLR2004 - lengths take 1 or 2 bytes
    same = np.ones(len(places), np.bool_)
    for index, byte in enumerate(prefix):
        same &= padded[behind + index] == byte
    likeliest = places[same]
    found = _among(firsts, likeliest)
    return likeliest if found.all() else np.sort(np.concatenate([likeliest, firsts[~found]]))


def _among(these: Places, those: Places) -> npt.NDArray[np.bool_]:
    """Return a mask of `these` positions that are among `those`. Both are sorted."""
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
            case Atom("int" | "long"):
                _, at = varint(content, at)
            case Atom("bytes" | "string"):
                if at - begin > _PREFIX or varint(content, at)[0] < _PREFIX:
                    break
                return at - begin
            case _:
                break
    raise Unproven


def _chain(starts: Places, ends: Places, size: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the starts on the chain from the first row: each row starts where the previous one ends.

    None is on it if the chain does not begin with the bytes and end with them.
    """
    places = np.searchsorted(starts, ends)
    follow = np.minimum(places, len(starts) - 1)
    # The chain stops at a row that does not end at a start. The last row must end with the bytes.
    places[(starts[follow] != ends) | (places <= np.arange(len(starts)))] = len(starts)
    after, at = places.tolist(), 0
    kept = np.zeros(len(starts), np.bool_)
    chain: list[int] = []
    while at < len(after):
        chain.append(at)
        at = after[at]
    if chain and starts[0] == 0 and ends[chain[-1]] == size:
        kept[chain] = True
    return kept


def _proven(starts: Places, ends: Places, bounds: Places, counts: Places) -> bool:
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


def _column(shape: Shape, lanes: Lanes, wanted: pa.DataType | None) -> Column:
    """Read a value in every row. Return it if it is requested."""
    rows = len(lanes.at)
    match shape:
        case Atom("null"):
            return Nothing(rows)
        case Atom("int" | "long"):
            return Numbers(lanes.varint(), None)
        case Atom("bytes" | "string"):
            return Slices(*lanes.slice(), None)
        case Record(fields):
            return _record(fields, lanes, wanted)
        case Union(branches):
            return _union(branches, lanes, wanted)
        case Items(item, keyed=False):
            return _items(item, lanes, wanted)
        case _:
            return _of_fixed_size(shape, lanes)


def _of_fixed_size(shape: Shape, lanes: Lanes) -> Column:
    """Read a value whose size does not depend on it."""
    match shape:
        case Atom("boolean"):
            return Numbers((lanes.content.take(lanes.bytes(1), mode="clip") != 0).astype(np.int64), None)
        case Atom("float"):
            return Reals(_reals(lanes, np.dtype("<f4")), None)
        case Atom("double"):
            return Reals(_reals(lanes, np.dtype("<f8")), None)
        case Fixed(size):
            return Slices(lanes.bytes(size), np.full(len(lanes.at), size, np.int64), None)
        case _:
            raise Unproven


def _reals(lanes: Lanes, kind: np.dtype[Any]) -> npt.NDArray[np.float64]:
    starts = lanes.bytes(kind.itemsize)
    parts = lanes.content.take(starts[:, None] + np.arange(kind.itemsize), mode="clip")
    return parts.reshape(-1).view(kind).astype(np.float64)


def _record(fields: Sequence[tuple[str, Shape]], lanes: Lanes, wanted: pa.DataType | None) -> Column:
    requested = {part.name: part.type for part in wanted} if wanted is not None else {}
    columns = {name: _column(part, lanes, requested.get(name)) for name, part in fields}
    return Records({name: columns[name] for name in requested if name in columns}, None, len(lanes.at))


def _union(branches: Sequence[Shape], lanes: Lanes, wanted: pa.DataType | None) -> Column:
    """Read a value that may be null."""
    parts = [index for index, branch in enumerate(branches) if branch != Atom("null")]
    if len(branches) > 2 or len(parts) != 1:  # noqa: PLR2004 - null and one other
        raise Unproven
    chosen = lanes.varint()
    lanes.lose((chosen < 0) | (chosen >= len(branches)))
    valid = chosen == parts[0]
    if valid.all():
        return _column(branches[parts[0]], lanes, wanted)
    where = np.flatnonzero(valid)
    if not len(where):
        return Nothing(len(valid))
    some = lanes.some(where)
    column = _column(branches[parts[0]], some, wanted)
    lanes.follow(where, some)
    return _spread(column, where, valid) if wanted is not None else Nothing(len(valid))


def _spread(column: Column, where: Places, valid: npt.NDArray[np.bool_]) -> Column:
    """Return a column of some of the rows as a column of all rows, null elsewhere."""

    def spread(values: Places) -> Places:
        full = np.zeros(len(valid), np.int64)
        full[where] = values
        return full

    match column:
        case Nothing():
            return Nothing(len(valid))
        case Numbers(values):
            return Numbers(spread(values), valid)
        case Reals(values):
            full = np.zeros(len(valid))
            full[where] = values
            return Reals(full, valid)
        case Slices(starts, sizes):
            # A null row gets an empty slice at the end of the previous one, to keep the order.
            held = np.maximum.accumulate(spread(starts + sizes))
            held[where] = starts
            return Slices(held, spread(sizes), valid)
        case Lists(sizes, items):
            return Lists(spread(sizes), items, valid)
        case Records(fields):
            return Records({n: _spread(part, where, valid) for n, part in fields.items()}, valid, len(valid))


def _items(item: Shape, lanes: Lanes, wanted: pa.DataType | None) -> Column:
    """Read lists of numbers, text or records of them: the first items of all rows, then the second, and so on."""
    if not _is_plain(item):
        raise Unproven
    requested = None if wanted is None else pair_type(wanted) if pa.types.is_map(wanted) else wanted.value_type
    sizes = np.zeros(len(lanes.at), np.int64)
    steps: list[tuple[Places, Places, Column]] = []
    going = np.arange(len(sizes))
    for _ in range(_MOST_BLOCKS):
        counts = _announced(lanes, going)
        left = counts if requested is not None else np.where(_passed(item, lanes, going, counts), 0, counts)
        for step in range(int(left.max(initial=0))):
            rows = going[left > step]
            some = lanes.some(rows)
            column = _column(item, some, requested)
            lanes.follow(rows, some)
            if requested is not None:
                steps.append((rows, sizes[rows] + step, column))
        sizes[going] += counts
        going = going[counts > 0]
    # Longer lists are left to the row-by-row decoder.
    lanes.at[going] = lanes.size + 1
    return Nothing(len(sizes)) if requested is None else Lists(sizes, _transposed(steps, sizes, requested), None)


def _passed(item: Shape, lanes: Lanes, rows: Places, counts: Places) -> npt.NDArray[np.bool_]:
    """Skip lists of small numbers of the most frequent length at once. Return a mask of the rows that were skipped.

    Null counts in statistics are an example: each takes two bytes, the branch of the union and the number.
    """
    passed = np.zeros(len(rows), np.bool_)
    branch, number = None, item
    if isinstance(item, Union):
        branch = next((at for at, part in enumerate(item.branches) if part != Atom("null")), 0)
        number = item.branches[branch]
    if number not in (Atom("int"), Atom("long")) or not len(rows):
        return passed
    most = int(np.bincount(counts).argmax())
    size = most * (1 if branch is None else 2)
    if not size or size > lanes.size:
        return passed
    alike = np.flatnonzero((counts == most) & (lanes.at[rows] + size <= lanes.size))
    items = np.lib.stride_tricks.sliding_window_view(lanes.content, size)[lanes.at[rows[alike]]]
    is_small = (items < 0x80).all(axis=1)  # noqa: PLR2004 - the continuation bit
    if branch is not None:
        is_small &= (items[:, ::2] == branch << 1).all(axis=1)
    passed[alike[is_small]] = True
    lanes.at[rows[passed]] += size
    return passed


def _is_plain(item: Shape) -> bool:
    if isinstance(item, Union):
        return all(isinstance(branch, Atom) for branch in item.branches)
    if isinstance(item, Record):
        return all(not isinstance(part, Record) and _is_plain(part) for _, part in item.fields)
    return isinstance(item, Atom)


def _announced(lanes: Lanes, rows: Places) -> Places:
    """Read the number of items that follow in these rows; 0 where it is impossible."""
    some = lanes.some(rows)
    counts = some.varint()
    sized = np.flatnonzero(counts < 0)
    if len(sized):
        of_size = some.some(sized)
        of_size.varint()
        some.follow(sized, of_size)
        counts = np.abs(counts)
    some.lose((counts < 0) | (counts > _MOST_ITEMS))
    counts[some.at > lanes.size] = 0
    lanes.follow(rows, some)
    return counts


def _transposed(steps: Sequence[tuple[Places, Places, Column]], sizes: Places, wanted: pa.DataType) -> Column:
    """Return the items of all rows, row by row, from steps of rows, positions and items."""
    if pa.types.is_struct(wanted):
        return _transposed_records(steps, sizes, wanted)
    total = int(sizes.sum())
    begins = np.cumsum(sizes) - sizes
    valid = np.zeros(total, np.bool_)
    first = np.zeros(total, np.int64)
    second = np.zeros(total, np.int64)
    for rows, positions, column in steps:
        target = begins[rows] + positions
        match column:
            case Nothing():
                continue
            case Numbers(values, there):
                first[target] = values
            case Slices(starts, lengths, there):
                first[target], second[target] = starts, lengths
            case _:
                raise Unproven
        valid[target] = True if there is None else there
    nulls = None if valid.all() else valid
    if pa.types.is_integer(wanted) or pa.types.is_boolean(wanted):
        return Numbers(first, nulls)
    ends = np.maximum.accumulate(first + second) if total else first
    return Slices(first if nulls is None else np.where(valid, first, ends), second, nulls)


def _transposed_records(
    steps: Sequence[tuple[Places, Places, Column]], sizes: Places, wanted: pa.StructType
) -> Records:
    """Return the records of all rows, row by row, field by field."""
    fields: dict[str, Column] = {}
    for part in wanted:
        parts = [
            (rows, positions, column.fields[part.name])
            for rows, positions, column in steps
            if isinstance(column, Records) and part.name in column.fields
        ]
        fields[part.name] = _transposed(parts, sizes, part.type) if parts else Nothing(int(sizes.sum()))
    return Records(fields, None, int(sizes.sum()))
