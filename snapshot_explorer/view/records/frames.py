"""Drawings of metadata tables: their rows, in the form of their kind; and the figures of some kinds."""

from contextlib import suppress

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import NOT_CHECKED, readable_words
from snapshot_explorer.core.errors import SnapshotExplorerError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.results.frame import Frame
from snapshot_explorer.view.commits import log_rows, with_totals
from snapshot_explorer.view.dispatch import depict, draw
from snapshot_explorer.view.drawing import DRAWN_ROWS, Drawing, Grid, Line
from snapshot_explorer.view.figures import Picture
from snapshot_explorer.view.timeline.figure import timeline
from snapshot_explorer.view.tracks.action_timeline import action_timeline
from snapshot_explorer.view.tracks.branch_graph import branch_graph
from snapshot_explorer.view.tracks.lake_timeline import lake_timeline
from snapshot_explorer.view.tracks.slice_tracks import slice_tracks
from snapshot_explorer.view.tracks.svg import TracksPicture

_EXACT = Hint("table.history", {"exact": True})


@draw.register
def _frame(frame: Frame) -> Drawing:
    """The notes, and the first rows in the columns to draw, without the columns in which nothing was checked."""
    limit = DRAWN_ROWS if frame.limit is None else frame.limit
    rows = drawn_rows(frame, limit)
    own = frozenset(frame.column_names)
    unchecked = [name for name in rows.column_names if name in own and frame.is_unchecked(name)]
    rows = rows.drop_columns(unchecked)
    # Rows that are not drawn at all do not count as cut off.
    total = max(frame.total or 0, len(rows), len(frame) if len(frame) > limit else 0)
    grid = Grid(rows, total=total, noun=frame.noun, limit=frame.limit)
    remarks = [Line(f"{name}: {NOT_CHECKED}; verify looks for every file", is_faint=True) for name in unchecked]
    if "rows" in rows.column_names and frame.options.get("exact") is False and _has_uncounted(frame.first_rows(limit)):
        remarks.append(Line(Message("rows: not all counted; ", _EXACT, " reads those that differ"), is_faint=True))
    return Drawing(title=frame.title, parts=(*map(Line, frame.notes), grid, *remarks))


def _has_uncounted(commits: pa.Table) -> bool:
    """Return whether a readable commit has no logical counts."""
    return bool(pc.any(pc.and_(commits["rows_inserted"].is_null(), commits["kind"].is_valid())).as_py())


def drawn_rows(frame: Frame, limit: int | None = None) -> pa.Table:
    """Return the rows of a frame as they are drawn; up to a limit, if its kind is drawn differently from its data."""
    match frame.kind:
        case "log" | "lake log":
            first = frame.first_rows(limit)
            readability = frame.options.get("readability")
            rows = log_rows(first, None if readability is None else readability.in_words(first))
        case "readability":
            rows = _in_words(frame.first_rows(limit))
        case "parts":
            parts = frame.first_rows(limit)
            # Without the lines for shared, added and removed files if there are none.
            rows = parts.filter(pc.or_(pc.not_equal(parts["files"], 0), pc.starts_with(parts["part"], "in ")))
        case _:
            rows = frame.to_arrow()
    return rows.select(list(frame.drawn)) if frame.drawn else rows


@depict.register
def _picture(frame: Frame, *, y: str = "rows") -> Picture:
    """The figure of the frame's kind. The bars of a log count `y`."""
    match frame.kind:
        case "log":
            return _timeline(frame, y)
        case "lake log":
            return lake_timeline(frame.to_arrow(), title=frame.title, notes=frame.notes, **frame.options)
        case "actions":
            return action_timeline(frame.to_arrow(), title=frame.title)
        case "slices":
            return slice_tracks(frame.to_arrow(), title=frame.title)
        case "branches":
            return TracksPicture(_frame(frame), lambda: branch_graph(frame.options["history"]))
    raise UnsupportedFeatureError(
        Message(
            f"There is no figure of {frame.title!r}. There is one of ",
            Hint("table.history"),
            ", ",
            Hint("table.lifetimes"),
            " and ",
            Hint("table.compare", {"a": ..., "b": ...}),
            ", and of the metadata tables for which ",
            Hint("table.inspect"),
            " says so.",
        )
    )


def _timeline(frame: Frame, y: str) -> Picture:
    """Return commits as a picture. Reads the totals if it draws rows and a commit that can be loaded has none."""
    rows, totals = frame.to_arrow(), frame.options.get("totals")
    loadable = rows.filter(pc.fill_null(pc.not_equal(rows["readable"], "no"), fill_value=True))
    if totals is not None and y == "rows" and loadable["total_rows"].null_count:
        with suppress(SnapshotExplorerError):  # the totals remain unknown
            rows = with_totals(rows, totals())
    anomalies = frame.options.get("anomalies")
    return timeline(rows, y=y, title=frame.title, total=frame.total, anomalies=anomalies, notes=frame.notes)


def _in_words(rows: pa.Table) -> pa.Table:
    """Return READABILITY with its reasons in `readable`."""
    pairs = zip(rows["readable"].to_pylist(), rows["reason"].to_pylist(), strict=True)
    words = pa.array([readable_words(*pair) for pair in pairs], pa.string())
    field = rows.schema.field("reason").with_name("readable")
    return rows.set_column(rows.schema.get_field_index("readable"), field, words)
