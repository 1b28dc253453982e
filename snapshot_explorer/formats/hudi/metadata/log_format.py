"""The frame of log files: blocks one after another, with a type, a header and a content.

Source: hudi specification, "Log Format"; hudi HoodieLogFileReader, HoodieLogBlock.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import CorruptTableError, LimitError, UnsupportedFeatureError
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.formats.avro.container import Container, Shape, parse_avro_schema, parse_shape
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.hudi import features

MAGIC = b"#HUDI#"
COMMAND, DELETE, AVRO, HFILE, PARQUET, CHANGES = 0, 1, 3, 4, 5, 6
"""Types of blocks. Type 2 stands for damaged ones and is never written."""
INSTANT, TARGET_INSTANT, SCHEMA, COMMAND_TYPE, COMPACTED_TIMES = 0, 1, 2, 3, 4
"""Entries of headers."""
IS_PARTIAL = 7
"""The entry of a header that marks records that lack unchanged columns."""
_VERSION = 1
_LENGTH = struct.Struct(">q")
_NUMBER = struct.Struct(">i")
_MOST_ENTRIES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBlock:
    """A block of a log file."""

    type: int
    header: Mapping[int, str]
    content: bytes
    at: int
    """Its offset in the file."""


class _CutError(Exception):
    """A block is cut short or damaged."""


def blocks(content: bytes, path: str) -> Iterator[LogBlock]:
    """Yield the blocks of a log file in order, without damaged ones, which writers that failed leave."""
    if content and content[: len(MAGIC)] != MAGIC:
        raise CorruptTableError(
            f"{path} is not a log file of Hudi: it does not begin with #HUDI#. It may have been overwritten; compare "
            "it with a copy of the table."
        )
    at = 0
    while 0 <= at < len(content):
        try:
            end = _end(content, at)
            yield _block(content, at, end)
            at = end
        except (_CutError, struct.error, UnicodeDecodeError):
            at = content.find(MAGIC, at + len(MAGIC))


def _end(content: bytes, at: int) -> int:
    """Return the position after a block, whose length is recorded before and after it."""
    start = at + len(MAGIC)
    (length,) = _LENGTH.unpack_from(content, start)
    end = start + _LENGTH.size + int(length)
    if length < _LENGTH.size or end > len(content):
        raise _CutError
    (trailing,) = _LENGTH.unpack_from(content, end - _LENGTH.size)
    if trailing != length + len(MAGIC) or (end < len(content) and content[end : end + len(MAGIC)] != MAGIC):
        raise _CutError
    return end


def _block(content: bytes, at: int, end: int) -> LogBlock:
    position = at + len(MAGIC) + _LENGTH.size
    version, block_type = _NUMBER.unpack_from(content, position)[0], _NUMBER.unpack_from(content, position + 4)[0]
    if version != _VERSION:
        raise _CutError
    header, position = _header(content, position + 2 * _NUMBER.size, end)
    (size,) = _LENGTH.unpack_from(content, position)
    position += _LENGTH.size
    if size < 0 or position + size > end:
        raise _CutError
    return LogBlock(type=block_type, header=header, content=content[position : position + size], at=at)


def _header(content: bytes, position: int, end: int) -> tuple[dict[int, str], int]:
    (count,) = _NUMBER.unpack_from(content, position)
    position += _NUMBER.size
    header: dict[int, str] = {}
    if not 0 <= count <= _MOST_ENTRIES:
        raise _CutError
    for _ in range(count):
        key, size = _NUMBER.unpack_from(content, position)[0], _NUMBER.unpack_from(content, position + 4)[0]
        position += 2 * _NUMBER.size
        if size < 0 or position + size > end:
            raise _CutError
        header[key] = content[position : position + size].decode()
        position += size
    return header, position


_AVRO_BLOCK_VERSIONS = range(1, 4)
"""The versions of the content of Avro blocks: of Hudi 0.9 version 1, now 3, all with the number of records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroRecords:
    """The records of an Avro block, not decoded."""

    path: str
    """The file and the block, for messages."""
    shape: Shape
    schema_text: str
    content: bytes
    starts: npt.NDArray[np.int64]
    """The start of each record, which follows its length."""
    ends: npt.NDArray[np.int64]

    @property
    def container(self) -> Container:
        """The records one after another, as an Avro file that was read."""
        bounds = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        records = b"".join(self.content[start:end] for start, end in bounds)
        return Container(
            path=self.path,
            shape=self.shape,
            schema_text=self.schema_text.encode(),
            blocks=((len(self.starts), records),),
            header={},
        )


def avro_records(block: LogBlock, path: str, shapes: dict[bytes, Shape], limits: Limits) -> AvroRecords:
    """Return the records of an Avro block.

    Args:
        shapes: Schemas parsed before, by their text; the block's schema is added.
    """
    schema_text = block.header.get(SCHEMA, "")
    text, content = schema_text.encode(), block.content
    try:
        version, count = _NUMBER.unpack_from(content, 0)[0], _NUMBER.unpack_from(content, _NUMBER.size)[0]
        if version not in _AVRO_BLOCK_VERSIONS:
            raise refusal(features.OTHER_AVRO_BLOCKS, path=path, version=version)
        if text not in shapes:
            shapes[text] = parse_shape(parse_avro_schema(text, path))
        limits.check_rows(path, len(content), count)
        starts, ends = _bounds(content, count)
    except (LimitError, UnsupportedFeatureError):
        raise
    except (_CutError, struct.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged_block(path, block, error) from error
    return AvroRecords(
        path=f"{path} (block at byte {block.at})",
        shape=shapes[text],
        schema_text=schema_text,
        content=content,
        starts=starts,
        ends=ends,
    )


def _bounds(content: bytes, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where the records of a block start and end."""
    starts: list[int] = []
    ends: list[int] = []
    end, unpack, prefix = 2 * _NUMBER.size, _NUMBER.unpack_from, _NUMBER.size
    for _ in range(count):
        start = end + prefix
        end = start + unpack(content, end)[0]
        if not start <= end <= len(content):
            raise _CutError(f"a record of {end - start} bytes")
        starts.append(start)
        ends.append(end)
    return np.array(starts, np.int64), np.array(ends, np.int64)


def damaged_block(path: str, block: LogBlock, error: Exception) -> CorruptTableError:
    """Return the error for a block whose content cannot be decoded."""
    resources.check(error, f"The log file {path} could not be read")
    return CorruptTableError(
        f"The block at byte {block.at} of the log file {path} cannot be read: {type(error).__name__}: {error}. The "
        "file is damaged; compare it with a copy of the table."
    )
