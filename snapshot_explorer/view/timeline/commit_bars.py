"""The newest commits as a picture, for pages without scripts."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.value_text import MINUS
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.view.commits import time_texts
from snapshot_explorer.view.palette import BLUE, GRAY, VERMILLION
from snapshot_explorer.view.png import PAPER, Canvas
from snapshot_explorer.view.timeline.marks import TimelineMarks, short_number, timeline_marks

BARS = 120
"""The maximum number of commits in a picture."""
_WIDTH, _HEIGHT, _LEFT, _RIGHT = 1920, 440, 110, 1900
_TOP, _ZERO_LINE, _LINE_TOP, _LINE_BOTTOM = 36, 250, 280, 340
"""Edges of the picture, its bars and its line of totals, in points: two for a pixel of the page."""
_WIDEST, _THIN = 112, 6
"""The maximum widths of a bar, of a commit that changes rows and of one that only rewrites them."""
_GRID, _CLOSE = "#DDDDDD", 40


def commit_bars(commits: pa.Table, measure: str, a: int | None, b: int | None) -> str:
    """Return a PNG picture as HTML: bars of commits in the colors of their kinds, the newest on the right, and totals.

    Commits that only rewrite rows have thin gray bars, which do not set the scale.

    Args:
        commits: COMMITS, newest first.
        measure: Rows, files or bytes.
        a: The version that is marked A.
        b: The version that is marked B.
    """
    if not len(commits):
        return ""
    canvas, alternative = _draw_commits(commits, measure, a, b)
    return canvas.html(alternative)


def commit_bars_png(commits: pa.Table, measure: str, a: int | None = None, b: int | None = None) -> bytes:
    """Return the same picture as a PNG file; empty without commits."""
    return _draw_commits(commits, measure, a, b)[0].png() if len(commits) else b""


def _draw_commits(commits: pa.Table, measure: str, a: int | None, b: int | None) -> tuple[Canvas, str]:
    """Return the canvas of the picture, and its alternative text."""
    drawn = timeline_marks(commits.slice(0, BARS), measure)
    versions = drawn.rows["version"].to_pylist()
    canvas = Canvas(_WIDTH, _HEIGHT)
    step = (_RIGHT - _LEFT) / len(versions)
    middles = np.asarray(_LEFT + step * (np.arange(len(versions)) + 0.5), np.float64)
    _draw_bars(canvas, drawn, middles, min(_WIDEST, step * 0.75))
    _draw_totals(canvas, drawn, middles)
    _draw_axis(canvas, drawn, middles)
    marks = {name: at for name, at in (("A", a), ("B", b)) if at is not None}
    _draw_marks(canvas, {name: float(middles[versions.index(at)]) for name, at in marks.items() if at in versions})
    what = f"{drawn.sides.replace(',', ' and')} by versions {versions[0]} to {versions[-1]}"
    return canvas, ", ".join([what, *(f"{name} at {at}" for name, at in marks.items())])


def _draw_bars(canvas: Canvas, drawn: TimelineMarks, middles: npt.NDArray[np.float64], width: float) -> None:
    tops = drawn.tops
    scale = (_ZERO_LINE - _TOP) / max(1.0, sum(tops))
    zero = _TOP + tops[0] * scale
    for top, sign in zip(tops, (1, -1), strict=True):
        if top:
            canvas.fill(_LEFT, zero - sign * top * scale, _RIGHT - _LEFT, 1, _GRID)
            text = ("+" if sign > 0 else MINUS) + short_number(top)
            canvas.write(_LEFT - 10, _TOP if sign > 0 else _ZERO_LINE - 21, text, GRAY, align=1)
    legend = float(_LEFT)
    for kind, style, of_kind in drawn.of_kinds():
        loud = of_kind & ~drawn.bars.quiet
        for chosen, look, wide in ((loud, style, width), (of_kind & ~loud, style.quiet(), min(_THIN, width / 4))):
            for side, top, sign in zip(drawn.drawn_sides, tops, (-1, 1), strict=True):
                for at in np.flatnonzero(chosen & (side > 0)).tolist():
                    x, height = float(middles[at]) - wide / 2, sign * min(float(side[at]), top) * scale
                    canvas.fill(x, zero, max(2.0, wide), height, look.color, pattern=look.pattern)
                    if side[at] > top:  # a break mark before the end of a bar that is cut
                        canvas.fill(x, zero + height - sign * 16, max(2.0, wide), -sign * 6, PAPER)
        look = style if loud.any() else style.quiet()
        canvas.fill(legend, _HEIGHT - 24, 20, 20, look.color, pattern=look.pattern)
        name = f"{style.sign} {sanitize(kind)}".strip()
        legend += 60 + canvas.write(legend + 28, _HEIGHT - 25, name, GRAY)
    canvas.fill(_LEFT, zero - 1, _RIGHT - _LEFT, 2, GRAY)


def _draw_totals(canvas: Canvas, drawn: TimelineMarks, middles: npt.NDArray[np.float64]) -> None:
    """Draw the line of totals, in steps; gaps where they are not known."""
    values = drawn.total_line[0].astype(np.float64)
    most = float(np.nanmax(values, initial=0.0))
    if not most > 0:
        return
    ys = _LINE_BOTTOM - values / most * (_LINE_BOTTOM - _LINE_TOP)
    half = float(middles[0]) - _LEFT
    for at, (x, y) in enumerate(zip(middles.tolist(), ys.tolist(), strict=True)):
        if y == y:  # noqa: PLR0124 - not NaN
            canvas.fill(x - half, y - 2, 2 * half, 4, GRAY)
            if at and ys[at - 1] == ys[at - 1]:
                canvas.fill(x - half - 2, y, 4, float(ys[at - 1]) - y, GRAY)
    canvas.write(_LEFT - 10, _LINE_TOP - 10, short_number(most), GRAY, align=1)


def _draw_axis(canvas: Canvas, drawn: TimelineMarks, middles: npt.NDArray[np.float64]) -> None:
    """Write versions and the days of their commits below the bars, as many as there is room for."""
    canvas.fill(_LEFT, _LINE_BOTTOM, _RIGHT - _LEFT, 2, GRAY)
    versions = [str(version) for version in drawn.rows["version"].to_pylist()]
    days = [time[: len("2026-11-22")] for time in time_texts(drawn.rows["committed_at"])]
    end, before = 0.0, ""
    for x, version, day in zip(middles.tolist(), versions, days, strict=True):
        half = 9 * max(len(version), len(day)) + 12
        if x - half >= end:
            canvas.write(x, _LINE_BOTTOM + 12, version, GRAY, align=0.5)
            canvas.write(x, _LINE_BOTTOM + 42, day if day != before else "", GRAY, align=0.5)
            end, before = x + half, day


def _draw_marks(canvas: Canvas, marks: Mapping[str, float]) -> None:
    """Draw the lines of A and B, with their names beside each other where the lines are close."""
    for name, x in marks.items():
        color = BLUE if name == "B" else VERMILLION
        canvas.fill(x - 1, _TOP - 8, 3, _LINE_BOTTOM - _TOP + 8, color, pattern="" if name == "B" else "-")
        close = any(other != name and abs(at - x) < _CLOSE for other, at in marks.items())
        canvas.write(x, 0, name, color, align=0.5 + (close and (0.7 if name == "A" else -0.7)), size=4)
