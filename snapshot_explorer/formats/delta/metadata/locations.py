"""The paths of data files in the log, decoded, in one normal form: relative to the table's root, or full locations.

`Storage` refuses paths on another storage when the file is read; here they are only text.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import unquote_to_bytes

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc

_FILE = re.compile(r"(?:file:(?://(?:localhost(?=/))?)?)?/(.*)", re.DOTALL | re.IGNORECASE)
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(?:/(?!/)|//([^/]*)(?:/|$))(.*)", re.DOTALL)
_UNUSUAL = ("%", ":", "//", "./", "/.", "\n/")
"""Text without which each of several paths, one a line, is in its normal form."""
_UNUSUAL_PATH = r"[%:]|//|\./|/\.|^/"
"""The same for a single path, as a pattern."""


def decode_path(path: str) -> str:
    """Return the path of an action in its normal form, percent-decoded once.

    `file:/a`, `file:///a`, `/a` and `/b/..//./a` are one file, as for Spark, which normalizes paths before it compares
    and opens them; so are `a/b` and `./a//b`. A `+` is literal. Text that does not decode to UTF-8 is not decoded, so
    that different files remain different.

    Source: delta PROTOCOL.md, "Add File and Remove File"; delta DeltaLog, canonicalizePath; hadoop Path(URI).
    """
    if file := _FILE.fullmatch(path):
        start, rest = "file:///", file[1]
    elif url := _URL.fullmatch(path):
        start, rest = f"{url[1]}://{url[2] or ''}/", url[3]
    else:
        start, rest = "", path
    path = start + _without_empty_steps(rest)
    if "%" in path:
        with suppress(UnicodeDecodeError):
            return unquote_to_bytes(path).decode()
    return path


def _without_empty_steps(path: str) -> str:
    """Return a path without `.`, empty steps, and `..` after a step. A path that leads above its start is unchanged."""
    if not any(text in f"\n{path}" for text in _UNUSUAL[2:]):
        return path
    steps: list[str] = []
    for step in path.split("/"):
        if step == ".." and steps and steps[-1] != "..":
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    return "/".join(steps)


def decode_paths(paths: Sequence[str | None]) -> Sequence[str | None]:
    """Return the paths of many actions, decoded; the same object if each is in its normal form."""
    together = "\n".join(filter(None, ("", *paths)))
    if not any(text in together for text in _UNUSUAL) and not together.startswith("/"):
        return paths
    return [None if path is None else decode_path(path) for path in paths]


def decode_path_array(paths: pa.Array) -> pa.Array:
    """Return the paths of many actions, decoded."""
    unusual = pc.indices_nonzero(pc.match_substring_regex(paths, _UNUSUAL_PATH))
    if not len(unusual):
        return paths
    values = paths.to_pylist()
    for index in unusual.tolist():
        values[index] = decode_path(values[index])
    return pa.array(values, pa.string())
