"""`inspect(name)` of Delta tables: DESCRIBE HISTORY, DESCRIBE DETAIL and a few more metadata tables.

Source: delta DeltaHistory.scala, DescribeDeltaDetailsCommand.scala.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

import orjson
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.milliseconds import from_millis
from snapshot_explorer.core.records import Inspection
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.records import STRINGS, DeltaState, Metadata, Protocol
from snapshot_explorer.formats.delta.metadata.times import Infos, Times
from snapshot_explorer.formats.interface import inspection_schema, unknown_inspection
from snapshot_explorer.storage import Storage

INSPECTIONS = (
    Inspection(name="history", at_version=False, meaning="every commit, as DESCRIBE HISTORY shows it, newest first"),
    Inspection(name="detail", at_version=True, meaning="the table in a row, as DESCRIBE DETAIL shows it"),
    Inspection(name="properties", at_version=True, meaning="the table's properties, as SHOW TBLPROPERTIES shows them"),
    Inspection(name="transactions", at_version=True, meaning="the last transaction of each writing application"),
    Inspection(name="domains", at_version=True, meaning="metadata of features, such as the clustering columns"),
)

TIMESTAMP = pa.timestamp("us", tz="UTC")
_JOB = pa.struct(
    [(name, pa.string()) for name in ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")]
)
_NOTEBOOK = pa.struct([("notebookId", pa.string())])
_schema_of = partial(
    inspection_schema,
    job=_JOB,
    notebook=_NOTEBOOK,
    list=pa.list_(pa.string()),
    strings=STRINGS,
    time=TIMESTAMP,
)
HISTORY = _schema_of(
    "version int64, timestamp time, userId string, userName string, operation string, operationParameters strings, "
    "job job, notebook notebook, clusterId string, readVersion int64, isolationLevel string, isBlindAppend bool, "
    "operationMetrics strings, userMetadata string, engineInfo string"
)
DETAIL = _schema_of(
    "format string, id string, name string, description string, location string, createdAt time, lastModified time, "
    "partitionColumns list, clusteringColumns list, numFiles int64, sizeInBytes int64, properties strings, "
    "minReaderVersion int32, minWriterVersion int32, tableFeatures list"
)
_PROPERTIES = _schema_of("key string, value string")
_TRANSACTIONS = _schema_of("appId string, version int64, lastUpdated time")
_DOMAINS = _schema_of("domain string, configuration string")

_IMPLIED: Sequence[tuple[str, int, int]] = (
    ("appendOnly", 1, 2),
    ("invariants", 1, 2),
    ("checkConstraints", 1, 3),
    ("changeDataFeed", 1, 4),
    ("generatedColumns", 1, 4),
    ("columnMapping", 2, 5),
    ("identityColumns", 1, 6),
)
"""Features that come with a version of the protocol: name, reader version, writer version."""
_FEATURES_FROM = 7
"""The first writer version with named features."""
_AT_ONCE = 1_000


class DeltaInspector:
    """Builds the metadata tables of Delta. Thread-safe."""

    def __init__(self, storage: Storage, log: DeltaLog, times: Times) -> None:
        self._storage = storage
        self._log = log
        self._times = times

    def of_table(self, name: str) -> pa.Table:
        """Return the history of the table. Reads every commit file."""
        if name != "history":
            raise unknown_inspection(name, INSPECTIONS)
        return self._history()

    def of_version(self, name: str, version: int) -> pa.Table:
        """Return one of INSPECTIONS at a version. Reads the state of the version."""
        state = self._log.state(version)
        match name:
            case "detail":
                return self._detail(state)
            case "properties":
                return pa.Table.from_pylist(
                    [{"key": key, "value": value} for key, value in _properties(state)], _PROPERTIES
                )
            case "transactions":
                return _transactions(state)
            case _:
                rows = [{"domain": domain, "configuration": text} for domain, text in sorted(state.domains.items())]
                return pa.Table.from_pylist(rows, _DOMAINS)

    def _last_modified(self, version: int) -> datetime | None:
        """Return the modification time of the version's commit file, unadjusted, like DESCRIBE DETAIL.

        If the storage reports no times, the commit time is returned.
        """
        commit = self._log.listing().commits.get(version)
        modified = None if commit is None else _parse_millis(commit.modified_ms)
        if modified is not None or commit is None:
            return modified
        return self._times.commit_times([version], self._log.actions([version]).commit_infos)[0]

    def _history(self) -> pa.Table:
        versions = [*self._log.refresh().commits][::-1]
        parts = [self._page(versions[start : start + _AT_ONCE]) for start in range(0, len(versions), _AT_ONCE)]
        return pa.concat_tables(parts) if parts else HISTORY.empty_table()

    def _page(self, versions: Sequence[int]) -> pa.Table:
        infos = self._log.actions(versions[::-1]).commit_infos
        return history_rows(versions, infos, self._times.commit_times(versions, infos))

    def _detail(self, state: DeltaState) -> pa.Table:
        metadata, protocol = state.metadata, state.protocol
        row = {
            "format": "delta",
            "id": metadata.id,
            "name": metadata.name,
            "description": metadata.description,
            "location": self._storage.root,
            "createdAt": _parse_millis(metadata.created_at),
            "lastModified": self._last_modified(state.version),
            "partitionColumns": list(metadata.partition_columns),
            "clusteringColumns": clustering_columns(state),
            "numFiles": state.adds.num_rows,
            "sizeInBytes": pc.sum(state.adds["size_bytes"], min_count=0).as_py(),
            "properties": _properties(state),
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            "tableFeatures": table_features(protocol),
        }
        return pa.Table.from_pylist([row], DETAIL)


def history_rows(versions: Sequence[int], infos: Infos, times: Sequence[datetime | None]) -> pa.Table:
    """Return HISTORY rows of the versions in order; nulls for a commit without commitInfo.

    Parameters and metrics that are not text are shown as JSON, like in Spark.
    """
    rows = []
    for version, time in zip(versions, times, strict=True):
        info = infos.get(version, {})
        job, notebook = info.get("job"), info.get("notebook")
        rows.append(
            {
                "version": version,
                "timestamp": time,
                **{name: to_text(info.get(name)) for name in HISTORY.names if HISTORY.field(name).type == pa.string()},
                "operationParameters": _texts(info.get("operationParameters")),
                "job": _named(job, _JOB),
                "notebook": _named(notebook, _NOTEBOOK),
                "readVersion": _long(info.get("readVersion")),
                "isBlindAppend": info.get("isBlindAppend") if isinstance(info.get("isBlindAppend"), bool) else None,
                "operationMetrics": _texts(info.get("operationMetrics")),
            }
        )
    return pa.Table.from_pylist(rows, HISTORY)


def table_features(protocol: Protocol) -> list[str]:
    """Return the features of a table, sorted: named features, and features implied by older protocol versions.

    Source: delta PROTOCOL.md, "Table Features"; delta TableFeatureSupport.implicitlySupportedFeatures.
    """
    named = set(protocol.reader_features or ()) | set(protocol.writer_features or ())
    if protocol.min_writer_version < _FEATURES_FROM:
        named |= {
            name
            for name, reader, writer in _IMPLIED
            if protocol.min_reader_version >= reader and protocol.min_writer_version >= writer
        }
    return sorted(named)


def clustering_columns(state: DeltaState) -> list[str]:
    """Return the clustering columns by their logical names, nested ones with dots; empty without any.

    Source: delta PROTOCOL.md, "Clustered Table".
    """
    clustering = _json(state.domains.get("delta.clustering"))
    columns = clustering.get("clusteringColumns") if isinstance(clustering, dict) else None
    if not isinstance(columns, list):
        return []
    paths = [column.get("physicalName") if isinstance(column, dict) else column for column in columns]
    parts = [[path] if isinstance(path, str) else path for path in paths]
    return [
        ".".join(_logical(path, state.metadata))
        for path in parts
        if isinstance(path, list) and all(isinstance(name, str) for name in path)
    ]


def _logical(path: Sequence[str], metadata: Metadata) -> list[str]:
    """Return the logical names of a path of physical ones; an unknown name stays unchanged."""
    names = []
    data_type = _json(metadata.schema_json)
    for physical in path:
        fields = data_type.get("fields") if isinstance(data_type, dict) else None
        field: dict[str, Any] = next((item for item in fields or () if _physical(item) == physical), {})
        names.append(str(field.get("name", physical)))
        data_type = field.get("type")
    return names


def _physical(field: object) -> object:
    if not isinstance(field, dict):
        return None
    metadata = field.get("metadata")
    return (metadata if isinstance(metadata, dict) else {}).get("delta.columnMapping.physicalName", field.get("name"))


def _properties(state: DeltaState) -> list[tuple[str, str]]:
    return sorted(state.metadata.configuration.items())


def _transactions(state: DeltaState) -> pa.Table:
    rows = [
        {"appId": item.app_id, "version": item.version, "lastUpdated": _parse_millis(item.last_updated)}
        for _, item in sorted(state.transactions.items())
    ]
    return pa.Table.from_pylist(rows, _TRANSACTIONS)


def to_text(value: Any) -> str | None:
    """Return a value of commitInfo as text: text and null unchanged, other values as JSON."""
    return value if value is None or isinstance(value, str) else json_text.dumps(value)


def _texts(value: Any) -> list[tuple[str, str | None]] | None:
    return [(key, to_text(item)) for key, item in value.items()] if isinstance(value, dict) else None


def _named(value: Any, dtype: pa.StructType) -> dict[str, str | None] | None:
    return {field.name: to_text(value.get(field.name)) for field in dtype} if isinstance(value, dict) else None


def _long(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def _parse_millis(millis: int | None) -> datetime | None:
    try:
        return None if millis is None else from_millis(millis)
    except OverflowError:
        return None


def _json(content: str | None) -> Any:
    try:
        return None if content is None else orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
