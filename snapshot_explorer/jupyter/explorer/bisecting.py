"""Bisect the condition on rows: find the first version, up to B, where it holds, and move B there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from snapshot_explorer.jupyter.cost import Cost
from snapshot_explorer.jupyter.explorer.contents.view_requests import ViewResult
from snapshot_explorer.jupyter.explorer.environment import load_limits
from snapshot_explorer.jupyter.explorer.views import Action
from snapshot_explorer.render import Drawing, Line
from snapshot_explorer.render.cells import moment
from snapshot_explorer.render.tracks import tracks_content

if TYPE_CHECKING:
    from collections.abc import Callable

    from snapshot_explorer.jupyter.explorer.context import ExplorerContext
    from snapshot_explorer.jupyter.explorer.work import Job
    from snapshot_explorer.rows import Bisection, BisectionReading


class _ConfirmationRequiredError(Exception):
    """Ends a bisection that would read much, until it is confirmed; never raised to callers."""


class Bisector(Action):
    """Bisects the condition of the state, and shows the outcome in `view`."""

    place = "bisect"
    cancelled = "Nothing was bisected: that was cancelled."
    _announcement = ""

    def __init__(self, context: ExplorerContext, *, found: Callable[[int], None]) -> None:
        """Read nothing yet; `found` receives the first version where the condition holds."""
        super().__init__(context)
        self._found = found

    def bisect(self) -> None:
        """Bisect; a bisection that reads much must be requested twice."""
        state, work, cache = self._context.state, self._context.work, self._context.cache
        condition, newest = state.where.strip(), state.versions[-1:]
        if not condition or state.b is None:
            self.view.fail("There is no condition to bisect. Write one under Where, such as amount < 0.")
            return
        bad = None if (state.b,) == newest else state.b
        is_confirmed, self._unconfirmed = self._unconfirmed == (condition, bad), None
        limits = load_limits()

        def announce(job: Job, reading: BisectionReading) -> None:
            cost = Cost(rows=None, files=reading.loads * reading.files, size_bytes=reading.loads * reading.size_bytes)
            work.hand_over(job, lambda: None if job.stop.is_set() else self._announce(str(reading)))
            if cost.exceeds(limits) and not is_confirmed:
                raise _ConfirmationRequiredError(str(reading))

        def run(job: Job) -> tuple[Bisection | None, str]:
            try:
                result = cache.table.bisect(condition, bad=bad, announce=partial(announce, job))
            except _ConfirmationRequiredError as error:
                return None, str(error)
            return result, cache.cited(result.versions[0], result.versions[-1])

        def take(answer: tuple[Bisection | None, str]) -> None:
            result, text = answer
            if result is None:
                self._unconfirmed = (condition, bad)
                self.view.fail(f"{text} Press Bisect again to read that much.")
            else:
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
        answer, *more = _sentences(bisection)
        result = ViewResult(
            drawing=Drawing(title=answer, parts=(Line(" ".join(more)),) if more else ()),
            code=self._context.name + bisection.call.removeprefix(bisection.opened),
            source=source,
            tracks=tracks_content(bisection.tracks()),
        )
        self.view.show(result)
        if bisection.version is not None:
            self._found(bisection.version)


def _sentences(bisection: Bisection) -> list[str]:
    """Return what a bisection found, the answer first."""
    evaluated = len(bisection.evaluated) - len(bisection.skipped)
    how = f"{evaluated:,} of {len(bisection.versions):,} versions were evaluated."
    if bisection.holds_at_good:
        return [f"{bisection.answer}.", *bisection.notes]
    if bisection.version is None:
        advice = "The search ends at B: move B to a version where it holds."
        return [f"{bisection.condition}: found at no version.", how, advice]
    commit = bisection.commit
    facts = [] if commit is None else [commit.operation or commit.kind, f"by {commit.user}" if commit.user else ""]
    facts += [f"at {moment(commit.committed_at)}"] if commit is not None and commit.committed_at else []
    words = " ".join(word for word in facts if word)
    before = [] if bisection.last_good is None else [f"At version {bisection.last_good} it does not hold."]
    if bisection.gap is None and bisection.last_good is not None:
        first = f"{bisection.condition} holds first at version {bisection.version}" + (f", {words}." if words else ".")
    else:
        first = f"{bisection.answer}."
    return [first, *before, how, f"B is set to version {bisection.version}.", *bisection.notes]
