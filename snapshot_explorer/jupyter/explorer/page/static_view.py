"""The explorer on pages without widgets: a table and a picture, as text and as HTML without scripts."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape

import pyarrow as pa

from snapshot_explorer.analysis.health import RHYTHM_COMMITS, rhythm, span
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import truncate
from snapshot_explorer.core.records import MAINTENANCE_KINDS, gaps_text
from snapshot_explorer.core.text import format_size, list_names, pluralize
from snapshot_explorer.history.overview import total_rows_name
from snapshot_explorer.jupyter.explorer.reading import Log, TableSize
from snapshot_explorer.jupyter.explorer.state import ExplorerState
from snapshot_explorer.table import Table
from snapshot_explorer.view import Drawing, Line, Part, render_html, render_text, shortened
from snapshot_explorer.view.text import WIDTH
from snapshot_explorer.view.timeline.commit_bars import commit_bars

LIVE = "sx-explorer"
"""The CSS class of an explorer on a page with widgets."""
_STYLE = (
    f"<style>.jp-OutputArea:has(.{LIVE}) .sx-still,.vscode-light:has(.{LIVE}) .sx-still,"
    f".vscode-dark:has(.{LIVE}) .sx-still,.vscode-high-contrast:has(.{LIVE}) .sx-still{{display:none}}"
    # Without a kernel, the output behind the picture only states that there is no such widget.
    f".jp-OutputArea-child:has(.sx-still)+.jp-OutputArea-child:not(:has(.{LIVE})){{display:none}}</style>"
)
"""Hides the picture if the explorer itself is shown, and the empty output of the explorer otherwise."""
_MOST_BYTES = 60_000
"""The size in bytes up to which a picture has all its rows."""
_COMMITS = 15
"""Commits of the table."""
_NAMED, _LONGEST = 4, 40
"""The maximum number of named branches, and of characters of a name."""


def head(table: Table, state: ExplorerState, log: Log | None, table_size: TableSize | None) -> list[str]:
    """Return facts about the table, a line each: name, format and path, versions, rows, files, branches."""
    branch = f" branch {table.current.branch}" if table.current.branch else ""
    lines = [f"{table.name} {table.format}{branch} {table.path}"]
    if log is None:
        return lines
    if not state.versions:
        return [*lines, "no version yet"]
    first, last, lost = state.versions[0], state.versions[-1], len(state.versions) - len(state.readable)
    span = f"({first} to {last})" if len(state.versions) > 1 else f"({first})"
    lines.append(
        f"{pluralize(len(state.versions), 'version')} {span}"
        + (f", {lost:,} cannot be loaded any more" if lost else "")
    )
    gaps = log.listing.gaps(log.versions)
    lines += [gaps_text(gaps)] if gaps else []
    unread = len(state.versions) - len(state.commits)
    lines += [f"the newest {len(state.commits):,} are shown"] if unread > 0 else []
    newest = state.commit(last)
    total, of_what = newest["total_rows"].to_pylist(), total_rows_name(newest).removeprefix("rows")
    lines += [f"{pluralize(total[0], 'row')}{of_what}"] if total and total[0] is not None else []
    lines += (
        [f"{pluralize(table_size.files, 'file')}, {format_size(table_size.size_bytes)}"]
        if table_size is not None
        else []
    )
    lines += [_branches(log.branches)] if log.branches else []
    return lines


def late_text(log: Log) -> str:
    """Return since when a table that receives commits in a rhythm has received none; empty if it is not late."""
    newest = log.commits.slice(0, RHYTHM_COMMITS)
    times = newest.filter(pc.invert(pc.is_in(newest["kind"], pa.array(MAINTENANCE_KINDS))))["committed_at"]
    found = rhythm(times.drop_null().to_pylist(), datetime.now(UTC))
    if found.pace != "late" or found.age is None or found.usual_gap is None:
        return ""
    return f"late: no commit for {span(found.age)}, usually every {span(found.usual_gap)}"


def _branches(branches: Mapping[str, int | None]) -> str:
    """Return the other branches, and their first versions."""
    named = [
        truncate(name, _LONGEST) + ("" if version is None else f" from {version}") for name, version in branches.items()
    ]
    return f"branches {list_names(named, _NAMED)}"


def static_view(lead: Sequence[str], parts: Sequence[Part], view: Drawing | None, *, title: str) -> Drawing:
    """Return the explorer as one drawing: facts about the table, its commits, and the view of the selected tab."""
    lines = tuple(Line(line) for line in lead)
    shown = (Line(view.title), *view.parts) if view is not None else ()
    lines += (Line("A picture of the explorer. Run this in a notebook for the explorer itself."),)
    return Drawing(title=title, parts=(*lines, *parts, *shown))


def static_text(drawing: Drawing, *, room: int = WIDTH) -> str:
    """Return the drawing as text of a width."""
    return render_text(shortened(drawing, _COMMITS), room=room)


def static_html(drawing: Drawing, commits: pa.Table, *, measure: str, a: int | None, b: int | None) -> str:
    """Return the drawing as HTML, with a PNG picture of the newest commits below its title."""
    picture, rows = commit_bars(commits, measure, a, b), _COMMITS
    html = render_html(shortened(drawing, rows), picture=picture)
    while len(html) > _MOST_BYTES and rows > 1:
        rows //= 2
        html = render_html(shortened(drawing, rows), picture=picture)
    return still_html(html)


def still_html(content: str) -> str:
    """Return HTML that is hidden where the widget itself is shown."""
    return f'{_STYLE}<div class="sx-still">{content}</div>'


def with_page(still: str, page: bytes, name: str) -> str:
    """Return HTML that shows a recorded page in place of the picture, wherever frames may run scripts.

    Others, such as GitHub and notebooks that are not trusted, remove the frame and show the picture.
    """
    content = escape(page.decode()).replace("\n", "&#10;")  # one line: a converter to Markdown leaves it as it is
    frame = f'<iframe title="The explorer of {escape(name)}" sandbox="allow-scripts allow-downloads" loading="lazy"'
    style = "<style>.sx-still:has(>iframe)~.sx-still{display:none}</style>"
    sized = f'{frame} style="width:100%;height:1080px;border:0" srcdoc="{content}"></iframe>'
    return f'{style}<div class="sx-still">{sized}</div>{still}'


def shown_later_html() -> str:
    """Return the line above the picture of an explorer that a later cell shows."""
    return '<p class="sx-still">A later cell shows the explorer; this is what it showed here.</p>'


def skeleton_html() -> str:
    """Return a frame of the explorer's size, for the time until the page has drawn it."""
    style = "height:420px;border:1px solid rgba(128,128,128,.3);border-radius:8px"
    return f'{_STYLE}<div class="sx-still" style="{style}"></div>'
