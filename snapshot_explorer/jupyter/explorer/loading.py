"""Loading rows into a variable of the notebook: what it takes is said, and what is large is asked for twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snapshot_explorer.jupyter.explorer import rows
from snapshot_explorer.jupyter.explorer.panes import code, said, wrong
from snapshot_explorer.jupyter.explorer.work import Job

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from snapshot_explorer.jupyter.explorer.asked import Asked, Shelf
    from snapshot_explorer.jupyter.explorer.kit import Kit

LOADS = ("b", "columns", "where", "load_limit", "engine", "variable")
"""The traits of the state that loading depends on."""


class Loader:
    """Loads the rows of B into a variable, and tells how that went."""

    def __init__(
        self,
        kit: Kit,
        shelf: Shelf,
        variables: MutableMapping[str, Any] | None,
        start: Callable[[str, Job], None],
    ) -> None:
        """Load nothing yet.

        Args:
            kit: Makes widgets.
            shelf: The table.
            variables: The notebook's variables; None where there is no notebook.
            start: Takes a place and a job to run for it.
        """
        self._shelf = shelf
        self._variables = variables
        self._start = start
        self._agreed: object = None
        self._own: set[str] = set()
        self.line = kit.html()
        self.result = kit.html()

    def show(self, asked: Asked) -> None:
        """Show the code that loads what is asked for."""
        self.line.value = code(rows.load_code(asked))

    def load(self, asked: Asked) -> None:
        """Load; what is large, or takes the place of a variable that is not from here, is asked for twice."""
        name = asked["variable"]
        agreed, self._agreed = self._agreed == asked.values, None
        variables = self._variables
        if variables is None:
            self.result.value = wrong("There is no notebook to load rows into. Use the line of code above.")
            return
        if name in variables and name not in self._own and not agreed:
            kind = type(variables[name]).__name__
            self._ask(asked, f"The variable {name} holds a {kind} already. Press again to replace it.")
            return

        def take(found: tuple[rows.Cost, Any]) -> None:
            cost, loaded = found
            if loaded is None:
                self._ask(asked, f"That reads {cost}. Give At most, or press again to read all of it.")
                return
            variables[name] = loaded
            self._own.add(name)
            count = f"{len(loaded):,} rows" if hasattr(loaded, "__len__") else "a lazy Spark DataFrame"
            self.result.value = said(f"{name} holds {count} of version {asked['b']}. Read: {cost}.")

        self._tell("Reading ...")
        job = Job(
            run=lambda: rows.load(self._shelf, asked, agreed=agreed),
            done=take,
            failed=lambda sentence: setattr(self.result, "value", wrong(sentence)),
            shown=self._tell,
        )
        self._start("load", job)

    def _tell(self, text: str) -> None:
        self.result.value = said(text)

    def _ask(self, asked: Asked, sentence: str) -> None:
        self._agreed = asked.values
        self.result.value = wrong(sentence)
