"""What is drawn of records, as aligned text, as HTML and as figures: `drawing_of` and `picture_of`, by their types.

Records carry no drawing. The explorer's page is in `jupyter.explorer`.
"""

from collections.abc import Callable
from typing import Any

from snapshot_explorer.core.hints import Hint, python_call
from snapshot_explorer.view.dispatch import FIGURED, PICTURED, drawing_of, picture_of
from snapshot_explorer.view.drawing import (
    DRAWN_ROWS,
    Code,
    Drawing,
    Grid,
    Item,
    Lane,
    LaneDiagram,
    Line,
    Pairs,
    Part,
    codes_of,
    shortened,
    spelled,
)
from snapshot_explorer.view.html import render_html
from snapshot_explorer.view.svg import ShownFigure, SvgPicture
from snapshot_explorer.view.text import render_text

__all__ = [
    "DRAWN_ROWS",
    "Code",
    "Drawing",
    "Grid",
    "Item",
    "Lane",
    "LaneDiagram",
    "Line",
    "Pairs",
    "Part",
    "ShownFigure",
    "SvgPicture",
    "codes_of",
    "drawing_of",
    "mimebundle_of",
    "picture_of",
    "render_html",
    "render_text",
    "shortened",
    "spelled",
    "text_of",
]


def mimebundle_of(record: Any, *, limit: int = DRAWN_ROWS, call: Callable[[Hint], str] = python_call) -> dict[str, Any]:
    """Return a record as `text/plain` and `text/html`, and a figure of plotly as its own, for `_repr_mimebundle_`.

    Args:
        limit: Rows to draw of a grid that has no limit of its own.
        call: Spells the hints.
    """
    if type(record).__name__ in FIGURED and len(record):
        record = picture_of(record).figure
    drawing = spelled(drawing_of(record), call)
    return {
        **(record.formats if isinstance(record, ShownFigure) else {}),
        "text/plain": render_text(drawing, limit=limit),
        "text/html": render_html(drawing, limit=limit, can_copy=True, picture=_shown_picture(record)),
    }


def _shown_picture(record: object) -> str:
    """Return the picture that a record shows by itself, as HTML; empty if it shows only its drawing."""
    if isinstance(record, SvgPicture):
        return record.svg
    if type(record).__name__ not in PICTURED:
        return ""
    from snapshot_explorer.view.tracks.svg import TracksPicture, brief_html  # noqa: PLC0415 - few records have one

    picture = picture_of(record, **PICTURED[type(record).__name__])
    return brief_html(picture.tracks) if isinstance(picture, TracksPicture) else ""


def text_of(record: object) -> str:
    """Return a record as aligned text."""
    return render_text(drawing_of(record))
