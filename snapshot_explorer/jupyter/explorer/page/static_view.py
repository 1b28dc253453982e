"""The explorer on pages without widgets: a table and a picture, as text and as HTML without scripts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from snapshot_explorer.jupyter.zones import ago, local_text
from snapshot_explorer.model import gaps_text
from snapshot_explorer.overview import total_rows_name
from snapshot_explorer.render import Drawing, Grid, Line, html, text
from snapshot_explorer.render.cells import counted, cut, size
from snapshot_explorer.render.figures import INK, numbers
from snapshot_explorer.render.palette import BLUE, GREEN, VERMILLION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from snapshot_explorer.jupyter.explorer.reading import Log, TableSize
    from snapshot_explorer.jupyter.explorer.state import ExplorerState
    from snapshot_explorer.render import Part
    from snapshot_explorer.table import Table

LIVE = "sx-explorer"
"""The CSS class of an explorer on a page with widgets."""
_STYLE = (
    f"<style>.jp-OutputArea:has(.{LIVE}) .sx-still,.vscode-light:has(.{LIVE}) .sx-still,"
    f".vscode-dark:has(.{LIVE}) .sx-still,.vscode-high-contrast:has(.{LIVE}) .sx-still{{display:none}}"
    # Where no kernel runs, the output behind the picture only says that there is no such widget.
    f".jp-OutputArea-child:has(.sx-still)+.jp-OutputArea-child:not(:has(.{LIVE})){{display:none}}</style>"
)
"""Hides the picture where the explorer itself is shown, and the empty output of the explorer where it is not."""
_MOST_BYTES = 60_000
"""The size in bytes up to which a picture has all its rows."""
_BARS = 120
_COMMITS = 15
"""Commits of the table."""
_NAMED, _LONGEST = 4, 40
"""The most branches that are named, and characters of a name."""
_WIDTH, _HEIGHT, _EDGE = 960, 160, 16
_EDGE_NAMES = 60
"""The distance to an edge at which a name centred on its marker would be cut off."""


def head(table: Table, state: ExplorerState, log: Log | None, table_size: TableSize | None) -> list[str]:
    """Return facts about the table, a line each: name, format and path, versions, rows, files, branches."""
    branch = f" branch {table.branch}" if table.branch else ""
    lines = [f"{table.name} {table.format}{branch} {table.path}"]
    if log is None:
        return lines
    if not state.versions:
        return [*lines, "no version yet"]
    first, last, lost = state.versions[0], state.versions[-1], len(state.versions) - len(state.readable)
    span = f"({first} to {last})" if len(state.versions) > 1 else f"({first})"
    lines.append(
        f"{counted(len(state.versions), 'version')} {span}" + (f", {lost:,} cannot be loaded any more" if lost else "")
    )
    gaps = log.listing.gaps(log.versions)
    lines += [gaps_text(gaps)] if gaps else []
    unread = len(state.versions) - len(state.commits)
    lines += [f"the newest {len(state.commits):,} are shown"] if unread > 0 else []
    total = state.commit(last)["total_rows"].to_pylist()
    of_what = total_rows_name(table.bound).removeprefix("rows")
    lines += [f"{counted(total[0], 'row')}{of_what}"] if total and total[0] is not None else []
    lines += [f"{counted(table_size.files, 'file')}, {size(table_size.size_bytes)}"] if table_size is not None else []
    lines += [_branches(log.branches)] if log.branches else []
    return lines


def newest_commit(log: Log, zone: str) -> str | None:
    """Return when the newest commit was, and how long ago; for pages with widgets, since it changes."""
    time = log.commits["committed_at"][0].as_py() if len(log.commits) else None
    if time is None:
        return None
    local = local_text(time, zone)
    return f"newest commit {ago(time, datetime.now(UTC))}" + (f", {local}" if local else "")


def _branches(branches: Mapping[str, int | None]) -> str:
    """Return the other branches, and their first versions."""
    more = len(branches) - _NAMED
    named = [
        cut(name, _LONGEST) + ("" if version is None else f" from {version}")
        for name, version in list(branches.items())[:_NAMED]
    ]
    return f"branches {', '.join(named)}" + (f" and {more:,} more" if more > 0 else "")


def static_view(lead: Sequence[str], parts: Sequence[Part], view: Drawing | None, *, title: str) -> Drawing:
    """Return the explorer as one drawing: facts about the table, its commits, and the view of the selected tab."""
    lines = tuple(Line(line) for line in lead)
    shown = (Line(view.title), *view.parts) if view is not None else ()
    lines += (Line("A picture of the explorer. Run this in a notebook for the explorer itself."),)
    return Drawing(title=title, parts=(*lines, *parts, *shown))


def static_text(drawing: Drawing) -> str:
    """Return the drawing as text."""
    return text(_cut(drawing, _COMMITS), limit=_COMMITS)


def static_html(drawing: Drawing, commits: pa.Table, *, measure: str, a: int | None, b: int | None) -> str:
    """Return the drawing as HTML, below a picture of the newest commits."""
    picture, rows = _picture(commits, measure, a, b), _COMMITS
    table = html(_cut(drawing, rows), limit=rows)
    while len(picture) + len(table) > _MOST_BYTES and rows > 1:
        rows //= 2
        table = html(_cut(drawing, rows), limit=rows)
    return f'{_STYLE}<div class="sx-still">{picture}{table}</div>'


def shown_later_html() -> str:
    """Return the line above the picture of an explorer that a later cell shows."""
    return '<p class="sx-still">A later cell shows the explorer; this is what it showed here.</p>'


def skeleton_html() -> str:
    """Return a frame of the explorer's size, for the time until the page has drawn it."""
    style = "height:420px;border:1px solid rgba(128,128,128,.3);border-radius:8px"
    return f'{_STYLE}<div class="sx-still" style="{style}"></div>'


def _cut(drawing: Drawing, rows: int) -> Drawing:
    """Return a drawing whose grids draw at most this many rows."""
    parts = (
        replace(part, limit=min(part.limit, rows)) if isinstance(part, Grid) and part.limit is not None else part
        for part in drawing.parts
    )
    return replace(drawing, parts=tuple(parts))


def _picture(commits: pa.Table, measure: str, a: int | None, b: int | None) -> str:
    """Return bars up for what commits added, and down for what they removed, the newest on the right, as SVG.

    Its texts end with a blank: pages that drop SVG, such as untrusted notebooks, keep them in a row.
    """
    if not len(commits):
        return ""
    rows = commits.slice(0, _BARS)
    versions = rows["version"].to_pylist()[::-1]
    added, removed = (numbers(rows[f"{side}_{measure}"])[::-1].astype(np.float64) for side in ("added", "removed"))
    label = escape(f"{measure} added and removed by versions {versions[0]} to {versions[-1]}")
    marks = {at: "A B" if a == b else name for name, at in (("A", a), ("B", b)) if at is not None}
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}" '
        f'style="width:100%;max-width:{_WIDTH}px;height:auto" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{label}: </title>{''.join(_bars(versions, added, removed, marks))}"
        "</svg>"
    )


def _bars(
    versions: Sequence[int], added: npt.NDArray[np.float64], removed: npt.NDArray[np.float64], marks: dict[int, str]
) -> Iterator[str]:
    up, down = float(added.max(initial=0)), float(removed.max(initial=0))
    scale = (_HEIGHT - 3 * _EDGE) / max(1.0, up + down)
    zero = _EDGE + up * scale
    step = _WIDTH / len(versions)
    width = max(1.0, step * 0.7)
    for at, version in enumerate(versions):
        x = at * step + (step - width) / 2
        rise, fall = float(added[at]) * scale, float(removed[at]) * scale
        yield f'<rect x="{x:.1f}" y="{zero - rise:.1f}" width="{width:.1f}" height="{rise:.1f}" fill="{GREEN}"/>'
        yield f'<rect x="{x:.1f}" y="{zero:.1f}" width="{width:.1f}" height="{fall:.1f}" fill="{VERMILLION}"/>'
        if version in marks:
            yield _mark(x + width / 2, marks[version], version)
    yield f'<line x1="0" x2="{_WIDTH}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="{INK}"/>'
    for x, anchor, version in ((0, "start", versions[0]), (_WIDTH, "end", versions[-1])):
        yield (
            f'<text x="{x}" y="{_HEIGHT - 4}" fill="currentColor" font-size="12" text-anchor="{anchor}">'
            f"version {version} </text>"
        )


def _mark(x: float, letters: str, version: int) -> str:
    """Return a marker: its line, and its name at the end of the line that the other marker's name leaves free."""
    end = _HEIGHT - 2 * _EDGE
    y = end + _EDGE - 4 if letters == "B" else _EDGE - 4
    anchor = "start" if x < _EDGE_NAMES else "end" if x > _WIDTH - _EDGE_NAMES else "middle"
    colour = BLUE if letters == "B" else VERMILLION
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_EDGE}" y2="{end}" stroke="{colour}"/>'
        f'<text x="{x:.1f}" y="{y}" fill="currentColor" font-size="12" text-anchor="{anchor}">'
        f"{letters} {version} </text>"
    )
