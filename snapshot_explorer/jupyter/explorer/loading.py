"""Loading rows into a variable of the notebook: what it takes is said, and what is large is asked for twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snapshot_explorer.jupyter.explorer import rows
from snapshot_explorer.jupyter.explorer.environment import load_limits
from snapshot_explorer.jupyter.explorer.panes import Busy, code, said, wrong
from snapshot_explorer.jupyter.explorer.work import Job, Work

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from snapshot_explorer.jupyter.cost import Cost
    from snapshot_explorer.jupyter.explorer.view_requests import SnapshotCache, ViewRequest
    from snapshot_explorer.jupyter.explorer.widget_factory import WidgetFactory

LOADS = ("b", "columns", "where", "load_limit", "engine", "variable")
"""The traits of the state that loading depends on."""
_PLACE = "load"
_REPLACE, _READ = "replace", "read"
"""What can be agreed to: to replace a variable, to read much."""


class Loader:
    """Loads the rows of B into a variable, and tells how that went."""

    def __init__(
        self,
        kit: WidgetFactory,
        shelf: SnapshotCache,
        variables: MutableMapping[str, Any] | None,
        work: Work,
    ) -> None:
        """Load nothing yet.

        Args:
            kit: Makes widgets.
            shelf: The table.
            variables: The notebook's variables; None where there is no notebook.
            work: Runs what reads.
        """
        self._shelf = shelf
        self._variables = variables
        self._work = work
        self._asked: object = None
        self._agreed: frozenset[str] = frozenset()
        self._own: set[str] = set()
        self._line, self._result = kit.html(), kit.html()
        self._busy = Busy(kit, self._cancel)
        self.box = kit.column(self._line, self._busy.box, self._result)

    def show(self, asked: ViewRequest) -> None:
        """Show the code that loads what is asked for."""
        self._line.value = code(rows.load_code(asked))

    def load(self, asked: ViewRequest) -> None:
        """Load; what is large, or takes the place of a variable that is not from here, is asked for twice."""
        name = asked["variable"]
        agreed = self._agreed if self._asked == asked.values else frozenset()
        self._asked = None
        variables = self._variables
        if variables is None:
            self._result.value = wrong("There is no notebook to load rows into. Use the line of code above.")
            return
        if name in variables and name not in self._own and _REPLACE not in agreed:
            kind = type(variables[name]).__name__
            self._ask(
                asked, agreed | {_REPLACE}, f"The variable {name} holds a {kind} already. Press again to replace it."
            )
            return

        def take(found: tuple[Cost, Any]) -> None:
            cost, loaded = found
            if loaded is None:
                much = f"That reads {cost}. Give At most, or press again to read all of it."
                self._ask(asked, agreed | {_READ}, much)
                return
            variables[name] = loaded
            self._own.add(name)
            count = f"{len(loaded):,} rows" if hasattr(loaded, "__len__") else "a lazy Spark DataFrame"
            self._tell(f"{name} holds {count} of version {asked['b']}. Read: {cost}.")

        limits = None if _READ in agreed else load_limits()
        job = Job(
            run=lambda: rows.load(self._shelf, asked, limits),
            done=take,
            failed=self._refuse,
            shown=self._busy.show,
        )
        self._work.start(_PLACE, job)
        self._result.value = ""
        self._busy.show("Reading ...")

    def _cancel(self) -> None:
        if self._work.cancel(_PLACE):
            self._tell("Nothing was loaded: that was cancelled.")

    def _tell(self, text: str) -> None:
        self._busy.hide()
        self._result.value = said(text)

    def _refuse(self, sentence: str) -> None:
        self._busy.hide()
        self._result.value = wrong(sentence)

    def _ask(self, asked: ViewRequest, agreed: frozenset[str], sentence: str) -> None:
        """Ask whether to go on; the same load asked for again agrees to it."""
        self._asked, self._agreed = asked.values, agreed
        self._refuse(sentence)
