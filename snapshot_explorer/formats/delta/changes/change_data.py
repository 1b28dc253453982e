"""Which files tell what changed: change data where it was written, otherwise files added and removed.

Source: delta PROTOCOL.md, "Add CDC File", "Reader Requirements for AddCDCFile"; delta CDCReader.scala.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.formats.delta.changes.change_schema import (
    check_names,
    check_recorded,
    check_schemas,
    definitions,
    reading_version,
)
from snapshot_explorer.formats.delta.changes.events import STORED_CHANGE, Events, Marked
from snapshot_explorer.formats.delta.files.deletion_vectors import vector_of
from snapshot_explorer.formats.delta.log.data_types import arrow_field
from snapshot_explorer.formats.delta.log.features import check_readable
from snapshot_explorer.formats.delta.log.log import Log
from snapshot_explorer.formats.delta.log.records import STRINGS, Actions
from snapshot_explorer.formats.delta.log.schema import Schema, schema_of
from snapshot_explorer.formats.delta.log.times import Times
from snapshot_explorer.formats.delta.scan.planning import file_splits
from snapshot_explorer.formats.delta.scan.plans import Plan
from snapshot_explorer.model import ChangeMode, Split
from snapshot_explorer.storage import Storage

_TOUCHED = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
"""Where a MERGE says how many rows it changed."""


class ChangeData:
    """Finds the files that tell of changes. Thread-safe: it keeps nothing."""

    def __init__(self, storage: Storage, log: Log, times: Times) -> None:
        """Bind to a table. Reads nothing."""
        self._storage = storage
        self._log = log
        self._times = times

    def schema(self, first: int, last: int) -> pa.Schema:
        """Return the Arrow schema under which the changes after `first` up to `last` are told."""
        version = reading_version(self._log, min(first + 1, last), last)
        metadata = self._log.protocol_and_metadata(version)[1]
        return pa.schema([arrow_field(field) for field in schema_of(metadata).fields])

    def of_version(self, version: int) -> list[Split]:
        """Return splits of what a version changed, under its own schema; as `between` in the mode auto.

        Raises: as `between`.
        """
        actions = self._log.actions([version])
        schema = check_readable(*self._log.protocol_and_metadata(version))
        check_names(schema)
        return self._splits([version], actions, schema, derived=False)

    def between(self, first: int, last: int, mode: ChangeMode) -> list[Split]:
        """Return splits of what changed after `first` up to `last`: by version, what is gone before what is new.

        Reads the commits in the range at once, and the protocol and metadata in force at its ends and at the newest
        version. Data files are opened when a split is read.

        Args:
            first: The version before the first one that counts; -1 for all from 0 on.
            last: The last one.
            mode: `auto`: change data files where a version has some, otherwise what follows from its files and
                deletion vectors. `delta`: the latter always. `changelog`: as auto, if all versions recorded their
                changes.

        Raises:
            InvalidArgumentError: The mode is changelog, and changes were not recorded.
            UnsupportedFeatureError: The mode is diff; the range cannot be told under one schema; or it needs a
                feature that is not read.
            SnapshotNotFoundError: A commit is gone.
            CorruptTableError: A commit is damaged, or does not carry its time.
        """
        if mode == "diff":
            raise UnsupportedFeatureError(
                "mode='diff' tells rows apart by a primary key, and a Delta table has none. Use mode='auto' for what "
                "each commit changed, or compare to_arrow() of both versions."
            )
        versions = range(first + 1, last + 1)
        actions = self._log.actions(versions)
        reading = reading_version(self._log, versions[0], last)
        schema = check_readable(*self._log.protocol_and_metadata(reading))
        defined = definitions(self._log, versions[0], actions)
        if mode == "changelog":
            check_recorded(defined)
        check_schemas(defined, schema, reading)
        return self._splits(versions, actions, schema, derived=mode == "delta")

    def _splits(self, versions: Sequence[int], actions: Actions, schema: Schema, *, derived: bool) -> list[Split]:
        times = self._times.told(versions, actions.commit_infos)
        splits: list[Split] = []
        for version, time in zip(versions, times, strict=True):
            commit = _Commit(
                version=version,
                committed_at=time,
                adds=_of_version(actions.adds, version),
                removes=_of_version(actions.removes, version),
                cdc=_of_version(actions.cdc, version),
                is_idle=_is_idle(actions.commit_infos.get(version, {})),
            )
            splits.extend(self._of_commit(commit, schema, derived=derived))
        return splits

    def _of_commit(self, commit: "_Commit", schema: Schema, *, derived: bool) -> Iterator[Split]:
        if commit.cdc.num_rows and not derived:
            yield from self._events(commit, commit.cdc, schema.with_columns([STORED_CHANGE]), None)
            return
        adds, removes = _changing(commit.adds), _changing(commit.removes)
        if commit.is_idle or not (adds.num_rows or removes.num_rows):
            return
        removes = self._with_partitions(removes, schema, commit.version)
        again, before = (
            pc.is_in(adds["path"], single_chunk(removes["path"])),
            pc.is_in(removes["path"], single_chunk(adds["path"])),
        )
        remarked = _pairs(adds.filter(again), removes.filter(before))
        yield from self._events(commit, removes.filter(pc.invert(before)), schema, "delete")
        yield from self._remarked(commit, remarked, schema, "delete")
        yield from self._remarked(commit, remarked, schema, "insert")
        yield from self._events(commit, adds.filter(pc.invert(again)), schema, "insert")

    def _with_partitions(self, removes: pa.Table, schema: Schema, version: int) -> pa.Table:
        """Return removes with partition values: where an old writer left them out, those of the adds that they end."""
        own = removes["partition_values"].to_pylist()
        if not schema.partition_columns or all(own):
            return removes
        live = self._log.state(version - 1).adds
        known = dict(zip(live["path"].to_pylist(), live["partition_values"].to_pylist(), strict=True))
        paths = removes["path"].to_pylist()
        values = [pairs or known.get(path) for path, pairs in zip(paths, own, strict=True)]
        if None in values:
            path = paths[values.index(None)]
            raise CorruptTableError(
                f"Version {version} removes {path} and does not say of which partition; no version before it has the "
                "file. Begin at a newer version."
            )
        place = removes.column_names.index("partition_values")
        return removes.set_column(place, "partition_values", pa.array(values, STRINGS))

    def _events(self, commit: "_Commit", files: pa.Table, schema: Schema, change: str | None) -> Iterator[Split]:
        """Yield splits of files all of whose rows count: of one change, or of those that the files say."""
        _check_partitions(files, schema, commit.version)
        for split in file_splits(self._storage, files, schema):
            yield _told(split, commit, change, None)

    def _remarked(self, commit: "_Commit", pairs: pa.Table, schema: Schema, change: str) -> Iterator[Split]:
        """Yield a split per file whose deletion vector changed: of the rows that it took away, or gave back.

        Args:
            commit: What the files are of.
            pairs: ADDS, and in `before` the deletion vector that each had.
            schema: What the rows are told under.
            change: delete or insert.
        """
        _check_partitions(pairs, schema, commit.version)
        for place, before in enumerate(pairs["before"].to_pylist()):
            for split in file_splits(self._storage, pairs.slice(place, 1).drop_columns(["before"]), schema):
                (file,) = _plan(split).files
                old, new = vector_of(before, self._storage, file.path), file.vector
                within, without = (new, old) if change == "delete" else (old, new)
                if within is not None:
                    marked = Marked(path=file.path, rows=file.rows, within=within, without=without)
                    yield _told(split, commit, change, marked)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Commit:
    """What a version did, as far as rows are concerned."""

    version: int
    """The version."""
    committed_at: datetime | None
    """When it was committed; None where nothing says so."""
    adds: pa.Table
    """ADDS."""
    removes: pa.Table
    """REMOVES."""
    cdc: pa.Table
    """CDC."""
    is_idle: bool
    """Whether it is a MERGE that found nothing to do, and wrote the same rows again."""


def _told(split: Split, commit: _Commit, change: str | None, marked: Marked | None) -> Split:
    own = tuple(field.name for field in _plan(split).schema.fields if field != STORED_CHANGE)
    events = Events(
        files=split,
        change=change,
        version=commit.version,
        committed_at=commit.committed_at,
        columns=own,
        marked=marked,
    )
    counted = None if marked or change is None else split.counted
    return replace(split, raw=False, counted=counted, detail=events)


def _plan(split: Split) -> Plan:
    if not isinstance(split.detail, Plan):
        raise InvalidArgumentError("The split is not one of a Delta table. Give one that splits() returned.")
    return split.detail


def _pairs(adds: pa.Table, removes: pa.Table) -> pa.Table:
    """Return the adds with the deletion vectors that their files had before."""
    places = pc.index_in(adds["path"], single_chunk(removes["path"]))
    return adds.append_column("before", single_chunk(removes["deletion_vector"]).take(places))


def _is_idle(info: Mapping[str, Any]) -> bool:
    """Return whether a commit is a MERGE that changed no row.

    Source: delta CDCReader.scala, shouldSkipFileActionsInCommit.
    """
    metrics = info.get("operationMetrics")
    if info.get("operation") != "MERGE" or not isinstance(metrics, dict):
        return False
    return all(str(metrics.get(name)) == "0" for name in _TOUCHED)


def _changing(files: pa.Table) -> pa.Table:
    """Return the files of actions that change data; one that does not say so does."""
    return files.filter(pc.fill_null(files["data_change"], True))  # noqa: FBT003 - pyarrow's


def _of_version(files: pa.Table, version: int) -> pa.Table:
    return files.filter(pc.equal(files["version"], version))


def _check_partitions(files: pa.Table, schema: Schema, version: int) -> None:
    """Refuse files that were written when the table was partitioned otherwise: their columns lie elsewhere."""
    stored = {field.stored for field in schema.partition_fields}
    for path, pairs in zip(files["path"].to_pylist(), files["partition_values"].to_pylist(), strict=True):
        names = {name for name, _ in pairs or ()}
        if names - stored or (stored and not names):
            raise UnsupportedFeatureError(
                f"Version {version} tells of the file {path}, which was written when the table had other partition "
                f"columns ({', '.join(sorted(names)) or 'none'}); its rows are not told under those of now. Leave the "
                "version out of the range."
            )
