"""`LakeFollower`: the rows of an overview, renewed table by table within a number of requests a minute."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.lake.overview import LakeOverview, failed_row, overview_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from snapshot_explorer.lake.overview import OverviewRequest
    from snapshot_explorer.lake.tables import LakeTable
    from snapshot_explorer.table import Snapshot


class LakeFollower:
    """Follows a lake: looks for new versions table by table, in turns, and reads the rows of tables that have any.

    Looking costs one to a few requests, and reading a row some for each of the newest 12 commits. They are counted, and
    the next look waits until their number per minute is within the limit. `start` follows in a thread; `step` looks at
    the next table.
    """

    def __init__(self, overview: LakeOverview, tables: tuple[LakeTable, ...], *, requests_per_minute: int) -> None:
        if type(requests_per_minute) is not int or requests_per_minute < 1:
            raise InvalidArgumentError(
                f"requests_per_minute must be a whole number, 1 or more, got {requests_per_minute!r}."
            )
        self.requests_per_minute = requests_per_minute
        """The maximum number of requests per minute."""
        self.on_change: Callable[[LakeFollower], object] | None = None
        """Called in the following thread after a row changed."""
        self._name, self._search, self._request = overview.name, overview.search, overview.request
        self._span = overview.request.now - overview.request.since
        self._rows = {str(row["name"]): row for row in overview.to_dict()}
        self._tables = tables
        self._next = 0
        self._seen: dict[str, Snapshot] = {}
        """The newest snapshot of each table at the last look."""
        self._turn = threading.Lock()
        self._stopped = threading.Event()
        """Ends the present thread. One that is stopped may still be looking when the next one starts."""
        self._thread: threading.Thread | None = None

    @property
    def overview(self) -> LakeOverview:
        """Return the overview as it is known now. No request."""
        return LakeOverview([*self._rows.values()], name=self._name, request=self._now(), search=self._search)

    def step(self) -> tuple[str, bool, int]:
        """Look at the next table. Return its name, whether its row changed, and how many requests that took."""
        with self._turn:
            table = self._tables[self._next % len(self._tables)]
            self._next += 1
            before = table.requests
            is_changed = self._renew(table)
            return table.name, is_changed, max(1, table.requests - before)

    def _renew(self, table: LakeTable) -> bool:
        """Read the row of a table if it has another newest commit, or had a problem. Return whether the row changed."""
        known = self._rows[table.name]
        try:
            opened = table.open()
            seen = self._seen.get(table.name, opened.current)
            # The same snapshot unless the listing differs, also by another commit under the newest number.
            newest = self._seen[table.name] = opened.update()
            if newest is seen and newest.version == known["version"] and known["problem"] is None:
                return False
            row = overview_row(opened, self._now())
        except SnapshotExplorerError as error:
            row = failed_row(error)
        row = dict.fromkeys(known) | {"format": table.format, "path": table.path, **row, "name": table.name}
        self._rows[table.name] = row
        return row != known

    def start(self) -> LakeFollower:
        """Follow in a thread, until `stop`. Returns itself."""
        if not self.is_running:
            self._stopped = threading.Event()
            name = "snapshot-lake-follower"
            self._thread = threading.Thread(target=self._follow, args=(self._stopped,), name=name, daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """Stop following."""
        self._stopped.set()

    @property
    def is_running(self) -> bool:
        """Return whether it follows."""
        return self._thread is not None and self._thread.is_alive() and not self._stopped.is_set()

    def _now(self) -> OverviewRequest:
        now = datetime.now(UTC)
        return replace(self._request, now=now, since=now - self._span)

    def _follow(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            began = time.monotonic()
            _, is_changed, requests = self.step()
            if is_changed and self.on_change is not None:
                self.on_change(self)
            pause = 60 * requests / self.requests_per_minute - (time.monotonic() - began)
            stopped.wait(max(0.0, pause))
