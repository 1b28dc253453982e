"""Commits over versions, as a figure and as a table with a bar of signs for each commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.view.commits import (
    UNREADABLE,
    commit_hover_text,
    commit_table,
    listed_rules,
    rule_lines,
    time_texts,
)
from snapshot_explorer.view.drawing import Drawing, Line
from snapshot_explorer.view.figures import (
    Picture,
    axis,
    escape_plotly,
    layout,
    name_versions,
    plotly_text,
    shades,
    version_axis,
)
from snapshot_explorer.view.grid import heading_of
from snapshot_explorer.view.palette import GRAY, PURPLE, VERMILLION
from snapshot_explorer.view.timeline.flags import bars_top, draw_flags
from snapshot_explorer.view.timeline.marks import TimelineMarks, short_number, timeline_marks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt
    import plotly.graph_objects as go

    from snapshot_explorer.view.figures import Style

    _Mask = npt.NDArray[np.bool_]
    _Numbers = npt.NDArray[np.int64]

_MAX_BARS = 1_000
"""The maximum number of commits drawn as bars with complete tooltips. More are thin lines, drawn by WebGL, with their
time and counts."""
_THIN = 0.2
"""The width of the bar of a commit that only rewrites rows, of the distance between versions."""
_WIDE, _FEW = 0.8, 12
"""The same for other commits, and the number of commits from which bars have it."""
_NAMED_CUTS = 6
_DATES = 7
"""The maximum number of dates on the axis."""
_EXACT_FLOATS = 2**24
"""Floats of 32 bits have all whole numbers up to here."""
_LONG_BOTTOM = 150
"""Pixels below a long history: the dates, the range slider and two lines of the legend."""
_JUMP_HEIGHT = 0.32
"""The height of marks of jumps: between the bars and the line of totals."""


def timeline(
    commits: pa.Table,
    *,
    y: str,
    title: str,
    total: int | None = None,
    branches: Mapping[int, Sequence[str]] | None = None,
    anomalies: pa.Table | None = None,
    notes: Sequence[str] = (),
) -> Picture:
    """Return commits as a picture: bars up for additions and down for removals, by version.

    Args:
        commits: COMMITS, in any order.
        y: The measure: rows, files or bytes.
        title: The heading.
        total: The total number of versions, if these are only some of them.
        branches: The names of the branches that begin with a version, by version.
        anomalies: ANOMALIES: the versions to mark, with their rules.
        notes: Sentences on what is missing from the commits, such as a version; drawn below the heading.

    Raises:
        InvalidArgumentError: `y` is not a measure.
    """
    marks = timeline_marks(commits, y, branches=branches, anomalies=anomalies)
    newest_first = marks.rows.take(pa.array(np.arange(len(commits))[::-1]))
    log_length = total if total is not None and total > len(commits) else None
    grid = commit_table(newest_first, marks.y, total)
    drawing = Drawing(title=title, parts=(*map(Line, notes), grid, *listed_rules(newest_first)))
    return Picture(drawing, lambda: _figure(marks, title, log_length, notes))


def _is_long(marks: TimelineMarks) -> bool:
    """Return whether there are too many commits to draw each in full."""
    return len(marks.rows) > _MAX_BARS


def _figure(marks: TimelineMarks, title: str, total: int | None, notes: Sequence[str]) -> go.Figure:
    import plotly.graph_objects as go

    count = len(marks.rows)
    lines = [plotly_text(title), *([f"{count:,} of {total:,} versions"] if total else []), *map(plotly_text, notes)]
    heading = "<br>".join(lines)
    figure = go.Figure()
    figure.add_traces(list(_traces(marks)) if count else [])
    over_all = {"overlaying": "y", "showgrid": False, "domain": [0, 1]}
    fixed = {"automargin": not _is_long(marks)}
    figure.update_layout(
        layout(
            heading,
            barmode="relative",
            bargap=0.15,
            height=520,
            hovermode="closest" if _is_long(marks) else "x",
            hoverdistance=30 if _is_long(marks) else -1,
            # The title is above the plot, the legend below it: however many lines either has, they do not meet.
            # Plotly draws a figure again once it has found its margins, which a long history has fixed instead.
            margin={
                "l": 70,
                "r": 30,
                "t": 30 + 22 * len(lines),
                "b": _LONG_BOTTOM if _is_long(marks) else 50,
                "autoexpand": not _is_long(marks),
            },
            legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
            annotations=list(_cut_marks(marks)) if count else [],
            xaxis=version_axis(marks.counted_versions, has_slider=False)
            | {"anchor": "y", "title": {"text": ""}}
            | fixed,
            xaxis2=_date_axis(marks) | fixed,
            yaxis=axis(marks.sides, domain=[0.36, 1], **_range(marks), **fixed),
            yaxis2=axis(marks.total_line[1], domain=[0, 0.28], zeroline=False, rangemode="tozero", **fixed),
            yaxis3={"range": [0, 1], "fixedrange": True, "visible": False, **over_all},
        )
    )
    if not count:
        figure.add_annotation(text="no commits", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
    return name_versions(figure, marks.counted_versions)


def _range(marks: TimelineMarks) -> dict[str, list[float]]:
    """Return the range of the bars' axis if bars are cut or flags need space; otherwise plotly chooses one."""
    up, down = marks.tops
    is_cut = any(top < side.max(initial=0) for top, side in ((up, marks.bars.up), (down, marks.bars.down)))
    share, bottom = bars_top(marks.flags), -1.05 * down
    if (share == 1 and not is_cut) or up == bottom:
        return {}
    top = bottom + (up - bottom) / share if share < 1 else 1.05 * up
    return {"range": [bottom, top]}


def _cut_marks(marks: TimelineMarks) -> Iterator[dict[str, object]]:
    """Yield a mark with its height for each bar that is cut, up to a number of bars on each side."""
    for values, most, sign in zip(marks.heights, marks.tops, (1, -1), strict=True):
        highest = np.argsort(-values, kind="stable")[:_NAMED_CUTS]
        for index in highest[values[highest] > most].tolist():
            yield {
                "x": int(marks.x[index]),
                "y": sign * most,
                "text": short_number(float(values[index])),
                "showarrow": False,
                "yanchor": "top" if sign > 0 else "bottom",
                "font": {"size": 10},
                "xanchor": "left",
                "xshift": 3,
            }


def _date_axis(marks: TimelineMarks) -> dict[str, object]:
    """Return an axis below the totals with the dates of some versions."""
    known = np.flatnonzero(marks.rows["committed_at"].is_valid().to_numpy())
    if not len(known):
        return version_axis(marks.counted_versions) | {"matches": "x", "anchor": "y2"}
    chosen = known[np.unique(np.linspace(0, len(known) - 1, min(_DATES, len(known))).astype(int))]
    texts = time_texts(marks.rows["committed_at"].take(pa.array(chosen)))
    days = [text[: len("2026-11-22")] for text in texts]
    labels = days if len({*days}) > 1 else [text[len("2026-11-22 ") :] for text in texts]
    # The same day twice would only be noise.
    shown = [label if index == 0 or label != labels[index - 1] else "" for index, label in enumerate(labels)]
    ticks = {"tickmode": "array", "tickvals": marks.x[chosen], "ticktext": shown}
    return version_axis(marks.counted_versions) | {"matches": "x", "anchor": "y2", **ticks}


def _traces(marks: TimelineMarks) -> Iterator[go.Scatter | go.Bar]:
    """Yield the traces of the figure, from the back to the front."""
    yield from _shades(marks)
    yield from _thin_bars(marks) if _is_long(marks) else _bars(marks)
    yield from _unknown(marks)
    yield _total(marks)
    yield from _schema_changes(marks)
    yield from _jumps(marks)
    yield from (draw_flags(flags, _tooltip(marks, "%{customdata}")) for flags in marks.flags)
    if not _is_long(marks):
        yield _hover(marks)


def _parts(marks: TimelineMarks) -> Iterator[tuple[str, Style, _Mask, float | None]]:
    """Yield each kind with its style, a mask of its commits and the width of their bars, None for the usual one.

    Commits that only rewrite rows are apart, thin and gray. Bars of few commits are not wider than those of a dozen.
    """
    share = min(1.0, (int(marks.x[-1]) - int(marks.x[0]) + 1) / _FEW) if len(marks.x) else 1.0
    for kind, style, of_kind in marks.of_kinds():
        for chosen, look, width in (
            (of_kind & ~marks.bars.quiet, style, None if share == 1 else _WIDE * share),
            (of_kind & marks.bars.quiet, style.quiet(), _THIN * share),
        ):
            if chosen.any():
                yield kind, look, chosen, width


def _bars(marks: TimelineMarks) -> Iterator[go.Bar]:
    """Yield a bar up and a bar down per commit."""
    import plotly.graph_objects as go

    up, down = marks.drawn_sides
    for kind, look, chosen, width in _parts(marks):
        name = plotly_text(f"{look.sign} {kind}".strip())
        for values, shown in ((up, True), (-down, False)):
            if not shown and not values[chosen].any():
                continue
            yield go.Bar(
                x=marks.x[chosen],
                y=values[chosen],
                marker=look.filling(),
                name=name,
                width=width,
                legendgroup=kind,
                showlegend=shown,
                hoverinfo="skip",
            )


def _thin_bars(marks: TimelineMarks) -> Iterator[go.Scatter]:
    """Yield a line per commit from its additions to its removals: a single path per kind, which is drawn at once."""
    import plotly.graph_objects as go

    times = np.array(time_texts(marks.rows["committed_at"]), np.object_)
    times = np.where(marks.bars.unknown, times + f"<br>{marks.y} {marks.unknown_word}; in files:", times)
    thickness = max(1.0, _MAX_BARS / len(marks.rows))
    up, down = marks.drawn_sides
    is_drawn = ~marks.bars.unknown | (up + down > 0)
    for kind, look, of_kind, is_quiet in _parts(marks):
        chosen = of_kind & is_drawn
        name = plotly_text(f"{look.sign} {kind}".strip())
        if not chosen.any():
            continue
        counts = "+%{customdata[0]:,} -%{customdata[1]:,}" if is_quiet else "+%{y:,} -%{customdata:,}"
        ends = np.stack([up[chosen], -down[chosen], np.full(chosen.sum(), np.nan)], 1).ravel()
        is_exact = max(up[chosen].max(), down[chosen].max()) < _EXACT_FLOATS
        yield go.Scatter(
            x=np.repeat(marks.x[chosen], 3),
            y=ends.astype(np.float32) if is_exact else ends,
            mode="lines",
            line={"color": look.color, "width": thickness, "simplify": False},
            connectgaps=False,
            name=name,
            legendgroup=kind,
            hoverinfo="skip",
        )
        yield go.Scatter(
            x=marks.x[chosen],
            y=up[chosen],
            customdata=np.stack([marks.bars.up[chosen], marks.bars.down[chosen]], 1) if is_quiet else down[chosen],
            text=times[chosen].tolist(),
            mode="lines",  # as markers, each would be an element of the page
            line={"color": "rgba(0,0,0,0)"},
            showlegend=False,
            name=name,
            legendgroup=kind,
            hovertemplate=f"version %{{x}}<br>%{{text}} UTC<br>{name}<br>{marks.y} {counts}<extra></extra>",
        )


def _unknown(marks: TimelineMarks) -> Iterator[go.Scatter]:
    """Yield marks on the zero line for commits that do not record their changes."""
    import plotly.graph_objects as go

    if not marks.bars.unknown.any():
        return
    trace = go.Scattergl if _is_long(marks) else go.Scatter
    yield trace(
        x=marks.x[marks.bars.unknown],
        y=np.zeros(int(marks.bars.unknown.sum()), np.int8),
        mode="markers",
        marker={"symbol": "circle-x-open", "size": 8, "color": GRAY, "line": {"width": 1.5, "color": GRAY}},
        name=f"? {marks.y} {marks.unknown_word}",
        hovertemplate=f"version %{{x}}<br>{marks.y} {marks.unknown_word}<extra></extra>",
        hoverinfo=None if _is_long(marks) else "skip",
    )


def _tooltip(marks: TimelineMarks, template: str) -> dict[str, str]:
    """Return the tooltip of a trace; none where each commit has a complete one."""
    return (
        {"hovertemplate": f"version %{{x}}<br>{template}<extra></extra>"} if _is_long(marks) else {"hoverinfo": "skip"}
    )


def _total(marks: TimelineMarks) -> go.Scatter:
    import plotly.graph_objects as go

    values, name = marks.total_line
    even = bool((np.diff(marks.x) == 1).all())
    return go.Scatter(
        **({"x0": int(marks.x[0]), "dx": 1} if even else {"x": marks.x}),
        y=values,
        xaxis="x2",
        yaxis="y2",
        mode="lines" if len(values) > 1 else "markers",
        line={"color": GRAY, "width": 2, "shape": "hvh"},
        connectgaps=False,
        name=name,
        **_tooltip(marks, f"{name} %{{y:,}}"),
    )


def _shades(marks: TimelineMarks) -> Iterator[go.Scatter]:
    """Yield a gray area behind versions that can no longer be loaded, as one shape for each reason."""
    for word, name, pattern in UNREADABLE:
        ends = np.array([(shade.first, shade.last) for shade in marks.shades if shade.readable == word], np.int64)
        if len(ends):
            first, last = marks.x[ends].T
            yield shades(first, last, name=name, color=GRAY, pattern=pattern, panel="y3")


def _schema_changes(marks: TimelineMarks) -> Iterator[go.Scatter]:
    """Yield a dotted line from bottom to top at each schema change."""
    import plotly.graph_objects as go

    changed = marks.schema_changes
    if not changed.any():
        return
    x = np.repeat(marks.x[changed].astype(np.float64), 3)
    yield go.Scatter(
        x=x,
        y=np.tile(np.array([0, 1, np.nan], np.float32), int(changed.sum())),
        yaxis="y3",
        mode="lines",
        line={"color": PURPLE, "width": 1.5, "dash": "dot"},
        name="schema changed",
        **_tooltip(marks, "schema changed"),
    )


def _jumps(marks: TimelineMarks) -> Iterator[go.Scatter | go.Scattergl]:
    """Yield a mark between bars and totals for each version at which a number jumps."""
    import plotly.graph_objects as go

    if not marks.jumps:
        return
    indices, rules = zip(*marks.jumps, strict=True)
    trace = go.Scattergl if len(rules) > _MAX_BARS else go.Scatter
    yield trace(
        x=marks.x[list(indices)],
        y=np.full(len(rules), _JUMP_HEIGHT),
        yaxis="y3",
        mode="markers",
        marker={"symbol": "diamond", "size": 9, "color": VERMILLION, "line": {"width": 1, "color": GRAY}},
        name="jump",
        customdata=["<br>".join(map(escape_plotly, rule_lines(names))) for names in rules] if _is_long(marks) else None,
        **_tooltip(marks, "%{customdata}"),
    )


def _hover(marks: TimelineMarks) -> go.Scatter:
    """Return invisible points with the tooltips of their commits."""
    import plotly.graph_objects as go

    total_name = heading_of(marks.rows.schema.field("total_rows"))
    return go.Scatter(
        x=marks.x,
        y=marks.drawn_sides[0],
        mode="markers",
        marker={"opacity": 0, "color": GRAY},
        hovertext=[commit_hover_text(row, schema, total_name) for row, schema in commit_records(marks)],
        hoverinfo="text",
        name="commits",
        showlegend=False,
    )


def commit_records(marks: TimelineMarks) -> Iterator[tuple[dict[str, object], bool]]:
    """Return the commits as records, each with whether it changes the schema."""
    rows = marks.rows.drop_columns(["details"]).to_pylist()
    return zip(rows, marks.schema_changes.tolist(), strict=True)
