"""Paimon schemas: field ids, types, keys and options, from the JSON of a schema file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import orjson

from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.paimon.metadata.data_types import (
    GREATEST_LENGTH,
    DataType,
    Field,
    arrow_field,
    arrow_type,
    parse_fields,
    parse_type,
    spell,
)
from snapshot_explorer.limits import DEFAULT, Limits
from snapshot_explorer.model import Column, TableSchema

__all__ = [
    "GREATEST_LENGTH",
    "DataType",
    "Field",
    "Schema",
    "arrow_field",
    "arrow_type",
    "parse_schema",
    "parse_type",
    "spell",
    "table_schema",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """One schema file."""

    id: int
    """N of `schema-N`."""
    fields: tuple[Field, ...]
    """The columns in order."""
    partition_keys: tuple[str, ...]
    """Names of the partition columns, outermost first."""
    primary_keys: tuple[str, ...]
    """Names of the primary key columns, partition columns included."""
    options: Mapping[str, str]
    """The table's options, with the defaults that its version implies."""
    comment: str | None
    """The table's comment."""

    @property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """The key inside a bucket: the primary key without the partition columns, in primary key order."""
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)

    def field(self, name: str) -> Field:
        """Return the column of that name.

        Raises:
            CorruptTableError: A key or a file names a column that the schema lacks.
        """
        for column in self.fields:
            if column.name == name:
                return column
        raise CorruptTableError(f"schema/schema-{self.id} has no column {name!r}, which the table's metadata names.")

    def flag(self, option: str) -> bool:
        """Return whether a boolean option is on; absent is off."""
        return self.options.get(option, "false").strip().lower() == "true"


def parse_schema(content: bytes, path: str, *, limits: Limits = DEFAULT) -> Schema:
    """Return the schema that a schema file holds.

    Raises:
        CorruptTableError: The file is not a schema; the message names it.
        UnsupportedFeatureError: A column has a type that is not known, named in the message.

    Source: paimon docs, "Schema"; defaults of older versions from paimon TableSchema.fromJson.
    """
    try:
        raw = json_text.document(content, path, limits)
        version = _number(raw, "version", 1)
        options = {str(name): str(value) for name, value in (raw.get("options") or {}).items()}
        if version <= 1:
            options.setdefault("bucket", "1")
        if version <= 2:  # noqa: PLR2004 - the version after which the default became parquet
            options.setdefault("file.format", "orc")
        keys = _names(raw, "primaryKeys")
        columns = parse_fields(raw["fields"])
        if len({column.name for column in columns}) < len(columns):
            raise ValueError("two columns have one name")  # noqa: TRY301 - told with the file's name, like the rest
        return Schema(
            id=_number(raw, "id"),
            fields=tuple(_not_null(column, keys) for column in columns),
            partition_keys=_names(raw, "partitionKeys"),
            primary_keys=keys,
            options=options,
            comment=_comment(raw),
        )
    except (
        orjson.JSONDecodeError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        raise CorruptTableError(
            f"{path} is not a readable Paimon schema ({type(error).__name__}: {error}). "
            "It may have been cut short; compare it with a copy of the table."
        ) from error


def _number(raw: Mapping[str, object], name: str, default: int | None = None) -> int:
    value = raw[name] if default is None else raw.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise TypeError(f"its {name} is {value!r}")
    return value


def _names(raw: Mapping[str, object], name: str) -> tuple[str, ...]:
    found = raw.get(name)
    names = () if found is None else found
    if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names):
        raise TypeError(f"its {name} are no list of names")
    return tuple(names)


def _comment(raw: Mapping[str, object]) -> str | None:
    comment = raw.get("comment")
    if comment is not None and not isinstance(comment, str):
        raise TypeError("its comment is not text")
    return comment


def _not_null(column: Field, primary_keys: Iterable[str]) -> Field:
    """Return the column as NOT NULL if it is in the primary key, whatever the file prints."""
    if column.name not in primary_keys:
        return column
    return replace(column, type=replace(column.type, nullable=False))


def table_schema(schema: Schema) -> TableSchema:
    """Return the schema as the record that all formats share."""
    return TableSchema(
        id=schema.id,
        columns=tuple(
            Column(
                id=column.id,
                name=column.name,
                type=spell(column.type),
                nullable=column.type.nullable,
                comment=column.description,
            )
            for column in schema.fields
        ),
        partition_keys=schema.partition_keys,
        primary_keys=schema.primary_keys,
    )
