"""JSON in a table's files, parsed within limits: lines of a log, and whole documents."""

from typing import Any

import orjson

from snapshot_explorer.limits import Limits, exceeded

_SMALL = 4 << 20
"""A file below this size may consist of blank lines, which need forty times as much memory as objects."""
_SHORTEST = 8
"""The minimum of the mean number of bytes per line. No action is shorter than `{"txn":{}}`."""


def check(content: bytes, path: str, limits: Limits) -> None:
    """Check the limits of a log file."""
    if len(content) > _SMALL:
        many = content.count(b"\n")
        if many > max(limits.metadata_rows, len(content) // _SHORTEST):
            raise exceeded(path, len(content), f"has {many} lines, nearly all blank", "metadata_rows", many, limits)
    if len(content) > limits.value_bytes:
        limits.check_value(path, len(content), _longest(content), "a line")


def _longest(content: bytes) -> int:
    longest = start = 0
    while (end := content.find(b"\n", start)) >= 0:
        longest = max(longest, end - start)
        start = end + 1
    return max(longest, len(content) - start)


def lines(content: bytes, path: str, limits: Limits) -> list[bytes]:
    """Return the lines of a log file, without line ends; blank lines included."""
    check(content, path, limits)
    return content.split(b"\n")


def document(content: bytes, path: str, limits: Limits) -> Any:
    """Return the value of a JSON document.

    Raises:
        orjson.JSONDecodeError: It is not JSON.
    """
    limits.check_value(path, len(content), len(content), "one JSON document")
    return orjson.loads(content)
