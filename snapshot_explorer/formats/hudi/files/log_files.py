"""Log files as Arrow: the records and deletes of the blocks that belong to a version.

Source: hudi specification, "Log Format"; hudi BaseHoodieLogRecordReader.scanInternalV1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core.errors import CorruptTableError, SnapshotExplorerError
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.avro import columns as avro_columns
from snapshot_explorer.formats.avro import rows as avro_rows
from snapshot_explorer.formats.avro.container import Shape
from snapshot_explorer.formats.corrupt_files import check_size
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.files.parquet_file import open_parquet
from snapshot_explorer.formats.hudi import features
from snapshot_explorer.formats.hudi.files.columns import conform
from snapshot_explorer.formats.hudi.files.data_files import conform_batch, translate_errors
from snapshot_explorer.formats.hudi.files.delete_blocks import DeletedRecord, deleted_keys
from snapshot_explorer.formats.hudi.metadata import log_format
from snapshot_explorer.formats.hudi.metadata.log_format import LogBlock, blocks, damaged_block
from snapshot_explorer.formats.hudi.metadata.types import HudiField, avro_type, parse_fields
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

_EARLY_BYTES = 2**28
"""Files of up to this size are requested at the same time, before the first one is decoded."""
_ROLLBACK = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiLogFile:
    """A log file to read. Picklable."""

    path: str
    """Its path, below the table's root."""
    size_bytes: int | None
    """Its size; None if it is not recorded."""
    may_have_grown: bool
    """Whether unrecorded blocks may have been appended to it."""
    commits: tuple[int, ...]
    """The commits up to the version that wrote to it. Blocks of other commits are skipped."""
    committed_before: int | None
    """Blocks of instants before this one are included too; None if all commits are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecords:
    """The records of a block."""

    batch: pa.RecordBatch
    """The requested columns."""
    present: frozenset[str]
    """The columns that the block has."""
    is_partial: bool
    """Whether the records lack columns that were not changed."""


LogItem = LogRecords | list[DeletedRecord]
"""The contents of a block."""


def read_logs(storage: Storage, files: Sequence[HudiLogFile], fields: Sequence[HudiField]) -> list[LogItem]:
    """Return the contents of the included blocks of a slice's log files, in order.

    Args:
        files: The files, in order.
        fields: The columns. Columns that a block lacks are null.

    Raises:
        CorruptTableError: A file has another size than recorded, or no block of a commit that wrote to it.
    """
    items: list[tuple[str, LogItem]] = []
    shapes: dict[bytes, Shape] = {}
    small = [] if storage.is_local else [file.path for file in files if (file.size_bytes or 0) <= _EARLY_BYTES]
    early = dict(zip(small, storage.read_present(small), strict=True))
    for file in files:
        with translate_errors(file.path, "a log file of Hudi"):
            content = early.pop(file.path, None) or storage.read(file.path, size_bytes=file.size_bytes)
        recorded = file.size_bytes
        if file.may_have_grown and recorded is not None:
            recorded = max(recorded, len(content))
        check_size(f"The log file {file.path}", len(content), recorded, by="its commit")
        missing = set(file.commits)
        for block in blocks(content, file.path):
            instant = block.header.get(log_format.INSTANT, "")
            missing.discard(int(instant) if instant.isascii() and instant.isdigit() else 0)
            if block.type == log_format.COMMAND:
                if block.header.get(log_format.COMMAND_TYPE, _ROLLBACK) == _ROLLBACK:
                    target = block.header.get(log_format.TARGET_INSTANT)
                    items = [item for item in items if item[0] != target]
            elif _counts(instant, file):
                items.append((instant, _item(storage, block, file.path, fields, shapes)))
        if missing:
            raise CorruptTableError(
                f"The log file {file.path} contains no intact block of the commit {min(missing)}, which wrote to it. "
                "It was cut short or replaced; compare it with a copy of the table, or choose another version."
            )
    return [item for _, item in items]


def _counts(instant: str, file: HudiLogFile) -> bool:
    if not instant.isascii() or not instant.isdigit():
        return False
    time = int(instant)
    return time in file.commits or (file.committed_before is not None and time < file.committed_before)


def _item(
    storage: Storage, block: LogBlock, path: str, fields: Sequence[HudiField], shapes: dict[bytes, Shape]
) -> LogItem:
    log.debug("reading the block at byte %s of %s", block.at, path)
    if block.type == log_format.DELETE:
        return deleted_keys(block, path, storage.limits)
    batch = _data_block(storage, block, path, fields, shapes)
    columns = [field for field in fields if field.name in batch.schema.names]
    return LogRecords(
        batch=conform_batch(batch, fields, path),
        present=frozenset(field.name for field in columns),
        is_partial=block.header.get(log_format.IS_PARTIAL, "").lower() == "true",
    )


def _data_block(
    storage: Storage, block: LogBlock, path: str, fields: Sequence[HudiField], shapes: dict[bytes, Shape]
) -> pa.RecordBatch:
    if block.type == log_format.AVRO:
        return read_avro_block(storage, block, path, fields, shapes)
    if block.type == log_format.PARQUET:
        return _parquet(block, path, fields)
    name = {log_format.HFILE: "HFile", log_format.CHANGES: "change data"}.get(block.type, str(block.type))
    raise refusal(features.OTHER_BLOCKS, path=path, type=name)


def read_avro_block(
    storage: Storage, block: LogBlock, path: str, fields: Sequence[HudiField], shapes: dict[bytes, Shape]
) -> pa.RecordBatch:
    """Return the requested columns that an Avro block contains."""
    records = log_format.avro_records(block, path, shapes, storage.limits)
    requested = {field.name for field in fields}
    written = [field for field in parse_fields(records.schema_text, records.path) if field.name in requested]
    stored = pa.struct([pa.field(field.name, avro_type(field.type)) for field in written])
    try:
        decoded = avro_columns.decode_at(records.content, records.starts, records.shape, stored)
        if decoded is not None and np.array_equal(decoded[1], records.ends):
            rows = decoded[0]
        else:
            rows = avro_rows.decode(records.container.blocks, records.shape, stored)
        columns = [conform(values, field.type) for values, field in zip(rows.flatten(), written, strict=True)]
    except SnapshotExplorerError:
        raise
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise damaged_block(path, block, error) from error
    return _batch(columns, [field.name for field in written], len(records.starts))


def _parquet(block: LogBlock, path: str, fields: Sequence[HudiField]) -> pa.RecordBatch:
    requested = {field.name for field in fields}
    try:
        reader = open_parquet(pa.BufferReader(block.content)).reader
        names = [name for name in reader.schema_arrow.names if name in requested]
        rows = reader.read(columns=names).combine_chunks() if names else None
    except (pa.ArrowException, CorruptBytesError, OSError, ValueError) as error:
        raise damaged_block(path, block, error) from error
    if rows is None:
        return _batch([], [], reader.metadata.num_rows)
    columns = [_join(rows.column(name)) for name in names]
    return _batch(columns, names, rows.num_rows)


def _join(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _batch(columns: Sequence[pa.Array], names: Sequence[str], rows: int) -> pa.RecordBatch:
    if not names:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(list(columns), names=list(names))
