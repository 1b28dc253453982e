"""What is drawn of a bisection: the evaluated versions, and a strip of all versions."""

from itertools import groupby

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.rows import Bisection
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.text import pluralize, short_user
from snapshot_explorer.view.dispatch import depict, draw
from snapshot_explorer.view.drawing import Code, Drawing, Grid, Line, Pairs, fact_line
from snapshot_explorer.view.figures import Picture
from snapshot_explorer.view.tracks.svg import TracksPicture
from snapshot_explorer.view.tracks.tracks import NOT_EVALUATED, Mark, Span, Track, Tracks, run_text

_GROUPS = {True: "holds", False: "does not hold", None: "could not be read"}
_DRAWN = 14
"""Evaluated versions that are drawn."""


@draw.register
def _bisection(bisection: Bisection) -> Drawing:
    """Return the result as a drawing: the version, the versions around it, and how it was found."""
    rows = _neighbors(bisection)
    grid = Grid(rows, total=len(bisection.evaluated), noun="evaluated versions", limit=max(1, len(rows)))
    notes = [Line(note) for note in bisection.notes]
    facts = _facts(bisection)
    pairs = (Pairs(tuple(facts)),) if facts else ()
    answered = len(bisection.evaluated) - len(bisection.skipped)
    evaluated = f"{answered:,} of {pluralize(len(bisection.versions), 'version')}"
    background = fact_line((("format", bisection.format), ("versions", bisection.span), ("evaluated", evaluated)))
    return Drawing(title=bisection.answer, parts=(*pairs, *notes, grid, background, Code(bisection.call)))


def _tracks(bisection: Bisection) -> Tracks:
    """Return the versions as a strip: the evaluated ones, and the first version at which the condition holds."""
    known = np.asarray(bisection.versions, np.int64)
    holds = dict(zip(bisection.evaluated["version"].to_pylist(), bisection.evaluated["holds"].to_pylist(), strict=True))
    groups = [_GROUPS[holds[version]] if version in holds else NOT_EVALUATED for version in bisection.versions]
    spans, marks = [], []
    for group, run in groupby(range(len(groups)), key=groups.__getitem__):
        places = list(run)
        versions = [bisection.versions[place] for place in places]
        hover = f"{run_text(versions[0], versions[-1])}: {group}"
        spans.append(Span(first=places[0], last=places[-1], group=group, hover=hover))
        if group != NOT_EVALUATED:
            # Each evaluated version if some are not, since they are the evidence; otherwise the changes.
            marked = places[:1] if len(holds) == len(groups) else places
            marks += [
                Mark(place=place, group=group, hover=f"version {bisection.versions[place]}: {group}")
                for place in marked
            ]
    if bisection.version is not None:
        commit = bisection.commit
        user = f" by {short_user(commit.user)}" if commit is not None and commit.user else ""
        done = "" if commit is None else f" {commit.operation or commit.kind}{user}"
        first = int(np.searchsorted(known, bisection.version))
        marks.append(Mark(place=first, group="first", text=f"{bisection.first}{done}", hover=bisection.answer))
    track = Track(label="", spans=tuple(spans), marks=tuple(marks))
    return Tracks(title=bisection.answer, versions=bisection.versions, tracks=(track,), total=1, noun="conditions")


@depict.register
def _picture(bisection: Bisection) -> Picture:
    """Return the versions as a strip: evaluated ones marked, the first at which the condition holds ringed."""
    return TracksPicture(_bisection(bisection), lambda: _tracks(bisection))


def _facts(bisection: Bisection) -> list[tuple[str, object]]:
    commit = bisection.commit
    facts: list[tuple[str, object]] = []
    if commit is not None:
        done = [commit.kind, commit.operation, f"by {short_user(commit.user)}" if commit.user else None]
        of_version = "" if bisection.gap is None else f" of {bisection.version}"
        facts += [
            ("first version", bisection.first),
            (f"commit time{of_version}" if of_version else "committed at", commit.committed_at),
            (f"commit{of_version}", ", ".join(dict.fromkeys(word for word in done if word))),
            ("last version before", bisection.last_good),
        ]
    next_calls = tuple(Code(Message(call)) for call in bisection.next_calls)
    return [*facts, ("next", next_calls)] if next_calls else facts


def _neighbors(bisection: Bisection) -> pa.Table:
    """Return the evaluated versions; if there are many, the versions around the result."""
    rows = bisection.evaluated.to_arrow()
    if len(rows) > _DRAWN:
        index = 0 if bisection.version is None else int(np.searchsorted(rows["version"].to_numpy(), bisection.version))
        begin = min(max(0, index - _DRAWN // 2), len(rows) - _DRAWN)
        rows = rows.slice(begin, _DRAWN)
    return rows.drop_columns(["note"]) if rows["note"].null_count == len(rows) else rows
