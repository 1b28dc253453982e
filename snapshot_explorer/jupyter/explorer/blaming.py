"""Blame rows: a condition, prefilled from the keys of the rows shown, and the versions that changed such rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from snapshot_explorer.jupyter.explorer.contents.view_requests import ViewResult
from snapshot_explorer.jupyter.explorer.views import View
from snapshot_explorer.jupyter.explorer.work import Job, Work
from snapshot_explorer.render import Code
from snapshot_explorer.render.tracks import tracks_content

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snapshot_explorer.jupyter.explorer.contents.view_requests import SnapshotCache
    from snapshot_explorer.jupyter.explorer.state import ExplorerState

_PLACE = "blame"


def blame(cache: SnapshotCache, *, name: str, where: str, key: tuple[str, ...]) -> ViewResult:
    """Return every version that changed rows of a condition, with the rows before and after. Reads rows."""
    found = cache.table.blame(where, key=key or None)
    drawing = found.drawing()
    parts = tuple(part for part in drawing.parts if part != Code(found.call))
    return ViewResult(
        drawing=replace(drawing, parts=parts),
        code=name + found.call.removeprefix(found.opened),
        source=cache.cited(found.versions[0], found.versions[-1]),
        tracks=tracks_content(found.tracks()) if len(found) else {},
    )


class Blamer:
    """Blames rows of a condition; `view` shows the outcome."""

    def __init__(
        self,
        state: ExplorerState,
        cache: SnapshotCache,
        work: Work,
        *,
        name: str,
        busy: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        """Read nothing yet.

        Args:
            state: Contains the condition and the key.
            cache: The table.
            work: Runs what reads.
            name: The variable that holds the table, for lines of code.
            busy: Receives what is being read; empty text once nothing is.
            changed: Called with each new outcome.
        """
        self._state, self._cache, self._work, self._name = state, cache, work, name
        self._changed = changed
        self._suggested = ""
        self.conditions: tuple[str, ...] = ()
        self.view = View(busy)

    def suggest(self, conditions: Sequence[tuple[str, str]]) -> None:
        """Offer the conditions of rows; the first becomes the condition unless another one was typed."""
        self.conditions = tuple(dict.fromkeys(condition for _, condition in conditions))
        if self._state.blame in ("", self._suggested):
            self._suggested = conditions[0][1] if conditions else ""
            self._state.blame = self._suggested

    def blame(self) -> None:
        """Show the versions that changed the rows of the condition."""
        where, (key,) = self._state.blame.strip(), self._state.values("key")
        if not where:
            self._fail("There is no condition to blame rows by. Write one, such as order_id = 42.")
            return
        job = Job(
            run=lambda: blame(self._cache, name=self._name, where=where, key=key),
            done=self._show,
            failed=self._fail,
            shown=self.view.busy,
        )
        self._work.start(_PLACE, job)
        self.view.busy("Reading ...")

    def cancel(self) -> None:
        """Stop blaming."""
        if self._work.cancel(_PLACE):
            self.view.clear("Nothing was blamed: that was cancelled.")
            self._changed()

    def _show(self, result: ViewResult) -> None:
        self.view.show(result)
        self._changed()

    def _fail(self, sentence: str) -> None:
        self.view.fail(sentence)
        self._changed()
