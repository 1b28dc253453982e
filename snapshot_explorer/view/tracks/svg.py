"""Tracks as SVG, for pages that run no script: the picture that a result shows by itself above its table."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from snapshot_explorer.arrow.value_text import text_width, truncate
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.view.png import PAPER, image_html
from snapshot_explorer.view.tracks.tracks import BRIEF_TRACKS, NOT_EVALUATED, low_texts, style_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snapshot_explorer.view.tracks.tracks import Mark, Tracks

_WIDTH, _HIGH, _TOP, _LETTER = 900, 32, 22, 6.5
"""In pixels: the width, a track, the room above the first, and a letter."""
_LONGEST = 24
_CIRCLE = "m-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0"
_SHAPES = {
    "diamond": "m0,-6l6,6l-6,6l-6,-6z",
    "x": "m-5,-5l10,10m0,-10l-10,10",
    "square": "m-5,-5h10v10h-10z",
    "cross": "m-2,-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
    "hexagon": "m-6,0l3,-5h6l3,5l-3,5h-6z",
    "triangle-up": "m0,-6l6,11h-12z",
    "triangle-down": "m0,6l6,-11h-12z",
    "ring": "m-10,0a10,10 0 1,0 20,0a10,10 0 1,0 -20,0",
}


def tracks_svg(tracks: Tracks) -> str:
    """Return tracks over versions as an SVG picture in HTML, as the explorer draws them; empty without tracks."""
    if not tracks.tracks or not tracks.versions:
        return ""
    shown = replace(tracks, tracks=tracks.tracks[:BRIEF_TRACKS], stripes=(), links=())
    high = _TOP + _HIGH * len(shown.tracks) + 42
    svg = (
        f'<svg width="{_WIDTH}" height="{high}" viewBox="0 0 {_WIDTH} {high}" fill="#212121" font-size="11" '
        f'font-family="system-ui,sans-serif" '
        f'xmlns="http://www.w3.org/2000/svg"><rect width="100%" height="100%" fill="{PAPER}"/>'
        f"{''.join(_parts(shown))}</svg>"
    )
    label = sanitize(" ".join(part for part in (tracks.title, shown.note) if part))
    return image_html("svg+xml", svg.encode(), label, (_WIDTH, high))


def _parts(tracks: Tracks) -> Iterator[str]:
    count, bottom = len(tracks.versions), _TOP + _HIGH * len(tracks.tracks) - 8
    names = [truncate(sanitize(track.label), _LONGEST) for track in tracks.tracks]
    left = min(180.0, 12 + 7 * max(map(text_width, names)))
    step = (_WIDTH - left - 14) / count
    for row, (name, track) in enumerate(zip(names, tracks.tracks, strict=True)):
        y = _TOP + row * _HIGH
        yield f'<text x="0" y="{y + 4}">{escape(name)}</text>'
        for span in track.spans:
            first, last = (left + (float(end) + 0.5) * step for end in (span.first, span.last))  # type: ignore[arg-type]  # places
            dash = ' stroke-dasharray="3 4"' if span.group == NOT_EVALUATED else ""
            yield (
                f'<path d="M{first - 0.3 * step:.1f},{y}H{last + 0.3 * step:.1f}" stroke-width="5" '
                f'stroke="{style_of(span.group).color}"{dash}/>'
            )
        low = low_texts(track, count)
        for index, mark in enumerate(track.marks):
            x = left + (float(mark.place) + 0.5) * step  # type: ignore[arg-type]  # a place
            yield from _drawn_mark(mark, x, y, is_low=index in low)
    end = float("-inf")
    for place in tracks.ticks():
        text, x = str(tracks.versions[place]), left + (place + 0.5) * step
        half = text_width(text) * _LETTER / 2
        x = min(x, _WIDTH - half)
        if x - half > end + 9:
            end = x + half
            yield f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{text}</text>'
    yield from _legend(tracks, bottom + 34)


def _drawn_mark(mark: Mark, x: float, y: float, *, is_low: bool) -> Iterator[str]:
    style, is_late = style_of(mark.group), x > _WIDTH / 2
    shape = "ring" if mark.group == "first" else style.symbol
    yield _shape(shape, x, y, style.color)
    if mark.text:
        anchor, shift = ("end", 4) if is_late else ("start", -4)
        text = _text(truncate(mark.text, _LONGEST))
        yield f'<text x="{x + shift:.1f}" y="{y + (19 if is_low else -11)}" text-anchor="{anchor}">{text}</text>'


def _shape(symbol: str, x: float, y: float, color: str) -> str:
    is_line = symbol in ("x", "ring") or symbol.endswith("-open")
    paint = f'fill="none" stroke="{color}" stroke-width="2.5"' if is_line else f'fill="{color}"'
    return f'<path d="M{x:.1f},{y}{_SHAPES.get(symbol.removesuffix("-open"), _CIRCLE)}" {paint}/>'


def _legend(tracks: Tracks, y: float) -> Iterator[str]:
    x = 6.0
    for group in tracks.groups:
        if group not in ("first", "branch"):
            yield _shape(style_of(group).symbol, x, y, style_of(group).color)
            yield f'<text x="{x + 12:.1f}" y="{y + 4}">{_text(group)}</text>'
            x += 30 + _LETTER * text_width(group)
    if tracks.note:
        yield f'<text x="{x:.1f}" y="{y + 4}">{_text(tracks.note)}</text>'


def _text(content: str) -> str:
    return escape(sanitize(content))
