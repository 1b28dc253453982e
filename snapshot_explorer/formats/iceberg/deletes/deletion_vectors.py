"""Deletion vectors: blobs of Puffin files with the positions of the deleted rows of one data file.

Source: iceberg Puffin specification, "deletion-vector-v1 blob type"; `BitmapPositionDeleteIndex`.
"""

from dataclasses import dataclass

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.errors import CorruptTableError, MissingFileError, SnapshotExplorerError
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.corrupt_files import absent_file_error, check_size, unreadable_error
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.files.vector_blobs import checked_body, positions_of
from snapshot_explorer.formats.iceberg import features
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

_WORD = 4
_MIN_BYTES = 3 * _WORD + 8
_MAX_BYTES = 1 << 28
_SMALL = 1 << 20
"""The size up to which an opened file is in memory, even a remote one."""
_FOOTER_MAGIC = b"PFA1"
_MAX_POSITION = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergVector:
    """The location of a deletion vector. Picklable."""

    location: str
    offset: int
    size_bytes: int
    """Its size in the file, framing included."""
    cardinality: int
    file_bytes: int | None = None


def vector_of(
    location: str,
    offset: int | None,
    size_bytes: int | None,
    cardinality: int,
    data_path: str,
    *,
    file_bytes: int | None = None,
) -> IcebergVector:
    """Return the vector that an entry describes. Reads nothing.

    Args:
        offset: The entry's `content_offset`.
        size_bytes: The entry's `content_size_in_bytes`.
        cardinality: The entry's `record_count`.
        file_bytes: The entry's `file_size_in_bytes`.
    """
    if offset is None or size_bytes is None or offset < 0 or size_bytes < _MIN_BYTES or cardinality < 0:
        raise CorruptTableError(
            f"A manifest describes a deletion vector of {data_path} in {location} that is not valid: it begins at "
            f"{offset}, has {size_bytes} bytes and deletes {cardinality} rows. Compare the manifest with a copy of the "
            "table."
        )
    if size_bytes > _MAX_BYTES:
        raise refusal(features.LARGE_DELETION_VECTORS, path=data_path, size=size_bytes, limit=_MAX_BYTES)
    return IcebergVector(
        location=location, offset=offset, size_bytes=size_bytes, cardinality=cardinality, file_bytes=file_bytes
    )


def read_deleted_positions(storage: Storage, vector: IcebergVector, data_path: str, rows: int | None) -> Positions:
    """Return the positions of the rows that a vector deletes, ascending.

    Reads a small file whole, and only the bytes of the vector of a large file.

    Args:
        rows: The row count of the data file, if it is known: all positions must be below it.
    """
    log.debug("reading a deletion vector of %s bytes at %s of %s", vector.size_bytes, vector.offset, vector.location)
    try:
        end = vector.offset + vector.size_bytes
        with storage.open(vector.location, size_bytes=vector.file_bytes, end=end) as source:
            check_size(
                f"The deletion vector file {vector.location}", source.size(), vector.file_bytes, by="its manifest"
            )
            source.seek(vector.offset)
            blob = bytes(source.read(vector.size_bytes))
            if end < source.size() <= _SMALL:
                source.seek(end)
                _check_footer(bytes(source.read()), vector, data_path)
        return _positions(blob, vector, rows)
    except MissingFileError as error:
        raise absent_file_error(f"The deletion vector of {data_path}", error) from error
    except SnapshotExplorerError:
        raise
    except (CorruptBytesError, OSError, ValueError) as error:
        name = f"The deletion vector of {data_path}, in {vector.location} at {vector.offset},"
        raise unreadable_error(name, error) from error


def _check_footer(rest: bytes, vector: IcebergVector, data_path: str) -> None:
    """Check that the footer of a Puffin file names the data file of a vector.

    Files without a footer, or with a compressed one, are not checked. Copied tables may have other folders in it.

    Args:
        rest: The bytes after the vector.
        data_path: Its data file by the manifest.

    Source: iceberg Puffin specification, "Footer structure".
    """
    if rest[-_WORD:] != _FOOTER_MAGIC or rest[-2 * _WORD : -_WORD] != bytes(_WORD):
        return
    length = int.from_bytes(rest[-3 * _WORD : -2 * _WORD], "little")
    try:
        blobs = json_text.loads(rest[-3 * _WORD - length : -3 * _WORD], "The footer of its file")["blobs"]
        named = [blob["properties"]["referenced-data-file"] for blob in blobs if blob["offset"] == vector.offset]
    except (ValueError, LookupError, TypeError) as error:
        raise CorruptBytesError(f"the footer of its file is damaged ({error})") from error
    if named and named[0].rpartition("/")[2] != data_path.rpartition("/")[2]:
        raise CorruptBytesError(f"its file records that it is of {named[0]}")


def _positions(blob: bytes, vector: IcebergVector, rows: int | None) -> Positions:
    """Return the positions of a blob: its length, magic number, bitmap and checksum."""
    if len(blob) != vector.size_bytes:
        raise CorruptBytesError(f"the file ends {vector.size_bytes - len(blob)} bytes before the end of the vector")
    length = int.from_bytes(blob[:_WORD], "big")
    if length != len(blob) - 2 * _WORD:
        raise CorruptBytesError(f"its length is {length}, but the manifest records {len(blob) - 2 * _WORD}")
    result = positions_of(checked_body(blob), _MAX_POSITION if rows is None else rows)
    if len(result) != vector.cardinality:
        raise CorruptBytesError(f"it deletes {len(result)} rows, but the manifest records {vector.cardinality}")
    return result
