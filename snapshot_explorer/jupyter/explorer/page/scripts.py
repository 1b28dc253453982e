"""The scripts that pages run, as they are sent: without comments and indentation, since each widget has a copy."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def script(name: str) -> str:
    """Return the text of a module of this package, such as grid.js."""
    lines = files("snapshot_explorer.jupyter.explorer.page").joinpath(name).read_text("utf-8").splitlines()
    bare = (line.strip() for line in lines)
    return "\n".join(line for line in bare if line and not line.startswith("//") and not _is_comment(line))


def _is_comment(line: str) -> bool:
    return line.startswith("/**") and line.endswith("*/")
