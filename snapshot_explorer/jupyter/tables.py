"""The open tables, by name."""

import re
from collections.abc import Mapping, MutableMapping
from keyword import iskeyword
from typing import cast

from snapshot_explorer.core.text import did_you_mean
from snapshot_explorer.jupyter.usage_error import UsageError
from snapshot_explorer.table import Table

_NOT_IN_A_NAME = re.compile(r"\W+")


def is_variable_name(text: str) -> bool:
    """Return whether a variable can have this name."""
    return text.isidentifier() and not iskeyword(text)


class OpenTables:
    """The open tables by name, one of them the current one.

    A table has a name because `%snapshot open` set it, or because a variable of the user holds its handle. A variable
    that holds a handle wins over an earlier table of the same name.
    """

    def __init__(self, user_variables: MutableMapping[str, object]) -> None:
        """Start with the tables whose handles are in variables, so that a reload loses none of them."""
        self._variables = user_variables
        self._named: dict[str, Table] = {}
        self._current: str | None = None

    @property
    def current(self) -> str | None:
        """Return the name of the table that commands act on; None while none is chosen among several."""
        names = list(self.all())
        if self._current in names:
            return self._current
        return names[0] if len(names) == 1 else None

    def all(self) -> Mapping[str, Table]:
        """Return the open tables by name, in the order they were opened."""
        # A copy: a thread of the user may add variables meanwhile. `_`, `_3` and such are IPython's own. The type,
        # as `isinstance` would have a variable that imports lazily import, which may fail.
        variables = {
            name: cast("Table", value)
            for name, value in list(self._variables.items())
            if issubclass(type(value), Table) and not name.startswith("_")
        }
        return self._named | variables

    def find(self, name: str | None, local: Mapping[str, object] | None = None) -> tuple[str, Table]:
        """Return a table and its name: the named one, or the current one.

        Args:
            name: The name of an open table, or of a variable that holds one; None for the current table.
            local: The variables of the function that the magic runs in, if it runs in one.
        """
        tables = dict(self.all())
        if name is not None:
            value = (local or {}).get(name)
            if isinstance(value, Table):
                return name, value
            if name in tables:
                return name, tables[name]
            raise UsageError(f"No open table is called {name!r}. {self.hint(name)}")
        current = self.current
        if current is None:
            if not tables:
                raise UsageError(self.hint())
            raise UsageError(
                f"No table is chosen. {self.hint()} Select one with -t NAME, or choose one with %snapshot open NAME."
            )
        return current, tables[current]

    def add(self, name: str, table: Table) -> None:
        """Give a table a name, bind the variable of that name to it, and make it the current one."""
        self._named[name] = table
        self._variables[name] = table
        self._current = name

    def use(self, name: str) -> Table:
        """Make a table the current one and return it."""
        self._current, table = self.find(name)
        return table

    def close(self, name: str) -> None:
        """Forget a table, and the variable that holds its handle."""
        self._named.pop(name, None)
        if isinstance(self._variables.get(name), Table):
            del self._variables[name]

    def free_name(self, path: str) -> str:
        """Return a name for the table at a path: the path's last part, as far as it makes a variable's name."""
        last = re.split(r"[/\\]", path.rstrip("/\\"))[-1].removesuffix(".db")
        name = _NOT_IN_A_NAME.sub("_", last).strip("_") or "table"
        name = name if is_variable_name(name) else f"table_{name}"
        taken = self._variables.get(name)
        if taken is not None and not isinstance(taken, Table):
            raise UsageError(
                f"The table would be called {name!r}, but that is a variable of yours ({type(taken).__name__}). "
                f"Name it: %snapshot open PATH as {name}_table."
            )
        return name

    def hint(self, name: str | None = None) -> str:
        """Return the names of the open tables as a sentence, with the nearest one to a name; or how to open one."""
        names = list(self.all())
        if not names:
            return "No table is open. Open one: %snapshot open PATH as NAME."
        return f"{did_you_mean(name, names)} Open: {', '.join(names)}.".lstrip()
