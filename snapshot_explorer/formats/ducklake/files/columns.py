"""The columns of a data file with their field ids: stored in the file, by name, or by position.

Source: DuckLake specification 1.0, "Field Identifiers", "Name Mapping"; reference, "Columns and their evolution".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

import pyarrow as pa

from snapshot_explorer.arrow.nesting import parts_of
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.ducklake.files.values import cast_texts, conform_leaf, default_value
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField, arrow_type, type_text
from snapshot_explorer.formats.files.field_columns import FieldRules, FileField, file_field, has_id

RULES: FieldRules[LakeField] = FieldRules(
    arrow_type=arrow_type,
    type_text=type_text,
    parts=lambda field: field.children,
    convert=conform_leaf,
    default=default_value,
    readers="DuckDB's own extension",
)
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedName:
    """An entry of a name mapping: a field of a file without ids, and the id of the column that it is."""

    name: str
    id: int | None
    is_partition: bool
    """Whether the value is in the path of the file, not in the file."""
    children: tuple["MappedName", ...] = ()


def file_columns(
    schema: pa.Schema, mapping: tuple[MappedName, ...] | None, positions: Sequence[LakeField]
) -> tuple[FileField, ...]:
    """Return the columns of a data file with their ids: stored, by name, or by position where there are none.

    Args:
        mapping: The name mapping of the file; None without one.
        positions: The columns of the table in order, for files without ids and mapping.
    """
    if mapping is not None:
        return tuple(_with_names(column, mapping) for column in schema)
    columns = tuple(map(file_field, schema))
    if any(map(has_id, columns)):
        return columns
    return tuple(_by_position(column, item) for column, item in zip(columns, positions, strict=False))


def _by_position(column: FileField, item: LakeField) -> FileField:
    children = tuple(_by_position(child, part) for child, part in zip(column.children, item.children, strict=False))
    return replace(column, id=item.id, children=children)


def _with_names(column: pa.Field, mapping: Sequence[MappedName]) -> FileField:
    """Return a column with the ids of a mapping. Names compare exactly first, then without case."""
    names = [(item.name, item) for item in mapping if not item.is_partition]
    folded = {name.lower(): item for name, item in reversed(names)}
    return _mapped(column, dict(reversed(names)).get(column.name) or folded.get(column.name.lower()))


def _mapped(column: pa.Field, mapped: MappedName | None) -> FileField:
    parts, below = parts_of(column.type), () if mapped is None else mapped.children
    if pa.types.is_struct(column.type):
        children = tuple(_with_names(part, below) for part in parts)
    elif len(below) == len(parts):  # a list, or a map, whose mapping has keys first
        ordered = sorted(below, key=lambda item: item.name.lower() == "value") if len(parts) > 1 else below
        children = tuple(map(_mapped, parts, ordered))
    else:
        children = tuple(_mapped(part, None) for part in parts)
    own = None if mapped is None else mapped.id
    return FileField(id=own, name=column.name, type=column.type, children=children)


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


def columns_like(item: LakeField, name: str) -> FileField:
    """Return the column of values that have the parts of a field, in its order, under any names."""
    children = tuple(columns_like(child, child.name) for child in item.children)
    return FileField(id=item.id, name=name, type=pa.null(), children=children)
