"""What refs need to know of a table: which versions there are, when they were committed, which tags name them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Protocol

from snapshot_explorer.formats import TableFormat
from snapshot_explorer.model import Listing
from snapshot_explorer.snapshot import NO_VERSION, Snapshot


class Looked(Protocol):
    """A table that keeps what it has seen."""

    def update(self, *, staleness_acceptable: bool = False) -> Snapshot:
        """Return the newest snapshot."""
        ...

    def listing(self) -> Listing:
        """Return all versions. One listing."""
        ...

    def tag_versions(self) -> Mapping[str, int]:
        """Return each tag's version."""
        ...


class Past:
    """A table's past as refs ask about it; each answer is asked for at most once."""

    def __init__(self, table: Looked, table_format: TableFormat, *, listed: tuple[int, ...] | None = None) -> None:
        """Bind to a table; with `listed`, refs name one of these versions, whether it can be loaded or not."""
        self._table = table
        self._format = table_format
        self._given = listed

    @cached_property
    def _listing(self) -> Listing:
        return self._table.listing()

    @property
    def listed(self) -> tuple[int, ...]:
        """Return all versions, also those of which nothing but the commit is left."""
        return self._listing.versions

    def versions(self) -> tuple[int, ...]:
        """Return the versions that can be loaded."""
        return self._listing.reachable if self._given is None else self._given

    def latest(self) -> int | None:
        """Return the newest version, None for a table without versions."""
        newest = self._table.update(staleness_acceptable=True).version
        return None if newest == NO_VERSION else newest

    def tags(self) -> Mapping[str, int]:
        """Return each tag's version."""
        return self._table.tag_versions()

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return when each version was committed."""
        return self._format.committed_at(versions)

    def searched(self, time: datetime, versions: Sequence[int]) -> Sequence[int]:
        """Return the run of these versions in which the last one committed by a time is looked for."""
        return self._format.searched(time, versions)
