"""INT96 timestamps of parquet files, read exactly.

Paimon stores TIMESTAMP(7) to (9) as INT96, Spark by default every timestamp: a day and the nanoseconds in
it, which some writers make negative before 1970. pyarrow's conversion overflows silently outside of 1677 to 2262. So
pyarrow reads a patched footer, in which the column is 12 plain bytes per value, stored in the same way.

Source: parquet-format, "Types", "Metadata"; Thrift compact protocol.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import thrift
from snapshot_explorer.arrow.thrift import Field, structs

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_INT96, _FIXED_BYTES = 3, 7
WIDTH = 12
"""Bytes of a value."""
_I32 = 5
"""The number of the Thrift type."""
_UNIX_DAY = 2_440_588
"""The Julian day of 1970-01-01."""
_DAY_NANOS = 86_400_000_000_000


def bytes_metadata(source: pa.NativeFile) -> "pq.FileMetaData":
    """Return the metadata of a parquet file with its INT96 columns as 12 bytes. Reads the footer."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - loaded when the first such file is read: it takes time

    tree = thrift.footer(source)
    _patch(tree)
    footer = thrift.encoded(tree)
    return pq.read_metadata(pa.BufferReader(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"))


def timestamps(values: pa.FixedSizeBinaryArray, unit: str = "ns") -> pa.TimestampArray:
    """Return INT96 values as timestamps in ns or us, rounded down. Raises ArrowInvalid for one that does not fit."""
    raw = np.frombuffer(values.buffers()[1], np.uint8)[values.offset * WIDTH : (values.offset + len(values)) * WIDTH]
    cells = raw.reshape(-1, WIDTH)
    nanos = cells[:, :8].copy().view("<i8").ravel()
    days = cells[:, 8:].copy().view("<i4").ravel().astype(np.int64) - _UNIX_DAY
    valid = np.asarray(values.is_valid())
    nanos, days = np.where(valid, nanos, 0), np.where(valid, days, 0)
    # Normalize so that the nanoseconds are 0 or more: then the range check cannot overflow.
    days, nanos = days + nanos // _DAY_NANOS, nanos % _DAY_NANOS
    size = {"ns": 1, "us": 1000}[unit]
    limit = np.iinfo(np.int64).max // (_DAY_NANOS // size)
    if bool(np.any((days >= limit) | (days < -limit))):
        raise pa.ArrowInvalid(f"timestamp out of range for {'nanoseconds' if unit == 'ns' else 'microseconds'}")
    moments = days * (_DAY_NANOS // size) + nanos // size
    return pa.array(moments, mask=~valid).view(pa.timestamp(unit))


def _patch(tree: list[Field]) -> None:
    """Turn INT96 into 12 bytes: in the schema's elements, and in the metadata of each column chunk."""
    for element in structs(tree, 2):
        for index, field in enumerate(element):
            if (field.id, field.value) == (1, _INT96):
                field.value = _FIXED_BYTES
                element[index + 1 : index + 1] = [Field(2, _I32, WIDTH)]
                break
    for group in structs(tree, 4):
        for chunk in structs(group, 1):
            for metadata in (field.value for field in chunk if field.id == 3 and isinstance(field.value, list)):  # noqa: PLR2004 - the field's number
                for field in metadata:
                    if (field.id, field.value) == (1, _INT96):
                        field.value = _FIXED_BYTES
