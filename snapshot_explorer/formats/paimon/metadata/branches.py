"""The branches of a table, and the version that each was created from."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self, TypeVar

from snapshot_explorer.core.errors import CorruptTableError, MissingFileError, StorageError
from snapshot_explorer.core.records import Branch
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.interface import Branches, TableFormat
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.metadata.branch_metadata import BranchMetadata
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType, PaimonField
from snapshot_explorer.formats.paimon.metadata.history import PaimonHistory
from snapshot_explorer.formats.paimon.metadata.layout import MAIN, Layout, branches_in, number_of
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot, parse_snapshot
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

K = TypeVar("K")
V = TypeVar("V")

_MAX_BRANCHES = 100


@dataclass(frozen=True, kw_only=True)
class PaimonBranches(Branches):
    """The branches of a Paimon table."""

    main: ClassVar[str | None] = MAIN
    folder: ClassVar[str | None] = "branch"

    metadata: BranchMetadata
    bind: Callable[[str], TableFormat]
    """Binds the table to a branch that exists."""

    def others(self) -> Sequence[Branch]:
        return read_branches(self.metadata.storage, self.metadata.history, self.metadata.layout.branch)

    def names(self) -> Sequence[str]:
        return sorted({MAIN, *branch_names(self.metadata.storage)})

    def table_on(self, name: str) -> TableFormat:
        return self.bind(name)

    def shared_versions(self, other: Self) -> Mapping[int, int]:
        return {number: number for number in shared_versions(self.metadata.history, other.metadata.history)}

    def check_comparable(self, other: Self, versions: tuple[int, int]) -> None:
        sides = (self.metadata, versions[0]), (other.metadata, versions[1])
        schemas = [side.schemas.by_id([side.schema_id(version)]) for side, version in sides]
        first, last = (next(iter(schemas_of_version.values())) for schemas_of_version in schemas)
        check_field_ids(first, last, self.metadata.schemas.common_with(other.metadata.schemas))


def branch_names(storage: Storage) -> list[str]:
    """Return the names of the branches, sorted, without the main one. One listing."""
    return branches_in(storage.list("branch"))


def read_branches(storage: Storage, history: PaimonHistory, own_name: str | None) -> list[Branch]:
    """Return the branches, sorted, with the version that each was created from and its newest version, where known.

    One listing; for each branch a listing and a small file, and another file for the same version of `history` unless
    it is cached. If that version has expired, also its changelog file and, once, the tags. With more than 100 branches
    only the names are read.

    Args:
        history: The history to search for the first versions of the branches.
        own_name: The branch of `history`, which is not its own origin; None for the main one.

    Source: paimon docs, "Manage Branches"; paimon FileSystemBranchManager.createBranch copies the tag's snapshot.
    """
    names = branch_names(storage)
    # A folder of that name would be read as the main branch.
    read_names = [name for name in names if name not in ("", MAIN)] if len(names) <= _MAX_BRANCHES else []
    numbers = _readable(storage, partial(_numbers, storage), read_names)
    begin = {name: min(versions) for name, versions in numbers.items() if versions and name != own_name}
    first = _readable(storage, partial(_first, storage, begin), list(begin))
    own = _readable(storage, history.present, sorted({snapshot.id for snapshot in first.values()}))
    return [
        Branch(
            name=name,
            forked_version=_same(first.get(name), own),
            newest_version=max(numbers.get(name, ()), default=None),
        )
        for name in names
    ]


def shared_versions(history: PaimonHistory, other: PaimonHistory) -> list[int]:
    """Return the versions that the histories of two branches both have, with the same commits, ascending.

    A branch begins with a copy of a snapshot, and a fast-forward copies its snapshots back. Shared snapshots are
    therefore older than all others, and a binary search reads about log2(n) small files of each branch.

    Source: paimon FileSystemBranchManager.createBranch, fastForward.
    """
    common = sorted({*history.all_from(0).versions}.intersection(other.all_from(0).versions))

    def differs(version: int) -> bool:
        own, others = history.present([version]).get(version), other.present([version]).get(version)
        return own is None or others is None or _commit(own) != _commit(others)

    return common[: bisect_left(common, 1, key=differs)]


def check_field_ids(first: PaimonSchema, last: PaimonSchema, common: PaimonSchema | None) -> None:
    """Raise if a field id means different columns in the schemas of two branches.

    Each branch goes on counting ids from the newest common schema.
    """
    known = set(_fields_by_id(common.fields)) if common else set()
    own, others = _fields_by_id(first.fields), _fields_by_id(last.fields)
    for number in (own.keys() & others.keys()) - known:
        if own[number] != others[number]:
            raise refusal(
                features.COLUMNS_OF_TWO_BRANCHES, column=own[number].name, other=others[number].name, id=number
            )


def _fields_by_id(fields: Sequence[PaimonField]) -> dict[int, PaimonField]:
    """Return fields by their ids, those inside of nested types included."""
    result: dict[int, PaimonField] = {}
    waiting = [PaimonDataType(root="ROW", fields=tuple(fields))]
    while waiting:
        data_type = waiting.pop()
        result |= {field.id: field for field in data_type.fields}
        waiting += data_type.parts
    return result


def _readable(storage: Storage, read: Callable[[Sequence[K]], dict[K, V]], keys: Sequence[K]) -> dict[K, V]:
    """Return the result of `read` for all keys at once. If that fails, read each key on its own and skip failures."""
    try:
        return read(keys)
    except (CorruptTableError, StorageError) as error:
        if not _is_lasting(error):
            raise
        if len(keys) == 1:
            storage.warn_once(log, "%s", error)
            return {}
    return {key: value for item in keys for key, value in _readable(storage, read, [item]).items()}


def _is_lasting(error: CorruptTableError | StorageError) -> bool:
    """Return whether an error is permanent for this user. Other storage errors may be transient."""
    return isinstance(error, CorruptTableError | MissingFileError) or isinstance(error.__cause__, PermissionError)


def _numbers(storage: Storage, names: Sequence[str]) -> dict[str, list[int]]:
    listings = storage.list_many([Layout(name).folder("snapshot") for name in names])
    return {
        name: [number for entry in listing if (number := number_of(entry.name, "snapshot")) is not None]
        for name, listing in zip(names, listings, strict=True)
    }


def _first(storage: Storage, begin: Mapping[str, int], names: Sequence[str]) -> dict[str, PaimonSnapshot]:
    paths = [Layout(name).numbered("snapshot", begin[name]) for name in names]
    contents = storage.read_present(paths)
    snapshots = {
        name: parse_snapshot(content, path)
        for name, path, content in zip(names, paths, contents, strict=True)
        if content is not None
    }
    return {name: snapshot for name, snapshot in snapshots.items() if snapshot.id == begin[name]}


def _same(first: PaimonSnapshot | None, own: Mapping[int, PaimonSnapshot]) -> int | None:
    """Return the version if both are the same commit, otherwise None: two branches may use the same number."""
    same_id = own.get(first.id) if first is not None else None
    return same_id.id if first is not None and same_id is not None and _commit(first) == _commit(same_id) else None


def _commit(snapshot: PaimonSnapshot) -> tuple[object, ...]:
    """Return the fields that identify a commit. A tag's file contains more fields than the snapshot's."""
    lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list)
    return snapshot.user, snapshot.identifier, snapshot.kind, snapshot.committed_at, lists
