"""The lives of files as tracks, and what each version changed in each partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.render.cells import cell, counted, cut, size
from snapshot_explorer.render.figures import axis, layout, plain
from snapshot_explorer.render.tracks import MOST_TRACKS, Span, Track, Tracks

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

Changed = Literal["rows", "size_bytes"]

_MAX_PARTITIONS = 40
_MAX_COLUMNS = 200
_LONGEST_LABEL = 28


def file_tracks(lifetimes: pa.Table, versions: Sequence[int], *, title: str) -> Tracks:
    """Return a track for each file, from the version that added it to the one before it was removed, newest last.

    Args:
        lifetimes: LIFETIMES. Of many files the ones that were added last are drawn.
        versions: The versions whose files are known, ascending.
    """
    known = np.asarray(versions, np.int64)
    newest = lifetimes.slice(max(0, len(lifetimes) - MOST_TRACKS))
    tracks = []
    for row in newest.select(["path", "first_version", "removed_version", "rows", "size_bytes"]).to_pylist():
        removed = row["removed_version"]
        last = len(known) - 1 if removed is None else int(np.searchsorted(known, removed)) - 1
        first = int(np.searchsorted(known, row["first_version"]))
        end = "live at the newest version" if removed is None else f"removed at version {removed}"
        what = f"{counted(row['rows'], 'row')}, {size(row['size_bytes'])}"
        hover = f"{row['path']}: {what}, since version {row['first_version']}, {end}"
        span = Span(first=first, last=last, group="live" if removed is None else "removed", hover=hover)
        name = row["path"].rpartition("/")[2]
        tracks.append(Track(label=cut(name, _LONGEST_LABEL, middle=True), spans=(span,)))
    return Tracks(title=title, versions=tuple(versions), tracks=tuple(tracks), total=len(lifetimes), noun="files")


def partition_figure(lifetimes: pa.Table, versions: Sequence[int], *, title: str, y: Changed = "rows") -> go.Figure:
    """Return how many rows, or bytes, of files each version added to and removed from each partition.

    Of many partitions those that changed most are drawn; of many versions, neighbours are added up.
    """
    import plotly.graph_objects as go

    known = np.asarray(versions, np.int64)
    partitions = lifetimes["partition"].combine_chunks()
    names = [cell(value).text or "all rows" for value in partitions]
    labels, codes = np.unique(np.array(names, np.object_).astype(str), return_inverse=True)
    values = pc.fill_null(lifetimes[y].cast(pa.int64()), 0).to_numpy()
    width = max(1, -(-len(known) // _MAX_COLUMNS))
    changed = np.zeros((len(labels), -(-len(known) // width)), np.int64)
    for column in ("first_version", "removed_version"):
        is_known = lifetimes[column].is_valid().to_numpy()
        at = np.searchsorted(known, pc.drop_null(lifetimes[column]).to_numpy()) // width
        np.add.at(changed, (codes[is_known], at), values[is_known])
    chosen = np.sort(np.argsort(-changed.sum(axis=1), kind="stable")[:_MAX_PARTITIONS])
    starts = known[::width]
    note = (
        "" if len(chosen) == len(labels) else f"<br>the {len(chosen)} of {len(labels):,} partitions that changed most"
    )
    what = "rows" if y == "rows" else "bytes"
    shown = changed[chosen]
    figure = go.Figure(
        go.Heatmap(
            x=[str(version) for version in starts.tolist()],
            y=[plain(str(labels[index]), _LONGEST_LABEL) for index in chosen.tolist()],
            # The root, so that one rewrite does not make all others white; nothing is drawn where nothing changed.
            z=np.where(shown > 0, np.sqrt(shown), np.nan),
            customdata=shown,
            colorscale=[[0, "rgba(47,147,211,0.25)"], [1, "rgb(0,80,150)"]],
            showscale=False,
            xgap=1,
            ygap=1,
            hovertemplate=f"%{{y}}<br>version %{{x}}<br>%{{customdata:,}} {what} of files changed<extra></extra>",
        )
    )
    figure.update_layout(
        layout(
            plain(title) + note,
            height=150 + 22 * len(chosen),
            margin={"l": 20, "r": 30, "t": 60 if note else 44, "b": 50},
            xaxis=axis("version", type="category", showgrid=False, nticks=15),
            yaxis=axis(type="category", autorange="reversed", showgrid=False),
        )
    )
    return figure
