"""The lifetimes of files as tracks, and the changes of each version in each partition."""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import format_cell, truncate
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.records import Measure
from snapshot_explorer.core.text import format_size, pluralize
from snapshot_explorer.core.url_secrets import hide_url_secrets
from snapshot_explorer.history.lifetimes import FileLifetimes
from snapshot_explorer.history.lifetimes.intervals import OPEN
from snapshot_explorer.view.commits import UNREADABLE
from snapshot_explorer.view.tracks.heat_map import HeatMap
from snapshot_explorer.view.tracks.tracks import BRIEF_TRACKS, MOST_TRACKS, Span, Stripe, Track, Tracks

_MAX_PARTITIONS = 40
_MAX_COLUMNS = 120
_MAX_COMMITS = 1_000
_LONGEST_LABEL = 24
_READABLE = {word: name for word, name, _ in UNREADABLE}


def file_tracks(lifetimes: FileLifetimes, *, is_brief: bool = False) -> Tracks:
    """Return a track for each file, from the version that added it to the last one that has it, newest last.

    If there are many files, the files added last are drawn, from the first version that has one. Compactions and
    versions that cannot be loaded are stripes; whether a file is missing is only drawn if files were looked for. Reads
    the commits of their versions, up to 1,000, unless it is brief: then fewer
    files are drawn, without stripes.
    """
    rows, versions, facts = lifetimes.recorded(), lifetimes.versions, lifetimes.facts
    newest = rows.slice(max(0, len(rows) - (BRIEF_TRACKS if is_brief else MOST_TRACKS)))
    begin = bisect_left(versions, pc.min(newest["first_version"]).as_py() or 0)
    shown = versions[begin:]
    missing = None if facts is None else facts.missing()
    notes = ["Whether the files exist was not checked"] if missing is None else []
    if missing is not None:
        is_missing = pc.is_in(rows["path"], pa.array([*missing], pa.string()))
        live = pc.sum(pc.and_(is_missing, rows["removed_version"].is_null())).as_py() or 0
        removed = (pc.sum(is_missing).as_py() or 0) - live
        lost = f"Missing: {live:,} live and {removed:,} removed of {pluralize(len(rows), 'file')}"
        notes.append(lost if live or removed else "No file is missing")
    stripes: list[Stripe] = []
    if facts is not None and not is_brief:
        try:
            stripes = _stripes(facts.commits(shown[-_MAX_COMMITS:]), shown)
        except SnapshotExplorerError as error:  # a commit may have expired since
            notes.append(Message("Compactions are not marked: ", error))
    older = pc.sum(pc.less(rows["added_version"], rows["first_version"])).as_py() or 0
    if older and versions:
        notes.append(f"{pluralize(older, 'file')} of versions before {versions[0]}, which have expired")
    return Tracks(
        title=lifetimes.title,
        versions=tuple(shown),
        tracks=tuple(_file_track(row, shown, missing or ()) for row in _rows(newest)),
        total=len(rows),
        noun="files, those added last",
        notes=tuple(notes),
        stripes=tuple(stripes),
    )


def _rows(lifetimes: pa.Table) -> list[dict[str, Any]]:
    names = ["path", "first_version", "added_version", "removed_version", "rows", "size_bytes"]
    rows: list[dict[str, Any]] = lifetimes.select(names).to_pylist()
    return rows


def _file_track(row: Mapping[str, Any], versions: Sequence[int], missing: Collection[str]) -> Track:
    path, removed, added = str(row["path"]), row["removed_version"], row["added_version"] or row["first_version"]
    shown = hide_url_secrets(path)
    last = len(versions) if removed is None else bisect_left(versions, removed)
    end = "live at the newest version" if removed is None else f"removed at version {removed}"
    contents = f"{pluralize(row['rows'], 'row')}, {format_size(row['size_bytes'])}"
    lost = ", the file is missing" if path in missing else ""
    span = Span(
        first=bisect_left(versions, row["first_version"]),
        last=last - 1,
        group=("live" if removed is None else "removed") + (", missing" if lost else ""),
        hover=f"{shown}: {contents}, since version {added}, {end}{lost}",
    )
    name = shown.rpartition("/")[2].partition(".")[0] or shown
    return Track(label=truncate(name, _LONGEST_LABEL, middle=True), spans=(span,))


def _stripes(commits: pa.Table, versions: Sequence[int]) -> list[Stripe]:
    """Return the versions of COMMITS that compact, and versions that cannot be loaded; neighbors are one stripe."""
    stripes: list[Stripe] = []
    for row in commits.select(["version", "kind", "readable"]).sort_by("version").to_pylist():
        index = bisect_left(versions, row["version"])
        for group in (_READABLE.get(row["readable"]), "compaction" if row["kind"] == "compact" else None):
            if group is None:
                continue
            before = next(
                (stripe for stripe in stripes[-2:] if stripe.group == group and stripe.last == index - 1), None
            )
            if before is not None:
                stripes.remove(before)
            stripes.append(Stripe(first=index if before is None else before.first, last=index, group=group))
    return stripes


def partition_heat(lifetimes: FileLifetimes, y: Measure = "rows") -> HeatMap:
    """Return how many rows, files or bytes each version added to and removed from each partition.

    If there are many partitions, the most changed ones are drawn; many versions are summed with their neighbors.
    """
    intervals, versions = lifetimes.intervals, lifetimes.versions
    rows = intervals.rows
    names = [format_cell(value).text or "all rows" for value in intervals.partitions]
    labels, codes = np.unique(np.array(names, str), return_inverse=True)
    partitions = codes[rows["partition"].to_numpy()]
    numbers = None if y == "files" else rows[{"bytes": "size_bytes"}.get(y, y)]
    values = np.ones(len(rows), np.int64) if numbers is None else pc.fill_null(numbers, 0).to_numpy()
    width = max(1, -(-len(versions) // _MAX_COLUMNS))
    changed = np.zeros((len(labels), -(-len(versions) // width)), np.int64)
    for end in ("first", "last"):
        indices = rows[end].to_numpy()
        is_known = indices < OPEN
        np.add.at(changed, (partitions[is_known], indices[is_known] // width), values[is_known])
    chosen = np.sort(np.argsort(-changed.sum(axis=1), kind="stable")[:_MAX_PARTITIONS])
    lasts = [*versions[width - 1 :: width], *versions[-1:]][: changed.shape[1]]
    few, unknown = len(chosen) < len(labels), 0 if numbers is None else numbers.null_count
    notes = [f"the {len(chosen)} of {len(labels):,} partitions that changed most"] if few else []
    notes += [f"without {pluralize(unknown, 'file')} whose {y} are not known"] if unknown else []
    return HeatMap(
        title=lifetimes.title,
        labels=tuple(labels[chosen].tolist()),
        versions=tuple(end for pair in zip(versions[::width], lasts, strict=True) for end in pair),
        numbers=changed[chosen],
        unit=y,
        note=", ".join(notes),
    )
