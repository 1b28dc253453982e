"""What the parts of an explorer share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from snapshot_explorer.jupyter.explorer.contents.view_requests import SnapshotCache
    from snapshot_explorer.jupyter.explorer.state import ExplorerState
    from snapshot_explorer.jupyter.explorer.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorerContext:
    """The state, the table and the threads of an explorer, and its ways to the page."""

    state: ExplorerState
    cache: SnapshotCache
    work: Work
    name: str
    """The variable that holds the table, for lines of code."""
    busy: Callable[[str, str], None]
    """Receives a place and what it reads; empty text once it reads nothing."""
    changed: Callable[[str], None]
    """Receives each place whose content has changed."""
