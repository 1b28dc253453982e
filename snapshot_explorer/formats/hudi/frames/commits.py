"""The COMMITS frame of Hudi tables."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import from_numpy
from snapshot_explorer.core import frames
from snapshot_explorer.core.records import Kind
from snapshot_explorer.formats.capabilities import CommitClock
from snapshot_explorer.formats.hudi.metadata.commits import CommitMetadata, details, written_files
from snapshot_explorer.formats.hudi.metadata.file_states import FileStates, sums
from snapshot_explorer.formats.hudi.metadata.history import HudiHistory, HudiSource, committed_at, empty_note
from snapshot_explorer.formats.hudi.metadata.timeline import Instant
from snapshot_explorer.formats.row_counts import RECORDED, RowChanges, logical_counts

_KINDS: Mapping[str, Kind] = {
    "INSERT": "append",
    "INSERT_PREPPED": "append",
    "BULK_INSERT": "append",
    "BULK_INSERT_PREPPED": "append",
    "BOOTSTRAP": "append",
    "UPSERT": "update",
    "UPSERT_PREPPED": "update",
    "DELETE": "delete",
    "DELETE_PREPPED": "delete",
    "DELETE_PARTITION": "delete",
    "INSERT_OVERWRITE": "overwrite",
    "INSERT_OVERWRITE_TABLE": "overwrite",
    "COMPACT": "compact",
    "LOG_COMPACT": "compact",
    "CLUSTER": "compact",
    "ALTER_SCHEMA": "schema",
    "INDEX": "maintenance",
    "BUCKET_RESCALE": "maintenance",
}

_DELETING = ("DELETE", "DELETE_PREPPED", "DELETE_PARTITION")

_COUNTED = (("numWrites", "rows"), ("numInserts", "inserts"), ("numUpdateWrites", "updates"), ("numDeletes", "deletes"))
"""The sums in the details of a commit, by the names of fields of its write stats, and the columns of WRITTEN."""


@dataclass(frozen=True, kw_only=True)
class HudiClock(CommitClock):
    """Commit times by the clocks of writers."""

    history: HudiHistory

    @property
    def note(self) -> str | None:
        if self.history.current().config.has_utc_times:
            return None
        return (
            "Times are as the writers' clocks showed them, in zones that are not recorded: "
            "hoodie.table.timeline.timezone is not UTC."
        )

    def notes_on(self, commits: pa.Table) -> tuple[str, ...]:
        # A commit that cannot be read has no identifier either.
        is_empty = pc.and_(commits.column("operation").is_null(), commits.column("identifier").is_valid())
        versions = sorted(commits.filter(is_empty).column("version").to_pylist())
        return (*([empty_note(versions)] if versions else []), *super().notes_on(commits))


def commits_frame(source: HudiSource, versions: Sequence[int], tags: Mapping[int, Sequence[str]]) -> pa.Table:
    """Return the COMMITS frame, in the order of the versions. Reads the metadata of all commits.

    Counts of rows are null if log files are involved: their records are changes. All counts of a commit whose file is
    empty are null. Counts of removed files are null if the commit removed unknown files.
    """
    state = source.state
    wrong = next((version for version in versions if version in state.unread.errors), None)
    if wrong is not None:  # such as a copy of another commit
        raise copy(state.unread.errors[wrong])
    commits = source.commits(versions)
    totals = dict(zip(state.versions, state.total_rows, strict=True))
    instants = [source.instant(version) for version in versions]
    files = written_files(commits)
    of_version = np.repeat(np.arange(len(versions)), [commit.end - commit.start for commit in commits.values()])
    metrics = {
        name: sums(pc.fill_null(files.column(column), 0), of_version, len(versions)).to_pylist()
        for name, column in _COUNTED
    }
    changes_rows = np.zeros(len(versions), np.bool_)
    changes_rows[of_version[_changes_rows(files)]] = True
    is_empty = np.array([commit.is_empty for commit in commits.values()], np.bool_)
    counts = _counts(state, versions, is_empty)
    is_service = np.array([commit.is_service for commit in commits.values()], np.bool_)
    is_even = np.array(pc.fill_null(pc.equal(counts["added_rows"], counts["removed_rows"]), fill_value=False), np.bool_)
    columns = {
        "version": pa.array(versions, pa.int64()),
        "committed_at": pa.array(committed_at(source, versions), frames.COMMITS.field("committed_at").type),
        "kind": [
            _kind_of(commit, instant.action, changes_rows=changes)
            for commit, instant, changes in zip(commits.values(), instants, changes_rows.tolist(), strict=True)
        ],
        "operation": [
            None if commit.is_empty else commit.operation or instant.action
            for commit, instant in zip(commits.values(), instants, strict=True)
        ],
        "identifier": [_identifier(instant.text, instant.completion, instant.action) for instant in instants],
        **counts,
        **logical_counts(
            RowChanges(
                added=counts["added_rows"],
                removed=counts["removed_rows"],
                removes_files=pc.fill_null(counts["removed_files"], 1).to_numpy() > 0,
                # Compactions of log files with deletes by event time change rows: seen with Hudi 0.15.
                keeps_rows=is_service & is_even,
                is_plain=~is_service,
                deletes_only=np.array([commit.operation in _DELETING for commit in commits.values()], np.bool_),
                recorded=_recorded(metrics, counts, instants),
            )
        ),
        "total_rows": pa.array([totals.get(version) for version in versions], pa.int64()),
        "tags": [list(tags.get(version, ())) for version in versions],
        "details": [
            details({"operationMetrics": counts, **commit.recorded} if commit.start < commit.end else commit.recorded)
            for commit, counts in zip(commits.values(), _records(metrics), strict=True)
        ],
    }
    return frames.table_of(frames.COMMITS, columns)


def _recorded(
    metrics: Mapping[str, Sequence[int]], counts: Mapping[str, pa.Array], instants: Sequence[Instant]
) -> dict[str, pa.Array]:
    """Return the counts that writers recorded; null where files do not confirm them, and for replaced file groups.

    A writer counts deletes of keys that the table does not have, and log files contain changes that may have no effect.

    Source: hudi HoodieWriteMergeHandle, HoodieCreateHandle, HoodieAppendHandle.
    """
    is_written = pa.array([instant.action != "replacecommit" for instant in instants], pa.bool_())
    is_known = pc.and_(is_written, pc.and_(counts["added_rows"].is_valid(), counts["removed_rows"].is_valid()))
    names = ("numInserts", "numUpdateWrites", "numDeletes")
    return {
        name: pc.if_else(is_known, pa.array(metrics[metric], pa.int64()), None)
        for name, metric in zip(RECORDED, names, strict=True)
    }


def _records(columns: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _counts(state: FileStates, versions: Sequence[int], is_empty: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
    added, removed = state.counts(versions, "first"), state.counts(versions, "removed")
    counts = {
        "added_files": from_numpy(added.files.astype(np.int64)),
        "removed_files": from_numpy(removed.files.astype(np.int64)),
        "added_rows": added.rows,
        # An added log file may delete rows of files that stay.
        "removed_rows": pc.if_else(added.rows.is_valid(), removed.rows, pa.scalar(None, pa.int64())),
        "added_bytes": added.size_bytes,
        "removed_bytes": removed.size_bytes,
    }
    removes_lost = np.isin(versions, [lost.removed for lost in state.lost_slices])
    removes_lost |= np.asarray(versions, np.int64) >= state.unknown_from
    adds_others = np.isin(versions, state.after_missing)
    # Log files belong to slices that cannot be distinguished.
    adds_others |= np.asarray(versions, np.int64) >= state.unread.blocked_from
    return {
        name: pc.if_else(
            from_numpy(is_empty | (removes_lost if name.startswith("removed") else adds_others)),
            pa.scalar(None, pa.int64()),
            values,
        )
        for name, values in counts.items()
    }


def _changes_rows(files: pa.Table) -> npt.NDArray[np.bool_]:
    """Return which files have rows that were updated or deleted."""
    is_change = pc.or_(pc.not_equal(files.column("updates"), 0), pc.not_equal(files.column("deletes"), 0))
    # Flink, and Spark with some indexes, insert into log files.
    others = pc.fill_null(pc.not_equal(files.column("inserts"), files.column("rows")), fill_value=True)
    return np.asarray(pc.or_(is_change, pc.and_(files.column("is_log"), others)).to_numpy(), np.bool_)


def _kind_of(commit: CommitMetadata, action: str, *, changes_rows: bool) -> Kind:
    if commit.is_service:
        return "compact"
    kind = _KINDS.get(commit.operation or "", "other")
    if kind == "update" and not changes_rows:
        return "append"
    return "overwrite" if kind == "other" and action == "replacecommit" else kind


def _identifier(text: str, completion: str | None, action: str) -> str:
    return f"{text}_{completion}.{action}" if completion else f"{text}.{action}"
