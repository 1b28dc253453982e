"""Columns of a data file as columns of the table: found by field id at every depth, cast to the table's types.

Source: DuckLake specification 1.0, "Field Identifiers", "Name Mapping"; reference, "Columns and their evolution".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

import pyarrow as pa

from snapshot_explorer.arrow.nesting import as_list, plain, with_entries, with_fields, with_items
from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.formats.ducklake.files.values import cast_texts, conform_leaf, default_value, other_type
from snapshot_explorer.formats.ducklake.metadata.data_types import NESTED, LakeField, arrow_type, type_text
from snapshot_explorer.formats.features import LEAVE_OUT

_FIELD_ID = b"PARQUET:field_id"
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
        return tuple(_with_names(column, mapping) for column in schema)
    columns = tuple(map(_column, schema))
    if any(map(_has_id, columns)):
        return columns
    return tuple(_by_position(column, item) for column, item in zip(columns, positions, strict=False))


def _parts(column: pa.Field) -> Sequence[pa.Field]:
    dtype = column.type
    if pa.types.is_struct(dtype):
        return list(dtype)
    if pa.types.is_map(dtype):
        return (dtype.key_field, dtype.item_field)
    return (dtype.value_field,) if hasattr(dtype, "value_field") else ()


def _column(column: pa.Field) -> FileColumn:
    number = (column.metadata or {}).get(_FIELD_ID, b"")
    own = int(number) if number.lstrip(b"-").isdigit() else None
    return FileColumn(id=own, name=column.name, type=column.type, children=tuple(map(_column, _parts(column))))


def _has_id(column: FileColumn) -> bool:
    return column.id is not None or any(map(_has_id, column.children))


def _by_position(column: FileColumn, item: LakeField) -> FileColumn:
    children = tuple(_by_position(child, part) for child, part in zip(column.children, item.children, strict=False))
    return replace(column, id=item.id, children=children)


def _with_names(column: pa.Field, mapping: Sequence[MappedName]) -> FileColumn:
    """Return a column with the ids of a mapping. Names compare exactly first, then without case."""
    names = [(item.name, item) for item in mapping if not item.is_partition]
    folded = {name.lower(): item for name, item in reversed(names)}
    return _mapped(column, dict(reversed(names)).get(column.name) or folded.get(column.name.lower()))


def _mapped(column: pa.Field, mapped: MappedName | None) -> FileColumn:
    parts, below = _parts(column), () if mapped is None else mapped.children
    if pa.types.is_struct(column.type):
        children = tuple(_with_names(part, below) for part in parts)
    elif len(below) == len(parts):  # a list, or a map, whose mapping has keys first
        ordered = sorted(below, key=lambda item: item.name.lower() == "value") if len(parts) > 1 else below
        children = tuple(map(_mapped, parts, ordered))
    else:
        children = tuple(_mapped(part, None) for part in parts)
    own = None if mapped is None else mapped.id
    return FileColumn(id=own, name=column.name, type=column.type, children=children)


def partition_constants(
    path: str, mapping: tuple[MappedName, ...] | None, fields: Sequence[LakeField]
) -> dict[int, pa.Scalar]:
    """Return the values of columns that an added file has in its path, by column id.

    Source: reference, "Added files and name mapping".
    """
    by_id = {item.id: item for item in fields}
    folders = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    folded = {name.lower(): text for name, text in folders.items()}
    result = {}
    for mapped in mapping or ():
        item = by_id.get(mapped.id or 0)
        if not mapped.is_partition or item is None:
            continue
        text = folders.get(mapped.name, folded.get(mapped.name.lower()))
        if text is None:
            raise CorruptTableError(
                f"The data file {path} has the column {mapped.name!r} in its path by its mapping, but the path has no "
                f"folder {mapped.name}=. The catalog is damaged; compare it with a copy."
            )
        value = None if text == _HIVE_NULL else unquote(text)
        result[item.id] = conform_leaf(cast_texts(pa.array([value], pa.string()), item), item)[0]
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The mapping from the columns of a file to columns of the table."""

    targets: tuple[tuple[LakeField, FileColumn | None], ...]
    """The requested columns in order, each with its column in the file; None if the file lacks it."""
    constants: Mapping[int, pa.Scalar]
    """The values of columns that the file lacks, by column id; for others their initial default."""
    shown: str
    """The file, for messages."""
    texts: Mapping[str, LakeField] = field(default_factory=dict)
    """Columns of the file that are DuckDB's text, each with the type of the values."""

    @property
    def names(self) -> list[str]:
        """The columns of the file to read, each once."""
        return list(dict.fromkeys(source.name for _, source in self.targets if source is not None))


def projection(
    fields: Sequence[LakeField], columns: Sequence[FileColumn], constants: Mapping[int, pa.Scalar], shown: str
) -> Projection:
    """Return the mapping from the columns of a file to requested columns.

    Args:
        constants: Values of columns, by id, even if the file contains other ones.

    Raises:
        CorruptTableError: Two columns of the file have one id or one name.
    """
    by_id = {column.id: column for column in columns if column.id is not None}
    names = [column.name for column in columns]
    if len(by_id) < sum(column.id is not None for column in columns) or len(set(names)) < len(names):
        raise CorruptTableError(
            f"{shown} has two columns with one field id or one name. It may be damaged; compare it with a copy of the "
            "table."
        )
    targets = tuple((item, None if item.id in constants else by_id.get(item.id)) for item in fields)
    return Projection(targets=targets, constants=constants, shown=shown)


def project(batch: pa.RecordBatch, mapping: Projection) -> list[pa.Array]:
    """Return the requested columns of rows of a file, in the Arrow types of the table."""
    result = []
    for item, source in mapping.targets:
        try:
            if source is None:
                value = mapping.constants[item.id] if item.id in mapping.constants else default_value(item)
                result.append(_repeated(value, item, batch.num_rows))
                continue
            values = batch.column(source.name)
            if source.name in mapping.texts and pa.types.is_string(values.type):
                values = cast_texts(values, mapping.texts[source.name])
            result.append(_conform(values, item, source))
        except UnsupportedFeatureError as error:
            shown = f"The column {item.name!r} of {mapping.shown} cannot be read as {type_text(item)}: {error}"
            raise UnsupportedFeatureError(Message(f"{shown} Leave the column out with ", LEAVE_OUT, ".")) from error
        except CorruptTableError:
            raise
        except (pa.ArrowException, ValueError, KeyError, OverflowError) as error:
            resources.check(error, f"{mapping.shown} could not be read")
            raise CorruptTableError(
                f"The column {item.name!r} of {mapping.shown} cannot be read as {type_text(item)}: {error}."
            ) from error
    return result


def _repeated(value: pa.Scalar, item: LakeField, rows: int) -> pa.Array:
    return pa.repeat(value, rows) if value.is_valid else pa.nulls(rows, arrow_type(item))


def _conform(values: pa.Array, item: LakeField, source: FileColumn) -> pa.Array:
    """Return values of a file cast to the Arrow type of a column, parts of nested values by their ids."""
    if item.type not in NESTED:
        return conform_leaf(values, item)
    target, values = arrow_type(item), plain(values)
    if item.type == "struct" and isinstance(values, pa.StructArray):
        by_id = {child.id: index for index, child in enumerate(source.children) if child.id is not None}
        stored = values.flatten() if values.null_count else [values.field(i) for i in range(values.type.num_fields)]
        children = [
            _conform(stored[by_id[child.id]], child, source.children[by_id[child.id]])
            if child.id in by_id
            else _repeated(default_value(child), child, len(values))
            for child in item.children
        ]
        return with_fields(values, target, children)
    if item.type == "list" and not isinstance(values, pa.MapArray) and hasattr(values.type, "value_type"):
        values = as_list(values)
        return with_items(values, target, _conform(values.values, item.children[0], source.children[0]))
    if item.type == "map" and isinstance(values, pa.MapArray):
        parts = zip((values.keys, values.items), item.children, source.children, strict=True)
        return with_entries(values, target, *(_conform(part, child, inner) for part, child, inner in parts))
    raise other_type(values, item)


def columns_like(item: LakeField, name: str) -> FileColumn:
    """Return the column of values that have the parts of a field, in its order, under any names."""
    children = tuple(columns_like(child, child.name) for child in item.children)
    return FileColumn(id=item.id, name=name, type=pa.null(), children=children)
