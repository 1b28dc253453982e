"""Columns of data files as columns of a table: found by field id at every depth, converted to the table's types.

The formats supply their fields, and how values that are not nested are converted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa

from snapshot_explorer.arrow.nesting import parts_of, plain, with_parts
from snapshot_explorer.core.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.core.records import FieldIds
from snapshot_explorer.formats.corrupt_files import column_named_in_errors
from snapshot_explorer.formats.features import FILES_OF_OTHER_TYPES, refusal

Field = TypeVar("Field", bound=Any)
"""A column of a table or a field in it, with `id` and `name`."""
Constants = Mapping[int, pa.Scalar]
"""The values of columns that are constant in a file, by their ids."""
_KEYS = (b"PARQUET:field_id", b"iceberg.id")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileField:
    """A column of a data file, or a part of one."""

    id: int | None
    name: str
    type: pa.DataType
    """The Arrow type that its reader returns."""
    children: "tuple[FileField, ...]" = ()
    """Fields of a struct; the element of a list; key and value of a map."""


def file_field(field: pa.Field) -> FileField:
    """Return a column of a file with the field ids that the file stores."""
    metadata = field.metadata or {}
    number = next((metadata[key] for key in _KEYS if key in metadata), b"")
    return FileField(
        id=int(number) if number.lstrip(b"-").isdigit() else None,
        name=field.name,
        type=field.type,
        children=tuple(map(file_field, parts_of(field.type))),
    )


def has_id(field: FileField) -> bool:
    """Return whether a column of a file, or a part of it, has a field id."""
    return field.id is not None or any(map(has_id, field.children))


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRules(Generic[Field]):
    """How a format reads the columns of data files."""

    arrow_type: Callable[[Field], pa.DataType]
    type_text: Callable[[Field], str]
    parts: Callable[[Field], Sequence[Field]]
    """Returns the fields in a nested one, as in `FileField.children`; none of another field."""
    convert: Callable[[pa.Array, Field], pa.Array]
    """Converts values of another type that are not nested.

    Raises UnsupportedFeatureError if their type cannot represent the column's, and pyarrow.ArrowException or ValueError
    for a value that is not of the type.
    """
    default: Callable[[Field], pa.Scalar | None]
    """Returns the value of a column that a file lacks; None for nulls."""
    check_absent: Callable[[Field, str], None] = lambda field, shown: None  # noqa: ARG005 - by position
    """Checks that the file may lack a column."""
    readers: str = ""
    """The format's own readers, for messages."""


def field_ids(rules: FieldRules[Field], field: Field) -> FieldIds:
    """Return the ids of a field and of the fields in it; elements, keys and values have none."""
    parts = tuple(field_ids(rules, part) for part in rules.parts(field))
    if not pa.types.is_struct(rules.arrow_type(field)):
        parts = tuple(FieldIds(id=None, parts=part.parts) for part in parts)
    return FieldIds(id=field.id, parts=parts)


@dataclass(frozen=True, slots=True)
class Projection(Generic[Field]):
    """The mapping from the columns of a data file to columns of the table."""

    targets: tuple[tuple[Field, FileField | None], ...]
    """Requested columns in order, each with its column in the file; None if the file lacks it or it is constant."""
    constants: Constants
    shown: str
    """The file, as in "the data file x.parquet"."""
    names: list[str]
    """The columns of the file to read, each once."""
    is_exact: bool
    """Whether the requested columns equal the columns to read, with the same order, names and values."""

    def of(self, constants: Constants, shown: str) -> "Projection[Field]":
        """Return the mapping for another file with the same columns."""
        return Projection(self.targets, constants, shown, self.names, self.is_exact)


def projection(
    rules: FieldRules[Field],
    fields: Sequence[Field],
    stored_fields: Sequence[FileField],
    constants: Constants,
    shown: str,
) -> Projection[Field]:
    """Return the mapping from the columns of a data file to requested columns.

    Args:
        constants: Columns that are constant, even if the file contains other values.
        shown: The file, as in "the data file x.parquet".

    Raises:
        CorruptTableError: Two columns of the file have one id or one name, or it may not lack a column.
    """
    by_id = {field.id: field for field in stored_fields if field.id is not None}
    names = [field.name for field in stored_fields]
    has_one_id = len(by_id) < sum(field.id is not None for field in stored_fields)
    if has_one_id or len(set(names)) < len(names):
        which = "with one field id" if has_one_id else repr(next(name for name in names if names.count(name) > 1))
        raise CorruptTableError(
            f"{shown[:1].upper()}{shown[1:]} has two columns {which}. It may be damaged; compare it with a copy of the "
            "table."
        )
    targets = []
    for field in fields:
        source = None if field.id in constants or _is_null(field, rules) else by_id.get(field.id)
        if source is None and field.id not in constants:
            rules.check_absent(field, shown)
        targets.append((field, source))
    to_read = list(dict.fromkeys(source.name for _, source in targets if source is not None))
    is_exact = len(to_read) == len(targets) and all(
        source is not None and source.name == field.name and is_stored(source.type, rules.arrow_type(field))
        for field, source in targets
    )
    return Projection(tuple(targets), constants, shown, to_read, is_exact)


def _is_null(field: Field, rules: FieldRules[Field]) -> bool:
    return bool(pa.types.is_null(rules.arrow_type(field)))


def is_stored(stored: pa.DataType, target: pa.DataType) -> bool:
    """Return whether values of a file are returned as they are. Nested ones are not: their parts are found by id."""
    return bool(stored == target) and not pa.types.is_nested(target)


def unconverted_columns(mapping: Projection[Field], rules: FieldRules[Field]) -> dict[str, pa.Field]:
    """Return the columns of a file that it has in the type of the table, by their names in the table."""
    return {
        field.name: pa.field(source.name, source.type)
        for field, source in mapping.targets
        if source is not None and source.type == rules.arrow_type(field)
    }


def project(batch: pa.RecordBatch, mapping: Projection[Field], rows: int, rules: FieldRules[Field]) -> list[pa.Array]:
    """Return the requested columns of rows of a data file, in the Arrow types of the table.

    Args:
        batch: Rows with the columns `mapping.names`, and maybe others.
    """
    result = []
    for field, source in mapping.targets:
        with column_named_in_errors(
            field.name,
            rules.type_text(field),
            mapping.shown,
            readers=rules.readers,
            distant_times=pa.types.is_timestamp(rules.arrow_type(field)),
        ):
            result.append(
                _absent(field, mapping.constants, rows, rules)
                if source is None
                else _conform(batch.column(source.name), field, source, mapping, rules)
            )
    return result


def _absent(field: Field, constants: Constants, rows: int, rules: FieldRules[Field]) -> pa.Array:
    """Return a column that is not read from the file: its constant, its default, or nulls."""
    target = rules.arrow_type(field)
    value = constants[field.id] if field.id in constants else rules.default(field)
    if value is None or not value.is_valid:
        return pa.nulls(rows, target)
    # A partition value has the column's current type, which an older schema may have in a narrower form.
    return pa.repeat(value if value.type == target else value.cast(target), rows)


def _conform(
    values: pa.Array, field: Field, source: FileField, mapping: Projection[Field], rules: FieldRules[Field]
) -> pa.Array:
    target = rules.arrow_type(field)
    if is_stored(values.type, target):
        return values
    values, parts = plain(values), rules.parts(field)
    if not parts and not (pa.types.is_struct(target) and not target.num_fields):
        return rules.convert(values, field)
    indices: Mapping[int | None, int] = {child.id: index for index, child in enumerate(source.children)}

    def part(position: int, stored: Sequence[pa.Array]) -> pa.Array:
        child, index = parts[position], position
        if pa.types.is_struct(target):
            if child.id in mapping.constants or child.id not in indices or _is_null(child, rules):
                if child.id not in mapping.constants:
                    rules.check_absent(child, mapping.shown)
                return _absent(child, mapping.constants, len(values), rules)
            index = indices[child.id]
        return _conform(stored[index], child, source.children[index], mapping, rules)

    result = with_parts(values, target, part)
    if result is None:
        raise other_type(values, rules.type_text(field))
    return result


def other_type(values: pa.Array, type_text: str) -> UnsupportedFeatureError:
    """Return the error for values whose type cannot represent the column's."""
    return refusal(FILES_OF_OTHER_TYPES, stored=values.type, type=type_text)
