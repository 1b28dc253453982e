"""Tracks: lines with marks on them, over versions or over time, such as a row's history; as data."""

from dataclasses import dataclass
from datetime import datetime

from snapshot_explorer.view.commits import OTHER, STYLES
from snapshot_explorer.view.figures import Style
from snapshot_explorer.view.palette import BLUE, GRAY, GREEN, ORANGE, PURPLE, SKY, VERMILLION

MOST_TRACKS, BRIEF_TRACKS = 60, 12
"""The maximum number of tracks, and of those in the picture that a result shows by itself."""
_TICKS = 20
_CHARACTERS = 100
"""Characters that fit beside each other over all versions."""

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
    def caption(self) -> str:
        """Return the title, the range that is drawn, and the note."""
        span = f"versions {self.versions[0]} to {self.versions[-1]}" if self.versions else ""
        clock = "" if self.title.endswith(self.clock) else self.clock
        return " \N{MIDDLE DOT} ".join(text for text in (self.title, span, clock, self.note) if text)

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


def run_text(first: int, last: int) -> str:
    """Return versions from a first to a last one as text."""
    return f"version {first}" if first == last else f"versions {first} to {last}"


def style_of(group: str) -> Style:
    """Return the style of a group."""
    return GROUPS.get(group, OTHER)
