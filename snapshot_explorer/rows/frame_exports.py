"""`FrameExports`: the exports of results whose data is a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd
    import pyarrow as pa

    from snapshot_explorer.frames import Frame


class FrameExports(Protocol):
    """A result whose data is a frame, which it exports as the frame does."""

    @property
    def frame(self) -> Frame:
        """Return the data as a frame."""
        ...

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
