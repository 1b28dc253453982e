"""The files that the metadata of a table names, and the engine's own clean-up of all other files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFiles:
    """The files that the metadata of a table names."""

    paths: pa.Array
    """Their paths as recorded: relative to the table's root, or full locations. There may be nulls and duplicates."""
    under_way: pa.Array = field(default_factory=partial(pa.array, (), pa.string()))
    """The paths of files that an unfinished commit wrote."""
    unread: tuple[str, ...] = ()
    """Metadata that was not read, and may name any file; a sentence each."""
    notes: tuple[str, ...] = ()
    """Metadata that was not searched; a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCleanUp:
    """The outcome of the engine's own clean-up for a file that no metadata names."""

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
