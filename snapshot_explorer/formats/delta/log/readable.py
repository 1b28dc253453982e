"""Which versions of the protocol and which reader features are read, and which are refused by name.

Source: delta PROTOCOL.md, "Table Features", "Requirements for Readers".
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.formats.delta.log.data_types import DataType, Field, has, is_allowed, is_known, parts, spell
from snapshot_explorer.formats.delta.log.records import Metadata, Protocol
from snapshot_explorer.formats.delta.log.schema import Schema, schema_of

READ: Mapping[str, str] = MappingProxyType(
    {
        "columnMapping": "columns renamed and dropped without rewriting files, by name and by id",
        "deletionVectors": "rows deleted without rewriting files",
        "timestampNtz": "timestamps without a zone",
        "typeWidening": "columns of a wider type than that of old files",
        "typeWidening-preview": "the same, before it was released",
        "v2Checkpoint": "checkpoints with sidecar files",
        "vacuumProtocolCheck": "nothing that concerns a reader",
        "variantType": "variants, given as a struct of value and metadata",
        "variantType-preview": "the same, before it was released",
        "variantShredding": "only where no column is a variant: its files may be shredded",
        "variantShredding-preview": "the same, before it was released",
    }
)
"""The reader features that are read, and what each means."""

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "catalogManaged": "a catalog decides which versions exist",
        "catalogOwned-preview": "a catalog decides which versions exist",
        "geospatial": "columns of type geometry and geography",
        "geospatial-dev": "columns of type geometry and geography",
        "redirectReaderWriter-preview": "the table has moved to another place",
        "adaptiveMetadata-preview": "the list of files is not in the log",
    }
)
"""The reader features that are known and refused, and why; every other one is refused too."""

_VERSIONS = (1, 2, 3)
_SHREDDING = ("variantShredding", "variantShredding-preview")
_ADVICE = "Its history, schema and files can still be looked at; read the rows with Delta's own engines."


def check_readable(protocol: Protocol, metadata: Metadata) -> Schema:
    """Return the schema under which the rows of a version are read.

    Raises:
        UnsupportedFeatureError: The version needs what is not read; the message names it.
        CorruptTableError: The protocol or the schema contradicts the format.
    """
    _check_protocol(protocol)
    if metadata.provider != "parquet":
        raise UnsupportedFeatureError(
            f"The table's data files are of the format {metadata.provider!r}, not parquet. {_ADVICE}"
        )
    schema = schema_of(metadata)
    _check_mapping(protocol, schema)
    _check_names(schema)
    for name, field in _walk(schema.fields, ""):
        if not is_known(field.type):
            raise UnsupportedFeatureError(
                f"The column {name!r} is of type {spell(field.type)}, which is not read. {_ADVICE}"
            )
        _check_changes(name, field)
        if field.id is None and schema.mode == "id":
            raise CorruptTableError(
                f"The column {name!r} has no id, by which the table's data files are read (delta.columnMapping.mode). "
                "The log is damaged; compare it with a copy of the table."
            )
    _check_shredding(protocol, schema)
    return schema


def _check_protocol(protocol: Protocol) -> None:
    version, features = protocol.min_reader_version, protocol.reader_features
    if version not in _VERSIONS:
        raise UnsupportedFeatureError(
            f"Unsupported Delta protocol version: the table requires reader version {version} and writer version "
            f"{protocol.min_writer_version}; reader versions 1, 2 and 3 are read. {_ADVICE}"
        )
    if (version == _VERSIONS[-1]) != (features is not None):
        raise CorruptTableError(
            f"The table's protocol has reader version {version} {'without' if features is None else 'with'} "
            "readerFeatures, which version 3 and no other has. The log is damaged; compare it with a copy of the table."
        )
    unknown = sorted((features or frozenset()) - set(READ))
    if unknown:
        named = ", ".join(f"{name} ({REFUSED[name]})" if name in REFUSED else name for name in unknown)
        raise UnsupportedFeatureError(
            f"Unsupported Delta read feature: the table requires reader features that are not read: {named}. {_ADVICE}"
        )


def _check_mapping(protocol: Protocol, schema: Schema) -> None:
    """Refuse a table that maps its columns, and lists the features that it needs without this one, as Spark does."""
    if protocol.min_reader_version < _VERSIONS[-1] or schema.mode == "none":
        return
    features = (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())
    if "columnMapping" not in features:
        raise CorruptTableError(
            f"The table maps its columns by {schema.mode} (delta.columnMapping.mode), and its protocol lists no "
            "columnMapping (DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH). The log is damaged; compare it with a copy of "
            "the table."
        )


def _check_names(schema: Schema) -> None:
    """Refuse columns whose names differ only in case: a data file would be read as either."""
    for fields in _structs(DataType(root="struct", fields=schema.fields)):
        names = [field.name.lower() for field in fields]
        twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
        if twice is not None:
            raise CorruptTableError(
                f"Several columns are called {twice!r} but for case, which Delta does not allow. The log is damaged; "
                "compare it with a copy of the table."
            )


def _structs(kind: DataType) -> Iterator[tuple[Field, ...]]:
    """Yield the fields of each struct in a type."""
    if kind.root == "struct":
        yield kind.fields
    for part in parts(kind):
        yield from _structs(part)


def _walk(fields: Sequence[Field], prefix: str) -> Iterator[tuple[str, Field]]:
    """Yield columns and the fields in them, with their names from the top."""
    for field in fields:
        name = f"{prefix}{field.name}"
        yield name, field
        inside = field.type
        while inside.element is not None:
            inside = inside.element
        yield from _walk(inside.fields, f"{name}.")


def _check_changes(name: str, field: Field) -> None:
    for change in field.changes:
        if not is_allowed(change.before, change.after):
            raise UnsupportedFeatureError(
                f"The column {name!r} was changed from {change.before} to {change.after}, a change that old files are "
                f"not read under. {_ADVICE}"
            )


def _check_shredding(protocol: Protocol, schema: Schema) -> None:
    shredding = [name for name in _SHREDDING if name in (protocol.reader_features or ())]
    shredded = next((field.name for field in schema.fields if has(field.type, "variant")), None)
    if shredding and shredded is not None:
        raise UnsupportedFeatureError(
            f"Unsupported Delta read feature: the table requires {shredding[0]}, and the variants in the column "
            f"{shredded!r} may be shredded, which is not read. {_ADVICE}"
        )
