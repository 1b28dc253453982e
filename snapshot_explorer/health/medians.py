"""The median of the values that are present at each of many moments.

Own code, since no available library updates a median while values are added and removed. Measured with 200,000 values,
125,000 of them present at once: numpy for each moment by itself takes 1 to 1.5 s per 100 moments; over 10,000 moments
a sorted list with bisect takes 29 s, and this 0.9 s.
"""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def medians(values: Ints, first: Ints, last: Ints, count: int) -> Ints:
    """Return the median of the values present at each moment, rounded down between two; 0 if there are none.

    Each value has a slot, in the order of the values. From one moment to the next the median moves by no more slots
    in use than values are added and removed, so the time is in proportion to the values and the moments.

    Args:
        first: The first moment at which each value is present.
        last: The first moment at which each value is no longer present; `count` or more if it remains.
    """
    if not len(values):
        return np.zeros(count, np.int64)
    order = np.argsort(values, kind="stable")
    slots = np.empty(len(values), np.int64)
    slots[order] = np.arange(len(values))
    gone = last < count
    when = np.concatenate([first, last[gone]])
    by_time = np.argsort(when, kind="stable")
    events = np.concatenate([slots, ~slots[gone]])[by_time]  # ~slot where its value goes
    ends = np.searchsorted(when[by_time], np.arange(count), side="right")
    low, high, totals = _middle_slots(events.tolist(), ends.tolist(), len(values))
    ordered = values[order]
    minimum, maximum = ordered[low], ordered[high]
    return np.where(totals > 0, minimum + (maximum - minimum) // 2, 0)


def _middle_slots(events: list[int], ends: list[int], size: int) -> tuple[Ints, Ints, Ints]:
    """Return for each moment the slots of the two middle values, which may be the same, and the number of values."""
    present = bytearray(size)
    slots = np.zeros((3, len(ends)), np.int64)
    at = below = total = begin = 0  # `below` of the `total` values present are in slots before `at`
    for moment, end in enumerate(ends):
        for event in events[begin:end]:
            slot, step = (event, 1) if event >= 0 else (~event, -1)
            present[slot] += step
            total += step
            if slot < at:
                below += step
        begin = end
        if not total:
            continue
        middle = (total - 1) // 2
        while below > middle:
            at = present.rfind(1, 0, at)
            below -= 1
        while below < middle or not present[at]:
            below += present[at]
            at = present.find(1, at + 1)
        slots[:, moment] = at, at if total % 2 else present.find(1, at + 1), total
    low, high, totals = slots
    return low, high, totals
