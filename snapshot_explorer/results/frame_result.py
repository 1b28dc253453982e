"""`FrameResult`: a result whose data is a frame, with a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapshot_explorer.core.shown import Shown, figure_of
from snapshot_explorer.results import Exportable

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

    from snapshot_explorer.results import Frame


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FrameResult(Exportable, Shown):
    """A result on versions of a table, whose data is a frame."""

    path: str
    """The table's location."""
    name: str
    """The table's name."""
    format: str
    """The table's format."""
    versions: tuple[int, ...]
    """The versions that were searched, ascending."""
    span: str
    """The first and the last version with their times."""

    @property
    def frame(self) -> Frame:
        """Return the data as a frame."""
        raise NotImplementedError

    def picture(self) -> go.Figure | Shown:
        """Return the result as a figure, of a profile as one of plotly; `svg` of the others is their text as SVG.

        It displays as its text on pages that show no figures.
        """
        return figure_of(self)

    def to_arrow(self) -> pa.Table:
        return self.frame.to_arrow()
