"""The effect of a retention rule on a table, and the durations of rules."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import zip_longest
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import CorruptTableError, InvalidArgumentError, StorageError, UnsupportedFeatureError
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.storage import Storage

Mask = npt.NDArray[np.bool_]

_MICROSECONDS = MappingProxyType(
    dict.fromkeys(("us", "micro", "micros", "microsecond", "microseconds"), 1)
    | dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 1_000)
    | dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000_000)
    | dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000_000)
    | dict.fromkeys(("h", "hour", "hours"), 3_600_000_000)
    | dict.fromkeys(("d", "day", "days"), 86_400_000_000)
    | dict.fromkeys(("w", "week", "weeks"), 604_800_000_000)
)
_MAX_CHECKED = 32
"""The maximum number of missing files that are checked one by one: as many as concurrent requests."""
_EMPTY_STEP = re.compile(r"//|(?:^|/)\.(?:/|$)")
_PART = re.compile(r"(\d{1,15})\s*([a-z]+)\s*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """A retention rule. None means the table's own setting."""

    keep: timedelta | None
    """Versions up to this age."""
    keep_last: int | None
    """The minimum number of newest versions."""
    now: datetime
    """The time at which ages are computed, aware, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """The effect of a rule on a table."""

    versions: pa.Table
    """RETAINED: every version, ascending."""
    freed: pa.Table
    """FREED: the files that would be deleted."""
    holders: pa.Table
    """HOLDERS: the references to files that are not in the newest version."""
    rules: tuple[tuple[str, str], ...]
    """The rules by name, each with its value and source."""
    commands: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    """Explanations of what the counts include, a sentence or two each."""
    metadata: pa.Table = field(default_factory=partial(frames.no_rows, frames.FREED))
    """FREED: the metadata files that would be deleted, by the same command or by another clean-up; see the notes."""
    command_notes: tuple[str, ...] = ()
    """Warnings about the commands, a sentence each."""
    unknown: str | None = None
    """Why other files may be deleted too, in a sentence; None if all of them are known."""


def parse_duration(text: str) -> timedelta | None:
    """Return a duration such as `7d`, `1 h 30 min` or `2 weeks`, of integers with units; None if it is not one."""
    lower = text.strip().lower()
    parts = _PART.findall(lower)
    if not parts or _PART.sub("", lower) or any(unit not in _MICROSECONDS for _, unit in parts):
        return None
    try:
        return timedelta(microseconds=sum(int(count) * _MICROSECONDS[unit] for count, unit in parts))
    except OverflowError:
        return None


def format_duration(span: timedelta) -> str:
    """Return a duration as text: `7 days`, `1 hour 30 minutes`."""
    microseconds = span // timedelta(microseconds=1)
    parts = []
    for unit in ("day", "hour", "minute", "second", "millisecond"):
        count, microseconds = divmod(microseconds, _MICROSECONDS[unit])
        parts += [pluralize(count, unit)] if count else []
    return " ".join(parts) or "0 seconds"


def check_age(now: datetime, keep: timedelta) -> datetime:
    """Return the time `keep` before now."""
    try:
        return now - keep
    except OverflowError as error:
        raise InvalidArgumentError(
            f"{format_duration(keep)} reaches back before the year 1. Use a shorter time, such as 365d."
        ) from error


def live_at(lifetimes: pa.Table, version: int) -> Mask:
    """Return which LIFETIMES are live at a version."""
    first, removed = ranges(lifetimes)
    live: Mask = (first <= version) & (removed > version)
    return live


def ranges(lifetimes: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first version with each file, and the first without it: the largest integer if none."""
    removed = pc.fill_null(lifetimes.column("removed_version"), np.iinfo(np.int64).max)
    return lifetimes.column("first_version").to_numpy(), removed.to_numpy()


def sizes_of(lifetimes: pa.Table) -> dict[str, int | None]:
    """Return the size of each file by path; None if it is unknown."""
    return dict(zip(lifetimes.column("path").to_pylist(), lifetimes.column("size_bytes").to_pylist(), strict=True))


def _total(sizes: Mapping[str, int | None], paths: Collection[str]) -> int | None:
    """Return the total size of files; None if a size is unknown."""
    known = [sizes[path] for path in paths]
    return None if None in known else sum(size or 0 for size in known)


def paths_of(lifetimes: pa.Table, chosen: Mask) -> frozenset[str]:
    """Return the paths of some LIFETIMES."""
    return frozenset(lifetimes.column("path").filter(pa.array(chosen)).to_pylist())


def holder(
    kind: str,
    name: str | None,
    *,
    version: int | None,
    sizes: Mapping[str, int | None],
    paths: Collection[str],
    exclusive: Collection[str],
) -> dict[str, object]:
    """Return a row of HOLDERS.

    Args:
        sizes: The size of each file.
        exclusive: The paths of files that no other holder has.
    """
    return {
        "holder": kind,
        "name": name,
        "version": version,
        "files": len(paths),
        "size_bytes": _total(sizes, paths),
        "exclusive_files": len(exclusive),
        "exclusive_bytes": _total(sizes, exclusive),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFiles:
    """The result of checking files. Every other file exists, with its recorded size if one is recorded."""

    gone: pa.Array
    """The paths of files that do not exist."""
    resized: pa.Array
    """The paths of files whose size differs from the recorded one."""
    unknown: pa.Array
    """The paths of files on another storage, or outside the folder, that could not be checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """The existence of the files that versions need."""

    gone: Mask
    """For each of the LIFETIMES whether the file, or the deletion vector that it needs, is missing."""
    resized: Mask
    """For each whether its file exists with another size than the recorded one."""
    unknown: Mask
    """For each whether it could not be checked, because it is on another storage or outside the folder."""
    missing_metadata: Mapping[int, str] = field(default_factory=dict)
    """For versions that lack a metadata file, a description of the file."""
    via_tag: Mapping[int, str] = field(default_factory=dict)
    """For versions that can be loaded only through a tag, an explanation."""
    missing_deletes: Mapping[int, str] = field(default_factory=dict)
    """For versions that lack files of deleted rows but no data file, the number of missing files, in words."""
    unchecked_files: Mapping[int, str] = field(default_factory=dict)
    """For versions that need unchecked files other than data files, a description of the files."""

    def select(self, rows: Mask, versions: Collection[int]) -> "Presence":
        """Return the existence of the files of some of the rows, for some of the versions."""
        names = ("missing_metadata", "via_tag", "missing_deletes", "unchecked_files")
        texts = {
            name: {number: text for number, text in getattr(self, name).items() if number in versions} for name in names
        }
        return Presence(gone=self.gone[rows], resized=self.resized[rows], unknown=self.unknown[rows], **texts)


def checked_files(storage: Storage, paths: pa.Array, sizes: pa.Array | None = None) -> CheckedFiles:
    """Return which of the files do not exist, or have another size. See `Storage.sizes` for the requests.

    If listings lack files, up to 32 of them are also checked one by one.

    Args:
        paths: Paths below the root or at full locations.
        sizes: The recorded size of each; null if none is recorded.
    """
    recorded: dict[str, int | None] = dict.fromkeys(paths.drop_null().to_pylist())
    if sizes is not None:
        known = sizes.is_valid()
        recorded |= zip(paths.filter(known).to_pylist(), sizes.filter(known).to_pylist(), strict=True)
    unknown: list[str] = []
    addresses: dict[str, str] = {}
    for path in recorded:
        try:
            addresses[path] = storage.resolve_external(path) if path.startswith("/") or "://" in path else path
        except (UnsupportedFeatureError, CorruptTableError):
            unknown.append(path)
    existing, failed = _existing(storage, list(addresses.values()))
    unknown += [path for path, address in addresses.items() if address in failed]
    addresses = {path: address for path, address in addresses.items() if address not in failed}
    gone = [path for path, address in addresses.items() if address not in existing]
    check_gone(storage, _by_folder([addresses[path] for path in gone]))
    resized = [path for path, address in addresses.items() if _differs(existing.get(address), recorded[path])]
    return CheckedFiles(gone=_texts(gone), resized=_texts(resized), unknown=_texts(unknown))


def _existing(storage: Storage, addresses: Sequence[str]) -> tuple[Mapping[str, int | None], frozenset[str]]:
    """Return the sizes of the files that exist, and the files that could not be checked.

    Also checks files outside the table's folder, with one listing per folder. On a store, files whose names have empty
    steps are checked one by one, because a listing may spell their names differently.
    """
    odd: list[str] = []
    outside: dict[str, list[str]] = {}
    below: list[str] = []
    for address in addresses:
        if not storage.is_local and _EMPTY_STEP.search(address.partition("://")[2] or address):
            odd.append(address)
        elif "://" in address:
            outside.setdefault(address.rpartition("/")[0], []).append(address)
        else:
            below.append(address)
    existing = storage.sizes(below)
    failed: set[str] = set()
    for files in [*outside.values(), *([address] for address in odd)]:
        try:
            existing |= storage.sizes(files) if files[0] not in odd else dict.fromkeys(filter(storage.exists, files))
        except (StorageError, UnsupportedFeatureError):
            failed.update(files)
    return existing, frozenset(failed)


def presence_from(checked: CheckedFiles, *files: pa.Array) -> Presence:
    """Return the presence of the files of LIFETIMES.

    Args:
        files: One array with the path of the data file of each of the LIFETIMES, one with its deletion vector's path.
    """
    gone, resized, unknown = (
        np.any([pc.is_in(paths, names).to_numpy(zero_copy_only=False) for paths in files], axis=0)
        for names in (checked.gone, checked.resized, checked.unknown)
    )
    return Presence(gone=gone, resized=resized, unknown=unknown)


def _differs(size: int | None, recorded: int | None) -> bool:
    return size is not None and recorded is not None and size != recorded


def _texts(paths: Sequence[str]) -> pa.Array:
    return pa.array(paths, pa.string())


def _by_folder(addresses: Sequence[str]) -> list[list[str]]:
    """Return up to the maximum number of paths to check, by folder."""
    folders: dict[str, list[str]] = {}
    for address in addresses:
        folder = address.rpartition("/")[0]
        if folder in folders or len(folders) < _MAX_CHECKED:
            folders.setdefault(folder, []).append(address)
    return [files[:_MAX_CHECKED] for files in folders.values()]


def check_gone(storage: Storage, addresses: Sequence[Sequence[str]]) -> None:
    """Check that files missing from listings do not exist: a storage may answer with a truncated listing.

    Args:
        addresses: Paths for the storage, by listed folder. Up to 32 are checked, spread over the folders.
    """
    rounds = zip_longest(*(sorted(paths, reverse=True)[:_MAX_CHECKED] for paths in addresses))
    checked = [address for turn in rounds for address in turn if address is not None][:_MAX_CHECKED]
    for address, is_there in zip(checked, storage.exists_many(checked), strict=True):
        if is_there:
            raise StorageError(
                f"The listing of {address.rpartition('/')[0] or storage.root} lacks {address}, which exists: "
                f"the storage returned an incomplete listing. Try again."
            )


def freed_frame(lifetimes: pa.Table, chosen: Mask) -> pa.Table:
    """Return the FREED frame of data files, sorted by removal and path, without duplicates."""
    rows = lifetimes.filter(pa.array(chosen)).sort_by([("removed_version", "ascending"), ("path", "ascending")])
    firsts = np.unique(rows.column("path").to_numpy(zero_copy_only=False).astype(str), return_index=True)[1]
    rows = rows.take(pa.array(np.sort(firsts)))
    contents = pa.repeat("data", len(rows))
    columns = {name: rows.column(name) for name in frames.FREED.names if name != "what"} | {"what": contents}
    return frames.table_of(frames.FREED, columns)
