"""The columns in which rows of two versions are compared: by field id, under the names of B, in the wider type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.arrow.nesting import with_entries, with_fields, with_items
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snapshot_explorer.formats import TableVersion
    from snapshot_explorer.model import Column, TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """How the columns of two versions belong together. Picklable."""

    schema: pa.Schema
    """The columns of B, in its names and order; a type is the wider of both versions'."""
    names_a: Mapping[str, str]
    """For each of these columns that A has, its name in A. The others are null in A."""
    only_a: tuple[str, ...]
    """The columns of A that B lacks, which are not compared."""
    primary_key: tuple[str, ...]
    """The primary key, in the names of B; empty where there is none, or where the versions have different ones."""

    def names_in(self, names: Sequence[str], *, of_a: bool) -> list[str]:
        """Return the names under which one version has those of the columns that it has."""
        return [self.names_a[name] for name in names if name in self.names_a] if of_a else list(names)

    def rows(self, batch: pa.RecordBatch, names: Sequence[str], *, of_a: bool) -> pa.RecordBatch:
        """Return rows as one version reads them as rows with these columns, in this order, of `schema`."""
        arrays = []
        for name in names:
            kind, own = self.schema.field(name).type, self.names_a.get(name) if of_a else name
            if own is None:
                arrays.append(pa.nulls(batch.num_rows, kind))
            else:
                arrays.append(widened(batch.column(own), kind, name))
        if not names:
            return batch.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([self.schema.field(name) for name in names]))


def aligned(a: TableVersion, b: TableVersion, columns: Sequence[str] | None = None) -> Aligned:
    """Return how the columns of two versions belong together. Reads nothing but the schemas.

    Columns are the same where their field ids are; where one of the schemas has none, as a Delta table before column
    mapping, where their names are.

    Args:
        a: The version to compare with.
        b: The version whose names are used.
        columns: The columns that are needed, in the names of B; all without it. The types of others do not matter.

    Raises:
        InvalidArgumentError: The versions have no column in common, or `columns` names none of B.
        UnsupportedFeatureError: The types of a column cannot be compared.
    """
    there = a.arrow_schema, b.arrow_schema
    pairs, only_a = _pairs(a.schema, b.schema)
    if not pairs and len(there[0]) and len(there[1]):
        raise InvalidArgumentError(
            f"Versions {a.number} and {b.number} have no column in common, so that their rows cannot be compared. "
            f"Columns of {a.number}: {listed(there[0].names)}. Columns of {b.number}: {listed(there[1].names)}."
        )
    needed = frozenset(there[1].names if columns is None else columns)
    fields = []
    for field in there[1]:
        own = pairs.get(field.name)
        kind: pa.DataType | None = field.type
        if own is not None and field.name in needed:
            kind = wider(there[0].field(own).type, field.type)
        if kind is None:
            raise UnsupportedFeatureError(
                f"The column {field.name!r} is {there[0].field(own).type} at version {a.number} and {field.type} at "
                f"version {b.number}: values of these types cannot be compared. Leave it out: columns=[...]."
            )
        fields.append(pa.field(field.name, kind))
    return Aligned(
        schema=pa.schema(fields), names_a=pairs, only_a=only_a, primary_key=_primary_key(a.schema, b.schema, pairs)
    )


def listed(names: Sequence[str]) -> str:
    """Return names for a message: the first 20, and how many more."""
    shown = ", ".join(names[:20])
    return shown + (f" and {len(names) - 20:,} more" if len(names) > 20 else "")  # noqa: PLR2004 - a line


def _pairs(a: TableSchema, b: TableSchema) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the name in `a` of each column of `b` that `a` has, and the names of those that only `a` has."""
    by_name = any(column.id is None for schema in (a, b) for column in schema.columns)

    def identity(column: Column) -> int | str | None:
        return column.name if by_name else column.id

    names = {identity(column): column.name for column in a.columns}
    found = {column.name: names[identity(column)] for column in b.columns if identity(column) in names}
    kept = frozenset(found.values())
    return found, tuple(column.name for column in a.columns if column.name not in kept)


def _primary_key(a: TableSchema, b: TableSchema, pairs: Mapping[str, str]) -> tuple[str, ...]:
    if frozenset(pairs.get(name) for name in b.primary_keys) != frozenset(a.primary_keys):
        return ()
    return b.primary_keys


_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_UNITS = ("s", "ms", "us", "ns")
_MOST_DIGITS = 38


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return a type that has every value of two types; None if there is none, or their values do not compare."""
    if one == other:
        return other
    if pa.types.is_null(one) or pa.types.is_null(other):
        return other if pa.types.is_null(one) else one
    if pa.types.is_nested(one) or pa.types.is_nested(other):
        return _wider_nested(one, other)
    if one in _INTEGERS and other in _INTEGERS:
        return max(one, other, key=_INTEGERS.index)
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other) and one.tz == other.tz:
        return max(one, other, key=lambda kind: _UNITS.index(kind.unit))
    if pa.types.is_decimal(one) and pa.types.is_decimal(other):
        return _decimal(one.precision - one.scale, other.precision - other.scale, max(one.scale, other.scale))
    return _has(one, other) or _has(other, one)


def _has(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return a type of the kind of `left` that has every value of `right`; None if there is none."""
    small = right in _INTEGERS[:3]
    if pa.types.is_float64(left):
        return left if small or pa.types.is_float32(right) else None
    if pa.types.is_float32(left) and small:
        return left if right in _INTEGERS[:2] else pa.float64()
    if pa.types.is_decimal(left) and right in _INTEGERS:
        return _decimal(left.precision - left.scale, _DIGITS[right], left.scale)
    if pa.types.is_timestamp(left) and left.tz is None and pa.types.is_date32(right):
        return left
    return None


def _decimal(digits: int, more: int, scale: int) -> pa.DataType | None:
    whole = max(digits, more)
    return pa.decimal128(whole + scale, scale) if whole + scale <= _MOST_DIGITS else None


def _wider_nested(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        if [field.name for field in one] != [field.name for field in other]:
            return None
        kinds = [wider(left.type, right.type) for left, right in zip(one, other, strict=True)]
        if None in kinds:
            return None
        return pa.struct(
            [field.with_type(kind).with_nullable(True) for field, kind in zip(other, kinds, strict=True)]  # noqa: FBT003
        )
    if pa.types.is_map(one) and pa.types.is_map(other):
        key, item = wider(one.key_type, other.key_type), wider(one.item_type, other.item_type)
        return None if key is None or item is None else pa.map_(key, pa.field("value", item))
    if pa.types.is_list(one) and pa.types.is_list(other):
        item = wider(one.value_type, other.value_type)
        return None if item is None else pa.list_(pa.field("element", item))
    if pa.types.is_fixed_size_list(one) and pa.types.is_fixed_size_list(other) and one.list_size == other.list_size:
        item = wider(one.value_type, other.value_type)
        return None if item is None else pa.list_(pa.field("element", item), one.list_size)
    return None


def widened(values: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    """Return values in a wider type.

    Raises:
        UnsupportedFeatureError: A value does not fit it, such as a time beyond the range of nanoseconds.
    """
    if values.type == kind:
        return values
    try:
        return _widened(values, kind)
    except pa.ArrowInvalid as error:
        raise UnsupportedFeatureError(
            f"A value of the column {name!r} does not fit {kind}, the wider type of both versions: {error}. Leave the "
            "column out: columns=[...]."
        ) from error


def _widened(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    if pa.types.is_struct(kind):
        children = [_widened(child, field.type) for child, field in zip(values.flatten(), kind, strict=True)]
        return with_fields(values, kind, children)
    if pa.types.is_map(kind):
        return with_entries(values, kind, _widened(values.keys, kind.key_type), _widened(values.items, kind.item_type))
    if pa.types.is_list(kind):
        return with_items(values, kind, _widened(values.values, kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return values.cast(kind)
    return pc.cast(values, kind)
