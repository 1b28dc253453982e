"""Which files the metadata of a table names, and what the engine's own clean-up does with the others."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.storage import Storage
from snapshot_explorer.storage.location import is_full_location


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFiles:
    """The files that the metadata of a table names."""

    paths: pa.Array
    """Their paths, relative to the table's root; others may be at full locations. There may be duplicates."""
    under_way: pa.Array = field(default_factory=partial(pa.array, (), pa.string()))
    """The paths of files that an unfinished commit wrote."""
    unread: tuple[str, ...] = ()
    """Metadata that was not read, and may name any file; a sentence each."""
    notes: tuple[str, ...] = ()
    """What was not searched; a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCleanUp:
    """What the engine's own clean-up would do with a file that no metadata names."""

    kind: str
    """data, deletes, deletion vector, index, change data, manifest, metadata, statistics, temporary, checksum or
    other."""
    outcome: str | None
    """deleted, kept (for its age) or ignored; None if unknown."""
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUp:
    """The engine's own clean-up, with its documented defaults."""

    files: Sequence[FileCleanUp]
    rule: str
    """The rule, in a sentence."""
    commands: tuple[tuple[str, str], ...]
    """The engine, and its command that lists what would be deleted, or deletes it where there is no dry run."""


def below_root(storage: Storage, paths: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return paths with full locations below the table's root made relative to it."""
    texts = single_chunk(paths)
    is_full = pc.or_(pc.match_substring(texts, "://"), pc.starts_with(texts, "/"))
    if not pc.any(is_full).as_py():
        return texts
    try:
        root = storage.resolve_external(storage.root).rstrip("/") + "/"
    except (UnsupportedFeatureError, CorruptTableError):
        return texts
    return pa.array([_below(storage, root, path) for path in texts.to_pylist()], pa.string())


def _below(storage: Storage, root: str, path: str | None) -> str | None:
    if path is None or not (path.startswith("/") or is_full_location(path)):
        return path
    try:
        return storage.resolve_external(path).removeprefix(root)
    except (UnsupportedFeatureError, CorruptTableError):
        return path
