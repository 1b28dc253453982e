"""The greatest of the values that are there at each position, where each value is there over a range of positions."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def greatest_over(values: Ints, begins: Ints, ends: Ints, count: int) -> Ints:
    """Return the greatest of the values whose range holds a position, for each position; 0 where none does.

    A range is covered by two of a power of two; from the widest down these hand on what they have to their halves.
    """
    widths = ends - begins
    values, begins, ends, widths = (part[widths > 0] for part in (values, begins, ends, widths))
    power = np.frexp(widths.astype(np.float64))[1] - 1
    most = np.zeros(count, np.int64)
    for exponent in reversed(range(int(power.max(initial=0)) + 1)):
        some = power == exponent
        wide = 1 << exponent
        np.maximum.at(most, begins[some], values[some])
        np.maximum.at(most, ends[some] - wide, values[some])
        if exponent:
            half = wide // 2
            handed = most.copy()
            handed[half:] = np.maximum(handed[half:], most[:-half])
            most = handed
    return most
