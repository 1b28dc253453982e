"""`inspect(name)` of Hudi tables: the timeline, file groups of all versions, and the file slices of one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.records import Inspection
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.hudi.metadata.commits import details
from snapshot_explorer.formats.hudi.metadata.file_groups import NEVER, StoredFile, records
from snapshot_explorer.formats.hudi.metadata.history import HudiSource
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig
from snapshot_explorer.formats.hudi.metadata.timeline import WRITES, Instant, parse_instant
from snapshot_explorer.formats.hudi.scan.partitions import partition_texts
from snapshot_explorer.formats.interface import unknown_inspection

log = logger_of(__name__)

INSPECTIONS = (
    Inspection(
        name="timeline",
        at_version=False,
        meaning="every action, requested, running, completed or rolled back, and how long it ran beside others",
        picture="actions",
    ),
    Inspection(
        name="file_groups",
        at_version=False,
        meaning="the file slices of all versions: base files, log files, and in which versions they are live",
        picture="slices",
    ),
    Inspection(name="savepoints", at_version=False, meaning="the savepoints, and who made them"),
    Inspection(name="cleans", at_version=False, meaning="what the cleaner removed, and what it kept"),
    Inspection(name="rollbacks", at_version=False, meaning="rollbacks and restores, and what they removed"),
    Inspection(name="compactions", at_version=False, meaning="compactions that are requested or running"),
    Inspection(name="file_slices", at_version=True, meaning="its file slices, each a base file and log files"),
)

_TIME = frames.UTC_MILLIS
_SERVICES = {"COMPACT": "compaction", "LOG_COMPACT": "logcompaction", "CLUSTER": "clustering"}
"""The table services by the operation in the metadata of their commits."""
_WRITES_OF_SERVICES = frozenset((*WRITES, *_SERVICES.values()))
_TIMELINE = pa.schema(
    [
        pa.field("requested", pa.string(), metadata={"whole": "yes"}),
        ("action", pa.string()),
        ("service", pa.string()),
        ("state", pa.string()),
        ("requested_at", _TIME),
        ("completed_at", _TIME),
        ("seconds", pa.float64()),
        ("overlaps", pa.list_(pa.string())),
        ("removed_by", pa.string()),
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
_SLICE = (("partition", frames.PARTITION), ("file_id", pa.string()), ("instant", pa.int64()))
_SLICE_FILES = (
    ("base_file", pa.string()),
    ("rows", pa.int64()),
    ("base_bytes", pa.int64()),
    ("log_files", pa.list_(pa.string())),
    ("log_bytes", pa.int64()),
)
_LIFETIME = (("first_version", pa.int64()), ("removed_version", pa.int64()))
_GROUPS = pa.schema([*_SLICE, *_LIFETIME, *_SLICE_FILES, ("appended", pa.list_(pa.int64()))])
_SLICES = pa.schema([*_SLICE, *_SLICE_FILES])


def inspect_table(name: str, source: HudiSource) -> pa.Table:
    """Return a metadata table of the whole table."""
    known: Mapping[str, tuple[pa.Schema, Callable[[HudiSource], Iterator[Mapping[str, Any]]]]] = {
        "timeline": (_TIMELINE, _timeline),
        "file_groups": (_GROUPS, _file_groups),
        "savepoints": (_SAVEPOINTS, _savepoints),
        "cleans": (_CLEANS, _cleans),
        "rollbacks": (_ROLLBACKS, _rollbacks),
        "compactions": (_COMPACTIONS, _compactions),
    }
    if name not in known:
        raise unknown_inspection(name, INSPECTIONS)
    schema, rows = known[name]
    return pa.Table.from_pylist(list(rows(source)), schema)


@dataclass(slots=True, kw_only=True)
class _Action:
    """An action that completed, and the actions that ran at the same time."""

    instant: Instant
    requested: datetime
    completed: datetime
    overlaps: list[Instant] = field(default_factory=list)


def _timeline(source: HudiSource) -> Iterator[Mapping[str, Any]]:
    active = {(instant.time, instant.action) for instant in source.timeline.instants}
    archived = [item.instant for key, item in source.archived.items() if key not in active]
    instants = sorted((*archived, *source.timeline.instants), key=lambda item: (item.time, item.action))
    ran = {id(action.instant): action for action in _overlapping(instants)}
    services = _services(source)
    rows = []
    for instant in instants:
        action = ran.get(id(instant))
        rows.append(
            {
                "requested": instant.text,
                "action": instant.action,
                "service": services.get(instant.text) if instant.action in _WRITES_OF_SERVICES else None,
                "state": instant.state,
                "requested_at": parse_instant(instant.text),
                "completed_at": None if instant.completion is None else parse_instant(instant.completion),
                "seconds": None if action is None else (action.completed - action.requested).total_seconds(),
                "overlaps": None if action is None else sorted(other.text for other in action.overlaps),
                "removed_by": None,
                "is_archived": (instant.time, instant.action) not in active,
                "path": instant.path,
            }
        )
    yield from sorted((*rows, *_undone(source)), key=lambda row: row["requested"])


def _overlapping(instants: Sequence[Instant]) -> list[_Action]:
    """Return the actions whose completion is recorded. Savepoints have the time of the commit that they keep."""
    actions = [
        _Action(instant=item, requested=parse_instant(item.text), completed=parse_instant(item.completion))
        for item in instants
        if item.completion is not None and item.action != "savepoint"
    ]
    running: list[_Action] = []
    for action in sorted(actions, key=lambda item: item.requested):
        running = [other for other in running if other.completed > action.requested]
        for other in running:
            other.overlaps.append(action.instant)
            action.overlaps.append(other.instant)
        running.append(action)
    return actions


def _services(source: HudiSource) -> Mapping[str, str]:
    """Return the table services by their instants: the name of a completed file does not contain them."""
    services = {}
    for name in source.timeline.names:
        text, _, rest = name.partition(".")
        service = rest.partition(".")[0]
        if service in _SERVICES.values():
            services[text] = service
    archived = [version for version in source.versions if version not in source.timeline.writes]
    for version, commit in source.commits(archived).items():
        operation = "COMPACT" if commit.is_compaction else commit.operation
        if operation in _SERVICES:
            services[source.instant(version).text] = _SERVICES[operation]
    return services


def _undone(source: HudiSource) -> Iterator[Mapping[str, Any]]:
    """Yield the actions that rollbacks and restores removed. One request for each of these."""
    for instant in _completed(source, "rollback", "restore"):
        raw = source.record(instant)
        if not raw:
            source.storage.warn_once(
                log,
                "%s is empty, as a crashed writer leaves it: the timeline lacks the actions that this %s removed.",
                instant.path,
                instant.action,
            )
        for item in raw.get("instantsRollback") or raw.get("restoreInstantInfo") or ():
            text = str(item.get("commitTime"))
            yield {
                "requested": text,
                "action": item.get("action"),
                "state": "rolled back",
                "requested_at": parse_instant(text) if text.isdigit() else None,
                "removed_by": instant.text,
                "is_archived": False,
                "path": instant.path,
            }


def _file_groups(source: HudiSource) -> Iterator[Mapping[str, Any]]:
    state = source.state
    for version in source.versions:
        if version >= state.unknown_from:
            state.check(version, source.storage.root)
    slices: dict[tuple[str, str, int], list[StoredFile]] = {}
    for file in records(state.files):
        slices.setdefault((file.partition, file.file_id, file.slice), []).append(file)
    for (partition, file_id, instant), files in sorted(slices.items()):
        removed = max(file.removed for file in files)
        yield {
            **_slice(source.config, partition, file_id, files),
            "instant": instant,
            "first_version": min(file.first for file in files),
            "removed_version": None if removed == NEVER else removed,
            "appended": sorted({commit for file in files if file.is_log for commit in file.commits}),
        }


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
    rows = [
        _slice(config, partition, file_id, members) | {"instant": max(file.slice for file in members)}
        for (partition, file_id), members in sorted(groups.items())
    ]
    return pa.Table.from_pylist(rows, _SLICES)


def _slice(config: TableConfig, partition: str, file_id: str, files: Sequence[StoredFile]) -> dict[str, Any]:
    base = next((file for file in files if not file.is_log), None)
    logs = [file for file in files if file.is_log]
    return {
        "partition": list(partition_texts(config, partition).items()),
        "file_id": file_id,
        "base_file": None if base is None else base.path,
        "rows": None if base is None else base.rows,
        "base_bytes": None if base is None else base.size_bytes,
        "log_files": [file.path for file in logs],
        "log_bytes": sum(file.size_bytes or 0 for file in logs),
    }
