"""The actions of buttons: blame, trace and repair of rows, a bisection, loading rows. Each has a view of its own."""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from snapshot_explorer.analysis.rows import Bisection, BisectionReading
from snapshot_explorer.jupyter.explorer.contents import rows
from snapshot_explorer.jupyter.explorer.contents.view_requests import SnapshotCache, ViewRequest, ViewResult
from snapshot_explorer.jupyter.explorer.environment import load_limits
from snapshot_explorer.jupyter.explorer.views import ExplorerContext, View
from snapshot_explorer.jupyter.explorer.work import Job
from snapshot_explorer.table.cost import Cost
from snapshot_explorer.view import Code, Drawing, Line, Pairs, drawing_of
from snapshot_explorer.view.tracks.svg import svg_of

LOADS = ("b", "columns", "where", "load_limit", "engine", "types", "variable")
"""The traits of the state that loading depends on."""
_REPLACE, _READ = "replace", "read"
"""The actions that need confirmation: replacing a variable, and reading much."""


class Action:
    """The action of a button; `view` shows the outcome."""

    place: ClassVar[str]
    """The place of the action on the page, and in `Work`."""
    cancelled: ClassVar[str]
    """The text that `view` shows after the action was cancelled."""

    def __init__(self, context: ExplorerContext) -> None:
        self.view = View(self.place, context)
        self._context = context
        self._unconfirmed: object = None

    def cancel(self) -> None:
        """Stop the running action."""
        if self._context.work.cancel(self.place):
            self.view.say(self.cancelled)

    def _start(self, run: Callable[[Job], Any], done: Callable[[Any], None], sentence: str = "Reading ...") -> None:
        job = Job(run=lambda: run(job), done=done, failed=self.view.fail, shown=self._show_progress)
        self._context.work.start(self.place, job)
        self.view.busy(sentence)

    def _show_progress(self, text: str) -> None:
        self.view.busy(text)


def blame(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return every version that changed rows of the condition, with the rows before and after. Reads rows."""
    result = cache.table.blame(request["rows_where"], key=request["key"] or None)
    return ViewResult(
        drawing=_without_call(drawing_of(result)),
        code=request.name + result.call.removeprefix(result.open_expression),
        source=cache.cited(result.versions[0], result.versions[-1]),
        picture=svg_of(result),
    )


def trace(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the versions and data files that still have rows of the condition. Reads the files that may have some."""
    result = cache.table.trace(request["rows_where"])
    return ViewResult(
        drawing=_without_call(drawing_of(result)),
        code=f"{request.name}.trace({request['rows_where']!r})",
        source=cache.cited(cache.table.current.version),
    )


def repair(cache: SnapshotCache, request: ViewRequest, *, target: str) -> ViewResult:
    """Return the statement that puts back rows of the condition, or all without one. Reads rows that differ.

    Later rows that it would undo come first.

    Args:
        target: `to` for the rows as at A, `undo` for those that the commit of B removed or changed, and no later one.
    """
    version, where = request["a" if target == "to" else "b"], request["rows_where"]
    key = list(request["key"]) if where or target == "undo" else None
    options: dict[str, Any] = {"where": where, "key": key, "name": request["repair_name"]}
    options = {target: version} | {name: value for name, value in options.items() if value}
    result = cache.table.repair(**options)
    return ViewResult(
        drawing=_without_call(drawing_of(result)),
        code=f"{request.name}.repair({', '.join(f'{name}={value!r}' for name, value in options.items())})",
        source=cache.cited(result.to, result.version),
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
    "repair": partial(repair, target="to"),
    "undo": partial(repair, target="undo"),
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
        """Run an action on the rows of the condition: blame, trace, repair or undo."""
        state, names = self._context.state, ("rows_where", "key", "a", "repair_name", "b")
        values = dict(zip(names, state.values(*names), strict=True)) | {"rows_where": state.rows_where.strip()}
        if not values["rows_where"] and action not in ("repair", "undo"):
            self.view.fail(f"There is no condition to {action} rows by. Write one, such as order_id = 42.")
            return
        request = ViewRequest(name=self._context.name, values=values)
        self._start(lambda _: _ACTIONS[action](self._context.cache, request), self.view.show)


class _ConfirmationRequiredError(Exception):
    """Ends a bisection that would read much, until it is confirmed; never raised to callers."""


class Bisector(Action):
    """Bisects the condition of the state, and shows the outcome in `view`."""

    place = "bisect"
    cancelled = "Nothing was bisected: that was cancelled."
    _announcement = ""
    _offered: tuple[str, int | None, int | None] | None = None
    """The condition and B for which the button evaluates every version, and the last version of that evaluation."""

    def __init__(self, context: ExplorerContext, *, on_commit: Callable[[int], None]) -> None:
        """Read nothing yet; `on_commit` receives the first version at which the condition holds."""
        super().__init__(context)
        self._on_commit = on_commit

    def bisect(self) -> None:
        """Bisect. An expensive bisection must be requested twice; after one that skipped versions, evaluate all."""
        state, work, cache = self._context.state, self._context.work, self._context.cache
        condition, newest = state.where.strip(), state.versions[-1:]
        if not condition or state.b is None:
            self.view.fail("There is no condition to bisect. Write one under Where, such as amount < 0.")
            return
        bad = None if (state.b,) == newest else state.b
        offered, self._offered = self._offered, None
        is_every = offered is not None and offered[:2] == (condition, state.b)
        if offered is not None and is_every:
            bad = offered[2]
        is_confirmed, self._unconfirmed = is_every or self._unconfirmed == (condition, bad), None
        limits = load_limits()

        def announce(job: Job, reading: BisectionReading) -> None:
            cost = Cost(rows=None, files=reading.loads * reading.files, size_bytes=reading.loads * reading.size_bytes)
            work.hand_over(job, lambda: None if job.stop.is_set() else self._announce(str(reading)))
            if cost.exceeds(limits) and not is_confirmed:
                raise _ConfirmationRequiredError(str(reading))

        def run(job: Job) -> tuple[Bisection | None, str]:
            try:
                result = cache.table.bisect(condition, bad=bad, announce=partial(announce, job), every=is_every)
            except _ConfirmationRequiredError as error:
                return None, str(error)
            return result, cache.cited(result.versions[0], result.versions[-1])

        def take(answer: tuple[Bisection | None, str]) -> None:
            result, text = answer
            if result is None:
                self._unconfirmed = (condition, bad)
                self.view.fail(f"{text} Press Bisect again to read that much.")
            else:
                if len(result.evaluated) < len(result.versions):
                    self._offered = condition, state.b if result.version is None else result.version, bad
                self._show(result, source=text)

        self._announcement = ""
        self.view.say("")
        self._start(run, take, "Bisecting ...")

    def _announce(self, sentence: str) -> None:
        self._announcement = sentence
        self.view.busy(sentence)

    def _show_progress(self, text: str) -> None:
        self.view.busy(f"{self._announcement} {text}".strip())

    def _show(self, bisection: Bisection, *, source: str) -> None:
        drawing = _without_call(drawing_of(bisection))
        lines = [] if bisection.version is None else [Line(f"B is set to version {bisection.version}.")]
        if len(bisection.evaluated) < len(bisection.versions):
            lines += [Line("The search ends at B.")] if bisection.version is None else []
            lines += [Line("Press Bisect again to evaluate every version.")]
        result = ViewResult(
            drawing=replace(drawing, parts=(*lines, *drawing.parts)),
            code=self._context.name + bisection.call.removeprefix(bisection.open_expression),
            source=source,
            picture=svg_of(bisection),
        )
        self.view.show(result)
        if bisection.version is not None:
            self._on_commit(bisection.version)


class Loader(Action):
    """Loads the rows of B into a variable, and shows the outcome in `view`."""

    place = "load"
    cancelled = "Nothing was loaded: that was cancelled."

    def __init__(self, context: ExplorerContext, variables: MutableMapping[str, Any] | None) -> None:
        """Load nothing yet; `variables` are the notebook's; None without a notebook."""
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
