"""The widget of a lake: its overview, filtered and sorted, which can be followed, and the explorer of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from snapshot_explorer.lake.overview import LakeOverview
from snapshot_explorer.render import html, mimebundle

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


class LakeView(widgets.VBox):
    """A widget for a lake. `explore(lake)` returns one."""

    def __init__(self, lake: Lake, open_explorer: Callable[[Table], widgets.Widget], *, requests: int = 120) -> None:
        """Read the overview, if it was not, and show it.

        Args:
            open_explorer: Returns the explorer of a table.
            requests: The most requests a minute while the lake is followed.
        """
        self.lake = lake
        self._open_explorer = open_explorer
        self._follower: LakeFollower | None = None
        if lake.time is None:
            self._follower = lake.follow(requests_per_minute=requests)
            self._follower.on_change = lambda _: self._draw()
        self.filter = widgets.Text(description="Filter", placeholder="orders, late, delta ...", continuous_update=True)
        self.order = widgets.Dropdown(description="Sort by", options=[*_ORDERS])
        self.table = widgets.Dropdown(description="Table", options=[table.name for table in lake])
        self.open_button = widgets.Button(description="Open", tooltip="Open the explorer of the table")
        self.following = widgets.ToggleButton(
            description="Follow",
            tooltip=f"Look for new commits, with at most {requests} requests a minute",
            disabled=self._follower is None,
        )
        self._page = widgets.HTML()
        self.explorer: widgets.Widget | None = None
        self.filter.observe(lambda _: self._draw(), "value")
        self.order.observe(lambda _: self._draw(), "value")
        self.following.observe(self._set_following, "value")
        self.open_button.on_click(lambda _: self._open())
        self._controls = widgets.HBox([self.filter, self.order, self.table, self.open_button, self.following])
        super().__init__([self._controls, self._page])
        self._draw()

    @property
    def overview(self) -> LakeOverview:
        """Return the overview that is shown."""
        overview = self.lake.newest_overview if self._follower is None else self._follower.overview
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
        """Stop following, and close the widget."""
        if self._follower is not None:
            self._follower.stop()
        super().close()

    def _draw(self) -> None:
        self._page.value = html(self.overview.drawing(), limit=len(self.lake))

    def _set_following(self, change: dict[str, Any]) -> None:
        if self._follower is not None:
            (self._follower.start if change["new"] else self._follower.stop)()

    def _open(self) -> None:
        self.explorer = self._open_explorer(self.lake[self.table.value])
        self.children = [self._controls, self._page, self.explorer]

    def __repr__(self) -> str:
        return str(self.lake)

    def _repr_mimebundle_(self, **options: object) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(**options) if hasattr(super(), "_repr_mimebundle_") else {}
        return dict(bundle or {}) | mimebundle(self.overview.drawing())
