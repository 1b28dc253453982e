"""The difference of two versions as a figure: files and bytes by part, and the partitions that differ most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import ELLIPSIS, format_cell
from snapshot_explorer.view.figures import (
    ADDED,
    REMOVED,
    REWRITTEN,
    SHARED,
    Style,
    axis,
    layout,
    numbers,
    plotly_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import plotly.graph_objects as go

_MAX_PARTITIONS = 20
"""The number of partitions and buckets that are drawn: the ones with the most files that differ."""
_PARTS = ("shared", "removed", "added", "rewritten: removed", "rewritten: added")
_LOOKS = dict(zip(_PARTS, (SHARED, REMOVED, ADDED, REWRITTEN, REWRITTEN), strict=True))
_LONGEST_NAME = 40
_ROW_HEIGHT = 22
_UPPER, _BETWEEN = 200, 80
"""The height of the panels above the partitions, in pixels."""
_MARGINS = {"l": 20, "r": 30, "t": 60, "b": 60}
_MAX_UNIT_TICKS = 10


def difference_figure(summary: pa.Table, partitions: pa.Table, *, title: str) -> go.Figure:
    """Return the difference of two versions as a figure.

    Args:
        summary: COMPARED.
        partitions: COMPARED_PARTITIONS. The partitions with the most files that differ are drawn.
    """
    import plotly.graph_objects as go

    most = _largest_differences(partitions)
    lower = _ROW_HEIGHT * max(1, len(most))
    inner = _UPPER + _BETWEEN + lower
    figure = go.Figure()
    figure.add_traces([*_part_bars(summary), *_partition_bars(most)])
    names = {"type": "category", "autorange": "reversed", "showgrid": False}
    above, below = [1 - _UPPER / inner, 1], [0, lower / inner]
    drawn = summary.filter(pc.invert(pc.starts_with(summary["part"], "in ")))
    files, size_bytes = (pc.max(drawn[name]).as_py() or 0 for name in ("files", "size_bytes"))
    differing = max([pc.max(most[name]).as_py() or 0 for name in ("removed_files", "added_files")])
    # Room for the numbers at the ends of the bars.
    of_files, of_bytes = ({"range": [0, max(1, most_of * 1.25)]} for most_of in (files, size_bytes))
    figure.update_layout(
        layout(
            plotly_text(title),
            barmode="relative",
            bargap=0.25,
            height=inner + _MARGINS["t"] + _MARGINS["b"],
            showlegend=False,
            hovermode="closest",
            margin=_MARGINS,
            xaxis=axis("files", domain=[0, 0.46], anchor="y", **_integer_ticks(files), **of_files),
            yaxis=axis(domain=above, **names),
            xaxis2=axis("bytes", domain=[0.54, 1], anchor="y2", tickformat=".3~s", ticksuffix="B", **of_bytes),
            yaxis2=axis(domain=above, anchor="x2", matches="y", showticklabels=False, **names),
            xaxis3=axis(_caption(len(most), len(partitions)), anchor="y3", **_integer_ticks(differing)),
            yaxis3=axis(domain=below, anchor="x3", **names),
        )
    )
    return figure


def _integer_ticks(most: int) -> dict[str, object]:
    """Return the ticks of an axis of files: only at whole numbers."""
    return {"tickformat": ",d"} | ({"dtick": 1} if most <= _MAX_UNIT_TICKS else {})


def _caption(shown: int, total: int) -> str:
    """Return the caption of the lower bars, with the number of bars that are not drawn."""
    if not total:
        return "no partition differs"
    note = f"; the {shown} of {total:,} partitions and buckets that differ most" if shown < total else ""
    return f"files removed (left) and added (right) by partition{note}"


def _part_bars(summary: pa.Table) -> Iterator[go.Bar]:
    """Yield bars of files and bytes, with rewritten files separate from removed and added ones."""
    import plotly.graph_objects as go

    counts = dict(zip(summary["part"].to_pylist(), summary.select(["files", "size_bytes"]).to_pylist(), strict=True))
    for index, (name, unit) in enumerate((("files", "count"), ("size_bytes", "bytes"))):
        values = _exclusive_parts({part: row[name] for part, row in counts.items()})
        texts = ["?" if value is None else format_cell(value, unit).text for value in values.values()]  # type: ignore[arg-type]  # one of the units
        yield go.Bar(
            x=np.array([value or 0 for value in values.values()], np.int64),
            y=list(values),
            text=texts,
            textposition="outside",
            cliponaxis=False,
            orientation="h",
            xaxis=f"x{index + 1 if index else ''}",
            yaxis=f"y{index + 1 if index else ''}",
            marker=_markers([_LOOKS[part] for part in values]),
            hovertemplate="%{y}<br>%{text}<extra></extra>",
            name=name.replace("size_", ""),
        )


def _exclusive_parts(values: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return disjoint parts: removed and added files without rearranged ones; with them if these are unknown."""
    parts: dict[str, int | None] = dict.fromkeys(_PARTS, values["shared"])
    for side in ("removed", "added"):
        total, rearranged = values[side], values[f"{side}, rearranged"]
        parts[f"rewritten: {side}"] = rearranged
        parts[side] = None if total is None else total - (rearranged or 0)
    return parts


def _markers(looks: list[Style]) -> dict[str, object]:
    pattern = {"shape": [look.pattern for look in looks], "size": 6, "solidity": 0.35, "fillmode": "overlay"}
    return {"color": [look.color for look in looks], "line": {"width": 0}, "pattern": pattern}


def _largest_differences(partitions: pa.Table) -> pa.Table:
    """Return the partitions with the most files that differ, the first of equals first."""
    weight = pc.add(partitions["removed_files"], partitions["added_files"])
    # A partition in which only deletion vectors differ has no file that differs.
    ranked = pa.table({"weight": weight, "place": pa.array(np.arange(len(partitions)))}).sort_by(
        [("weight", "descending"), ("place", "ascending")]
    )
    return partitions.take(ranked["place"].slice(0, _MAX_PARTITIONS))


def _partition_bars(most: pa.Table) -> Iterator[go.Bar]:
    import plotly.graph_objects as go

    names = _names(most)
    texts = [_hover_text(row) for row in most.to_pylist()]
    for look, column, sign in ((REMOVED, "removed_files", -1), (ADDED, "added_files", 1)):
        yield go.Bar(
            x=sign * numbers(most[column]),
            y=names,
            hovertext=texts,
            hoverinfo="text",
            orientation="h",
            xaxis="x3",
            yaxis="y3",
            marker=look.filling(),
            name=column.replace("_", " "),
        )


def _names(most: pa.Table) -> list[str]:
    names_so_far = []
    for partition, bucket in zip(most["partition"], most["bucket"].to_pylist(), strict=True):
        parts = [format_cell(partition).text] if len(partition) else []
        parts += [] if bucket is None else [f"bucket {bucket}"]
        name = plotly_text(" ".join(parts) or "the table", _LONGEST_NAME)
        while name in names_so_far:
            name += ELLIPSIS
        names_so_far.append(name)
    return names_so_far


def _hover_text(row: Mapping[str, object]) -> str:
    """Return the counts of a partition, in lines, safe for a figure."""
    units = {"net_bytes": "bytes"}
    shown = [
        f"{name.replace('_', ' ')}: {format_cell(value, units.get(name, 'count')).text if value is not None else '?'}"  # type: ignore[arg-type]  # one of the units
        for name, value in row.items()
        if name not in ("partition", "bucket")
    ]
    return "<br>".join(shown)
