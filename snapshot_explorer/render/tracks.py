"""Tracks: lines over versions with marks on them, such as the life of a row or of a file, as data and as a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from snapshot_explorer.render.figures import INK, Style, axis, layout, plain
from snapshot_explorer.render.palette import BLUE, GREEN, GREY, PURPLE, VERMILLION

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

MOST_TRACKS = 60
_TRACK_PIXELS, _THIN_PIXELS, _FEWEST_PIXELS = 34, 17, 110
_TICKS = 12
_LONGEST_LABEL = 40

GROUPS = {
    "does not hold": Style(colour=GREEN, pattern="", symbol="circle", sign=""),
    "holds": Style(colour=VERMILLION, pattern="", symbol="x", sign=""),
    "could not be read": Style(colour=GREY, pattern="", symbol="circle-open", sign="?"),
    "between": Style(colour=GREY, pattern="", symbol="circle", sign=""),
    "first": Style(colour=VERMILLION, pattern="", symbol="circle-open", sign=""),
    "present": Style(colour=GREY, pattern="", symbol="circle", sign=""),
    "inserted": Style(colour=GREEN, pattern="", symbol="circle", sign="+"),
    "updated": Style(colour=PURPLE, pattern="", symbol="diamond", sign="~"),
    "deleted": Style(colour=VERMILLION, pattern="", symbol="x", sign="-"),
    "live": Style(colour=GREEN, pattern="", symbol="circle", sign=""),
    "removed": Style(colour=GREY, pattern="", symbol="x", sign=""),
    "replaced": Style(colour=GREY, pattern="", symbol="circle", sign=""),
    "base file": Style(colour=BLUE, pattern="", symbol="circle", sign=""),
    "log file": Style(colour=PURPLE, pattern="", symbol="diamond", sign=""),
    "compacted": Style(colour=BLUE, pattern="", symbol="diamond", sign=""),
}
"""How each group of lines and marks looks: by colour and by shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A line on a track."""

    first: int
    """The place of the version where it begins."""
    last: int
    """The place of the version where it ends."""
    group: str
    """A key of `GROUPS`."""
    hover: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A mark on a track."""

    place: int
    """The place of its version."""
    group: str
    """A key of `GROUPS`."""
    text: str = ""
    """What stands above it; empty for nothing."""
    hover: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """A track; its first marks are behind the others."""

    label: str
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracks:
    """Tracks over versions."""

    title: str
    versions: tuple[int, ...]
    """All versions, ascending; places count from the first."""
    tracks: tuple[Track, ...]
    """The first ones, from top to bottom."""
    total: int
    """The number of all tracks."""
    noun: str
    """The plural noun for tracks."""

    @property
    def note(self) -> str:
        """Return a note on tracks that are not drawn; empty if all are."""
        return "" if len(self.tracks) == self.total else f"{len(self.tracks):,} of {self.total:,} {self.noun}"

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the groups that occur, in the order of `GROUPS`."""
        present = {span.group for track in self.tracks for span in track.spans}
        present |= {mark.group for track in self.tracks for mark in track.marks}
        return tuple(group for group in GROUPS if group in present)

    @property
    def has_texts(self) -> bool:
        """Return whether any mark has a text above it."""
        return any(mark.text for track in self.tracks for mark in track.marks)

    def ticks(self) -> list[int]:
        """Return some places for the axis: those of marks, where they are few, or evenly spread ones."""
        marked = sorted({mark.place for track in self.tracks for mark in track.marks})
        if 0 < len(marked) <= _TICKS:
            return marked
        even = np.linspace(0, max(0, len(self.versions) - 1), min(_TICKS, len(self.versions)))
        return [*dict.fromkeys(even.astype(int).tolist())]


def tracks_content(tracks: Tracks) -> dict[str, Any]:
    """Return tracks as plain data for the page; versions are text, since browsers cannot hold each 64-bit number."""
    return {
        "count": len(tracks.versions),
        "ticks": [[index, str(tracks.versions[index])] for index in tracks.ticks()],
        "note": tracks.note,
        "groups": {group: [GROUPS[group].colour, GROUPS[group].symbol] for group in tracks.groups},
        "tracks": [
            {
                "label": track.label,
                "spans": [[span.first, span.last, span.group, span.hover] for span in track.spans],
                "marks": [[mark.place, mark.group, mark.text, mark.hover] for mark in track.marks],
            }
            for track in tracks.tracks
        ],
    }


def tracks_figure(tracks: Tracks) -> go.Figure:
    """Return tracks as a figure, the first one at the top."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for group in tracks.groups:
        figure.add_traces([*_lines(tracks.tracks, group), *_marks(tracks.tracks, group, len(tracks.versions))])
    ticks, count = tracks.ticks(), len(tracks.tracks)
    lines = [plain(tracks.title), *([tracks.note] if tracks.note else [])]
    top = 40 + 22 * len(lines)
    figure.update_layout(
        layout(
            "<br>".join(lines),
            height=top + 90 + max(_FEWEST_PIXELS, (_TRACK_PIXELS if tracks.has_texts else _THIN_PIXELS) * count),
            hovermode="closest",
            margin={"l": 20, "r": 40, "t": top, "b": 70},
            legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
            xaxis=axis(
                "version",
                tickvals=ticks,
                ticktext=[str(tracks.versions[index]) for index in ticks],
                showgrid=False,
                zeroline=False,
                range=[-0.5, max(1, len(tracks.versions)) - 0.5],
            ),
            yaxis=axis(
                tickvals=list(range(count)),
                ticktext=[plain(track.label, _LONGEST_LABEL) for track in tracks.tracks],
                range=[count - 0.3, -0.9],
                showgrid=False,
                zeroline=False,
            ),
        )
    )
    return figure


def _lines(tracks: Sequence[Track], group: str) -> list[go.Scatter]:
    """Return the lines of a group as one path."""
    import plotly.graph_objects as go

    spans = [(index, span) for index, track in enumerate(tracks) for span in track.spans if span.group == group]
    if not spans:
        return []
    # A line of a single version is drawn too.
    x = [end for _, span in spans for end in (span.first - 0.3, span.last + 0.3, None)]
    return [
        go.Scatter(
            x=x,
            y=[end for index, _ in spans for end in (index, index, None)],
            text=[text for _, span in spans for text in (plain(span.hover),) * 2 + ("",)],
            mode="lines",
            line={"color": GROUPS[group].colour, "width": 9},
            opacity=0.45,
            name=group,
            legendgroup=group,
            hovertemplate="%{text}<extra></extra>" if any(span.hover for _, span in spans) else None,
            hoverinfo=None if any(span.hover for _, span in spans) else "skip",
        )
    ]


def _text_position(mark: Mark, count: int) -> str:
    """Return where the text of a mark stands: inside of the figure, and beside the end of a line."""
    if mark.group == "deleted":
        return "middle right" if 2 * mark.place < count else "top left"
    return "top right" if 2 * mark.place < count else "top left"


def _marks(tracks: Sequence[Track], group: str, count: int) -> list[go.Scatter]:
    import plotly.graph_objects as go

    marks = [(index, mark) for index, track in enumerate(tracks) for mark in track.marks if mark.group == group]
    if not marks:
        return []
    style, is_ring = GROUPS[group], group == "first"
    return [
        go.Scatter(
            x=[mark.place for _, mark in marks],
            y=[index for index, _ in marks],
            mode="markers+text",
            text=[plain(mark.text, _LONGEST_LABEL) for _, mark in marks],
            textposition=[_text_position(mark, count) for _, mark in marks],
            textfont={"color": style.colour if is_ring else INK, "size": 11},
            hovertext=[plain(mark.hover) for _, mark in marks],
            hoverinfo="text",
            marker={
                "symbol": style.symbol,
                "size": 22 if is_ring else 11,
                "color": style.colour,
                "line": {"width": 2 if is_ring or "open" in style.symbol else 0, "color": style.colour},
            },
            name=group,
            legendgroup=group,
            # The line of the group is in the legend.
            showlegend=not any(span.group == group for track in tracks for span in track.spans) and not is_ring,
        )
    ]
