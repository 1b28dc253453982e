"""`inspect(name)` of Hudi tables: the timeline, and the file slices of a version."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.formats.hudi.metadata.commits import details
from snapshot_explorer.formats.hudi.metadata.file_groups import StoredFile
from snapshot_explorer.formats.hudi.metadata.history import HudiSource
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig
from snapshot_explorer.formats.hudi.metadata.timeline import Instant, moment
from snapshot_explorer.formats.hudi.scan.partitions import partition_texts
from snapshot_explorer.formats.interface import unknown_inspection
from snapshot_explorer.model import Inspection

INSPECTIONS = (
    Inspection(name="timeline", at_version=False, meaning="every action, requested, running or completed"),
    Inspection(name="savepoints", at_version=False, meaning="the savepoints, and who made them"),
    Inspection(name="cleans", at_version=False, meaning="what the cleaner removed, and what it kept"),
    Inspection(name="rollbacks", at_version=False, meaning="rollbacks and restores, and what they removed"),
    Inspection(name="compactions", at_version=False, meaning="compactions that are requested or running"),
    Inspection(name="file_slices", at_version=True, meaning="its file slices, each a base file and log files"),
)

_TIME = frames.UTC_MILLIS
_TIMELINE = pa.schema(
    [
        ("requested", pa.string()),
        ("action", pa.string()),
        ("state", pa.string()),
        ("requested_at", _TIME),
        ("completed_at", _TIME),
        ("seconds", pa.float64()),
        ("overlaps", pa.int64()),
        ("is_archived", pa.bool_()),
        ("path", pa.string()),
    ]
)
_SAVEPOINTS = pa.schema(
    [("instant", pa.string()), ("user", pa.string()), ("saved_at", _TIME), ("comment", pa.string())]
)
_CLEANS = pa.schema(
    [
        ("instant", pa.string()),
        ("state", pa.string()),
        ("earliest_retained", pa.string()),
        ("deleted_files", pa.int64()),
        ("policies", pa.list_(pa.string())),
        ("details", pa.string()),
    ]
)
_ROLLBACKS = pa.schema(
    [("instant", pa.string()), ("action", pa.string()), ("removed", pa.list_(pa.string())), ("details", pa.string())]
)
_COMPACTIONS = pa.schema(
    [
        ("instant", pa.string()),
        ("state", pa.string()),
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("base_file", pa.string()),
        ("log_files", pa.list_(pa.string())),
    ]
)
_SLICES = pa.schema(
    [
        ("partition", frames.PARTITION),
        ("file_id", pa.string()),
        ("instant", pa.int64()),
        ("base_file", pa.string()),
        ("rows", pa.int64()),
        ("base_bytes", pa.int64()),
        ("log_files", pa.list_(pa.string())),
        ("log_bytes", pa.int64()),
    ]
)


def inspect_table(name: str, source: HudiSource) -> pa.Table:
    """Return a metadata table of the whole table."""
    known: Mapping[str, tuple[pa.Schema, Callable[[HudiSource], Iterator[Mapping[str, Any]]]]] = {
        "timeline": (_TIMELINE, _timeline),
        "savepoints": (_SAVEPOINTS, _savepoints),
        "cleans": (_CLEANS, _cleans),
        "rollbacks": (_ROLLBACKS, _rollbacks),
        "compactions": (_COMPACTIONS, _compactions),
    }
    if name not in known:
        raise unknown_inspection(name, INSPECTIONS)
    schema, rows = known[name]
    return pa.Table.from_pylist(list(rows(source)), schema)


def _timeline(source: HudiSource) -> Iterator[Mapping[str, Any]]:
    active = {(instant.time, instant.action) for instant in source.timeline.instants}
    archived = [item.instant for key, item in source.archived.items() if key not in active]
    instants = sorted((*archived, *source.timeline.instants), key=lambda item: (item.time, item.action))
    spans = [(moment(item.text), moment(item.completion)) for item in instants if item.completion is not None]
    for instant in instants:
        requested = moment(instant.text)
        completed = None if instant.completion is None else moment(instant.completion)
        yield {
            "requested": instant.text,
            "action": instant.action,
            "state": instant.state,
            "requested_at": requested,
            "completed_at": completed,
            "seconds": None if completed is None else (completed - requested).total_seconds(),
            "overlaps": None if completed is None else _overlaps(requested, completed, spans),
            "is_archived": (instant.time, instant.action) not in active,
            "path": instant.path,
        }


def _overlaps(requested: datetime, completed: datetime, spans: Sequence[tuple[datetime, datetime]]) -> int:
    """Return the number of other actions that ran at the same time."""
    return sum(begin < completed and requested < end for begin, end in spans) - 1


def _completed(source: HudiSource, *actions: str) -> list[Instant]:
    return [item for item in source.timeline.of_action(*actions) if item.state == "completed"]


def _savepoints(source: HudiSource) -> Iterator[Mapping[str, Any]]:
    for instant in _completed(source, "savepoint"):
        raw = source.record(instant)
        saved = raw.get("savepointedAt")
        yield {
            "instant": instant.text,
            "user": raw.get("savepointedBy") or None,
            "saved_at": pa.scalar(saved, pa.int64()).cast(_TIME).as_py() if isinstance(saved, int) else None,
            "comment": raw.get("comments") or None,
        }


def _cleans(source: HudiSource) -> Iterator[Mapping[str, Any]]:
    for instant in source.timeline.of_action("clean"):
        raw = source.record(instant) if instant.state == "completed" else {}
        partitions: Mapping[str, Mapping[str, Any]] = raw.get("partitionMetadata") or {}
        yield {
            "instant": instant.text,
            "state": instant.state,
            "earliest_retained": raw.get("earliestCommitToRetain") or None,
            "deleted_files": raw.get("totalFilesDeleted"),
            "policies": sorted({str(item.get("policy")) for item in partitions.values()}) if raw else None,
            "details": details(raw),
        }


def _rollbacks(source: HudiSource) -> Iterator[Mapping[str, Any]]:
    for instant in _completed(source, "rollback", "restore"):
        raw = source.record(instant)
        removed = raw.get("instantsRollback") or raw.get("restoreInstantInfo") or ()
        yield {
            "instant": instant.text,
            "action": instant.action,
            "removed": [str(item.get("commitTime")) for item in removed] if raw else None,
            "details": details(raw),
        }


def _compactions(source: HudiSource) -> Iterator[Mapping[str, Any]]:
    for instant in source.timeline.pending_compactions:
        for operation in source.plan(instant).get("operations") or ():
            yield {
                "instant": instant.text,
                "state": instant.state,
                "partition": operation.get("partitionPath"),
                "file_id": operation.get("fileId"),
                "base_file": operation.get("dataFilePath"),
                "log_files": list(operation.get("deltaFilePaths") or ()),
            }


def inspect_version(name: str, config: TableConfig, files: Sequence[StoredFile]) -> pa.Table:
    """Return a metadata table of a version, from its files."""
    if name != "file_slices":
        raise unknown_inspection(name, INSPECTIONS)
    groups: dict[tuple[str, str], list[StoredFile]] = {}
    for file in files:
        groups.setdefault((file.partition, file.file_id), []).append(file)
    rows = []
    for (partition, file_id), members in sorted(groups.items()):
        base = next((file for file in members if not file.is_log), None)
        logs = [file for file in members if file.is_log]
        rows.append(
            {
                "partition": list(partition_texts(config, partition).items()),
                "file_id": file_id,
                "instant": max(file.slice for file in members),
                "base_file": None if base is None else base.path,
                "rows": None if base is None else base.rows,
                "base_bytes": None if base is None else base.size_bytes,
                "log_files": [file.path for file in logs],
                "log_bytes": sum(file.size_bytes or 0 for file in logs),
            }
        )
    return pa.Table.from_pylist(rows, _SLICES)
