"""Delete blocks of log files: keys of deleted records, with the values that order them.

Source: hudi HoodieDeleteBlock, HoodieDeleteRecordList.avsc.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.formats.avro.container import read_bytes, varint
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.hudi import features
from snapshot_explorer.formats.hudi.files.kryo_keys import record_keys
from snapshot_explorer.formats.hudi.metadata.log_format import LogBlock, damaged_block

_KEYS_ALONE = 1
_AVRO_VERSION = 3
_HEADER = struct.Struct(">ii")
_WRAPPER_SCALE = 15
"""The scale of decimals, whatever the scale of their column."""


@dataclass(frozen=True, slots=True)
class DeletedRecord:
    """A deleted record."""

    key: str
    ordering: object
    """The value that orders it: dates in days, times in microseconds, a tuple for several columns; None without one."""
    java_type: str
    """The type of the value in Java, such as `int`: 0 of the type int means that there is no value."""


def deleted_keys(block: LogBlock, path: str, limits: Limits) -> list[DeletedRecord]:
    """Return the deleted records of a delete block."""
    try:
        version, size = _HEADER.unpack_from(block.content, 0)
        content = _exactly(block.content, _HEADER.size, size)
        if version == _KEYS_ALONE:
            return [DeletedRecord(key, 0, "int") for key in record_keys(content)]
        if version != _AVRO_VERSION:
            raise refusal(features.OLD_DELETE_BLOCKS, path=path, version=version)
        return list(_records(content, path, limits))
    except SnapshotExplorerError:
        raise
    except (struct.error, OverflowError, ValueError) as error:
        raise damaged_block(path, block, error) from error


def _records(content: bytes, path: str, limits: Limits) -> Iterator[DeletedRecord]:
    at = 0
    while True:
        count, at = varint(content, at)
        if count == 0:
            return
        if count < 0:
            _, at = varint(content, at)
            count = -count
        limits.check_rows(path, len(content), count)
        for _ in range(count):
            key, at = _optional_text(content, at)
            _, at = _optional_text(content, at)
            ordering, java_type, at = _read_wrapped(content, at, 0)
            yield DeletedRecord(key or "", ordering, java_type)


def _optional_text(content: bytes, at: int) -> tuple[str | None, int]:
    branch, at = varint(content, at)
    if branch == 0:
        return None, at
    if branch != 1:
        raise CorruptBytesError(f"unknown branch {branch} at byte {at}")
    text, at = read_bytes(content, at)
    return text.decode(), at


_NUMBERS = {2: "int", 3: "long", 8: "int", 10: "long", 11: "long", 12: "int"}
"""Branches that are numbers: int, long, days, microseconds of a day, microseconds since 1970, and days again."""


def _read_wrapped(content: bytes, at: int, depth: int) -> tuple[object, str, int]:
    """Return a wrapped value, its type in Java, and the position after it."""
    branch, at = varint(content, at)
    if branch == 12 and depth == 0:  # noqa: PLR2004 - several ordering columns
        return _array(content, at)
    if branch in _NUMBERS:
        number, at = varint(content, at)
        return number, _NUMBERS[branch], at
    match branch:
        case 0:
            return None, "", at
        case 1:
            return _exactly(content, at, 1) != b"\0", "boolean", at + 1
        case 4:
            return struct.unpack("<f", _exactly(content, at, 4))[0], "float", at + 4
        case 5:
            return struct.unpack("<d", _exactly(content, at, 8))[0], "double", at + 8
        case 6 | 7 | 9:
            return _read_counted(content, at, branch)
        case _:
            raise CorruptBytesError(f"unknown branch {branch} at byte {at}")


def _read_counted(content: bytes, at: int, branch: int) -> tuple[object, str, int]:
    value, at = read_bytes(content, at)
    if branch == 6:  # noqa: PLR2004 - bytes
        return value, "bytes", at
    if branch == 7:  # noqa: PLR2004 - text
        return value.decode(), "string", at
    return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-_WRAPPER_SCALE), "decimal", at


def _array(content: bytes, at: int) -> tuple[object, str, int]:
    branch, at = varint(content, at)
    if branch == 0:
        return None, "", at
    values: list[object] = []
    while True:
        count, at = varint(content, at)
        if count == 0:
            return tuple(values), "tuple", at
        if count < 0:
            _, at = varint(content, at)
            count = -count
        if count > len(content) - at:
            raise CorruptBytesError(f"{count} values expected at byte {at}")
        for _ in range(count):
            value, _, at = _read_wrapped(content, at, 1)
            values.append(value)


def _exactly(content: bytes, at: int, size: int) -> bytes:
    if size < 0 or at + size > len(content):
        raise CorruptBytesError(f"{size} bytes expected at byte {at}, found {len(content) - at}")
    return content[at : at + size]
