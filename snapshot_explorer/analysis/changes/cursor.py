"""`ChangeCursor`: the row changes of a table, commit by commit, with a position to save."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.changes.commit_changes import plan_commit
from snapshot_explorer.analysis.changes.new_commits import commits_after, is_overtaken, naming_ways_on
from snapshot_explorer.analysis.changes.starting import position_at, start_position
from snapshot_explorer.core.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snapshot_explorer.analysis.changes.commit_changes import CommitChanges
    from snapshot_explorer.analysis.changes.new_commits import NewCommit
    from snapshot_explorer.analysis.changes.position import ChangePosition
    from snapshot_explorer.analysis.diff.diff_plan import DiffRequest
    from snapshot_explorer.core.refs import RefLike
    from snapshot_explorer.history import History, LoadedVersion

_POLL_SECONDS = 1.0
"""The time between two looks for new commits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBounds:
    """Where an iteration ends. A commit is never cut."""

    max_versions: int | None = None
    """The maximum number of commits."""
    max_rows: int | None = None
    """The number of rows after which no further commit is begun."""
    wait: float | None = None
    """Seconds to wait for a new commit after the newest one; None does not wait."""

    def __post_init__(self) -> None:
        """Raise InvalidArgumentError for a bound that is not one."""
        for name in ("max_versions", "max_rows"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise InvalidArgumentError(f"{name} must be a whole number, 1 or more, got {value!r}.")
        wait: object = self.wait
        if wait is not None and (not isinstance(wait, int | float) or not wait >= 0):
            raise InvalidArgumentError(f"wait must be a number of seconds, 0 or more, got {self.wait!r}.")


class ChangeCursor(Iterator[pa.RecordBatch]):
    """The row changes after a position, as Arrow batches in the order of commits. See `Table.changes_since`.

    An iteration ends after the newest commit, or at a bound; the next one over the same cursor goes on from there.
    """

    def __init__(
        self,
        source: Callable[[], History],
        start: RefLike | None,
        request: DiffRequest,
        bounds: ChangeBounds,
        *,
        memory_limit: int | None = None,
    ) -> None:
        self._source = source
        self._position = start_position(source(), start)
        self._request = request
        self._bounds = bounds
        self._memory_limit = memory_limit
        self._seen: LoadedVersion | None = None
        self._iteration: Iterator[pa.RecordBatch] | None = None

    @property
    def position(self) -> str:
        """Return the position as text: JSON without a path or a secret, for `Table.changes_since`.

        It is after the last commit whose batches have all been returned, and moves when the last one is.
        """
        return self._position.text

    @property
    def version(self) -> int | None:
        """Return the version at the position; None before the first commit."""
        return self._position.version

    def __next__(self) -> pa.RecordBatch:
        if self._iteration is None:
            self._iteration = self._batches()
        try:
            return next(self._iteration)
        except BaseException:  # the end of the iteration, or an error: the next one begins at the position
            self._iteration = None
            raise

    def __repr__(self) -> str:
        source = self._source()
        since = "from the beginning" if self.version is None else f"after version {self.version}"
        return f"ChangeCursor({source.name!r}, {since})"

    def _batches(self) -> Iterator[pa.RecordBatch]:
        bounds, versions, rows, waits_until = self._bounds, 0, 0, 0.0
        while True:
            source = self._source()
            for commit in self._new_commits(source):
                planned = self._planned(source, commit)
                if planned is None:
                    break
                after, batches = planned
                last = None
                for batch in batches:
                    if last is not None:
                        yield last
                    last = batch
                    rows += batch.num_rows
                self._position = after
                if last is not None:
                    yield last
                versions, waits_until = versions + 1, 0.0
                if versions == bounds.max_versions or (bounds.max_rows is not None and rows >= bounds.max_rows):
                    return
            else:
                now = time.monotonic()
                waits_until = waits_until or now + (bounds.wait or 0)
                if now >= waits_until:
                    return
                time.sleep(min(_POLL_SECONDS, waits_until - now))

    def _new_commits(self, source: History) -> Sequence[NewCommit]:
        newest = source.management.update()
        if newest is self._seen and newest.version.number == self._position.version:
            return ()
        commits = commits_after(source, self._position)
        self._seen = newest
        return commits

    def _planned(self, source: History, commit: NewCommit) -> tuple[ChangePosition, Iterator[pa.RecordBatch]] | None:
        """Return the position after a commit, and its changes; None if the log has to be listed again."""
        with source.table_format.storage.keeping_immutable(), naming_ways_on(source, commit):
            after = position_at(source, commit.version)  # before the rows: a commit that is rewritten since is noticed
            changes = plan_commit(source, commit, self._request)
        if is_overtaken(source, commit):
            self._seen = None
            return None
        return after, self._read(source, commit, changes)

    def _read(self, source: History, commit: NewCommit, changes: CommitChanges) -> Iterator[pa.RecordBatch]:
        with naming_ways_on(source, commit):
            yield from changes.batches(self._memory_limit)
