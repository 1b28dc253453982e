"""Blob files: the values of one BLOB column, each with its own checksum, and an index at the end."""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.varints import LONGEST, unzigzag, varint
from snapshot_explorer.core.errors import CorruptTableError, MissingFileError
from snapshot_explorer.formats.corrupt_files import absent_file_error, unreadable_error
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.files.data_files import PaimonDataFile, open_data_file
from snapshot_explorer.formats.paimon.metadata.data_types import MAX_LENGTH, PaimonDataType, PaimonField
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.storage import Storage

LIMIT_BYTES = 256 * 2**20
"""The maximum number of bytes of blob files that one read loads."""
_VERSION = 1
_MAGIC = (1481511375).to_bytes(4, "little")
_TAIL = 5
_FRAME = 16
"""Bytes of an entry in addition to its value: magic, length and checksum."""
_NULL, _PLACEHOLDER = -1, -2
_DESCRIPTOR_VERSION = 2
_DESCRIPTOR_MAGIC = 0x424C4F4244455343
DESCRIPTOR = "$descriptor"
"""The suffix of a column name that selects descriptors instead of values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobFile:
    """A blob file in memory."""

    content: bytes
    lengths: npt.NDArray[np.int64]
    """For each row, the length of its entry; -1 for null, -2 if an older file contains the value."""
    starts: npt.NDArray[np.int64]
    """For each row, the offset of its entry."""

    def value(self, row: int) -> bytes | None:
        """Return the value of a row, after checking its entry.

        Raises:
            CorruptBytesError: The entry violates the format or does not match its checksum.
        """
        length = int(self.lengths[row])
        if length == _NULL:
            return None
        start = int(self.starts[row])
        entry = self.content[start : start + length]
        if entry[:4] != _MAGIC or int.from_bytes(entry[-12:-4], "little", signed=True) != length:
            raise CorruptBytesError(f"the entry of row {row}, at {start}, has another magic or length")
        # Before 2.1, pypaimon left the length out of the checksum.
        if int.from_bytes(entry[-4:], "little") not in (zlib.crc32(entry[:-4]), zlib.crc32(entry[:-12])):
            raise CorruptBytesError(f"the checksum of row {row}, at {start}, does not match")
        return entry[4:-12]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobRanges:
    """The locations of the values in a blob file."""

    uri: str
    lengths: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]

    def value(self, row: int) -> bytes | None:
        """Return the descriptor of a row's value in Paimon's format: file, offset, length. Does not read the value.

        Source: paimon BlobDescriptor.serialize.
        """
        length = int(self.lengths[row])
        if length == _NULL:
            return None
        name = self.uri.encode()
        head = struct.pack("<bqi", _DESCRIPTOR_VERSION, _DESCRIPTOR_MAGIC, len(name))
        return head + name + struct.pack("<qq", int(self.starts[row]) + len(_MAGIC), length - _FRAME)


def descriptor_fields(names: Sequence[str], schema: PaimonSchema) -> list[PaimonField]:
    """Return the descriptor columns, `COLUMN$descriptor` of a blob column, among the names, as columns of bytes.

    A column of the schema with that name takes precedence.
    """
    known = {field.name: field for field in schema.fields}
    return [
        PaimonField(id=blob.id, name=name, type=PaimonDataType(root="VARBINARY", length=MAX_LENGTH))
        for name in names
        if name not in known
        and (blob := known.get(name.removesuffix(DESCRIPTOR))) is not None
        and name.endswith(DESCRIPTOR)
        and blob.type.root == "BLOB"
    ]


def column_sizes(entries: pa.Table, file_schemas: Mapping[int, PaimonSchema]) -> Mapping[int, int]:
    """Return the size of all files of each blob column, by its id."""
    sizes: dict[int, int] = {}
    blobs = entries.filter(pc.ends_with(entries.column("file_name"), ".blob"))
    for size, number, written in zip(
        *(blobs.column(name).to_pylist() for name in ("size_bytes", "schema_id", "write_columns")), strict=True
    ):
        for column in file_schemas[number].fields if number in file_schemas else ():
            if written is None or column.name in written:
                sizes[column.id] = sizes.get(column.id, 0) + size
    return sizes


def check_limit(total: int) -> None:
    """Raise if the blobs exceed the limit.

    Args:
        total: Size of all blob files of the requested columns.
    """
    if total > LIMIT_BYTES:
        raise refusal(features.BLOBS_OVER_LIMIT, total=total, limit=LIMIT_BYTES)


def parse(content: bytes, rows: int) -> BlobFile:
    """Return a blob file with its index decoded.

    Raises:
        CorruptBytesError: The bytes violate the format, or contain another number of rows.

    Source: paimon docs, "Blob Storage"; paimon BlobFileMeta, BlobFormatWriter.
    """
    begin = len(content) - _TAIL - _index_bytes(content[-_TAIL:], len(content))
    lengths, starts = _ranges(content[begin:-_TAIL], rows, begin)
    return BlobFile(content=content, lengths=lengths, starts=starts)


def _index_bytes(tail: bytes, size: int) -> int:
    if len(tail) < _TAIL or tail[-1] != _VERSION:
        raise CorruptBytesError(f"its version is {tail[-1:].hex() or 'missing'}, not {_VERSION}")
    result = int.from_bytes(tail[:-1], "little", signed=True)
    if result < 0 or result > size - _TAIL:
        raise CorruptBytesError(f"its index has {result} bytes of {size}")
    return result


def _ranges(index: bytes, rows: int, begin: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    lengths = _deltas(index, rows)
    sizes = np.where(lengths > 0, lengths, 0)
    if np.any((lengths < _FRAME) & (lengths != _NULL) & (lengths != _PLACEHOLDER)) or int(sizes.sum()) != begin:
        raise CorruptBytesError(f"its entries do not fill the {begin} bytes before its index")
    return lengths, np.cumsum(sizes) - sizes


def _deltas(index: bytes, rows: int) -> npt.NDArray[np.int64]:
    """Return the lengths in an index, which are stored as zigzag varints of the differences."""
    if not rows <= len(index) <= rows * LONGEST:
        raise CorruptBytesError(f"its index has {len(index)} bytes, which is not possible for {rows} rows")
    lengths = np.zeros(rows, np.int64)
    position = number = 0
    for row in range(rows):
        try:
            coded, position = varint(index, position)
        except CorruptBytesError as error:
            raise CorruptBytesError("its index is cut short") from error
        number += unzigzag(coded)
        if not _PLACEHOLDER <= number <= LIMIT_BYTES:
            raise CorruptBytesError(f"its index contains the length {number} for row {row}")
        lengths[row] = number
    if position != len(index):
        raise CorruptBytesError(f"its index has numbers for more than {rows} rows")
    return lengths


def read(storage: Storage, file: PaimonDataFile) -> BlobFile:
    """Return a blob file, read whole. At most two requests."""
    with _translate_errors(file):
        with open_data_file(storage, file) as source:
            content = source.read(file.size_bytes)
        return parse(content, file.rows)


def read_ranges(storage: Storage, file: PaimonDataFile) -> BlobRanges:
    """Return the locations of the values in a blob file. Reads only its index, in two ranges."""
    with _translate_errors(file), open_data_file(storage, file) as source:
        end = source.size()
        source.seek(max(0, end - _TAIL))
        size = _index_bytes(source.read(_TAIL), end)
        begin = end - _TAIL - size
        source.seek(begin)
        lengths, starts = _ranges(source.read(size), file.rows, begin)
    path = file.path if "://" in file.path else f"{storage.root}/{file.path}"
    return BlobRanges(uri=f"file:{path}" if path.startswith("/") else path, lengths=lengths, starts=starts)


def check(storage: Storage, file: PaimonDataFile, *, is_whole: bool) -> None:
    """Read the index of a blob file, or all of its entries, one after another, with their checksums."""
    with _translate_errors(file), open_data_file(storage, file) as source:
        end = source.size()
        source.seek(max(0, end - _TAIL))
        begin = end - _TAIL - _index_bytes(source.read(_TAIL), end)
        source.seek(begin)
        lengths, _ = _ranges(source.read(end - _TAIL - begin), file.rows, begin)
        source.seek(0)
        for length in lengths[lengths > 0].tolist() if is_whole else ():
            entry = BlobFile(content=source.read(length), lengths=np.array([length]), starts=np.array([0]))
            entry.value(0)


@contextmanager
def _translate_errors(file: PaimonDataFile) -> Iterator[None]:
    try:
        yield
    except MissingFileError as error:
        raise absent_file_error(f"The blob file {file.path}") from error
    except CorruptBytesError as error:
        raise _broken_error(file, error) from error


def _broken_error(file: PaimonDataFile, error: CorruptBytesError) -> CorruptTableError:
    return unreadable_error(f"The blob file {file.path}", error)


def column(
    storage: Storage,
    files: Sequence[PaimonDataFile],
    *,
    first_row_id: int,
    rows: int,
    dtype: pa.DataType,
    described: bool = False,
) -> pa.Array:
    """Return the values of a blob column for a range of rows, or their descriptors.

    The newest file that contains a row determines its value, except for placeholders. All values are in memory.

    Args:
        files: Files of the column, the newest first; empty for a column of nulls.
        described: Whether to return descriptors. Then only the indexes of the files are read.

    Source: paimon DataEvolutionSplitRead, BlobFallbackRecordReader.
    """
    if not files:
        return pa.nulls(rows, dtype)
    values: list[bytes | None] = [None] * rows
    missing = np.ones(rows, bool)
    read_file: Callable[[Storage, PaimonDataFile], BlobFile | BlobRanges] = read_ranges if described else read
    contents = storage.together(*(partial(read_file, storage, file) for file in files))
    for file, blobs in zip(files, contents, strict=True):
        start = (file.first_row_id or 0) - first_row_id
        is_in_file = missing[start : start + file.rows] & (blobs.lengths != _PLACEHOLDER)
        try:
            for row in np.flatnonzero(is_in_file).tolist():
                values[start + row] = blobs.value(row)
        except CorruptBytesError as error:
            raise _broken_error(file, error) from error
        missing[start : start + file.rows] &= ~is_in_file
    if missing.any():
        raise CorruptTableError(
            f"No blob file contains the value of row {first_row_id + int(np.argmax(missing))}; the newest of these "
            f"rows is {files[0].path}. The table has lost a file; choose another version."
        )
    return pa.array(values, dtype)


def batches(values: pa.Array, name: str, size: int) -> Iterator[pa.RecordBatch]:
    """Yield a column as batches of at most `size` rows."""
    for start in range(0, len(values), size):
        yield pa.RecordBatch.from_arrays([values.slice(start, size)], names=[name])
