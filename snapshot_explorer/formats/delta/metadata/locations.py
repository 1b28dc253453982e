"""The paths of data files in the log, decoded; absolute ones in one normal form.

`Storage` refuses paths on another storage when the file is read; here they are only text.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import unquote_to_bytes

import pyarrow as pa

_FILE = re.compile(r"file:(?://(?:localhost(?=/))?)?(?=/)(.*)", re.DOTALL | re.IGNORECASE)
_FULL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")


def decoded(path: str) -> str:
    """Return the path of an action: percent-decoded once, local files in one normal form.

    `file:/a`, `file:///a` and `/a` are one file. A `+` is literal. Text that does not decode to UTF-8 is unchanged, so
    that different files remain different.

    Source: delta PROTOCOL.md, "Add File and Remove File"; delta DeltaLog, canonicalizePath.
    """
    if "%" in path:
        with suppress(UnicodeDecodeError):
            path = unquote_to_bytes(path).decode()
    match = _FILE.match(path) if path[:5].lower() == "file:" else None
    return re.sub(r"^/+", "/", match[1]) if match else path


def decoded_texts(paths: Sequence[str | None]) -> Sequence[str | None]:
    """Return the paths of many actions, decoded; the same object if none needs decoding."""
    together = "\n".join(filter(None, paths))
    if "%" not in together and ":" not in together:
        return paths
    return [None if path is None else decoded(path) for path in paths]


def decoded_array(paths: pa.Array) -> pa.Array:
    """Return the paths of many actions, decoded."""
    values = paths.to_pylist()
    changed = decoded_texts(values)
    return paths if changed is values else pa.array(changed, pa.string())


def is_absolute(path: str) -> bool:
    """Return whether a decoded path is absolute, not below the table's root."""
    return path.startswith("/") or _FULL.match(path) is not None
