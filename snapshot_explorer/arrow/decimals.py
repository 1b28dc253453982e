"""Decimals as Java stores them: unscaled integers in two's complement, big-endian."""

import numpy as np
import numpy.typing as npt

BYTES = 16
"""The width of an Arrow decimal with up to 38 digits."""


def minimal_bytes(number: int) -> bytes:
    """Return an integer in the fewest bytes."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def little_endian(
    content: npt.NDArray[np.uint8], begins: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint8]:
    """Return integers of up to 16 bytes as rows of 16 bytes, little-endian. An integer of 0 bytes has any value.

    Args:
        begins: The start of each integer in the content.
    """
    cells = np.zeros((len(begins), BYTES), np.uint8)
    if not len(content):
        return cells
    ends = begins + sizes
    sign = np.where(content[np.where(sizes > 0, begins, 0)] > 0x7F, 0xFF, 0).astype(np.uint8)  # noqa: PLR2004
    for index in range(BYTES):
        is_stored = index < sizes
        cells[:, index] = np.where(is_stored, content[np.where(is_stored, ends - 1 - index, 0)], sign)
    return cells
