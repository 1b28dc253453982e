"""The parsed contents of a Delta log: records for single actions, Arrow schemas for the rest.

Source: delta PROTOCOL.md, "Actions".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

STRINGS = pa.map_(pa.string(), pa.string())

DELETION_VECTOR = pa.struct(
    [
        pa.field("storage_type", pa.string()),
        pa.field("path_or_inline", pa.string()),
        pa.field("offset", pa.int32()),
        pa.field("size_bytes", pa.int32()),
        pa.field("cardinality", pa.int64()),
    ]
)
"""The location of a deletion vector: PROTOCOL.md, "Deletion Vector Descriptor Schema"."""

_FILE = [
    pa.field("version", pa.int64()),  # the commit with the action; null if it is in a checkpoint
    pa.field("path", pa.string()),  # decoded once; canonical if absolute, so that equal files have equal texts
    pa.field("partition_values", STRINGS),  # by physical name
    pa.field("size_bytes", pa.int64()),
    pa.field("data_change", pa.bool_()),
    pa.field("deletion_vector", DELETION_VECTOR),
    pa.field("stats", pa.string()),  # JSON text
    pa.field("base_row_id", pa.int64()),
    pa.field("default_row_commit_version", pa.int64()),
    pa.field("tags", STRINGS),
]

ADDS = pa.schema(
    [
        *_FILE,
        pa.field("modified_at", pa.int64()),  # milliseconds since 1970
        pa.field("clustering_provider", pa.string()),
    ]
)
"""Add actions. Adds from a checkpoint without statistics as text have another column `stats_parsed`."""

REMOVES = pa.schema([*_FILE, pa.field("deleted_at", pa.int64()), pa.field("extended", pa.bool_())])
"""Remove actions. Removes of old writers have null partition values, size and statistics."""

CDC = pa.schema(_FILE[:5])


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The protocol that a reader must support."""

    min_reader_version: int
    """Reader version 1 to 3. From 3 on, the features determine what a reader must support."""
    min_writer_version: int
    """Writer version; readers ignore it."""
    reader_features: frozenset[str] | None
    """Features that a reader must support; None below reader version 3."""
    writer_features: frozenset[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The table's schema and settings."""

    id: str | None
    name: str | None
    description: str | None
    provider: str
    """Format of the data files; only `parquet` is read."""
    schema_json: str | None
    """The schema as JSON text; None is a table without columns."""
    partition_columns: tuple[str, ...]
    """Logical names, in order."""
    configuration: Mapping[str, str]
    created_at: int | None
    """Milliseconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The progress of an application: PROTOCOL.md, "Transaction Identifiers"."""

    app_id: str
    version: int
    """Its own version number."""
    last_updated: int | None
    """Milliseconds since 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Metadata of one domain: PROTOCOL.md, "Domain Metadata"."""

    domain: str
    configuration: str
    """Mostly JSON text."""
    removed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """The actions of some commits, each kind in one table, in order of version."""

    adds: pa.Table
    removes: pa.Table
    cdc: pa.Table
    commit_infos: Mapping[int, Mapping[str, Any]]
    """The first commitInfo of each version that has one, as stored; only its `brief_info` unless it was requested."""
    protocols: Mapping[int, Protocol]
    metadatas: Mapping[int, Metadata]
    transactions: Mapping[int, tuple[Transaction, ...]]
    """By version; only versions that have some."""
    domains: Mapping[int, tuple[Domain, ...]]
    """By version; only versions that have some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaState:
    """A table as the log reconstructs it at one version."""

    version: int
    protocol: Protocol
    metadata: Metadata
    adds: pa.Table
    """ADDS of the live files."""
    transactions: Mapping[str, Transaction]
    domains: Mapping[str, str]
    """Domain to configuration; removed ones are not in it."""
