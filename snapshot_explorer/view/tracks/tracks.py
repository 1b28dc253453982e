"""Tracks: lines with marks on them, over versions or over time, such as a row's history; as data and as a figure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from snapshot_explorer.core.text import format_utc
from snapshot_explorer.view.commits import OTHER, STYLES
from snapshot_explorer.view.dispatch import picture_of
from snapshot_explorer.view.figures import GRID, Picture, Style, axis, layout, plotly_text, shades
from snapshot_explorer.view.palette import BLUE, GRAY, GREEN, ORANGE, PURPLE, SKY, VERMILLION, page_color

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import plotly.graph_objects as go

    from snapshot_explorer.view.drawing import Drawing

MOST_TRACKS, BRIEF_TRACKS = 60, 12
"""The maximum number of tracks, and of those in the picture that a result shows by itself."""
_TRACK_PIXELS, _TIMED_PIXELS, _THIN_PIXELS, _FEWEST_PIXELS = 34, 26, 17, 110
_TICKS = 20
_TIMED_PLACES = 1_000
"""Places of an axis of time."""
_LONGEST_LABEL = 40
_CHARACTERS = 100
"""Characters that fit beside each other over all versions."""
_STRONG = ("live", "live, missing", "removed, missing")
_WIDTH, _THIN = 9, 3
"""The widths of a line and of a branch."""
_HATCH = "3px,4px"

NOT_EVALUATED = "not evaluated"
"""The group of versions whose rows were not read; its lines are hatched."""
GROUPS = {
    "does not hold": Style(color=GREEN, pattern="", symbol="circle", sign=""),
    "holds": Style(color=VERMILLION, pattern="", symbol="x", sign=""),
    "could not be read": Style(color=GRAY, pattern="", symbol="circle-open", sign=""),
    NOT_EVALUATED: Style(color=GRAY, pattern="/", symbol="circle", sign=""),
    "first": Style(color=VERMILLION, pattern="", symbol="circle-open", sign=""),
    "present": Style(color=GRAY, pattern="", symbol="circle", sign=""),
    "inserted": Style(color=GREEN, pattern="", symbol="circle", sign=""),
    "updated": Style(color=PURPLE, pattern="", symbol="diamond", sign=""),
    "deleted": Style(color=VERMILLION, pattern="", symbol="x", sign=""),
    "live": Style(color=GREEN, pattern="", symbol="circle", sign=""),
    "live, missing": Style(color=VERMILLION, pattern="", symbol="x", sign=""),
    "removed": Style(color=GRAY, pattern="", symbol="x", sign=""),
    "removed, missing": Style(color=ORANGE, pattern="", symbol="x", sign=""),
    "replaced": Style(color=GRAY, pattern="", symbol="circle", sign=""),
    "base file": Style(color=BLUE, pattern="", symbol="circle", sign=""),
    "log file": Style(color=PURPLE, pattern="", symbol="diamond", sign=""),
    "branch": Style(color=GRAY, pattern="", symbol="circle", sign=""),
    "compaction": Style(color=SKY, pattern="/", symbol="diamond", sign=""),
    "only metadata is left": Style(color=GRAY, pattern="", symbol="circle", sign=""),
    "cannot be loaded": Style(color=GRAY, pattern="\\", symbol="circle", sign=""),
    "completed": Style(color=GREEN, pattern="", symbol="circle", sign=""),
    "inflight": Style(color=ORANGE, pattern="/", symbol="triangle-right", sign="…"),
    "requested": Style(color=SKY, pattern="", symbol="circle-open", sign="…"),
    "rolled back": Style(color=VERMILLION, pattern="\\", symbol="x", sign="x"),
    **STYLES,
}
"""The style of each group of lines and marks, by color and by shape, including the kinds of commits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A line on a track."""

    first: int | datetime
    """The start: the place of a version, or a time."""
    last: int | datetime
    """The end: the place of a version, or a time."""
    group: str
    """A key of `GROUPS`; others are grey."""
    hover: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A mark on a track."""

    place: int | datetime
    """The place of its version, or its time."""
    group: str
    """A key of `GROUPS`; others are grey."""
    text: str = ""
    """The text above it; empty for none."""
    hover: str = ""
    size: float = 11
    """Its size in pixels."""
    opens: int | None = None
    """The version that a click opens, on a page that supports it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """A track; its first marks are behind the others."""

    label: str
    spans: tuple[Span, ...] = ()
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stripe:
    """Versions that are marked behind all tracks."""

    first: int
    """The place of the first one."""
    last: int
    """The place of the last one."""
    group: str
    """A key of `GROUPS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A line from one track to another."""

    begin: tuple[int, int]
    """The start: a place, and the index of the track."""
    end: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracks:
    """Tracks over versions, or over time."""

    title: str
    versions: tuple[int, ...] = ()
    """All versions, in order; places count from the first. Empty for tracks over time."""
    tracks: tuple[Track, ...]
    """The first ones, from top to bottom."""
    total: int
    """The number of all tracks."""
    noun: str
    """The plural noun for tracks."""
    notes: tuple[str, ...] = ()
    """Sentences on what is not drawn, or not known."""
    stripes: tuple[Stripe, ...] = ()
    links: tuple[Link, ...] = ()
    clock: str = ""
    """The name of the clock, for tracks over time."""
    period: tuple[datetime, datetime] | None = None
    """The period that is drawn; None for the period of the marks."""

    @property
    def note(self) -> str:
        """Return a note on tracks that are not drawn; empty if all are."""
        return "" if len(self.tracks) == self.total else f"{len(self.tracks):,} of {self.total:,} {self.noun}"

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the groups that occur, in the order of `GROUPS`."""
        present = {span.group for track in self.tracks for span in track.spans}
        present |= {mark.group for track in self.tracks for mark in track.marks}
        present |= {stripe.group for stripe in self.stripes}
        return (*(group for group in GROUPS if group in present), *sorted(present - GROUPS.keys()))

    @property
    def has_texts(self) -> bool:
        """Return whether any mark has a text above it."""
        return any(mark.text for track in self.tracks for mark in track.marks)

    def ticks(self) -> list[int]:
        """Return the places of the axis ticks: the places of marks if there are few, otherwise evenly spaced ones."""
        marked = sorted({mark.place for track in self.tracks for mark in track.marks if isinstance(mark.place, int)})
        if 0 < len(marked) <= _TICKS:
            return marked
        return [*range(0, len(self.versions), -(-len(self.versions) // _TICKS) or 1)]


def low_texts(track: Track, count: int) -> frozenset[int]:
    """Return the indices of the marks whose text is below the line: above it, it would cover the one before."""
    low, end = set(), float("-inf")
    for index, mark in enumerate(track.marks):
        if mark.text and isinstance(mark.place, int):
            width = len(mark.text) * count / _CHARACTERS
            begin = mark.place if 2 * mark.place < count else mark.place - width
            if begin < end:
                low.add(index)
            else:
                end = begin + width
    return frozenset(low)


class TracksPicture(Picture):
    """A picture whose figure draws tracks, which the explorer draws itself."""

    def __init__(self, drawing: Drawing, read: Callable[[], Tracks]) -> None:
        """Create a picture from the drawing of its table, and the function that computes the tracks at first use."""
        super().__init__(drawing, lambda: tracks_figure(self.tracks))
        self._read = read

    @cached_property
    def tracks(self) -> Tracks:
        """Return what the figure draws."""
        return self._read()


def style_of(group: str) -> Style:
    """Return the style of a group."""
    return GROUPS.get(group, OTHER)


def tracks_of(record: object) -> dict[str, Any]:
    """Return the tracks of a record whose picture draws tracks, as plain data for the page."""
    picture = picture_of(record)
    return tracks_content(picture.tracks) if isinstance(picture, TracksPicture) else {}


def tracks_content(tracks: Tracks) -> dict[str, Any]:
    """Return tracks as plain data for the page; versions are text: browsers cannot hold each number.

    Tracks over time are drawn over `count` places.
    """
    count = _TIMED_PLACES if tracks.clock else len(tracks.versions)
    ticks, position = _time_axis(tracks) if tracks.clock else _version_axis(tracks)
    return {
        "count": count,
        "ticks": ticks,
        "note": " \N{MIDDLE DOT} ".join(text for text in (tracks.note, tracks.clock) if text),
        "groups": {group: [page_color(style_of(group).color), style_of(group).symbol] for group in tracks.groups},
        "stripes": [[stripe.first, stripe.last, stripe.group] for stripe in tracks.stripes],
        "links": [[*link.begin, *link.end] for link in tracks.links],
        "tracks": [
            {
                "label": track.label,
                "spans": [[position(span.first), position(span.last), span.group, span.hover] for span in track.spans],
                "marks": [
                    [
                        position(mark.place),
                        mark.group,
                        mark.text,
                        mark.hover,
                        index in low,
                        *([] if mark.opens is None else [str(mark.opens)]),
                    ]
                    for index, mark in enumerate(track.marks)
                ],
            }
            for track in tracks.tracks
            for low in [low_texts(track, count)]
        ],
    }


def _version_axis(tracks: Tracks) -> tuple[list[list[object]], Callable[[Any], Any]]:
    """Return the ticks of the axis, and the function that returns the place of a version on it."""
    return [[index, str(tracks.versions[index])] for index in tracks.ticks()], lambda position: position


def _time_axis(tracks: Tracks) -> tuple[list[list[object]], Callable[[Any], Any]]:
    """Return the ticks of the axis, and the function that returns the place of a time on it."""
    times: list[Any] = [end for track in tracks.tracks for span in track.spans for end in (span.first, span.last)]
    times += [mark.place for track in tracks.tracks for mark in track.marks]
    if not times:
        return [], lambda position: position
    first, last = tracks.period or (min(times), max(times))
    step = max((last - first) / _TIMED_PLACES, timedelta(microseconds=1))
    shares = (0, 1 / 3, 2 / 3, 1) if last > first else (0,)
    ticks: list[list[object]] = [
        [round(share * _TIMED_PLACES), format_utc(first + share * (last - first))[:19]] for share in shares
    ]
    return ticks, lambda time: (time - first) / step


def tracks_figure(tracks: Tracks) -> go.Figure:
    """Return tracks as a figure, the first one at the top."""
    import plotly.graph_objects as go

    figure = go.Figure([*_stripes(tracks), *_links(tracks)])
    for group in tracks.groups:
        figure.add_traces([*_lines(tracks.tracks, group), *_marks(tracks.tracks, group, len(tracks.versions))])
    count = len(tracks.tracks)
    lines = [plotly_text(line) for line in (tracks.title, *tracks.notes, tracks.note) if line]
    top = 40 + 22 * len(lines)
    pixels = _TRACK_PIXELS if tracks.has_texts else _TIMED_PIXELS if tracks.clock else _THIN_PIXELS
    figure.update_layout(
        layout(
            "<br>".join(lines),
            height=top + 90 + max(_FEWEST_PIXELS, pixels * count),
            hovermode="closest",
            margin={"l": 20, "r": 40, "t": top, "b": 70},
            legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
            xaxis=_axis(tracks),
            yaxis=axis(
                tickvals=list(range(count)),
                ticktext=[plotly_text(track.label, _LONGEST_LABEL) for track in tracks.tracks],
                range=[count - 0.3, -0.9],
                gridcolor=GRID,
                showgrid=bool(tracks.clock),
                zeroline=False,
            ),
            yaxis2={"range": [0, 1], "fixedrange": True, "visible": False, "overlaying": "y"},
        )
    )
    if not count:
        figure.add_annotation(text=f"no {tracks.noun}", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
    return figure


def _axis(tracks: Tracks) -> dict[str, object]:
    if tracks.clock:
        period = {} if tracks.period is None else {"range": [_shown(time) for time in tracks.period]}
        return axis(tracks.clock, type="date", zeroline=False, **period)
    ticks = tracks.ticks()
    return axis(
        "version",
        tickvals=ticks,
        ticktext=[str(tracks.versions[index]) for index in ticks],
        showgrid=False,
        zeroline=False,
        range=[-0.5, max(1, len(tracks.versions)) - 0.5],
    )


def _shown(position: int | datetime) -> int | datetime:
    """Return a place as plotly accepts it: times without zone, since plotly shows zoned times in the browser's zone."""
    return position.replace(tzinfo=None) if isinstance(position, datetime) else position


def _stripes(tracks: Tracks) -> Iterator[go.Scatter]:
    for group in tracks.groups:
        stripes = [stripe for stripe in tracks.stripes if stripe.group == group]
        if stripes:
            first, last = (np.array([getattr(stripe, end) for stripe in stripes]) for end in ("first", "last"))
            style = GROUPS[group]
            yield shades(first, last, name=group, color=style.color, pattern=style.pattern, panel="y2")


def _links(tracks: Tracks) -> list[go.Scatter]:
    import plotly.graph_objects as go

    if not tracks.links:
        return []
    return [
        go.Scatter(
            x=[x for link in tracks.links for x in (link.begin[0], link.end[0], None)],
            y=[y for link in tracks.links for y in (link.begin[1], link.end[1], None)],
            mode="lines",
            line={"color": GRAY, "width": _THIN},
            opacity=0.45,
            showlegend=False,
            hoverinfo="skip",
        )
    ]


def _ends(span: Span) -> tuple[object, object, None]:
    """Return the ends of a line. A line of a single version has a length too, unless it is a branch."""
    if span.group == "branch" or isinstance(span.first, datetime) or isinstance(span.last, datetime):
        return _shown(span.first), _shown(span.last), None
    return span.first - 0.3, span.last + 0.3, None


def _lines(tracks: Sequence[Track], group: str) -> list[go.Scatter]:
    import plotly.graph_objects as go

    spans = [(index, span) for index, track in enumerate(tracks) for span in track.spans if span.group == group]
    if not spans:
        return []
    return [
        go.Scatter(
            x=[end for _, span in spans for end in _ends(span)],
            y=[end for index, _ in spans for end in (index, index, None)],
            text=[text for _, span in spans for text in (plotly_text(span.hover),) * 2 + ("",)],
            mode="lines",
            line={
                "color": style_of(group).color,
                "width": _THIN if group == "branch" else _WIDTH,
                **({"dash": _HATCH} if group == NOT_EVALUATED else {}),
            },
            opacity=0.9 if group in _STRONG else 0.45,
            name=group,
            legendgroup=group,
            showlegend=group != "branch",
            hovertemplate="%{text}<extra></extra>" if any(span.hover for _, span in spans) else None,
            hoverinfo=None if any(span.hover for _, span in spans) else "skip",
        )
    ]


def _text_position(mark: Mark, count: int, *, is_low: bool) -> str:
    """Return the position of the text of a mark: inside of the figure, and beside the end of a line."""
    is_begin = isinstance(mark.place, int) and 2 * mark.place < count
    if mark.group == "deleted" and is_begin:
        return "middle right"
    return f"{'bottom' if is_low else 'top'} {'right' if is_begin else 'left'}"


def _marks(tracks: Sequence[Track], group: str, count: int) -> list[go.Scatter]:
    import plotly.graph_objects as go

    marks = [(index, mark) for index, track in enumerate(tracks) for mark in track.marks if mark.group == group]
    low = {id(track.marks[index]) for track in tracks for index in low_texts(track, count)}
    if not marks:
        return []
    style, is_ring = style_of(group), group == "first"
    return [
        go.Scatter(
            x=[_shown(mark.place) for _, mark in marks],
            y=[index for index, _ in marks],
            mode="markers+text" if any(mark.text for _, mark in marks) else "markers",
            text=[plotly_text(mark.text, _LONGEST_LABEL) for _, mark in marks],
            textposition=[_text_position(mark, count, is_low=id(mark) in low) for _, mark in marks],
            textfont={"color": style.color if is_ring else GRAY, "size": 11},
            hovertext=["<br>".join(map(plotly_text, mark.hover.split("\n"))) for _, mark in marks],
            hoverinfo="text",
            marker={
                "symbol": style.symbol,
                "size": 22 if is_ring else [mark.size for _, mark in marks],
                "color": style.color,
                "opacity": 1,
                "line": {"width": 2 if is_ring or "open" in style.symbol else 0, "color": style.color},
            },
            name=plotly_text(f"{style.sign} {group}".strip() if group in STYLES else group),
            legendgroup=group,
            # The line of the group is in the legend.
            showlegend=not any(span.group == group for track in tracks for span in track.spans) and not is_ring,
        )
    ]
