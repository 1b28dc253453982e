"""The tags and branches of a table as frames, and its summary card."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.frames import Frame
from snapshot_explorer.render import Drawing, Pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from snapshot_explorer.model import Branch

_COLUMNS = 50
"""The maximum number of columns on the card."""


def tags_frame(tags: Mapping[str, int], times: Sequence[datetime], *, path: str) -> Frame:
    """Return tags with their versions and commit times as a frame."""
    rows = pa.table(
        {
            "tag": pa.array(list(tags), pa.string()),
            "version": pa.array(list(tags.values()), pa.int64()),
            "committed_at": pa.array(times, frames.UTC_MILLIS),
        }
    )
    return Frame(rows, title=f"Tags of {path}", noun="tags")


def branches_frame(branches: Sequence[Branch], *, path: str) -> Frame:
    """Return branches as a frame."""
    rows = pa.table(
        {
            "branch": pa.array([one.name for one in branches], pa.string()),
            "forked_version": pa.array([one.forked_version for one in branches], pa.int64()),
            "newest_version": pa.array([one.newest_version for one in branches], pa.int64()),
        }
    )
    return Frame(rows, title=f"Branches of {path}", noun="branches")


def card(path: str, facts: Mapping[str, object], columns: Sequence[str]) -> Drawing:
    """Return the card of a table: facts by name, except those that are None, and column names."""
    rows = (*facts.items(), ("columns", _named(columns) or None))
    return Drawing(title=path, parts=(Pairs(tuple(row for row in rows if row[1] is not None)),))


def _named(columns: Sequence[str]) -> str:
    """Return the first names as text, and how many more there are."""
    more = len(columns) - _COLUMNS
    return ", ".join(columns[:_COLUMNS]) + (f" and {more:,} more" if more > 0 else "")
