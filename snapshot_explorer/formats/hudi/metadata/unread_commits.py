"""Commits of a Hudi table that cannot be read or are missing, and the versions that are known nevertheless.

Readers of Hudi list the partitions, and need the metadata of a commit only for the file groups that it replaced. So the
files that such a commit wrote are taken from a listing. It lacks files that the cleaner has removed since, slice by
slice: a later version is known if all of its files exist, and no later commit follows a file that does not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import CorruptTableError, SnapshotExplorerError
from snapshot_explorer.formats.hudi.metadata.archive import ArchivedInstant
from snapshot_explorer.formats.hudi.metadata.file_groups import NEVER, ListedFile, LostSlice
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig
from snapshot_explorer.formats.hudi.metadata.timeline import WRITES, Instant, Timeline
from snapshot_explorer.formats.unread_versions import Reasons

_RECOVERED = ("commit", "deltacommit")
"""Actions that replace no file groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadCommits:
    """The completed writes whose metadata is unknown."""

    errors: Reasons
    """The reason why each unreadable version cannot be read."""
    missing: Reasons
    """Instants of no version whose files later commits follow, with errors that name them."""
    archived: frozenset[int]
    """The archived instants among `missing`: readers count their files. Readers see the others as not completed."""
    blocked_from: int
    """The first unknown commit whose files cannot be found by a listing; NEVER without such a commit."""
    existing: frozenset[str]
    """The data files that exist; empty if no files were listed, because every commit is known."""
    files: Sequence[ListedFile]
    """The existing data files that unknown commits wrote."""

    @property
    def instants(self) -> frozenset[int]:
        """The instants whose files are taken from a listing."""
        return frozenset(self.errors) | self.archived

    @property
    def listed_from(self) -> int:
        """The first instant whose files are taken from a listing; NEVER without such an instant."""
        return min(self.instants, default=NEVER)

    def error_of(self, version: int) -> SnapshotExplorerError:
        """Return the error that explains why the files of a version are unknown."""
        if version in self.errors:
            return self.errors[version]
        known = {**self.missing, **self.errors}
        first = min((instant for instant in known if instant <= version), default=min(known))
        return CorruptTableError(f"The files of version {version} are not all known: {known[first]}")


def unread_commits(
    errors: Reasons,
    files: pa.Table,
    writes: Mapping[int, Instant | ArchivedInstant],
    timeline: Timeline,
    config: TableConfig,
    *,
    listed: Callable[[], Sequence[ListedFile]],
    has_holes: bool,
) -> UnreadCommits:
    """Return which completed writes are unknown.

    Args:
        errors: Why commits cannot be read, by version.
        files: The files that the other commits wrote: WRITTEN.
        writes: Every version.
        listed: Lists the data files of the table; called only if some writes are unknown.
        has_holes: Whether the archive may lack files.
    """
    start, first_active = min(writes, default=NEVER), min(timeline.writes, default=NEVER)
    texts = [text for text in pc.unique(files.column("previous")).to_pylist() if text and text.isdecimal()]
    # Log files may belong to the slice that a pending compaction begins.
    planned = {item.time for item in timeline.instants if item.state != "completed" and item.action not in WRITES}
    followed = {int(text) for text in texts if int(text) >= start}.difference(writes, planned)
    active = {item.time for item in timeline.instants}

    def is_archived(instant: int) -> bool:
        return start <= instant < first_active and instant not in writes and instant not in active

    archived = frozenset(filter(is_archived, followed))
    every = listed() if errors or archived or has_holes else ()
    archived |= {file.instant for file in every if is_archived(file.instant)}
    unlisted = [version for version in errors if not _is_listed(writes[version], config)]
    unlisted += archived if config.is_merge_on_read else ()
    return UnreadCommits(
        errors=errors,
        missing={instant: _missing(instant) for instant in followed | archived},
        archived=archived,
        blocked_from=min(unlisted, default=NEVER),
        existing=frozenset(file.path for file in every),
        files=tuple(file for file in every if file.instant in errors or file.instant in archived),
    )


def _missing(instant: int) -> CorruptTableError:
    return CorruptTableError(
        f"The commit {instant} is missing from the timeline, although files that it wrote are known. Compare the "
        "timeline with a copy of the table."
    )


def _is_listed(write: Instant | ArchivedInstant, config: TableConfig) -> bool:
    """Return whether the files of a commit can be found by a listing, and it replaced no file group."""
    action = write.instant.action if isinstance(write, ArchivedInstant) else write.action
    return action in _RECOVERED and (config.names_logs_by_commit or not config.is_merge_on_read)


def lost_slices(unread: UnreadCommits, files: pa.Table) -> list[LostSlice]:
    """Return the slices that later commits build on, but whose own commits are unknown and whose files are not listed.

    Args:
        files: The files that known commits wrote: WRITTEN.
    """
    instants = {str(instant) for instant in (*unread.instants, *unread.missing)}
    following = files.filter(pc.is_in(files.column("previous"), pa.array(sorted(instants), pa.string())))
    existing = {(file.partition, file.file_id, file.instant) for file in unread.files}
    lost: dict[tuple[str, str, int], int] = {}
    for row in following.select(["version", "partition", "file_id", "previous", "is_log"]).to_pylist():
        key = row["partition"], row["file_id"], int(row["previous"])
        if key not in existing:
            # Log files belong to the same slice, which the next base file ends.
            end = NEVER if row["is_log"] else row["version"]
            lost[key] = min(lost.get(key, NEVER), end)
    return [
        LostSlice(partition=partition, file_id=file_id, instant=str(instant), removed=end, since=instant)
        for (partition, file_id, instant), end in lost.items()
    ]
