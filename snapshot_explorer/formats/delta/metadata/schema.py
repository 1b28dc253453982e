"""The schema of a Delta table: its columns, partition columns and column mapping, from protocol and metadata."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import orjson
import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.records import Column, TableSchema
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.delta import features
from snapshot_explorer.formats.delta.metadata.data_types import (
    DeltaField,
    Mode,
    arrow_field,
    collation_of,
    parse_fields,
    type_text,
)
from snapshot_explorer.formats.delta.metadata.records import Metadata
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.settings import parse_keyword

_MODES = ("none", "name", "id")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaSchema:
    """The columns of a table, and their names in data files. Picklable."""

    fields: tuple[DeltaField, ...]
    partition_columns: tuple[str, ...]
    """Names of the partition columns, outermost first."""
    mode: Mode
    max_id: int | None = None
    """The highest id that a column ever had; None if the table does not contain it."""

    def __hash__(self) -> int:
        # Every split has a schema in its identity: a hash of all fields would take longer than all the rest.
        return hash((len(self.fields), self.partition_columns, self.mode, self.max_id))

    def field(self, name: str) -> DeltaField:
        """Return the column of that name."""
        for field in self.fields:
            if field.name == name:
                return field
        raise CorruptTableError(
            f"The metaData action refers to the column {name!r}, which its schemaString lacks. The log is damaged; "
            "compare it with a copy of the table."
        )

    @property
    def partition_fields(self) -> tuple[DeltaField, ...]:
        """The partition columns."""
        return tuple(self.field(name) for name in self.partition_columns)

    def with_columns(self, fields: Sequence[DeltaField]) -> "DeltaSchema":
        """Return the schema with more columns, which data files store under their own names."""
        return replace(self, fields=(*self.fields, *fields))


def schema_of(metadata: Metadata) -> DeltaSchema:
    """Return the schema that a metaData action sets.

    Source: delta PROTOCOL.md, "Schema Serialization Format", "Column Mapping".
    """
    mode = mapping_mode(metadata)
    schema = DeltaSchema(
        fields=_fields(metadata.schema_json, mode),
        partition_columns=metadata.partition_columns,
        mode=mode,
        max_id=_max_id(metadata),
    )
    for name in schema.partition_columns:
        schema.field(name)
    return schema


def mapping_mode(metadata: Metadata) -> Mode:
    """Return how columns are found in data files: by the table's property, regardless of its protocol.

    Spark's readers do the same for every protocol that they read.

    Source: delta Metadata.columnMappingMode.
    """
    mode = parse_keyword(metadata.configuration, "delta.columnMapping.mode", "none")
    if mode not in _MODES:
        raise refusal(features.COLUMN_MAPPING_MODES, mode=mode)
    return cast("Mode", mode)


def _max_id(metadata: Metadata) -> int | None:
    try:
        return int(metadata.configuration["delta.columnMapping.maxColumnId"])
    except (KeyError, ValueError):
        return None


_SCHEMA = "The schema in the table's metaData action"


@lru_cache(maxsize=8)
def _fields(text: str | None, mode: Mode) -> tuple[DeltaField, ...]:
    if text is None:
        return ()
    try:
        raw = json_text.loads(text, _SCHEMA)
        json_text.check_types(raw, _SCHEMA)
        if raw["type"] != "struct":
            raise ValueError(f"a table of type {raw['type']!r}")  # noqa: TRY301 - reported like the others
        return parse_fields(raw["fields"], mode)
    except (orjson.JSONDecodeError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CorruptTableError(
            f"{_SCHEMA} is not readable ({type(error).__name__}: {error}). The log may "
            "have been cut short; compare it with a copy of the table."
        ) from error


def arrow_schema(metadata: Metadata) -> pa.Schema:
    """Return the Arrow schema of a table's rows; see `data_types.arrow_type` for the types."""
    return pa.schema([arrow_field(field) for field in schema_of(metadata).fields])


_COMPUTED = ("delta.generationExpression", "delta.identity.")


def computed_columns(metadata: Metadata) -> tuple[str, ...]:
    """Return the generated and identity columns.

    Source: delta PROTOCOL.md, "Generated Columns", "Identity Columns".
    """
    return tuple(
        field["name"]
        for field in orjson.loads(metadata.schema_json or '{"fields": []}')["fields"]
        if any(key.startswith(_COMPUTED) for key in field.get("metadata", {}))
    )


def table_schema(metadata: Metadata) -> TableSchema:
    """Return the schema as the record that all formats share. Its ids are the column mapping ids."""
    schema = schema_of(metadata)
    return TableSchema(
        id=None,
        columns=_columns(metadata.schema_json, schema.mode),
        partition_keys=schema.partition_columns,
        primary_keys=(),
    )


@lru_cache(maxsize=8)
def _columns(text: str | None, mode: Mode) -> tuple[Column, ...]:
    return tuple(
        Column(
            id=field.id,
            name=field.name,
            type=_type_with_collation(field),
            nullable=field.nullable,
            comment=field.comment,
        )
        for field in _fields(text, mode)
    )


def _type_with_collation(field: DeltaField) -> str:
    """Return the type of a column as Spark shows it, such as `string collate UTF8_LCASE`."""
    shown, collation = field.declared or type_text(field.type), collation_of(field)
    return shown if collation is None else f"{shown} collate {collation.rpartition('.')[2]}"
