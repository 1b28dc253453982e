"""The schemas of a table: columns with ids, as the record that all formats share, and as Arrow."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.records import Column, TableSchema
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.iceberg.metadata.data_types import (
    IcebergField,
    arrow_field,
    parse_fields,
    type_text,
    walk,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergSchema:
    """A schema of a table. Picklable."""

    id: int
    fields: tuple[IcebergField, ...]
    identifier_ids: tuple[int, ...] = ()
    """Ids of the columns that identify a row, as the writer declares; nothing enforces it."""

    def column(self, name: str) -> IcebergField | None:
        """Return the column of that name; None without one."""
        return next((field for field in self.fields if field.name == name), None)

    def path(self, number: int) -> tuple[IcebergField, ...]:
        """Return the structs that contain the field of an id, outermost first, and the field; empty without one.

        Fields in lists and maps are not found: no row has one value of them.
        """
        return _path(self.fields, number)


def _path(fields: tuple[IcebergField, ...], number: int) -> tuple[IcebergField, ...]:
    for field in fields:
        if field.id == number:
            return (field,)
        if field.type.root == "struct" and (path := _path(field.type.fields, number)):
            return (field, *path)
    return ()


def parse_schema(raw: Mapping[str, Any]) -> IcebergSchema:
    """Return a schema from its JSON.

    Source: iceberg specification, "Schemas" (Appendix C); `TableMetadataParser` for tables of format 1 without ids.
    """
    try:
        json_text.check_types(raw, "A schema in the table's metadata file")
        if raw.get("type", "struct") != "struct":
            raise ValueError(f"a table of type {raw['type']!r}")  # noqa: TRY301 - reported like the rest
        fields = parse_fields(raw["fields"])
        ids = [field.id for field in walk(fields)]
        if len(set(ids)) < len(ids):
            raise ValueError("two fields have one id")  # noqa: TRY301 - likewise
        return IcebergSchema(
            id=int(raw.get("schema-id", 0)),
            fields=fields,
            identifier_ids=tuple(int(number) for number in raw.get("identifier-field-ids") or ()),
        )
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CorruptTableError(
            f"A schema in the table's metadata file is not readable ({type(error).__name__}: {error}). The file may be "
            "damaged; compare it with a copy of the table."
        ) from error


def arrow_schema(schema: IcebergSchema) -> pa.Schema:
    """Return the Arrow schema of a table's rows; `data_types.arrow_type` documents the types."""
    return pa.schema([arrow_field(field) for field in schema.fields])


def table_schema(schema: IcebergSchema, partition_ids: Iterable[int] = ()) -> TableSchema:
    """Return the schema as the record that all formats share.

    Args:
        partition_ids: Ids of the columns that the default spec contains untransformed; other columns are left out.
    """
    return TableSchema(
        id=schema.id,
        columns=tuple(
            Column(
                id=field.id,
                name=field.name,
                type=type_text(field.type),
                nullable=not field.required,
                comment=field.doc,
            )
            for field in schema.fields
        ),
        partition_keys=tuple(_names(schema, partition_ids)),
        primary_keys=tuple(_names(schema, schema.identifier_ids)),
    )


def _names(schema: IcebergSchema, ids: Iterable[int]) -> list[str]:
    """Return the names of columns by id, with dots for nested fields; ids without a column are left out."""
    paths = [schema.path(number) for number in dict.fromkeys(ids)]
    return [".".join(field.name for field in path) for path in paths if path]
