"""Detection of the versions that can still be loaded. Distinguishes a cleaned log from vacuumed data.

The log does not show whether VACUUM deleted files of an old version. But VACUUM only deletes files that the newest
version does not use, so only files removed after a version can be gone; these are checked.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import UNREADABLE, CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.core.records import Readable
from snapshot_explorer.formats.delta.files.deletion_vectors import vector_of
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.records import Actions
from snapshot_explorer.formats.delta.metadata.replay import keys
from snapshot_explorer.storage import Storage
from snapshot_explorer.storage.location import is_full_location

_MAX_CHECKED = 256
"""The maximum number of files that are checked one by one. For more files, their folders are listed."""
_MAX_FOLDERS = 64
"""The maximum number of folders to list. With more, the state of their files is unknown."""
NEAR = 64
"""The number of commits that are read to find the files removed after a version."""
_NOWHERE = ""
"""The location of an inline deletion vector."""
_VALID_SECONDS = 30.0
"""Seconds for which results are valid for the next page of a history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _MissingFiles:
    """The files that a version needs and that no longer exist."""

    version: int
    newest: int
    """The newest version at the check."""
    at: float
    """The time of the check, on the process clock."""
    missing: frozenset[str] = frozenset()
    """The keys of files that are live at the version, were removed later and do not exist, as far as was checked."""

    @property
    def readable(self) -> Readable | None:
        """Whether the version can be loaded; None if no file is known to be missing."""
        return "metadata" if self.missing else None


@dataclass(slots=True)
class _Commit:
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


class Readability:
    """Checks whether versions can be loaded. Thread-safe."""

    def __init__(self, storage: Storage, log: DeltaLog, is_cheap: Callable[[int], bool]) -> None:
        """Bind to a table. Reads nothing.

        Args:
            is_cheap: Returns whether the state of a version is cheap to build.
        """
        self._storage = storage
        self._log = log
        self._is_cheap = is_cheap
        self._lock = threading.Lock()
        self._last: _MissingFiles | None = None

    def of(self, versions: Sequence[int], actions: Actions) -> dict[int, Readable | None]:
        """Return whether each version can be loaded: None if nothing is known to be missing.

        `no`: its log was cleaned up. `metadata`: a data file or a deletion vector that it needs is missing. Files that
        the newest version uses are not checked.

        No request if nothing was removed since. Otherwise the files removed later are checked: up to 256 files one by
        one, or by listing up to 64 folders. To find them, up to 64 later commits are read, or two states that are cheap
        to build. If more were needed, the result is None.

        Args:
            versions: Consecutive versions, ascending.
        """
        newest = self._log.versions()[-1]
        whole = self._log.listing().loadable
        missing = self._at(versions[-1], newest)
        present = self._present(actions.removes)
        commits = _by_version(actions)
        result: dict[int, Readable | None] = {}
        back = _Back(missing)
        for version in reversed(versions):
            result[version] = back.readable if version in whole else "no"
            back.step(commits.get(version, _Commit()), present)
        with self._lock:
            self._last = back.missing()
        return result

    def near(self, version: int) -> Readable | None:
        """Return whether a version can be loaded if only its checkpoint is left. Costs the same as `of`."""
        return self._at(version, self._log.versions()[-1]).readable

    def _at(self, version: int, newest: int) -> _MissingFiles:
        now = time.monotonic()
        if version >= newest:
            return _MissingFiles(version=version, newest=newest, at=now)
        with self._lock:
            last = self._last
        if last and last.version == version and last.newest == newest and now - last.at < _VALID_SECONDS:
            return last
        later_ones = range(version + 1, newest + 1)
        if len(later_ones) <= NEAR and self._log.listing().commits.keys() >= set(later_ones):
            with suppress(*UNREADABLE):
                return self._walked(version, newest, now)
        unknown = _MissingFiles(version=version, newest=newest, at=now)
        if not (self._is_cheap(version) and self._is_cheap(newest)):
            return unknown
        try:
            adds, later = self._log.state(version).adds, self._log.state(newest).adds
        except UNREADABLE:
            return unknown
        removed = adds.filter(pc.invert(pc.is_in(keys(adds), keys(later))))
        present = self._present(removed)
        return _MissingFiles(
            version=version,
            newest=newest,
            at=now,
            missing=_missing_among(present, present),
        )

    def _walked(self, version: int, newest: int, now: float) -> _MissingFiles:
        actions = self._log.actions(range(version + 1, newest + 1))
        present = self._present(actions.removes)
        commits = _by_version(actions)
        back = _Back(_MissingFiles(version=newest, newest=newest, at=now))
        for later in range(newest, version, -1):
            back.step(commits.get(later, _Commit()), present)
        return back.missing()

    def _present(self, files: pa.Table) -> dict[str, bool | None]:
        """Return by key whether each file and its deletion vector exist; None if unknown."""
        every = {
            key: (self._storage_path(path), self._vector_path(vector, path))
            for key, path, vector in zip(
                keys(files).to_pylist(),
                files["path"].to_pylist(),
                files["deletion_vector"].to_pylist(),
                strict=True,
            )
        }
        unique_addresses = dict.fromkeys(address for addresses in every.values() for address in addresses if address)
        existing = self._existing(list(unique_addresses))
        return {
            key: _all(
                None if address is None else existing.get(address) for address in addresses if address != _NOWHERE
            )
            for key, addresses in every.items()
        }

    def _storage_path(self, path: str) -> str | None:
        """Return the path for the storage; None for a file on another storage, which is not checked."""
        try:
            return self._storage.resolve_external(path) if is_full_location(path) else path
        except (UnsupportedFeatureError, CorruptTableError):
            return None

    def _vector_path(self, descriptor: Mapping[str, Any] | None, path: str) -> str | None:
        """Return the path of a deletion vector's file, empty without one; None if it is unknown."""
        try:
            vector = vector_of(descriptor, self._storage, path)
        except (UnsupportedFeatureError, CorruptTableError):
            return None
        return _NOWHERE if vector is None or vector.path is None else vector.path

    def _existing(self, paths: Sequence[str]) -> Mapping[str, bool]:
        """Return for each path whether the file exists; unknown paths are left out."""
        if len(paths) <= _MAX_CHECKED:
            return dict(zip(paths, self._storage.exists_many(paths), strict=True))
        folders = sorted({path.rpartition("/")[0] for path in paths if "://" not in path})
        if len(folders) > _MAX_FOLDERS:
            return {}
        names = {
            folder: {entry.name for entry in entries if not entry.is_folder}
            for folder, entries in zip(folders, self._storage.list_many(folders), strict=True)
        }
        split = [(path, *path.rpartition("/")[::2]) for path in paths if "://" not in path]
        return {path: name in names[folder] for path, folder, name in split}


class _Back:
    """The missing files of a version, updated backwards: each step undoes one commit.

    The set changes in place. Copying it at each step would take quadratic time for a long history of vacuumed files.
    """

    def __init__(self, start: _MissingFiles) -> None:
        self._start, self._steps = start, 0
        self._missing = set(start.missing)

    @property
    def readable(self) -> Readable | None:
        """Whether the version can be loaded; None if no file is known to be missing."""
        return "metadata" if self._missing else None

    def step(self, commit: _Commit, present: Mapping[str, bool | None]) -> None:
        self._steps += 1
        self._missing.difference_update(commit.added)
        self._missing |= _missing_among(commit.removed, present)

    def missing(self) -> _MissingFiles:
        missing = frozenset(self._missing)
        return replace(self._start, version=self._start.version - self._steps, missing=missing)


def _missing_among(files: Iterable[str], present: Mapping[str, bool | None]) -> frozenset[str]:
    return frozenset(path for path in files if present[path] is False)


def _by_version(actions: Actions) -> dict[int, _Commit]:
    commits: dict[int, _Commit] = {}
    for version, key in zip(actions.removes["version"].to_pylist(), keys(actions.removes).to_pylist(), strict=True):
        commits.setdefault(version, _Commit()).removed.append(key)
    adds = zip(
        actions.adds["version"].to_pylist(),
        keys(actions.adds).to_pylist(),
        actions.adds["data_change"].to_pylist(),
        strict=True,
    )
    for version, key, data_change in adds:
        commit = commits.setdefault(version, _Commit())
        # Without removes, adds that change no data update existing files, for example their statistics.
        if data_change or commit.removed:
            commit.added.append(key)
    return commits


def _all(answers: Iterable[bool | None]) -> bool | None:
    values = list(answers)
    return False if False in values else None if None in values else True
