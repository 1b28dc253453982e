"""File groups over versions: the base file and the log files of each slice, as tracks and as a table."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from snapshot_explorer.core.text import format_size, pluralize
from snapshot_explorer.view.drawing import Drawing, Grid, Line
from snapshot_explorer.view.tracks.svg import TracksPicture
from snapshot_explorer.view.tracks.tracks import MOST_TRACKS, Mark, Span, Track, Tracks

_SIGNS = 60
"""The maximum number of versions that a row of the table shows."""
_SHORT_ID = 8


def slice_tracks(rows: pa.Table, *, title: str) -> TracksPicture:
    """Return file slices as a picture: a track for each file group, over the versions that changed it.

    Args:
        rows: With the columns `partition`, `file_id`, `base_file`, `log_files`, `rows`, `base_bytes`, `log_bytes`,
            `first_version`, `removed_version` and `appended`, the slices of a group one after another.
    """
    groups: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        groups.setdefault((*map(tuple, row["partition"]), row["file_id"]), []).append(row)
    versions = sorted(
        {
            version
            for slices in groups.values()
            for row in slices
            for version in (row["first_version"], row["removed_version"], *row["appended"])
            if version is not None
        }
    )
    tracks = [_track(slices, versions) for slices in groups.values()]
    drawn = Tracks(
        title=title,
        versions=tuple(versions),
        tracks=tuple(tracks[:MOST_TRACKS]),
        total=len(tracks),
        noun="file groups",
    )
    logs = [count for slices in groups.values() if (count := _live_logs(slices)) is not None]
    lines = [f"Live file groups: {len(logs):,} of {len(groups):,}. Log files of one: at most {max(logs, default=0):,}."]
    if len(versions) > _SIGNS:
        lines.append(f"The table shows the last {_SIGNS} of {len(versions):,} versions.")
    grid = Grid(_table(groups, versions), noun="file groups")
    return TracksPicture(Drawing(title=title, parts=(*map(Line, lines), grid)), lambda: drawn)


def _label(slices: Sequence[Mapping[str, Any]]) -> str:
    values = [value for _, value in slices[0]["partition"]]
    return "/".join([*("null" if value is None else value for value in values), str(slices[0]["file_id"])[:_SHORT_ID]])


def _track(slices: Sequence[Mapping[str, Any]], versions: Sequence[int]) -> Track:
    spans, marks = [], []
    for row in slices:
        first = bisect_left(versions, row["first_version"])
        removed = row["removed_version"]
        last = len(versions) - 1 if removed is None else max(first, bisect_left(versions, removed) - 1)
        logs = len(row["log_files"])
        held = [f"{row['rows']:,} rows" if row["rows"] is not None else "", pluralize(logs, "log file") if logs else ""]
        hover = f"{_label(slices)}: {', '.join(filter(None, held)) or 'base file'}"
        spans.append(Span(first=first, last=last, group="live" if removed is None else "replaced", hover=hover))
        if row["base_file"] is not None:
            text = f"base file of {row['first_version']}, {format_size(row['base_bytes'])}"
            marks.append(Mark(place=first, group="base file", hover=text))
        marks += [
            Mark(place=bisect_left(versions, version), group="log file", hover=f"log file of {version}")
            for version in row["appended"]
        ]
    return Track(label=_label(slices), spans=tuple(spans), marks=tuple(marks))


def _table(groups: Mapping[tuple[object, ...], Sequence[Mapping[str, Any]]], versions: Sequence[int]) -> pa.Table:
    meaning = "by version, oldest first: B a base file, L log files, - live without a change, . not live"
    return pa.table(
        [
            pa.array([_label(slices) for slices in groups.values()], pa.string()),
            pa.array([_signs(slices, versions) for slices in groups.values()], pa.string()),
            pa.array([len(slices) for slices in groups.values()], pa.int64()),
            pa.array([sum(len(row["log_files"]) for row in slices) for slices in groups.values()], pa.int64()),
            pa.array([_live_logs(slices) for slices in groups.values()], pa.int64()),
        ],
        schema=pa.schema(
            [
                pa.field("file_group", pa.string(), metadata={"meaning": "its partition, and where its id begins"}),
                pa.field("versions", pa.string(), metadata={"meaning": meaning}),
                pa.field("slices", pa.int64()),
                pa.field("log_files", pa.int64(), metadata={"unit": "files", "meaning": "those of all its slices"}),
                pa.field("live_log_files", pa.int64(), metadata={"unit": "files", "meaning": "those of live slices"}),
            ]
        ),
    )


def _live_logs(slices: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the log files of the live slices: two slices during a pending compaction; None without a live slice."""
    live = [len(row["log_files"]) for row in slices if row["removed_version"] is None]
    return sum(live) if live else None


def _signs(slices: Sequence[Mapping[str, Any]], versions: Sequence[int]) -> str:
    signs = ["."] * len(versions)
    for row in slices:
        first = bisect_left(versions, row["first_version"])
        end = len(versions) if row["removed_version"] is None else bisect_left(versions, row["removed_version"])
        signs[first:end] = "-" * (end - first)
        for version in row["appended"]:
            signs[bisect_left(versions, version)] = "L"
        if row["base_file"] is not None:
            signs[first] = "B"
    return "".join(signs[-_SIGNS:])
