"""Identity of files by path: equal for every path of a file, however metadata, listings and other tables write it.

On the local disk, symbolic links and mounts are followed. On other storages the name identifies the file, but hosts,
schemes and Azure's two endpoints are written in several ways.
"""

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.storage.location import (
    LOCAL,
    Location,
    comparable_address,
    is_full_location,
    normalize,
    resolve_location,
    shorten,
)

if TYPE_CHECKING:
    from snapshot_explorer.storage import Storage

_EMPTY_STEPS = re.compile(r"/(?:\.?/)+")


class RealPaths:
    """Local paths without symbolic links. Looks at each folder once."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def of(self, path: str) -> str:
        """Return the target of an absolute path. Parts that do not exist are unchanged."""
        folder, name = os.path.split(path)
        real = self._folders.get(folder)
        if real is None:
            real = self._folders[folder] = os.path.realpath(folder)
        joined = os.path.join(real, name)  # noqa: PTH118 - a Path costs more
        return os.path.realpath(joined) if os.path.islink(joined) else joined  # noqa: PTH114 - as above


class Addresses:
    """Addresses of a table's files, equal for all paths of the same file. Reads only links of the local disk."""

    def __init__(self, root: Location, account: object) -> None:
        self._root, self._account = root, account
        self._folder = comparable_address(root).rstrip("/")
        self._real_paths = RealPaths() if root.protocol == LOCAL else None

    def of(self, path: str) -> str | None:
        """Return the address of a path in the metadata; None if the path is not read, such as on another storage."""
        try:
            if path.startswith("/") or is_full_location(path):
                address = comparable_address(resolve_location(path, self._root, self._account))
            else:
                address = f"{self._folder}/{normalize(path)}".rstrip("/")
        except (UnsupportedFeatureError, CorruptTableError):
            return None
        return address if self._real_paths is None else self._real_paths.of(os.path.normpath(address))


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedFiles:
    """The listed files that paths in the metadata refer to."""

    is_named: pa.Array
    """For each listed path, whether a recorded path refers to its file."""
    listed_as: Mapping[str, str] = field(default_factory=dict)
    """For recorded paths that are written in another way than in the listing, the listed path of the file."""
    undecided: tuple[str, ...] = ()
    """Recorded paths that might refer to a listed file that no other path names."""

    @property
    def note(self) -> str | None:
        """A sentence about the paths that are undecided; None without them."""
        if not self.undecided:
            return None
        more = f" and {len(self.undecided) - 1:,} more" if len(self.undecided) > 1 else ""
        return (
            f"Not all could be decided: the metadata names {shorten(self.undecided[0])}{more}, which may be another "
            "path of a file in the table's folder."
        )


def match_files(storage: "Storage", listed: pa.Array, recorded: pa.Array | pa.ChunkedArray) -> MatchedFiles:
    """Return the listed files that the recorded paths refer to. Checks files and links on the local disk only.

    Args:
        listed: Paths of existing files, as they are listed; none twice.
        recorded: Paths in the metadata: below the folder or full locations. Nulls are left out.
    """
    unique = pc.unique(recorded.drop_null())
    is_named = pc.is_in(listed, unique)
    known, has_left = listed.to_pylist(), not pc.all(is_named).as_py()
    unmatched = unique.filter(pc.invert(pc.is_in(unique, listed))).to_pylist()
    unusual = [path for path in unmatched if _is_unusual(path)]
    # A link in the folder may be another path of any file in it.
    is_linked = has_left and (_contains_links(storage, known) if storage.is_local else storage.has_links)
    if not (unusual or is_linked or (has_left and unmatched and storage.is_local)):
        return MatchedFiles(is_named=is_named)
    names = unique.to_pylist() if is_linked else unmatched if storage.is_local else unusual
    addresses = dict(zip(names, storage.addresses(names), strict=True))
    places: dict[str | None, list[str]] = {}
    for path, address in zip(known, _addresses_of_listed(storage, known, is_linked=is_linked), strict=True):
        places.setdefault(address, []).append(path)
    listed_as = {path: places[addresses[path]][0] for path in unusual if addresses[path] in places}
    named = {path for address in {*addresses.values()} - {None} for path in places.get(address, ())}
    named |= {*listed.filter(is_named).to_pylist()}
    left = {path: address for address, paths in places.items() for path in paths if path not in named}
    waiting = {path: address for path, address in addresses.items() if address not in places}
    if storage.is_local:
        listed_as |= _same_on_disk(waiting, left)
        left = {path: address for path, address in left.items() if path not in listed_as.values()}
    elif is_linked:
        waiting = addresses  # a listed path may be a link to another listed path
    waiting = {path: address for path, address in waiting.items() if path not in listed_as}
    return MatchedFiles(
        is_named=pc.is_in(listed, pa.array([*named, *listed_as.values()], pa.string())),
        listed_as=listed_as,
        undecided=tuple(_undecided_paths(storage, waiting, left)) if left else (),
    )


def _addresses_of_listed(storage: "Storage", listed: Sequence[str], *, is_linked: bool) -> Sequence[str | None]:
    if is_linked or any(map(is_full_location, listed)):
        return storage.addresses(listed)
    folder = (storage.addresses([""])[0] or "").rstrip("/")
    return [f"{folder}/{path}" for path in listed]


def _contains_links(storage: "Storage", listed: Sequence[str]) -> bool:
    """Return whether a folder of the files contains a symbolic link. Lists each on the local disk.

    Also for files outside of the table's folder, whose folders may be anywhere.
    """
    if any(map(is_full_location, listed)):
        return True
    folders, waiting = {""}, {path.rpartition("/")[0] for path in listed}
    while waiting:
        folders |= waiting
        waiting = {path.rpartition("/")[0] for path in waiting} - folders
    for folder in folders:
        try:
            with os.scandir(storage.local_address(folder)) as entries:
                if any(entry.is_symlink() for entry in entries):
                    return True
        except OSError:
            return True  # unknown: each path is checked
    return False


def _is_unusual(path: str) -> bool:
    """Return whether the same file may have another path, on a storage without links."""
    return path.startswith(("/", "./")) or any(text in path for text in ("//", "/./", "..")) or path.endswith("/.")


def _same_on_disk(recorded: Mapping[str, str | None], listed: Mapping[str, str | None]) -> dict[str, str]:
    """Return for recorded paths the listed path of the same file, reached by a mount or written in another case.

    Args:
        recorded: The address of each; None for a file on another storage.
    """
    known = {_number(address): path for path, address in listed.items()} if recorded else {}
    numbers = {path: _number(address) for path, address in recorded.items()}
    return {path: known[number] for path, number in numbers.items() if number is not None and number in known}


def _number(address: str | None) -> tuple[int, int] | None:
    """Return the device and the inode of a local file; None if its status cannot be read."""
    try:
        status = None if address is None else os.stat(address)  # noqa: PTH116 - a Path costs more
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if status is not None and status.st_ino else None


def _undecided_paths(
    storage: "Storage", recorded: Mapping[str, str | None], listed: Mapping[str, str | None]
) -> Iterator[str]:
    """Yield the recorded paths that might refer to one of the listed files.

    Certain are paths below the folder without empty steps, local files that exist elsewhere, and names on a storage
    without links. Other paths are compared loosely: decoded, without case and empty steps. If it is uncertain in which
    folder a path is, only its last name is compared.
    """
    names = {_loose(path.rpartition("/")[2]) for path in listed}
    whole = {_loose(address or "") for address in listed.values()}
    for path, address in recorded.items():
        if not _is_unusual(path) and not (storage.has_links and not storage.is_local):
            continue
        if address is not None and not storage.has_links:
            is_doubtful = _loose(address) in whole
        else:
            is_elsewhere = storage.is_local and _number(address) is not None
            is_doubtful = not is_elsewhere and not names.isdisjoint(_last_names(path))
        if is_doubtful:
            yield path


def _loose(path: str) -> str:
    return unicodedata.normalize("NFC", _EMPTY_STEPS.sub("/", unquote(path)).casefold())


def _last_names(path: str) -> set[str]:
    """Return the last name in a path or a URL: with what may be its query, and without."""
    return {_loose(text.rstrip("/").rpartition("/")[2]) for text in (path, re.split("[?#]", path)[0])}
