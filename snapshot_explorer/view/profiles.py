"""The numbers of columns, and the size of a table, over versions, as figures of panels one above the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.data_types import has_distances
from snapshot_explorer.core.frames import ANOMALIES
from snapshot_explorer.view.figures import (
    axis,
    layout,
    name_versions,
    numbers,
    numbers_with_gaps,
    panel_suffix,
    plotly_text,
    stepped_line,
    version_axis,
    version_positions,
)
from snapshot_explorer.view.palette import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go

_COLORS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION)
_DASHES = ("solid", "dash", "dot", "dashdot")
_COUNTS = {"files": "files", "rows": "rows", "size_bytes": "bytes"}
"""Measures of a table, and their names."""
_MOST_RANGES = 6
"""The maximum number of columns whose range has a separate panel."""
_MOST_AT_ONCE = 100
"""The maximum number of versions without a range slider."""
_SMALLEST_RATE = 0.05
"""The smallest end of the axis of null rates."""
_MOST_RATES = 12
"""The maximum number of columns whose null rate is drawn: the columns with the highest rates."""


def profile_figure(columns: Mapping[str, pa.Table], anomalies: pa.Table, *, title: str) -> go.Figure:
    """Return rows, null rates and the ranges of columns over versions, in panels one above the other.

    Args:
        columns: By column, ascending by version: version, rows, null_rate, min and max.
        anomalies: ANOMALIES: the versions to mark, in the panel of their measure.
    """
    versions = numbers(next(iter(columns.values()))["version"])
    return _figure(_panels(columns), versions, anomalies, title=title)


def totals_figure(totals: pa.Table, *, title: str) -> go.Figure:
    """Return files, rows and bytes over versions.

    Args:
        totals: version, files, rows, size_bytes; ascending by version. A null is a gap in its line.
    """
    panels: list[tuple[str, list[_Line]]] = [
        (name, [(name, (column, None), numbers_with_gaps(totals[column]))]) for column, name in _COUNTS.items()
    ]
    return _figure(panels, numbers(totals["version"]), ANOMALIES.empty_table(), title=title)


def _figure(
    panels: Sequence[tuple[str, Sequence[_Line]]], versions: np.ndarray, anomalies: pa.Table, *, title: str
) -> go.Figure:
    import plotly.graph_objects as go

    x, counted_versions = version_positions(versions)
    figure = go.Figure()
    axes, is_unnamed = {}, True
    height = 1 / max(1, len(panels))
    for number, (name, lines) in enumerate(panels):
        suffix = panel_suffix(number)
        for index, (label, key, y) in enumerate(lines):
            figure.add_trace(
                stepped_line(
                    x,
                    y,
                    panel=number,
                    name=plotly_text(label),
                    color=_COLORS[index % len(_COLORS)],
                    dash=_DASHES[index // len(_COLORS) % len(_DASHES)],
                    number_format=":," if key[0] in _COUNTS else "",
                ).update(showlegend=len(lines) > 1)  # the axis of a panel names its only line
            )
            figure.add_traces(_marks(anomalies, key, versions, x, y, f"y{suffix}", is_first=is_unnamed))
            is_unnamed = is_unnamed and figure.data[-1].name != "jump"
        top = 1 - number * height
        axes[f"yaxis{suffix}"] = axis(plotly_text(name, 30), domain=[top - height * 0.8, top], **_scale(lines))
    figure.update_layout(
        layout(
            plotly_text(title),
            height=120 + 150 * len(panels),
            hovermode="closest",
            legend={"font": {"size": 11}, "tracegroupgap": 0},
            xaxis=version_axis(counted_versions, has_slider=len(versions) > _MOST_AT_ONCE)
            | {"anchor": f"y{len(panels)}" if len(panels) > 1 else "y"},
            **axes,
        )
    )
    return name_versions(figure, counted_versions)


_Line = tuple[str, tuple[str, str | None], np.ndarray]


def _panels(columns: Mapping[str, pa.Table]) -> list[tuple[str, list[_Line]]]:
    """Return the panels, each with its lines: a label, a measure, and values."""
    first = next(iter(columns.values()))
    panels: list[tuple[str, list[_Line]]] = [("rows", [("rows", ("rows", None), numbers_with_gaps(first["rows"]))])]
    rates = {name: _floats(rows["null_rate"]) for name, rows in columns.items()}
    known = [name for name, values in rates.items() if not np.isnan(values).all()]
    known.sort(key=lambda name: -np.nanmax(rates[name]))
    if known:
        lines: list[_Line] = [
            (f"null rate of {name}", ("null_rate", name), rates[name]) for name in known[:_MOST_RATES]
        ]
        panels.append(("null rate", lines))
    for name, rows in columns.items():
        ends = [(end, rows[end].combine_chunks()) for end in ("min", "max")]
        if len(panels) < _MOST_RANGES + 2 and has_distances(ends[0][1].type) and ends[0][1].null_count < len(rows):
            ranges: list[_Line] = [(f"{end} of {name}", (end, name), _values(values)) for end, values in ends]
            panels.append((name, ranges))
    return panels


def _scale(lines: Sequence[_Line]) -> dict[str, object]:
    """Return the scale of a panel: from 0 for rows and null rates; with space around values that never change."""
    (measure, _), values = lines[0][1], np.concatenate([y for _, _, y in lines])
    if measure in _COUNTS:
        return {"rangemode": "tozero"}
    if measure == "null_rate":
        return {"range": [0, max(_SMALLEST_RATE, 1.05 * float(np.nanmax(values)))], "tickformat": ".0%"}
    if values.dtype.kind == "M":
        known = values[~np.isnat(values)]
        space: object = np.timedelta64(1, "D")
    else:
        known = values[np.isfinite(values)]
        space = max(1.0, abs(float(known[0])) / 10) if len(known) else 1.0
    if len(known) and (known == known[0]).all():
        return {"range": [known[0] - space, known[0] + space], "tickvals": [known[0]]}
    return {}


def _values(values: pa.Array) -> np.ndarray:
    """Return values for an axis: numbers as floats, times as plotly accepts them."""
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        times: np.ndarray = values.cast(pa.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
        return times
    return _floats(values)


def _floats(values: pa.Array | pa.ChunkedArray) -> np.ndarray:
    floats: np.ndarray = pc.fill_null(values.cast(pa.float64(), safe=False), np.nan).to_numpy(zero_copy_only=False)
    return floats


def _marks(
    anomalies: pa.Table,
    key: tuple[str, str | None],
    versions: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    panel: str,
    *,
    is_first: bool,
) -> list[go.Scatter]:
    """Return the marks of the versions at which a measure jumps; none or one."""
    import plotly.graph_objects as go

    measure, column = key
    mine = pc.equal(anomalies["measure"], measure)
    mine = pc.and_(mine, anomalies["column"].is_null() if column is None else pc.equal(anomalies["column"], column))
    chosen = anomalies.filter(pc.fill_null(mine, False))  # noqa: FBT003 - pyarrow's
    if not len(chosen):
        return []
    at = np.searchsorted(versions, numbers(chosen["version"]))
    return [
        go.Scatter(
            x=x[at],
            y=y[at],
            yaxis=panel,
            mode="markers",
            marker={"color": VERMILLION, "symbol": "diamond", "size": 9},
            name="jump",
            legendgroup="jump",
            showlegend=is_first,
            customdata=[plotly_text(rule, 300) for rule in chosen["rule"].to_pylist()],
            hovertemplate="%{customdata}<extra></extra>",
        )
    ]
