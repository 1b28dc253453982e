"""Blame rows: a condition, prefilled from the keys of the rows shown, and the versions that changed such rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import ipywidgets as widgets

from snapshot_explorer.jupyter.explorer.contents.view_requests import ViewResult
from snapshot_explorer.jupyter.explorer.page.panes import Pane
from snapshot_explorer.jupyter.explorer.work import Job, Work
from snapshot_explorer.render import Code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traitlets import Bunch

    from snapshot_explorer.jupyter.explorer.contents.view_requests import SnapshotCache
    from snapshot_explorer.jupyter.explorer.page.widget_factory import WidgetFactory
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
    )


class Blamer:
    """Blames rows of a condition, and shows the outcome."""

    def __init__(
        self, factory: WidgetFactory, state: ExplorerState, cache: SnapshotCache, work: Work, *, name: str
    ) -> None:
        """Read nothing yet.

        Args:
            factory: Makes widgets.
            state: Contains the condition and the key.
            cache: The table.
            work: Runs what reads.
            name: The variable that holds the table, for lines of code.
        """
        self._state, self._cache, self._work, self._name = state, cache, work, name
        self._suggested = ""
        self.condition = factory.make(
            widgets.Combobox,
            description="Blame",
            placeholder="order_id = 42",
            ensure_option=False,
            tooltip="The rows to blame: a condition in SQL; the list has the rows shown above",
            width="420px",
        )
        button = factory.button("Blame rows", "Show every version that changed such rows", self.blame)
        self.pane = Pane(factory, turn=None, cancel=self._cancel, above=(factory.row(self.condition, button),))
        self.condition.observe(self._typed, "value")
        state.observe(self._show_condition, "blame")

    @property
    def box(self) -> widgets.Widget:
        """Return the widget."""
        return self.pane.box

    def close(self) -> None:
        """Stop observing the state."""
        self._state.unobserve(self._show_condition, "blame")

    def suggest(self, conditions: Sequence[tuple[str, str]]) -> None:
        """Offer the conditions of rows; the first becomes the condition unless another one was typed."""
        self.condition.options = tuple(dict.fromkeys(condition for _, condition in conditions))
        if self._state.blame in ("", self._suggested):
            self._suggested = conditions[0][1] if conditions else ""
            self._state.blame = self._suggested

    def blame(self) -> None:
        """Show the versions that changed the rows of the condition."""
        where, (key,) = self._state.blame.strip(), self._state.values("key")
        if not where:
            self.pane.fail("There is no condition to blame rows by. Write one, such as order_id = 42.")
            return
        job = Job(
            run=lambda: blame(self._cache, name=self._name, where=where, key=key),
            done=self.pane.show,
            failed=self.pane.fail,
            shown=self.pane.busy.show,
        )
        self._work.start(_PLACE, job)
        self.pane.busy.expect(lambda: self._work.is_busy(_PLACE))

    def _cancel(self) -> None:
        if self._work.cancel(_PLACE):
            self.pane.clear("Nothing was blamed: that was cancelled.")

    def _typed(self, change: Bunch) -> None:
        self._state.blame = change.new

    def _show_condition(self, change: Bunch) -> None:
        self.condition.value = change.new
