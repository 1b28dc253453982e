"""Columns of a data file as columns of the table: found by field id at every depth, cast to the table's types.

Source: DuckLake specification 1.0, "Field Identifiers", "Name Mapping"; reference, "Columns and their evolution".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa

from snapshot_explorer.arrow.nesting import as_list, plain, with_entries, with_fields, with_items
from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.formats.ducklake.files.values import cast_texts, conform_leaf, default_value, other_type
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField, arrow_type, type_text
from snapshot_explorer.formats.features import LEAVE_OUT

_FIELD_ID = b"PARQUET:field_id"
ROW_ID, SNAPSHOT_ID = 2147483540, 2147483539
"""The field ids of the row id and the snapshot of a row in data files."""
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedName:
    """An entry of a name mapping: a field of a file without ids, and the id of the column that it is."""

    name: str
    id: int | None
    is_partition: bool
    """Whether the value is in the path of the file, not in the file."""
    children: tuple["MappedName", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumn:
    """A column of a data file, or a part of one, with its id."""

    id: int | None
    name: str
    type: pa.DataType
    children: tuple["FileColumn", ...] = ()


def file_columns(
    schema: pa.Schema, mapping: tuple[MappedName, ...] | None, positions: Sequence[LakeField]
) -> tuple[FileColumn, ...]:
    """Return the columns of a data file with their ids: stored, by name, or by position where there are none.

    Args:
        mapping: The name mapping of the file; None without one.
        positions: The columns of the table in order, for files without ids and mapping.
    """
    if mapping is not None:
        return tuple(_with_names(field, mapping) for field in schema)
    columns = tuple(_column(field) for field in schema)
    if any(_has_id(column) for column in columns):
        return columns
    return tuple(_by_position(column, field) for column, field in zip(columns, positions, strict=False))


def _parts(field: pa.Field) -> Sequence[pa.Field]:
    dtype = field.type
    if pa.types.is_struct(dtype):
        return list(dtype)
    if pa.types.is_map(dtype):
        return (dtype.key_field, dtype.item_field)
    return (dtype.value_field,) if hasattr(dtype, "value_field") else ()


def _column(field: pa.Field) -> FileColumn:
    number = (field.metadata or {}).get(_FIELD_ID)
    return FileColumn(
        id=int(number) if number is not None and number.lstrip(b"-").isdigit() else None,
        name=field.name,
        type=field.type,
        children=tuple(map(_column, _parts(field))),
    )


def _has_id(column: FileColumn) -> bool:
    return column.id is not None or any(map(_has_id, column.children))


def _by_position(column: FileColumn, field: LakeField) -> FileColumn:
    children = tuple(_by_position(child, part) for child, part in zip(column.children, field.children, strict=False))
    return FileColumn(id=field.id, name=column.name, type=column.type, children=children)


def _with_names(field: pa.Field, mapping: Sequence[MappedName]) -> FileColumn:
    """Return a column with the ids of a mapping. Names compare exactly first, then without case."""
    stored = [item for item in mapping if not item.is_partition]
    mapped = next((item for item in stored if item.name == field.name), None) or next(
        (item for item in stored if item.name.lower() == field.name.lower()), None
    )
    return _mapped(field, mapped)


def _mapped(field: pa.Field, mapped: MappedName | None) -> FileColumn:
    parts, below = _parts(field), () if mapped is None else mapped.children
    if pa.types.is_struct(field.type):
        children = tuple(_with_names(part, below) for part in parts)
    elif len(below) == len(parts):  # a list, or a map, whose mapping has keys first
        ordered = sorted(below, key=lambda item: item.name.lower() == "value") if len(parts) > 1 else below
        children = tuple(_mapped(part, item) for part, item in zip(parts, ordered, strict=True))
    else:
        children = tuple(_mapped(part, None) for part in parts)
    return FileColumn(id=None if mapped is None else mapped.id, name=field.name, type=field.type, children=children)


def partition_constants(
    path: str, mapping: tuple[MappedName, ...] | None, fields: Sequence[LakeField]
) -> dict[int, pa.Scalar]:
    """Return the values of columns that an added file has in its path, by column id.

    Source: reference, "Added files and name mapping".
    """
    by_id = {field.id: field for field in fields}
    folders = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    result = {}
    for item in mapping or ():
        field = None if item.id is None else by_id.get(item.id)
        if not item.is_partition or field is None:
            continue
        texts = {name.lower(): text for name, text in folders.items()} | folders
        text = texts.get(item.name, texts.get(item.name.lower()))
        if text is None:
            raise CorruptTableError(
                f"The data file {path} has the column {item.name!r} in its path by its mapping, but the path has no "
                f"folder {item.name}=. The catalog is damaged; compare it with a copy."
            )
        value = None if text == _HIVE_NULL else unquote(text)
        result[field.id] = conform_leaf(cast_texts(pa.array([value], pa.string()), field), field)[0]
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The mapping from the columns of a file to columns of the table."""

    targets: tuple[tuple[LakeField, FileColumn | None], ...]
    """The requested columns in order, each with its column in the file; None if the file lacks it."""
    constants: Mapping[int, pa.Scalar]
    path: str

    @property
    def names(self) -> list[str]:
        """The columns of the file to read, each once."""
        return list(dict.fromkeys(source.name for _, source in self.targets if source is not None))


def projection(
    fields: Sequence[LakeField], columns: Sequence[FileColumn], constants: Mapping[int, pa.Scalar], path: str
) -> Projection:
    """Return the mapping from the columns of a file to requested columns.

    Raises:
        CorruptTableError: Two columns of the file have one id or one name.
    """
    by_id = {column.id: column for column in columns if column.id is not None}
    names = [column.name for column in columns]
    if len(by_id) < sum(column.id is not None for column in columns) or len(set(names)) < len(names):
        raise CorruptTableError(
            f"The data file {path} has two columns with one field id or one name. It may be damaged; compare it with a "
            "copy of the table."
        )
    targets = tuple((field, None if field.id in constants else by_id.get(field.id)) for field in fields)
    return Projection(targets=targets, constants=constants, path=path)


def project(batch: pa.RecordBatch, mapping: Projection) -> list[pa.Array]:
    """Return the requested columns of rows of a file, in the Arrow types of the table."""
    result = []
    for field, source in mapping.targets:
        with _named(field, mapping.path):
            if source is None:
                value = mapping.constants[field.id] if field.id in mapping.constants else default_value(field)
                result.append(
                    pa.repeat(value, batch.num_rows) if value.is_valid else pa.nulls(batch.num_rows, arrow_type(field))
                )
            else:
                result.append(conform(batch.column(source.name), field, source))
    return result


class _named:  # noqa: N801 - a context manager
    """Translates errors of a column into errors that name it and its file."""

    def __init__(self, field: LakeField, path: str) -> None:
        self._field, self._path = field, path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        shown = f"The column {self._field.name!r} of {self._path} cannot be read as {type_text(self._field)}"
        if isinstance(error, UnsupportedFeatureError):
            raise UnsupportedFeatureError(
                Message(f"{shown}: {error} Leave the column out with ", LEAVE_OUT, ".")
            ) from error
        if isinstance(error, CorruptTableError):
            return
        if isinstance(error, pa.ArrowException | ValueError | KeyError | OverflowError):
            resources.check(error, f"{self._path} could not be read")
            raise CorruptTableError(f"{shown}: {error}.") from error


named_in_errors = _named


def conform(values: pa.Array, field: LakeField, source: FileColumn) -> pa.Array:
    """Return values of a file cast to the Arrow type of a column, parts of nested values by their ids."""
    target = arrow_type(field)
    values = plain(values)
    match field.type:
        case "struct":
            if not isinstance(values, pa.StructArray):
                raise other_type(values, field)
            by_id = {child.id: index for index, child in enumerate(source.children) if child.id is not None}
            stored = values.flatten() if values.null_count else [values.field(i) for i in range(values.type.num_fields)]
            children = []
            for child in field.children:
                index = by_id.get(child.id)
                if index is None:
                    value = default_value(child)
                    children.append(
                        pa.repeat(value, len(values)) if value.is_valid else pa.nulls(len(values), arrow_type(child))
                    )
                else:
                    children.append(conform(stored[index], child, source.children[index]))
            return with_fields(values, target, children)
        case "list":
            if isinstance(values, pa.MapArray) or not hasattr(values.type, "value_type"):
                raise other_type(values, field)
            values = as_list(values)
            return with_items(values, target, conform(values.values, field.children[0], source.children[0]))
        case "map":
            if not isinstance(values, pa.MapArray):
                raise other_type(values, field)
            keys, items = (
                conform(part, child, inner)
                for part, child, inner in zip((values.keys, values.items), field.children, source.children, strict=True)
            )
            return with_entries(values, target, keys, items)
    return conform_leaf(values, field)


def columns_like(field: LakeField, name: str) -> FileColumn:
    """Return the column of values that have the parts of a field, in its order, under any names."""
    children = tuple(columns_like(child, child.name) for child in field.children)
    return FileColumn(id=field.id, name=name, type=pa.null(), children=children)
