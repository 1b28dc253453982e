"""UUIDs as text, from their bytes."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc

WIDTH = 16
"""The bytes of a UUID."""
_HEX = np.frombuffer(b"".join(b"%02x" % number for number in range(256)), np.uint8).reshape(256, 2)
_DASHES = (8, 12, 16, 20)
"""The positions of the hexadecimal digits that follow a dash."""


def uuid_texts(values: pa.FixedSizeBinaryArray) -> pa.Array:
    """Return values of 16 bytes as text, such as `00010203-0405-0607-0809-0a0b0c0d0e0f`."""
    if not len(values):
        return pa.array([], pa.string())
    filled = values.fill_null(bytes(WIDTH)) if values.null_count else values
    cells = np.frombuffer(filled.buffers()[1], np.uint8, len(filled) * WIDTH, filled.offset * WIDTH)
    texts = texts_of_cells(cells.reshape(-1, WIDTH))
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string())) if values.null_count else texts


def texts_of_cells(cells: npt.NDArray[np.uint8]) -> pa.Array:
    """Return rows of 16 bytes as text."""
    digits = _HEX[cells].reshape(len(cells), 2 * WIDTH)
    text = np.insert(digits, _DASHES, ord("-"), axis=1)
    width = text.shape[1]
    offsets = np.arange(0, (len(cells) + 1) * width, width, dtype=np.int64)
    whole = pa.Array.from_buffers(
        pa.large_string(), len(cells), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text))]
    )
    return whole.cast(pa.string())
