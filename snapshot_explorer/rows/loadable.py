"""Whether the data files that a command would read exist, so that only commands that can work are suggested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapshot_explorer.rows.diffs.changed_splits import changed_splits
from snapshot_explorer.rows.source import UNREADABLE

if TYPE_CHECKING:
    from snapshot_explorer.formats import TableVersion


def can_load(version: TableVersion) -> bool:
    """Return whether no data file of a version is missing, where a check is fast. Plans it; opens no data file."""
    try:
        return not version.missing_files(version.plan(None).splits)
    except UNREADABLE:
        return False


def can_diff(a: TableVersion, b: TableVersion) -> bool:
    """Return whether no data file is missing in which two versions differ, as `can_load`."""
    try:
        splits = changed_splits(a, b)
        return not a.missing_files(splits.before) and not b.missing_files(splits.after)
    except UNREADABLE:
        return False
