"""Deletion vectors: the positions of the deleted rows of a data file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import roaring
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.errors import CorruptTableError, MissingFileError
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.corrupt_files import absent_file_error, check_size, unreadable_error
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.files.vector_blobs import check_end, checked_body, positions_of
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.metadata.layout import index_path
from snapshot_explorer.formats.paimon.metadata.partitions import external_path
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

DELETION_VECTORS = "DELETION_VECTORS"
_VERSION = 1
_MAGIC_32 = bytes.fromhex("5e43f2d0")
_MAX_ROWS = 1 << 31
"""The maximum number of rows of a file whose vector is decoded: writers use 32-bit integers for positions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonVector:
    """The location of the deletion vector of a data file. Picklable."""

    path: str
    offset: int | None
    """The offset of the vector, which begins with its size; None if the index manifest lacks it."""
    length: int | None
    cardinality: int | None
    """The number of rows it deletes; None if not recorded."""
    file_bytes: int | None = None
    """The size of the index file according to the index manifest; None if not recorded."""


Vectors = Mapping[tuple[bytes, int, str], PaimonVector]
"""Vectors by partition, bucket and name of the data file."""


def vectors_of(
    indexes: pa.Table, folders: Sequence[str], options: Mapping[str, str], storage: Storage, *, strict: bool
) -> Vectors:
    """Return the location of each data file's deletion vector.

    Args:
        indexes: INDEX_ENTRIES.
        folders: The folder of each one's partition and bucket.
        options: The newest options.
        storage: The table's storage, which resolves files at full locations.
        strict: Raise for a location on another storage; otherwise it is returned as stored.

    Source: paimon docs, "Table Index"; paimon DeletionVectorsIndexFile.
    """
    vectors: dict[tuple[bytes, int, str], PaimonVector] = {}
    for row, folder in zip(indexes.to_pylist(), folders, strict=True):
        if row["index_type"] != DELETION_VECTORS or row["data_file"] is None:
            continue
        key = (row["partition"], row["bucket"], row["data_file"])
        if strict and key in vectors:
            raise CorruptTableError(
                f"The data file {row['data_file']} has two deletion vectors, in {vectors[key].path} and in "
                f"{row['file_name']}. The table's metadata is damaged; choose another version."
            )
        path = index_path(folder, row["file_name"], row["external_path"], options)
        vectors[key] = PaimonVector(
            path=external_path(storage, path, strict=strict) if row["external_path"] else path,
            offset=row["offset"],
            length=row["length"],
            cardinality=row["cardinality"],
            file_bytes=row["size_bytes"],
        )
    return vectors


def count(indexes: pa.Table) -> int:
    """Return the number of deletion vectors among INDEX_ENTRIES."""
    is_vector = pc.and_(pc.equal(indexes["index_type"], DELETION_VECTORS), indexes["data_file"].is_valid())
    return int(pc.sum(is_vector).as_py() or 0)


def read_deleted_positions(
    storage: Storage, vectors: Iterable[tuple[str, PaimonVector, int]]
) -> Mapping[str, Positions]:
    """Return for each data file the positions of its deleted rows, ascending.

    Reads each index file once, whole: writers keep them at a few MB.

    Args:
        vectors: Path, vector and number of rows of each data file that has a vector.

    Source: paimon docs, "Table Index", "Deletion Vectors"; paimon DeletionVectorsIndexFile.
    """
    requested = list(vectors)
    paths = list(dict.fromkeys(vector.path for _, vector, _ in requested))
    try:
        contents = dict(zip(paths, storage.read_many(paths) if paths else [], strict=True))
    except MissingFileError as error:
        raise absent_file_error("An index file with deletion vectors", error) from error
    result = {}
    for path, vector, rows in requested:
        index = f"The index file {vector.path}"
        check_size(index, len(contents[vector.path]), vector.file_bytes, by="its index manifest")
        try:
            result[path] = positions(contents[vector.path], vector, rows)
        except CorruptBytesError as error:
            name = f"The deletion vector of {path}, in {vector.path} at {vector.offset},"
            raise unreadable_error(name, error) from error
    return result


def positions(content: bytes, vector: PaimonVector, rows: int) -> Positions:
    """Return the positions in a vector, ascending.

    Args:
        content: The index file.
        vector: The location of the vector in it.
        rows: Rows of the data file: all positions must be less.

    Raises:
        CorruptBytesError: The vector does not match the format, its checksum or the index manifest.

    Source: paimon BitmapDeletionVector, Bitmap64DeletionVector, DeletionVector.read.
    """
    if rows > _MAX_ROWS:
        raise refusal(features.LARGE_DELETION_VECTORS, path=vector.path, rows=rows, limit=_MAX_ROWS)
    if content[:1] != bytes([_VERSION]):
        raise CorruptBytesError(f"the version of the index file is {content[:1].hex() or 'missing'}, not {_VERSION}")
    if vector.offset is None or vector.offset < 1:
        raise CorruptBytesError(f"it begins at {vector.offset}")
    body = checked_body(content, vector.offset)
    if body.startswith(_MAGIC_32):
        _check_length(vector, len(body))
        result, end = roaring.decode(body, len(_MAGIC_32), rows)
        check_end(body, end)
    else:
        _check_length(vector, len(body) + 8)
        result = positions_of(body, rows)
    if vector.cardinality is not None and vector.cardinality != len(result):
        raise CorruptBytesError(f"it deletes {len(result)} rows, but the index manifest records {vector.cardinality}")
    return result


def _check_length(vector: PaimonVector, length: int) -> None:
    """Check the length in the index manifest: magic number and bitmap, for 64-bit vectors also size and checksum."""
    if vector.length is not None and vector.length != length:
        raise CorruptBytesError(f"its length is {length}, but the index manifest records {vector.length}")
