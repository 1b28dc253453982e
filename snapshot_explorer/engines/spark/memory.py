"""How much memory a Spark session on this machine may take: of a container, what that is allowed."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEAST, _MOST = 512, 16 * 1024
"""Mebibytes for a session. With less Spark does not start."""


def session_mebibytes(root: Path = Path("/")) -> int:
    """Return how many mebibytes a local session takes: a quarter of what this process may have.

    Args:
        root: The root of the file system, in which Linux tells the limits.
    """
    found = [*_of_machine(), *_of_groups(root)]
    return min(_MOST, max(_LEAST, min(found, default=0) // 4 // 2**20))


def _of_machine() -> Iterator[int]:
    try:
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return  # such as on Windows


def _of_groups(root: Path) -> Iterator[int]:
    """Yield the limits, in bytes, of the control groups that this process is in: its own and those above.

    Source: Linux docs, "Control Group v2", memory.max; "Memory Resource Controller" (v1), memory.limit_in_bytes.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        folder, name = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        own = PurePosixPath(path)
        # A container sees its own group as the root, whatever its path is called outside.
        for group in (own, *own.parents):
            try:
                yield int((root / "sys/fs/cgroup" / folder / group.relative_to("/") / name).read_text())
            except (OSError, ValueError):
                continue  # there is none, or it is "max"
