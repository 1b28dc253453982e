"""`Explorer`: the widget for time travel. It connects the state, the work on other threads, the views and the page."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from shlex import quote
from shutil import get_terminal_size
from typing import Any, get_args, overload

import pyarrow as pa
from IPython.core.getipython import get_ipython
from pyarrow import ArrowException
from traitlets import Bunch, Dict, TraitError, Unicode

from snapshot_explorer.analysis.diff import count_rows
from snapshot_explorer.analysis.health.symptoms import Symptom
from snapshot_explorer.analysis.retention import LEVELS
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import Kind
from snapshot_explorer.core.safe_text import logger_of, sanitize
from snapshot_explorer.history import history_of, missing_notes
from snapshot_explorer.jupyter.cost import ENGINES
from snapshot_explorer.jupyter.explorer.actions import LOADS, Bisector, Loader, RowActions
from snapshot_explorer.jupyter.explorer.contents.changed_rows import is_small
from snapshot_explorer.jupyter.explorer.contents.commit_list import commit_rows, most_changed, overview
from snapshot_explorer.jupyter.explorer.contents.grid_rows import Opens
from snapshot_explorer.jupyter.explorer.contents.rows import load_code
from snapshot_explorer.jupyter.explorer.contents.view_requests import SnapshotCache
from snapshot_explorer.jupyter.explorer.environment import name_of, time_zone, widget_bundle
from snapshot_explorer.jupyter.explorer.following import FollowErrors, Timer, poll
from snapshot_explorer.jupyter.explorer.lake_view import LakeView
from snapshot_explorer.jupyter.explorer.page.files import FILE_FORMATS, file_bytes
from snapshot_explorer.jupyter.explorer.page.static_view import (
    head,
    late_text,
    static_html,
    static_text,
    static_view,
    with_page,
)
from snapshot_explorer.jupyter.explorer.page.timeline_facts import FactsReader
from snapshot_explorer.jupyter.explorer.reading import (
    FIRST_COMMITS,
    MOST_COMMITS,
    Log,
    TableSize,
    read_log,
    read_newest,
    read_table_size,
    with_known_facts,
)
from snapshot_explorer.jupyter.explorer.recording import Recorder
from snapshot_explorer.jupyter.explorer.state import (
    COMPARED,
    FILE_VIEWS,
    FILTERS,
    HEALTH,
    MEASURES,
    ROW_KINDS,
    SETTABLE,
    TABS,
    ExplorerState,
)
from snapshot_explorer.jupyter.explorer.stills import Stills
from snapshot_explorer.jupyter.explorer.views import BLANK, ExplorerContext, View, Views
from snapshot_explorer.jupyter.explorer.widgets import LazyLayout, LazyWidget, PageWidget
from snapshot_explorer.jupyter.explorer.work import Job, Work
from snapshot_explorer.lake import Lake
from snapshot_explorer.results.outputs import new_output_path, output_file
from snapshot_explorer.table import Snapshot, Table
from snapshot_explorer.view import Drawing
from snapshot_explorer.view.commits import STYLES, with_totals
from snapshot_explorer.view.figures import Picture
from snapshot_explorer.view.palette import KIND_COLORS
from snapshot_explorer.view.text import WIDTH
from snapshot_explorer.view.timeline.columns import timeline_columns
from snapshot_explorer.view.timeline.figure import timeline

PLAY_SECONDS = 1.0
_STILL_SECONDS = 5.0
"""The maximum time that the static picture waits for reads."""
_RECORDED = {*SETTABLE, "sort", "sort_descending"} - {"pinned", "part", "follow", "playing", *FILTERS}
"""The traits of the state that `to_html` takes over; pins and filters are set in the page."""
_LOG_SECONDS = 3_600
"""The maximum time that `to_html` waits for the log."""
_VERSIONS = 50
"""The number of newest versions whose views a page has."""
_LONGEST_VERSION = 20
_OFFERED = 100
"""Conditions on rows that are offered."""
_CHOICES = {
    "kind": get_args(Kind),
    "colors": KIND_COLORS,
    "signs": {kind: style.sign for kind, style in STYLES.items()},
    "measure": MEASURES,
    "compared": COMPARED,
    "row_kind": ROW_KINDS,
    "health": HEALTH,
    "level": LEVELS,
    "engine": ENGINES,
    "formats": FILE_FORMATS,
}


class Explorer(LazyWidget, PageWidget):
    """A table's history to explore interactively: a timeline, two markers A and B, and views of both.

    `state` contains every choice: setting a trait has the effect of a click. Reading happens on other threads; `wait`
    returns when nothing is being read. `close` stops everything. `views` and `code` return its content, and
    `receive` handles the requests of a page.
    """

    commits = Dict(help="The commits of the timeline, as `timeline_columns` returns them.").tag(sync=True)
    facts = Dict(help="The line and the anomalies of the same commits, which are known later.").tag(sync=True)
    zone = Unicode("UTC", help="The zone of times; empty for that of the page.").tag(sync=True)
    strip = Dict(help="The whole history in few bars, and which part of it the timeline shows.").tag(sync=True)
    listed = Dict(help="The first commits of the list, and how many there are.").tag(sync=True)
    page = Dict(help="The head, the versions of A and B, the choices of the state, and notes.").tag(sync=True)
    view = Dict(help="What the selected tab shows.").tag(sync=True)
    busy = Dict(help="What is being read, by place.").tag(sync=True)
    _picture: Picture | None = None

    def __init__(
        self,
        table: Table,
        *,
        name: str = "table",
        variables: MutableMapping[str, Any] | None = None,
        save_page: bool = False,
    ) -> None:
        """Draw the frame, and begin to read.

        Args:
            table: The table.
            name: The variable that holds it, for lines of code.
            variables: The variables that rows are loaded into; without them, rows cannot be loaded.
            save_page: Whether a saved notebook has the page of `to_html` beside the picture.
        """
        super().__init__(layout=LazyLayout())
        self.table = table
        self.name = name
        self.state = ExplorerState(with_recorded_times=history_of(table).table_format.clock.with_recorded_times)
        self._cache = SnapshotCache(table, variables)
        self._work = Work()
        self._facts = FactsReader(table, self.state, self._work, self._draw)
        self._saves_page = save_page
        self._stills = Stills(self, self._work, self._static_bundle)
        self._follow, self._play = Timer(self.poll, repeats=True), Timer(self.state.next, repeats=True)
        self._follow_errors = FollowErrors(self.state)
        self._log: Log | None = None
        self._newest: Snapshot | None = None
        self._table_size: TableSize | None = None
        self._lacking = {"actions", "slices"} - {
            inspection.picture for inspection in history_of(table).table_format.inspections
        }
        self._is_size_unknown, self._is_copied, self._is_closed = False, False, False
        self.problem = ""
        self._problems: int | None = None
        self._drawn: object = None
        self._listed: pa.Table = self.state.commits
        self._answers = 0
        context = ExplorerContext(
            state=self.state,
            cache=self._cache,
            work=self._work,
            name=name,
            busy=self._set_busy,
            changed=self._place_changed,
        )
        self._views = Views(context, self._row_opened)
        self._bisector = Bisector(context, on_commit=partial(self._set_marker, "b"))
        self._row_actions = RowActions(context)
        self._loader = Loader(context, variables)
        self._actions = {action.place: action for action in (self._row_actions, self._bisector, self._loader)}
        self._acts: Mapping[str, Callable[[], None]] = {
            "swap": self.state.swap,
            "refresh": self.refresh,
            "load": self.load,
            "bisect": self._bisector.bisect,
            **{action: partial(self._row_actions.run, action) for action in ("blame", "trace", "repair", "undo")},
            "compare rows": self.state.read_rows,
            "count rows": self.state.count_rows,
            "read files": self.state.read_files,
            "reset filters": self.state.reset_filters,
        }
        self.state.observe(self._changed)
        self._send_page()
        self.state.zone = time_zone()
        self.refresh()

    @property
    def views(self) -> Mapping[str, View]:
        """Return the view of each place: the tabs, `entries` of a manifest, and the outcomes of buttons by their names.

        `blame` is of rows of a condition, `bisect` of the condition of the data, and `load` of the variable.
        """
        return self._views.by_place | {place: action.view for place, action in self._actions.items()}

    def wait(self, seconds: float = 60) -> "Explorer":
        """Return the explorer when nothing is being read; for cells, scripts and tests.

        Raises:
            TimeoutError: It takes longer.
            InvalidArgumentError: `seconds` is not a number, 0 or more.
        """
        limit: object = seconds
        if not (isinstance(limit, int | float) and limit >= 0):  # which NaN is not
            raise InvalidArgumentError(f"seconds must be a number, 0 or more, got {seconds!r}.")
        if not self._work.wait(seconds):
            raise TimeoutError(f"The explorer still reads after {seconds:g} seconds. Wait again, or press Cancel.")
        return self

    def refresh(self) -> None:
        """Read the log and the current view again; on failure, keep the cached ones."""

        def take(answer: tuple[Snapshot, Log]) -> None:
            self._cache.forget()
            self._views.forget()
            self._newest, log = answer
            self._follow_errors.clear()
            self.problem = ""
            self._show_log(log)

        most = FIRST_COMMITS if self._log is None else MOST_COMMITS
        run = partial(read_newest, self.table, self._log, most=most)
        busy = partial(self._set_busy, "log")
        self._work.start("log", Job(run=run, done=take, failed=self._fail_head, shown=busy))
        busy("Reading ...")

    def choose(self, ref: int | str, marker: str = "b") -> None:
        """Set a marker to the version of a ref; an error is shown.

        Args:
            ref: A version, or the text of a ref such as latest~2, tag:v1 or @3d.
            marker: `a` or `b`.
        """
        known = self._known_version(str(ref).strip())
        if known is not None:
            return self._set_marker(marker, known)

        before = self._log

        def find() -> tuple[int | None, Log | None, str]:
            version = history_of(self.table).version_of(ref)
            is_known = before is not None and version in before.versions
            return (
                version,
                None if is_known else read_log(self.table, before),
                history_of(self.table).time_note(ref) or "",
            )

        def take(answer: tuple[int | None, Log | None, str]) -> None:
            version, log, note = answer
            if log is not None:
                self._show_log(log)
            self._set_marker(marker, version)
            self.state.note = self.state.note or note

        job = Job(run=find, done=take, failed=self._show_note)
        return self._work.start(f"marker {marker}", job)

    def load(self) -> None:
        """Load the rows of B into the variable; a large read, or replacing another variable, must be confirmed."""
        self._loader.load(self._views.request(LOADS))

    @property
    def code(self) -> str:
        """Return the line of code for the content of the selected tab."""
        result = self._views.front.result
        return "" if result is None else result.code

    def to_html(self, path: str | PathLike[str], *, versions: int = _VERSIONS, overwrite: bool = False) -> Path:
        """Write the explorer into one HTML file that works without Python and without network, and return its path.

        The file has at most 2 MB: the newest 1,000 commits with search and filters, and the views of the newest
        versions as they are set here: commit, manifests and their entries, comparison with the version before, changed
        rows, files, health, and the first 60 rows of each table; then up to 30 other pairs of versions, those with a
        pinned A first. Where metadata does not count the rows that one of these versions changed, they are read and
        counted, if the files that differ have at most 100,000 rows and 10 MB. The page says what is not recorded. It
        loads nothing and runs only its own script. It contains no storage options. Reads what these views read, which
        for large versions takes a while.

        Args:
            path: The file, on the local disk, outside of any table.
            versions: The number of newest versions whose views are recorded.
            overwrite: Whether to replace an existing file.

        Raises:
            InvalidArgumentError: The file exists or is in a table, the table has no version, or `versions` is below 1.
            OSError: The file cannot be written.
        """
        target = new_output_path(path, overwrite=overwrite)
        if type(versions) is not int or versions < 1:
            raise InvalidArgumentError(f"versions must be 1 or more, got {versions!r}.")
        page = self._recorded_page(versions)
        with output_file(target) as file:
            file.write(page)
        return target

    def _recorded_page(self, versions: int) -> bytes:
        """Return the explorer as one HTML page that works without Python."""
        recorded = Explorer(self.table, name=self.name)
        try:
            for explorer in (self, recorded):
                explorer.wait(_LOG_SECONDS)
            if not len(recorded.state.commits):
                raise InvalidArgumentError(recorded.problem or BLANK)
            for name in _RECORDED:
                setattr(recorded.state, name, getattr(self.state, name))
            shown = {name: getattr(self.state, name) for name in self.state.trait_names()}
            with history_of(self.table).table_format.storage.keeping_immutable():
                if recorded._log is not None:  # nobody can ask for counts on a page without a kernel
                    count_rows(recorded._log.source, recorded._log.commits.slice(0, versions), is_small=is_small)
                recorded._add_known_facts()
                recorder = Recorder(self.table, recorded.state, recorded._views, recorded._traits_of_page)
                return recorder.page(shown, versions=versions)
        finally:
            recorded.close()

    @cached_property
    def _saved_page(self) -> bytes:
        """The page in a saved notebook, of the explorer when it is first shown; empty if it cannot be recorded."""
        try:
            return self._recorded_page(_VERSIONS) if self._saves_page else b""
        except SnapshotExplorerError as error:
            logger_of(__name__).warning("The notebook has no page of the explorer: %s", error)
            return b""

    def _traits_of_page(self) -> dict[str, Any]:
        """Return what a page receives, once nothing is being read."""
        self.wait(_LOG_SECONDS)
        self._send_page()
        return {name: getattr(self, name) for name in ("page", "commits", "facts", "listed")}

    def close(self) -> None:
        """Stop following and reading, and free every widget."""
        if getattr(self, "_is_closed", True):
            return
        self._is_closed = True
        self._follow.stop()
        self._play.stop()
        self._stills.close()
        self._work.close()
        self.state.unobserve_all()
        self._cache.forget()
        self._picture = None
        self.layout.close()
        self.unobserve_all()
        super().close()

    def _drawing(self) -> Drawing:
        """Return the explorer's current content as text and tables: for terminals and pages without widgets."""
        view = self._views.front
        lines = [*self._lines(), *(text for text in (self.problem, view.error) if text)]
        lines += [] if view.result is None else [f"{view.result.code}    Source: {view.result.source}"]
        parts = () if self._picture is None else self._picture.drawing.parts
        shown = None if view.result is None else view.result.drawing
        return static_view(lines, parts, shown, title=f"Explorer of {self.table.name}")

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:  # type: ignore[override]  # a pair, and none
        """Return the widget, with a table and a picture for pages without widgets."""
        static = self._static_bundle()
        return widget_bundle(self) | static

    def _ipython_display_(self) -> None:
        """Show the widget, and a picture for pages without widgets."""
        self._stills.display()

    def _static_bundle(self) -> dict[str, str]:
        self._work.wait(_STILL_SECONDS)
        state, drawing = self.state, self._drawing()
        still = static_html(drawing, state.shown, measure=state.measure, a=state.a, b=state.b)
        html = with_page(still, self._saved_page, self.table.name) if self._saved_page else still
        return {"text/plain": static_text(drawing), "text/html": html}

    def __repr__(self) -> str:
        return f"Explorer(path={self.table.path!r}, a={self.state.a}, b={self.state.b})"

    def __str__(self) -> str:
        """Return the explorer's current content as text, as wide as the terminal, and how to get it as a page."""
        self._work.wait(_STILL_SECONDS)
        file = quote(sanitize(f"{self.table.name}.html"))
        page = f"As a page that needs no Python: snapshot-explorer {quote(sanitize(self.table.path))} --html {file}"
        room = min(WIDTH, get_terminal_size((WIDTH, 0)).columns)
        return f"{static_text(self._drawing(), room=room)}\n{page}"

    # Requests of a page

    def receive(self, message: object) -> None:
        """Handle a message of a page, such as `{"set": {"tab": "data"}}`; ignore invalid requests."""
        if not isinstance(message, dict) or self._is_closed:
            return
        receivers: Mapping[str, Callable[[Any], None]] = {
            "set": self._set,
            "choose": self._choose,
            "step": self._step,
            "click": lambda version: self._click(version, is_other=message.get("other") is True),
            "act": lambda name: self._acts[name]() if isinstance(name, str) and name in self._acts else None,
            "cancel": self._cancel,
            "window": self._set_window,
            "commits": self._send_commits,
            "grid": self._receive_grid,
            "columns": self._show_columns,
            "open": self._open_manifest,
            "finding": self._open_finding,
            "expect": self._expect,
            "save": self._save,
        }
        with self.hold_sync():
            for name, receiver in receivers.items():
                if name in message:
                    receiver(message[name])

    def _set(self, values: object) -> None:
        if not isinstance(values, dict):
            return
        for name in SETTABLE:
            if name in values:
                try:
                    self.state.set_trait(name, values[name])
                    self.state.note = ""
                except TraitError as error:
                    self.state.note = str(error)
        self._answers += 1
        self._send_page()

    def _choose(self, choice: object) -> None:
        match choice:
            case ["a" | "b" as marker, str(text)] if text.strip():
                self._answers += 1
                self.choose(text.strip(), marker)
                self._send_page()

    def _step(self, step: object) -> None:
        match step:
            case ["a" | "b" as marker, int(by)] if abs(by) == 1:
                self.state.step(marker, by)

    def _click(self, version: object, *, is_other: bool) -> None:
        """Set B to a version that is shown, or A."""
        known = self._known_version(version)
        if known is not None:
            self._set_marker("a" if is_other else "b", known)

    def _set_window(self, ends: object) -> None:
        """Show the versions between two places among all versions, or between two versions."""
        known = self.state.versions
        match ends:
            case [int(first), int(last)] if 0 <= first <= last < len(known):
                self.state.window = (known[first], known[last])
            case [str(), str()]:
                versions = [version for text in ends if (version := self._known_version(text)) is not None]
                if len(versions) == len(ends):
                    self.state.window = (min(versions), max(versions))

    def _known_version(self, text: object) -> int | None:
        """Return the version that a page names; None if the table has no such version."""
        if not (isinstance(text, str) and text.isdecimal() and len(text) < _LONGEST_VERSION):
            return None
        return int(text) if int(text) in self.state.versions else None

    def _send_commits(self, start: object) -> None:
        if isinstance(start, int) and start >= 0:
            self.send({"commits": commit_rows(self._listed, start, self.state.measure)})

    def _receive_grid(self, request: object) -> None:
        place = request.get("place") if isinstance(request, dict) else None
        view = self.views.get(place) if isinstance(place, str) else None
        if view is None or not isinstance(request, dict):
            return
        reader = view.grid.reader(request)
        if reader is not None:
            job = Job(run=reader, done=lambda _: self._answer_grid(view, request), failed=self._show_note)
            self._work.start(f"grid {place}", job)  # beside what the view itself reads
        elif place == "data" and isinstance(request.get("arrange"), dict):
            self._sort_rows(request["arrange"])
        else:
            self._answer_grid(view, request)

    def _answer_grid(self, view: View, request: dict[str, Any]) -> None:
        answer = view.grid.receive(request)
        if answer is not None:
            self.send({"grid": request["place"], **answer})
        else:
            self._send_view()

    def _sort_rows(self, how: dict[str, Any]) -> None:
        """Sort the rows of B by a column of the grid; by none without a place."""
        result, index = self.views["data"].result, how.get("sort")
        names = [] if result is None or result.grid is None else result.grid.rows.column_names
        with self.state.hold_trait_notifications():
            self.state.sort = names[index] if type(index) is int and 0 <= index < len(names) else ""
            self.state.sort_descending = how.get("descending") is True

    def _show_columns(self, places: object) -> None:
        """Show the columns at these places among the columns that the page offers; all columns without places."""
        result = self.views["data"].result
        names = [] if result is None else [name for name, _, _ in result.columns]
        if isinstance(places, list) and all(type(index) is int and 0 <= index < len(names) for index in places):
            self.state.columns = [names[index] for index in places]

    def _show_note(self, sentence: str) -> None:
        self.state.note = sentence

    def _cancel(self, place: object) -> None:
        """Stop the read of a place; keep its content."""
        if place == "log":
            self._work.cancel("log")
            self._set_busy("log", "")
            self.state.note = "The log was not read: that was cancelled. Refresh reads it."
        elif isinstance(place, str) and place in self._actions:
            self._actions[place].cancel()
        elif isinstance(place, str) and place in self._views.by_place:
            self._views.cancel(place)

    # Changes of the state

    def _changed(self, change: Bunch) -> None:
        match change.name:
            case "follow" | "interval":
                self._tick(self._follow, self.state.interval, on=self.state.follow)
            case "playing":
                self._tick(self._play, PLAY_SECONDS, on=change.new)
            case "zone":
                self.zone = "" if change.new == "local" else change.new
            case "measure":
                self._facts.read_totals(self._log)
            case "anomalies":
                self._facts.read_anomalies()
            case "note" | "readable" | "rows_where" | "repair_name":
                self._send_page()
                return
        self._draw()
        self._load_front()
        self._send_page()
        self._send_view()
        self._stills.update_later()

    @staticmethod
    def _tick(timer: Timer, seconds: float, *, on: bool) -> None:
        if on:
            timer.start(seconds)
        else:
            timer.stop()

    def _set_marker(self, marker: str, version: int | None) -> None:
        try:
            self.state.mark(marker, version)
        except TraitError as error:
            self.state.note = str(error)
        else:
            self.state.reveal(version)
            self.state.note = ""

    def _draw(self) -> None:
        """Draw the timeline and the list if they have changed."""
        state, log = self.state, self._log
        if log is None or state.commits is not log.commits:
            return  # about to be known
        drawn = (*state.values("measure", "window", *FILTERS), id(state.commits), *self._facts.key)
        if self._drawn != drawn:
            self._drawn = drawn
            with self.hold_sync():
                self._draw_commits(log)

    def _draw_commits(self, log: Log) -> None:
        state = self.state
        self._listed = state.listed
        shown = state.in_window(self._listed)
        if len(self._listed) and not len(shown):  # what is searched for is elsewhere
            state.reveal(self._listed["version"][0].as_py())
            shown = state.in_window(self._listed)
        clock_note = history_of(self.table).table_format.clock.note
        notes = (*missing_notes(log.gaps(shown)), *log.notes, *([clock_note] if clock_note else []))
        facts = replace(self._facts.facts(log), notes=notes)
        title = f"{len(shown):,} of {len(state.versions):,} versions"
        known = with_totals(shown, facts.totals)
        self._picture = timeline(
            known,
            y=state.measure,
            title=title,
            total=len(state.versions),
            branches=facts.branches,
            notes=facts.notes,
        )
        columns = timeline_columns(shown, y=state.measure, facts=facts)
        self.facts = {name: columns.pop(name) for name in ("total", "line", "jumps")}
        self.commits = columns
        first, most = commit_rows(self._listed, 0, state.measure), most_changed(self._listed, state.measure)
        self.listed = {
            "count": len(self._listed),
            **first,
            "measure": state.measure,
            "most": most,
            "read": len(state.commits),
        }
        if state.versions and state.window is not None:
            self.strip = {
                **overview(state.commits, state.versions, state.measure),
                "window": [
                    bisect_left(state.versions, state.window[0]),
                    bisect_right(state.versions, state.window[1]) - 1,
                ],
            }

    def _load_front(self) -> None:
        """Load the view of the selected tab, once the versions have been read."""
        if self._log is not None:
            self._views.load_front(self._offer)

    def _offer(self, tab: str, choices: Sequence[tuple[str, str]]) -> None:
        if tab in ("data", "rows"):
            self._row_actions.suggest(choices)
            self._send_view()

    def _place_changed(self, place: str) -> None:
        """Show a view that has changed, and in the timeline what it found: missing files, and counts of rows."""
        if place == "health" and self._findings:
            self._problems = sum(finding.is_problem is True for finding in self._findings)
            self._facts.findings = self._findings
            self._draw()
        self._send_view()
        if place in ("rows", "health"):
            self._send_page()
        if place in ("commit", "rows", "health"):
            self._add_known_facts()

    def _add_known_facts(self) -> None:
        """Add to the log what has been found since it was read: missing files, and counts of rows."""
        if self._log is None:
            return
        log = with_known_facts(self.table, self._log)
        if not log.commits.equals(self._log.commits):
            self._log = log
            self.state.commits = log.commits

    # Messages to the page

    def _set_busy(self, place: str, description: str) -> None:
        others = {other: text for other, text in self.busy.items() if other != place}
        self.busy = {**others, place: sanitize(description)} if description else others

    def _send_page(self) -> None:
        state, log = self.state, self._log
        lines = [sanitize(line) for line in self._lines()]
        times = [None] if log is None or not len(log.commits) else log.commits["committed_at"][:1].to_pylist()
        window = "" if log is None else sanitize(f"{self.name}.{state.history_call}.picture(y={state.measure!r})")
        self.page = {
            "name": sanitize(self.table.name),
            "format": f"{self.table.format}"
            + (f" branch {sanitize(self.table.current.branch)}" if self.table.current.branch else ""),
            "path": sanitize(self.table.path),
            "facts": lines[1:],
            "late": "" if log is None else late_text(log),
            "newest": None if times[0] is None else int(times[0].timestamp() * 1000),
            "problem": sanitize(self.problem),
            "note": sanitize(state.note),
            "isKnown": log is not None,
            "isZoneKnown": log is None or history_of(self.table).table_format.clock.note is None,
            "at": self._place_of(state.b),
            "counts": self._counts(),
            "expected": sanitize("\n\n".join(item.to_toml() for item in history_of(self.table).open_branch.expected)),
            "markers": ["" if version is None else str(version) for version in (state.a, state.b)],
            "count": len(state.versions),
            "state": {name: getattr(state, name) for name in SETTABLE},
            "defaults": {name: state.traits()[name].default_value for name in FILTERS},
            "interval": state.interval,
            "choices": {**_CHOICES, "file_view": [view for view in FILE_VIEWS if view not in self._lacking]},
            "tabs": TABS,
            "code": window,
            "isCopied": self._is_copied,
            "answers": self._answers,
        }

    def _send_view(self) -> None:
        state = self.state
        if state.tab == "data" and state.b is not None:
            load = {"line": sanitize(load_code(self._views.request(LOADS)))}
        else:
            load = {}
        is_of_rows = state.tab in ("data", "rows")
        self.view = {
            "tab": state.tab,
            **self._views.front.content,
            "entries": self._views.by_place["entries"].content if state.tab == "manifests" else {},
            "manifest": sanitize(state.manifest) if state.tab == "manifests" else "",
            "conditions": [sanitize(text) for text in self._row_actions.conditions[:_OFFERED]] if is_of_rows else [],
            "blamed": self._row_actions.view.content if is_of_rows else {},
            "bisected": self._bisector.view.content if state.tab == "data" else {},
            "load": {**load, **self._loader.view.content} if load else {},
        }

    # Reads of the log

    def poll(self) -> None:
        """Look for new commits."""
        if self._work.is_busy("log") or self._work.is_busy("follow"):
            return
        before, known = self._log, self._newest

        def take(answer: tuple[Snapshot, Log | None]) -> None:
            self._newest, log = answer
            if self._follow_errors.clear():
                self._send_page()
            if log is not None:
                self._show_log(log)

        job = Job(run=lambda: poll(self.table, before, known), done=take, failed=self._follow_errors.show)
        self._work.start("follow", job)

    def _show_log(self, log: Log) -> None:
        self._set_busy("log", "")
        self._log = log
        self._is_copied = history_of(self.table).table_format.clock.copied_note(log.commits) is not None
        self.state.set_versions(log.versions, log.readable, log.commits)
        if log.interruption:
            self.state.note = log.interruption
        with self.hold_sync():
            self._draw()
            self._load_front()
            self._send_page()
            self._send_view()
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
            self._read_older(partial(read_log, self.table, source=log.source))

    def _read_older(self, run: Callable[[], Log]) -> None:
        """Read the commits that the first picture did not need."""

        def take(longer: Log) -> None:
            if self._log is not None and self._log.listing != longer.listing:
                self._read_older(partial(read_log, self.table, longer))  # it has grown meanwhile
            else:
                self._show_log(longer)

        self._work.start("older", Job(run=run, done=take, failed=self._fail_head))

    def _open_manifest(self, path: object) -> None:
        """Show the entries of a manifest that was clicked; empty text shows none."""
        result = self.views["manifests"].result
        if path == "" or (result is not None and path in {value for _, value in result.choices}):
            self.state.manifest = path

    @property
    def _findings(self) -> tuple[Symptom, ...]:
        result = self.views["health"].result
        return () if result is None else result.findings

    def _open_finding(self, index: object) -> None:
        """Show the evidence of a finding: the versions before and after, what differs, and the part of the chart."""
        if not isinstance(index, int) or not 0 <= index < len(self._findings):
            return
        finding, state = self._findings[index], self.state
        verb, arguments = finding.hint.verb, finding.hint.arguments
        with state.hold_trait_notifications():
            match verb, arguments:
                case "table.diff_rows" | "table.compare", {"b": int(b)}:
                    state.tab = "rows" if verb == "table.diff_rows" else "compare"
                    state.part, state.compared, state.b, state.pinned = "rows", "overview", b, False
                case "snapshot.duplicates", {"ref": int(ref), "key": list(key)}:
                    state.health, state.b, state.key = "duplicates", ref, key
                case "table.verify", _:
                    state.health, state.b = "readability", next(reversed(finding.versions), state.b)
                case _:
                    state.anomalies = True
        if "a" in arguments and state.a != arguments["a"]:
            state.mark("a", arguments["a"])  # type: ignore[arg-type]  # a version
        state.reveal(state.b)

    def _expect(self, request: object) -> None:
        """Expect a finding, for a reason: it is no problem from then on."""
        match request:
            case [int(index), str(reason)] if 0 <= index < len(self._findings):
                versions = self._findings[index].versions
            case _:
                return

        def expect() -> None:
            for version in versions:
                history_of(self.table).expect(version, reason)

        job = Job(
            run=expect,
            done=lambda _: self._look_again(),
            failed=self._show_note,
        )
        self._work.start("expect", job)

    def _look_again(self) -> None:
        self._views.forget()
        self._draw()
        self._load_front()

    def _place_of(self, version: int | None) -> int | None:
        """Return where the list of commits has a version; None if it does not."""
        place = -1 if version is None else pc.index(self._listed["version"], pa.scalar(version, pa.int64())).as_py()
        return None if place < 0 else place

    def _counts(self) -> dict[str, int]:
        """Return the numbers beside the names of tabs, of those that are known without a read."""
        state, log = self.state, self._log
        changed: int | None = None
        if state.a is not None and state.b is not None:
            diff = self._cache.known_row_diff(state.a, state.b, tuple(state.key))
            commit = state.commit(state.b)
            if diff is not None:
                changed = sum(diff.counts.values())
            elif state.a == state.before_b != state.b and len(commit):
                known = [commit[f"rows_{name}"][0].as_py() for name in ("inserted", "updated", "deleted")]
                changed = None if None in known else sum(known)
        size = self._table_size
        files = size.files if size is not None and state.b in state.versions[-1:] else self._facts.files_at(state.b)
        counts = {
            "rows": changed,
            "files": files,
            "branches": 1 + len(log.branches) if log is not None and log.branches else None,
            "health": self._problems,
        }
        return {name: count for name, count in counts.items() if count is not None}

    def _save(self, request: object) -> None:
        """Send the rows of a grid to the page, as a file to save."""
        match request:
            case [str(place), str(file_format)] if place in self.views and file_format in FILE_FORMATS:
                rows = self.views[place].grid.arranged_rows()
            case _:
                rows = None
        if rows is None:
            return
        try:
            content = file_bytes(rows, file_format)
        except (SnapshotExplorerError, ArrowException) as error:
            self.state.note = f"The rows were not saved: {error}"
            return
        name = re.sub(r"[^\w.-]+", "_", f"{self.table.name}_{place}_{self.state.b}")
        self.send({"save": f"{name}.{file_format}"}, [content])

    def _row_opened(self, opens: Opens, choice: str) -> None:
        """Open the condition or the version of a row that was clicked, or filter by bars that were brushed."""
        if opens == "blame":
            self.state.rows_where = choice
        elif opens == "where":
            where = self.state.where
            where = f"({where})" if re.search(r"\bor\b", where, re.IGNORECASE) else where
            self.state.where = " and ".join(filter(None, (where, choice)))
        else:
            self._set_marker("b", int(choice))

    def _show_table_size(self, table_size: TableSize | None, *, failed: bool = False) -> None:
        self._table_size, self._is_size_unknown = table_size, failed
        self._send_page()

    def _fail_head(self, sentence: str) -> None:
        self._set_busy("log", "")
        self.problem = sentence
        self._send_page()

    def _lines(self) -> list[str]:
        lines = head(self.table, self.state, self._log, self._table_size)
        return [*lines, "its files could not be counted"] if self._is_size_unknown else lines


@overload
def explore(table: Table, *, name: str | None = None, save_page: bool = False) -> Explorer: ...
@overload
def explore(table: Lake, *, name: str | None = None) -> LakeView: ...
def explore(table: Table | Lake, *, name: str | None = None, save_page: bool = False) -> Explorer | LakeView:
    """Return the explorer of a table: a widget for its history. Reads the log and the views on other threads.

    Tried in JupyterLab 4, Notebook 7, Voila and marimo, without network. VS Code shows the same widget; it loads
    anywidget from the network, and that has not been tried. Without widgets, as in a terminal, a saved notebook, GitHub
    or nbconvert, a table and a picture are shown.

    Args:
        table: The table; or a lake, for a widget of its overview, which can be filtered, sorted and followed, and
            opens the explorer of a table.
        name: The variable that holds it, for the lines of code that are shown; found by itself in a notebook.
        save_page: Record the page of `Explorer.to_html` when a cell shows the explorer, and save it with the notebook:
            where a kernel is missing, as in nbconvert's pages and in notebooks that are trusted, the explorer then
            still works. Adds 200 kB and more to the notebook, at most 2.2 MB, and reads what `to_html` reads.

    Raises:
        InvalidArgumentError: It is not an open table, or `save_page` is used with a lake.
    """
    if isinstance(table, Lake) and save_page:
        raise InvalidArgumentError(
            "save_page records the explorer of one table, not of a lake. Open a table of it: "
            "explore(lake[NAME], save_page=True)."
        )
    if isinstance(table, Lake):
        return LakeView(table, lambda opened: explore(opened, name=opened.name))
    if not hasattr(table, "current"):
        what = type(table).__name__
        raise InvalidArgumentError(
            Message(f"explore needs an open table, got {what}. Open it: ", Hint("open_table", {"path": ...}), ".")
        )
    shell = get_ipython()
    variables: MutableMapping[str, Any] | None = None if shell is None else shell.user_ns
    found = name or name_of(table, variables or {})
    return Explorer(table, name=found, variables=variables, save_page=save_page)
