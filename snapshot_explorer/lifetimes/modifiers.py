"""What changes the rows of versions without a trace in the lifetimes of their data files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snapshot_explorer.formats import TableFormat
    from snapshot_explorer.model import RowModifier


@runtime_checkable
class SupportsRowModifiers(Protocol):
    """A format with options by which the rows of a version are not those of its files, each read alone."""

    def row_modifiers(self) -> frozenset[RowModifier]:
        """Return what the newest options apply to every version. Reads the newest schema."""
        ...


@runtime_checkable
class SupportsDeleteManifests(Protocol):
    """A format in which separate files delete rows of data files."""

    def delete_manifests(self, versions: Sequence[int]) -> Sequence[frozenset[str]]:
        """Return for each version the manifests of its delete files: versions with the same have the same deletes."""
        ...


def row_modifiers(table_format: TableFormat) -> frozenset[RowModifier]:
    """Return what options apply to the rows of every version; nothing if the format has no such options."""
    return table_format.row_modifiers() if isinstance(table_format, SupportsRowModifiers) else frozenset()


def deletes_over(table_format: TableFormat, versions: Sequence[int]) -> Sequence[frozenset[str]]:
    """Return for each version the manifests of its delete files; nothing if the format has no delete files."""
    if isinstance(table_format, SupportsDeleteManifests):
        return table_format.delete_manifests(versions)
    return [frozenset()] * len(versions)
