"""The decoded size of a parquet metadata file, computed from its page headers before it is decoded.

The footer is not enough: a dictionary can repeat its value in every row, and sizes in a footer are claims. The header
of each page contains its uncompressed size and number of values, which a reader allocates by.

Source: parquet-format, "Data Pages", "Encodings"; PageHeader in parquet.thrift.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import parquet_footers, thrift
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core.limits import Limits

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_SUSPICIOUS = 64 << 20
"""The maximum estimated decoded bytes of a column chunk that is not measured."""
_HEADER_BYTES = (512, 1 << 16, 1 << 24)
"""Bytes in which a page's header is searched: nearly all headers are short, but statistics can make one long."""
_DICTIONARY = 2
_METADATA, _ENCRYPTION = 3, 8
"""Fields of a column chunk."""
_CODEC, _SIZE_STATISTICS = 4, 16
"""Fields of its metadata."""
_TEXT_BYTES, _REPETITIONS, _DEFINITIONS = 1, 2, 3
"""Fields of its size statistics."""
_CODECS = range(8)
_DATA = {0: 5, 3: 8}
"""The field of a page header that describes a data page, by the type of the page."""
_CHECKSUM = 4
"""The field of a page header that holds the checksum of the page."""
_NEXT_I32 = b"\x15"
"""The header of a 32-bit integer field whose number is one more than the previous field's number."""
_SHORT_DELTA, _AFTER_CHECKSUM = 4, 2
"""The offset of the distance to the previous field, and the minimum distance that leaves the checksum out."""
_CHECKSUM_BYTES = 20
"""Bytes of a page header in which the checksum begins."""
_DICTIONARY_ENCODINGS = (2, 8)
_FRONT_CODED = 7
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 8}
_LEVELS = 4
"""Bytes of a value's two levels as they are decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    kind: int
    start: int
    """The offset of its content."""
    packed: int
    """Bytes stored."""
    unpacked: int
    """Bytes after it is unpacked."""
    values: int
    """Number of values, nulls included."""
    encoding: int
    checksum: int | None
    """The CRC-32 of the stored bytes; None if the page carries none."""


@dataclass(slots=True, kw_only=True)
class _ChunkSizes:
    plain: int = 0
    """Bytes of its pages, and of values of fixed width."""
    unfolded: int = 0
    """An upper bound on the decoded bytes of encoded values."""
    longest: int = 0
    """Bytes of the longest value in its dictionary."""
    front_coded: int = 0
    """The maximum bytes of a value that repeats the prefix of the previous one."""


def open_metadata_file(source: pa.NativeFile) -> "pq.ParquetFile":
    """Return a parquet file of metadata, opened. Pages that carry a checksum are verified when they are read.

    Raises:
        CorruptBytesError: Its footer would make pyarrow abort the process.
        pyarrow.ArrowException: It is not a parquet file.
    """
    file = parquet_footers.open_file(source, page_checksum_verification=True)
    for chunks in _chunks(thrift.footer_bytes(source)):
        if len(chunks) != len(file.schema):
            raise CorruptBytesError(f"a row group has {len(chunks)} columns of {len(file.schema)}")
        for index, chunk in enumerate(chunks):
            _check_chunk(chunk, file.schema.column(index))
    return file


@lru_cache(maxsize=64)
def _chunks(footer: bytes) -> list[list[list[thrift.Field]]]:
    """Return the column chunks of each row group. Decoding them takes longer than reading a small file."""
    return [thrift.structs(group, 1) for group in thrift.structs(thrift.ThriftReader(footer).struct(), 4)]


def may_name_column(source: pa.NativeFile, name: str) -> bool:
    """Return whether a file may have a column of a name. Reads the footer, without decoding it."""
    return name.encode() in thrift.footer_bytes(source)


def _check_chunk(chunk: list[thrift.Field], column: "pq.ColumnSchema") -> None:
    """Refuse a chunk that is encrypted, of an unknown codec, or with size statistics that do not fit its column.

    pyarrow ends the process for each.

    Source: parquet-format, ColumnChunk, CompressionCodec and SizeStatistics in parquet.thrift.
    """
    if any(field.id == _ENCRYPTION for field in chunk):
        raise CorruptBytesError(f"the column {column.path} is encrypted")
    metadata = next((field.value for field in chunk if field.id == _METADATA), None)
    if not isinstance(metadata, list):
        raise CorruptBytesError(f"the column {column.path} has no metadata")
    for field in metadata:
        if field.id == _CODEC and field.value not in _CODECS:
            raise CorruptBytesError(f"the column {column.path} is compressed with the unknown codec {field.value!r}")
    for sizes in (field.value for field in metadata if field.id == _SIZE_STATISTICS and isinstance(field.value, list)):
        for field in sizes:
            if field.id == _TEXT_BYTES and column.physical_type != "BYTE_ARRAY":
                raise CorruptBytesError(f"the column {column.path} counts the bytes of texts, but has none")
            most = {_REPETITIONS: column.max_repetition_level, _DEFINITIONS: column.max_definition_level}.get(field.id)
            counts = len(field.value.values) if isinstance(field.value, thrift.ThriftList) else 0
            if most is not None and counts not in (0, most + 1):
                raise CorruptBytesError(f"the column {column.path} counts {counts} levels of {most + 1}")


def check(
    file: "pq.ParquetFile", source: pa.NativeFile, path: str, *, columns: list[str] | None, limits: Limits
) -> None:
    """Check that a file may be decoded. Reads the headers of its pages, but of a remote file the footer alone.

    Args:
        columns: The columns that will be read, each with its nested columns; None for all.

    Raises:
        CorruptBytesError: A page has an impossible header.
    """
    size = source.size()
    limits.check_rows(path, size, file.metadata.num_rows)
    # A remote source is read by requests: the headers of large files are too many of them.
    has_pages = not isinstance(source, pa.PythonFile)
    total = 0
    wanted = [index for index in range(len(file.schema)) if _is_wanted(file.schema.column(index).path, columns)]
    for group in range(file.num_row_groups):
        row_group = file.metadata.row_group(group)
        for index in wanted:
            column = row_group.column(index)
            width = _width(file, index)
            claimed = column.num_values * (width + _LEVELS) + (0 if has_pages else column.total_uncompressed_size)
            limits.check_bytes(path, size, total + claimed)
            if not has_pages:
                total += max(0, claimed)
                continue
            left = limits.most_bytes(size) - total
            chunk = _chunk_sizes(source, column, width, left)
            total += max(0, claimed, chunk.plain)
            limits.check_bytes(path, size, total)
            if chunk.unfolded > _SUSPICIOUS:
                chunk.unfolded = _measure(file, source, (group, column.path_in_schema), chunk, left)
            total += chunk.unfolded
            limits.check_bytes(path, size, total)


def _is_wanted(path: str, columns: list[str] | None) -> bool:
    return columns is None or f"{path}.".startswith(tuple(f"{column}." for column in columns))


def _width(file: "pq.ParquetFile", index: int) -> int:
    column = file.schema.column(index)
    return _WIDTHS.get(column.physical_type) or max(1, column.length)


def _chunk_sizes(source: pa.NativeFile, column: "pq.ColumnChunkMetaData", width: int, most: int) -> _ChunkSizes:
    """Return the sizes of the pages of a column chunk; stops once they exceed `most`."""
    result = _ChunkSizes()
    for page in _pages(source, column):
        result.plain += page.unpacked
        if result.plain > most:
            break
        if page.kind == _DICTIONARY:
            if column.physical_type == "BYTE_ARRAY":
                result.longest = max(result.longest, _longest_value(source, column.compression, page))
            continue
        result.plain += page.values * (width + _LEVELS)
        if page.encoding in _DICTIONARY_ENCODINGS:
            # A page may precede its dictionary, or the file may lack one: then nothing is decoded.
            result.unfolded += page.values * result.longest
        elif page.encoding == _FRONT_CODED:
            result.front_coded = max(result.front_coded, page.unpacked)
            result.unfolded += page.values * page.unpacked
    return result


def has_checksums(source: pa.NativeFile, column: "pq.ColumnChunkMetaData") -> bool:
    """Return whether the first page of a column chunk carries a checksum, or its header is not understood.

    Writers add a checksum to all pages of a chunk or to none.

    Source: parquet-format, "Checksumming"; PageHeader in parquet.thrift; Thrift compact protocol.
    """
    head = bytes(source.read_at(_CHECKSUM_BYTES, _first_page(column)))
    at = 0
    for _ in range(_CHECKSUM - 1):  # the fields before the checksum are required, and 32-bit integers
        if head[at : at + 1] != _NEXT_I32:
            return True
        at += 1
        while at < len(head) and head[at] & 0x80:
            at += 1
        at += 1
    return not head[at:] or head[at] >> _SHORT_DELTA < _AFTER_CHECKSUM


def is_intact(source: pa.NativeFile, column: "pq.ColumnChunkMetaData") -> bool:
    """Return whether the pages of a column chunk have the checksums that they carry. Reads them without decoding.

    Args:
        source: The file; preferably a memory map, which avoids copies.

    Raises:
        CorruptBytesError: A page has no valid header.

    Source: parquet-format, "Checksumming".
    """
    for page in _pages(source, column):
        if page.checksum is None:
            return True
        source.seek(page.start)
        if zlib.crc32(source.read_buffer(page.packed)) != page.checksum & 0xFFFF_FFFF:
            return False
    return True


def _pages(source: pa.NativeFile, column: "pq.ColumnChunkMetaData") -> Iterator[_Page]:
    """Yield the headers of a column chunk's pages, in order, as pyarrow will read them."""
    at = _first_page(column)
    end = min(at + column.total_compressed_size, source.size())
    values = 0
    while at < end and values < column.num_values:
        page = _header(source, at, end)
        yield page
        if page.kind in _DATA:
            values += page.values
        at = page.start + page.packed


def _first_page(column: "pq.ColumnChunkMetaData") -> int:
    at = int(column.data_page_offset)
    has_earlier = column.has_dictionary_page and column.dictionary_page_offset
    return min(at, int(column.dictionary_page_offset)) if has_earlier and column.dictionary_page_offset > 0 else at


def _header(source: pa.NativeFile, at: int, end: int) -> _Page:
    for length in _HEADER_BYTES:
        reader = thrift.ThriftReader(bytes(source.read_at(min(length, end - at), at)))
        try:
            fields = {field.id: field.value for field in reader.struct()}
            break
        except CorruptBytesError:
            if length >= end - at:
                raise
    else:
        raise CorruptBytesError(f"the page at byte {at} has no header")
    page_type, unpacked, packed = (fields.get(number) for number in (1, 2, 3))
    if not isinstance(page_type, int) or not isinstance(unpacked, int) or not isinstance(packed, int):
        raise CorruptBytesError(f"the page at byte {at} has no size")
    if unpacked < 0 or packed < 0:
        raise CorruptBytesError(f"the page at byte {at} has {packed} bytes")
    header = fields.get(7 if page_type == _DICTIONARY else _DATA.get(page_type, 0))
    page_fields = {field.id: field.value for field in header} if isinstance(header, list) else {}
    values, encoding = page_fields.get(1, 0), page_fields.get(4 if page_type == 3 else 2, 0)  # noqa: PLR2004 - a page of version 2
    if not isinstance(values, int) or not isinstance(encoding, int) or values < 0:
        raise CorruptBytesError(f"the page at byte {at} has no number of values")
    checksum = fields.get(_CHECKSUM)
    if checksum is not None and not isinstance(checksum, int):
        raise CorruptBytesError(f"the page at byte {at} has no checksum")
    return _Page(
        kind=page_type,
        start=at + reader.position,
        packed=packed,
        unpacked=unpacked,
        values=values,
        encoding=encoding,
        checksum=checksum,
    )


def _longest_value(source: pa.NativeFile, compression: str, page: _Page) -> int:
    content = bytes(source.read_at(page.packed, page.start))
    if compression != "UNCOMPRESSED":
        content = pa.decompress(content, decompressed_size=page.unpacked, codec=_codec(compression), asbytes=True)
    longest = int.from_bytes(content[:4], "little")
    if page.values > 1 and len(content) == page.values * (4 + longest):
        lengths = np.frombuffer(content, np.uint8).reshape(page.values, -1)[:, :4]
        if (lengths == lengths[0]).all():
            return longest  # as of paths with identifiers
    longest = at = 0
    for _ in range(page.values):
        size = int.from_bytes(content[at : at + 4], "little")
        longest = max(longest, size)
        at += 4 + size
        if at >= len(content):
            break
    return longest


def _codec(compression: str) -> str:
    return {"LZ4": "lz4_raw"}.get(compression, compression.lower())


def _measure(
    file: "pq.ParquetFile", source: pa.NativeFile, column_chunk: tuple[int, str], chunk: _ChunkSizes, most: int
) -> int:
    """Return the decoded size of a column chunk in bytes, exact if below `most`. Decodes little of it."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - loaded when the first such file is read: it takes time

    group, column = column_chunk
    if chunk.front_coded:
        if "." in column.replace(column.split(".")[0] + ".", "", 1):
            return chunk.unfolded  # of lists in a row there may be any number
        rows = max(1, _SUSPICIOUS // chunk.front_coded)
        total = 0
        for batch in file.iter_batches(rows, row_groups=[group], columns=[column]):
            total += batch.nbytes
            if total > most:
                break
        return total
    folded = pq.ParquetFile(source, metadata=file.metadata, read_dictionary=[column])
    return sum(_text_bytes(item) for item in folded.read_row_group(group, columns=[column]).itercolumns())


def _text_bytes(values: pa.ChunkedArray | pa.Array) -> int:
    """Return the size in bytes of the texts in a dictionary-encoded, possibly nested column."""
    if isinstance(values, pa.ChunkedArray):
        return sum(_text_bytes(chunk) for chunk in values.chunks)
    if isinstance(values, pa.DictionaryArray):
        sizes = pc.binary_length(values.dictionary)
        return pc.sum(sizes.cast(pa.int64()).take(values.indices)).as_py() or 0
    if isinstance(values, pa.StructArray):
        return sum(_text_bytes(part) for part in values.flatten())
    if isinstance(values, pa.MapArray):
        return _text_bytes(values.keys) + _text_bytes(values.items)
    if isinstance(values, pa.ListArray | pa.LargeListArray):
        return _text_bytes(values.flatten())
    return int(values.nbytes)
