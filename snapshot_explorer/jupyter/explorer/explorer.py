"""`Explorer`: the widget for time travel. It connects the state, the work on other threads, and the views."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
from IPython.core.getipython import get_ipython
from IPython.display import display
from pyarrow import ArrowException
from traitlets import TraitError

from snapshot_explorer.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.history import copied_note, missing_notes
from snapshot_explorer.jupyter.explorer.bisecting import Bisector
from snapshot_explorer.jupyter.explorer.blaming import Blamer
from snapshot_explorer.jupyter.explorer.contents.view_requests import SnapshotCache
from snapshot_explorer.jupyter.explorer.controls import Controls
from snapshot_explorer.jupyter.explorer.environment import has_kernel, is_page_acting, name_of, time_zone
from snapshot_explorer.jupyter.explorer.following import Delay, FollowErrors, Ticker, poll, rollback_message
from snapshot_explorer.jupyter.explorer.loading import LOADS, Loader
from snapshot_explorer.jupyter.explorer.page.page_actions import FILE_FORMATS, PageActions, action_button
from snapshot_explorer.jupyter.explorer.page.panes import Busy, code_html, error_html, head_html
from snapshot_explorer.jupyter.explorer.page.static_view import (
    LIVE,
    STYLE,
    head,
    newest_commit,
    static_html,
    static_text,
    static_view,
)
from snapshot_explorer.jupyter.explorer.page.timeline_facts import FactsReader
from snapshot_explorer.jupyter.explorer.page.timeline_pane import TimelinePane
from snapshot_explorer.jupyter.explorer.page.widget_factory import Unsent, WidgetFactory, family
from snapshot_explorer.jupyter.explorer.reading import (
    FIRST_COMMITS,
    MOST_COMMITS,
    Log,
    TableSize,
    read_log,
    read_newest,
    read_table_size,
    with_known_readability,
)
from snapshot_explorer.jupyter.explorer.state import FILTERS, TABS, ExplorerState
from snapshot_explorer.jupyter.explorer.views import ViewHandlers, Views
from snapshot_explorer.jupyter.explorer.work import Job, Work

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping, Sequence

    from IPython.core.display_functions import DisplayHandle
    from traitlets import Bunch

    from snapshot_explorer.jupyter.explorer.contents.grid_rows import Opens
    from snapshot_explorer.render import Drawing
    from snapshot_explorer.snapshot import Snapshot
    from snapshot_explorer.table import Table

_PLAY_SECONDS = 1.0
_SOON = 0.2
"""Seconds that a cell waits for reads before the explorer is shown."""
_LATER = ("older", "totals")
"""Reads that the first picture does not need."""
_STILL_DELAY = 1.0
"""Seconds after a message from a page before the static picture is updated."""
_STILL_SECONDS = 5.0
"""The maximum time that the static picture waits for reads."""


class Explorer(Unsent, widgets.VBox):
    """A table's history to explore by hand: a timeline, two markers A and B, and views of both.

    `state` contains every choice: setting a trait does what a click does. Reading happens on other threads;
    `wait` returns when nothing is being read. `close` stops everything.
    """

    def __init__(self, table: Table, *, name: str = "table", variables: MutableMapping[str, Any] | None = None) -> None:
        """Draw the frame, and begin to read.

        Args:
            table: The table.
            name: The variable that holds it, for lines of code.
            variables: The variables that rows are loaded into; without them, rows cannot be loaded.
        """
        self.table = table
        self.name = name
        self.state = ExplorerState()
        self._cache = SnapshotCache(table)
        self._work = Work()
        self._facts = FactsReader(table, self.state, self._work, self._draw)
        self._still: DisplayHandle | None = None
        self._still_later = Delay(self._update_still, _STILL_DELAY)
        self._follow, self._play = Ticker(self._poll), Ticker(self.state.next)
        self._factory = factory = WidgetFactory()
        self._timeline_pane = TimelinePane(
            lambda version, with_shift: self.state.click(version, other=with_shift), layout=factory.layout()
        )
        self._follow_errors = FollowErrors(self.state)
        self._forget_all()
        self._head, self._line = factory.html(), factory.html()
        self._busy = Busy(self._factory, self._cancel)
        parts = (self._factory, self.state, self._cache, self._work)
        self._bisector = Bisector(*parts, name=name, found=partial(self._set_marker, "b"))
        self._blamer = Blamer(*parts, name=name)
        acts = {"refresh": self.refresh, "load": self.load, "bisect": self._bisector.bisect}
        self._controls = Controls(self._factory, self.state, acts, self.choose)
        self._actions = PageActions({"save": self._save, "open": self._open_manifest}, layout=self._factory.layout())
        above = self._controls.above
        above["data"] = (*above["data"], self._bisector.box)
        handlers = ViewHandlers(loaded=self._view_loaded, opened=self._row_opened)
        self._views = Views(*parts, name=name, above=above, handlers=handlers)
        self._loader = Loader(self._factory, self._cache, variables, self._work)
        self._fill_panes()
        self._slots = {tab: factory.slot(self._views.panes[tab].box) for tab in TABS}
        self._tabs = factory.tab(*self._slots.values(), titles=[tab.capitalize() for tab in TABS])
        self._slots[self.state.tab].fill()
        top = [
            self._actions,
            self._head,
            self._busy.box,
            self._timeline_pane,
            self._line,
            self._controls.top,
            self._controls.filters,
        ]
        super().__init__([*top, self._tabs])
        self.add_class(LIVE)
        self._tabs.observe(self._tab_clicked, "selected_index")
        self.state.observe(self._changed)
        self._draw_head()
        self.state.zone = time_zone()
        self.refresh()

    def _forget_all(self) -> None:
        """Drop everything that was read."""
        self._log: Log | None = None
        self._newest: Snapshot | None = None
        self._table_size: TableSize | None = None
        self._is_size_unknown, self._problem = False, ""
        self._drawn: object = None
        self._is_closed = False

    def _fill_panes(self) -> None:
        """Add the controls of reads on request below the content of the panes."""
        panes = self._views.panes
        panes["compare"].append(self._controls.shown_with_rows(self._blamer.box))
        panes["data"].append(self._blamer.box, self._controls.loading, self._loader.box)
        panes["manifests"].append(self._controls.manifest, panes["entries"].box)

    def wait(self, seconds: float = 60) -> Explorer:
        """Return the explorer when nothing is being read; for cells, scripts and tests.

        Raises:
            TimeoutError: It takes longer.
            InvalidArgumentError: `seconds` is not a number, 0 or more.
        """
        given: object = seconds
        if not (isinstance(given, int | float) and given >= 0):  # which NaN is not
            raise InvalidArgumentError(f"seconds must be a number, 0 or more, got {seconds!r}.")
        if not self._work.wait(seconds):
            raise TimeoutError(f"The explorer still reads after {seconds:g} seconds. Wait again, or press Cancel.")
        return self

    def refresh(self) -> None:
        """Read the log and the current view again; on failure, keep the cached ones."""

        def take(found: tuple[Snapshot, Log]) -> None:
            self._cache.forget()
            self._views.forget()
            self._newest, log = found
            self._follow_errors.clear()
            self._problem = ""
            self._show_log(log)

        most = FIRST_COMMITS if self._log is None else MOST_COMMITS
        run = partial(read_newest, self.table, most=most)
        self._work.start("log", Job(run=run, done=take, failed=self._fail_head, shown=self._busy.show))
        self._busy.expect(lambda: self._work.is_busy("log"))

    def choose(self, ref: int | str, marker: str = "b") -> None:
        """Set a marker to the version of a ref; an error is shown.

        Args:
            ref: A version, or the text of a ref such as latest~2, tag:v1 or @3d.
            marker: `a` or `b`.
        """
        text = str(ref).strip()
        if text.isdecimal() and int(text) in self.state.versions:
            return self._set_marker(marker, int(text))

        before = self._log

        def find() -> tuple[int | None, Log | None, str]:
            version = self.table.version_of(ref)
            is_known = before is not None and version in before.versions
            return version, None if is_known else read_log(self.table, before), self.table.time_note(ref) or ""

        def take(found: tuple[int | None, Log | None, str]) -> None:
            version, log, note = found
            if log is not None:
                self._show_log(log)
            self._set_marker(marker, version)
            self.state.note = self.state.note or note

        def fail(sentence: str) -> None:
            self._controls.show_marker(marker)
            self.state.note = sentence

        job = Job(run=find, done=take, failed=fail)
        return self._work.start(f"marker {marker}", job)

    def load(self) -> None:
        """Load the rows of B into the variable; a large read, or replacing another variable, must be confirmed."""
        self._loader.load(self._views.request("load", LOADS))

    @property
    def code(self) -> str:
        """Return the line of code that returns what the selected tab shows."""
        result = self._views.front.result
        return "" if result is None else result.code

    def close(self) -> None:
        """Stop following and reading, and free every widget."""
        if getattr(self, "_is_closed", True):
            return
        self._is_closed = True
        self._follow.stop()
        self._play.stop()
        self._still_later.stop()
        self._work.close()
        self.state.unobserve_all()
        self._controls.close()
        self._blamer.close()
        self._timeline_pane.close()
        self._cache.forget()
        for widget in family(self):
            widget.unobserve_all()
            if widget is not self:
                widget.close()
        super().close()

    def drawing(self) -> Drawing:
        """Return the explorer's current content as text and tables: for terminals and pages without widgets."""
        pane = self._views.front
        lines = [*self._lines(), *(one for one in (self._problem, pane.error) if one)]
        lines += [] if pane.result is None else [f"{pane.result.code}    Source: {pane.result.source}"]
        picture = self._timeline_pane.picture
        parts = () if picture is None else picture.drawing().parts
        return static_view(lines, parts, pane.drawing, title=f"Explorer of {self.table.name}")

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        """Return the widget, with a table and a picture for pages without widgets."""
        static = self._static_bundle()
        return self._widget_bundle() | static

    def _ipython_display_(self) -> None:
        """Show the widget, then the table and the picture, which replace it on pages without widgets.

        Two outputs: of a single one with both, JupyterLab only shows that the widget is missing once the notebook is
        opened again. The widget comes first: its bars do not wait for what is read for the picture.
        """
        if self._is_closed or not has_kernel():
            display(self._static_bundle(), raw=True)  # type: ignore[no-untyped-call]  # IPython's own
            return
        self._work.wait(_SOON, but_for=_LATER)  # what has been read by then is sent once, with the widgets
        about = {"text/plain": repr(self)}
        self._still = display(about, raw=True, display_id=True)  # type: ignore[no-untyped-call]  # IPython's own
        display(self._widget_bundle() | about, raw=True)  # type: ignore[no-untyped-call]  # likewise
        self._still.update(self._static_bundle(), raw=True)

    def _widget_bundle(self) -> dict[str, Any]:
        """Return the widget, which is sent to the page now. ipywidgets before 8 has no bundle of its own."""
        if self.model_id is None:
            return {}
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return {"text/plain": repr(self), "application/vnd.jupyter.widget-view+json": view}

    def _update_still(self) -> None:
        """Show the current state in the picture that was displayed last, once nothing is being read."""
        if not self._is_closed and self._still is not None:
            if self._work.wait(0):
                self._still.update(self._static_bundle(), raw=True)  # type: ignore[no-untyped-call]  # IPython's own
            else:
                self._still_later.start()

    def _static_bundle(self) -> dict[str, str]:
        self._work.wait(_STILL_SECONDS)
        state, drawing = self.state, self.drawing()
        page = static_html(drawing, state.shown, measure=state.measure, a=state.a, b=state.b)
        return {"text/plain": static_text(drawing), "text/html": page}

    def __repr__(self) -> str:
        return f"Explorer(path={self.table.path!r}, a={self.state.a}, b={self.state.b})"

    def __str__(self) -> str:
        """Return the explorer's current content as text: `print(explorer)` draws it in a terminal."""
        self._work.wait(_STILL_SECONDS)
        return static_text(self.drawing())

    # What changes in the state

    def _changed(self, change: Bunch) -> None:
        match change.name:
            case "tab":
                self._slots[change.new].fill()
                self._tabs.selected_index = TABS.index(change.new)
            case "follow" | "interval":
                self._tick(self._follow, self.state.interval, on=self.state.follow)
            case "playing":
                self._tick(self._play, _PLAY_SECONDS, on=change.new)
            case "zone":
                self._timeline_pane.zone = "" if change.new == "local" else change.new
                self._draw_head()
            case "measure":
                self._facts.read_totals(self._log)
            case "anomalies":
                self._facts.read_anomalies()
            case "note" | "readable" | "blame":
                return
        self._draw()
        self._load_front()
        if self._still is not None and is_page_acting():
            self._still_later.start()

    def _tab_clicked(self, change: Bunch) -> None:
        if change.new is not None:
            self.state.tab = TABS[change.new]

    @staticmethod
    def _tick(ticker: Ticker, seconds: float, *, on: bool) -> None:
        if on:
            ticker.start(seconds)
        else:
            ticker.stop()

    def _set_marker(self, marker: str, version: int | None) -> None:
        try:
            self.state.mark(marker, version)
        except TraitError as error:
            self.state.note = str(error)
        else:
            self.state.note = ""
        self._controls.show_marker(marker)

    def _draw(self) -> None:
        """Draw the timeline if it has changed, otherwise only its markers."""
        state = self.state
        if self._log is None or state.commits is not self._log.commits:
            return  # about to be known
        what = (*state.values("measure", "window", *FILTERS), id(state.commits), *self._facts.key)
        marks = state.values("a", "b")
        if self._drawn == (what, marks):
            return
        shown = state.shown
        if not self._drawn or self._drawn[0] != what:  # type: ignore[index]  # a pair
            self._drawn = (what, marks)
            total = len(state.versions)
            title = f"{len(shown):,} of {total:,} versions"
            self._timeline_pane.draw(
                shown,
                measure=state.measure,
                title=title,
                total=total,
                facts=replace(self._facts.facts(self._log), notes=missing_notes(self._log.gaps(shown))),
                a=state.a,
                b=state.b,
            )
            self._controls.offer()
            self._line.value = code_html(f"{self.name}.{state.history_call}.picture(y={state.measure!r})")
            self._draw_head()
        else:
            self._drawn = (what, marks)
            self._timeline_pane.mark(state.a, state.b)

    def _load_front(self) -> None:
        """Load the view of the selected tab, once the versions have been read."""
        if self._log is not None:
            self._loader.show(self._views.request("load", LOADS))
            self._views.load_front(self._offer)

    def _offer(self, tab: str, choices: Sequence[tuple[str, str]]) -> None:
        """Offer what can be chosen in a tab: manifests, or rows."""
        if tab == "manifests":
            self._controls.offer_manifests(choices)
        elif tab == "data" or (tab == "compare" and self.state.compared == "rows"):
            self._blamer.suggest(choices)

    def _cancel(self) -> None:
        """Stop reading the log; keep the cached versions."""
        self._work.cancel("log")
        self._busy.hide()
        self.state.note = "The log was not read: that was cancelled. Refresh reads it."

    # What is read of the log

    def _poll(self) -> None:
        """Look for new commits."""
        if self._work.is_busy("log") or self._work.is_busy("follow"):
            return
        before, known = self._log, self._newest

        def take(found: tuple[Snapshot, Log | None]) -> None:
            self._newest, log = found
            if self._follow_errors.clear():
                self._draw_head()
            if log is not None:
                self._show_log(log)

        job = Job(run=lambda: poll(self.table, before, known), done=take, failed=self._follow_errors.show)
        self._work.start("follow", job)

    def _show_log(self, log: Log) -> None:
        self._busy.hide()
        back, self._log = rollback_message(self._log, log), log
        self.state.set_versions(log.versions, log.readable, log.commits)
        is_copied = self.table.bound.has_file_times and copied_note(log.commits) is not None
        self._controls.show_recorded_times(is_copied=is_copied)
        if back:
            self.state.note = back
        self._draw()
        self._load_front()
        job = Job(
            run=lambda: read_table_size(self.table),
            done=self._show_table_size,
            failed=lambda _: self._show_table_size(None, failed=True),
        )
        self._work.start("table size", job)
        if not log.is_partial:
            self._work.cancel("older")
            self._facts.read(log)
        elif not self._work.is_busy("older"):
            self._read_older(partial(read_log, self.table, listing=log.listing))

    def _read_older(self, run: Callable[[], Log]) -> None:
        """Read the commits that the first picture did not need."""

        def take(found: Log) -> None:
            if self._log is not None and self._log.listing != found.listing:
                self._read_older(partial(read_log, self.table, found))  # it has grown meanwhile
            else:
                self._show_log(found)

        self._work.start("older", Job(run=run, done=take, failed=self._fail_head))

    def _open_manifest(self, path: str) -> None:
        """Show the entries of a manifest that was clicked."""
        if path in {value for _, value in self._controls.manifest.options}:
            self.state.manifest = path

    def _save(self, what: str) -> None:
        """Send the rows of a grid to the page, as a file to save."""
        place, _, file_format = what.partition(" ")
        pane = self._views.panes.get(place)
        rows = None if pane is None or pane.grid is None else pane.grid.arranged_rows()
        if rows is None or file_format not in FILE_FORMATS:
            return
        try:
            self._actions.save(f"{self.name}_{place}_{self.state.b}", rows, file_format)
        except (SnapshotExplorerError, ArrowException) as error:
            self.state.note = f"The rows were not saved: {error}"

    def _row_opened(self, what: Opens, choice: str) -> None:
        """Open what a row that was clicked contains: a condition or a version."""
        if what == "blame":
            self.state.blame = choice
        else:
            self._set_marker("b", int(choice))

    def _view_loaded(self, place: str) -> None:
        """Show in the timeline which versions a view has found to lack files."""
        if place != "health" or self._log is None:
            return
        log = with_known_readability(self.table, self._log)
        if not log.commits.equals(self._log.commits):
            self._log = log
            self.state.commits = log.commits

    def _show_table_size(self, table_size: TableSize | None, *, failed: bool = False) -> None:
        self._table_size, self._is_size_unknown = table_size, failed
        self._draw_head()

    # The head

    def _draw_head(self) -> None:
        problem = error_html(self._problem) if self._problem else ""
        newest = None if self._log is None else newest_commit(self._log, self.state.zone)
        copy_path = action_button("Copy path", "copy", self.table.path, "Copy the path of the table")
        self._head.value = STYLE + head_html(self.table.name, self._lines(), newest, copy_path) + problem

    def _fail_head(self, sentence: str) -> None:
        self._busy.hide()
        self._problem = sentence
        self._draw_head()

    def _lines(self) -> list[str]:
        lines = head(self.table, self.state, self._log, self._table_size)
        return [*lines, "its files could not be counted"] if self._is_size_unknown else lines


def explore(table: Table, *, name: str | None = None) -> Explorer:
    """Return the explorer of a table: a widget for its history. Reads the log, and what is shown, on other threads.

    Tried in JupyterLab 4, Notebook 7 and Voila, without network. VS Code shows the same widgets; it loads anywidget,
    which draws the timeline, from the network. That has not been tried. Without widgets, as in a terminal, a saved
    notebook, GitHub or nbconvert, a table and a picture are shown.

    Args:
        table: The table.
        name: The variable that holds it, for the lines of code that are shown; found by itself in a notebook.

    Raises:
        InvalidArgumentError: It is not an open table.
    """
    if not hasattr(table, "current"):
        what = type(table).__name__
        raise InvalidArgumentError(f"explore needs an open table, got {what}. Open it: explore(open_table(PATH)).")
    shell = get_ipython()
    variables: MutableMapping[str, Any] | None = None if shell is None else shell.user_ns
    found = name or name_of(table, variables or {})
    return Explorer(table, name=found, variables=variables)
