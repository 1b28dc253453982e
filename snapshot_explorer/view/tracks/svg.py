"""Tracks and maps of numbers as SVG: for results, the explorer's page, and files."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any

import numpy as np

from snapshot_explorer.arrow.value_text import truncate
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.text import format_utc
from snapshot_explorer.view.dispatch import picture_of
from snapshot_explorer.view.drawing import Drawing
from snapshot_explorer.view.figures import Picture
from snapshot_explorer.view.palette import BLUE, page_color
from snapshot_explorer.view.png import image_html
from snapshot_explorer.view.svg import LONGEST, SvgPicture, plain, plot_svg, shape, tick_texts, titled
from snapshot_explorer.view.tracks.heat_map import HeatMap
from snapshot_explorer.view.tracks.tracks import BRIEF_TRACKS, NOT_EVALUATED, Span, Track, Tracks, low_texts, style_of

_HIGH, _LOW, _TOP = 32, 16, 8
"""In pixels: a track with texts, another one, and the room above the first."""
_MOST_TEXTS = 12
"""The maximum number of tracks with texts."""
_TIMED_PLACES = 1_000
"""Places of an axis of time."""
_STRONG = ("live", "live, missing", "removed, missing")
_USUAL_SIZE = 11
"""The size of most marks."""
_TICKS = 8
_SHADES = (0.2, 0.4, 0.6, 0.8, 1)
_FAINT = 'stroke="currentColor" opacity="0.3"'


@dataclass(frozen=True, slots=True)
class _Axis:
    """The places of versions or of times."""

    count: int
    place_of: Callable[[Any], float]
    """Returns the place of a version, which is its place, or of a time."""
    ticks: Sequence[tuple[float, str]]

    def share(self, place: float) -> float:
        """Return how far a place is on the axis, from 0 to 1."""
        return (place + 0.5) / self.count

    def x(self, position: Any, more: float = 0) -> str:
        """Return where a version or a time is drawn, `more` places behind it."""
        return f"{100 * self.share(self.place_of(position) + more):.2f}%"


class TracksPicture(Picture):
    """A picture of tracks."""

    def __init__(self, drawing: Drawing, read: Callable[[], Tracks]) -> None:
        """Create a picture from the drawing of its table, and the function that computes the tracks at first use."""
        super().__init__(drawing, lambda: tracks_svg(self.tracks))
        self._read = read

    @cached_property
    def tracks(self) -> Tracks:
        """Return what is drawn."""
        return self._read()


def tracks_svg(tracks: Tracks) -> str:
    """Return tracks as an SVG picture, the first at the top; empty without tracks."""
    if not tracks.tracks or not (tracks.versions or tracks.clock):
        return ""
    ticks = [(index, str(tracks.versions[index])) for index in tracks.ticks()] if tracks.versions else []
    axis = _time_axis(tracks) if tracks.clock else _Axis(len(tracks.versions), float, ticks)
    has_texts = tracks.has_texts and len(tracks.tracks) <= _MOST_TEXTS
    high = _HIGH if has_texts else _LOW
    ys = [_TOP + high * (row + 0.5) for row in range(len(tracks.tracks))]
    bottom = _TOP + high * len(ys)
    plot = [*_behind(tracks, axis, ys, bottom)]
    for track, y in zip(tracks.tracks, ys, strict=True):
        plot += [*([_line("0", y, "100%", y, _FAINT)] if tracks.clock else []), *_spans(track, axis, y)]
        plot += _marks(track, axis, y, has_texts=has_texts)
    plot += tick_texts([(axis.share(place), text) for place, text in axis.ticks], bottom + 14)
    keys = [(_shape(group), group) for group in tracks.groups if group not in ("first", "branch")]
    labels = [track.label for track in tracks.tracks]
    return plot_svg(plot, labels=labels, high=high, top=_TOP, keys=keys, caption=tracks.caption)


def brief_html(tracks: Tracks) -> str:
    """Return the first tracks as a picture for pages that drop SVG; empty without tracks."""
    shown = replace(tracks, tracks=tracks.tracks[:BRIEF_TRACKS])
    svg = tracks_svg(shown)
    return image_html("svg+xml", svg.encode(), sanitize(shown.caption)) if svg else ""


def svg_of(record: object) -> str:
    """Return the picture of a record that has tracks."""
    figure = picture_of(record).figure
    return figure.svg if isinstance(figure, SvgPicture) else ""


def heat_svg(heat: HeatMap) -> str:
    """Return a map as an SVG picture: a row for each label; nothing is drawn for 0. Empty without labels."""
    if not heat.labels:
        return ""
    columns, shades = heat.numbers.shape[1], heat.shades()
    axis = _Axis(columns, float, ())
    plot = [
        f'<rect width="100%" y="{_TOP + _LOW * row + 1}" height="{_LOW - 2}" fill="currentColor" opacity="0.1"/>'
        for row in range(len(heat.labels))
    ]
    for row, column in np.argwhere(heat.numbers > 0).tolist():
        hover = f"{heat.labels[row]}, {heat.column(column)}: {heat.number(int(heat.numbers[row, column]))}"
        at = f'x="{axis.x(column, -0.5)}" width="{98 / columns:.2f}%" y="{_TOP + _LOW * row + 1}" height="{_LOW - 2}"'
        plot.append(titled(sanitize(hover), f'<rect {at} fill="{BLUE}" fill-opacity="{shades[row, column]:.2f}"/>'))
    chosen = np.unique(np.linspace(0, columns - 1, min(_TICKS, columns)).astype(int)).tolist() if columns else []
    ticks = [(axis.share(index), str(heat.versions[2 * index])) for index in chosen]
    plot += tick_texts(ticks, _TOP + _LOW * len(heat.labels) + 14)
    keys = [(f'<rect x="-5" y="-6" width="13" height="12" fill="{BLUE}" opacity="{shade}"/>', "") for shade in _SHADES]
    keys[-1] = (keys[-1][0], "few to many")
    return plot_svg(plot, labels=heat.labels, high=_LOW, top=_TOP, keys=keys, caption=heat.caption)


def _time_axis(tracks: Tracks) -> _Axis:
    times: list[Any] = [end for track in tracks.tracks for span in track.spans for end in (span.first, span.last)]
    times += [mark.place for track in tracks.tracks for mark in track.marks]
    if not times:
        return _Axis(_TIMED_PLACES, float, ())
    first, last = tracks.period or (min(times), max(times))
    step = max((last - first) / _TIMED_PLACES, timedelta(microseconds=1))
    shares = (0, 1 / 3, 2 / 3, 1) if last > first else (0,)
    ticks = [(share * _TIMED_PLACES, format_utc(first + share * (last - first))[:19]) for share in shares]
    return _Axis(_TIMED_PLACES, lambda time: (time - first) / step, ticks)


def _behind(tracks: Tracks, axis: _Axis, ys: Sequence[float], bottom: float) -> Iterator[str]:
    """Yield what is behind the tracks: stripes of versions, and links."""
    for stripe in tracks.stripes:
        width = 100 * (stripe.last - stripe.first + 1) / axis.count
        at = f'x="{axis.x(stripe.first, -0.5)}" width="{width:.2f}%" height="{bottom}"'
        yield titled(stripe.group, f'<rect {at} fill="{page_color(style_of(stripe.group).color)}" opacity="0.2"/>')
    for link in tracks.links:
        (begin, upper), (end, lower) = link.begin, link.end
        yield _line(axis.x(begin), ys[upper], axis.x(end), ys[lower], f'{_FAINT} stroke-width="2"')


def _spans(track: Track, axis: _Axis, y: float) -> Iterator[str]:
    """Yield the lines of a track. A line of a single version has a length too, unless it is a branch."""
    for span in track.spans:
        more = 0.3 if isinstance(span.first, int) and span.group != "branch" else 0
        line = _line(axis.x(span.first, -more), y, axis.x(span.last, more), y, _stroke(span))
        yield titled(sanitize(span.hover or span.group), line)  # a name of a file may have line breaks


def _stroke(span: Span) -> str:
    width = 2 if span.group == "branch" else 9 if span.group in _STRONG else 5
    ends = ' stroke-dasharray="3 4"' if span.group == NOT_EVALUATED else ' stroke-linecap="round"'
    return f'stroke="{page_color(style_of(span.group).color)}" stroke-width="{width}"{ends}'


def _marks(track: Track, axis: _Axis, y: float, *, has_texts: bool) -> Iterator[str]:
    low = low_texts(track, axis.count) if has_texts else frozenset()
    for index, mark in enumerate(track.marks):
        text = ""
        if has_texts and mark.text:
            anchor, shift = ("end", 4) if 2 * axis.place_of(mark.place) > axis.count else ("start", -4)
            text = f'<text x="{shift}" y="{19 if index in low else -11}" text-anchor="{anchor}">'
            text += f"{plain(truncate(mark.text, LONGEST))}</text>"
        scale = "" if mark.size == _USUAL_SIZE else f' transform="scale({mark.size / _USUAL_SIZE:.2f})"'
        opens = "" if mark.opens is None else f' class="sx-opens" data-opens="{mark.opens}"'
        drawn = titled(mark.hover, f"<g{opens}{scale}>{_shape(mark.group)}{text}</g>")
        yield f'<svg x="{axis.x(mark.place)}" y="{y:g}" overflow="visible">{drawn}</svg>'


def _shape(group: str) -> str:
    style = style_of(group)
    return shape("ring" if group == "first" else style.symbol, page_color(style.color))


def _line(x1: str, y1: float, x2: str, y2: float, paint: str) -> str:
    return f'<line x1="{x1}" y1="{y1:g}" x2="{x2}" y2="{y2:g}" {paint}/>'
