"""Buckets of values: Murmur3 hashes of single values.

Source: iceberg specification, "Bucket Transform Details" and "32-bit Hash Requirements" (Appendix B).
"""

from decimal import Decimal, localcontext

import pyarrow as pa

from snapshot_explorer.arrow.decimals import minimal_bytes
from snapshot_explorer.arrow.murmur3 import murmur3
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergDataType

_DIGITS = 76


def bucket(value: pa.Scalar, data_type: IcebergDataType, buckets: int) -> int | None:
    """Return the bucket of a value; None for null.

    Args:
        value: A value in the Arrow type of the column.
        data_type: The type of the column: a number, a time or text.
    """
    content = _bytes(value, data_type)
    return None if content is None else (murmur3(content) & 0x7FFF_FFFF) % buckets


def _bytes(value: pa.Scalar, data_type: IcebergDataType) -> bytes | None:
    if not value.is_valid:
        return None
    if data_type.root == "decimal":
        return _unscaled(value.as_py(), data_type.scale)
    if data_type.root == "string":
        text: str = value.as_py()
        return text.encode()
    if data_type.root in ("int", "long"):
        number: int = value.as_py()
    else:
        number = value.cast(pa.int32() if data_type.root == "date" else pa.int64()).as_py()
    if data_type.root.endswith("_ns"):
        number //= 1000
    return number.to_bytes(8, "little", signed=True)


def _unscaled(value: Decimal, scale: int) -> bytes:
    with localcontext(prec=_DIGITS):
        return minimal_bytes(int(value.scaleb(scale)))
