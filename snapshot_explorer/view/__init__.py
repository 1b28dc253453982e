"""What is drawn of records, as aligned text, as HTML and as figures: `drawing_of` and `picture_of`, by their types.

Records carry no drawing. The explorer's page is in `jupyter.explorer`.
"""

from snapshot_explorer.view.dispatch import drawing_of, picture_of
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
    spelled,
)
from snapshot_explorer.view.html import render_html
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
    "codes_of",
    "drawing_of",
    "mimebundle",
    "mimebundle_of",
    "picture_of",
    "render_html",
    "render_text",
    "spelled",
    "text_of",
]


def mimebundle(drawing: Drawing, *, limit: int = DRAWN_ROWS) -> dict[str, str]:
    """Return the drawing as `text/plain` and `text/html`, for `_repr_mimebundle_`.

    Args:
        limit: Rows to draw of a grid that has no limit of its own.
    """
    return {
        "text/plain": render_text(drawing, limit=limit),
        "text/html": render_html(drawing, limit=limit, can_copy=True),
    }


def text_of(record: object) -> str:
    """Return a record as aligned text."""
    return render_text(drawing_of(record))


def mimebundle_of(record: object) -> dict[str, str]:
    """Return a record as `text/plain` and `text/html`, for `_repr_mimebundle_`."""
    return mimebundle(drawing_of(record))
