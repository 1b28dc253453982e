"""The schema of a version: the newest schema that a commit up to it recorded.

Source: hudi TableSchemaResolver.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import parquet_footers
from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.records import Column, FieldIds, TableSchema
from snapshot_explorer.formats.hudi.metadata.history import HudiSource
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig
from snapshot_explorer.formats.hudi.metadata.types import HudiField, HudiType, parse_fields, type_text
from snapshot_explorer.formats.unread_versions import read_apart

_META = "_hoodie_"
_USERS = "_hoodie_is_deleted"
"""A user's column with the name of one of Hudi's columns."""
_AT_ONCE = 16
_AVRO_SCHEMA = b"parquet.avro.schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSchema:
    """The columns of a version."""

    fields: tuple[HudiField, ...]
    schema_on_read: bool
    """Whether a commit up to the version changed columns by schema on read, which finds them by ids."""


def version_schema(source: HudiSource, version: int | None) -> VersionSchema:
    """Return the columns of a version; for a table without versions the columns it was created with.

    Reads the commit of the version, and earlier ones until one has a schema.
    """
    text, is_on_read = _recorded_schema(source, version)
    if text is None:
        text = source.config.text("hoodie.table.create.schema") or None
    if text is None and version is not None:
        text = _of_file(source, version)
    fields = () if text is None else parse_fields(text, f"the metadata of {source.storage.root}")
    columns = tuple(field for field in fields if not field.name.startswith(_META) or field.name == _USERS)
    return VersionSchema(fields=(*columns, *_dropped_columns(source.config, columns)), schema_on_read=is_on_read)


def _recorded_schema(source: HudiSource, version: int | None) -> tuple[str | None, bool]:
    end = 0 if version is None else bisect_right(source.versions, version)
    size = 1  # nearly all commits record the schema
    while end > 0:
        newest = source.versions[max(0, end - size) : end]
        read = read_apart(source.commits, newest, source.storage)
        commits = {number: commit for _, part in read.parts for number, commit in part.items()}
        for number in reversed(newest):
            if number in read.unread:
                raise read.unread[number]  # it may have recorded another schema than earlier ones
            if commits[number].is_empty:
                source.accept_empty(number)  # it may have recorded another schema than earlier ones
            if commits[number].schema:
                return commits[number].schema, "latest_schema" in commits[number].extra
        end, size = end - len(newest), _AT_ONCE
    return None, False


def has_one_type_per_column(source: HudiSource, fields: Sequence[HudiField]) -> bool:
    """Return whether these columns had the same types in the schemas of all commits, so that all files have them.

    False if commits are not known. Hudi widens floats in its own way, which other readers of the files do not.
    """
    state = source.state
    if state.is_cut or state.unread.errors:
        return False
    commits = source.commits(source.versions)
    types = {field.name: field.type for field in fields}
    for text in {commit.schema for commit in commits.values()} - {None}:
        for field in parse_fields(str(text), "the metadata of a commit"):
            if types.get(field.name, field.type) != field.type:
                return False
    return True


def _of_file(source: HudiSource, version: int) -> str | None:
    """Return the schema in a base file of a version; None if it has none. Reads its footer."""
    files = source.state.at(version, source.storage.root)
    for path in files.filter(pc.invert(files.column("is_log"))).column("path").to_pylist():
        if path.endswith(".parquet"):
            try:
                with source.storage.open(path) as opened:
                    metadata = parquet_footers.open_file(opened).schema_arrow.metadata or {}
            except (pa.ArrowException, OSError) as error:
                resources.check(error, f"{path} could not be read")
                raise CorruptTableError(
                    f"No commit of the table records a schema, and the base file {path} cannot be read: {error}."
                ) from error
            if _AVRO_SCHEMA in metadata:
                return str(metadata[_AVRO_SCHEMA].decode())
    return None


def _dropped_columns(config: TableConfig, columns: Sequence[HudiField]) -> tuple[HudiField, ...]:
    """Return the partition columns that the files do not have, as text, like Hudi on Spark."""
    if not config.drops_partition_columns:
        return ()
    names = {field.name for field in columns}
    return tuple(
        HudiField(name=name, type=HudiType(root="string"), nullable=True)
        for name in config.partition_fields
        if name not in names
    )


def table_schema(config: TableConfig, fields: Sequence[HudiField]) -> TableSchema:
    """Return columns and keys as the schema of a table."""
    names = {field.name for field in fields}
    keys = config.record_keys
    return TableSchema(
        id=None,
        columns=tuple(
            Column(id=None, name=field.name, type=type_text(field.type), nullable=field.nullable, comment=field.comment)
            for field in fields
        ),
        partition_keys=tuple(name for name in config.partition_fields if name in names),
        primary_keys=keys if names.issuperset(keys) else (),
        is_merged=config.is_merge_on_read and bool(keys) and names.issuperset(keys),
    )


def field_ids(field: HudiField) -> FieldIds:
    """Return the names of a column and its nested fields. Hudi identifies columns by name."""
    return FieldIds(id=field.name, parts=_parts(field.type))


def _parts(data_type: HudiType) -> tuple[FieldIds, ...]:
    if data_type.element is not None:
        element = FieldIds(id=None, parts=_parts(data_type.element))
        return (element,) if data_type.root == "array" else (FieldIds(id=None), element)
    return tuple(field_ids(part) for part in data_type.fields)
