"""What a rule of retention would take from a table, as formats tell it, and the durations that rules are made of."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer import frames
from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError, StorageError, UnsupportedFeatureError
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
_CHECKED = 32
"""Files that are asked for to check listings that lack them: as many requests as are made at once."""
_PART = re.compile(r"(\d{1,15})\s*([a-z]+)\s*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """What to keep. What is not said is the table's own setting."""

    keep: timedelta | None
    """Versions up to this age."""
    keep_last: int | None
    """At least so many of the newest versions."""
    now: datetime
    """The time from which ages are told, aware, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """What the rule would take from a table."""

    versions: pa.Table
    """RETAINED: every version, ascending."""
    freed: pa.Table
    """FREED: the files that would be deleted."""
    holders: pa.Table
    """HOLDERS: what keeps files that the newest version has no more."""
    rules: tuple[tuple[str, str], ...]
    """The rules by name, each with its value and where it comes from."""
    commands: tuple[tuple[str, str], ...]
    """For whom each command is, and the command."""
    notes: tuple[str, ...]
    """What is counted and what is not, a sentence or two each."""
    command_notes: tuple[str, ...] = ()
    """What to mind when a command is run, a sentence each."""


def parse_duration(text: str) -> timedelta | None:
    """Return a duration such as `7d`, `1 h 30 min` or `2 weeks`, of whole numbers with units; None if it is none."""
    lower = text.strip().lower()
    parts = _PART.findall(lower)
    if not parts or _PART.sub("", lower) or any(unit not in _MICROSECONDS for _, unit in parts):
        return None
    try:
        return timedelta(microseconds=sum(int(count) * _MICROSECONDS[unit] for count, unit in parts))
    except OverflowError:
        return None


def spelled(span: timedelta) -> str:
    """Return a duration as text: `7 days`, `1 hour 30 minutes`."""
    left = span // timedelta(microseconds=1)
    said = []
    for unit in ("day", "hour", "minute", "second", "millisecond"):
        count, left = divmod(left, _MICROSECONDS[unit])
        said += [f"{count:,} {unit}{'' if count == 1 else 's'}"] if count else []
    return " ".join(said) or "0 seconds"


def check_age(now: datetime, keep: timedelta) -> datetime:
    """Return the time so long before now.

    Raises:
        InvalidArgumentError: The calendar has no such time.
    """
    try:
        return now - keep
    except OverflowError as error:
        raise InvalidArgumentError(
            f"keep={spelled(keep)} reaches back before the year 1. Give a shorter time, such as keep='365d'."
        ) from error


def live_at(lifetimes: pa.Table, version: int) -> Mask:
    """Return which LIFETIMES are of files that a version has."""
    first, removed = ranges(lifetimes)
    live: Mask = (first <= version) & (removed > version)
    return live


def ranges(lifetimes: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first version that has each file, and the first that has it no more: the greatest number if none."""
    removed = pc.fill_null(lifetimes.column("removed_version"), np.iinfo(np.int64).max)
    return lifetimes.column("first_version").to_numpy(), removed.to_numpy()


def sizes_of(lifetimes: pa.Table) -> dict[str, int]:
    """Return the size of each file by path; 0 where it is not known."""
    return dict(
        zip(
            lifetimes.column("path").to_pylist(),
            pc.fill_null(lifetimes.column("size_bytes"), 0).to_pylist(),
            strict=True,
        )
    )


def paths_of(lifetimes: pa.Table, chosen: Mask) -> frozenset[str]:
    """Return the paths of some LIFETIMES."""
    return frozenset(lifetimes.column("path").filter(pa.array(chosen)).to_pylist())


def holder(
    kind: str,
    name: str | None,
    *,
    version: int | None,
    sizes: Mapping[str, int],
    held: Collection[str],
    alone: Collection[str],
) -> dict[str, object]:
    """Return a row of HOLDERS.

    Args:
        kind: What sort of holder it is.
        name: Its name, where it has one.
        version: The version that it stands at.
        sizes: The size of each file.
        held: The paths of the files that it holds.
        alone: The paths of those that nothing else holds.
    """
    return {
        "holder": kind,
        "name": name,
        "version": version,
        "files": len(held),
        "size_bytes": sum(sizes[path] for path in held),
        "alone_files": len(alone),
        "alone_bytes": sum(sizes[path] for path in alone),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """What became of files that were looked for."""

    gone: pa.Array
    """Those that are not there."""
    unknown: pa.Array
    """Those that are on another storage, where nothing was looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """What is there of what versions need."""

    gone: Mask
    """For each of the LIFETIMES whether the file, or the deletion vector that it needs, is not there."""
    unknown: Mask
    """For each whether it is on another storage, where nothing was looked for."""
    without: Mapping[int, str]
    """For versions that lack a file of metadata, which one."""
    through: Mapping[int, str]
    """For versions that can be loaded in one way only, which: through a tag."""


def missing_files(storage: Storage, paths: pa.Array) -> Missing:
    """Return which of the files are not there. One listing for each folder that holds some, all at once.

    Where listings lack files, up to 32 of them are asked for as well.

    Args:
        storage: The table's storage.
        paths: Paths below the root or at full locations.

    Raises:
        StorageError: A listing lacks a file that is there.
    """
    paths = pc.unique(paths).drop_null()
    is_full = pc.or_(pc.starts_with(paths, "/"), pc.match_substring(paths, "://"))
    unknown: list[str] = []
    full: list[tuple[str, str]] = []
    for path in paths.filter(is_full).to_pylist():
        try:
            full.append((path, storage.resolve_external(path)))
        except (UnsupportedFeatureError, CorruptTableError):
            unknown.append(path)
    below = paths.filter(pc.invert(is_full))
    asked = pa.concat_arrays([below, pa.array([path for path, _ in full], pa.string())])
    places = pa.concat_arrays([below, pa.array([place for _, place in full], pa.string())])
    folders = sorted(pc.unique(_folders(places)).to_pylist())
    there = [
        f"{folder}/{entry.name}" if folder else entry.name
        for folder, entries in zip(folders, storage.list_many(folders), strict=True)
        for entry in entries
        if not entry.is_folder
    ]
    is_gone = pc.invert(pc.is_in(places, pa.array(there, pa.string())))
    check_gone(storage, _by_folder(places.filter(is_gone)))
    return Missing(gone=asked.filter(is_gone), unknown=pa.array(unknown, pa.string()))


def _folders(paths: pa.Array) -> pa.Array:
    """Return the folder of each path; none of a name alone."""
    parts = pc.split_pattern(paths, "/", max_splits=1, reverse=True)
    begins, sizes = parts.offsets.to_numpy()[:-1], pc.list_value_length(parts)
    return pc.if_else(pc.equal(sizes, 2), parts.values.take(pa.array(begins)), "")


def _by_folder(places: pa.Array) -> list[list[str]]:
    """Return some of the paths of each of some folders, as many as are checked at most."""
    found = pa.table({"folder": _folders(places), "place": places})
    folders = pc.unique(found["folder"]).slice(0, _CHECKED).to_pylist()
    return [found.filter(pc.field("folder") == folder)["place"].slice(0, _CHECKED).to_pylist() for folder in folders]


def check_gone(storage: Storage, places: Sequence[Sequence[str]]) -> None:
    """Check that files are not there that listings lack: a storage may answer with a listing that is cut short.

    Args:
        storage: The table's storage.
        places: Paths for the storage, by the folder that was listed. Up to 32 are asked for, of each folder some.

    Raises:
        StorageError: One is there.
    """
    turns = zip_longest(*(sorted(some, reverse=True)[:_CHECKED] for some in places))
    asked = [place for turn in turns for place in turn if place is not None][:_CHECKED]
    for place, is_there in zip(asked, storage.exists_many(asked), strict=True):
        if is_there:
            raise StorageError(
                f"The listing of {place.rpartition('/')[0] or storage.root} lacks {place}, which is there: "
                f"the storage answered with less than it has. Try again."
            )


def frame_of(rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> pa.Table:
    """Return rows as a table of a schema; what a row does not say is null."""
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)


def freed_frame(lifetimes: pa.Table, chosen: Mask) -> pa.Table:
    """Return the FREED frame of data files, by when they were removed and path, each once."""
    rows = lifetimes.filter(pa.array(chosen)).sort_by([("removed_version", "ascending"), ("path", "ascending")])
    firsts = np.unique(rows.column("path").to_numpy(zero_copy_only=False).astype(str), return_index=True)[1]
    rows = rows.take(pa.array(np.sort(firsts)))
    what = pa.repeat("data", len(rows))
    columns = {name: rows.column(name) for name in frames.FREED.names if name != "what"} | {"what": what}
    return pa.table([columns[name] for name in frames.FREED.names], schema=frames.FREED)
