"""The branches of a table, and the version of its history that each begins with."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from snapshot_explorer.errors import CorruptTableError, MissingFileError, StorageError
from snapshot_explorer.formats.paimon.metadata.history import History
from snapshot_explorer.formats.paimon.metadata.layout import MAIN, Layout, number_of
from snapshot_explorer.formats.paimon.metadata.snapshots import Snapshot, parse_snapshot
from snapshot_explorer.model import Branch
from snapshot_explorer.storage import Storage
from snapshot_explorer.visible import logger_of

log = logger_of(__name__)

K = TypeVar("K")
V = TypeVar("V")

_LOOKED_INTO = 100
"""Branches up to which each is looked into."""


def branch_names(storage: Storage) -> list[str]:
    """Return the names of the branches, sorted, without the main one. One listing."""
    names = [entry.name for entry in storage.list("branch") if entry.is_folder]
    return sorted(name.removeprefix("branch-") for name in names if name.startswith("branch-"))


def read_branches(storage: Storage, history: History, here: str | None) -> list[Branch]:
    """Return the branches, sorted, with the versions that they begin with and end at, as far as they can be told.

    One listing; for each branch a listing and a small file, and another for the version here unless it was read
    before; where such a version has expired, its changelog's file and, once, the tags. Of more than 100 branches there
    are only names.

    Args:
        storage: The table.
        history: The history in which the first versions of branches are looked for.
        here: The branch that it is of, which does not begin with a copy of itself; None for the main one.

    Source: paimon docs, "Manage Branches"; paimon FileSystemBranchManager.createBranch copies the tag's snapshot.
    """
    names = branch_names(storage)
    # A folder called so would be taken for the main branch.
    looked_into = [name for name in names if name not in ("", MAIN)] if len(names) <= _LOOKED_INTO else []
    numbers = _readable(partial(_numbers, storage), looked_into)
    begin = {name: min(found) for name, found in numbers.items() if found and name != here}
    first = _readable(partial(_first, storage, begin), list(begin))
    own = _readable(history.present, sorted({snapshot.id for snapshot in first.values()}))
    return [
        Branch(
            name=name,
            forked_version=_same(first.get(name), own),
            newest_version=max(numbers.get(name, ()), default=None),
        )
        for name in names
    ]


def _readable(read: Callable[[Sequence[K]], dict[K, V]], asked: Sequence[K]) -> dict[K, V]:
    """Return what is read of all at once; where that fails, of each that can be read, asked for one by one."""
    try:
        return read(asked)
    except (CorruptTableError, StorageError) as error:
        if not _is_lasting(error):
            raise
        if len(asked) == 1:
            log.warning("%s", error)
            return {}
    return {key: value for one in asked for key, value in _readable(read, [one]).items()}


def _is_lasting(error: CorruptTableError | StorageError) -> bool:
    """Return whether a branch can be read no more by who asks: a storage that fails now may answer the next time."""
    return isinstance(error, CorruptTableError | MissingFileError) or isinstance(error.__cause__, PermissionError)


def _numbers(storage: Storage, names: Sequence[str]) -> dict[str, list[int]]:
    """Return the versions of branches, as far as there are snapshots. A listing for each."""
    listings = storage.list_many([Layout(name).folder("snapshot") for name in names])
    return {
        name: [number for entry in listing if (number := number_of(entry.name, "snapshot")) is not None]
        for name, listing in zip(names, listings, strict=True)
    }


def _first(storage: Storage, begin: Mapping[str, int], names: Sequence[str]) -> dict[str, Snapshot]:
    """Return the snapshots that branches begin with, but for those that are gone or say that they are others."""
    paths = [Layout(name).numbered("snapshot", begin[name]) for name in names]
    contents = storage.read_present(paths)
    found = {
        name: parse_snapshot(content, path)
        for name, path, content in zip(names, paths, contents, strict=True)
        if content is not None
    }
    return {name: snapshot for name, snapshot in found.items() if snapshot.id == begin[name]}


def _same(first: Snapshot | None, own: Mapping[int, Snapshot]) -> int | None:
    """Return the version that is the same commit, None if there is none: numbers of branches meet by chance too."""
    there = own.get(first.id) if first is not None else None
    return there.id if first is not None and there is not None and _commit(first) == _commit(there) else None


def _commit(snapshot: Snapshot) -> tuple[object, ...]:
    """Return what tells a commit from all others; a tag's file holds more than the snapshot's."""
    lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list)
    return snapshot.user, snapshot.identifier, snapshot.kind, snapshot.committed_at, lists
