"""Rows of the tables that `DeltaTable` writes, read through the log and nothing above it."""

import pyarrow as pa

from snapshot_explorer.engines import local
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.storage import Storage
from tests.inner.arrow import CorruptBytesError
from tests.inner.delta import (
    ADDS,
    DeltaLog,
    DeltaState,
    Metadata,
    Protocol,
    arrow_schema,
    metadata_schema,
    planning,
    read,
)
from tests.inner.engines import parse_condition as condition_of
from tests.inner.engines import scan_of
from tests.inner.formats import NativeFiles


def tried(task, *arguments):
    """Return what a task gives and None, or None and the error of ours that it raises."""
    try:
        return task(*arguments), None
    except (SnapshotExplorerError, CorruptBytesError) as error:
        return None, error


def state_of(table, version=None):
    return DeltaLog(Storage(table.url)).state(table.version if version is None else version)


class Reader:
    """Just what the engine asks of a format."""

    native_files = NativeFiles()

    def __init__(self, storage):
        self.storage = storage

    def read(self, split, columns, predicate=None):
        return read.read(self.storage, split, columns)

    def split_by_file(self, split):
        return (split,)


def planned(storage, state, condition):
    """Return the plan of a state's files."""
    return planning.plan(storage, condition, state.protocol, state.metadata, [state.adds])


def table_of(table, *, version=None, columns=None, where=None):
    """Return rows as an Arrow table."""
    storage, state = Storage(table.url), state_of(table, version)
    schema = arrow_schema(state.metadata)
    names = schema.names if columns is None else columns
    schema = pa.schema(
        [*schema, *metadata_schema([name for name in names if name not in schema.names], state.metadata)]
    )
    scan = scan_of(schema, columns, where)
    return local.to_arrow(Reader(storage), planned(storage, state, scan.condition).splits, scan)


def rows_of(table, **arguments):
    """Return rows as tuples, sorted by their text."""
    found = table_of(table, **arguments)
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def plan_of(table, where=None):
    state = state_of(table)
    condition = None if where is None else condition_of(where, arrow_schema(state.metadata))
    return planned(Storage(table.url), state, condition)


def metadata(schema_json, *, partition_by=(), configuration=None, provider="parquet"):
    return Metadata(
        id="t",
        name=None,
        description=None,
        provider=provider,
        schema_json=schema_json,
        partition_columns=tuple(partition_by),
        configuration=configuration or {},
        created_at=None,
    )


def protocol(reader=1, features=None):
    return Protocol(
        min_reader_version=reader,
        min_writer_version=7 if features is not None else 2,
        reader_features=None if features is None else frozenset(features),
        writer_features=None if features is None else frozenset(features),
    )


def adds_of(*adds):
    """Return ADDS of dicts in which anything but the path may be missing."""
    usual = {"size_bytes": 10, "partition_values": []}
    return pa.Table.from_pylist([dict.fromkeys(ADDS.names) | usual | one for one in adds], schema=ADDS)


def state(adds, table_metadata, said=None):
    return DeltaState(
        version=0, protocol=said or protocol(), metadata=table_metadata, adds=adds, transactions={}, domains={}
    )
