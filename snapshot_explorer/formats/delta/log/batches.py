"""Commits, read so many at once as memory should hold; the actions of those read last are kept."""

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.formats.delta.log.actions import parse_commits
from snapshot_explorer.formats.delta.log.layout import LogFile
from snapshot_explorer.formats.delta.log.records import Actions
from snapshot_explorer.storage import Storage

BYTES_AT_ONCE = 16 << 20
"""Bytes of commits that are in memory at the same time."""
BYTES_KEPT = 64 << 20
"""Bytes of the commits whose actions are kept; as columns they take about as much."""
_BATCHES_KEPT = 32
"""Batches of commits whose actions are kept at most."""
_UNKNOWN_SIZE = 4_096
"""Taken for the size of a commit that the listing does not tell."""

T = TypeVar("T")


def first_batch(commits: Sequence[LogFile], limit: int) -> tuple[Sequence[LogFile], Sequence[LogFile]]:
    """Return the first commits, so many as hold that many bytes, at least one of them, and those that are left."""
    held = 0
    for place, commit in enumerate(commits):
        held += _UNKNOWN_SIZE if commit.size_bytes is None else commit.size_bytes
        if held >= limit:
            return commits[: place + 1], commits[place + 1 :]
    return commits, ()


class Commits:
    """Reads commits. Keeps actions that were read to make a state, for whoever asks what made it. Thread-safe.

    Kept are columns, no JSON: a state without removed files shares them.
    """

    def __init__(self, storage: Storage) -> None:
        """Bind to a table; reads nothing."""
        self._storage = storage
        self._lock = threading.Lock()
        self._kept: deque[tuple[Sequence[LogFile], Actions]] = deque()

    def forget(self) -> None:
        """Keep nothing of what was read."""
        with self._lock:
            self._kept.clear()

    def actions(self, commits: Sequence[LogFile], *, infos: bool) -> Actions:
        """Return the actions of commits, ascending. A request each; none where they are kept and `infos` is false.

        Raises: as `parse_commits`, and as the storage.
        """
        kept = None if infos else self._of_kept(commits)
        return (
            parse_commits(self._contents(commits), infos=infos, limits=self._storage.limits) if kept is None else kept
        )

    def actions_to_keep(self, commits: Sequence[LogFile]) -> Actions:
        """Return the actions of commits without their commitInfo, and keep them if they are not too many.

        Raises: as `actions`.
        """
        kept = self._of_kept(commits)
        if kept is not None:
            return kept
        found = parse_commits(self._contents(commits), infos=False, limits=self._storage.limits)
        # Where the listing does not tell a file from another of its name, it is read each time.
        if all(one.size_bytes is not None and one.modified is not None for one in commits):
            self._keep(commits, found)
        return found

    def _keep(self, commits: Sequence[LogFile], actions: Actions) -> None:
        with self._lock:
            self._kept.append((commits, actions))
            # The columns of a few bytes take as much memory as those of many: followed, a table gives one each time.
            while len(self._kept) > _BATCHES_KEPT or (
                sum(one.size_bytes or 0 for some, _ in self._kept for one in some) > BYTES_KEPT
            ):
                self._kept.popleft()

    def _of_kept(self, commits: Sequence[LogFile]) -> Actions | None:
        """Return the actions of commits that are kept side by side."""
        if not commits:
            return None
        with self._lock:
            kept = tuple(self._kept)
        for some, actions in kept:
            start = bisect_left(some, commits[0].version, key=_version)
            if list(some[start : start + len(commits)]) == list(commits):
                return _between(actions, commits[0].version, commits[-1].version)
        return None

    def _contents(self, commits: Sequence[LogFile]) -> Iterator[tuple[int, str, bytes]]:
        """Yield version, path and bytes of commits, in their order; a request each, those of a batch concurrently."""
        left = commits
        while left:
            some, left = first_batch(left, BYTES_AT_ONCE)
            for commit, content in zip(some, self._storage.read_each([one.path for one in some]), strict=True):
                yield commit.version, commit.path, content
                check_size(commit.path, commit.size_bytes, content)


def check_size(path: str, size_bytes: int | None, content: bytes) -> None:
    """Refuse a commit of which a part is missing: cut between two lines, what is left reads as a whole commit."""
    if size_bytes is not None and len(content) < size_bytes:
        raise CorruptTableError(
            f"{path} gives {len(content)} bytes where the listing of the log says {size_bytes}: it is cut short or "
            "was replaced. Try again; compare it with a copy of the table."
        )


def _version(commit: LogFile) -> int:
    return commit.version


def _between(actions: Actions, first: int, last: int) -> Actions:
    """Return the actions of the versions from `first` to `last`. Copies no column."""
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


def _items_between(found: Mapping[int, T], first: int, last: int) -> dict[int, T]:
    return {version: one for version, one in found.items() if first <= version <= last}
