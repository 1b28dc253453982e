"""Writes Avro files in any codec, and takes the compression out of those that others wrote."""

import bz2
import io
import json
import lzma
import zlib

import fastavro
import pyarrow as pa

MAGIC = b"Obj\x01"
SYNC = bytes(range(16))


def number(value):
    """Return a zigzag varint."""
    value = value << 1 ^ value >> 63
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def counted(content):
    return number(len(content)) + content


def squeezed(block, codec):
    if codec == "deflate":
        return zlib.compress(block)[2:-4]
    if codec == "snappy":
        return pa.compress(block, "snappy", asbytes=True) + zlib.crc32(block).to_bytes(4, "big")
    if codec == "zstandard":
        return pa.compress(block, "zstd", asbytes=True)
    if codec == "bzip2":
        return bz2.compress(block)
    if codec == "xz":
        return lzma.compress(block, preset=0)
    return block


def container(schema, blocks, codec="null"):
    """Return an Avro file of blocks: a number of rows and their bytes each."""
    meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    header = b"".join(counted(name.encode()) + counted(value) for name, value in meta.items())
    packed = [number(rows) + counted(squeezed(block, codec)) + SYNC for rows, block in blocks]
    return MAGIC + number(len(meta)) + header + number(0) + SYNC + b"".join(packed)


def encoded(schema, rows):
    """Return the bytes of rows, written by fastavro."""
    block = io.BytesIO()
    for row in rows:
        fastavro.schemaless_writer(block, schema, row)
    return block.getvalue()


def written(schema, rows, codec="null", per_block=None):
    """Return an Avro file of rows, some per block."""
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    size = per_block or max(1, len(rows))
    cut = [rows[begin : begin + size] for begin in range(0, len(rows), size)]
    return container(schema, [(len(some), encoded(parsed, some)) for some in cut], codec)
