"""Commits that are Avro files: their write stats, which name most of a table's files, and the rest.

One regular expression matches a write stat, several times as fast as fastavro reads all of its thirty fields. It
assumes that text has no control characters and that lists are empty; fastavro reads other write stats.
"""

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

import fastavro
import orjson

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.formats.avro.container import Container, read_bytes, varint
from snapshot_explorer.formats.avro.rows import named_types, record_of, resolve, without_logical_types

STATS = "partitionToWriteStats"
"""The field with the write stats of a commit, by partition."""
_NUMBER = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_TEXT = _NUMBER + rb"[^\x00-\x1f]*"  # up to the branch of the next union; the length before it is checked afterwards
_PATTERNS = {
    "int": _NUMBER,
    "long": _NUMBER,
    "boolean": rb"[\x00\x01]",
    "string": _TEXT,
    "array": rb"\x00",
    "map": rb"\x00",
}
_CONTINUES = 0x80
"""The bit of a byte that is not the last one of a number."""

Stat = TypeVar("Stat")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatReader(Generic[Stat]):
    """Functions that create a value from a write stat."""

    fields: tuple[str, ...]
    of_values: Callable[[str, tuple[bytes | None, ...]], Stat]
    """From its partition and these fields, as they are encoded."""
    of_record: Callable[[str, Mapping[str, Any]], Stat]
    """From its partition and all fields."""


class LengthError(Exception):
    """Text is longer or shorter than the pattern assumed."""


def text_of(value: bytes) -> str:
    """Return text from the bytes that encode it.

    Raises:
        LengthError: The text has another length than encoded.
    """
    first = value[0]
    size, start = (first, 1) if first < _CONTINUES else ((first & (_CONTINUES - 1)) | value[1] << 7, 2)
    if size != 2 * (len(value) - start):
        raise LengthError
    return value[start:].decode()


@lru_cache(maxsize=2**16)
def number_of(value: bytes) -> int:
    """Return a number from the bytes that encode it."""
    return varint(value, 0)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CommitSchema:
    match: Callable[[bytes, int], re.Match[bytes] | None]
    """Matches a write stat."""
    groups: Mapping[str, int]
    """The group of each field of a write stat."""
    texts: Mapping[str, int]
    """The groups with text."""
    stat: Any
    rest: Any
    """The record without the field of the write stats."""


def read_avro_commit(container: Container, reader: StatReader[Stat]) -> tuple[list[Stat], Mapping[str, Any]] | None:
    """Return the write stats of a commit, in order, and its other fields; None for records with another schema.

    Raises:
        One of FOREIGN_ERRORS: The file is damaged.
    """
    schema = _commit_schema(container.schema_text)
    if schema is None or len(container.blocks) != 1 or container.rows != 1:
        return None
    content = container.blocks[0][1]
    stats: list[Stat] = []
    branch, at = varint(content, 0)
    if branch not in (0, 1):
        raise CorruptBytesError(f"unknown branch {branch} at byte 0")
    count, at = _count(content, at) if branch else (0, at)
    read = _stat_function(schema, reader, content)
    while count:
        for _ in range(count):
            text, at = read_bytes(content, at)
            partition = text.decode()
            remaining, at = _count(content, at)
            while remaining:
                for _ in range(remaining):
                    stat, at = read(partition, at)
                    stats.append(stat)
                remaining, at = _count(content, at)
        count, at = _count(content, at)
    stream = io.BytesIO(content)
    stream.seek(at)
    rest: Any = fastavro.schemaless_reader(stream, schema.rest)
    if stream.tell() != len(content):
        raise CorruptBytesError(f"{len(content) - stream.tell():,} bytes follow the last row of a block")
    return stats, rest


def _count(content: bytes, at: int) -> tuple[int, int]:
    """Return the number of items in the next part of a list or map, 0 at its end, and the position after it."""
    count, at = varint(content, at)
    if count < 0:
        _, at = varint(content, at)
        count = -count
    if count > len(content) - at:  # every item takes a byte or more
        raise CorruptBytesError(f"{count} items expected at byte {at}, found {len(content) - at} bytes")
    return count, at


def _stat_function(
    schema: _CommitSchema, reader: StatReader[Stat], content: bytes
) -> Callable[[str, int], tuple[Stat, int]]:
    groups = [schema.groups[name] for name in reader.fields]
    unread = [group for name, group in schema.texts.items() if name not in reader.fields]
    match, of_values = schema.match, reader.of_values

    def read(partition: str, at: int) -> tuple[Stat, int]:
        matched = match(content, at)
        if matched is not None:
            try:
                for group in unread:
                    if (text := matched[group]) is not None:
                        text_of(text)
                return of_values(partition, matched.group(*groups)), matched.end()
            except LengthError:
                pass
        stream = io.BytesIO(content)
        stream.seek(at)
        record: Any = fastavro.schemaless_reader(stream, schema.stat)
        return reader.of_record(partition, record), stream.tell()

    return read


@lru_cache(maxsize=32)
def _commit_schema(text: bytes) -> _CommitSchema | None:
    """Return the parsed schema of a commit's metadata; None if the schema describes something else."""
    record = record_of(without_logical_types(orjson.loads(text)))
    first, *others = record["fields"]
    if first["name"] != STATS or not isinstance(first["type"], list) or first["type"][0] != "null":
        return None
    named = dict(named_types(record))
    stat = resolve(resolve(resolve(first["type"], named).get("values"), named).get("items"), named)
    if stat.get("type") != "record":
        return None
    parts = [(str(field["name"]), _pattern(field["type"], named)) for field in stat["fields"]]
    patterns = [(name, pattern) for name, pattern in parts if pattern is not None]
    if len(patterns) < len(parts):
        return None
    groups = {name: group for group, (name, _) in enumerate(patterns, 1)}
    return _CommitSchema(
        match=re.compile(b"".join(pattern % b"(" for _, pattern in patterns), re.DOTALL).match,
        groups=groups,
        texts={name: groups[name] for name, pattern in patterns if _TEXT in pattern},
        stat=fastavro.parse_schema(stat),
        rest=fastavro.parse_schema(record | {"name": f"{record['name']}Rest", "fields": others}),
    )


def _pattern(node: Any, named: Mapping[str, Any]) -> bytes | None:
    """Return the pattern of a field, with `%b` where its value begins a group; None for a type that is not matched."""
    part = resolve(node, named)
    pattern = _PATTERNS.get(part["type"])
    if part["type"] == "record":
        fields = [_pattern(field["type"], named) for field in part["fields"]]
        known = [field % b"(?:" for field in fields if field is not None]
        pattern = b"".join(known) if len(known) == len(fields) and _TEXT not in b"".join(known) else None
    if pattern is None:
        return None
    if not isinstance(node, list):
        return b"%b" + pattern + b")"
    if len(node) != 2 or "null" not in node:  # noqa: PLR2004 - null and one type
        return None
    branches = (b"\\x00", b"\\x02")
    null = node.index("null")
    return b"(?:" + branches[null] + b"|" + branches[1 - null] + b"%b" + pattern + b"))"
