"""Bucket pruning: Paimon's hash of the bucket key, encoded as a BinaryRow."""

import struct
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.decimals import minimal_bytes
from snapshot_explorer.arrow.murmur3 import murmur3
from snapshot_explorer.core.records import Predicate
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType, PaimonField, arrow_field
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.settings import parse_keyword

_MAX_KEYS = 1_000
"""The maximum number of keys that are hashed for a condition. A condition with more keys skips no buckets."""
_PACKED = {
    "BOOLEAN": "<?7x",
    "TINYINT": "<b7x",
    "SMALLINT": "<h6x",
    "INT": "<i4x",
    "DATE": "<i4x",
    "BIGINT": "<q",
}
_TEXTS = ("VARCHAR",)
"""Not CHAR: the writer hashes trailing blanks, which ORC files do not keep."""
_TIMES = ("TIMESTAMP", "TIMESTAMP_LTZ")
_INLINE = 7
_COMPACT_DECIMAL = 18
_MILLIS = 3
_SEED = 42


def ruled_out(
    entries: pa.Table, schema: PaimonSchema, file_schemas: Mapping[int, PaimonSchema], predicate: Predicate
) -> npt.NDArray[np.bool_]:
    """Return for each entry whether its bucket certainly contains no matching row.

    This is the case if the condition restricts every column of the bucket key to values that all hash to other buckets.
    Only buckets of Paimon's default function are tested, with the bucket count of the entry. Files whose schema has
    another bucket key are kept.

    Source: paimon docs, "Data Distribution"; paimon DefaultBucketFunction, FixedBucketRowKeyExtractor.
    """
    nothing = np.zeros(len(entries), np.bool_)
    key = bucket_key(schema)
    points = predicate.points(pa.schema([arrow_field(field) for field in key])) if key else None
    if not key or points is None or np.prod([len(values) for values in points]) > _MAX_KEYS:
        return nothing
    hashes = [hash_of(encode(values, key)) for values in product(*points)]
    same_key = [
        number for number, file_schema in file_schemas.items() if _identity(bucket_key(file_schema)) == _identity(key)
    ]
    judged = np.asarray(pc.is_in(entries.column("schema_id"), pa.array(same_key, pa.int64())))
    totals = np.asarray(entries.column("total_buckets").fill_null(0))
    buckets = np.asarray(entries.column("bucket"))
    out = nothing
    for total in {int(total) for total in np.unique(totals) if total > 0}:
        out |= judged & (totals == total) & (buckets >= 0) & ~np.isin(buckets, [bucket_of(h, total) for h in hashes])
    return out


def bucket_key(schema: PaimonSchema) -> tuple[PaimonField, ...] | None:
    """Return the columns whose hash is the bucket; None if buckets are assigned in another way."""
    options = schema.options
    if options.get("bucket", "").strip() in ("-1", "-2"):
        return None
    if parse_keyword(options, "bucket-function.type", "default") != "default":
        return None
    named = tuple(name.strip() for name in options.get("bucket-key", "").split(",") if name.strip())
    by_name = {field.name: field for field in schema.fields}
    fields = [by_name.get(name) for name in named or schema.trimmed_primary_keys]
    key = tuple(
        field for field in fields if field is not None and field.type.root in (*_PACKED, *_TEXTS, *_TIMES, "DECIMAL")
    )
    return key if key and len(key) == len(fields) else None


def _identity(key: Sequence[PaimonField] | None) -> list[tuple[object, ...]]:
    return [
        (field.id, field.type.root, field.type.length, field.type.precision, field.type.scale) for field in key or ()
    ]


def encode(values: Sequence[pa.Scalar], fields: Sequence[PaimonField]) -> bytes:
    """Return values, of types that a bucket key allows, as a BinaryRow without its arity prefix.

    Source: paimon BinaryRow, BinaryRowWriter.
    """
    bits = bytearray((len(fields) + 63 + 8) // 64 * 8)
    begin = len(bits) + 8 * len(fields)
    slots, variable = b"", b""
    for index, (value, field) in enumerate(zip(values, fields, strict=True)):
        if not value.is_valid:
            bits[(index + 8) // 8] |= 1 << (index + 8) % 8
        slot, more = _slot(value, field.type, begin + len(variable))
        slots, variable = slots + slot, variable + more
    return bytes(bits) + slots + variable


def _slot(value: pa.Scalar, data_type: PaimonDataType, end: int) -> tuple[bytes, bytes]:
    """Return the content of a field's slot, and the bytes to append to the row at the offset `end`."""
    if data_type.root in _TEXTS:
        content = value.as_py().encode() if value.is_valid else b""
        if len(content) <= _INLINE:
            return (content.ljust(7, b"\0") + bytes([0x80 | len(content)]) if value.is_valid else bytes(8)), b""
        return struct.pack("<ii", len(content), end), content.ljust(-(-len(content) // 8) * 8, b"\0")
    if data_type.root == "DECIMAL":
        return _decimal(value, data_type, end)
    if data_type.root in _TIMES:
        return _time(value, data_type, end)
    plain = value.value if data_type.root == "DATE" else value.as_py()
    return (struct.pack(_PACKED[data_type.root], plain) if value.is_valid else bytes(8)), b""


def _decimal(value: pa.Scalar, data_type: PaimonDataType, end: int) -> tuple[bytes, bytes]:
    is_compact = (data_type.precision or 0) <= _COMPACT_DECIMAL
    if not value.is_valid:
        return (bytes(8), b"") if is_compact else (struct.pack("<ii", 0, end), bytes(16))
    number = int(value.as_py().scaleb(data_type.scale or 0))
    if is_compact:
        return struct.pack("<q", number), b""
    content = minimal_bytes(number)
    return struct.pack("<ii", len(content), end), content.ljust(16, b"\0")


def _time(value: pa.Scalar, data_type: PaimonDataType, end: int) -> tuple[bytes, bytes]:
    if (data_type.precision or 0) <= _MILLIS:
        return struct.pack("<q", value.value) if value.is_valid else bytes(8), b""
    if not value.is_valid:
        return struct.pack("<ii", 0, end), bytes(8)
    nanos = value.value * {"us": 1_000, "ns": 1}[value.type.unit]
    millis, rest = divmod(nanos, 1_000_000)
    return struct.pack("<ii", rest, end), struct.pack("<q", millis)


def hash_of(row: bytes) -> int:
    """Return the hash of a BinaryRow without its arity, as a signed 32-bit integer.

    Source: paimon MurmurHashUtils.hashBytesByWords.
    """
    result = murmur3(row, seed=_SEED)
    return result - (result >> 31 << 32)


def bucket_of(hashed: int, total: int) -> int:
    """Return the bucket of a hash among `total`. Java's remainder keeps the sign, which is then dropped."""
    return abs(hashed) % total
