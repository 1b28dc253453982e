"""The views of an explorer: their content, and the reads that fill them. No widgets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from snapshot_explorer.analysis.health.symptoms import Symptom
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.explorer.contents import changed_rows, compared, lens, rows, version_views
from snapshot_explorer.jupyter.explorer.contents.grid_rows import Opens
from snapshot_explorer.jupyter.explorer.contents.view_requests import SnapshotCache, ViewRequest, ViewResult
from snapshot_explorer.jupyter.explorer.grid_view import GridView
from snapshot_explorer.jupyter.explorer.page.parts import parts_of
from snapshot_explorer.jupyter.explorer.state import READS, ExplorerState
from snapshot_explorer.jupyter.explorer.work import Job, Work, failure_text
from snapshot_explorer.view import render_text

if TYPE_CHECKING:
    import pyarrow as pa

_VIEWS: dict[str, tuple[Callable[[SnapshotCache, ViewRequest], ViewResult], tuple[str, ...]]] = {
    "commit": (version_views.commit, ("b", "zone", "rows_counted")),
    "manifests": (lens.manifests, ("a", "b", "carried")),
    "entries": (lens.entries, ("a", "b", "manifest")),
    "compare": (compared.compare, ("a", "b", "compared", "row_kind", "hide_unchanged", "key", "rows_read", "other")),
    "rows": (changed_rows.changed_rows, ("a", "b", "row_kind", "hide_unchanged", "key", "rows_read")),
    "data": (rows.preview, ("b", "columns", "where", "sort", "sort_descending", "key")),
    "files": (version_views.files, ("file_view",)),
    "branches": (version_views.branches, ()),
    "health": (version_views.health, ("health",)),
}
"""The view of each place, and the traits of the state that it depends on."""
_OF_PARTS = {
    "list": ("b", "partition", "statistics"),
    "lifetimes": ("missing",),
    "partitions": ("measure",),
    "health": ("b",),
    "retention": ("keep", "keep_last"),
    **{part: (*names, "files_read") for part, names in READS.items()},
}
"""The traits that the parts of the files and of the health depend on as well."""
_OF_THE_LOG = ("commit", "files", "branches", "health")
"""Places whose result changes once the log has been read again, unless a button reads files for it."""
BLANK = "Nothing has been committed to the table yet."


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorerContext:
    """The context that the parts of an explorer share: its state, table and threads, and its callbacks to the page."""

    state: ExplorerState
    cache: SnapshotCache
    work: Work
    name: str
    """The variable that holds the table, for lines of code."""
    busy: Callable[[str, str], None]
    """Receives a place and a description of its read; empty text once nothing is being read."""
    changed: Callable[[str], None]
    """Receives each place whose content has changed."""


class View:
    """The content of one place: the result of a read, an error, or a sentence."""

    def __init__(
        self, place: str, context: ExplorerContext, on_open: Callable[[Opens, str], None] | None = None
    ) -> None:
        """Show nothing yet; `on_open` receives the target that a row of a grid opens. Without it, rows open nothing."""
        self.busy, self._changed = partial(context.busy, place), partial(context.changed, place)
        self.grid = GridView(on_open)
        self.result: ViewResult | None = None
        self.error = ""
        self.sentence = ""
        self._last: ViewResult | None = None

    def show(self, result: ViewResult) -> None:
        """Show the result of a read."""
        self.busy("")
        self.result = self._last = result
        self.error = self.sentence = ""
        self.grid.show(result.grid)
        self._changed()

    def fail(self, sentence: str) -> None:
        """Show an error message; a page keeps the previous result behind it."""
        self.busy("")
        self.result, self.error, self.sentence = None, sentence, ""
        self._changed()

    def clear(self, sentence: str = "") -> None:
        """Show only a sentence."""
        self.busy("")
        self.result = self._last = None
        self.error, self.sentence = "", sentence
        self.grid.show(None)

    def say(self, sentence: str) -> None:
        """Show only a sentence at once, such as the outcome of a button."""
        self.clear(sentence)
        self._changed()

    @property
    def text(self) -> str:
        """Return the content as text."""
        return self.error or self.sentence or ("" if self.result is None else render_text(self.result.drawing))

    @property
    def content(self) -> dict[str, Any]:
        """Return the content as the page receives it; empty before anything was read."""
        if self._last is None:
            return {"error": sanitize(self.error), "sentence": self.sentence} if self.error or self.sentence else {}
        result = self._last
        return {
            "error": sanitize(self.error),
            "title": sanitize(result.answer or result.drawing.title),
            "headline": result.headline,
            "suggestedKey": sanitize(result.suggested_key or ""),
            "shares": result.shares,
            "parts": parts_of(result.page_drawing, has_grid=bool(self.grid.content)),
            "findings": [_finding_content(symptom) for symptom in result.findings],
            "grid": self.grid.content,
            "code": sanitize(result.code),
            "source": sanitize(result.source),
            "isAnnouncement": result.is_announcement,
            "columns": [(sanitize(name), sanitize(dtype), is_shown) for name, dtype, is_shown in result.columns],
            "tiles": list(result.tiles),
            "picture": result.picture,
            "isLive": result.is_live,
        }


def _finding_content(symptom: Symptom) -> dict[str, Any]:
    """Return a finding as the page receives it."""
    state = "expected" if symptom.expected else {True: "problem", False: "fine", None: "unknown"}[symptom.is_problem]
    return {"text": sanitize(symptom.sentence), "state": state, "versions": [str(item) for item in symptom.versions]}


class Views:
    """All views, and the requests that fill them."""

    def __init__(self, context: ExplorerContext, on_open: Callable[[Opens, str], None]) -> None:
        """Load nothing yet; `on_open` receives the target that a row of a grid opens."""
        self._context, self._state = context, context.state
        self._shown: dict[str, tuple[dict[str, Any], pa.Table | None]] = {}
        """By place the requested values, and the log that its result depends on."""
        self.by_place = {place: View(place, context, on_open) for place in _VIEWS}

    @property
    def front(self) -> View:
        """Return the view of the selected tab."""
        return self.by_place[self._state.tab]

    def forget(self) -> None:
        """Load every view again when it is next selected."""
        self._shown.clear()

    def request(self, traits: tuple[str, ...]) -> ViewRequest:
        """Return a request with traits of the present state."""
        state = self._state
        return ViewRequest(
            name=self._context.name,
            values=dict(zip(traits, state.values(*traits), strict=True)),
            commit=state.commit(state.b),
            commits=state.commits,
        )

    def load_front(self, offer: Callable[[str, Sequence[tuple[str, str]]], None]) -> None:
        """Load the view of the selected tab.

        Args:
            offer: Receives the tab, and the rows in it that can be chosen, once they are read.
        """
        state = self._state
        if state.b is None:
            self.front.clear(BLANK)
            return
        self._load(state.tab, partial(offer, state.tab))
        if state.tab == "manifests":
            if state.manifest:
                self._load("entries")
            else:
                self._context.work.cancel("entries")
                self._shown.pop("entries", None)
                self.by_place["entries"].clear()

    def cancel(self, place: str) -> None:
        """Stop the read of a place, which keeps its content."""
        self._context.work.cancel(place)
        self._shown.pop(place, None)
        self.by_place[place].busy("")
        if place in ("compare", "rows"):
            self._state.rows_read = None
        elif place == "commit":
            self._state.rows_counted = None
        elif place == "health":
            self._state.files_read = {}

    def read(self, place: str) -> View:
        """Return the view of a place in the present state, read at once; this explorer does not show it."""
        view = View(place, replace(self._context, busy=lambda *_: None, changed=lambda _: None))
        try:
            view.show(self._reader(place)[1]())
        except Exception as error:  # noqa: BLE001 - the view shows the error in place of the result
            view.fail(failure_text(error))
        return view

    def _reader(self, place: str) -> tuple[ViewRequest, Callable[[], ViewResult]]:
        """Return the request for a place in the present state, and the function that reads its result."""
        view_of, traits = _VIEWS[place]
        if place in ("files", "health"):
            traits += _OF_PARTS.get(getattr(self._state, traits[0]), ())
        request = self.request(traits)

        def run() -> ViewResult:
            with history_of(self._context.cache.table).table_format.storage.keeping_immutable():
                return view_of(self._context.cache, request)

        return request, run

    def _load(self, place: str, offer: Callable[[Sequence[tuple[str, str]]], None] | None = None) -> None:
        request, run = self._reader(place)
        is_of_the_log = place in _OF_THE_LOG and "files_read" not in request.values
        log = self._state.commits if is_of_the_log else None
        view, (values, shown_log) = self.by_place[place], self._shown.get(place, (None, None))
        if values == request.values and shown_log is log:
            if offer is not None and view.result is not None and not self._context.work.is_busy(place):
                offer(view.result.choices)
            return
        self._shown[place] = request.values, log

        def done(result: ViewResult) -> None:
            view.show(result)
            if offer is not None:
                offer(result.choices)

        def failed(sentence: str) -> None:
            self._shown.pop(place, None)
            view.fail(sentence)

        job = Job(run=run, done=done, failed=failed, shown=view.busy)
        self._context.work.start(place, job)
        view.busy("Reading ...")
