"""Equality deletes: rows that are equal to a deleted row in some columns.

Deleted rows of one set of columns are put together, each column's values numbered, and each row as a number of numbers.
Rows of data files are looked up column by column, so that no value is compared in Python.

Source: iceberg specification, "Equality Delete Files"; `StructLikeSet`, `JavaHash`, `Comparators`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.iceberg import features
from snapshot_explorer.formats.iceberg.files.data_files import File, opened, read
from snapshot_explorer.formats.iceberg.files.field_ids import IdRules
from snapshot_explorer.formats.iceberg.metadata.types import IcebergField, arrow_type, is_nested
from snapshot_explorer.storage import Storage

Codes = npt.NDArray[np.int64]
_Hashes = npt.NDArray[np.uint64]
_Keys = Codes | _Hashes

_BATCH_ROWS = 1 << 18
_BLOCK_ROWS = 1 << 16
"""Rows that are hashed at once: intermediate results of more would not fit the processor's cache."""
_MAX_DENSE = 1 << 24
"""The widest range of integers in which each has its own place in a table."""
_WORD = 8
_MIN_FILTER_BITS, _MAX_FILTER_BITS = 16, 26
_LARGEST_BUCKET = 16
"""Hashes in a bucket that are compared one by one."""
_SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)
_HALF, _TWO = np.uint64(32), np.uint64(2)
_BYTE, _IN_BYTE = np.uint64(3), np.uint8(7)
"""Of the number of a bit, how many bits are its place in a byte, and these bits."""
_NAN_32, _NAN_64 = np.int32(0x7FC0_0000), np.int64(0x7FF8_0000_0000_0000)


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualityColumn:
    """A column by which rows are deleted: a column of the table, or a field of a struct in it."""

    path: tuple[IcebergField, ...]
    """The field after the structs that contain it, outermost first."""

    @property
    def column(self) -> IcebergField:
        """The column that is read: the outermost struct with nothing but the field, or the field."""
        return narrowed(self.path)


def narrowed(path: tuple[IcebergField, ...]) -> IcebergField:
    """Return a column with nothing but the field at the end of a path."""
    first, rest = path[0], path[1:]
    if not rest:
        return first
    kind = first.type
    return IcebergField(
        id=first.id,
        name=first.name,
        type=type(kind)(root="struct", fields=(narrowed(rest),)),
        required=first.required,
        initial_default=first.initial_default,
    )


def leaf(values: pa.Array, path: tuple[IcebergField, ...]) -> pa.Array:
    """Return the values of the field at the end of a path; in a null struct it is null."""
    for _ in path[1:]:
        values = pc.struct_field(values, [0])
    return values


def read_equality_deletes(
    storage: Storage, file: File, columns: Sequence[EqualityColumn], rules: IdRules
) -> list[pa.ChunkedArray]:
    """Return the deleted rows of a file: the comparable values of each column.

    Args:
        columns: The columns by which it deletes.
        rules: How its columns get ids where it stores none.
    """
    fields = [column.column for column in columns]
    found: list[list[pa.Array]] = [[] for _ in columns]
    with opened(storage, file, rules) as source:
        for rows in read(source, fields, {}, size=_BATCH_ROWS):
            for column, values, parts in zip(columns, rows.columns, found, strict=True):
                parts.append(comparable(leaf(values, column.path)))
    kinds = [_comparable_type(column.path[-1]) for column in columns]
    return [pa.chunked_array(parts, kind) for parts, kind in zip(found, kinds, strict=True)]


def check_columns(columns: Iterable[EqualityColumn]) -> None:
    """Refuse columns that rows cannot be compared by."""
    for column in columns:
        field = column.path[-1]
        if is_nested(field.type):
            raise CorruptTableError(
                f"An equality delete file compares the column {field.name!r}, which is a {field.type.root}. Only plain "
                "columns can be compared; the manifest may be damaged."
            )
        if field.type.root in ("variant", "unknown"):
            raise refusal(features.EQUALITY_TYPES, column=field.name, type=field.type.root)


def _comparable_type(field: IcebergField) -> pa.DataType:
    return comparable(pa.array([], arrow_type(field.type))).type


def comparable(values: pa.Array) -> pa.Array:
    """Return values of which two are equal if Iceberg's are.

    All NaN are one, and 0.0 and -0.0 are two.

    Source: `JavaHash` and `Comparators`, which compare boxed floats.
    """
    if pa.types.is_floating(values.type):
        is_double = values.type == pa.float64()
        bits = values.view(pa.int64() if is_double else pa.int32())
        nan = pa.scalar(_NAN_64 if is_double else _NAN_32, bits.type)
        return pc.if_else(pc.is_nan(values), nan, bits) if pc.any(pc.is_nan(values)).as_py() else bits
    if pa.types.is_date32(values.type):
        return values.view(pa.int32())
    if pa.types.is_timestamp(values.type) or pa.types.is_time64(values.type):
        return values.view(pa.int64())
    if pa.types.is_decimal128(values.type):
        values = values.view(pa.binary(16))
    return values.cast(pa.binary()) if pa.types.is_fixed_size_binary(values.type) else values


class DeletedRows:
    """The deleted rows of one set of columns, ready to be looked up. Immutable; safe to use from several threads."""

    def __init__(self, contents: Sequence[Sequence[pa.ChunkedArray]], numbers: Sequence[int]) -> None:
        """Number the values of each column, and the pairs of numbers of the columns before and each further one.

        Args:
            contents: The results of `read_equality_deletes`.
            numbers: The sequence number of each, ascending.
        """
        arrays = [
            single_chunk(pa.chunked_array(_chunks(parts), parts[0].type)) for parts in zip(*contents, strict=True)
        ]
        self.size_bytes = 2 * sum(array.nbytes for array in arrays)
        found = [_lookup(array) for array in arrays]
        self._lookups = [lookup for lookup, _ in found]
        self._pairs: list[Codes] = []
        joined = found[0][1]
        for lookup, codes in found[1:]:
            pairs = joined * lookup.size + codes
            self._pairs.append(np.unique(pairs))
            joined = np.searchsorted(self._pairs[-1], pairs)
        self._first = numbers[0]
        sizes = [len(content[0]) for content in contents]
        self._newest = np.zeros(int(joined.max(initial=-1)) + 1, np.int64)
        self._newest[joined] = np.repeat(np.asarray(numbers, np.int64), sizes)  # of equal rows the last, newest, stays

    def contains(self, columns: Sequence[pa.Array], sequence_number: int) -> npt.NDArray[np.bool_]:
        """Return for each row of a data file whether it is deleted.

        Args:
            columns: The comparable values of each column.
            sequence_number: The file's: only deletes with a greater one count.
        """
        found = self._lookups[0].contains(columns[0])
        for lookup, column in zip(self._lookups[1:], columns[1:], strict=True):
            if lookup.is_cheap:
                found &= lookup.contains(column)
        if len(columns) == 1 and sequence_number < self._first:
            return found
        places = np.flatnonzero(found)
        joined = self._lookups[0].codes(columns[0].take(pa.array(places)))
        for lookup, column, pairs in zip(self._lookups[1:], columns[1:], self._pairs, strict=True):
            codes = lookup.codes(column.take(pa.array(places)))
            joined, is_there = _places(pairs, np.where(codes < 0, -1, joined * lookup.size + codes))
            places, joined = places[is_there], joined[is_there]
        found[:] = False
        found[places] = self._newest[joined] > sequence_number
        return found


def _chunks(parts: Sequence[pa.ChunkedArray]) -> list[pa.Array]:
    return [chunk for part in parts for chunk in part.chunks]


def _places(keys: _Keys, values: _Keys) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """Return the place of each value among ascending keys, and whether it is one of them."""
    if not len(keys):
        return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
    places = np.searchsorted(keys, values)
    np.minimum(places, len(keys) - 1, out=places)
    return places, keys[places] == values


def _lookup(values: pa.Array) -> "tuple[_Numbers | _Values, Codes]":
    if pa.types.is_integer(values.type):
        numbers = _Numbers(values)
        return numbers, numbers.codes(values)
    is_text = values.type in (pa.string(), pa.binary())
    if is_text and not values.null_count and _TextHashes(values, both=True).are_distinct():
        return _Texts(values), np.arange(len(values))
    encoded = values.dictionary_encode(null_encoding="encode")
    lookup = _Texts(encoded.dictionary) if is_text else _Values(encoded.dictionary)
    return lookup, encoded.indices.to_numpy().astype(np.int64)


class _Values:
    """Distinct values of any type, numbered by Arrow's hash table."""

    is_cheap = False

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self.size = len(values)

    def codes(self, values: pa.Array) -> Codes:
        """Return the number of each value; -1 for a value that is none of them. Null is a value."""
        found = pc.index_in(values, value_set=self._values, skip_nulls=False)
        return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.int64)

    def contains(self, values: pa.Array) -> npt.NDArray[np.bool_]:
        found = pc.is_in(values, value_set=self._values, skip_nulls=False)
        return np.array(found.to_numpy(zero_copy_only=False), np.bool_)


class _Texts(_Values):
    """Distinct texts or bytes, found by a hash of their length and their last bytes, and their first if these are few.

    Texts that have one of the hashes are compared: short ones by their last and their first bytes, which are all of
    them. Values of which two have one hash are left to Arrow's hash table.
    """

    is_cheap = True

    def __init__(self, values: pa.Array) -> None:
        super().__init__(values)
        valid = np.asarray(self._values.is_valid())
        self._places = np.flatnonzero(valid)
        self._null = int(np.flatnonzero(~valid)[0]) if len(self._places) < len(valid) else -1
        for both in (False, True):
            self._of_both = both
            hashes = _TextHashes(self._values, both=both)
            self._table = _HashTable(hashes(0, self.size)[self._places])
            if self._table.is_distinct:
                break
        words = hashes.words(np.arange(self.size))
        self._words = words if words[0].max(initial=0) <= 2 * _WORD else None

    def codes(self, values: pa.Array) -> Codes:
        """Return the number of each value; -1 for a value that is none of them. Null is a value."""
        if not self._table.is_distinct:
            return super().codes(values)
        rows, numbers, is_null = self._found(values)
        found = np.full(len(values), -1, np.int64)
        found[rows] = numbers
        if is_null is not None:
            found[is_null] = self._null
        return found

    def contains(self, values: pa.Array) -> npt.NDArray[np.bool_]:
        if not self._table.is_distinct:
            return super().contains(values)
        rows, _, is_null = self._found(values)
        found = np.zeros(len(values), np.bool_)
        found[rows] = True
        if is_null is not None:
            found[is_null] = self._null >= 0
        return found

    def _found(self, values: pa.Array) -> tuple[Codes, Codes, npt.NDArray[np.bool_] | None]:
        """Return which of the values are there, their numbers, and which ones are null."""
        hashes = _TextHashes(values, both=self._of_both)
        rows, places = self._table.find(len(values), hashes)
        numbers = self._places[places]
        is_null = np.asarray(values.is_null()) if values.null_count else None
        if is_null is not None:  # its text may be of any length
            is_text = ~is_null[rows]
            rows, numbers = rows[is_text], numbers[is_text]
        if self._words is None:
            same = pc.equal(values.take(pa.array(rows)), self._values.take(pa.array(numbers)))
            is_same = np.asarray(same.to_numpy(zero_copy_only=False), np.bool_)
        else:
            (lengths, last, first), known = hashes.words(rows), self._words
            is_same = lengths == known[0][numbers]
            is_same &= (last == known[1][numbers]) & (first == known[2][numbers])
        return rows[is_same], numbers[is_same], is_null


class _HashTable:
    """Hashes of 64 bits in buckets by their first bits.

    A table says which ones might be there, by a few bits more; another one says it of those that are left.
    """

    def __init__(self, hashes: _Hashes) -> None:
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]
        self.is_distinct = bool(np.all(self._hashes[1:] != self._hashes[:-1]))
        bits = min(_MAX_FILTER_BITS, max(_MIN_FILTER_BITS, len(hashes).bit_length() + 5))
        self._filter_shift, self._shift = np.uint64(64 - bits), np.uint64(64 - bits + 4)
        is_there = np.zeros(1 << bits, np.bool_)
        is_there[self._hashes >> self._filter_shift] = True
        self._filter = np.packbits(is_there, bitorder="little")  # that much less of the processor's cache
        self._second = np.zeros(1 << (bits - 2), np.bool_)
        self._second[self._second_places(self._hashes)] = True
        sizes = np.bincount((self._hashes >> self._shift).view(np.int64), minlength=1 << (bits - 4))
        self._largest = int(sizes.max())
        self._begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)

    def find(self, count: int, hashes: Callable[[int, int], _Hashes]) -> tuple[Codes, Codes]:
        """Return which values have a hash that is there, ascending, and the number of each hash.

        Args:
            hashes: Returns the hashes of the values from one place to another.
        """
        some = [
            self._candidates(hashes, start, min(start + _BLOCK_ROWS, count)) for start in range(0, count, _BLOCK_ROWS)
        ]
        rows = np.concatenate([rows for rows, _ in some]) if some else np.zeros(0, np.int64)
        wanted = np.concatenate([found for _, found in some]) if some else np.zeros(0, np.uint64)
        if self._largest > _LARGEST_BUCKET:
            places, is_there = _places(self._hashes, wanted)
        else:
            places, is_there = self._in_buckets(wanted)
        return rows[is_there], self._order[places[is_there]]

    def _candidates(self, hashes: Callable[[int, int], _Hashes], start: int, end: int) -> tuple[Codes, _Hashes]:
        """Return which values might be contained, and their hashes. Processes blocks so that buffers are reused."""
        found = hashes(start, end)
        bits = found >> self._filter_shift
        places = bits.astype(np.uint8)
        places &= _IN_BYTE
        bits >>= _BYTE
        might_be_there = self._filter.take(bits.view(np.int64))
        might_be_there >>= places
        might_be_there &= 1
        rows = np.flatnonzero(might_be_there.view(np.bool_))
        found = found.take(rows)
        left = np.flatnonzero(self._second.take(self._second_places(found)))
        return rows.take(left) + start, found.take(left)

    def _second_places(self, hashes: _Hashes) -> Codes:
        """Return places by all bits of hashes: of a product alone, the later bits depend on few of the factor's."""
        return (_spread(hashes ^ (hashes >> _HALF)) >> (self._filter_shift + _TWO)).view(np.int64)

    def _in_buckets(self, wanted: _Hashes) -> tuple[Codes, npt.NDArray[np.bool_]]:
        buckets = (wanted >> self._shift).view(np.int64)
        places, ends = (self._begins.take(buckets + side).astype(np.int64) for side in (0, 1))
        is_there = np.zeros(len(wanted), np.bool_)
        left = np.flatnonzero(places < ends)
        while len(left):
            same = self._hashes.take(places[left]) == wanted[left]
            is_there[left[same]] = True
            left = left[~same]
            places[left] += 1
            left = left[places[left] < ends[left]]
        return places, is_there


class _TextHashes:
    """A hash of each text: of its length and its last eight bytes; if of `both`, of its first eight, too."""

    def __init__(self, values: pa.Array, *, both: bool) -> None:
        _, offsets, content = values.buffers()
        places = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
        if content is None or content.size < _WORD:
            content = pa.py_buffer((b"" if content is None else content.to_pybytes()).ljust(_WORD, b"\0"))
        self._starts, self._ends = places[:-1], places[1:]
        self._both = both
        self._content = content
        self._words: _Hashes = np.ndarray((content.size - _WORD + 1,), "<u8", content, strides=(1,))

    def __call__(self, start: int, end: int) -> _Hashes:
        starts, ends = self._starts[start:end], self._ends[start:end]
        lengths = ends - starts
        least, most = (int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0)
        if least == most and least >= _WORD:
            last = self._every(int(starts[0]) + least - _WORD, least, len(lengths)) ^ np.uint64(least)
        else:
            last = self._last(ends, lengths)
            last ^= lengths.astype(np.uint64)
        if self._both:
            last ^= self._first(starts, lengths) * _SPREAD
        last *= _SPREAD
        return last

    def are_distinct(self) -> bool:
        """Return whether no two texts have one hash: then no two are equal."""
        hashes = np.sort(self(0, len(self._starts)))
        return bool(np.all(hashes[1:] != hashes[:-1]))

    def words(self, rows: Codes) -> tuple[npt.NDArray[np.int32], _Hashes, _Hashes]:
        """Return the length, the last and the first eight bytes of some of the texts, which are in order."""
        starts, ends = self._starts[rows], self._ends[rows]
        lengths = ends - starts
        return lengths, self._last(ends, lengths), self._first(starts, lengths)

    def _every(self, start: int, step: int, count: int) -> _Hashes:
        """Return words at a distance, without a place for each."""
        found: _Hashes = np.ndarray((count,), "<u8", self._content, offset=start, strides=(step,))
        return found

    def _last(self, ends: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]) -> _Hashes:
        """Return the last bytes of texts that end at some places. Before a short text there are zeros."""
        places = np.subtract(ends, _WORD, dtype=np.int64)
        short = int(np.searchsorted(ends, _WORD))
        places[:short] = 0
        found = self._words[places]
        found[:short] <<= np.minimum(8 * (_WORD - ends[:short]), 63).astype(np.uint64)
        spare = _spare(lengths)
        if spare is not None:
            found >>= spare
            found[lengths == 0] = 0
        return found

    def _first(self, starts: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]) -> _Hashes:
        """Return the first bytes of texts that begin at some places. After a short text there are zeros."""
        most = len(self._words) - 1
        places = starts.astype(np.int64)
        whole = int(np.searchsorted(starts, most, side="right"))
        places[whole:] = most
        found = self._words[places]
        found[whole:] >>= np.minimum(8 * (starts[whole:] - most), 63).astype(np.uint64)
        spare = _spare(lengths)
        if spare is not None:
            found <<= spare
            found[lengths == 0] = 0
        return found


def _spare(lengths: npt.NDArray[np.int32]) -> _Hashes | None:
    """Return how many bits of the word of each text are of its neighbours; None if all texts are as long as a word."""
    if not len(lengths) or int(lengths.min()) >= _WORD:
        return None
    bits: _Hashes = np.minimum(8 * (_WORD - np.minimum(lengths, _WORD)), 63).astype(np.uint64)
    return bits


class _Numbers:
    """Distinct integers, ascending; null has the last number.

    A table says which integers might be there: of a small range each has its own bit, otherwise many share one by a
    hash, and the integers that are left are looked for.
    """

    is_cheap = True

    def __init__(self, values: pa.Array) -> None:
        self._has_null = values.null_count > 0
        numbers = np.asarray(values.drop_null().to_numpy(zero_copy_only=False), np.int64)
        numbers = np.sort(numbers)
        self._keys = numbers[np.diff(numbers, prepend=numbers[:1] - 1) != 0]  # np.unique hashes, which takes longer
        self.size = len(self._keys) + 1
        least = int(self._keys[0]) if len(self._keys) else 0
        self._before = np.array([least]) - 1  # an array, which may wrap around
        width = int(self._keys[-1]) - least + 1 if len(self._keys) else 1
        self._is_dense = width <= _MAX_DENSE
        if self._is_dense:
            self._table = np.zeros(width + 2, np.bool_)
            self._table[self._keys - self._before] = True
        else:
            self._hashed = _HashTable(_spread(self._keys))

    def codes(self, values: pa.Array) -> Codes:
        """Return the number of each value; -1 for a value that is none of them. Null is a value."""
        numbers, is_null = _numbers(values)
        if not len(self._keys):
            return np.where(is_null & self._has_null, 0, -1)
        places, is_there = _places(self._keys, numbers)
        return np.where(is_null, self.size - 1 if self._has_null else -1, np.where(is_there, places, -1))

    def contains(self, values: pa.Array) -> npt.NDArray[np.bool_]:
        numbers, is_null = _numbers(values)
        found: npt.NDArray[np.bool_]
        if not len(self._keys):
            found = np.zeros(len(numbers), np.bool_)
        elif self._is_dense:
            found = np.empty(len(numbers), np.bool_)
            for start in range(0, len(numbers), _BLOCK_ROWS):
                places = numbers[start : start + _BLOCK_ROWS] - self._before
                # Both ends of the table are false. Of a number far away the difference may wrap around, to one far
                # away.
                self._table.take(places, mode="clip", out=found[start : start + _BLOCK_ROWS])
        else:
            found = np.zeros(len(numbers), np.bool_)
            found[self._hashed.find(len(numbers), lambda start, end: _spread(numbers[start:end]))[0]] = True
        if values.null_count:
            found[is_null] = self._has_null
        return found


def _spread(numbers: _Keys) -> _Hashes:
    return numbers.view(np.uint64) * _SPREAD


def _numbers(values: pa.Array) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """Return values as integers, 0 where they are null, and which ones are null."""
    is_null = np.zeros(len(values), np.bool_)
    if values.null_count:
        is_null = np.asarray(values.is_null())
        values = values.fill_null(0)
    return values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), is_null
