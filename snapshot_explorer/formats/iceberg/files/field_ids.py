"""The columns of a data file with their field ids: stored in the file, or assigned by name mapping.

Source: iceberg specification, "Column Projection"; "Parquet", "ORC", "Avro" (Appendix A); `NameMapping`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.files.field_columns import FileField, file_field, has_id
from snapshot_explorer.formats.iceberg import features
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergField
from snapshot_explorer.formats.iceberg.metadata.schema import IcebergSchema

NAME_MAPPING = "schema.name-mapping.default"
_ELEMENTS, _ENTRIES = ("element",), ("key", "value")


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedField:
    """An entry of a name mapping."""

    id: int | None
    """The field id; None for a field that is skipped."""
    names: tuple[str, ...]
    fields: "tuple[MappedField, ...]"
    """Fields in it; of a list `element`, of a map `key` and `value`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdRules:
    """How columns get ids in files without any. Picklable."""

    mapping: tuple[MappedField, ...] | None
    """The table's name mapping; None without one."""
    only_schema: tuple[IcebergField, ...] | None
    """The columns of the table if its schema was never changed; None if it was."""


def id_rules(properties: Mapping[str, str], schemas: Sequence[IcebergSchema]) -> IdRules:
    """Return how columns get ids in files without any."""
    text = properties.get(NAME_MAPPING)
    first = schemas[0].fields if schemas else ()
    is_numbered = [field.id for field in first] == list(range(1, len(first) + 1))
    return IdRules(
        mapping=None if text is None else _parse_mapping(text),
        only_schema=first if is_numbered and all(schema.fields == first for schema in schemas) else None,
    )


def _parse_mapping(text: str) -> tuple[MappedField, ...]:
    try:
        return _map_field(json_text.loads(text, f"The table's property {NAME_MAPPING}"), 0)
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise CorruptTableError(
            f"The table's property {NAME_MAPPING} is not readable ({type(error).__name__}: {error}). It maps the names "
            "of columns in data files to the table's columns; repair it with the engine that writes the table."
        ) from error


def _map_field(raw: Any, depth: int) -> tuple[MappedField, ...]:
    if depth > 100 or not isinstance(raw, list):  # noqa: PLR2004 - deeper than any schema
        raise TypeError(f"{raw!r} is not a list of fields")
    return tuple(
        MappedField(
            id=None if item.get("field-id") is None else int(item["field-id"]),
            names=tuple(str(name) for name in item.get("names", ())),
            fields=_map_field(item.get("fields") or [], depth + 1),
        )
        for item in raw
    )


def file_fields(schema: pa.Schema, rules: IdRules, path: str, *, by_position: bool) -> tuple[FileField, ...]:
    """Return the columns of a data file with their ids.

    A file that stores any id is read by its own ids alone. Otherwise the table's name mapping assigns the ids. Without
    one, the columns of a table whose schema was never changed are found by position (in parquet) and name.

    Args:
        schema: The file's schema, whose fields have the ids as metadata.
        rules: How columns get ids in files without any.
        by_position: Whether Iceberg finds columns without ids by their position.
    """
    fields = tuple(file_field(field) for field in schema)
    if any(has_id(field) for field in fields) or not fields:
        return fields
    if rules.mapping is not None:
        return tuple(_with_mapping(field, rules.mapping) for field in fields)
    if rules.only_schema is None:
        raise refusal(features.FILES_WITHOUT_IDS, path=path)
    return _by_names(fields, rules.only_schema, path, by_position=by_position)


def stores_ids(schema: pa.Schema) -> bool:
    """Return whether a column of a data file has a field id of its own; True for a file without columns."""
    return not schema.names or any(has_id(file_field(field)) for field in schema)


def _with_mapping(field: FileField, mapping: Sequence[MappedField]) -> FileField:
    """Return a field and its nested fields with the ids that the mapping has for their names, compared exactly."""
    mapped = next((item for item in mapping if field.name in item.names), None)
    if mapped is None:
        return replace(field, children=tuple(_with_mapping(child, ()) for child in field.children))
    return replace(
        field, id=mapped.id, children=tuple(_with_mapping(item, mapped.fields) for item in _named_parts(field))
    )


def maps_names(mapping: Sequence[MappedField], fields: Sequence[IcebergField]) -> bool:
    """Return whether a mapping has the name of each of these fields and nested fields for its id."""
    for field in fields:
        item = next((item for item in mapping if field.name in item.names), None)
        if item is None or item.id != field.id or not maps_names(item.fields, field.type.fields):
            return False
    return True


def _named_parts(field: FileField) -> tuple[FileField, ...]:
    """Return the parts of a field. Parts of lists and maps have the names that mappings and schemas use."""
    if pa.types.is_struct(field.type):
        return field.children
    names = _ENTRIES if pa.types.is_map(field.type) else _ELEMENTS
    return tuple(replace(child, name=name) for child, name in zip(field.children, names, strict=False))


def _by_names(
    fields: Sequence[FileField], columns: Sequence[IcebergField], path: str, *, by_position: bool
) -> tuple[FileField, ...]:
    """Return fields with the ids of the table's columns of the same names.

    Source: `ParquetSchemaUtil.addFallbackIds` counts columns of parquet; where these have other names, two rules of
    Iceberg's contradict each other, and the file is refused.
    """
    if by_position:
        for field, column in zip(fields, columns, strict=False):
            if field.name != column.name:
                raise refusal(features.FILES_WITHOUT_IDS, path=path)
    known = {column.name: column for column in columns}
    fields_with_ids = []
    for field in fields:
        match = known.get(field.name)
        parts = () if match is None else match.type.fields
        children = _by_names(_named_parts(field), parts, path, by_position=False)
        fields_with_ids.append(replace(field, id=None if match is None else match.id, children=children))
    return tuple(fields_with_ids)
