"""The commits of many tables over time, as a figure with a lane per table."""

import math
from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.view.commits import commit_lines
from snapshot_explorer.view.drawing import Drawing, Grid, Line
from snapshot_explorer.view.grid import heading_of
from snapshot_explorer.view.row_changes import with_row_changes
from snapshot_explorer.view.tracks.svg import TracksPicture
from snapshot_explorer.view.tracks.tracks import Mark, Track, Tracks

_MAX_LANES = 60
_MAX_POINTS = 5_000


def lake_timeline(
    commits: pa.Table,
    *,
    title: str,
    since: datetime,
    until: datetime,
    notes: Sequence[str] = (),
) -> TracksPicture:
    """Return LAKE_COMMITS as a picture. Lanes are ordered by their first commit, so that jobs read top to bottom."""
    counts = commits.group_by("table").aggregate([("committed_at", "min"), ("committed_at", "count")])
    busiest = counts.sort_by([("committed_at_count", "descending"), ("table", "ascending")]).slice(0, _MAX_LANES)
    lanes = busiest.sort_by([("committed_at_min", "ascending"), ("table", "ascending")])["table"].to_pylist()
    drawn = commits.filter(pc.is_in(commits["table"], pa.array(lanes, pa.string()))).slice(0, _MAX_POINTS)
    more = [] if len(lanes) == len(counts) else [f"{len(lanes):,} of {len(counts):,} tables, those with most commits"]
    more += [] if len(drawn) == len(commits) else [f"{len(drawn):,} of {len(commits):,} commits"]
    lines = [*notes, *more]
    grid = Grid(
        with_row_changes(commits).select(["committed_at", "table", "version", "kind", "operation", "user", "rows"]),
        noun="commits",
    )
    drawing = Drawing(title=title, parts=(*map(Line, lines), grid))
    return TracksPicture(
        drawing,
        lambda: Tracks(
            title=title,
            tracks=_tracks(drawn, lanes),
            total=len(lanes),
            noun="commits",
            notes=tuple(lines[:3]),
            clock="UTC",
            period=(since, until),
        ),
    )


def _tracks(commits: pa.Table, lanes: Sequence[str]) -> tuple[Track, ...]:
    """Return a track of commits for each lane; marks grow with the rows that were inserted."""
    marks: dict[str, list[Mark]] = {lane: [] for lane in lanes}
    rows = commits.append_column("tags", pa.nulls(len(commits), pa.list_(pa.string()))).to_pylist()
    total_name = heading_of(commits.schema.field("total_rows"))
    for row in rows:
        lines = [row["table"], *commit_lines(row | {"branches": None}, schema_changed=False, total_name=total_name)]
        inserted = row["added_rows"] if row["rows_inserted"] is None else row["rows_inserted"]
        size = 8 + 2 * math.log10(1 + (inserted or 0))
        mark = Mark(place=row["committed_at"], group=row["kind"], hover="\n".join(lines), size=size)
        marks[row["table"]].append(mark)
    return tuple(Track(label=lane, marks=tuple(marks[lane])) for lane in lanes)
