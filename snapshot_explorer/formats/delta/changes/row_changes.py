"""The files that contain changes: change data files if a commit wrote any, otherwise added and removed files.

Source: delta PROTOCOL.md, "Add CDC File", "Reader Requirements for AddCDCFile"; delta CDCReader.scala.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import CorruptTableError, InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import ROW_KIND, ChangeMode, Split
from snapshot_explorer.formats.delta import features
from snapshot_explorer.formats.delta.changes.events import HIDDEN, STORED_CHANGE, DeltaEvents, DeltaVectorDifference
from snapshot_explorer.formats.delta.files.deletion_vectors import vector_of
from snapshot_explorer.formats.delta.metadata.data_types import DeltaDataType, DeltaField, arrow_field, is_widening
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.records import STRINGS, Actions, Metadata, Protocol
from snapshot_explorer.formats.delta.metadata.schema import DeltaSchema, mapping_mode, schema_of
from snapshot_explorer.formats.delta.metadata.supported import check_readable
from snapshot_explorer.formats.delta.metadata.times import Times
from snapshot_explorer.formats.delta.scan.native_files import split_by_file
from snapshot_explorer.formats.delta.scan.planning import file_splits
from snapshot_explorer.formats.delta.scan.plans import DeltaPlan
from snapshot_explorer.formats.features import CHANGE_COLUMN_CONFLICT, refusal
from snapshot_explorer.formats.settings import parse_flag
from snapshot_explorer.formats.split_requests import detail_of
from snapshot_explorer.storage import Storage

_MERGE_METRICS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
"""The metrics of the rows that a MERGE changed."""


class ChangeData:
    """Plans splits of changed rows. Thread-safe: it has no state."""

    def __init__(self, storage: Storage, log: DeltaLog, times: Times) -> None:
        self._storage = storage
        self._log = log
        self._times = times

    def schema(self, first: int, last: int) -> pa.Schema:
        """Return the Arrow schema of the changes after `first` up to `last`."""
        version = reading_version(self._log, min(first + 1, last), last)
        metadata = self._log.protocol_and_metadata(version)[1]
        return pa.schema([arrow_field(field) for field in schema_of(metadata).fields])

    def of_version(self, version: int) -> list[Split]:
        """Return splits of the rows that a version changed, under its own schema, as `between` in the mode auto."""
        actions = self._log.actions([version])
        schema = check_readable(*self._log.protocol_and_metadata(version))
        check_names(schema)
        return self._splits([version], actions, schema, derived=False)

    def recorded(self, version: int) -> list[Split]:
        """Return a split per change data file of a version, under its own schema."""
        if not self._log.actions([version]).cdc.num_rows:
            return []
        return [
            replace(part, raw=False, live_rows=None, detail=replace(split.detail, files=part))
            for split in self.of_version(version)
            if isinstance(split.detail, DeltaEvents)
            for part in split_by_file(split.detail.files)
        ]

    def between(self, first: int, last: int, mode: ChangeMode) -> list[Split]:
        """Return splits of the rows that changed after `first` up to `last`: by version, deletes before inserts.

        Reads the commits in the range at once, and the protocol and metadata in force at its ends and at the newest
        version. Data files are opened when a split is read.

        Args:
            first: The version before the first included one; -1 for all from 0 on.
            last: The last included version.
            mode: `auto`: change data files if a version has some, otherwise changes derived from its files and
                deletion vectors. `delta`: always derived changes. `changelog`: as auto, if all versions recorded
                their changes.
        """
        if mode == "diff":
            raise refusal(features.DIFFERENCE)
        versions = range(first + 1, last + 1)
        actions = self._log.actions(versions)
        reading = reading_version(self._log, versions[0], last)
        schema = check_readable(*self._log.protocol_and_metadata(reading))
        defined = definitions(self._log, versions[0], actions)
        if mode == "changelog":
            check_recorded(defined)
        check_schemas(defined, schema, reading)
        return self._splits(versions, actions, schema, derived=mode == "delta")

    def _splits(self, versions: Sequence[int], actions: Actions, schema: DeltaSchema, *, derived: bool) -> list[Split]:
        times = self._times.commit_times(versions, actions.commit_infos)
        splits: list[Split] = []
        for version, time in zip(versions, times, strict=True):
            commit = _Commit(
                version=version,
                committed_at=time,
                adds=_of_version(actions.adds, version),
                removes=_of_version(actions.removes, version),
                cdc=_of_version(actions.cdc, version),
                is_noop_merge=_is_noop_merge(actions.commit_infos.get(version, {})),
            )
            splits.extend(self._of_commit(commit, schema, derived=derived))
        return splits

    def _of_commit(self, commit: "_Commit", schema: DeltaSchema, *, derived: bool) -> Iterator[Split]:
        if commit.cdc.num_rows and not derived:
            yield from self._events(commit, commit.cdc, schema.with_columns([STORED_CHANGE]), None)
            return
        adds, removes = _data_changes(commit.adds), _data_changes(commit.removes)
        if commit.is_noop_merge or not (adds.num_rows or removes.num_rows):
            return
        removes = self._with_partitions(removes, schema, commit.version)
        readded_adds, replaced = (
            pc.is_in(adds["path"], single_chunk(removes["path"])),
            pc.is_in(removes["path"], single_chunk(adds["path"])),
        )
        vector_changes = _with_old_vectors(adds.filter(readded_adds), removes.filter(replaced))
        yield from self._events(commit, removes.filter(pc.invert(replaced)), schema, "delete")
        yield from self._vector_changes(commit, vector_changes, schema, "delete")
        yield from self._vector_changes(commit, vector_changes, schema, "insert")
        yield from self._events(commit, adds.filter(pc.invert(readded_adds)), schema, "insert")

    def _with_partitions(self, removes: pa.Table, schema: DeltaSchema, version: int) -> pa.Table:
        """Return removes with partition values, taken from the removed adds if an old writer left them out."""
        columns = removes["partition_values"].to_pylist()
        if not schema.partition_columns or all(columns):
            return removes
        live = self._log.state(version - 1).adds
        known = dict(zip(live["path"].to_pylist(), live["partition_values"].to_pylist(), strict=True))
        paths = removes["path"].to_pylist()
        values = [pairs or known.get(path) for path, pairs in zip(paths, columns, strict=True)]
        if None in values:
            path = paths[values.index(None)]
            raise CorruptTableError(
                f"Version {version} removes {path} without its partition values, and no earlier version has the file. "
                "Start at a newer version."
            )
        index = removes.column_names.index("partition_values")
        return removes.set_column(index, "partition_values", pa.array(values, STRINGS))

    def _events(self, commit: "_Commit", files: pa.Table, schema: DeltaSchema, change: str | None) -> Iterator[Split]:
        """Yield splits of files whose rows are all included, with one kind of change or the kinds in the files."""
        _check_partitions(files, schema, commit.version)
        for split in file_splits(self._storage, files, schema):
            yield _with_events(split, commit, change, None)

    def _vector_changes(self, commit: "_Commit", pairs: pa.Table, schema: DeltaSchema, change: str) -> Iterator[Split]:
        """Yield a split per file whose deletion vector changed: of the rows that it deleted or restored.

        Args:
            pairs: ADDS, and in `replaced` the deletion vector that each had.
            change: delete or insert.
        """
        _check_partitions(pairs, schema, commit.version)
        for index, replaced in enumerate(pairs["before"].to_pylist()):
            for split in file_splits(self._storage, pairs.slice(index, 1).drop_columns(["before"]), schema):
                (file,) = _plan(split).files
                old, new = vector_of(replaced, self._storage, file.path), file.vector
                deleted_by, not_deleted_by = (new, old) if change == "delete" else (old, new)
                if deleted_by is not None:
                    vector_difference = DeltaVectorDifference(
                        path=file.path, rows=file.rows, deleted_by=deleted_by, not_deleted_by=not_deleted_by
                    )
                    yield _with_events(split, commit, change, vector_difference)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Commit:
    version: int
    committed_at: datetime | None
    adds: pa.Table
    removes: pa.Table
    cdc: pa.Table
    is_noop_merge: bool
    """Whether it is a MERGE that changed nothing and rewrote the same rows."""


def _with_events(
    split: Split, commit: _Commit, change: str | None, vector_difference: DeltaVectorDifference | None
) -> Split:
    columns = tuple(field.name for field in _plan(split).schema.fields if field != STORED_CHANGE)
    events = DeltaEvents(
        files=split,
        change=change,
        version=commit.version,
        committed_at=commit.committed_at,
        columns=columns,
        vector_difference=vector_difference,
    )
    live_rows = None if vector_difference or change is None else split.live_rows
    return replace(split, raw=False, live_rows=live_rows, detail=events)


def _plan(split: Split) -> DeltaPlan:
    return detail_of(split, DeltaPlan, "Delta Lake")


def _with_old_vectors(adds: pa.Table, removes: pa.Table) -> pa.Table:
    indices = pc.index_in(adds["path"], single_chunk(removes["path"]))
    return adds.append_column("before", single_chunk(removes["deletion_vector"]).take(indices))


def _is_noop_merge(info: Mapping[str, Any]) -> bool:
    """Return whether a commit is a MERGE that changed no row.

    Source: delta CDCReader.scala, shouldSkipFileActionsInCommit.
    """
    metrics = info.get("operationMetrics")
    if info.get("operation") != "MERGE" or not isinstance(metrics, dict):
        return False
    return all(str(metrics.get(name)) == "0" for name in _MERGE_METRICS)


def _data_changes(files: pa.Table) -> pa.Table:
    """Return the files of actions that change data; a missing flag means true."""
    return files.filter(pc.fill_null(files["data_change"], True))  # noqa: FBT003 - pyarrow's


def _of_version(files: pa.Table, version: int) -> pa.Table:
    return files.filter(pc.equal(files["version"], version))


def _check_partitions(files: pa.Table, schema: DeltaSchema, version: int) -> None:
    """Refuse files that were written under other partition columns: their columns are stored differently."""
    stored = {field.stored for field in schema.partition_fields}
    for path, pairs in zip(files["path"].to_pylist(), files["partition_values"].to_pylist(), strict=True):
        names = {name for name, _ in pairs or ()}
        if names - stored or (stored and not names):
            raise refusal(
                features.CHANGES_ACROSS_PARTITIONS,
                version=version,
                path=path,
                columns=", ".join(sorted(names)) or "none",
            )


RECORDED = ("delta.enableChangeDataFeed", "delta.enableChangeDataCapture")
"""The properties that make writers record changes, new name first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Protocol and metadata in force from a version on."""

    version: int
    protocol: Protocol
    metadata: Metadata


def reading_version(log: DeltaLog, start: int, end: int) -> int:
    """Return the version under whose schema the changes of a range are read.

    That is the newest version; if columns are mapped at the start, at the end or in the newest version, it is the end.
    """
    newest = log.versions()[-1]
    for version in sorted({start, end, newest}):
        metadata = log.protocol_and_metadata(version)[1]
        if mapping_mode(metadata) != "none":
            return end
    return newest


def definitions(log: DeltaLog, start: int, actions: Actions) -> list[Definition]:
    """Return the definition at the first version of a range, and at each version that changed it."""
    protocol, metadata = log.protocol_and_metadata(start)
    result = [Definition(version=start, protocol=protocol, metadata=metadata)]
    for version in sorted({*actions.protocols, *actions.metadatas}):
        if version > start:
            protocol = actions.protocols.get(version, protocol)
            metadata = actions.metadatas.get(version, metadata)
            result.append(Definition(version=version, protocol=protocol, metadata=metadata))
    return result


def check_recorded(defined: Sequence[Definition]) -> None:
    """Check that all versions of a range recorded their changes."""
    for item in defined:
        if not any(parse_flag(item.metadata.configuration, name) for name in RECORDED):
            raise InvalidArgumentError(
                Message(
                    f"Version {item.version} did not record its changes: {RECORDED[0]} is not true there "
                    "(DELTA_MISSING_CHANGE_DATA). Start at a version after it was set, or leave out ",
                    Hint("", {"mode": "changelog"}),
                    ": changes that were not recorded are then derived from files.",
                )
            )


def check_schemas(defined: Sequence[Definition], schema: DeltaSchema, reading: int) -> None:
    """Check that the rows of a range can be read under one schema.

    Columns may have been added or widened; any other change is refused.
    """
    check_names(schema)
    for item in defined:
        older = check_readable(item.protocol, item.metadata)
        problem = _incompatible_column(older.fields, schema.fields, is_mapped=schema.mode != "none")
        if problem is None and _partition_names(older) != _partition_names(schema):
            problem = "the partition columns are others"
        if problem is not None:
            raise refusal(features.CHANGES_ACROSS_SCHEMAS, version=item.version, reading=reading, what=problem)


def check_names(schema: DeltaSchema) -> None:
    """Refuse a table with a column that has the name of a change column."""
    names = {field.name for field in schema.fields}
    conflicts = [name for name in (ROW_KIND, *HIDDEN.names[:1]) if name in names]
    if conflicts:
        raise refusal(CHANGE_COLUMN_CONFLICT, column=conflicts[0])


def _partition_names(schema: DeltaSchema) -> list[str]:
    return [field.stored for field in schema.partition_fields]


def _incompatible_column(
    before: Sequence[DeltaField], after: Sequence[DeltaField], *, is_mapped: bool, prefix: str = ""
) -> str | None:
    """Return as text how the later schema drops or changes the first incompatible column; None if all fit."""
    known: Mapping[object, DeltaField] = {_key(field, is_mapped=is_mapped): field for field in after}
    for field in before:
        name = f"{prefix}{field.name}"
        now = known.get(_key(field, is_mapped=is_mapped))
        if now is None:
            return f"the column {name} was dropped or renamed"
        if now.name.lower() != field.name.lower():
            return f"the column {name} was renamed to {now.name}"
        problem = _type_change(field.type, now.type, name, is_mapped=is_mapped)
        if problem is not None:
            return problem
    return None


def _key(field: DeltaField, *, is_mapped: bool) -> object:
    return field.stored if is_mapped else field.name.lower()


def _type_change(before: DeltaDataType, after: DeltaDataType, name: str, *, is_mapped: bool) -> str | None:
    if before.root == after.root == "struct":
        return _incompatible_column(before.fields, after.fields, is_mapped=is_mapped, prefix=f"{name}.")
    if before.root == after.root and before.root in ("array", "map"):
        pairs = [(before.key, after.key), (before.element, after.element)]
        changes = (_type_change(old, new, name, is_mapped=is_mapped) for old, new in pairs if old and new)
        return next((problem for problem in changes if problem is not None), None)
    return None if is_widening(before, after) else f"the type of the column {name} is another"
