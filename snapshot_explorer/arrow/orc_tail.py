"""Parts of an ORC file that pyarrow does not expose: the writer's time zone, its removal, and a check of the types.

Source: ORC specification v1, "File Tail", "Types", "Stripe Footer", "Compression".
"""

import io
import os
import re
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.varints import varint, varint_bytes
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.old_libraries import PYARROW_ORC_STRIPES

_TAIL = 16_384
_MAX_FOOTER_BYTES = 64 * 2**20
_NONE, _ZLIB, _SNAPPY, _LZ4, _ZSTD = 0, 1, 2, 4, 5
_STRIPES, _TYPES = 3, 4
_KIND, _SUBTYPES, _FIELD_NAMES, _PRECISION = 1, 2, 3, 5
_ENCODINGS, _ZONE = 2, 3
_DATA_LENGTH, _FOOTER_LENGTH = 3, 4
_METADATA_LENGTH = 5
_FIXED_OFFSET = re.compile(r"GMT([+-])(\d\d):(\d\d)")
"""Java's name of a zone that is an offset, in no time zone database."""
_DECIMAL = 14
_TIMESTAMPS = (9, 18)
_MAX_DECIMAL_DIGITS = 38
_MAX_DEPTH = 100
_MIN_FILE_BYTES = 8
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MATCH = 4
"""The minimum length of a repetition in LZ4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compression:
    codec: int
    """The codec's number in the postscript."""
    block: int
    """The maximum size of a chunk when unpacked."""


def writer_zone(source: pa.NativeFile) -> str:
    """Return the zone of the writer's clock in the first stripe; "" if the writer left it out.

    Reads the tail of the file and one small range.
    """
    footer, compression = _footer(source)
    stripes = (value for field, value in _messages(footer) if field == _STRIPES and isinstance(value, bytes))
    first = next(stripes, None)
    return "" if first is None else _zone(source, dict(_messages(first)), compression)


def fixed_offset(zone: str) -> timezone | None:
    """Return the zone of a name such as GMT+08:00; None for other names."""
    match = _FIXED_OFFSET.fullmatch(zone)
    if match is None or int(match[2]) > 23:  # noqa: PLR2004 - hours of a day
        return None
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(-offset if match[1] == "-" else offset)


def in_utc(source: pa.NativeFile) -> pa.NativeFile | None:
    """Return a file as if its writer's clock had been in UTC; None if its zone is not a fixed offset.

    pyarrow does not open the stripes of a writer whose zone is not in the database. The times on the writer's clock are
    the same, since they are counted from 2015 on that clock. Nothing is copied: the file is followed by stripe footers
    without the zone, and by a footer that refers to them.
    """
    zone = writer_zone(source)
    if fixed_offset(zone) is None:
        return None
    footer, compression = _footer(source)
    fields, end, tail = [], source.size(), bytearray()
    for field, value in _messages(footer):
        if field != _STRIPES or not isinstance(value, bytes):
            fields.append((field, value))
            continue
        stripe = dict(_messages(value))
        old = _stripe_footer(source, stripe, compression)
        if dict(old).get(_ZONE) != zone.encode():
            return None
        new = _pack(_encode((item, b"UTC" if item == _ZONE else content) for item, content in old), compression)
        stripe[_DATA_LENGTH] = end + len(tail) - _number(stripe, 1) - _number(stripe, 2)
        stripe[_FOOTER_LENGTH] = len(new)
        tail += new
        fields.append((field, _encode(stripe.items())))
    new = _pack(_encode(fields), compression)
    kept = [item for item in _messages(_postscript(source)) if item[0] not in (1, _METADATA_LENGTH)]
    last = _encode([(1, len(new)), *kept])
    return pa.PythonFile(_FileWithTail(source, bytes(tail + new + last) + bytes([len(last)])), mode="r")


class _FileWithTail(io.RawIOBase):
    """A file followed by other bytes."""

    def __init__(self, source: pa.NativeFile, tail: bytes) -> None:
        self._source, self._tail = source, tail
        self._end, self._place = source.size(), 0

    def read(self, size: int = -1, /) -> bytes:
        whole = self._end + len(self._tail)
        stop = whole if size < 0 else min(whole, self._place + size)
        content = b""
        if self._place < min(stop, self._end):
            content = _range(self._source, self._place, min(stop, self._end) - self._place)
        content += self._tail[max(0, self._place - self._end) : max(0, stop - self._end)]
        self._place = max(self._place, stop)
        return content

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._end + len(self._tail)}[whence]
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def _encode(fields: Iterable[tuple[int, int | bytes]]) -> bytes:
    content = bytearray()
    for field, value in fields:
        if isinstance(value, int):
            content += varint_bytes(field << 3 | _VARINT) + varint_bytes(value)
        else:
            content += varint_bytes(field << 3 | _BYTES) + varint_bytes(len(value)) + value
    return bytes(content)


def _pack(content: bytes, compression: _Compression) -> bytes:
    if compression.codec == _NONE:
        return content
    chunks = (content[start : start + compression.block] for start in range(0, len(content), compression.block))
    return b"".join((len(chunk) << 1 | 1).to_bytes(3, "little") + chunk for chunk in chunks)


def check_types(source: pa.NativeFile) -> None:
    """Refuse a file with types that make pyarrow abort the process.

    These are decimals of more than 38 digits, and types that are nested too deeply. Reads the tail of the file. A file
    compressed with LZO is not checked.
    """
    try:
        footer, _ = _footer(source)
    except UnsupportedFeatureError:
        return
    depths = {0: 0}
    for index, type_message in enumerate(value for field, value in _messages(footer) if field == _TYPES):
        depth = depths.get(index)
        if not isinstance(type_message, bytes) or depth is None:
            raise CorruptBytesError("its types are not a tree")
        if depth > _MAX_DEPTH:
            raise CorruptBytesError(f"its types are nested more than {_MAX_DEPTH} deep")
        # The last value of a repeated field is valid, and of an integer its lower 32 bits.
        plain = {field: value & 0xFFFF_FFFF for field, value in _messages(type_message) if isinstance(value, int)}
        if plain.get(_KIND) == _DECIMAL and plain.get(_PRECISION, 0) > _MAX_DECIMAL_DIGITS:
            raise CorruptBytesError(f"a decimal would have {plain[_PRECISION]} digits")
        for number in _subtypes(type_message):
            if number <= index or number in depths:
                raise CorruptBytesError("its types are not a tree")
            depths[number] = depth + 1


def stripe_ranges(source: pa.NativeFile) -> list[tuple[int, int]]:
    """Return the start and end of each stripe in the file. Reads the tail of the file."""
    size = source.size()
    stripes = [dict(_messages(value)) for value in _parts(source, _STRIPES)]
    starts = [_number(stripe, 1) for stripe in stripes]
    lengths = [sum(_number(stripe, item) for item in (2, _DATA_LENGTH, _FOOTER_LENGTH)) for stripe in stripes]
    return [(min(start, size), min(start + length, size)) for start, length in zip(starts, lengths, strict=True)]


def column_sizes(source: pa.NativeFile) -> list[int]:
    """Return the size of the streams of each column of the outermost struct, indexes included.

    Reads the tail of the file and the footer of each stripe.
    """
    numbers, (_, compression) = list(_top_columns(_parts(source, _TYPES)).values()), _footer(source)
    sizes = [0] * (len(numbers) + 1)
    for stripe in _parts(source, _STRIPES):
        for stream in _streams(_stripe_footer(source, dict(_messages(stripe)), compression)):
            # A column's parts are numbered after it, up to the next column.
            sizes[bisect_right(numbers, _number(stream, 2))] += _number(stream, 3)
    return sizes[1:]


def check_stripes(source: pa.NativeFile) -> None:
    """Raise an error for stripes that make an old pyarrow abort the process. Reads the footer of each stripe."""
    if not PYARROW_ORC_STRIPES.applies():
        return
    footer, compression = _footer(source)
    stripes = [
        dict(_messages(value)) for field, value in _messages(footer) if field == _STRIPES and isinstance(value, bytes)
    ]
    for zone in {_zone(source, stripe, compression) for stripe in stripes}:
        path = f"{os.environ.get('TZDIR', '/usr/share/zoneinfo')}/{zone}"
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - the path that pyarrow opens
                ZoneInfo.from_file(file)
        except (OSError, ValueError) as error:
            if zone:
                raise pa.ArrowException(f"Time zone file {path} does not exist") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStreams:
    """The streams of one column in one stripe, unpacked."""

    rows: int
    """The number of rows of the stripe."""
    encoding: int
    zone: str
    """The zone of the writer's clock; "" if the writer left it out."""
    streams: dict[int, bytes]
    """The content of each stream by the number of its kind."""


def column_streams(source: pa.NativeFile, stripe: int, name: str) -> ColumnStreams:
    """Return the streams of a column of the outermost struct in a stripe. Reads the tail and the column's streams."""
    numbers = _top_columns(_parts(source, _TYPES))
    if name not in numbers:
        raise CorruptBytesError(f"it has no column {name!r}")
    return streams_of(source, stripe, numbers[name])


def timestamp_columns(source: pa.NativeFile, names: Iterable[str] | None) -> list[int]:
    """Return the numbers of the timestamp columns of a file, within other columns too. Reads the tail.

    Args:
        names: The columns of the outermost struct that contain them; None for all.
    """
    types = _parts(source, _TYPES)
    numbers = _top_columns(types)
    chosen = set(numbers.values() if names is None else (numbers[name] for name in names if name in numbers))
    for number, dtype in enumerate(types):  # parents precede their children
        if number in chosen:
            chosen.update(_subtypes(dtype))
    return [number for number in sorted(chosen) if dict(_messages(types[number])).get(_KIND) in _TIMESTAMPS]


def _top_columns(types: Sequence[bytes]) -> dict[str, int]:
    """Return the numbers of the columns of the outermost struct."""
    if not types:
        raise CorruptBytesError("it has no types")
    names = [
        value.decode("utf-8", "replace")
        for field, value in _messages(types[0])
        if field == _FIELD_NAMES and isinstance(value, bytes)
    ]
    return dict(zip(names, _subtypes(types[0]), strict=False))


def _parts(source: pa.NativeFile, field: int) -> list[bytes]:
    """Return the values of a repeated field of the footer."""
    footer, _ = _footer(source)
    return [value for number, value in _messages(footer) if number == field and isinstance(value, bytes)]


def streams_of(source: pa.NativeFile, stripe: int, column: int) -> ColumnStreams:
    """Return the streams of a column by its number. Reads the tail and the column's streams."""
    stripes, (_, compression) = _parts(source, _STRIPES), _footer(source)
    if stripe >= len(stripes):
        raise CorruptBytesError(f"it has no stripe {stripe}")
    head = dict(_messages(stripes[stripe]))
    start, parts = _number(head, 1), _stripe_footer(source, head, compression)
    encodings = [dict(_messages(value)) for field, value in parts if field == _ENCODINGS and isinstance(value, bytes)]
    zone = next((value for field, value in parts if field == _ZONE and isinstance(value, bytes)), b"")
    streams = {}
    for stream in _streams(parts):
        length = _number(stream, 3)
        if _number(stream, 2) == column and length:
            streams[_number(stream, 1)] = _unpack(_range(source, start, length), compression)
        start += length
    if column >= len(encodings):
        raise CorruptBytesError(f"the column with the number {column} has no encoding")
    return ColumnStreams(
        rows=_number(head, 5),
        encoding=_number(encodings[column], 1),
        zone=zone.decode("utf-8", "replace"),
        streams=streams,
    )


def _subtypes(type_message: bytes) -> Iterator[int]:
    for field, value in _messages(type_message):
        if field == _SUBTYPES and isinstance(value, int):
            yield value
        elif field == _SUBTYPES and isinstance(value, bytes):
            at = 0
            while at < len(value):
                number, at = varint(value, at)
                yield number


def _postscript(source: pa.NativeFile) -> bytes:
    size = source.size()
    if size < _MIN_FILE_BYTES:
        raise CorruptBytesError("it is cut short")
    tail = _range(source, max(0, size - _TAIL), min(size, _TAIL))
    return tail[-1 - tail[-1] : -1]


def _footer(source: pa.NativeFile) -> tuple[bytes, _Compression]:
    size = source.size()
    last = _postscript(source)
    script = dict(_messages(last))
    compression = _Compression(codec=_number(script, 2), block=_number(script, 3) or 2**18)
    footer_length = _number(script, 1)
    if footer_length > min(size, _MAX_FOOTER_BYTES):
        raise CorruptBytesError(f"its footer would have {footer_length} bytes")
    packed = _range(source, size - 1 - len(last) - footer_length, footer_length)
    return _unpack(packed, compression), compression


def _stripe_footer(
    source: pa.NativeFile, stripe: dict[int, int | bytes], compression: _Compression
) -> list[tuple[int, int | bytes]]:
    """Return the fields of the footer of a stripe, which follows its indexes and data."""
    start, length = sum(_number(stripe, item) for item in (1, 2, _DATA_LENGTH)), _number(stripe, _FOOTER_LENGTH)
    if length > _MAX_FOOTER_BYTES:
        raise CorruptBytesError(f"the footer of a stripe would have {length} bytes")
    return list(_messages(_unpack(_range(source, start, length), compression)))


def _streams(stripe_footer: Iterable[tuple[int, int | bytes]]) -> Iterator[dict[int, int | bytes]]:
    """Yield the streams of a stripe in their order: kind (1), column (2) and length (3)."""
    return (dict(_messages(value)) for field, value in stripe_footer if field == 1 and isinstance(value, bytes))


def _zone(source: pa.NativeFile, stripe: dict[int, int | bytes], compression: _Compression) -> str:
    result = dict(_stripe_footer(source, stripe, compression)).get(_ZONE, b"")
    return result.decode("utf-8", "replace") if isinstance(result, bytes) else ""


def _range(source: pa.NativeFile, start: int, length: int) -> bytes:
    if start < 0 or length < 1:
        raise CorruptBytesError("it points outside of the file")
    source.seek(start)
    content = bytes(source.read(length))
    if len(content) < length:
        raise CorruptBytesError("it is cut short")
    return content


def _number(message: dict[int, int | bytes], field: int) -> int:
    value = message.get(field, 0)
    if not isinstance(value, int):
        raise CorruptBytesError(f"field {field} is not a number")
    return value


def _messages(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a protocol buffer: number, and value as an integer or bytes."""
    at = 0
    while at < len(content):
        key, at = varint(content, at)
        field, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = varint(content, at)
            yield field, value
            continue
        length = {_FIXED64: 8, _FIXED32: 4}.get(wire, -1)
        if wire == _BYTES:
            length, at = varint(content, at)
        if length < 0 or at + length > len(content):
            raise CorruptBytesError("a field of its footer is cut short")
        yield field, content[at : at + length]
        at += length


def _unpack(content: bytes, compression: _Compression) -> bytes:
    """Return a stream of chunks unpacked; each begins with three bytes, its length and whether it is packed."""
    if compression.codec == _NONE:
        return content
    unpacked = bytearray()
    at = 0
    while at + 3 <= len(content):
        head = int.from_bytes(content[at : at + 3], "little")
        chunk = content[at + 3 : at + 3 + (head >> 1)]
        at += 3 + (head >> 1)
        unpacked += chunk if head & 1 else _chunk(chunk, compression)
        if len(unpacked) > _MAX_FOOTER_BYTES:
            raise CorruptBytesError("its footer is too large")
    return bytes(unpacked)


def _chunk(chunk: bytes, compression: _Compression) -> bytes:
    match compression.codec:
        case 1:
            try:
                return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, compression.block)
            except zlib.error as error:
                raise CorruptBytesError(f"a chunk cannot be unpacked ({error})") from error
        case 2:
            size, _ = varint(chunk, 0)
            if size > compression.block:
                raise CorruptBytesError("a chunk is larger than the file allows")
            return bytes(pa.Codec("snappy").decompress(chunk, decompressed_size=size))
        case 4:
            return _lz4(chunk, compression.block)
        case 5:
            with pa.CompressedInputStream(pa.BufferReader(chunk), "zstd") as stream:
                return bytes(stream.read(compression.block))
    raise UnsupportedFeatureError(
        f"ORC files compressed with codec {compression.codec} (LZO is 3) are not supported where times have a zone."
    )


def _lz4(chunk: bytes, limit: int) -> bytes:
    """Return one LZ4 block unpacked.

    Source: LZ4 block format description.
    """
    unpacked = bytearray()
    at = 0
    try:
        while True:
            token = chunk[at]
            length, at = _lz4_length(chunk, at + 1, token >> 4)
            if at + length > len(chunk):
                raise CorruptBytesError("a packed chunk is cut short")
            unpacked += chunk[at : at + length]
            at += length
            if at == len(chunk):
                return bytes(unpacked)
            distance = int.from_bytes(chunk[at : at + 2], "little")
            length, at = _lz4_length(chunk, at + 2, token & 15)
            if not 0 < distance <= len(unpacked) or len(unpacked) + length > limit:
                raise CorruptBytesError("a packed chunk is damaged")
            for _ in range(length + _MATCH):
                unpacked.append(unpacked[-distance])
    except IndexError as error:
        raise CorruptBytesError("a packed chunk is cut short") from error


def _lz4_length(chunk: bytes, at: int, start: int) -> tuple[int, int]:
    length = start
    if start == 15:  # noqa: PLR2004 - the nibble for more bytes
        more = 255
        while more == 255:  # noqa: PLR2004 - likewise
            more = chunk[at]
            length += more
            at += 1
    return length, at
