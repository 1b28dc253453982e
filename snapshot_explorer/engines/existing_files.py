"""Check that the data files of splits exist before their rows are read."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snapshot_explorer.formats import TableVersion
    from snapshot_explorer.model import Split


def check_files(version: TableVersion, splits: Sequence[Split]) -> None:
    """Raise the format's error for the first missing data file, where a check is fast; see `missing_files`."""
    missing = set(version.missing_files(splits))
    for split in splits if missing else ():
        for piece in version.split_by_file(split) if missing.intersection(split.files) else ():
            if missing.intersection(piece.files):
                deque(version.read(piece, []), maxlen=0)
