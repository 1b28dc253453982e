"""Deletion vectors: the deleted rows of a data file, by their position in the file.

Source: delta PROTOCOL.md, "Deletion Vectors", "Deletion Vector Format".
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np

from snapshot_explorer.arrow import roaring
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.errors import (
    CorruptTableError,
    MissingFileError,
    SnapshotExplorerError,
)
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.corrupt_files import unreadable_error
from snapshot_explorer.formats.delta import features
from snapshot_explorer.formats.delta.files.missing_files import Removals, missing_file_error
from snapshot_explorer.formats.delta.metadata.locations import decode_path
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES = {letter: value for value, letter in enumerate(_ALPHABET)}
_BLOCK, _WORD = 5, 4
_UUID_LENGTH = 20
_VERSION = b"\x01"
_PORTABLE = 1_681_511_377
_NATIVE = 1_681_511_376
_MIN_BYTES = 8
_MAX_BYTES = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaVector:
    """A deletion vector as the log describes it. Picklable."""

    path: str | None
    """The file that contains it, for `Storage.open`; None if it is inline in the log."""
    inline: bytes | None
    """Its bytes, if they are inline in the log."""
    offset: int
    size_bytes: int
    """Its size, without its framing in the file."""
    cardinality: int


def vector_of(descriptor: Mapping[str, Any] | None, storage: Storage, data_path: str) -> DeltaVector | None:
    """Return the vector that an action describes; None without a vector. Reads nothing.

    Args:
        descriptor: The action's `deletion_vector`, a row of records.DELETION_VECTOR.
        storage: The table's storage, which resolves files at full locations.

    Source: delta PROTOCOL.md, "Deletion Vector Descriptor Schema".
    """
    if descriptor is None:
        return None
    storage_type, where = descriptor["storage_type"], descriptor["path_or_inline"]
    size = descriptor["size_bytes"]
    if storage_type not in ("u", "p", "i"):
        raise refusal(features.OTHER_DELETION_VECTORS, path=data_path, storage_type=storage_type)
    try:
        _check_numbers(descriptor, data_path)
        inline = decode_z85(where)[:size] if storage_type == "i" else None
        path = (
            None
            if storage_type == "i"
            else relative_file(where)
            if storage_type == "u"
            else storage.resolve_external(decode_path(where))
        )
    except CorruptBytesError as error:
        raise CorruptTableError(
            f"The log describes a deletion vector of {data_path} that is not valid: {error}. It may be damaged; "
            "compare it with a copy of the table."
        ) from error
    return DeltaVector(
        path=path,
        inline=inline,
        offset=descriptor["offset"] or 0,
        size_bytes=size,
        cardinality=descriptor["cardinality"],
    )


def _check_numbers(descriptor: Mapping[str, Any], data_path: str) -> None:
    size, cardinality = descriptor["size_bytes"], descriptor["cardinality"]
    is_whole = descriptor["path_or_inline"] is not None and size is not None and cardinality is not None
    if not is_whole or size < _MIN_BYTES or cardinality < 0:
        raise CorruptBytesError(f"its size is {size} and its cardinality {cardinality}")
    if size > _MAX_BYTES:
        raise refusal(features.LARGE_DELETION_VECTORS, path=data_path, size=size, limit=_MAX_BYTES)


def relative_file(text: str) -> str:
    """Return the path of a vector's file from its descriptor: an optional folder, and a UUID as Z85 text.

    Raises:
        CorruptBytesError: The text does not end with a UUID.
    """
    folder, number = text[:-_UUID_LENGTH], decode_z85(text[-_UUID_LENGTH:])
    if len(text) < _UUID_LENGTH or len(number) != 16:  # noqa: PLR2004 - bytes of a UUID
        raise CorruptBytesError(f"{text!r} names no file")
    name = f"deletion_vector_{UUID(bytes=number)}.bin"
    return f"{folder}/{name}" if folder else name


def decode_z85(text: str) -> bytes:
    """Decode Z85 text.

    Five letters are four bytes. Some writers shorten the last block: each `#` at its start means one byte less. Other
    writers pad with zero bytes.

    Raises:
        CorruptBytesError: The text is not Z85.

    Source: ZeroMQ RFC 32; delta-kernel-rs, the deletion vectors that it writes inline.
    """
    if len(text) % _BLOCK:
        raise CorruptBytesError(f"Z85 text of {len(text)} letters")
    out = bytearray()
    for start in range(0, len(text), _BLOCK):
        block = text[start : start + _BLOCK]
        digits = block.lstrip("#") if start + _BLOCK == len(text) else block
        width = _WORD - (_BLOCK - len(digits))
        try:
            number = 0
            for letter in digits:
                number = number * 85 + _VALUES[letter]
            out += number.to_bytes(width, "big")
        except (KeyError, OverflowError, ValueError) as error:
            raise CorruptBytesError(f"{block!r} is not Z85") from error
    return bytes(out)


def read_deleted_positions(
    storage: Storage, vector: DeltaVector, data_path: str, rows: int, removals: Removals | None = None
) -> Positions:
    """Return the positions of the rows that a vector deletes, ascending. Reads its bytes and the first one of its file.

    Args:
        rows: The row count of the data file: all positions must be below it.
        removals: For the error if the vector's file does not exist.
    """
    where = f"in {vector.path} at {vector.offset}" if vector.path is not None else "inline in the log"
    try:
        body = vector.inline if vector.inline is not None else _read(storage, vector)
        return _positions(body, vector, rows)
    except MissingFileError as error:
        name = f"the file {vector.path} with the deletion vector of {data_path}"
        raise missing_file_error(name, vector.path or "", removals) from error
    except SnapshotExplorerError:
        raise
    except (CorruptBytesError, OSError, ValueError) as error:
        raise unreadable_error(f"The deletion vector of {data_path}, {where},", error) from error


def _read(storage: Storage, vector: DeltaVector) -> bytes:
    """Return the bytes of a vector from its file, after checking its framing.

    Source: delta PROTOCOL.md, "Deletion Vector File Storage Format".
    """
    log.debug("reading a deletion vector of %s bytes at %s of %s", vector.size_bytes, vector.offset, vector.path)
    with storage.open(vector.path or "", end=vector.offset + vector.size_bytes + 2 * _WORD) as source:
        version = bytes(source.read(1))
        if version != _VERSION:
            raise CorruptBytesError(f"the file is of version {version.hex() or 'none'}, not {_VERSION.hex()}")
        if not 1 <= vector.offset < source.size():
            raise CorruptBytesError(f"it begins at {vector.offset} of {source.size()} bytes")
        source.seek(vector.offset)
        record = bytes(source.read(vector.size_bytes + 2 * _WORD))
    size = int.from_bytes(record[:_WORD], "big", signed=True)
    if size != vector.size_bytes:
        raise CorruptBytesError(
            f"Deletion vector integrity check failed. Encountered a size mismatch: {size} bytes, but the log records "
            f"{vector.size_bytes}"
        )
    body, check = record[_WORD : _WORD + size], record[_WORD + size :]
    if len(body) != size or len(check) != _WORD:
        missing = vector.size_bytes + 2 * _WORD - len(record)
        raise CorruptBytesError(f"the file ends {missing} bytes before the end of the vector")
    if zlib.crc32(body) != int.from_bytes(check, "big"):
        raise CorruptBytesError("Could not verify deletion vector integrity, CRC checksum verification failed")
    return body


def _positions(body: bytes, vector: DeltaVector, rows: int) -> Positions:
    """Return the positions in a bitmap.

    Source: delta PROTOCOL.md, "Deletion Vector Format"; for the other layout delta RoaringBitmapArray.
    """
    if len(body) != vector.size_bytes:
        raise CorruptBytesError(f"it has {len(body)} bytes, but the log records {vector.size_bytes}")
    magic = int.from_bytes(body[:_WORD], "little")
    if magic == _PORTABLE:
        result, end = roaring.decode_64(body, _WORD, rows)
    elif magic == _NATIVE:
        result, end = _native(body, rows)
    else:
        raise CorruptBytesError(f"its magic number {magic} is unknown")
    if end != len(body):
        raise CorruptBytesError(f"{len(body) - end} bytes follow the bitmap")
    if len(result) != vector.cardinality:
        raise CorruptBytesError(
            f"Deletion vector integrity check failed. Encountered a cardinality mismatch: {len(result)} rows, but the "
            f"log records {vector.cardinality}"
        )
    return result


def _native(body: bytes, rows: int) -> tuple[Positions, int]:
    """Return the positions of a bitmap with one size-prefixed part per high word."""
    count = int.from_bytes(body[_WORD : 2 * _WORD], "little", signed=True)
    index = 2 * _WORD
    parts = [np.zeros(0, np.int64)]
    if not 0 <= count <= len(body):
        raise CorruptBytesError(f"it has {count} parts in {len(body)} bytes")
    for high in range(count):
        size = int.from_bytes(body[index : index + _WORD], "little", signed=True)
        numbers, end = roaring.decode(body, index + _WORD, min(1 << 32, rows - (high << 32)))
        if end != index + _WORD + size:
            raise CorruptBytesError(f"a part of {size} bytes ends after {end - index - _WORD}")
        parts.append(numbers + (high << 32))
        index = end
    return np.concatenate(parts), index
