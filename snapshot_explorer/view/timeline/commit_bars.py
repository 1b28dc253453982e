"""The newest commits as a static picture, for pages without scripts."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from snapshot_explorer.view.figures import INK
from snapshot_explorer.view.palette import BLUE, GRAY, GREEN, VERMILLION
from snapshot_explorer.view.timeline.marks import TimelineMarks, timeline_marks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

BARS = 120
"""The maximum number of commits in a picture."""
_WIDTH, _HEIGHT, _EDGE = 960, 160, 16
_WIDEST = 56
"""The maximum width of a bar: of few commits none becomes an area."""
_EDGE_NAMES = 60
"""The distance to an edge at which a name centered on its marker would be cut off."""


def commit_bars(commits: pa.Table, measure: str, a: int | None, b: int | None) -> str:
    """Return SVG with bars up for additions and down for removals of commits, the newest on the right.

    Commits that only rewrite rows have thin grey bars, which do not set the scale.

    Texts end with a blank: pages that drop SVG, such as untrusted notebooks, keep them in a row.

    Args:
        commits: COMMITS, newest first.
        measure: Rows, files or bytes.
        a: The version that is marked A.
        b: The version that is marked B.
    """
    if not len(commits):
        return ""
    drawn = timeline_marks(commits.slice(0, BARS), measure)
    versions = drawn.rows["version"].to_pylist()
    label = escape(f"{drawn.sides.replace(',', ' and')} by versions {versions[0]} to {versions[-1]}")
    marks = {at: "A B" if a == b else name for name, at in (("A", a), ("B", b)) if at is not None}
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}" '
        f'style="width:100%;max-width:{_WIDTH}px;height:auto" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{label}: </title>{''.join(_bars(versions, drawn, marks))}"
        "</svg>"
    )


def _bars(versions: Sequence[int], drawn: TimelineMarks, marks: dict[int, str]) -> Iterator[str]:
    up, down = (float(side.max(initial=0)) for side in drawn.heights)
    scale = (_HEIGHT - 3 * _EDGE) / max(1.0, up + down)
    zero = _EDGE + up * scale
    step = _WIDTH / len(versions)
    width = max(1.0, min(_WIDEST, step * 0.7))
    for side, most, sign, loud in ((drawn.bars.up, up, -1, GREEN), (drawn.bars.down, down, 1, VERMILLION)):
        for is_quiet, thin, color in ((False, width, loud), (True, max(1.0, width / 4), GRAY)):
            bars = (
                f"M{at * step + (step - thin) / 2:.1f},{zero:.1f}v{sign * amount * scale:.1f}h{thin:.1f}V{zero:.1f}z"
                for at, amount in enumerate(np.where(drawn.bars.quiet == is_quiet, np.minimum(side, most), 0).tolist())
                if amount
            )
            yield f'<path d="{"".join(bars)}" fill="{color}"/>'
    for at, version in enumerate(versions):
        if version in marks:
            yield _mark(at * step + step / 2, marks[version], version)
    yield f'<line x1="0" x2="{_WIDTH}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="{INK}"/>'
    for x, anchor, version in ((0, "start", versions[0]), (_WIDTH, "end", versions[-1])):
        yield (
            f'<text x="{x}" y="{_HEIGHT - 4}" fill="currentColor" font-size="12" text-anchor="{anchor}">'
            f"version {version} </text>"
        )


def _mark(x: float, letters: str, version: int) -> str:
    """Return a marker: its line, and its name at the end of the line that the other marker's name does not use."""
    end = _HEIGHT - 2 * _EDGE
    y = end + _EDGE - 4 if letters == "B" else _EDGE - 4
    anchor = "start" if x < _EDGE_NAMES else "end" if x > _WIDTH - _EDGE_NAMES else "middle"
    color = BLUE if letters == "B" else VERMILLION
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_EDGE}" y2="{end}" stroke="{color}"/>'
        f'<text x="{x:.1f}" y="{y}" fill="currentColor" font-size="12" text-anchor="{anchor}">'
        f"{letters} {version} </text>"
    )
