"""Check that this package reads a protocol and its reader features; refuse others by name.

Source: delta PROTOCOL.md, "Table Features", "Requirements for Readers".
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.delta import features
from snapshot_explorer.formats.delta.metadata.data_types import (
    DeltaDataType,
    DeltaField,
    is_allowed,
    is_known,
    parts,
    type_text,
)
from snapshot_explorer.formats.delta.metadata.records import Metadata, Protocol
from snapshot_explorer.formats.delta.metadata.schema import DeltaSchema, schema_of
from snapshot_explorer.formats.features import Feature, refusal

_KNOWN: Mapping[str, Feature] = MappingProxyType({feature.keyword: feature for feature in features.READER_FEATURES})

_VERSIONS = (1, 2, 3)


def check_readable(protocol: Protocol, metadata: Metadata) -> DeltaSchema:
    """Return the schema under which the rows of a version are read."""
    _check_protocol(protocol)
    if metadata.provider.lower() != "parquet":
        raise refusal(features.OTHER_FILE_FORMATS, provider=metadata.provider)
    schema = schema_of(metadata)
    _check_mapping(protocol, schema)
    _check_names(schema)
    for name, field in _walk(schema.fields, ""):
        if not is_known(field.type):
            raise refusal(features.UNKNOWN_TYPES, column=name, type=type_text(field.type))
        _check_changes(name, field)
        if field.id is None and schema.mode == "id":
            raise CorruptTableError(
                f"The column {name!r} has no id, which is needed to read data files (delta.columnMapping.mode). "
                "The log is damaged; compare it with a copy of the table."
            )
    return schema


def _check_protocol(protocol: Protocol) -> None:
    version, listed = protocol.min_reader_version, protocol.reader_features
    if version not in _VERSIONS:
        raise refusal(features.OTHER_READER_VERSIONS, version=version, writer=protocol.min_writer_version)
    if (version == _VERSIONS[-1]) != (listed is not None):
        raise CorruptTableError(
            f"The table's protocol has reader version {version} {'without' if listed is None else 'with'} "
            "readerFeatures, which version 3 and no other has. The log is damaged; compare it with a copy of the table."
        )
    unread = [name for name in sorted(listed or ()) if name not in _KNOWN or _KNOWN[name].status == "refused"]
    if unread:
        named = ", ".join(f"{name} ({_KNOWN[name].name})" if name in _KNOWN else name for name in unread)
        raise refusal(_KNOWN.get(unread[0], features.OTHER_READER_FEATURES), named=named)


def _check_mapping(protocol: Protocol, schema: DeltaSchema) -> None:
    """Refuse a table that maps its columns but does not list the feature, as Spark does."""
    if protocol.min_reader_version < _VERSIONS[-1] or schema.mode == "none":
        return
    listed = (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())
    if "columnMapping" not in listed:
        raise CorruptTableError(
            f"The table maps its columns by {schema.mode} (delta.columnMapping.mode), and its protocol lists no "
            "columnMapping (DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH). The log is damaged; compare it with a copy of "
            "the table."
        )


def _check_names(schema: DeltaSchema) -> None:
    """Refuse columns whose names differ only in case: a column of a data file could match either."""
    for fields in _structs(DeltaDataType(root="struct", fields=schema.fields)):
        names = [field.name.lower() for field in fields]
        twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
        if twice is not None:
            raise CorruptTableError(
                f"Several columns are named {twice!r} ignoring case, which Delta does not allow. The log is damaged; "
                "compare it with a copy of the table."
            )


def _structs(data_type: DeltaDataType) -> Iterator[tuple[DeltaField, ...]]:
    if data_type.root == "struct":
        yield data_type.fields
    for part in parts(data_type):
        yield from _structs(part)


def _walk(fields: Sequence[DeltaField], prefix: str) -> Iterator[tuple[str, DeltaField]]:
    for field in fields:
        name = f"{prefix}{field.name}"
        yield name, field
        inside = field.type
        while inside.element is not None:
            inside = inside.element
        if not inside.user_defined:
            yield from _walk(inside.fields, f"{name}.")


def _check_changes(name: str, field: DeltaField) -> None:
    for change in field.changes:
        if not is_allowed(change.before, change.after):
            raise refusal(features.TYPE_CHANGES, column=name, before=change.before, after=change.after)
