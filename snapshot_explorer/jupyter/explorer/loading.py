"""Load rows into a variable of the notebook; a large read needs confirmation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snapshot_explorer.jupyter.explorer.contents import rows
from snapshot_explorer.jupyter.explorer.environment import load_limits
from snapshot_explorer.jupyter.explorer.page.panes import Busy, code_html, error_html, text_html
from snapshot_explorer.jupyter.explorer.work import Job, Work

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from snapshot_explorer.jupyter.cost import Cost
    from snapshot_explorer.jupyter.explorer.contents.view_requests import SnapshotCache, ViewRequest
    from snapshot_explorer.jupyter.explorer.page.widget_factory import WidgetFactory

LOADS = ("b", "columns", "where", "load_limit", "engine", "types", "variable")
"""The traits of the state that loading depends on."""
_PLACE = "load"
_REPLACE, _READ = "replace", "read"
"""What can be confirmed: to replace a variable, to read much."""


class Loader:
    """Loads the rows of B into a variable, and shows the outcome."""

    def __init__(
        self,
        factory: WidgetFactory,
        cache: SnapshotCache,
        variables: MutableMapping[str, Any] | None,
        work: Work,
    ) -> None:
        """Load nothing yet.

        Args:
            factory: Makes widgets.
            cache: The table.
            variables: The notebook's variables; None where there is no notebook.
            work: Runs what reads.
        """
        self._cache = cache
        self._variables = variables
        self._work = work
        self._unconfirmed: object = None
        self._confirmed: frozenset[str] = frozenset()
        self._own: set[str] = set()
        self._line, self._result = factory.html(), factory.html()
        self._busy = Busy(factory, self._cancel)
        self.box = factory.column(self._line, self._busy.box, self._result)

    def show(self, request: ViewRequest) -> None:
        """Show the code that loads the requested rows."""
        self._line.value = code_html(rows.load_code(request))

    def load(self, request: ViewRequest) -> None:
        """Load; a large read, or replacing a variable not set here, needs confirmation."""
        name = request["variable"]
        confirmed = self._confirmed if self._unconfirmed == request.values else frozenset()
        self._unconfirmed = None
        variables = self._variables
        if variables is None:
            self._result.value = error_html("There is no notebook to load rows into. Use the line of code above.")
            return
        if name in variables and name not in self._own and _REPLACE not in confirmed:
            kind = type(variables[name]).__name__
            self._ask_to_confirm(
                request,
                confirmed | {_REPLACE},
                f"The variable {name} already contains a {kind}. Press again to replace it.",
            )
            return

        def take(found: tuple[Cost, Any]) -> None:
            cost, loaded = found
            if loaded is None:
                much = f"This reads {cost}. Set At most, or press again to read all of it."
                self._ask_to_confirm(request, confirmed | {_READ}, much)
                return
            variables[name] = loaded
            self._own.add(name)
            count = f"{len(loaded):,} rows" if hasattr(loaded, "__len__") else "a lazy Spark DataFrame"
            self._show_text(f"{name} holds {count} of version {request['b']}. Read: {cost}.")

        limits = None if _READ in confirmed else load_limits()
        job = Job(
            run=lambda: rows.load(self._cache, request, limits),
            done=take,
            failed=self._refuse,
            shown=self._busy.show,
        )
        self._work.start(_PLACE, job)
        self._result.value = ""
        self._busy.show("Reading ...")

    def _cancel(self) -> None:
        if self._work.cancel(_PLACE):
            self._show_text("Nothing was loaded: that was cancelled.")

    def _show_text(self, text: str) -> None:
        self._busy.hide()
        self._result.value = text_html(text)

    def _refuse(self, sentence: str) -> None:
        self._busy.hide()
        self._result.value = error_html(sentence)

    def _ask_to_confirm(self, request: ViewRequest, confirmed: frozenset[str], sentence: str) -> None:
        """Ask whether to go on; the same load requested again confirms it."""
        self._unconfirmed, self._confirmed = request.values, confirmed
        self._refuse(sentence)
