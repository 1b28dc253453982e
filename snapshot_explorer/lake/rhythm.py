"""Whether a table is late, on time or unusually busy, by the times of its own recent commits.

The rule, for commits that change data:

- **late**: the newest one is older than 3 times the median gap, than 1.5 times the second longest gap, and than 10
  minutes. One long pause, such as an outage, therefore does not make later ones usual, but pauses that recur, such as
  nights and weekends, do.
- **busy**: the newest 4 gaps together are shorter than a quarter of any earlier 4 in a row, and the last of these
  commits is not older than the median gap.
- **unknown**: there are fewer than 5 gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

RULE = (
    "late: no commit that changes data for 3 times the median gap of the recent ones, 1.5 times their second longest "
    "gap, and 10 minutes; busy: the newest 4 gaps together are shorter than a quarter of any earlier 4; unknown: fewer "
    "than 5 gaps"
)
_FEWEST_GAPS = 5
_LATE_MEDIANS, _LATE_PAUSES, _LATE_AT_LEAST = 3, 1.5, timedelta(minutes=10)
_BURST, _BUSY_SHARE = 4, 0.25

State = Literal["late", "on time", "busy", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How regularly a table changes, and whether it does now."""

    state: State
    usual_gap: timedelta | None = None
    """The median gap; None if unknown."""
    late_after: timedelta | None = None
    """The age from which the table is late; None if unknown."""


def rhythm_of(times: Sequence[datetime], now: datetime) -> Rhythm:
    """Return the rhythm of commits that change data, at these times, ascending."""
    gaps = [max(later - earlier, timedelta(0)) for earlier, later in pairwise(times)]
    if len(gaps) < _FEWEST_GAPS:
        return Rhythm(state="unknown")
    usual = timedelta(seconds=median(gap.total_seconds() for gap in gaps))
    late_after = max(_LATE_MEDIANS * usual, _LATE_PAUSES * sorted(gaps)[-2], _LATE_AT_LEAST)
    age = now - times[-1]
    state: State = "late" if age > late_after else "busy" if age <= usual and _is_burst(gaps) else "on time"
    return Rhythm(state=state, usual_gap=usual, late_after=late_after)


def _is_burst(gaps: Sequence[timedelta]) -> bool:
    earlier = gaps[:-_BURST]
    sums = [sum(earlier[start : start + _BURST], timedelta(0)) for start in range(len(earlier) - _BURST + 1)]
    return bool(sums) and sum(gaps[-_BURST:], timedelta(0)) < _BUSY_SHARE * min(sums)
