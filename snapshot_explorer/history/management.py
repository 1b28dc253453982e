"""The current snapshot of a table, its updates and its staleness.

Follows Delta's `SnapshotManagement` for all formats: names, algorithms and log lines. Callers pass what differs
between formats: functions that list the log and that create a snapshot from a listing.

Source: delta 1.1 SnapshotManagement.scala; the log lines are those it prints at INFO.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta

from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError, TableNotFoundError
from snapshot_explorer.core.records import Listing, Validation
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.history.loaded_version import LoadedVersion

log = logger_of(__name__)


_NOT_VALIDATED = Validation(table_id=None, notes=())


def _now_millis() -> int:
    return time.time_ns() // 1_000_000


class SnapshotManagement:
    """The current snapshot of one table, replaced when a newer version exists.

    Thread-safe: reading `current_snapshot` takes no lock; updates are serialized.
    """

    def __init__(
        self,
        list_log: Callable[[int | None], Listing],
        make_snapshot: Callable[[Listing], LoadedVersion],
        *,
        validate: Callable[[int], Validation] = lambda _: _NOT_VALIDATED,
        log_name: str = "log found for the table",
        staleness_limit: timedelta = timedelta(0),
        note_level: int = logging.WARNING,
        clock: Callable[[], int] = _now_millis,
    ) -> None:
        """Load the initial snapshot.

        Args:
            list_log: Returns the existing versions, from the start of an earlier listing or from the format's hint.
                The number of requests does not grow with the versions.
            make_snapshot: Creates the snapshot of a listing's newest version, or of no version if it is empty.
            validate: Validates the newest version before it becomes current; raises if it cannot be read.
            log_name: The subject of log lines about a missing log, such as `delta log found for ...`.
            staleness_limit: The maximum age of the last update for which `update(staleness_acceptable=True)` returns
                at once. With zero, every snapshot is stale.
            note_level: The level at which tolerated problems are logged.
            clock: Returns the time in milliseconds since 1970.
        """
        self._list_log = list_log
        self._make_snapshot = make_snapshot
        self._validate = validate
        self._log_name = log_name
        self._table_id: str | None = None
        self._notes: set[str] = set()
        self._note_level = note_level
        self._clock = clock
        self._lock = threading.RLock()
        self._async_lock = threading.Lock()
        if not isinstance(staleness_limit, timedelta):
            raise InvalidArgumentError(f"staleness_limit must be a timedelta, got {type(staleness_limit).__name__}.")
        self.staleness_limit = staleness_limit
        self.last_update_timestamp = -1
        """When the last successful update ended, in milliseconds since 1970; -1 before the first."""
        self.current_snapshot = self.snapshot_at_init()
        """The most recently loaded snapshot."""
        self.background_update: Future[LoadedVersion] | None = None
        """The last update in the background, which may still run; None before the first."""

    def snapshot_at_init(self) -> LoadedVersion:
        """Return the newest snapshot, found by the format's hint; without a version for a table without versions."""
        listing = self._list_log(None)
        if listing.latest is None:
            log.info("Creating initial snapshot without metadata, because the directory is empty")
            return self.create_snapshot(listing)
        log.info("Loading version %s%s.", listing.latest, _starting_from(listing))
        snapshot, self._table_id = self._create(listing)
        self.last_update_timestamp = self._clock()
        log.info("Returning initial snapshot %s", snapshot)
        return snapshot

    def create_snapshot(self, listing: Listing) -> LoadedVersion:
        """Return a new snapshot of the listing's newest version, verified against its checksum file if there is one.

        Raises:
            SnapshotExplorerError: The version cannot be read.
        """
        snapshot, _ = self._create(listing)
        return snapshot

    def _create(self, listing: Listing) -> tuple[LoadedVersion, str | None]:
        validation = _NOT_VALIDATED if listing.latest is None else self._validate(listing.latest)
        snapshot = self._make_snapshot(listing)
        for note in (*listing.notes, *validation.notes):
            if note not in self._notes:  # most hold for the table as a whole, and so for every version
                self._notes.add(note)
                log.log(self._note_level, "%s: %s", snapshot, note)
        log.info("Created snapshot %s", snapshot)
        return snapshot, validation.table_id

    @property
    def is_snapshot_stale(self) -> bool:
        """Whether the current snapshot is too old to be returned without an update."""
        limit = self.staleness_limit // timedelta(milliseconds=1)
        last = self.last_update_timestamp
        return limit == 0 or last < 0 or self._clock() - last >= limit

    def update(self, *, staleness_acceptable: bool = False) -> LoadedVersion:
        """List the log again and return the newest snapshot; the same object if nothing changed.

        Args:
            staleness_acceptable: If the current snapshot is not stale, return it at once and refresh in
                the background.

        Raises:
            TableNotFoundError: All versions are gone. The current snapshot is unchanged.
            SnapshotExplorerError: The log cannot be read, or has fewer versions than before. Likewise unchanged.
        """
        if staleness_acceptable and not self.is_snapshot_stale:
            self._update_in_background()
            return self.current_snapshot
        with self._lock:
            return self._update_internal()

    def try_update(self) -> LoadedVersion:
        """Update unless another thread is doing so; then return the current snapshot at once."""
        if not self._lock.acquire(blocking=False):
            return self.current_snapshot
        try:
            return self._update_internal()
        finally:
            self._lock.release()

    @property
    def last_background_error(self) -> SnapshotExplorerError | None:
        """The error of the last background refresh, if it failed."""
        task = self.background_update
        if task is None or not task.done():
            return None
        error = task.exception()
        return error if isinstance(error, SnapshotExplorerError) else None

    def _update_in_background(self) -> None:
        with self._async_lock:
            if self.background_update is not None and not self.background_update.done():
                return
            task: Future[LoadedVersion] = Future()
            self.background_update = task
        threading.Thread(target=self._refresh, args=(task,), name="snapshot-update", daemon=True).start()

    def _refresh(self, task: Future[LoadedVersion]) -> None:
        try:
            task.set_result(self.try_update())
        except BaseException as error:  # noqa: BLE001 - kept in the future
            log.warning("The snapshot could not be refreshed in the background: %s", error)
            task.set_exception(error)

    def _update_internal(self) -> LoadedVersion:
        before = self.current_snapshot
        listing = self._list_log(before.listing.start if before.listing else None)
        if listing == before.listing:
            self.last_update_timestamp = self._clock()
            return before
        if listing.latest is None:
            log.info("No %s", self._log_name)
            if before.listing is not None and before.listing.latest is not None:
                raise TableNotFoundError(
                    f"No {self._log_name} any more. Version {before.listing.latest} was the newest and remains "
                    "current. Try again; if the table was deleted or created again, open it again."
                )
        else:
            log.info("Loading version %s%s.", listing.latest, _starting_from(listing))
        snapshot, table_id = self._create(listing)
        if None not in (self._table_id, table_id) and table_id != self._table_id:
            log.error(
                "Change in the table id detected while updating snapshot. \nPrevious snapshot = %s\nNew snapshot = %s.",
                before,
                snapshot,
            )
        self._table_id = table_id
        self._replace_snapshot(snapshot)
        log.info("Updated snapshot to %s", self.current_snapshot)
        self.last_update_timestamp = self._clock()
        return self.current_snapshot

    def _replace_snapshot(self, snapshot: LoadedVersion) -> None:
        """Replace the current snapshot. The old one drops its caches and remains usable."""
        self.current_snapshot.uncache()
        self.current_snapshot = snapshot


def _starting_from(listing: Listing) -> str:
    return "" if listing.checkpoint is None else f" starting from checkpoint version {listing.checkpoint}"
