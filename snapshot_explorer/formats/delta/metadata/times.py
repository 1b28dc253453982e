"""Commit times of versions: adjusted file times and in-commit timestamps.

Source: delta PROTOCOL.md, "In-Commit Timestamps"; delta DeltaHistoryManager.getActiveCommitAtTime.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.core.milliseconds import from_millis, to_millis
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.delta.metadata.actions import broken_line, check_is_commit
from snapshot_explorer.formats.delta.metadata.layout import DeltaLogFile
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.log_segment import LogListing
from snapshot_explorer.formats.delta.metadata.records import Metadata
from snapshot_explorer.formats.missing_versions import absent_version_error
from snapshot_explorer.formats.settings import parse_flag
from snapshot_explorer.storage import Storage

_AT_ONCE = 64
"""The number of commit files in memory at the same time."""
_ENABLED = "delta.enableInCommitTimestamps"
_FROM_VERSION = "delta.inCommitTimestampEnablementVersion"
_FROM_TIME = "delta.inCommitTimestampEnablementTimestamp"

Infos = Mapping[int, Mapping[str, Any]]
"""The times in the commitInfo of each version; versions without one are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The clock of a table's commit times."""

    first: int | None
    """The first version with its own timestamp; None if no version has one."""
    begins: int | None
    """The commit time of that version, in milliseconds since 1970; None if all versions have one, or none has."""

    def carries(self, version: int) -> bool:
        """Return whether a version has its own timestamp."""
        return self.first is not None and version >= self.first

    def side_of(self, millis: int, versions: Sequence[int]) -> Sequence[int]:
        """Return the versions whose commit times use the clock that was in use at a time; all if there are none."""
        if self.begins is None:
            return versions
        is_later = millis >= self.begins
        return [version for version in versions if self.carries(version) == is_later] or versions


NO_CLOCK = Clock(first=None, begins=None)
"""The clock of a table without in-commit timestamps."""


def clock_of(metadata: Metadata) -> Clock:
    """Return the clock of a table's commit times, from its newest metadata.

    Source: delta PROTOCOL.md, "Writer Requirements for In-Commit Timestamps".
    """
    settings = metadata.configuration
    if not parse_flag(settings, _ENABLED):
        return NO_CLOCK
    first, begins = settings.get(_FROM_VERSION), settings.get(_FROM_TIME)
    if first is None and begins is None:
        return Clock(first=0, begins=None)
    try:
        return Clock(first=int(first or ""), begins=int(begins or ""))
    except ValueError as error:
        raise CorruptTableError(
            f"The table has the properties {_FROM_VERSION}={first} and {_FROM_TIME}={begins}: both must be whole "
            "numbers. The commit times are unknown; use version numbers instead."
        ) from error


def adjust_times(modified: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return strictly increasing times. A time that does not increase is set to a millisecond after the previous one.

    Args:
        modified: The modification time of each commit file, in milliseconds, by ascending version.

    Source: delta DeltaHistoryManager.monotonizeCommitTimestamps.
    """
    indices = np.arange(len(modified))
    increasing: npt.NDArray[np.int64] = np.maximum.accumulate(modified - indices) + indices
    return increasing


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTimes:
    """The commit times in one listing of the log. Picklable."""

    listing: LogListing
    versions: frozenset[int]
    """The versions that the log names."""
    paths: Mapping[int, str]
    """The commit file of each version that has one."""
    modified: Mapping[int, int] | None
    """The adjusted file time of each commit file; None if the storage does not report all file times."""
    clock: Clock

    def reads_commit_file(self, version: int) -> bool:
        """Return whether the commit time of a version is in its commitInfo."""
        return self.modified is None or self.clock.carries(version)

    def time(self, version: int, infos: Infos) -> datetime | None:
        """Return the commit time of a version; None if unknown."""
        if version not in self.paths:
            return None
        millis = (
            self._recorded_millis(version, infos)
            if self.reads_commit_file(version)
            else (self.modified or {}).get(version)
        )
        try:
            return None if millis is None else from_millis(millis)
        except OverflowError:
            return None

    def times(self, versions: Sequence[int], infos: Infos) -> list[datetime]:
        """Return the commit times of versions."""
        result: list[datetime] = []
        for version in versions:
            time = self.time(version, infos)
            if time is None:
                raise self.missing_time_error(version, infos)
            result.append(time)
        return result

    def only(self, versions: Sequence[int]) -> "ListedTimes":
        """Return the times of some versions only."""
        return replace(
            self,
            listing=replace(self.listing, files=()),
            versions=frozenset(versions),
            paths={version: self.paths[version] for version in versions if version in self.paths},
            modified=None
            if self.modified is None
            else {version: self.modified[version] for version in versions if version in self.modified},
        )

    def missing_time_error(self, version: int, infos: Infos) -> CorruptTableError:
        """Return the error for a version without a known commit time."""
        path, advice = self.paths.get(version), "Use version numbers instead."
        if path is None:
            return CorruptTableError(
                f"The time when version {version} was committed is unknown: its commit file is missing, and only "
                f"its checkpoint is left. {advice}"
            )
        millis = self._recorded_millis(version, infos)
        if millis is not None:
            return CorruptTableError(
                f"{path} says that it was committed {millis} milliseconds after 1970: in none of the years 1 to "
                f"9999. {advice}"
            )
        if not self.clock.carries(version):
            return CorruptTableError(
                f"The time when version {version} was committed is unknown: the storage reports no file times, and "
                f"{path} records none. {advice}"
            )
        lacks = "a commitInfo without inCommitTimestamp" if version in infos else "no commitInfo"
        return CorruptTableError(
            f"{path} contains {lacks}, and the table has {_ENABLED}=true, by which each commit carries its time "
            f"(DELTA_MISSING_COMMIT_INFO, DELTA_MISSING_COMMIT_TIMESTAMP). {advice}"
        )

    def _recorded_millis(self, version: int, infos: Infos) -> int | None:
        name = "inCommitTimestamp" if self.clock.carries(version) else "timestamp"
        return _whole(infos.get(version, {}).get(name))


class Times:
    """The commit times of a table. Caches the times of the newest listing. Thread-safe."""

    def __init__(self, storage: Storage, log: DeltaLog) -> None:
        self._storage = storage
        self._log = log
        self._kept: ListedTimes | None = None

    def committed_at(self, versions: Sequence[int]) -> list[datetime]:
        """Return the commit time of each version, aware, UTC, in milliseconds.

        If commit times are file times, adjusted over all existing commit files, the listing is sufficient. The commit
        file is read if it contains the time. It is also read if the storage reports no times: then the time by the
        writer's clock is used.
        """
        listed = self._listed(versions)
        readable = [version for version in versions if version in listed.paths and listed.reads_commit_file(version)]
        return listed.times(versions, self._infos([listed.paths[version] for version in readable], readable))

    def commit_times(self, versions: Sequence[int], infos: Infos) -> list[datetime | None]:
        """Return when each version was committed; None if the time is unknown or the commit file is missing."""
        listed = self._listed(versions)
        return [listed.time(version, infos) for version in versions]

    def listed(self, versions: Sequence[int]) -> ListedTimes:
        """Return the times in the newest listing; `reads_commit_file` is true where commitInfo is needed."""
        return self._listed(versions)

    def searched(self, time: datetime, versions: Sequence[int]) -> Sequence[int]:
        """Return the versions that can contain the last one committed at or before a time.

        If a table began to use in-commit timestamps at some version, earlier times match only older versions, and later
        times only the others: after a copy, file times may be too late.

        Source: delta PROTOCOL.md, "Recommendations for Readers of Tables with In-Commit Timestamps".
        """
        return self._listed(()).clock.side_of(to_millis(time), versions)

    def _listed(self, versions: Sequence[int]) -> ListedTimes:
        """Return the times in the newest listing; lists again if some versions are missing in it."""
        result = self._of(self._log.listing())
        if not result.versions.issuperset(versions):
            result = self._of(self._log.refresh())
        for version in versions:
            if version not in result.versions:
                raise absent_version_error(self._storage.root, version, sorted(result.versions))
        return result

    def _of(self, listing: LogListing) -> ListedTimes:
        kept = self._kept
        if kept is not None and kept.listing is listing:
            return kept
        versions, commits = listing.versions, listing.commits
        self._kept = kept = ListedTimes(
            listing=listing,
            versions=frozenset(versions),
            paths={version: commit.path for version, commit in commits.items()},
            modified=_modified(tuple(commits.values())),
            clock=clock_of(self._log.protocol_and_metadata(versions[-1])[1]) if versions else NO_CLOCK,
        )
        return kept

    def _infos(self, paths: Sequence[str], versions: Sequence[int]) -> Infos:
        """Return the commitInfo of some commit files. One request per file."""
        result: dict[int, Mapping[str, Any]] = {}
        for start in range(0, len(paths), _AT_ONCE):
            page = paths[start : start + _AT_ONCE]
            contents = self._storage.read_many(page, immutable=True)
            for version, path, content in zip(versions[start:], page, contents, strict=False):
                info = _commit_info(content, path, self._storage.limits)
                if info is not None:
                    result[version] = info
        return result


def _modified(commits: Sequence[DeltaLogFile]) -> dict[int, int] | None:
    """Return the adjusted file time of each version; None if the storage does not report all file times."""
    times = [commit.modified for commit in commits]
    if None in times:
        return None
    micros = pa.array(times, pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    return dict(zip((commit.version for commit in commits), adjust_times(micros // 1000).tolist(), strict=True))


def _commit_info(content: bytes, path: str, limits: Limits) -> Mapping[str, Any] | None:
    """Return the first commitInfo of a commit file: with in-commit timestamps it is on the first line."""
    json_text.check(content, path, limits)
    check_is_commit(path, content)
    for line in _lines(content):
        if b'"commitInfo"' not in line:
            continue
        try:
            action = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise broken_line(path, content, error) from error
        info = action.get("commitInfo") if isinstance(action, dict) else None
        if isinstance(info, dict):
            return info
    return None


def _lines(content: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end == -1 else end
        yield content[start:end]
        start = end + 1


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    try:
        return int(value) if isinstance(value, str | float) else None
    except (ValueError, OverflowError):
        return None
