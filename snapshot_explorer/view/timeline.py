"""Commits over versions, as a figure and as a table with a bar of signs for each commit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, get_args

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.records import Measure
from snapshot_explorer.history.anomaly_marks import with_marks
from snapshot_explorer.view.anomaly_marks import listed_rules, rule_lines
from snapshot_explorer.view.commits import OTHER, STYLES, UNREADABLE, commit_hover_text, commit_table, time_texts
from snapshot_explorer.view.drawing import Drawing, Line
from snapshot_explorer.view.figures import (
    INK,
    Picture,
    Style,
    axis,
    escape_plotly,
    layout,
    name_versions,
    numbers,
    numbers_with_gaps,
    plotly_text,
    shades,
    version_axis,
    version_positions,
)
from snapshot_explorer.view.flags import FlagLayer, bars_top, draw_flags, place_flags
from snapshot_explorer.view.palette import PURPLE, VERMILLION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt
    import plotly.graph_objects as go

    _Mask = npt.NDArray[np.bool_]
    _Numbers = npt.NDArray[np.int64]

_MAX_BARS = 1_000
"""The maximum number of commits drawn as bars with complete tooltips. More are thin lines, drawn by WebGL, with their
time and counts."""
_USUAL, _OUTLIER, _ROOM = 0.95, 4, 1.5
"""The axis ends at `_ROOM` times the quantile `_USUAL` of the bars if a bar is higher than `_OUTLIER` times it."""
_FEWEST_BARS, _NAMED_CUTS = 8, 6
_DATES = 7
"""The maximum number of dates on the axis."""
_THOUSAND = 1_000
_EXACT_FLOATS = 2**24
"""Floats of 32 bits have all whole numbers up to here."""
_LONG_BOTTOM = 150
"""Pixels below a long history: the dates, the range slider and two lines of the legend."""
_JUMP_HEIGHT = 0.32
"""The height of marks of jumps: between the bars and the line of totals."""


@dataclass(frozen=True)
class TimelineHistory:
    """COMMITS, oldest first, as arrays."""

    rows: pa.Table
    """COMMITS, the names of the branches that begin with each, and the columns of `with_marks`."""
    y: Measure
    """The measure: rows, files or bytes."""

    @cached_property
    def x(self) -> _Numbers:
        """The position of each commit."""
        return version_positions(numbers(self.rows["version"]))[0]

    @cached_property
    def counted_versions(self) -> _Numbers | None:
        """The versions, if `x` counts them."""
        return version_positions(numbers(self.rows["version"]))[1]

    @cached_property
    def added(self) -> _Numbers:
        """The amount that each commit added; 0 if unknown."""
        return numbers(self.rows[f"added_{self.y}"])

    @cached_property
    def removed(self) -> _Numbers:
        """The amount that each commit removed; 0 if unknown."""
        return numbers(self.rows[f"removed_{self.y}"])

    @cached_property
    def unknown(self) -> _Mask:
        """A mask of commits that do not record their additions or removals."""
        lacking: _Mask = (
            self.rows[f"added_{self.y}"].is_null().to_numpy() | self.rows[f"removed_{self.y}"].is_null().to_numpy()
        )
        return lacking

    @cached_property
    def kinds(self) -> npt.NDArray[np.object_]:
        """The kind of each commit."""
        kinds: npt.NDArray[np.object_] = self.rows["kind"].to_numpy()
        return kinds

    @cached_property
    def flags(self) -> list[FlagLayer]:
        """The flags of tags and branches."""
        return place_flags(self.rows, self.x)

    @property
    def is_long(self) -> bool:
        """Whether there are too many commits to draw each in full."""
        return len(self.rows) > _MAX_BARS

    def of_kinds(self) -> Iterator[tuple[str, Style, _Mask]]:
        """Yield each kind that occurs, in a fixed order, with its style and a mask of its commits."""
        present = set(self.kinds.tolist())
        for kind in [*STYLES, *sorted(present - set(STYLES), key=str)]:
            if kind in present:
                yield str(kind), STYLES.get(kind, OTHER), self.kinds == kind


def timeline(  # noqa: PLR0913 - the parts of one figure
    commits: pa.Table,
    *,
    y: str,
    title: str,
    total: int | None = None,
    heading: str | None = None,
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
        heading: The heading of the figure; by default the title.
        branches: The names of the branches that begin with a version, by version.
        anomalies: ANOMALIES: the versions to mark, with their rules.
        notes: Sentences on what is missing from the commits, such as a version; drawn below the heading.

    Raises:
        InvalidArgumentError: `y` is not a measure.
    """
    rows = with_marks(_with_branches(commits, branches or {}), anomalies)
    newest_first = rows.sort_by([("version", "descending")])
    history = TimelineHistory(newest_first.take(pa.array(np.arange(len(commits))[::-1])), _measure(y))
    log_length = total if total is not None and total > len(commits) else None
    grid = commit_table(newest_first, history.y, total)
    drawing = Drawing(title=title, parts=(*map(Line, notes), grid, *listed_rules(newest_first)))
    return Picture(drawing, lambda: _figure(history, heading or title, log_length, notes))


def _measure(y: str) -> Measure:
    if y not in get_args(Measure):
        raise InvalidArgumentError(f"A timeline counts {', '.join(get_args(Measure))}, not {y!r}. Try y='rows'.")
    measure: Measure = y  # type: ignore[assignment]  # just checked
    return measure


def history_of(
    commits: pa.Table, y: str, branches: Mapping[int, Sequence[str]], anomalies: pa.Table | None = None
) -> TimelineHistory:
    """Return commits as arrays, oldest first, with the names of the branches that begin with each, and their marks."""
    rows = with_marks(_with_branches(commits, branches), anomalies)
    return TimelineHistory(rows.sort_by([("version", "ascending")]), _measure(y))


def _with_branches(commits: pa.Table, branches: Mapping[int, Sequence[str]]) -> pa.Table:
    """Return commits with another column, the names of the branches that begin with each."""
    dtype = pa.list_(pa.string())
    names = [branches.get(version, ()) for version in commits["version"].to_pylist()] if branches else None
    return commits.append_column("branches", pa.nulls(len(commits), dtype) if names is None else pa.array(names, dtype))


def _figure(history: TimelineHistory, title: str, total: int | None, notes: Sequence[str]) -> go.Figure:
    import plotly.graph_objects as go

    count = len(history.rows)
    lines = [plotly_text(title), *([f"{count:,} of {total:,} versions"] if total else []), *map(plotly_text, notes)]
    heading = "<br>".join(lines)
    figure = go.Figure()
    figure.add_traces(list(_traces(history)) if count else [])
    over_all = {"overlaying": "y", "showgrid": False, "domain": [0, 1]}
    fixed = {"automargin": not history.is_long}
    figure.update_layout(
        layout(
            heading,
            barmode="relative",
            bargap=0.15,
            height=520,
            hovermode="closest" if history.is_long else "x",
            hoverdistance=30 if history.is_long else -1,
            # The title is above the plot, the legend below it: however many lines either has, they do not meet.
            # Plotly draws a figure again once it has found its margins, which a long history has fixed instead.
            margin={
                "l": 70,
                "r": 30,
                "t": 30 + 22 * len(lines),
                "b": _LONG_BOTTOM if history.is_long else 50,
                "autoexpand": not history.is_long,
            },
            legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
            annotations=list(_cut_marks(history)) if count else [],
            xaxis=version_axis(history.counted_versions, has_slider=False)
            | {"anchor": "y", "title": {"text": ""}}
            | fixed,
            xaxis2=_date_axis(history) | fixed,
            yaxis=axis(f"{history.y} added, removed", domain=[0.36, 1], **_range(history), **fixed),
            yaxis2=axis(total_line(history)[1], domain=[0, 0.28], zeroline=False, rangemode="tozero", **fixed),
            yaxis3={"range": [0, 1], "fixedrange": True, "visible": False, **over_all},
        )
    )
    if not count:
        figure.add_annotation(text="no commits", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)
    return name_versions(figure, history.counted_versions)


def _cut(values: _Numbers) -> float:
    """Return the maximum height of bars on a side: a few bars that are far higher than all others are cut."""
    others = values[values > 0]
    most = float(others.max(initial=0))
    usual = float(np.quantile(others, _USUAL, method="lower")) if len(others) >= _FEWEST_BARS else most
    return _ROOM * usual if most > _OUTLIER * usual else most


def _range(history: TimelineHistory) -> dict[str, list[float]]:
    """Return the range of the bars' axis if bars are cut or flags need space; otherwise plotly chooses one."""
    up, down = _cut(history.added), _cut(history.removed)
    is_cut = up < history.added.max(initial=0) or down < history.removed.max(initial=0)
    share, bottom = bars_top(history.flags), -1.05 * down
    if (share == 1 and not is_cut) or up == bottom:
        return {}
    top = bottom + (up - bottom) / share if share < 1 else 1.05 * up
    return {"range": [bottom, top]}


def _cut_marks(history: TimelineHistory) -> Iterator[dict[str, object]]:
    """Yield a mark with its height for each bar that is cut, up to a number of bars on each side."""
    for values, sign in ((history.added, 1), (history.removed, -1)):
        most = _cut(values)
        highest = np.argsort(-values, kind="stable")[:_NAMED_CUTS]
        for index in highest[values[highest] > most].tolist():
            text = f"{values[index]:,}" if values[index] < _THOUSAND else _short(float(values[index]))
            yield {
                "x": int(history.x[index]),
                "y": sign * most,
                "text": text,
                "showarrow": False,
                "yanchor": "top" if sign > 0 else "bottom",
                "font": {"size": 10},
                "xanchor": "left",
                "xshift": 3,
            }


def _short(value: float) -> str:
    """Return a large number in few letters, such as 90k."""
    for limit, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{letter}"
    return f"{value:g}"


def _date_axis(history: TimelineHistory) -> dict[str, object]:
    """Return an axis below the totals with the dates of some versions."""
    known = np.flatnonzero(history.rows["committed_at"].is_valid().to_numpy())
    if not len(known):
        return version_axis(history.counted_versions) | {"matches": "x", "anchor": "y2"}
    chosen = known[np.unique(np.linspace(0, len(known) - 1, min(_DATES, len(known))).astype(int))]
    texts = time_texts(history.rows["committed_at"].take(pa.array(chosen)))
    days = [text[: len("2026-11-22")] for text in texts]
    labels = days if len({*days}) > 1 else [text[len("2026-11-22 ") :] for text in texts]
    # The same day twice would only be noise.
    shown = [label if index == 0 or label != labels[index - 1] else "" for index, label in enumerate(labels)]
    ticks = {"tickmode": "array", "tickvals": history.x[chosen], "ticktext": shown}
    return version_axis(history.counted_versions) | {"matches": "x", "anchor": "y2", **ticks}


def _traces(history: TimelineHistory) -> Iterator[go.Scatter | go.Bar]:
    """Yield the traces of the figure, from the back to the front."""
    yield from _shades(history)
    yield from _thin_bars(history) if history.is_long else _bars(history)
    yield from _unknown(history)
    yield _total(history)
    yield from _schema_changes(history)
    version_template = "%{x}" if history.is_long else None
    yield from _jumps(history)
    yield from (draw_flags(flags, version_template=version_template) for flags in history.flags)
    if not history.is_long:
        yield _hover(history)


def _bars(history: TimelineHistory) -> Iterator[go.Bar]:
    """Yield a bar up and a bar down per commit."""
    import plotly.graph_objects as go

    for kind, look, chosen in history.of_kinds():
        name = plotly_text(f"{look.sign} {kind}".strip())
        for values, shown in ((history.added, True), (-history.removed, False)):
            if not shown and not values[chosen].any():
                continue
            yield go.Bar(
                x=history.x[chosen],
                y=values[chosen],
                marker=look.filling(),
                name=name,
                legendgroup=kind,
                showlegend=shown,
                hoverinfo="skip",
            )


def _thin_bars(history: TimelineHistory) -> Iterator[go.Scatter]:
    """Yield a line per commit from its additions to its removals: a single path per kind, which is drawn at once."""
    import plotly.graph_objects as go

    times = np.array(time_texts(history.rows["committed_at"]), np.object_)
    width = max(1.0, _MAX_BARS / len(history.rows))
    for kind, look, of_kind in history.of_kinds():
        chosen = of_kind & ~history.unknown
        name = plotly_text(f"{look.sign} {kind}".strip())
        if not chosen.any():
            continue
        added, removed = history.added[chosen], history.removed[chosen]
        ends = np.stack([added, -removed, np.full(len(added), np.nan)], 1).ravel()
        is_exact = max(added.max(), removed.max()) < _EXACT_FLOATS
        yield go.Scatter(
            x=np.repeat(history.x[chosen], 3),
            y=ends.astype(np.float32) if is_exact else ends,
            mode="lines",
            line={"color": look.color, "width": width, "simplify": False},
            connectgaps=False,
            name=name,
            legendgroup=kind,
            hoverinfo="skip",
        )
        yield go.Scatter(
            x=history.x[chosen],
            y=added,
            customdata=removed,
            text=times[chosen].tolist(),
            mode="lines",  # as markers, each would be an element of the page
            line={"color": "rgba(0,0,0,0)"},
            showlegend=False,
            name=name,
            legendgroup=kind,
            hovertemplate=f"version %{{x}}<br>%{{text}} UTC<br>{name}<br>"
            f"{history.y} +%{{y:,}} -%{{customdata:,}}<extra></extra>",
        )


def _unknown(history: TimelineHistory) -> Iterator[go.Scatter]:
    """Yield marks on the zero line for commits that do not record their changes."""
    import plotly.graph_objects as go

    if not history.unknown.any():
        return
    trace = go.Scattergl if history.is_long else go.Scatter
    yield trace(
        x=history.x[history.unknown],
        y=np.zeros(int(history.unknown.sum()), np.int8),
        mode="markers",
        marker={"symbol": "circle-x-open", "size": 8, "color": INK, "line": {"width": 1.5, "color": INK}},
        name=f"? {history.y} not known",
        hovertemplate=f"version %{{x}}<br>{history.y} not known<extra></extra>",
        hoverinfo=None if history.is_long else "skip",
    )


def total_line(history: TimelineHistory) -> tuple[npt.NDArray[np.int64] | npt.NDArray[np.float64], str]:
    """Return the recorded totals, otherwise the sums over the drawn commits, and the name of the line."""
    totals = history.rows["total_rows"]
    if history.y == "rows" and (history.unknown.any() or not totals.null_count):
        return numbers_with_gaps(totals), "total rows"
    net = np.cumsum(history.added - history.removed)
    if not history.unknown.any():
        return net, f"net {history.y} of these commits"
    # After the first commit without counts, the total is unknown.
    known = np.cumsum(history.unknown) == 0
    return np.where(known, net.astype(np.float64), np.nan), f"net {history.y} of these commits"


def _total(history: TimelineHistory) -> go.Scatter:
    import plotly.graph_objects as go

    values, name = total_line(history)
    even = bool((np.diff(history.x) == 1).all())
    return go.Scatter(
        **({"x0": int(history.x[0]), "dx": 1} if even else {"x": history.x}),
        y=values,
        xaxis="x2",
        yaxis="y2",
        mode="lines" if len(values) > 1 else "markers",
        line={"color": INK, "width": 2, "shape": "hvh"},
        connectgaps=False,
        name=name,
        hovertemplate=f"version %{{x}}<br>{name} %{{y:,}}<extra></extra>" if history.is_long else None,
        hoverinfo=None if history.is_long else "skip",
    )


def _shades(history: TimelineHistory) -> Iterator[go.Scatter]:
    """Yield a gray area behind versions that can no longer be loaded, as one shape."""
    readable = history.rows["readable"].to_numpy()
    for word, name, pattern in UNREADABLE:
        gone = history.x[readable == word]
        if not len(gone):
            continue
        cuts = np.flatnonzero(np.diff(gone) != 1) + 1
        first, last = gone[np.concatenate([[0], cuts])], gone[np.concatenate([cuts - 1, [-1]])]
        yield shades(first, last, name=name, color=INK, pattern=pattern, panel="y3")


def _schema_changes(history: TimelineHistory) -> Iterator[go.Scatter]:
    """Yield a dotted line from bottom to top at each schema change."""
    import plotly.graph_objects as go

    changed = changed_schema(history.rows)
    if not changed.any():
        return
    x = np.repeat(history.x[changed].astype(np.float64), 3)
    yield go.Scatter(
        x=x,
        y=np.tile(np.array([0, 1, np.nan], np.float32), int(changed.sum())),
        yaxis="y3",
        mode="lines",
        line={"color": PURPLE, "width": 1.5, "dash": "dot"},
        name="schema changed",
        hovertemplate="version %{x}<br>schema changed<extra></extra>" if history.is_long else None,
        hoverinfo=None if history.is_long else "skip",
    )


def changed_schema(rows: pa.Table) -> _Mask:
    """Return which commits change the schema, by their kind or because the schema id differs from the commit before."""
    ids = rows["schema_id"].combine_chunks()
    changed: _Mask = rows["kind"].to_numpy() == "schema"
    if len(ids) > 1:
        differs = pc.fill_null(pc.not_equal(ids[1:], ids[:-1]), False)  # noqa: FBT003 - unknown values are not shown
        changed = changed | np.concatenate([[False], differs.to_numpy(zero_copy_only=False)])
    return changed


def _jumps(history: TimelineHistory) -> Iterator[go.Scatter | go.Scattergl]:
    """Yield a mark between bars and totals for each version at which a number jumps."""
    import plotly.graph_objects as go

    marked = history.rows["rules"].is_valid().to_numpy()
    if not marked.any():
        return
    rules = history.rows["rules"].filter(pa.array(marked)).to_pylist()
    trace = go.Scattergl if len(rules) > _MAX_BARS else go.Scatter
    yield trace(
        x=history.x[marked],
        y=np.full(len(rules), _JUMP_HEIGHT),
        yaxis="y3",
        mode="markers",
        marker={"symbol": "diamond", "size": 9, "color": VERMILLION, "line": {"width": 1, "color": INK}},
        name="jump",
        customdata=["<br>".join(map(escape_plotly, rule_lines(names))) for names in rules] if history.is_long else None,
        hovertemplate="version %{x}<br>%{customdata}<extra></extra>" if history.is_long else None,
        hoverinfo=None if history.is_long else "skip",
    )


def _hover(history: TimelineHistory) -> go.Scatter:
    """Return invisible points with the tooltips of their commits."""
    import plotly.graph_objects as go

    return go.Scatter(
        x=history.x,
        y=history.added,
        mode="markers",
        marker={"opacity": 0, "color": INK},
        hovertext=[commit_hover_text(row, schema) for row, schema in commit_records(history)],
        hoverinfo="text",
        name="commits",
        showlegend=False,
    )


def commit_records(history: TimelineHistory) -> Iterator[tuple[dict[str, object], bool]]:
    """Return the commits as records, each with whether it changes the schema."""
    rows = history.rows.drop_columns(["details"]).to_pylist()
    return zip(rows, changed_schema(history.rows).tolist(), strict=True)
