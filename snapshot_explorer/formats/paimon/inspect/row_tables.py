"""Paimon's system tables with the table's own rows: audit_log, binlog, ro, row_tracking.

Each reads all rows of the version into memory.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError, InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import ROW_KIND, Split
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.changes.events import LastEvents, read_events
from snapshot_explorer.formats.paimon.metadata.data_types import arrow_field, arrow_type
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema, Schemas
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.formats.paimon.metadata.supported import check_single_branch
from snapshot_explorer.formats.paimon.scan import read as rows
from snapshot_explorer.formats.paimon.scan.metadata_columns import HIDDEN, SEQUENCE_NUMBER
from snapshot_explorer.formats.paimon.scan.scans import scan
from snapshot_explorer.formats.settings import parse_flag
from snapshot_explorer.storage import Storage

_NUMBERED = "table-read.sequence-number.enabled"
_TRIGGER = "num-sorted-run.compaction-trigger"
_THREADS = 8


def system_rows(storage: Storage, schemas: Schemas, name: str, snapshot: PaimonSnapshot | None) -> pa.Table:
    """Return `audit_log`, `binlog`, `ro` or `row_tracking` at a version; without a version, no rows.

    audit_log and binlog: the last event per key, deleted keys included, as without incremental options. ro: the rows of
    files that a full compaction wrote, for a table without a primary key of all files. row_tracking: the rows with
    their ids.

    Source: paimon docs, "System Tables"; paimon AuditLogTable, BinlogTable, ReadOptimizedTable, RowTrackingTable.
    """
    newest = schemas.newest(0 if snapshot is None else snapshot.schema_id)
    schema = newest if snapshot is None else schemas.by_id([snapshot.schema_id])[snapshot.schema_id]
    columns = _columns(name, schema, newest)
    if snapshot is None:
        rows = columns.empty_table()
    else:
        level = _top_level(newest) if name == "ro" and schema.primary_keys else None
        check_single_branch(newest.options, snapshot.id)
        splits = scan(storage, schemas, snapshot, level=level).splits
        rows = _read(storage, splits, columns, with_kinds=name in ("audit_log", "binlog"))
    return _in_lists(rows) if name == "binlog" else rows


def _columns(name: str, schema: PaimonSchema, newest: PaimonSchema) -> pa.Schema:
    fields = [arrow_field(field) for field in schema.fields]
    match name:
        case "ro":
            return pa.schema(fields)
        case "row_tracking":
            tracked = parse_flag(newest.options, "row-tracking.enabled") and not newest.primary_keys
            if not tracked:
                raise InvalidArgumentError(
                    Message(
                        "row_tracking has the ids of rows, but the table does not track its rows: it needs the option "
                        "row-tracking.enabled, and no primary key. ",
                        Hint("snapshot.to_arrow"),
                        " returns the rows.",
                    )
                )
            ids = [pa.field(field.name, arrow_type(field.type), nullable=False) for field in HIDDEN]
            return pa.schema([*fields, *ids])
    if any(field.name == ROW_KIND for field in fields):
        raise refusal(features.AUDIT_COLUMN_CONFLICT, column=ROW_KIND, table=name)
    special = [pa.field(ROW_KIND, pa.string())]
    if parse_flag(newest.options, _NUMBERED):
        if not schema.primary_keys:
            raise refusal(features.AUDIT_SEQUENCE_NUMBERS, option=_NUMBERED, table=name)
        special.append(arrow_field(SEQUENCE_NUMBER))
    return pa.schema([*special, *fields])


def _top_level(newest: PaimonSchema) -> int:
    """Return the level that full compactions write to.

    Source: paimon CoreOptions.numLevels.
    """
    name = "num-levels" if "num-levels" in newest.options else _TRIGGER
    value = newest.options.get(name, "5").strip()
    if not value.isascii() or not value.isdigit():
        raise CorruptTableError(f"The table's option {name} must be an integer, got {value!r}; ro is not read.")
    return int(value) - (name == "num-levels")


def _read(storage: Storage, splits: Sequence[Split], columns: pa.Schema, *, with_kinds: bool) -> pa.Table:
    def part(split: Split) -> pa.Table:
        batches = (
            read_events(storage, LastEvents(split=split), columns.names)
            if with_kinds
            else rows.read(storage, split, columns.names)
        )
        read_batches = list(batches)
        # The schema defines which columns are nullable, not the batches.
        return (
            pa.Table.from_arrays(pa.Table.from_batches(read_batches).columns, schema=columns)
            if read_batches
            else nothing
        )

    nothing = columns.empty_table()
    executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="snapshot-rows")
    try:
        return pa.concat_tables([nothing, *executor.map(part, splits)])
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _in_lists(table: pa.Table) -> pa.Table:
    special = (ROW_KIND, SEQUENCE_NUMBER.name)
    columns, fields = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        if field.name in special:
            columns.append(column)
            fields.append(field)
            continue
        dtype = pa.list_(pa.field("element", field.type))
        lists = [
            pa.ListArray.from_arrays(pa.array(np.arange(len(chunk) + 1, dtype=np.int32)), chunk, type=dtype)
            for chunk in column.chunks
        ]
        columns.append(pa.chunked_array(lists, dtype))
        fields.append(pa.field(field.name, dtype))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
