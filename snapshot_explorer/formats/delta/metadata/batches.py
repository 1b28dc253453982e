"""Commits, read in batches of bounded memory; the actions of the last ones are cached."""

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

import numpy as np
import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError, SnapshotExplorerError
from snapshot_explorer.formats.delta.metadata.actions import parse_commits
from snapshot_explorer.formats.delta.metadata.layout import DeltaLogFile
from snapshot_explorer.formats.delta.metadata.records import Actions
from snapshot_explorer.storage import Storage

BYTES_AT_ONCE = 16 << 20
"""Bytes of commits that are in memory at the same time."""
BYTES_KEPT = 64 << 20
"""Bytes of the commits whose actions are cached; as columns they need about as much memory."""
_BATCHES_KEPT = 32
"""The maximum number of batches whose actions are cached."""
_SMALL = 1 << 20
"""Bytes of commits whose actions are cached for any reader."""
_UNKNOWN_SIZE = 4_096
"""Assumed size of a commit whose size the listing lacks."""

T = TypeVar("T")


def first_batch(commits: Sequence[DeltaLogFile], limit: int) -> tuple[Sequence[DeltaLogFile], Sequence[DeltaLogFile]]:
    """Return the first commits of up to that many bytes, at least one, and the rest."""
    total = 0
    for index, commit in enumerate(commits):
        total += _UNKNOWN_SIZE if commit.size_bytes is None else commit.size_bytes
        if total >= limit:
            return commits[: index + 1], commits[index + 1 :]
    return commits, ()


class DeltaCommitReader:
    """Reads commits, and caches the actions that were read for a state. Thread-safe.

    The cache contains columns, not JSON: a state without removed files shares them.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._kept: deque[tuple[Sequence[DeltaLogFile], Actions]] = deque()
        self._early: dict[DeltaLogFile, bytes] = {}

    def forget(self) -> None:
        """Clear the cache."""
        with self._lock:
            self._kept.clear()
            self._early = {}
        self._storage.forget_immutable()

    def read_early(self, commits: Sequence[DeltaLogFile]) -> None:
        """Read the newest of some commits, ascending, before they are needed, and cache their bytes for one use."""
        # The listing identifies a file by its size and time, so that a replaced one is not used.
        certain = [item for item in reversed(commits) if item.size_bytes is not None and item.modified is not None]
        newest = first_batch(certain, BYTES_AT_ONCE)[0]
        with suppress(SnapshotExplorerError):  # raised when the commits are needed
            contents = self._storage.read_present([item.path for item in newest], immutable=True)
            self._early = {item: content for item, content in zip(newest, contents, strict=True) if content}

    def actions(self, commits: Sequence[DeltaLogFile], *, infos: bool) -> Actions:
        """Return the actions of commits, ascending. A request each, except for cached commits if `infos` is false.

        The actions of small commits without infos are cached: the states of these versions are often built next.
        """
        if not infos and sum(commit.size_bytes or _UNKNOWN_SIZE for commit in commits) <= _SMALL:
            return self.actions_to_keep(commits)
        kept = None if infos else self._of_kept(commits)
        return (
            parse_commits(self._contents(commits), infos=infos, limits=self._storage.limits) if kept is None else kept
        )

    def actions_to_keep(self, commits: Sequence[DeltaLogFile]) -> Actions:
        """Return the actions of commits without their commitInfo, and cache them if they are not too large."""
        kept = self._of_kept(commits)
        if kept is not None:
            return kept
        result = parse_commits(self._contents(commits), infos=False, limits=self._storage.limits)
        # If the listing cannot identify a file, it is read each time.
        if all(commit.size_bytes is not None and commit.modified is not None for commit in commits):
            self._keep(commits, result)
        return result

    def _keep(self, commits: Sequence[DeltaLogFile], actions: Actions) -> None:
        with self._lock:
            self._kept.append((commits, actions))
            # The columns of small and large commits take the same memory, and each update adds a small commit.
            while len(self._kept) > _BATCHES_KEPT or (
                sum(item.size_bytes or 0 for kept_commits, _ in self._kept for item in kept_commits) > BYTES_KEPT
            ):
                self._kept.popleft()

    def _of_kept(self, commits: Sequence[DeltaLogFile]) -> Actions | None:
        if not commits:
            return None
        with self._lock:
            kept = tuple(self._kept)
        for kept_commits, actions in kept:
            start = bisect_left(kept_commits, commits[0].version, key=lambda commit: commit.version)
            if list(kept_commits[start : start + len(commits)]) == list(commits):
                return _between(actions, commits[0].version, commits[-1].version)
        return None

    def _contents(self, commits: Sequence[DeltaLogFile]) -> Iterator[tuple[int, str, bytes]]:
        """Yield version, path and bytes of commits, in their order; a request each, concurrent within a batch."""
        left = commits
        while left:
            batch, left = first_batch(left, BYTES_AT_ONCE)
            early = {item: content for item in batch if (content := self._early.pop(item, None)) is not None}
            rest = self._storage.read_each([item.path for item in batch if item not in early], immutable=True)
            for commit in batch:
                content = early[commit] if commit in early else next(rest)
                yield commit.version, commit.path, content
                check_size(commit.path, commit.size_bytes, content)


def check_size(path: str, size_bytes: int | None, content: bytes) -> None:
    """Check that a commit is not truncated: cut between two lines, the rest would be valid."""
    if size_bytes is not None and len(content) < size_bytes:
        raise CorruptTableError(
            f"{path} has {len(content)} bytes, but {size_bytes} by the listing of the log: it is cut short or "
            "was replaced. Try again; compare it with a copy of the table."
        )


def _between(actions: Actions, first: int, last: int) -> Actions:
    return Actions(
        adds=_rows_between(actions.adds, first, last),
        removes=_rows_between(actions.removes, first, last),
        cdc=_rows_between(actions.cdc, first, last),
        commit_infos=_items_between(actions.commit_infos, first, last),
        protocols=_items_between(actions.protocols, first, last),
        metadatas=_items_between(actions.metadatas, first, last),
        transactions=_items_between(actions.transactions, first, last),
        domains=_items_between(actions.domains, first, last),
    )


def _rows_between(files: pa.Table, first: int, last: int) -> pa.Table:
    start, end = np.searchsorted(files.column("version").to_numpy(), [first, last + 1]).tolist()
    return files.slice(start, end - start)


def _items_between(items: Mapping[int, T], first: int, last: int) -> dict[int, T]:
    return {version: item for version, item in items.items() if first <= version <= last}
