"""The extreme value at each position, where each value covers a range of positions."""

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]


def extreme_over(
    values: Numbers, begins: Ints, ends: Ints, count: int, *, extreme: np.ufunc, nothing: object
) -> Numbers:
    """Return for each position the extreme of the values whose range contains it.

    Each range is covered by two ranges whose length is a power of two. From the widest down, each range passes its
    value to its halves.

    Args:
        values: A value or, for several columns at once, a row of values for each range.
        begins: The first position of each range.
        ends: The position after the last one of each range.
        extreme: `np.maximum` or `np.minimum`.
        nothing: The result at positions without a range: a value less (for the maximum) or greater than all others.
    """
    widths = ends - begins
    values, begins, ends, widths = (part[widths > 0] for part in (values, begins, ends, widths))
    power = np.frexp(widths.astype(np.float64))[1] - 1
    extremes = np.full((count, *values.shape[1:]), nothing, values.dtype)
    for exponent in reversed(range(int(power.max(initial=0)) + 1)):
        same_power = power == exponent
        wide = 1 << exponent
        extreme.at(extremes, begins[same_power], values[same_power])
        extreme.at(extremes, ends[same_power] - wide, values[same_power])
        if exponent:
            half = wide // 2
            halves = extremes.copy()
            halves[half:] = extreme(halves[half:], extremes[:-half])
            extremes = halves
    return extremes
