"""The actions of which a version has one, or one per name, as records: protocol, metadata, transactions, domains."""

from collections.abc import Mapping, Sequence
from typing import Any

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.formats.delta.log.json_columns import integer, json_text, shown
from snapshot_explorer.formats.delta.log.records import Domain, Metadata, Protocol, Transaction

Body = Mapping[str, Any]


def protocol_of(body: Body) -> Protocol:
    """Return the record of a protocol action.

    Raises:
        CorruptBytesError: It lacks a version, or its features are no texts.

    Source: delta PROTOCOL.md, "Protocol Evolution".
    """
    reader, writer = (_integer(body, name) for name in ("minReaderVersion", "minWriterVersion"))
    if reader is None or writer is None:
        raise CorruptBytesError("a protocol without minReaderVersion or minWriterVersion")
    features = (body.get(name) for name in ("readerFeatures", "writerFeatures"))
    readers, writers = (None if names is None else frozenset(_texts(names, "features")) for names in features)
    return Protocol(
        min_reader_version=reader, min_writer_version=writer, reader_features=readers, writer_features=writers
    )


def metadata_of(body: Body) -> Metadata:
    """Return the record of a metaData action. What is absent is None or empty: old logs lack much.

    Raises:
        CorruptBytesError: A value is of another type than it must be.

    Source: delta PROTOCOL.md, "Change Metadata".
    """
    file_format = body.get("format") or {}
    if not isinstance(file_format, Mapping):
        raise CorruptBytesError("a format that is no object")
    return Metadata(
        id=_text(body, "id"),
        name=_text(body, "name"),
        description=_text(body, "description"),
        provider=_text(file_format, "provider") or "parquet",
        schema_json=_text(body, "schemaString"),
        partition_columns=tuple(_texts(body.get("partitionColumns") or [], "partitionColumns")),
        configuration=_configuration(body.get("configuration") or {}),
        created_at=_integer(body, "createdTime"),
    )


def transaction_of(body: Body) -> Transaction:
    """Return the record of a txn action.

    Raises:
        CorruptBytesError: It lacks the application or its version.
    """
    app_id, version = _text(body, "appId"), _integer(body, "version")
    if app_id is None or version is None:
        raise CorruptBytesError("a txn without appId or version")
    return Transaction(app_id=app_id, version=version, last_updated=_integer(body, "lastUpdated"))


def domain_of(body: Body) -> Domain:
    """Return the record of a domainMetadata action.

    Raises:
        CorruptBytesError: It lacks the domain.
    """
    name = _text(body, "domain")
    if name is None:
        raise CorruptBytesError("a domainMetadata without domain")
    return Domain(domain=name, configuration=_text(body, "configuration") or "", removed=body.get("removed") is True)


def _text(body: Body, name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise CorruptBytesError(f"{name} {shown(value)}, which is not text")
    return value


def _integer(body: Body, name: str) -> int | None:
    value = body.get(name)
    try:
        return None if value is None else integer(value)
    except ValueError as error:
        raise CorruptBytesError(f"{name} {shown(value)}, which is not a number") from error


def _texts(values: Any, name: str) -> Sequence[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise CorruptBytesError(f"{name} that are no list of texts")
    return values


def _spelled(value: object) -> str:
    return json_text(value) if isinstance(value, dict | list) else str(value)


def _configuration(values: Any) -> Mapping[str, str]:
    if not isinstance(values, Mapping):
        raise CorruptBytesError("a configuration that is no object")
    return {str(name): value if isinstance(value, str) else _spelled(value) for name, value in values.items()}
