"""The clean-up of Delta's log: the files of old versions that it deletes when a checkpoint is written.

Source: delta-spark 4.4 MetadataCleanup.listExpiredDeltaLogs, DeltaHistoryManager.BufferingLogDeletionIterator; delta
PROTOCOL.md, "Metadata Cleanup".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.milliseconds import to_millis
from snapshot_explorer.core.records import runs_of, runs_text
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats.delta.metadata.layout import DeltaLogFile
from snapshot_explorer.formats.delta.metadata.log_segment import LogListing
from snapshot_explorer.formats.settings import parse_flag

_ENABLED = "delta.enableExpiredLogCleanup"
_PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"
_DELETED = ("checkpoint", "checksum", "commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleanUp:
    """The effect of the next clean-up of the log."""

    files: pa.Table
    """FREED: the log files."""
    lost: tuple[int, ...]
    """The versions that can be loaded now, but not afterwards, ascending."""
    notes: tuple[str, ...]


def log_clean_up(listing: LogListing, settings: Mapping[str, str], keep: timedelta, now: datetime) -> LogCleanUp:
    """Return the files that the clean-up would delete if a checkpoint of the newest version were written now.

    Args:
        settings: The table's properties.
        keep: The table's `delta.logRetentionDuration`.
    """
    newest = listing.versions[-1]
    files = [file for file in listing.files if file.kind in _DELETED]
    why = None
    if not parse_flag(settings, _ENABLED, default=True):
        why = f"the table has {_ENABLED}=false"
    elif any(file.modified is None for file in files):
        why = "the storage does not report when its files were written, so this is unknown"
    cutoff = (now - keep).replace(hour=0, minute=0, second=0, microsecond=0)
    expired = [] if why else _expired_files(files, newest, to_millis(cutoff))
    gone = frozenset(expired)
    left = replace(listing, files=tuple(file for file in listing.files if file not in gone))
    unloadable = sorted(listing.loadable - left.loadable - {newest})
    start = "The clean-up of the log, which starts when a checkpoint is written, would now delete"
    if not expired:
        why = why or f"no checkpoint follows log files that are older than {cutoff:%Y-%m-%d}"
        note = f"{start} nothing: {why}."
    else:
        after = f"; {runs_text(runs_of(unloadable))} could not be loaded afterwards" if unloadable else ""
        note = f"{start} {pluralize(len(expired), 'log file')}, which metadata_files lists{after}."
    return LogCleanUp(files=_frame(expired), lost=tuple(unloadable), notes=(note, *_other_notes(expired, settings)))


def _expired_files(files: Sequence[DeltaLogFile], newest: int, cutoff: int) -> list[DeltaLogFile]:
    """Return the deleted files: the files before a checkpoint, if the last of them is old enough.

    Times ascend with versions: a time that does not is adjusted to a millisecond after the previous time, and a
    checkpoint with an adjusted time ends no part. As in Delta, times of files of one version are not compared.
    """
    result: list[DeltaLogFile] = []
    part: list[tuple[DeltaLogFile, int]] = []
    parts: dict[tuple[int, int], list[tuple[DeltaLogFile, int]]] = {}
    before: tuple[int, int] | None = None
    for file, time in _with_new_checkpoint(files, newest):
        is_late = before is not None and before[0] < file.version and before[1] >= time
        at = before[1] + 1 if before is not None and is_late else time
        ends: list[tuple[DeltaLogFile, int]] | None = None
        if file.kind == "checkpoint" and not is_late and before is not None:
            group = parts.setdefault((file.version, file.parts), []) if file.parts else []
            group.append((file, at))
            ends = group if len(group) == (file.parts or 1) else None
        else:
            part.append((file, at))
        if ends is not None:
            if not part or part[-1][1] > cutoff or part[-1][0].version >= newest:
                break
            result += [item for item, _ in part]
            part = list(ends)
        before = file.version, at
    return result


def _with_new_checkpoint(files: Sequence[DeltaLogFile], newest: int) -> Iterator[tuple[DeltaLogFile, int]]:
    """Yield files in the order of their names with their times, and a checkpoint of the newest version before it."""
    has_checkpoint = any(file.kind == "checkpoint" and file.version == newest for file in files)
    for file in files:
        if file.version == newest and not has_checkpoint:
            yield DeltaLogFile("checkpoint", newest, "", None, None, form="classic"), 2**63 - 2
            return
        yield file, file.modified_ms or 0


def _other_notes(expired: Sequence[DeltaLogFile], settings: Mapping[str, str]) -> Iterator[str]:
    if any(file.form == "uuid" for file in expired):
        yield "Sidecar files that only deleted checkpoints name go too, and are not listed."
    if expired and settings.get(_PROTECTED, "0") not in ("", "0"):
        yield (
            f"The table has {_PROTECTED}={settings[_PROTECTED][:20]}: a writer that does not read all earlier versions "
            "deletes nothing before it, or all of it."
        )


def _frame(files: Sequence[DeltaLogFile]) -> pa.Table:
    rows = [{"what": file.kind, "path": file.path, "size_bytes": file.size_bytes} for file in files]
    return pa.Table.from_pylist(rows, frames.FREED)
