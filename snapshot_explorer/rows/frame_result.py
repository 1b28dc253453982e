"""`FrameResult`: a result whose data is a frame, with a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapshot_explorer.render import Drawable

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd
    import plotly.graph_objects as go
    import pyarrow as pa

    from snapshot_explorer.frames import Frame
    from snapshot_explorer.render.figures import Picture


class FrameResult(Drawable):
    """A result whose data is a frame, which it exports as the frame does."""

    __slots__ = ()

    @property
    def frame(self) -> Frame:
        """Return the data as a frame."""
        raise NotImplementedError

    def picture(self) -> Picture:
        """Return the result as a figure with its drawing beside it."""
        raise NotImplementedError

    def figure(self) -> go.Figure:
        """Return only the plotly figure; see `picture`."""
        return self.picture().figure

    def to_arrow(self) -> pa.Table:
        """Return the frame as an Arrow table."""
        return self.frame.to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """Return the frame as pandas with Arrow dtypes."""
        return self.frame.to_pandas()

    def to_json(self) -> str:
        """Return the frame as JSON text."""
        return self.frame.to_json()

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the frame to a CSV file; a struct such as `before` becomes a column per field: `before.amount`."""
        self.frame.to_csv(path)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the frame to a parquet file."""
        self.frame.to_parquet(path)
