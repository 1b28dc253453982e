"""Avro object container files: header, codecs, and the shape of their records."""

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from snapshot_explorer.arrow import varints
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core.errors import CorruptTableError, LimitError, UnsupportedFeatureError
from snapshot_explorer.core.limits import DEFAULT, Limits
from snapshot_explorer.formats import json_text
from snapshot_explorer.formats.features import AVRO_CODECS, RECURSIVE_AVRO, refusal

MAGIC = b"Obj\x01"
MARKER_BYTES = 16
"""The size of the marker after the header and after each block."""
_MAX_PARTS = 10_000
_MAX_DEPTH = 4 * json_text.MAX_NESTED_TYPES  # unions count too
_CHUNK = 2**18
_MAX_FOR_XZ = 128 * 2**20
"""The memory limit of the xz decoder. Its strongest preset takes 65 MiB."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type."""

    name: str
    """null, boolean, int, long, float, double, bytes or string."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Bytes of a fixed length."""

    size: int
    """The number of bytes."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An enum."""

    symbols: tuple[str, ...]
    """The symbols by index."""


@dataclass(frozen=True, slots=True)
class Items:
    """An array, or a map, which is an array of string keys with values."""

    item: "Shape"
    """The shape of each item, or of each value of a map."""
    keyed: bool


@dataclass(frozen=True, slots=True)
class Union:
    """One of several shapes, selected by a number prefix."""

    branches: "tuple[Shape, ...]"


@dataclass(frozen=True, slots=True)
class Record:
    """Fields one after another."""

    fields: "tuple[tuple[str, Shape], ...]"
    """Names and shapes in the order written."""


Shape = Primitive | Fixed | Choice | Items | Union | Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """An Avro file, uncompressed."""

    path: str
    """The file, for messages."""
    shape: Shape
    schema_text: bytes
    """The text of the schema. Equal text means equal shape."""
    blocks: tuple[tuple[int, bytes], ...]
    """Number of rows and the uncompressed bytes of each block, in order."""
    header: Mapping[str, bytes]
    """The file's own metadata, by key."""
    head: bytes = b""
    """The bytes before the first marker, which are the same in files with the same metadata."""

    @property
    def rows(self) -> int:
        """The number of rows in the block headers."""
        return sum(rows for rows, _ in self.blocks)


def varint(content: bytes, at: int) -> tuple[int, int]:
    """Return the zigzag number at a position, and the position after it.

    Source: Avro specification, "Primitive Types".
    """
    number, end = varints.varint(content, at)
    if number >= 2**64:
        raise CorruptBytesError(f"invalid number at byte {at}")
    return varints.unzigzag(number), end


def read_bytes(content: bytes, at: int) -> tuple[bytes, int]:
    """Return the length-prefixed bytes at a position, and the position after them."""
    size, at = varint(content, at)
    if size < 0 or size > len(content) - at:
        raise CorruptBytesError(f"{size} bytes expected at byte {at}, found {len(content) - at}")
    return content[at : at + size], at + size


def read_container(
    content: bytes,
    path: str,
    shapes: dict[bytes, Shape],
    *,
    limits: Limits = DEFAULT,
    parse: Callable[[Any], "Shape"] | None = None,
) -> Container:
    """Return an Avro file's shape and uncompressed blocks.

    Args:
        shapes: Schemas parsed before, by their text; this file's is added.
        limits: Limits on the size of a file.
        parse: Parses a schema; `parse_shape` for None.

    Source: Avro specification, "Object Container Files".
    """
    try:
        header, sync, at = _header(content)
        schema_text = header.get("avro.schema", b"")
        if schema_text not in shapes:
            shapes[schema_text] = (parse or parse_shape)(parse_avro_schema(schema_text, path))
        codec = header.get("avro.codec", b"null").decode()
        blocks = _blocks(content, path, (at, sync), _Packing(codec=codec, limits=limits))
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OSError,
        RecursionError,
        zlib.error,
    ) as error:
        if isinstance(error, UnsupportedFeatureError | LimitError):
            raise
        raise CorruptTableError(
            f"{path} cannot be read as an Avro file: {error}. It is cut short or damaged; "
            "compare it with a copy of the table, or choose another version."
        ) from error
    return Container(
        path=path,
        shape=shapes[schema_text],
        schema_text=schema_text,
        blocks=blocks,
        header=header,
        head=content[: at - MARKER_BYTES],
    )


def parse_avro_schema(text: bytes | str, path: str) -> Any:
    """Return the schema of a file, after checking the depth of its types.

    Raises:
        ValueError: The schema is not JSON.
        LimitError: Its types are nested too deep.
    """
    where = f"The Avro schema in {path}"
    try:
        raw = json.loads(text)
    except RecursionError:
        raw = json_text.loads(text, where)
    json_text.check_types(raw, where)
    return raw


def _header(content: bytes) -> tuple[dict[str, bytes], bytes, int]:
    if content[:4] != MAGIC:
        raise CorruptBytesError("it does not begin with Obj")
    header: dict[str, bytes] = {}
    at = len(MAGIC)
    while True:
        count, at = varint(content, at)
        if count == 0:
            break
        if count < 0:
            _, at = varint(content, at)
        for _ in range(abs(count)):
            key, at = read_bytes(content, at)
            header[key.decode()], at = read_bytes(content, at)
    sync = content[at : at + MARKER_BYTES]
    if len(sync) < MARKER_BYTES:
        raise CorruptBytesError("the header is cut short")
    return header, sync, at + MARKER_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packing:
    codec: str
    limits: Limits
    """Limits on the decompressed size."""

    def check(self, size: int) -> None:
        """Raise for a block of more bytes than the limit."""
        if size > self.limits.value_bytes:
            raise _LongBlockError


class _LongBlockError(Exception):
    """A block decompresses to more than the limit. Internal to this module."""


def _blocks(content: bytes, path: str, start: tuple[int, bytes], packing: _Packing) -> tuple[tuple[int, bytes], ...]:
    at, sync = start
    limits = packing.limits
    blocks: list[tuple[int, bytes]] = []
    total = rows = 0
    while at < len(content):
        count, at = varint(content, at)
        packed, at = read_bytes(content, at)
        if content[at : at + MARKER_BYTES] != sync:
            raise CorruptBytesError(f"the block that ends at byte {at} is not followed by the file's marker")
        at += MARKER_BYTES
        try:
            block = _unpack(packed, packing)
        except _LongBlockError:
            limits.check_value(path, len(content), limits.value_bytes + 1, "a block")
            raise CorruptBytesError("a block is too long") from None
        total, rows = total + len(block), rows + count
        if count < 0 or count > len(block):
            raise CorruptBytesError(f"implausible: {rows} rows in {total} bytes")
        limits.check_rows(path, len(content), rows)
        limits.check_bytes(path, len(content), total)
        blocks.append((count, block))
    return tuple(blocks)


def _unpack(packed: bytes, packing: _Packing) -> bytes:
    """Return a block decompressed. Stops at the limit.

    Source: Avro specification, "Required Codecs" and "Optional Codecs".
    """
    codec, limit = packing.codec, packing.limits.value_bytes
    if codec == "null":
        return packed
    if codec == "deflate":
        stream = zlib.decompressobj(-15)
        block = stream.decompress(packed, limit + 1)
        if not stream.eof and len(block) <= limit:
            raise CorruptBytesError("a deflate block is cut short")
    elif codec == "snappy":
        block = _decompress_snappy(packed, packing)
    elif codec == "zstandard":
        block = _inflate(packed, limit)
    elif codec in ("bzip2", "xz"):
        block = _decompress_stream(packed, codec, limit)
    else:
        raise refusal(AVRO_CODECS, codec=codec)
    packing.check(len(block))
    return block


def _decompress_stream(packed: bytes, codec: str, limit: int) -> bytes:
    """Return the content of a bzip2 or xz block, up to one byte more than the limit."""
    # Some builds of Python lack these modules.
    import bz2  # noqa: PLC0415
    import lzma  # noqa: PLC0415

    is_xz = codec == "xz"
    stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_FOR_XZ) if is_xz else bz2.BZ2Decompressor()
    try:
        block: bytes = stream.decompress(packed, limit + 1)
    except lzma.LZMAError as error:
        raise CorruptBytesError(f"an xz block is damaged ({error})") from error
    if not stream.eof and len(block) <= limit:
        raise CorruptBytesError(f"a {codec} block is cut short")
    return block


def _decompress_snappy(packed: bytes, packing: _Packing) -> bytes:
    """Return the content of a snappy block, which ends with the CRC32 of its content."""
    body, checksum = packed[:-4], packed[-4:]
    size, _ = varints.varint(body, 0)
    packing.check(size)
    block: bytes = pa.decompress(body, decompressed_size=size, codec="snappy", asbytes=True)
    if zlib.crc32(block) != int.from_bytes(checksum, "big"):
        raise CorruptBytesError("the checksum of a snappy block does not match")
    return block


def _inflate(packed: bytes, limit: int) -> bytes:
    stream = pa.CompressedInputStream(pa.BufferReader(packed), "zstd")
    parts: list[bytes] = []
    total = 0
    while total <= limit and (part := stream.read(_CHUNK)):
        parts.append(part)
        total += len(part)
    return b"".join(parts)


def parse_shape(raw: Any) -> Shape:
    """Return the shape that an Avro schema describes.

    Raises:
        ValueError: It is not a schema, or its rows take no bytes: a short file could contain any number of them.

    Source: Avro specification, "Schema Declaration".
    """
    shape = _Shapes().parse(raw, 0)
    if _min_size(shape) == 0:
        raise ValueError("its rows take no bytes")
    return shape


class _Shapes:
    """Parses one schema, whose parts may refer to earlier ones by name."""

    def __init__(self) -> None:
        self._named: dict[str, Shape | None] = {}
        self._parts = 0

    def parse(self, raw: Any, depth: int) -> Shape:
        self._parts += 1
        if depth > _MAX_DEPTH or self._parts > _MAX_PARTS:
            raise ValueError("its schema is implausibly large")
        if isinstance(raw, list):
            return Union(tuple(self.parse(branch, depth + 1) for branch in raw))
        if isinstance(raw, str):
            return self._word(raw)
        if not isinstance(raw, Mapping):
            raise ValueError(f"{raw!r} is not a schema")  # noqa: TRY004 - the caller names the file
        type_name = raw["type"]
        if type_name in ("record", "fixed", "enum"):
            return self._declared(raw, depth)
        if type_name in ("array", "map"):
            item = self.parse(raw["items" if type_name == "array" else "values"], depth + 1)
            if type_name == "array" and _min_size(item) == 0:
                raise ValueError("items of an array take no bytes")
            return Items(item, keyed=type_name == "map")
        return self.parse(type_name, depth + 1)

    def _word(self, word: str) -> Shape:
        if word in ("null", "boolean", "int", "long", "float", "double", "bytes", "string"):
            return Primitive(word)
        short = word.rpartition(".")[2]
        if short not in self._named:
            raise ValueError(f"{word!r} is not an Avro type")
        shape = self._named[short]
        if shape is None:
            raise refusal(RECURSIVE_AVRO, word=word)
        self._parts += _parts(shape)
        return shape

    def _declared(self, raw: Mapping[str, Any], depth: int) -> Shape:
        if not isinstance(raw["name"], str):
            raise ValueError(f"{raw['name']!r} is not the name of a type")  # noqa: TRY004 - the caller names the file
        name = raw["name"].rpartition(".")[2]
        self._named[name] = None
        shape: Shape
        if raw["type"] == "record":
            shape = Record(tuple((str(f["name"]), self.parse(f["type"], depth + 1)) for f in raw["fields"]))
        elif raw["type"] == "fixed":
            shape = Fixed(int(raw["size"]))
            if shape.size < 1:
                raise ValueError(f"{shape.size} bytes of fixed size")
        else:
            shape = Choice(tuple(str(symbol) for symbol in raw["symbols"]))
        self._named[name] = shape
        return shape


def _parts(shape: Shape) -> int:
    match shape:
        case Items():
            return 1 + _parts(shape.item)
        case Union():
            return 1 + sum(_parts(branch) for branch in shape.branches)
        case Record():
            return 1 + sum(_parts(part) for _, part in shape.fields)
        case _:
            return 1


def _min_size(shape: Shape) -> int:
    match shape:
        case Primitive("null"):
            return 0
        case Fixed():
            return shape.size
        case Record():
            return sum(_min_size(part) for _, part in shape.fields)
        case _:
            return 1
