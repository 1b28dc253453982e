"""INT96 timestamps of parquet files, read exactly.

Paimon stores TIMESTAMP(7) to (9) as INT96, Spark by default every timestamp: a day and the nanoseconds in
it, which some writers make negative before 1970. pyarrow's conversion overflows silently outside of 1677 to 2262. So
pyarrow reads a patched footer, in which the column is 12 plain bytes per value, stored in the same way
(`parquet_footers`).

Source: parquet-format, "Types".
"""

import numpy as np
import pyarrow as pa

WIDTH = 12
"""Bytes of a value."""
_UNIX_DAY = 2_440_588
"""The Julian day of 1970-01-01."""
_DAY_NANOS = 86_400_000_000_000


def timestamps(values: pa.FixedSizeBinaryArray, unit: str = "ns") -> pa.TimestampArray:
    """Return INT96 values as timestamps in ns or us, rounded down. Raises ArrowInvalid if a value does not fit."""
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
