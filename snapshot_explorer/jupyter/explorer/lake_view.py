"""The widget of a lake: its overview, filtered and sorted, which can be followed. A click opens a table's explorer."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any

import ipywidgets as widgets
from IPython.display import display
from traitlets import Bool, Enum, Instance, List, TraitError, Unicode, observe

from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.jupyter.explorer.environment import has_kernel, widget_bundle
from snapshot_explorer.jupyter.explorer.page.static_view import still_html
from snapshot_explorer.jupyter.explorer.widgets import PageWidget
from snapshot_explorer.lake import Lake, LakeFollower, overview_request
from snapshot_explorer.lake.overview import LakeOverview
from snapshot_explorer.table import Table
from snapshot_explorer.view import drawing_of, mimebundle_of, render_html

_URGENT = ("act", "watch", "unknown", "ok")


def _changed_rows(row: Mapping[str, Any]) -> int | None:
    counts = [row[f"rows_{name}"] for name in ("inserted", "updated", "deleted")]
    changed: int | None = row["added_rows"] if None in counts else sum(counts)
    return changed


_ORDERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "state": lambda row: _URGENT.index(row["state"]),
    "table": lambda row: row["name"],
    "age": lambda row: row["age_seconds"],
    "every": lambda row: row["usual_seconds"],
    "rhythm": lambda row: row["rhythm"],
    "commits": lambda row: row["commits"],
    "rows": _changed_rows,
    "bytes": lambda row: row["added_bytes"],
    "recent": lambda row: next((count for count in reversed(row["recent_rows"] or []) if count is not None), None),
    "format": lambda row: row["format"],
    "unreadable": lambda row: row["unreadable"],
    "health": lambda row: row["health"],
}
"""The value of each column of the overview that its tables are sorted by."""
_NUMBERS = ("age", "every", "commits", "rows", "bytes", "recent", "unreadable")
"""Columns that a first click sorts downwards."""
_FIRST_SECONDS = 2
"""How long the widget waits for the overview, so that a saved notebook, or one without a browser, contains it too."""


class LakeView(PageWidget):
    """A widget for a lake. `explore(lake)` returns one. Its tables appear as they are read."""

    overview_html = Unicode().tag(sync=True)
    names = List(Unicode(), help="The names of the tables, in the order of the rows.").tag(sync=True)
    filter = Unicode(help="Only tables with these words in their name, state, format, rhythm or problem.").tag(
        sync=True
    )
    order = Enum([*_ORDERS], "state", help="The column that the tables are sorted by.").tag(sync=True)
    descending = Bool(help="Whether they are sorted downwards. Unknown values are last either way.").tag(sync=True)
    can_follow = Bool().tag(sync=True)
    follows = Bool(help="Whether new commits are looked for.").tag(sync=True)
    problem = Unicode(help="Why a table could not be opened.").tag(sync=True)
    explorer = Instance(widgets.Widget, allow_none=True, help="The explorer that is shown below the overview.").tag(
        sync=True, **widgets.widget_serialization
    )

    def __init__(self, lake: Lake, open_explorer: Callable[[Table], widgets.Widget], *, requests: int = 120) -> None:
        """Show the overview; if it was not read, read it in a thread.

        Args:
            open_explorer: Returns the explorer of a table.
            requests: The most requests a minute while the lake is followed.
        """
        self.lake = lake
        self._open_explorer = open_explorer
        self._requests = requests
        self._follower: LakeFollower | None = None
        self._newest: LakeOverview | None = None
        self._is_closed = False
        super().__init__()
        self._reading = Thread(target=self._read, name="snapshot-lake-view", daemon=True)
        self._reading.start()
        self.wait(_FIRST_SECONDS)

    def receive(self, message: object) -> None:
        """Handle a message of a page, such as `{"open": "orders"}` or `{"sort": "rows"}`; ignore invalid ones."""
        match message:
            case {"open": str(name)}:
                self.open_table(name)
            case {"set": dict(values)}:
                for name in ("filter", "order", "descending", "follows"):
                    with suppress(TraitError):
                        self.set_trait(name, values.get(name, getattr(self, name)))
            case {"sort": str(column)} if column in _ORDERS:
                descending = not self.descending if column == self.order else column in _NUMBERS
                with self.hold_trait_notifications():
                    self.order, self.descending = column, descending

    def wait(self, seconds: float | None = None) -> "LakeView":
        """Wait until all tables are read, at most so long, and return the widget."""
        self._reading.join(seconds)
        return self

    def _read(self) -> None:
        self._show(self.lake.known_overview or self.lake.overview(show=self._show))
        if self.lake.time is None and not self._is_closed:
            self._follower = self.lake.follow(requests_per_minute=self._requests)
            self._follower.on_change = lambda _: self._draw()
            self.can_follow = True
            if self.follows:  # set before the tables were read
                self._follower.start()

    def _show(self, overview: LakeOverview) -> None:
        self._newest = overview
        self._draw()

    @property
    def overview(self) -> LakeOverview:
        """Return the overview that is shown."""
        overview = self._newest if self._follower is None else self._follower.overview
        if overview is None:
            return LakeOverview([], name=self.lake.name, request=overview_request(self.lake), search="Reading tables")
        words = self.filter.lower().split()
        texts = ("name", "state", "format", "rhythm", "problem")
        rows = [
            row
            for row in overview.to_dict()
            if all(any(word in str(row[name]).lower() for name in texts) for word in words)
        ]
        value_of = _ORDERS[self.order]
        unknown = [row for row in rows if value_of(row) is None]
        rows = [row for row in rows if value_of(row) is not None]
        rows = [*sorted(rows, key=value_of, reverse=self.descending), *unknown]
        return LakeOverview(rows, name=overview.name, request=overview.request, search=overview.search, is_sorted=True)

    def close(self) -> None:
        """Stop reading and following, and close the widget."""
        self._is_closed = True
        if self._follower is not None:
            self._follower.stop()
        super().close()

    def open_table(self, name: str) -> None:
        """Show the explorer of a table below the overview, or why it cannot be opened."""
        try:
            opened = self._open_explorer(self.lake[name])
        except SnapshotExplorerError as error:
            self.problem = str(error)
            return
        before, self.problem, self.explorer = self.explorer, "", opened
        if before is not None:
            before.close()

    @observe("filter", "order", "descending")
    def _draw(self, _change: object = None) -> None:
        overview = self.overview
        with self.hold_sync():
            self.names = overview["name"].to_pylist()
            self.overview_html = render_html(drawing_of(overview), limit=len(self.lake))

    @observe("follows")
    def _follow(self, change: dict[str, Any]) -> None:
        if self._follower is not None:
            (self._follower.start if change["new"] else self._follower.stop)()

    def __repr__(self) -> str:
        return str(self.lake)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:  # type: ignore[override]  # a pair, and none
        """Return the widget, with the overview for pages without widgets."""
        return widget_bundle(self) | mimebundle_of(self.overview)

    def _ipython_display_(self) -> None:
        """Show the overview, which remains when the widget is gone, and the widget, which hides it."""
        still = mimebundle_of(self.overview)
        display(still | {"text/html": still_html(still["text/html"])}, raw=True)  # type: ignore[no-untyped-call]  # IPython's own
        if not self._is_closed and has_kernel():
            display(widget_bundle(self) | {"text/plain": repr(self.lake)}, raw=True)  # type: ignore[no-untyped-call]  # likewise
