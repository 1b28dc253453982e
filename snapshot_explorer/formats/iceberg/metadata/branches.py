"""The branches of a table, and histories that end at a snapshot on no branch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from snapshot_explorer.core.records import Branch
from snapshot_explorer.formats.iceberg.metadata.branch_metadata import BranchMetadata
from snapshot_explorer.formats.iceberg.metadata.history import IcebergHistory, current_at, detached_heads
from snapshot_explorer.formats.iceberg.metadata.table_metadata import MAIN
from snapshot_explorer.formats.interface import Branches, TableFormat

_MAX_FORKS = 100
"""The maximum number of branches whose fork is computed."""


@dataclass(frozen=True, kw_only=True)
class IcebergBranches(Branches):
    """The branches of an Iceberg table."""

    main: ClassVar[str | None] = MAIN

    metadata: BranchMetadata
    bind: Callable[[str], TableFormat]
    """Binds the table to a branch that exists, or to the history that ends at a snapshot."""

    def table_on(self, name: str) -> TableFormat:
        return self.bind(name)

    def holding(self, time: datetime) -> str | None:
        _, history, _ = self.metadata.read()
        snapshot = current_at(history, time)
        return None if snapshot is None or snapshot.id in history.numbers else str(snapshot.id)

    def others(self) -> Sequence[Branch]:
        """Return the other branches, sorted, with the version of this history that each forks from.

        Of more than 100 branches only the name and the newest version are known.
        """
        _, history, _ = self.metadata.read()
        metadata = history.metadata
        others = sorted(
            name for name, ref in metadata.refs.items() if ref.is_branch and name != (self.metadata.branch or MAIN)
        )
        return [
            Branch(
                name=name,
                forked_version=_fork(history, metadata.refs[name].snapshot_id) if len(others) <= _MAX_FORKS else None,
                newest_version=metadata.snapshots.numbers[metadata.refs[name].snapshot_id] or None,
            )
            for name in others
        ]

    def names(self) -> Sequence[str]:
        _, history, _ = self.metadata.read()
        return sorted({MAIN, *(name for name, ref in history.metadata.refs.items() if ref.is_branch)})

    def detached_heads(self) -> Sequence[str]:
        _, history, _ = self.metadata.read()
        return detached_heads(history.metadata)

    def has_history(self, name: str) -> bool:
        _, history, _ = self.metadata.read()
        return name.isascii() and name.isdigit() and int(name[:20]) in history.metadata.snapshots

    def shared_versions(self, other: Self) -> Mapping[int, int]:
        (_, own), (_, others) = self.metadata.current(), other.metadata.current()
        return {number: others.numbers[item] for number, item in own.ids.items() if item in others.numbers}


def _fork(history: IcebergHistory, head: int) -> int | None:
    """Return the newest version of a history that is an ancestor of a snapshot, or the snapshot itself."""
    parents = history.metadata.snapshots.parents
    seen: set[int] = set()
    snapshot_id: int | None = head
    while snapshot_id is not None and snapshot_id in parents and snapshot_id not in seen:
        if snapshot_id in history.numbers:
            return history.numbers[snapshot_id]
        seen.add(snapshot_id)
        snapshot_id = parents[snapshot_id]
    return None
