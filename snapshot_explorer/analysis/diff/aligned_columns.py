"""The columns in which rows of two versions are compared: by field id, under the names of B, in the wider type."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.nesting import with_entries, with_fields, with_items
from snapshot_explorer.core.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import FieldIds, TableSchema
from snapshot_explorer.core.text import list_names
from snapshot_explorer.engines.conditions import unknown_column
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.formats.features import LEAVE_OUT


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedColumns:
    """The mapping between the columns of two versions. Picklable."""

    schema: pa.Schema
    """The columns of B, with their names and order; each type is the wider one of both versions."""
    names_a: Mapping[str, str]
    """For each of these columns that A has, its name in A. The others are null in A."""
    only_a: tuple[str, ...]
    """The columns of A that B lacks, which are not compared."""
    ids_a: Mapping[str, FieldIds]
    """The field ids of each column of A, under its name there."""
    ids_b: Mapping[str, FieldIds]
    primary_key: tuple[str, ...]
    """The primary key, in the names of B; empty without a key, or if the versions have different keys."""
    leave_out: Hint = LEAVE_OUT
    """The argument that leaves a column out, for messages."""

    def names_in(self, names: Sequence[str], *, of_a: bool) -> list[str]:
        """Return the names of the columns in one version, without columns that it lacks."""
        return [self.names_a[name] for name in names if name in self.names_a] if of_a else list(names)

    def rows(self, batch: pa.RecordBatch, names: Sequence[str], *, of_a: bool) -> pa.RecordBatch:
        """Return rows of one version with these columns of `schema`, in this order."""
        if not names:
            return batch.select([])
        arrays, fields = [], [self.schema.field(name) for name in names]
        for name, field in zip(names, fields, strict=True):
            own = self.names_a.get(name) if of_a else name
            if own is None:
                arrays.append(pa.nulls(batch.num_rows, field.type))
            else:
                ids = self.ids_a[own] if of_a else self.ids_b[name]
                arrays.append(self._widened(batch.column(own), field.type, name, ids))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _widened(self, values: pa.Array, dtype: pa.DataType, name: str, ids: FieldIds) -> pa.Array:
        return widen(values, dtype, name, ids, self.ids_b[name], leave_out=self.leave_out)


def align_columns(a: TableVersion, b: TableVersion, columns: Sequence[str] | None = None) -> AlignedColumns:
    """Return the mapping between the columns of two versions. Reads only the schemas.

    Columns match by field id; in Delta by their names in data files, which column mapping keeps in a rename.

    Args:
        columns: The columns that are needed, with their names in B; by default all. The types of others do not matter.
    """
    schemas = a.arrow_schema, b.arrow_schema
    pairs, only_a = _pairs(a, b)
    if not pairs and len(schemas[0]) and len(schemas[1]):
        raise InvalidArgumentError(
            f"Versions {a.number} and {b.number} have no column in common, so that their rows cannot be compared. "
            f"Columns of {a.number}: {list_names(schemas[0].names)}. "
            f"Columns of {b.number}: {list_names(schemas[1].names)}."
        )
    ids_a, ids_b = a.field_ids, b.field_ids
    needed = frozenset(schemas[1].names if columns is None else columns)
    fields = []
    for field in schemas[1]:
        own = pairs.get(field.name)
        dtype: pa.DataType | None = field.type
        if own is not None and field.name in needed:
            dtype = wider_type(schemas[0].field(own).type, field.type, ids_a[own], ids_b[field.name])
        if dtype is None:
            raise UnsupportedFeatureError(
                Message(
                    f"The column {field.name!r} is {schemas[0].field(own).type} at version {a.number} and {field.type} "
                    f"at version {b.number}: values of these types cannot be compared. Leave it out: ",
                    LEAVE_OUT,
                    ".",
                )
            )
        if own is not None and field.name in needed and (other := differing_references(schemas[0].field(own), field)):
            raise UnsupportedFeatureError(
                Message(
                    f"The places in the column {field.name!r} have {other[0]} at version {a.number} and {other[1]} at "
                    f"version {b.number}: they cannot be compared. Leave the column out: ",
                    LEAVE_OUT,
                    ".",
                )
            )
        fields.append(pa.field(field.name, dtype))
    return AlignedColumns(
        schema=pa.schema(fields),
        names_a=pairs,
        only_a=only_a,
        ids_a=ids_a,
        ids_b=ids_b,
        primary_key=_primary_key(a.schema, b.schema, pairs),
    )


def differing_references(left: pa.Field, right: pa.Field) -> tuple[str, str] | None:
    """Return the coordinate reference systems and edges of the places in two columns if they differ, else None.

    Then equal bytes are different places.
    """
    references, others = _references(left, ""), _references(right, "")
    return next(
        ((references[at], others[at]) for at in references if at in others and references[at] != others[at]), None
    )


def _references(field: pa.Field, at: str) -> dict[str, str]:
    """Return the coordinate reference system and the edges of each part of a column that has places."""
    dtype, metadata = field.type, field.metadata or {}
    if b"crs" in metadata:
        return {
            at: " and ".join(
                f"{key} {metadata[key.encode()].decode()}" for key in ("crs", "edges") if key.encode() in metadata
            )
        }
    result: dict[str, str] = {}
    for index in range(dtype.num_fields):
        part = dtype.field(index)
        result |= _references(part, f"{at}.{part.name if pa.types.is_struct(dtype) else index}")
    return result


def check_names(names: Sequence[str] | str | None, known: Sequence[str], argument: str) -> tuple[str, ...] | None:
    """Return the names in an argument, each once and each a column; None if the argument was not passed."""
    if names is None:
        return None
    if isinstance(names, str):
        raise InvalidArgumentError(f"{argument} is one text, {names!r}. Give a list of names: [{names!r}].")
    if not isinstance(names, Iterable):
        raise InvalidArgumentError(f"{argument} must be a list of names, got {names!r}.")
    for name in names:
        if name not in known:
            raise unknown_column(str(name), known, where=f" in {argument}")
    if argument == "columns" and not names:
        raise InvalidArgumentError("columns names no column. Name the columns to compare, or leave it out for all.")
    return tuple(dict.fromkeys(names))


def _pairs(a: TableVersion, b: TableVersion) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the name in `a` of each column of `b` that `a` has, and the names of columns that only `a` has."""
    ids_a, ids_b = a.field_ids, b.field_ids
    older, newer = (a, b) if (a.number or 0) <= (b.number or 0) else (b, a)
    if older.schema.has_ids and not newer.schema.has_ids:
        # Column mapping was removed, which wrote all files again under the names that users see.
        ids_a, ids_b = ({name: FieldIds(id=name) for name in ids} for ids in (ids_a, ids_b))
    names = {ids.id: name for name, ids in ids_a.items()}
    result = {name: names[ids.id] for name, ids in ids_b.items() if ids.id in names}
    kept = frozenset(result.values())
    return result, tuple(name for name in ids_a if name not in kept)


def _primary_key(a: TableSchema, b: TableSchema, pairs: Mapping[str, str]) -> tuple[str, ...]:
    if frozenset(pairs.get(name) for name in b.primary_keys) != frozenset(a.primary_keys):
        return ()
    return b.primary_keys


_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_UNITS = ("s", "ms", "us", "ns")
_MAX_DIGITS = 38


_NO_IDS = FieldIds(id=None)


def wider_type(
    left: pa.DataType,
    other: pa.DataType,
    ids: FieldIds = _NO_IDS,
    other_ids: FieldIds = _NO_IDS,
    *,
    across_tables: bool = False,
) -> pa.DataType | None:
    """Return a type that has every value of two types; None if there is none, or their values are not comparable.

    A struct gets the fields of `other`, matched with the fields of `left` by id, or by name without ids.

    Args:
        across_tables: Whether the columns are of two tables. Then structs must have fields of the same names, and types
            in which formats store the same values differently are compared as well: see `_across_tables`.
    """
    if left == other and ids.parts == other_ids.parts:
        return other
    if pa.types.is_null(left) or pa.types.is_null(other):
        return other if pa.types.is_null(left) else left
    if pa.types.is_nested(left) or pa.types.is_nested(other):
        return _wider_nested(left, other, ids, other_ids, across_tables=across_tables)
    if left in _INTEGERS and other in _INTEGERS:
        return max(left, other, key=_INTEGERS.index)
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(other) and left.tz == other.tz:
        return max(left, other, key=lambda dtype: _UNITS.index(dtype.unit))
    if pa.types.is_decimal(left) and pa.types.is_decimal(other):
        whole = max(left.precision - left.scale, other.precision - other.scale)
        return _decimal(whole, max(left.scale, other.scale), cut=across_tables)
    dtype = _has(left, other) or _has(other, left)
    return _across_tables(left, other) if dtype is None and across_tables else dtype


def _has(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return a type of the kind of `left` that has every value of `right`, or None."""
    small = right in _INTEGERS[:3]
    if pa.types.is_float64(left):
        return left if small or pa.types.is_float32(right) else None
    if pa.types.is_float32(left) and small:
        return left if right in _INTEGERS[:2] else pa.float64()
    if pa.types.is_decimal(left) and right in _INTEGERS:
        return _decimal(max(left.precision - left.scale, _DIGITS[right]), left.scale)
    if pa.types.is_timestamp(left) and left.tz is None and pa.types.is_date32(right):
        return left
    return None


def _across_tables(left: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type for types in which formats store the same values; None if they do not.

    A timestamp without a zone is compared as UTC. A text is compared with binary by its bytes in UTF-8. Values outside
    of the common range are read as well: a value that does not fit is an error.
    """
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(other):
        return pa.timestamp(max(left.unit, other.unit, key=_UNITS.index), "UTC")
    if pa.types.is_time(left) and pa.types.is_time(other):
        unit = max(left.unit, other.unit, key=_UNITS.index)
        return pa.time64(unit) if unit in _UNITS[2:] else pa.time32(unit)
    if pa.types.is_decimal(left) or pa.types.is_decimal(other):
        decimal, number = (left, other) if pa.types.is_decimal(left) else (other, left)
        return pa.decimal128(_MAX_DIGITS, decimal.scale) if number in _INTEGERS else None
    texts = [pa.types.is_string(dtype) or pa.types.is_large_string(dtype) for dtype in (left, other)]
    if all(texts):
        return pa.large_string()
    if not all(is_text or _is_binary(dtype) for dtype, is_text in zip((left, other), texts, strict=True)):
        return None
    is_large = any(pa.types.is_large_string(dtype) or pa.types.is_large_binary(dtype) for dtype in (left, other))
    return pa.large_binary() if is_large else pa.binary()


def _is_binary(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype) or pa.types.is_fixed_size_binary(dtype))


def _decimal(whole: int, scale: int, *, cut: bool = False) -> pa.DataType | None:
    """Return the decimal with these digits before and after the point; None if they are more than 38.

    With `cut`, returns a decimal with fewer digits before the point, into which not every value fits.
    """
    fits = whole + scale <= _MAX_DIGITS
    return pa.decimal128(min(whole + scale, _MAX_DIGITS), scale) if fits or cut else None


def _part(ids: FieldIds, index: int) -> FieldIds:
    return ids.parts[index] if index < len(ids.parts) else _NO_IDS


def _fields_of(dtype: pa.StructType, ids: FieldIds, target: pa.StructType, target_ids: FieldIds) -> list[int | None]:
    """Return for each field of the target its place in a struct; None if the struct lacks it."""
    numbers = [_part(ids, index).id for index in range(dtype.num_fields)]
    target_numbers = [_part(target_ids, index).id for index in range(target.num_fields)]
    if None in numbers or None in target_numbers:
        indices = {field.name: index for index, field in enumerate(dtype)}
        return [indices.get(field.name) for field in target]
    known = {number: index for index, number in enumerate(numbers)}
    return [known.get(number) for number in target_numbers]


def _wider_nested(
    first: pa.DataType, other: pa.DataType, ids: FieldIds, other_ids: FieldIds, *, across_tables: bool
) -> pa.DataType | None:
    def wider_part(left: pa.DataType, right: pa.DataType, index: int) -> pa.DataType | None:
        return wider_type(left, right, _part(ids, index), _part(other_ids, index), across_tables=across_tables)

    if pa.types.is_struct(first) and pa.types.is_struct(other):
        return _wider_struct(first, other, ids, other_ids, across_tables=across_tables)
    if pa.types.is_map(first) and pa.types.is_map(other):
        key, item = wider_part(first.key_type, other.key_type, 0), wider_part(first.item_type, other.item_type, 1)
        return None if key is None or item is None else pa.map_(key, pa.field("value", item))
    sizes = [dtype.list_size if pa.types.is_fixed_size_list(dtype) else -1 for dtype in (first, other)]
    lists = all(pa.types.is_list(dtype) or pa.types.is_fixed_size_list(dtype) for dtype in (first, other))
    if not lists or sizes[0] != sizes[1]:
        return None
    item = wider_part(first.value_type, other.value_type, 0)
    return None if item is None else pa.list_(pa.field("element", item), sizes[0])


def _wider_struct(
    left: pa.StructType, other: pa.StructType, ids: FieldIds, other_ids: FieldIds, *, across_tables: bool
) -> pa.StructType | None:
    fields = []
    indices = _fields_of(left, ids, other, other_ids)
    if all(index is None for index in indices) or (across_tables and set(indices) != set(range(left.num_fields))):
        return None
    for number, (field, index) in enumerate(zip(other, indices, strict=True)):
        dtype: pa.DataType | None = field.type
        if index is not None:
            before, after = _part(ids, index), _part(other_ids, number)
            dtype = wider_type(left.field(index).type, field.type, before, after, across_tables=across_tables)
        if dtype is None:
            return None
        fields.append(pa.field(field.name, dtype, metadata=field.metadata))
    return pa.struct(fields)


def widen(
    values: pa.Array,
    dtype: pa.DataType,
    name: str,
    ids: FieldIds,
    target_ids: FieldIds,
    *,
    leave_out: Hint = LEAVE_OUT,
) -> pa.Array:
    """Return values in a wider type.

    Args:
        dtype: The type from `wider_type`.
        leave_out: The argument that leaves a column out, for the message.
    """
    try:
        return _widened(values, dtype, ids, target_ids)
    except pa.ArrowInvalid as error:
        raise UnsupportedFeatureError(
            Message(
                f"A value of the column {name!r} does not fit {dtype}, the wider type of both versions: {error}. Leave "
                "the column out: ",
                leave_out,
                ".",
            )
        ) from error


def _widened(values: pa.Array, dtype: pa.DataType, ids: FieldIds, target_ids: FieldIds) -> pa.Array:
    if values.type == dtype and ids.parts == target_ids.parts:
        return values
    if pa.types.is_struct(dtype):
        return _widened_struct(values, dtype, ids, target_ids)
    if pa.types.is_map(dtype):
        keys = _widened(values.keys, dtype.key_type, _part(ids, 0), _part(target_ids, 0))
        return with_entries(
            values, dtype, keys, _widened(values.items, dtype.item_type, _part(ids, 1), _part(target_ids, 1))
        )
    if pa.types.is_list(dtype):
        return with_items(values, dtype, _widened(values.values, dtype.value_type, _part(ids, 0), _part(target_ids, 0)))
    return values if values.type == dtype else pc.cast(values, dtype)


def _widened_struct(values: pa.StructArray, dtype: pa.StructType, ids: FieldIds, target_ids: FieldIds) -> pa.Array:
    children = []
    parts = values.flatten()
    indices = _fields_of(values.type, ids, dtype, target_ids)
    for number, (field, index) in enumerate(zip(dtype, indices, strict=True)):
        if index is None:
            children.append(pa.nulls(len(values), field.type))
        else:
            children.append(_widened(parts[index], field.type, _part(ids, index), _part(target_ids, number)))
    return with_fields(values, dtype, children)
