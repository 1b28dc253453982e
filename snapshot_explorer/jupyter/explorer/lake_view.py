"""The widget of a lake: its overview, filtered and sorted, which can be followed. A click opens a table's explorer."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Any

import anywidget
import ipywidgets as widgets
from traitlets import List, Unicode

from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.lake.overview import LakeOverview
from snapshot_explorer.render import Drawing, Line, html, mimebundle

if TYPE_CHECKING:
    from collections.abc import Callable

    from snapshot_explorer.lake import Lake, LakeFollower
    from snapshot_explorer.table import Table

_ORDERS = {
    "urgency": ("state", False),
    "name": ("name", False),
    "age": ("age_seconds", True),
    "rows added": ("added_rows", True),
    "bytes added": ("added_bytes", True),
    "commits": ("commits", True),
}
_URGENT = ("act", "watch", "unknown", "ok")


_PAGE = """export default { render({ model, el }) {
  const draw = () => {
    el.innerHTML = model.get("html");
    const names = model.get("names"), rows = el.querySelector("table")?.tBodies[0]?.rows ?? [];
    [...rows].forEach((row, index) => {
      const button = document.createElement("button");
      Object.assign(button, { className: "sx-open", type: "button", textContent: row.cells[1].textContent });
      button.title = "Open the explorer of the table";
      button.onclick = () => model.send({ open: names[index] });
      row.cells[1].replaceChildren(button);
    });
  };
  draw();
  model.on("change:html", draw);
} }"""
_CSS = """.sx-open { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer;
  text-decoration: underline dotted; text-underline-offset: 3px }
.sx-open:hover { text-decoration-style: solid }
.sx-open:focus-visible { outline: 2px solid #0072B2; outline-offset: 1px }"""
_FIRST_SECONDS = 2
"""How long the widget waits for the overview: it is then also in a saved notebook, and in one without a browser."""


class _Page(anywidget.AnyWidget):
    """An overview as HTML, in which the name of each table is a button."""

    _esm = _PAGE
    _css = _CSS
    html = Unicode().tag(sync=True)
    names = List(Unicode()).tag(sync=True)


class LakeView(widgets.VBox):
    """A widget for a lake. `explore(lake)` returns one. Its tables appear as they are read."""

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
        self.filter = widgets.Text(description="Filter", placeholder="orders, late, delta ...", continuous_update=True)
        self.order = widgets.Dropdown(description="Sort by", options=[*_ORDERS])
        self.following = widgets.ToggleButton(
            description="Follow",
            tooltip=f"Look for new commits, with at most {requests} requests a minute",
            disabled=True,
        )
        self._page = _Page()
        self._message = widgets.HTML()
        self.explorer: widgets.Widget | None = None
        self.filter.observe(lambda _: self._draw(), "value")
        self.order.observe(lambda _: self._draw(), "value")
        self.following.observe(self._set_following, "value")
        self._page.on_msg(lambda _, content, __: self.open_table(str(content.get("open"))))
        self._controls = widgets.HBox([self.filter, self.order, self.following])
        super().__init__([self._controls, self._page, self._message])
        self._reading = Thread(target=self._read, name="snapshot-lake-view", daemon=True)
        self._reading.start()
        self.wait(_FIRST_SECONDS)

    def wait(self, seconds: float | None = None) -> LakeView:
        """Wait until all tables are read, at most so long, and return the widget."""
        self._reading.join(seconds)
        return self

    def _read(self) -> None:
        self._show(self.lake.known_overview or self.lake.overview(show=self._show))
        if self.lake.time is None and not self._is_closed:
            self._follower = self.lake.follow(requests_per_minute=self._requests)
            self._follower.on_change = lambda _: self._draw()
            self.following.disabled = False

    def _show(self, overview: LakeOverview) -> None:
        self._newest = overview
        self._draw()

    @property
    def overview(self) -> LakeOverview:
        """Return the overview that is shown."""
        overview = self._newest if self._follower is None else self._follower.overview
        if overview is None:
            return LakeOverview([], name=self.lake.name, request=self.lake.request(), search="Reading tables")
        words = self.filter.value.lower().split()
        texts = ("name", "state", "format", "rhythm", "problem")
        rows = [
            row
            for row in overview.to_dict()
            if all(any(word in str(row[name]).lower() for name in texts) for word in words)
        ]
        column, is_descending = _ORDERS[self.order.value]

        def key(row: dict[str, Any]) -> tuple[bool, Any]:
            value = _URGENT.index(row[column]) if column == "state" else row[column]
            return (value is None) != is_descending, value or (0 if column != "name" else "")

        rows.sort(key=key, reverse=is_descending)
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
            self.explorer = self._open_explorer(self.lake[name])
        except SnapshotExplorerError as error:
            self._message.value = html(Drawing(title=name, parts=(Line(str(error)),)))
            return
        self._message.value = ""
        self.children = [self._controls, self._page, self._message, self.explorer]

    def _draw(self) -> None:
        overview = self.overview
        with self._page.hold_sync():
            self._page.names = overview["name"].to_pylist()
            self._page.html = html(overview.drawing(), limit=len(self.lake))

    def _set_following(self, change: dict[str, Any]) -> None:
        if self._follower is not None:
            (self._follower.start if change["new"] else self._follower.stop)()

    def __repr__(self) -> str:
        return str(self.lake)

    def _repr_mimebundle_(self, **options: object) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(**options) if hasattr(super(), "_repr_mimebundle_") else {}
        return dict(bundle or {}) | mimebundle(self.overview.drawing())
