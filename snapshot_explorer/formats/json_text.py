"""JSON in a table's files, parsed within limits: lines of a log, and whole documents."""

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import orjson

from snapshot_explorer.core.errors import LimitError
from snapshot_explorer.core.limits import Limits, limit_error

MAX_LEVELS = 1024
"""The maximum depth of nested objects and lists that is parsed: orjson's own limit."""
WRITTEN_LEVELS = 200
"""The maximum number of levels that are shown. orjson writes 254."""
MAX_NESTED_TYPES = 100
"""The maximum depth of nested types, such as structs in structs. pyarrow opens no parquet file with deeper types."""

_SMALL = 4 << 20
"""A file below this size may consist of blank lines, which need forty times as much memory as objects."""


def check(content: bytes, path: str, limits: Limits) -> None:
    """Check the limits of a log file."""
    if len(content) > _SMALL:
        many = content.count(b"\n")
        if many > limits.most_rows(len(content)):
            raise limit_error(path, len(content), f"has {many} lines, nearly all blank", "metadata_rows", many, limits)
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
        LimitError: It is too large, or has too many levels.
    """
    limits.check_value(path, len(content), len(content), "one JSON document")
    return loads(content, path)


def loads(content: bytes | str, where: str) -> Any:
    """Return the value of JSON text.

    Args:
        where: The file, or what the text is, for the message.

    Raises:
        orjson.JSONDecodeError: It is not JSON.
        LimitError: It has too many levels.
    """
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        failure = too_deep(content, where)
        if failure is None:
            raise
        failure.__cause__ = error
    raise failure


def too_deep(content: bytes | str, where: str) -> LimitError | None:
    """Return the error for JSON text with too many levels; None if it has fewer."""
    text = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    brackets = _BRACKETS.findall(_TEXTS.sub(b"", text))
    levels = max(accumulate(1 if bracket in b"[{" else -1 for bracket in brackets), default=0)
    if levels <= MAX_LEVELS:
        return None
    return LimitError(
        f"{where} has values within each other to {levels:,} levels; the limit is {MAX_LEVELS:,}. No writer of tables "
        "does that: it may be crafted, or damaged. Compare it with a copy of the table."
    )


_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


def check_types(schema: Any, where: str) -> None:
    """Check how deep the types of a schema nest. It is the JSON of any format, or of Avro; types may be text.

    Raises:
        LimitError: They nest too deep.
    """
    deepest = 0
    waiting = [(schema, 0)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(node, Mapping):
            inner = depth + (isinstance(node.get("type"), str) and not _PARTS.isdisjoint(node))
            waiting += [(value, inner) for name, value in node.items() if name in _PARTS or name == "type"]
        elif isinstance(node, list):
            waiting += [(value, depth) for value in node]
        elif isinstance(node, str) and "<" in node:
            depths = accumulate((letter == "<") - (letter == ">") for letter in node)
            deepest = max(deepest, depth + max(depths))
    if deepest > MAX_NESTED_TYPES:
        raise LimitError(
            f"{where} has types within each other to {deepest:,} levels; the limit is {MAX_NESTED_TYPES}. Its history "
            "and its list of files are read; its rows and its schema are not."
        )


_PARTS = frozenset({"fields", "elementType", "keyType", "valueType", "element", "key", "value", "items", "values"})
"""The keys of nested types in the JSON of a type, in Delta, Paimon, Iceberg and Avro."""


def dumps(value: object) -> str:
    """Return a JSON value as text; values deeper than `WRITTEN_LEVELS` as "..."."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # orjson parses values four times as deep as it writes
        return orjson.dumps(_shallow(value, WRITTEN_LEVELS)).decode()


def _shallow(value: object, levels: int) -> object:
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return "..."
    if isinstance(value, list):
        return [_shallow(item, levels - 1) for item in value]
    return {name: _shallow(item, levels - 1) for name, item in value.items()}
