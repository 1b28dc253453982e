"""`DeltaLog`: the log of a Delta table, listed and replayed on demand. Every read of a version starts here."""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

import pyarrow as pa

from snapshot_explorer.core.errors import (
    AccessDeniedError,
    CorruptTableError,
    MissingFileError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    StorageError,
)
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.corrupt_files import check_size
from snapshot_explorer.formats.delta import features
from snapshot_explorer.formats.delta.metadata.batches import DeltaCommitReader, first_batch
from snapshot_explorer.formats.delta.metadata.checkpoints import (
    Checkpoint,
    CheckpointFile,
    NeededColumns,
    read_checkpoint,
    read_live_files,
)
from snapshot_explorer.formats.delta.metadata.hints import (
    CheckpointHint,
    Checksum,
    LiveCounts,
    contradictions,
    read_checksum,
    read_hint,
)
from snapshot_explorer.formats.delta.metadata.layout import HINT, LOG, STAGED, DeltaLogFile, commit_name
from snapshot_explorer.formats.delta.metadata.log_segment import (
    LogListing,
    LogSegment,
    earliest,
    for_version,
    list_log,
    staged_versions,
)
from snapshot_explorer.formats.delta.metadata.records import Actions, DeltaState, Metadata, Protocol
from snapshot_explorer.formats.delta.metadata.replay import (
    LaterFiles,
    ReplayState,
    complete,
    followed_by,
    join_states,
    replay_state_of,
    state_of,
)
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.missing_versions import (
    TRIES,
    lost_versions,
    missing_table_error,
    missing_versions_error,
    now,
    pause,
)
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

_KEPT = 3
REPLAYED_BYTES = 64 << 20
"""Bytes of commits whose actions are in memory, as columns, before they are reconciled."""
_MAX_EARLY = 64
"""Commits that are read while the log is listed."""
_SMALL = 8 << 20
"""A checkpoint up to this size is read once, whole, and cached."""
_LARGE = 32 << 20
"""The live files of a checkpoint above this size are read some at a time, and not cached."""

T = TypeVar("T")
LiveFilesReader = Callable[[Protocol, Metadata, Iterator[pa.Table]], T]
"""A function of a version's protocol, its metadata, and tables of ADDS that together have all live files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tail:
    segment: LogSegment
    replay_state: ReplayState


class DeltaLog:
    """The log of one table. Caches its newest listing and the last states. Safe to use from several threads."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._commits = DeltaCommitReader(storage)
        self._lock = threading.RLock()
        self._listing: LogListing | None = None
        self._listed = 0
        self._listed_at = now()
        self._turns = itertools.count(1)
        self._generation = 0
        self._unusable: set[str] = set()
        self._states: OrderedDict[int, DeltaState] = OrderedDict()
        self._tails: OrderedDict[int, _Tail] = OrderedDict()
        self._kept_checkpoint: tuple[tuple[DeltaLogFile, ...], bool, Checkpoint] | None = None
        self._checksums: OrderedDict[int, Checksum | None] = OrderedDict()
        self.hint: CheckpointHint | None = None

    @property
    def generation(self) -> int:
        """Return a number that changes when listed files were replaced by others."""
        return self._generation

    def refresh(self) -> LogListing:
        """Return a new listing of the log. Clears the caches if the table was created again.

        A listing with fewer versions than the last one is retried a few times, then refused; the caches are kept. Fewer
        versions are valid if one of them has another commit, as after the table was dropped and recreated. Commits up
        to a checkpoint may disappear in any order, as some writers clean up: that is logged as a warning.
        """
        for left in reversed(range(TRIES)):
            turn, before, since = next(self._turns), self._listing, self._listed_at
            result = list_log(self._storage, before)
            missing_versions = () if before is None else _missing_versions(before, result)
            if before is None or not missing_versions or (result.versions and not before.goes_on_in(result)):
                break
            if not left and _is_cleaned_up(result, missing_versions):
                log.warning("%s", missing_versions_error(self._storage.root, missing_versions, result.versions, since))
                break
            if not left:
                raise self._shortfall(before, result, missing_versions, since)
            pause()
        with self._lock:
            if turn < self._listed:
                return result  # a listing that started later has ended sooner: it is the newer one
            self._listed, self._listed_at = turn, now()
            if self._listing is not None and not self._listing.goes_on_in(result):
                log.warning(
                    "The log of %s shows other commits than before under the same numbers; the newest version was %s "
                    "and is %s now: the table was dropped and recreated, or its log was replaced.",
                    self._storage.root,
                    self._listing.versions[-1],
                    result.versions[-1],
                )
                self._generation += 1
                self._unusable.clear()
                self._states.clear()
                self._checksums.clear()
                self._tails.clear()
                self._commits.forget()
                self._kept_checkpoint = None
            self._listing = result
        return result

    def _shortfall(
        self, before: LogListing, after: LogListing, lost: Sequence[int], since: datetime
    ) -> SnapshotExplorerError:
        if not after.versions:
            log.info("No delta log found for the Delta table at %s", self._storage.root)
            return missing_table_error(self._storage.root, f"its folder {LOG}", before.versions[-1], since)
        return missing_versions_error(self._storage.root, lost, after.versions, since)

    def listing(self) -> LogListing:
        """Return the newest listing; makes one if there is none yet."""
        return self._listing or self.refresh()

    def read_newest(self, count: int) -> None:
        """Read the newest commits of the last listing for their next use."""
        if self._listing is not None:
            self._commits.read_early(list(self._listing.commits.values())[-min(count, _MAX_EARLY) :])

    def commits(self) -> tuple[DeltaLogFile, ...]:
        """Return the commit file of each version that has one, ascending, by the newest listing."""
        return tuple(self.listing().commits.values())

    def versions(self) -> tuple[int, ...]:
        """Return the versions that the newest listing names, ascending; see `LogListing.versions`."""
        return self.listing().versions

    def earliest(self) -> int:
        """Return the earliest version that can still be reconstructed, by the newest listing.

        Source: delta DeltaHistoryManager.scala, getEarliestRecreatableCommit.
        """
        result = earliest(self.listing())
        if result is None:
            raise SnapshotNotFoundError(
                f"The log of {self._storage.root} cannot reconstruct any version: it has no commit 0 and no complete "
                "checkpoint. Restore the log from a backup."
            )
        return result

    def segment(self, version: int | None = None) -> LogSegment:
        """Return the log segment of a version; by default the newest listed one.

        No request if the newest listing contains it, otherwise one listing.
        """
        try:
            return for_version(self.listing(), None, version, unusable=self._unusable)
        except SnapshotExplorerError:
            return for_version(self.refresh(), None, version, unusable=self._unusable)

    def newest(self, listing: LogListing, start: int | None = None) -> LogSegment:
        """Return the log segment of the newest version of a listing, starting from a checkpoint. No request."""
        return for_version(listing, start, unusable=self._unusable)

    def state(self, version: int) -> DeltaState:
        """Return the state of a version. Reads its checkpoint and the commits after it; the last few are cached."""
        kept = self._kept_state(version)
        if kept is not None:
            return kept
        with self._lock:
            if version not in self._states:
                state = state_of(self._attempts(version, self._replay_state), version, self._storage.root)
                _keep(self._states, version, state)
                self._warn_of_contradictions(version, state.protocol, state.metadata, _counts(state))
            self._states.move_to_end(version)
            return self._states[version]

    def over_live_files(self, version: int, make: LiveFilesReader[T], needed: NeededColumns) -> T:
        """Return what `make` returns of a version: of its protocol, metadata, and live files, ADDS, some at a time.

        Reads as `state`. The files of a large checkpoint are read when they are consumed and not cached, with null in
        columns that are not needed. `make` is called again if a file of the log turns out to be damaged.
        """
        state = self._kept_state(version)
        if state is None:
            with self._lock:
                if version not in self._states and self._attempts(version, self._is_read_in_turn):
                    return self._attempts(version, lambda segment: self._of_live_files(segment, make, needed))
                state = self.state(version)
        return make(state.protocol, state.metadata, iter([state.adds]))

    def _is_read_in_turn(self, segment: LogSegment) -> bool:
        if not segment.checkpoint or self._base_of(segment) is not None:
            return False
        files = segment.checkpoint if _is_small(segment) else self._checkpoint(segment, adds=False).files
        return sum(file.size_bytes or 0 for file in files) > _LARGE

    def _of_live_files(self, segment: LogSegment, make: LiveFilesReader[T], needed: NeededColumns) -> T:
        tail = self._tail_beside_checkpoint(segment)
        protocol, metadata = self._protocol_and_metadata(segment)

        def live_files() -> Iterator[pa.Table]:
            later, counts = LaterFiles(tail), LiveCounts()
            for adds in self._checkpoint_adds(segment, needed):
                yield counts.add(later.without(adds))
            yield counts.add(later.added())
            self._warn_of_contradictions(segment.version, protocol, metadata, counts)

        return make(protocol, metadata, live_files())

    def _checkpoint_adds(self, segment: LogSegment, needed: NeededColumns) -> Iterator[pa.Table]:
        try:
            yield from read_live_files(self._storage, self._checkpoint(segment, adds=False), needed)
        except (CorruptTableError, AccessDeniedError) as error:
            raise _UnusableError(segment, error) from error

    def _kept_state(self, version: int) -> DeltaState | None:
        kept = self._states.get(version)
        if kept is not None and self._lock.acquire(blocking=False):
            try:
                if version in self._states:
                    self._states.move_to_end(version)
            finally:
                self._lock.release()
        return kept

    def protocol_and_metadata(self, version: int) -> tuple[Protocol, Metadata]:
        """Return the protocol and the metadata in force at a version, without its live files if that is cheaper.

        Reads the commits after the checkpoint and, if they contain neither, the checkpoint: of a large one only the
        non-file actions. The checksum file is not used: it may be wrong.
        """
        kept = self._kept_state(version)
        if kept is not None:
            return kept.protocol, kept.metadata
        with self._lock:
            return self._attempts(version, self._protocol_and_metadata)

    def checksum(self, version: int) -> Checksum | None:
        """Return the version's checksum file, None without a usable one. One request the first time."""
        with self._lock:
            if version not in self._checksums:
                _keep(self._checksums, version, read_checksum(self._storage, version))
            return self._checksums[version]

    def validate(self, version: int) -> tuple[str, list[str]]:
        """Return the table's id at a version, and how its checksum file contradicts the log; a sentence each.

        Counts are compared if the live files have been read, or come from commits alone.
        """
        with self._lock:
            read: Callable[[int], object] = (
                self.protocol_and_metadata if self.segment(version).checkpoint else self.state
            )
            if version in self._checksums:
                read(version)
            else:
                checksum = partial(read_checksum, self._storage, version)
                _keep(self._checksums, version, self._storage.together(checksum, partial(read, version))[0])
            protocol, metadata = self.protocol_and_metadata(version)
            counts = _counts(self._states[version]) if version in self._states else None
            return metadata.id or "", self._contradictions(version, protocol, metadata, counts)

    def _contradictions(
        self, version: int, protocol: Protocol, metadata: Metadata, live: LiveCounts | None
    ) -> list[str]:
        checksum = self._checksums.get(version)
        return [] if checksum is None else contradictions(checksum, protocol, metadata, live)

    def _warn_of_contradictions(self, version: int, protocol: Protocol, metadata: Metadata, live: LiveCounts) -> None:
        for note in self._contradictions(version, protocol, metadata, live):
            self._storage.warn_once(log, "%s", note)

    def actions(self, versions: Sequence[int], *, infos: bool = True) -> Actions:
        """Return the actions of the commits of these versions, in ascending order; a request each, concurrently.

        No request for commits that a recent state was built from: they are cached, without commitInfo.
        """
        requested = sorted(set(versions))
        files = self.commit_files(requested)
        for left in reversed(range(TRIES)):
            try:
                return self._commits.actions(files, infos=infos)
            except MissingFileError as error:
                existing = self.refresh().commits
                missing = [version for version in requested if version not in existing]
                if missing:
                    raise self._missing_commits_error(missing) from error
                if not left:
                    raise StorageError(
                        f"{self._storage.root} lists a commit that it then does not return: {error} The storage may be "
                        "behind, or a proxy answered. Try again."
                    ) from error
                files = [existing[version] for version in requested]
            pause()
        raise AssertionError  # unreachable: the last try returns or raises

    def commit_files(self, versions: Sequence[int]) -> list[DeltaLogFile]:
        """Return the commit files of versions, in their order. A listing if the newest one lacks them."""
        known = self.listing().commits
        if any(version not in known for version in versions):
            known = self.refresh().commits
        missing = [version for version in versions if version not in known]
        if missing:
            raise self._missing_commits_error(missing)
        return [known[version] for version in versions]

    def outline(self, version: int) -> tuple[LogSegment, Checkpoint]:
        """Return the log segment of a version and its checkpoint, maybe without live files.

        Reads the checkpoint, of a large one only the non-file actions.
        """
        nothing = Checkpoint(replay_state=ReplayState(), files=())
        with self._lock:
            return self._attempts(
                version,
                lambda segment: (segment, self._checkpoint(segment, adds=False) if segment.checkpoint else nothing),
            )

    def checkpoint_files(self, version: int, *, adds: bool = True) -> tuple[CheckpointFile, ...]:
        """Return the files of a version's checkpoint, sidecars included; empty without one.

        Without `adds` less is read, only the name of a sidecar for example, and the counts of files may be missing.
        """
        with self._lock:
            return self._attempts(
                version,
                lambda segment: self._checkpoint(segment, adds=adds).files if segment.checkpoint else (),
            )

    def _replay_state(self, segment: LogSegment) -> ReplayState:
        base = self._base_of(segment)
        if base is not None:
            after = [commit for commit in segment.commits if commit.version > base.version]
            return self._replayed(replay_state_of(base), after, open_ended=False)
        tail = self._tail_beside_checkpoint(segment)
        return join_states(self._checkpoint(segment, adds=True).replay_state, tail) if segment.checkpoint else tail

    def _protocol_and_metadata(self, segment: LogSegment) -> tuple[Protocol, Metadata]:
        tail = self._tail_beside_checkpoint(segment)
        if segment.checkpoint and (tail.protocol is None or tail.metadata is None):
            tail = join_states(self._checkpoint(segment, adds=False).replay_state, tail)
        return complete(tail, segment.version, self._storage.root)

    def _base_of(self, segment: LogSegment) -> DeltaState | None:
        """Return the newest cached state that the segment's commits continue."""
        first = -1 if segment.checkpoint_version is None else segment.checkpoint_version
        known = [state for state in self._states.values() if first <= state.version < segment.version]
        return max(known, key=lambda state: state.version, default=None)

    def _tail_beside_checkpoint(self, segment: LogSegment) -> ReplayState:
        """Return the replayed commits after the checkpoint. On remote storage a small one is read at the same time."""
        if self._storage.is_local or not segment.checkpoint or _size(segment) > _SMALL:
            return self._tail(segment)

        def read_ahead() -> None:
            with suppress(SnapshotExplorerError, _UnusableError):  # raised where the checkpoint is needed
                self._checkpoint(segment, adds=False)

        return self._storage.together(read_ahead, partial(self._tail, segment))[1]

    def _tail(self, segment: LogSegment) -> ReplayState:
        """Return the replayed commits after the checkpoint; the last segments are cached."""
        known = [tail for tail in self._tails.values() if tail.segment.checkpoint == segment.checkpoint]
        before = [item for item in known if item.segment.version <= segment.version]
        base = max(before, key=lambda state: state.segment.version, default=None)
        if base is not None and base.segment.version == segment.version:
            return base.replay_state
        after = segment.commits[len(base.segment.commits) :] if base else segment.commits
        replay_state = self._replayed(
            base.replay_state if base else ReplayState(), after, open_ended=bool(segment.checkpoint)
        )
        _keep(self._tails, segment.version, _Tail(segment=segment, replay_state=replay_state))
        return replay_state

    def _replayed(self, replay_state: ReplayState, commits: Sequence[DeltaLogFile], *, open_ended: bool) -> ReplayState:
        """Return the replayed state after more commits. Batches keep memory in proportion to the live files."""
        left = commits
        while left:
            batch, left = first_batch(left, max(REPLAYED_BYTES, 2 * replay_state.adds.nbytes))
            replay_state = followed_by(replay_state, self._commits.actions_to_keep(batch), open_ended=open_ended)
        return replay_state

    def _checkpoint(self, segment: LogSegment, *, adds: bool) -> Checkpoint:
        """Return a segment's checkpoint. A small one is cached with its files, a large one without."""
        has_adds = adds or _is_small(segment)
        kept = self._kept_checkpoint
        if kept is not None and kept[0] == segment.checkpoint and kept[1] >= has_adds:
            return kept[2]
        try:
            self._check_size(segment.checkpoint)
            result = read_checkpoint(self._storage, segment.checkpoint, adds=has_adds)
        except (CorruptTableError, AccessDeniedError) as error:
            raise _UnusableError(segment, error) from error
        if _is_small(segment) or not has_adds:
            self._kept_checkpoint = segment.checkpoint, has_adds, result
        return result

    def _check_size(self, checkpoint: Sequence[DeltaLogFile]) -> None:
        """Check the listed size of a checkpoint against the hint, if that names it.

        A hint that contradicts it is read again: a writer may have replaced the checkpoint.
        """
        sizes = [file.size_bytes for file in checkpoint]
        total, version = sum(size or 0 for size in sizes), checkpoint[0].version
        if None in sizes or _recorded_size(self.hint, version) in (None, total):
            return
        self.hint, _ = read_hint(self._storage)
        names = ", ".join(file.name for file in checkpoint)
        check_size(f"The checkpoint {names}", total, _recorded_size(self.hint, version), by=HINT)

    def _attempts(self, version: int, make: Callable[[LogSegment], T]) -> T:
        """Return a result from a version's segment, with earlier checkpoints if one is damaged.

        If files vanished since the listing, it is repeated once. If all attempts fail, the first error is raised.
        """
        before = frozenset(self._unusable)
        try:
            return self._attempted(version, make)
        except SnapshotExplorerError:
            # No checkpoint is left. Earlier responses may have been wrong, so all are tried again.
            self._unusable.intersection_update(before)
            raise

    def _attempted(self, version: int, make: Callable[[LogSegment], T]) -> T:
        first: SnapshotExplorerError | None = None
        listed_again = False
        while True:
            try:
                return make(self.segment(version))
            except _UnusableError as failed:
                first = first or failed.error
                self._storage.warn_once(
                    log,
                    "Failed to create a snapshot from log segment %s. Trying a different checkpoint. %s",
                    _describe(failed.segment),
                    failed.error,
                )
                self._unusable.add(failed.segment.checkpoint[0].name)
            except MissingFileError as error:
                if listed_again:
                    raise first or self._missing_commits_error([version]) from error
                listed_again = True
                self.refresh()
            except (CorruptTableError, SnapshotNotFoundError) as error:
                if first is None:
                    raise
                raise first from error

    def _missing_commits_error(self, versions: Sequence[int]) -> SnapshotNotFoundError:
        missing, existing = versions[0], self.listing().commits
        later = next((version for version in existing if version > versions[-1]), None)
        earlier = max((version for version in existing if version < missing), default=None)
        if later is not None:
            advice = f"Read from version {later} on, the next one whose commit exists."
        elif earlier is not None:
            advice = f"Read up to version {earlier}, the last one whose commit exists."
        else:
            advice = "No commit is left: read the files of a version instead."
        return SnapshotNotFoundError(
            f"{LOG}/{commit_name(missing)} does not exist in {self._storage.root}: the commit of version {missing} was "
            f"cleaned up or removed by hand. {advice}"
        )


def _counts(state: DeltaState) -> LiveCounts:
    counts = LiveCounts()
    counts.add(state.adds)
    return counts


def _recorded_size(hint: CheckpointHint | None, version: int) -> int | None:
    return hint.size_bytes if hint is not None and hint.version == version else None


class _UnusableError(Exception):
    def __init__(self, segment: LogSegment, error: CorruptTableError | AccessDeniedError) -> None:
        super().__init__(str(error))
        self.segment = segment
        self.error = error


def _missing_versions(before: LogListing, after: LogListing) -> tuple[int, ...]:
    """Return the versions that a later listing of the log lacks, other than its oldest ones, ascending.

    Commits after the first one and the newest version count: a cleanup may keep checkpoints and drop earlier commits.
    """
    if after is before or not before.versions:
        return ()
    versions = after.versions
    newest = before.versions[-1:] if not versions or before.versions[-1] > versions[-1] else ()
    commits = tuple(after.commits)
    return tuple(sorted({*newest, *(lost_versions(tuple(before.commits), commits) if commits else ())}))


def _is_cleaned_up(listing: LogListing, lost: Sequence[int]) -> bool:
    """Return whether the missing versions are before a checkpoint, where a log may be cleaned up."""
    checkpoints = listing.checkpoints
    return bool(checkpoints) and lost[-1] <= checkpoints[-1][0].version


def _is_small(segment: LogSegment) -> bool:
    return _size(segment) <= _SMALL and segment.checkpoint[0].form != "uuid"


def _size(segment: LogSegment) -> int:
    return sum(file.size_bytes or _SMALL for file in segment.checkpoint)


def _describe(segment: LogSegment) -> str:
    files = ", ".join(file.name for file in segment.checkpoint)
    return f"of version {segment.version} with checkpoint {files}"


def _keep(kept: "OrderedDict[int, T]", version: int, value: T) -> None:
    kept[version] = value
    while len(kept) > _KEPT:
        kept.popitem(last=False)


def check_published(storage: Storage, log: DeltaLog, folder: str, newest: int) -> None:
    """Refuse a table whose catalog or coordinator may have commits that its log does not have yet.

    Published commits are ordinary ones. Without a feature of `STAGED`, staged commits are ignored. One listing, and the
    reads of the protocol.
    """
    path = f"{LOG}/{folder}"
    staged = [version for version in staged_versions(storage.list(path)) if version > newest]
    if not staged:
        return
    protocol, _ = log.protocol_and_metadata(newest)
    listed = (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())
    feature = next((name for name in STAGED[folder] if name in listed), None)
    if feature is not None:
        raise refusal(features.STAGED_COMMITS, root=storage.root, feature=feature, folder=path, staged=staged[0])
