"""What is known about files in addition to their lifetimes."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """The facts that pictures of files mark in addition to lifetimes."""

    commits: Callable[[Sequence[int]], pa.Table]
    """Returns COMMITS of versions."""
    missing: Callable[[], Collection[str] | None]
    """Returns the paths of files that do not exist; None if they were not looked for."""
