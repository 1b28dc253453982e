"""Log segments: the files of the log that together make one version.

Every choice is made within one listing, so that a writer at work cannot tear it.

Source: delta PROTOCOL.md, "Action Reconciliation"; delta SnapshotManagement.scala, getLogSegmentForVersion.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from snapshot_explorer.core.errors import CorruptTableError, SnapshotNotFoundError
from snapshot_explorer.core.text import list_names
from snapshot_explorer.formats.delta.metadata.layout import (
    LOG,
    STAGED,
    DeltaLogFile,
    checkpoint_rank,
    commit_name,
    log_files,
    staged_version,
)
from snapshot_explorer.formats.missing_versions import absent_version_error
from snapshot_explorer.storage import Entry, Storage

_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """The files of the log that make one version: a checkpoint, if any, and the commits after it."""

    version: int
    commits: tuple[DeltaLogFile, ...]
    """The commits after the checkpoint, ascending; all from 0 on without one."""
    checkpoint: tuple[DeltaLogFile, ...]
    """The files of the checkpoint, its parts in order; empty without one."""
    last_commit: DeltaLogFile | None
    """The version's own commit; None if only its checkpoint is left."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Tolerated problems, a sentence each."""

    @property
    def checkpoint_version(self) -> int | None:
        """Return the version of the checkpoint, None without one."""
        return self.checkpoint[0].version if self.checkpoint else None


@dataclass(frozen=True)
class LogListing:
    """One listing of the log. Immutable; derived values are computed once."""

    root: str
    """The table's root, for messages."""
    files: tuple[DeltaLogFile, ...]
    """The files of the log, by version and name; checkpoints without bytes are left out."""
    staged: tuple[str, ...]
    """The folders of staged commits in the log; see `STAGED`."""
    is_empty: bool
    """Whether the folder is missing or empty."""

    def commits_between(self, first: int, last: int | None) -> tuple[DeltaLogFile, ...]:
        """Return the commits from one version to another, both included; to the newest for None. Ascending."""
        files, versions = self._ascending_commits
        begin = bisect_left(versions, first)
        return files[begin : None if last is None else bisect_right(versions, last)]

    def checkpoints_between(self, first: int, last: int | None) -> list[tuple[DeltaLogFile, ...]]:
        """Return the complete checkpoints of these versions, the preferred one last."""
        result, versions = self.checkpoints, self._checkpoint_versions
        begin = bisect_left(versions, first)
        return result[begin : None if last is None else bisect_right(versions, last)]

    def goes_on_in(self, later: "LogListing") -> bool:
        """Return whether a later listing shows the same files, except added or removed ones."""
        known = self.by_name
        for file in later.files:
            before = known.get(file.name, file)
            # In an unchanged listing all files are the same objects.
            if before is not file and before.kind == "commit" and before.identity != file.identity:
                return False
        return True

    @cached_property
    def by_name(self) -> dict[str, DeltaLogFile]:
        """Return the files by their names."""
        return {file.name: file for file in self.files}

    @cached_property
    def commits(self) -> dict[int, DeltaLogFile]:
        """Return the commit of each version that has one, ascending."""
        result: dict[int, DeltaLogFile] = {}
        for file in self.files:
            # Of two names of one version, 7.json and the zero-padded one, the padded one is used.
            if file.kind == "commit" and (file.version not in result or file.name == commit_name(file.version)):
                result[file.version] = file
        return result

    @cached_property
    def _ascending_commits(self) -> tuple[tuple[DeltaLogFile, ...], tuple[int, ...]]:
        return tuple(self.commits.values()), tuple(self.commits)

    @cached_property
    def versions(self) -> tuple[int, ...]:
        """Return the versions that the log names, ascending: its commits, and checkpoints whose commit is missing."""
        return tuple(sorted({*self.commits, *self._checkpoint_versions}))

    @cached_property
    def without_commit(self) -> tuple[int, ...]:
        """Return the versions with only a checkpoint left, ascending."""
        return tuple(version for version in self.versions if version not in self.commits)

    @cached_property
    def loadable(self) -> frozenset[int]:
        """Return the versions that the log can reconstruct from a checkpoint and the commits after it."""
        commits, checkpoints = self.commits, set(self._checkpoint_versions)
        versions: set[int] = set()
        for version in self.versions:
            if version in checkpoints or (version in commits and (version == 0 or version - 1 in versions)):
                versions.add(version)
        return frozenset(versions)

    @cached_property
    def unloadable(self) -> tuple[int, ...]:
        """Return the versions from the earliest on that the log cannot reconstruct, ascending."""
        first, commits = earliest(self), self.commits
        if first is None or (commits and len(commits) == max(commits) + 1):
            return ()  # all commits since 0 exist
        return tuple(version for version in self.versions if version > first and version not in self.loadable)

    @cached_property
    def checkpoints(self) -> list[tuple[DeltaLogFile, ...]]:
        """Return the complete checkpoints, the preferred one last."""
        complete: list[tuple[DeltaLogFile, ...]] = []
        parts: dict[tuple[int, int], dict[int, DeltaLogFile]] = {}
        for file in self.files:
            if file.kind != "checkpoint":
                continue
            if file.part is None or file.parts is None:
                complete.append((file,))
            else:
                parts.setdefault((file.version, file.parts), {})[file.part] = file
        for (_, count), numbered in parts.items():
            if len(numbered) == count and min(numbered) == 1 and max(numbered) == count:
                complete.append(tuple(numbered[number] for number in sorted(numbered)))
        return sorted(complete, key=checkpoint_rank)

    @cached_property
    def _checkpoint_versions(self) -> list[int]:
        return [checkpoint[0].version for checkpoint in self.checkpoints]


def list_log(storage: Storage, before: LogListing | None = None) -> LogListing:
    """Return a listing of the log; the earlier one if nothing changed. One listing."""
    entries = storage.list(LOG)
    listing = LogListing(
        storage.root,
        tuple(log_files(entries) if before is None else log_files(entries, before.by_name)),
        tuple(entry.name for entry in entries if entry.is_folder and entry.name in STAGED),
        not entries,
    )
    return before if before is not None and before == listing else listing


def staged_versions(entries: Iterable[Entry]) -> list[int]:
    """Return the versions of staged commits, ascending."""
    return sorted({version for entry in entries if (version := staged_version(entry.name)) is not None})


def for_version(
    listing: LogListing,
    start_checkpoint: int | None = None,
    version_to_load: int | None = None,
    *,
    unusable: Collection[str] = (),
) -> LogSegment:
    """Return the log segment of a version.

    Args:
        start_checkpoint: The checkpoint to start from; if it does not exist, an earlier one or the start of the log.
        version_to_load: The version; the newest by default.
        unusable: Names of checkpoint files that turned out to be damaged.

    Source: delta SnapshotManagement.scala, getLogSegmentForVersion; PROTOCOL.md, "Checkpoints".
    """
    notes: list[str] = []
    start = start_checkpoint
    if start is not None and version_to_load is not None and start > version_to_load:
        start = None
    first = start or 0
    checkpoint = _newest_checkpoint(listing, first, version_to_load, unusable)
    if not checkpoint and start is not None:
        notes.append(
            f"The checkpoint of version {start} to start from does not exist or is incomplete. "
            "An earlier one is used, or the commits alone."
        )
        first = 0
        checkpoint = _newest_checkpoint(listing, first, version_to_load, unusable)
    base = checkpoint[0].version if checkpoint else -1
    newer_commits = listing.commits_between(max(first, base + 1), version_to_load)
    if not checkpoint and not newer_commits:
        raise _missing_version_error(listing, version_to_load)
    _check_contiguous(newer_commits, base, listing, version_to_load)
    version = newer_commits[-1].version if newer_commits else base
    if version_to_load is not None and version != version_to_load:
        raise _missing_version_error(listing, version_to_load)
    return LogSegment(
        version=version,
        commits=newer_commits,
        checkpoint=checkpoint,
        last_commit=listing.commits.get(version),
        notes=tuple(notes),
    )


def earliest(listing: LogListing) -> int | None:
    """Return the earliest version that the log can still reconstruct, or None.

    Source: delta DeltaHistoryManager.scala, getEarliestRecreatableCommit.
    """
    commits = listing.commits
    if 0 in commits:
        return 0
    checkpoints = [checkpoint[0].version for checkpoint in listing.checkpoints]
    followed = [version for version in checkpoints if version >= min(commits, default=0) - 1]
    return min(followed or checkpoints, default=None)


def _newest_checkpoint(
    listing: LogListing, first: int, last: int | None, unusable: Collection[str]
) -> tuple[DeltaLogFile, ...]:
    """Return the preferred complete checkpoint between two versions; empty if there is none."""
    checkpoints = reversed(listing.checkpoints_between(first, last))
    return next((item for item in checkpoints if item[0].name not in unusable), ())


def _check_contiguous(
    commits: Sequence[DeltaLogFile], base: int, listing: LogListing, version_to_load: int | None
) -> None:
    if not commits:
        return
    versions = [commit.version for commit in commits]
    if versions[-1] - versions[0] + 1 != len(versions):
        existing = set(versions)
        missing = [version for version in range(versions[0], versions[-1]) if version not in existing]
        raise CorruptTableError(
            f"Versions ({_version_list(versions)}) are not contiguous: version {versions[-1]} of {listing.root} needs "
            f"{_file_list(missing)}, which the log does not have. Restore the log from a backup, or choose a "
            "version that does not need them."
        )
    if versions[0] == base + 1:
        return
    if version_to_load is not None:
        raise _missing_version_error(listing, version_to_load)
    raise CorruptTableError(
        f"{LOG}/{commit_name(base + 1)}: Unable to reconstruct state at version {versions[-1]} as the transaction log "
        "has been truncated due to manual deletion or the log retention policy (delta.logRetentionDuration) and "
        f"checkpoint retention policy (delta.checkpointRetentionDuration). The log of {listing.root} begins with "
        f"version {versions[0]} and contains no usable checkpoint before it. Restore the missing files from a backup."
    )


def _missing_version_error(listing: LogListing, version: int | None) -> SnapshotNotFoundError:
    first = earliest(listing)
    newest = max((*listing.commits, *(checkpoint[0].version for checkpoint in listing.checkpoints)), default=None)
    if version is None or first is None or newest is None:
        requested = "a version" if version is None else f"version {version}"
        return SnapshotNotFoundError(
            f"The log of {listing.root} cannot reconstruct {requested}: it has no commit 0 and no complete checkpoint. "
            "Check the path, or restore the log from a backup."
        )
    versions = [commit for commit in listing.commits if commit >= first] or [first, newest]
    return absent_version_error(listing.root, version, versions)


def _version_list(versions: Sequence[int]) -> str:
    if len(versions) <= 2 * _NAMED:
        return ", ".join(map(str, versions))
    return f"{', '.join(map(str, versions[:_NAMED]))}, ..., {', '.join(map(str, versions[-_NAMED:]))}"


def _file_list(versions: Sequence[int]) -> str:
    return list_names([*map(commit_name, versions)], _NAMED)
