"""Equality deletes: rows that are equal to a deleted row in some columns.

Deleted rows of the same columns are combined: the values of each column are numbered, and then each row by the numbers
of its values. Rows of data files are looked up column by column, so that no value is compared in Python.

Source: iceberg specification, "Equality Delete Files"; `StructLikeSet`, `JavaHash`, `Comparators`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.iceberg import features
from snapshot_explorer.formats.iceberg.files.data_files import File, open_data_file, read
from snapshot_explorer.formats.iceberg.files.field_ids import IdRules
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergField, arrow_type, is_nested
from snapshot_explorer.formats.spatial import SPATIAL
from snapshot_explorer.storage import Storage

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_BATCH_ROWS = 1 << 18
_BLOCK_ROWS = 1 << 16
"""Rows that are looked up at once: intermediate results of more would not fit the processor's cache."""
_MAX_DENSE = 1 << 24
"""The widest range of integers that is looked up in a table with an element for each."""
_NAN_32, _NAN_64 = np.int32(0x7FC0_0000), np.int64(0x7FF8_0000_0000_0000)


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualityColumn:
    """A column by which rows are deleted: a column of the table, or a field of a struct in it."""

    path: tuple[IcebergField, ...]
    """The field after the structs that contain it, outermost first."""

    @property
    def column(self) -> IcebergField:
        """The column that is read: the outermost struct with nothing but the field, or the field."""
        return narrow_column(self.path)


def narrow_column(path: tuple[IcebergField, ...]) -> IcebergField:
    """Return a column that contains only the field at the end of a path."""
    first, rest = path[0], path[1:]
    if not rest:
        return first
    return replace(first, type=type(first.type)(root="struct", fields=(narrow_column(rest),)))


def leaf(values: pa.Array, path: tuple[IcebergField, ...]) -> pa.Array:
    """Return the values of the field at the end of a path; in a null struct it is null."""
    for _ in path[1:]:
        values = pc.struct_field(values, [0])
    return values


def read_equality_deletes(
    storage: Storage, file: File, columns: Sequence[EqualityColumn], rules: IdRules
) -> list[pa.ChunkedArray]:
    """Return the deleted rows of a file: the comparable values of each column."""
    fields = [column.column for column in columns]
    columns_parts: list[list[pa.Array]] = [[] for _ in columns]
    with open_data_file(storage, file, rules) as source:
        for rows in read(source, fields, {}, size=_BATCH_ROWS):
            for column, values, parts in zip(columns, rows.columns, columns_parts, strict=True):
                parts.append(comparable_values(leaf(values, column.path)))
    dtypes = [comparable_values(pa.array([], arrow_type(column.path[-1].type))).type for column in columns]
    return [pa.chunked_array(parts, dtype) for parts, dtype in zip(columns_parts, dtypes, strict=True)]


def check_columns(columns: Iterable[EqualityColumn]) -> None:
    """Refuse columns by which rows cannot be compared."""
    for column in columns:
        field = column.path[-1]
        if is_nested(field.type):
            raise CorruptTableError(
                f"An equality delete file compares the column {field.name!r}, which is a {field.type.root}. Only plain "
                "columns can be compared; the manifest may be damaged."
            )
        if field.type.root in ("variant", "unknown", *SPATIAL):
            raise refusal(features.EQUALITY_TYPES, column=field.name, type=field.type.root)


def comparable_values(values: pa.Array) -> pa.Array:
    """Return values that are equal if and only if Iceberg's values are.

    All NaN are equal; 0.0 and -0.0 differ.

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
            single_chunk(pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type))
            for parts in zip(*contents, strict=True)
        ]
        self.size_bytes = 2 * sum(array.nbytes for array in arrays)
        lookups = [_lookup(array) for array in arrays]
        self._lookups = [lookup for lookup, _ in lookups]
        self._pairs: list[Codes] = []
        joined = lookups[0][1]
        for lookup, codes in lookups[1:]:
            pairs = joined * lookup.size + codes
            self._pairs.append(np.unique(pairs))
            joined = np.searchsorted(self._pairs[-1], pairs)
        self._first = numbers[0]
        sizes = [len(content[0]) for content in contents]
        self._newest = np.zeros(int(joined.max(initial=-1)) + 1, np.int64)
        # Of equal rows the last one, which is the newest, is kept.
        self._newest[joined] = np.repeat(np.asarray(numbers, np.int64), sizes)

    def contains(self, columns: Sequence[pa.Array], sequence_number: int) -> Mask:
        """Return for each row of a data file whether it is deleted.

        Args:
            columns: The comparable values of each column.
            sequence_number: The file's number: only deletes with a greater number apply.
        """
        result = self._lookups[0].contains(columns[0])
        for lookup, column in zip(self._lookups[1:], columns[1:], strict=True):
            if lookup.is_cheap:
                result &= lookup.contains(column)
        if len(columns) == 1 and sequence_number < self._first:
            return result
        indices = np.flatnonzero(result)
        joined = self._lookups[0].codes(columns[0].take(pa.array(indices)))
        for lookup, column, pairs in zip(self._lookups[1:], columns[1:], self._pairs, strict=True):
            codes = lookup.codes(column.take(pa.array(indices)))
            joined, is_contained = _search(pairs, np.where(codes < 0, -1, joined * lookup.size + codes))
            indices, joined = indices[is_contained], joined[is_contained]
        result[:] = False
        result[indices] = self._newest[joined] > sequence_number
        return result


def _search(keys: Codes, values: Codes) -> tuple[Codes, Mask]:
    """Return the index of each value among ascending keys, and whether it is one of them."""
    if not len(keys):
        return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
    indices = np.searchsorted(keys, values)
    np.minimum(indices, len(keys) - 1, out=indices)
    return indices, keys[indices] == values


def _lookup(values: pa.Array) -> "tuple[_IntegerRange | _DistinctValues, Codes]":
    lookup = _IntegerRange.of(values) if pa.types.is_integer(values.type) else None
    if lookup is not None:
        return lookup, lookup.codes(values)
    encoded = values.dictionary_encode(null_encoding="encode")
    return _DistinctValues(encoded.dictionary), encoded.indices.to_numpy().astype(np.int64)


class _DistinctValues:
    """Distinct values of any type, numbered by Arrow's hash table."""

    is_cheap = False

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self.size = len(values)

    def codes(self, values: pa.Array) -> Codes:
        """Return the number of each value; -1 for any other value. Null is a value, too."""
        indices = pc.index_in(values, value_set=self._values, skip_nulls=False)
        return np.asarray(pc.fill_null(indices, -1).to_numpy(zero_copy_only=False), np.int64)

    def contains(self, values: pa.Array) -> Mask:
        is_contained = pc.is_in(values, value_set=self._values, skip_nulls=False)
        return np.array(is_contained.to_numpy(zero_copy_only=False), np.bool_)


class _IntegerRange:
    """Distinct integers in a small range, ascending; null has the last number."""

    is_cheap = True

    def __init__(self, keys: Codes, *, has_null: bool) -> None:
        self._keys = keys
        self._has_null = has_null
        self.size = len(keys) + 1
        self._before = keys[:1] - 1  # an array, which may wrap around
        self._table = np.zeros(int(keys[-1]) - int(keys[0]) + 3, np.bool_)
        self._table[keys - self._before] = True

    @classmethod
    def of(cls, values: pa.Array) -> "_IntegerRange | None":
        """Return the distinct values; None if their range is too wide for a table of it, or if all are null."""
        numbers = np.sort(np.asarray(values.drop_null().to_numpy(zero_copy_only=False), np.int64))
        if not len(numbers) or int(numbers[-1]) - int(numbers[0]) >= _MAX_DENSE:
            return None
        keys = numbers[np.diff(numbers, prepend=numbers[:1] - 1) != 0]  # np.unique is slower, because it hashes
        return cls(keys, has_null=values.null_count > 0)

    def codes(self, values: pa.Array) -> Codes:
        numbers, is_null = _numbers(values)
        indices, is_contained = _search(self._keys, numbers)
        return np.where(is_null, self.size - 1 if self._has_null else -1, np.where(is_contained, indices, -1))

    def contains(self, values: pa.Array) -> Mask:
        numbers, is_null = _numbers(values)
        is_contained: Mask = np.empty(len(numbers), np.bool_)
        for start in range(0, len(numbers), _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            # The first and the last element of the table are false. The difference to a distant number may wrap
            # around, but only to another distant one.
            self._table.take(numbers[block] - self._before, mode="clip", out=is_contained[block])
        if values.null_count:
            is_contained[is_null] = self._has_null
        return is_contained


def _numbers(values: pa.Array) -> tuple[Codes, Mask]:
    """Return values as integers, with 0 for nulls, and a mask of the nulls."""
    is_null = np.zeros(len(values), np.bool_)
    if values.null_count:
        is_null = np.asarray(values.is_null())
        values = values.fill_null(0)
    return values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), is_null
