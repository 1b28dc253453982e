"""Load rows into a variable of the notebook; a large read needs confirmation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snapshot_explorer.jupyter.explorer.contents import rows
from snapshot_explorer.jupyter.explorer.environment import load_limits
from snapshot_explorer.jupyter.explorer.views import Action

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from snapshot_explorer.jupyter.cost import Cost
    from snapshot_explorer.jupyter.explorer.contents.view_requests import ViewRequest
    from snapshot_explorer.jupyter.explorer.context import ExplorerContext

LOADS = ("b", "columns", "where", "load_limit", "engine", "types", "variable")
"""The traits of the state that loading depends on."""
_REPLACE, _READ = "replace", "read"
"""What can be confirmed: to replace a variable, to read much."""


class Loader(Action):
    """Loads the rows of B into a variable, and shows the outcome in `view`."""

    place = "load"
    cancelled = "Nothing was loaded: that was cancelled."

    def __init__(self, context: ExplorerContext, variables: MutableMapping[str, Any] | None) -> None:
        """Load nothing yet; `variables` are the notebook's, None where there is no notebook."""
        super().__init__(context)
        self.variables = variables
        self._confirmed: frozenset[str] = frozenset()
        self._own: set[str] = set()

    def load(self, request: ViewRequest) -> None:
        """Load; a large read, or replacing a variable not set here, needs confirmation."""
        name = request["variable"]
        confirmed = self._confirmed if self._unconfirmed == request.values else frozenset()
        self._unconfirmed = None
        variables = self.variables
        if variables is None:
            self.view.fail("There is no notebook to load rows into. Use the line of code above.")
            return
        if name in variables and name not in self._own and _REPLACE not in confirmed:
            class_name = type(variables[name]).__name__
            self._ask_to_confirm(
                request,
                confirmed | {_REPLACE},
                f"The variable {name} already contains a {class_name}. Press again to replace it.",
            )
            return

        def take(answer: tuple[Cost, Any]) -> None:
            cost, loaded = answer
            if loaded is None:
                much = f"This reads {cost}. Set At most, or press again to read all of it."
                self._ask_to_confirm(request, confirmed | {_READ}, much)
                return
            variables[name] = loaded
            self._own.add(name)
            count = f"{len(loaded):,} rows" if hasattr(loaded, "__len__") else "a lazy Spark DataFrame"
            self.view.say(f"{name} holds {count} of version {request['b']}. Read: {cost}.")

        limits = None if _READ in confirmed else load_limits()
        self.view.say("")
        self._start(lambda _: rows.load(self._context.cache, request, limits), take)

    def _ask_to_confirm(self, request: ViewRequest, confirmed: frozenset[str], sentence: str) -> None:
        """Ask whether to go on; the same load requested again confirms it."""
        self._unconfirmed, self._confirmed = request.values, confirmed
        self.view.fail(sentence)
