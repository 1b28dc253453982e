"""The greatest value at each position, where each value covers a range of positions."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def greatest_over(values: Ints, begins: Ints, ends: Ints, count: int) -> Ints:
    """Return for each position the greatest of the values whose range contains it; 0 if none does.

    Two ranges of a power of two cover each range. From the widest down, each passes its value on to its halves.
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
            halves = most.copy()
            halves[half:] = np.maximum(halves[half:], most[:-half])
            most = halves
    return most
