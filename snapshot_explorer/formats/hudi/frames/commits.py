"""The COMMITS frame of Hudi tables."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.formats.hudi.metadata.commits import CommitMetadata, commit_details
from snapshot_explorer.formats.hudi.metadata.file_groups import StoredFile
from snapshot_explorer.formats.hudi.metadata.history import HudiSource, committed_at
from snapshot_explorer.model import Kind

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

_UNKNOWN = dict.fromkeys(f"{side}_{what}" for side in ("added", "removed") for what in ("files", "rows", "bytes"))
"""The counts of a commit whose file is empty."""


def commits_frame(source: HudiSource, versions: Sequence[int], tags: Mapping[int, Sequence[str]]) -> pa.Table:
    """Return the COMMITS frame, in the order of the versions. Reads the metadata of all commits.

    Counts of rows are null where log files are concerned: their records are changes. All counts of a commit whose file
    is empty are null.
    """
    state = source.state
    commits = source.commits(versions)
    totals = state.total_rows
    is_known = not state.lost
    rows = []
    for version, time in zip(versions, committed_at(source, versions), strict=True):
        instant, commit = source.instant(version), commits[version]
        added, removed = state.added.get(version, ()), state.removed.get(version, ())
        rows.append(
            {
                "version": version,
                "committed_at": time,
                "kind": kind_of(commit, instant.action),
                "operation": None if commit.is_empty else commit.operation or instant.action,
                "identifier": _identifier(instant.text, instant.completion, instant.action),
                **(_UNKNOWN if commit.is_empty else _counts(added, removed)),
                "total_rows": totals[version] if is_known else None,
                "tags": list(tags.get(version, ())),
                "details": commit_details(commit),
            }
        )
    return pa.Table.from_pylist(rows, frames.COMMITS)


def _counts(added: Sequence[StoredFile], removed: Sequence[StoredFile]) -> dict[str, int | None]:
    return {
        "added_files": len(added),
        "removed_files": len(removed),
        "added_rows": _rows(added),
        "removed_rows": _removed_rows(added, removed),
        "added_bytes": _bytes(added),
        "removed_bytes": _bytes(removed),
    }


def kind_of(commit: CommitMetadata, action: str) -> Kind:
    """Return the kind of a commit."""
    if commit.is_service:
        return "compact"
    kind = _KINDS.get(commit.operation or "", "other")
    # Flink, and Spark with some indexes, insert into log files.
    if kind == "update" and not any(
        stat.updates or stat.deletes or (stat.is_log and stat.inserts != stat.rows) for stat in commit.stats
    ):
        return "append"
    return "overwrite" if kind == "other" and action == "replacecommit" else kind


def _identifier(text: str, completion: str | None, action: str) -> str:
    return f"{text}_{completion}.{action}" if completion else f"{text}.{action}"


def _rows(files: Sequence[StoredFile]) -> int | None:
    counts = [file.rows for file in files]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _removed_rows(added: Sequence[StoredFile], removed: Sequence[StoredFile]) -> int | None:
    """Return the rows of the removed files; None where an added log file may delete rows of files that stay."""
    return None if any(file.rows is None for file in added) else _rows(removed)


def _bytes(files: Sequence[StoredFile]) -> int | None:
    sizes = [file.size_bytes for file in files]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None
