"""What a condition on rows is used for: blame, trace, the plan of a repair. One place shows the last of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from snapshot_explorer.jupyter.explorer.contents.view_requests import ViewRequest, ViewResult
from snapshot_explorer.jupyter.explorer.views import Action
from snapshot_explorer.render import Code, Drawing, Pairs
from snapshot_explorer.render.tracks import tracks_content

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from snapshot_explorer.jupyter.explorer.contents.view_requests import SnapshotCache


def blame(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return every version that changed rows of the condition, with the rows before and after. Reads rows."""
    result = cache.table.blame(request["rows_where"], key=request["key"] or None)
    return ViewResult(
        drawing=_without_call(result.drawing()),
        code=request.name + result.call.removeprefix(result.opened),
        source=cache.cited(result.versions[0], result.versions[-1]),
        tracks=tracks_content(result.tracks()) if len(result) else {},
    )


def trace(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the versions and data files that still have rows of the condition. Reads the files that may have some."""
    result = cache.table.trace(request["rows_where"])
    return ViewResult(
        drawing=_without_call(result.drawing()),
        code=f"{request.name}.trace({request['rows_where']!r})",
        source=cache.cited(cache.table.current.version),
    )


def repair(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the statement that puts back rows of the condition, or all rows without one. Reads rows that differ."""
    to, where, key = request["repair_version"], request["rows_where"], list(request["key"]) or None
    options: dict[str, Any] = {"where": where, "key": key if where else None, "name": request["repair_name"]}
    options = {name: value for name, value in options.items() if value}
    result = cache.table.repair(to, **options)
    arguments = [f"to={to}", *(f"{name}={value!r}" for name, value in options.items())]
    return ViewResult(
        drawing=_without_call(result.drawing()),
        code=f"{request.name}.repair({', '.join(arguments)})",
        source=cache.cited(to, result.version),
    )


def _without_call(drawing: Drawing) -> Drawing:
    """Return a drawing without the Python call, which the page shows below."""
    parts = [part for part in drawing.parts if not (isinstance(part, Code) and part.text.startswith("open_table("))]
    return replace(
        drawing,
        parts=tuple(
            Pairs(tuple(row for row in part.rows if row[0] != "call")) if isinstance(part, Pairs) else part
            for part in parts
        ),
    )


_ACTIONS: Mapping[str, Callable[[SnapshotCache, ViewRequest], ViewResult]] = {
    "blame": blame,
    "trace": trace,
    "repair": repair,
}


class RowActions(Action):
    """Runs the actions on rows of a condition; `view` shows the outcome of the last one."""

    place = "blame"
    cancelled = "Nothing was read of these rows: that was cancelled."
    conditions: tuple[str, ...] = ()
    _suggested = ""

    def suggest(self, conditions: Sequence[tuple[str, str]]) -> None:
        """Offer the conditions of rows; the first becomes the condition unless another one was typed."""
        self.conditions = tuple(dict.fromkeys(condition for _, condition in conditions))
        if self._context.state.rows_where in ("", self._suggested):
            self._suggested = conditions[0][1] if conditions else ""
            self._context.state.rows_where = self._suggested

    def run(self, action: str) -> None:
        """Run an action on the rows of the condition: blame, trace or repair."""
        state, names = self._context.state, ("rows_where", "key", "repair_version", "repair_name")
        values = dict(zip(names, state.values(*names), strict=True)) | {"rows_where": state.rows_where.strip()}
        if not values["rows_where"] and action != "repair":
            self.view.fail(f"There is no condition to {action} rows by. Write one, such as order_id = 42.")
            return
        request = ViewRequest(name=self._context.name, values=values)
        self._start(lambda _: _ACTIONS[action](self._context.cache, request), self.view.show)
