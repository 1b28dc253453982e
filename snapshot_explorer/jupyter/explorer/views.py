"""The views of an explorer, a pane for each; loads the view of the selected tab unless it is shown already."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from snapshot_explorer.jupyter.explorer.contents import compared, lens, rows, version_views
from snapshot_explorer.jupyter.explorer.contents.view_requests import SnapshotCache, ViewRequest, ViewResult
from snapshot_explorer.jupyter.explorer.page.panes import Pane
from snapshot_explorer.jupyter.explorer.state import PAGED, ExplorerState
from snapshot_explorer.jupyter.explorer.work import Job, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import ipywidgets as widgets

    from snapshot_explorer.jupyter.explorer.contents.grid_rows import Opens
    from snapshot_explorer.jupyter.explorer.page.widget_factory import WidgetFactory

_VIEWS: dict[str, tuple[Callable[[SnapshotCache, ViewRequest], ViewResult], tuple[str, ...]]] = {
    "commit": (version_views.commit, ("b", "zone")),
    "manifests": (lens.manifests, ("a", "b", "carried")),
    "entries": (lens.entries, ("a", "b", "manifest")),
    "compare": (compared.compare, ("a", "b", "compared", "row_kind", "hide_unchanged", "key", "rows_read")),
    "data": (rows.preview, ("b", "columns", "where", "limit", "key")),
    "files": (version_views.files, ("b", "partition", "file_order", "descending", "statistics")),
    "health": (version_views.health, ("b", "health", "keep", "keep_last")),
}
"""The view of each place, and the traits of the state that it depends on."""
_WITH_GRID = ("compare", "data", "entries", "files")
"""Places whose rows are a grid."""
_OF_THE_LOG = ("commit", "health")
"""Places whose result changes once the log has been read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewHandlers:
    """What receives what happens in views."""

    loaded: Callable[[str], None]
    """Receives each place once its view is shown."""
    opened: Callable[[Opens, str], None]
    """Receives what a row of a grid opens."""


class Views:
    """The panes, and the requests that fill them."""

    def __init__(
        self,
        factory: WidgetFactory,
        state: ExplorerState,
        cache: SnapshotCache,
        work: Work,
        *,
        name: str,
        above: Mapping[str, tuple[widgets.Widget, ...]],
        handlers: ViewHandlers,
    ) -> None:
        """Make the panes; nothing is loaded yet.

        Args:
            factory: Makes widgets.
            state: What is chosen.
            cache: The table.
            work: Runs what reads.
            name: The variable that holds the table, for lines of code.
            above: The controls above each pane.
            handlers: Receive what happens in views.
        """
        self._state, self._cache, self._work, self._name = state, cache, work, name
        self._loaded = handlers.loaded
        self._shown: dict[str, object] = {}
        self.panes = {
            place: Pane(
                factory,
                turn=partial(state.turn, place) if place in PAGED else None,
                cancel=partial(self._cancel, place),
                above=above.get(place, ()),
                read=("Compare rows", state.read_rows) if place == "compare" else None,
                opened=handlers.opened if place in _WITH_GRID else None,
                place=place,
            )
            for place in _VIEWS
        }

    @property
    def front(self) -> Pane:
        """Return the pane of the selected tab."""
        return self.panes[self._state.tab]

    def forget(self) -> None:
        """Load every view again when it is next selected."""
        self._shown.clear()

    def request(self, place: str, traits: tuple[str, ...]) -> ViewRequest:
        """Return the request for a place in the present state."""
        state = self._state
        return ViewRequest(
            name=self._name,
            values=dict(zip(traits, state.values(*traits), strict=True)),
            page=state.pages.get(place, 0),
            commit=state.commit(state.b),
            commits=state.commits,
        )

    def load_front(self, offer: Callable[[str, Sequence[tuple[str, str]]], None]) -> None:
        """Load the view of the selected tab.

        Args:
            offer: Receives the tab, and the manifests or rows in it that can be chosen, once they are read.
        """
        state = self._state
        if state.b is None:
            self.front.clear("Nothing has been committed to the table yet.")
            return
        self._load(state.tab, partial(offer, state.tab))
        if state.tab == "manifests":
            if state.manifest:
                self._load("entries")
            else:
                self._work.cancel("entries")
                self._shown.pop("entries", None)
                self.panes["entries"].clear()

    def _load(self, place: str, offer: Callable[[Sequence[tuple[str, str]]], None] | None = None) -> None:
        view, traits = _VIEWS[place]
        request = self.request(place, traits)
        key = (request.values, request.page, id(self._state.commits) if place in _OF_THE_LOG else None)
        pane = self.panes[place]
        if self._shown.get(place) == key:
            if offer is not None and pane.result is not None and not self._work.is_busy(place):
                offer(pane.result.choices)
            return
        self._shown[place] = key

        def done(content: ViewResult) -> None:
            pane.show(content, page=request.page)
            self._loaded(place)
            if offer is not None:
                offer(content.choices)

        def failed(sentence: str) -> None:
            self._shown.pop(place, None)
            pane.fail(sentence)

        job = Job(run=lambda: view(self._cache, request), done=done, failed=failed, shown=pane.busy.show)
        self._work.start(place, job)
        pane.busy.expect(lambda: self._work.is_busy(place))

    def _cancel(self, place: str) -> None:
        self._work.cancel(place)
        self._shown.pop(place, None)
        self.panes[place].busy.hide()
        if place == "compare":
            self._state.rows_read = None
