"""Pictures as SVG: the parts that all have in common, and how pages embed them.

A picture is 900 pixels wide. Its plot is an `svg` inside of it whose places are shares of its width, so that the
explorer's page can give it another one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from snapshot_explorer.arrow.value_text import text_width, truncate
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.view.drawing import Drawing
from snapshot_explorer.view.palette import GRAY

LONGEST = 24
"""Characters of a text in a picture."""
_WIDTH, _RIGHT, _LINE, _NARROW = 900, 14, 18, 560
"""In pixels: a picture, the room beside its plot, a line of text, and the width in which keys and ticks have room."""
_LETTER, _TICK_LETTER = 6.5, 6.0
"""The widths of a letter and of a digit, in pixels."""
_CIRCLE = "m-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0"
_SHAPES = {
    "diamond": "m0,-6l6,6l-6,6l-6,-6z",
    "x": "m-5,-5l10,10m0,-10l-10,10",
    "square": "m-5,-5h10v10h-10z",
    "cross": "m-2,-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
    "hexagon": "m-6,0l3,-5h6l3,5l-3,5h-6z",
    "triangle-up": "m0,-6l6,11h-12z",
    "triangle-down": "m0,6l6,-11h-12z",
    "triangle-right": "m6,0l-11,-6v12z",
    "ring": "m-10,0a10,10 0 1,0 20,0a10,10 0 1,0 -20,0",
}


class ShownFigure(Shown):
    """A figure that displays with its table, and as the table where no figure is shown."""

    __slots__ = ()
    table: Drawing

    @property
    def formats(self) -> dict[str, Any]:
        """The figure by MIME type, in addition to HTML and text."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SvgPicture(ShownFigure):
    """A picture with tooltips."""

    svg: str
    """The picture, to write into a file; empty if there is nothing to draw."""
    table: Drawing
    """What is drawn beside the picture."""


def plot_svg(
    plot: Iterable[str], *, labels: Sequence[str], high: int, top: int, keys: Iterable[tuple[str, str]], caption: str
) -> str:
    """Return a picture: labels on the left of a plot with ticks below it, then keys and a caption.

    Args:
        plot: The elements of the plot, whose rows have a height of `high` and begin at `top`.
        keys: A mark at (0, 0) and its meaning.
    """
    names = [truncate(sanitize(label), LONGEST, middle=True) for label in labels]
    left = min(180, 12 + 7 * max(map(text_width, names)))
    bottom = top + high * len(names)
    beside = [f'<text y="{top + high * (row + 0.5) + 4:g}">{escape(name)}</text>' for row, name in enumerate(names)]
    x, y = 6.0, bottom + 34
    for mark, meaning in keys:
        width = 30 + _LETTER * text_width(meaning)
        if x > left and x + width > _NARROW:
            x, y = 6.0, y + _LINE
        beside.append(f'<g transform="translate({x:g} {y})">{mark}<text x="12" y="4">{plain(meaning)}</text></g>')
        x += width
    y += _LINE
    beside.append(f'<text class="sx-tick" y="{y + 4}" fill="{GRAY}">{plain(caption)}</text>')
    height = y + 12
    return (
        f'<svg class="sx-picture" xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{plain(caption)}" fill="#212121" color="{GRAY}" '
        'font-size="11" font-family="system-ui,sans-serif"><rect class="sx-paper" width="100%" height="100%" '
        f'fill="#FFFFFF"/>{"".join(beside)}<svg x="{left}" width="{_WIDTH - left - _RIGHT}" height="{bottom + 18}" '
        f'overflow="visible">{"".join(plot)}</svg></svg>'
    )


def tick_texts(ticks: Iterable[tuple[float, str]], y: float) -> Iterator[str]:
    """Yield the first of the ticks, and each that has room beside the one before it; places are shares of the width."""
    end = float("-inf")
    for share, text in ticks:
        half = text_width(text) * _TICK_LETTER / 2 / _NARROW
        at = min(max(share, half), 1 - half)
        if at - half > end + 0.015:
            end = at + half
            yield f'<text class="sx-tick" x="{100 * at:.2f}%" y="{y:g}" text-anchor="middle">{plain(text)}</text>'


def shape(symbol: str, color: str) -> str:
    """Return a mark at (0, 0), by the name that plotly has for its symbol."""
    is_line = symbol in ("x", "ring") or symbol.endswith("-open")
    paint = f'fill="none" stroke="{color}" stroke-width="2.5"' if is_line else f'fill="{color}"'
    return f'<path d="M0,0{_SHAPES.get(symbol.removesuffix("-open"), _CIRCLE)}" {paint}/>'


def titled(hover: str, drawn: str) -> str:
    """Return an element with a tooltip."""
    lines = "\n".join(map(plain, hover.split("\n")))
    return f"<g><title>{lines}</title>{drawn}</g>" if hover else drawn


def plain(text: str) -> str:
    """Return text without control characters, escaped."""
    return escape(sanitize(text))
