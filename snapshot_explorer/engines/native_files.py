"""`SupportsNativeFiles`: a version whose data files other readers than the format's may read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snapshot_explorer.arrow.roaring import Positions
    from snapshot_explorer.model import NativeRows, Split


@runtime_checkable
class SupportsNativeFiles(Protocol):
    """A version whose rows other readers of Parquet and ORC can read."""

    def split_by_file(self, split: Split) -> Sequence[Split]:
        """Return one split per file, in order; the split itself if its files must be read together."""
        ...

    def native_files(self, split: Split) -> NativeRows | None:
        """Return the files of a split for other readers; None if they would return other rows. Reads nothing."""
        ...

    def deleted_positions(self, parts: Sequence[Split], rows: Sequence[int]) -> Sequence[Positions]:
        """Return the positions of the deleted rows of each part. Reads the deletion vectors.

        Args:
            parts: Results of `split_by_file`, one file each, for splits that have `native_files`.
            rows: The number of rows of each file.
        """
        ...
