"""The rhythm in which a table receives commits, and whether its newest one is late."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Literal

from snapshot_explorer.core.text import pluralize

Pace = Literal["late", "busy", "on time"]

RHYTHM_COMMITS = 100
"""The number of newest commits from which the rhythm is computed."""
_FEWEST_COMMITS = 6
_SHORTEST_SPAN = timedelta(minutes=1)
_LONGEST_FACTOR = 1.5
_SPREADS = 3
_SHORTEST_LIMIT = timedelta(minutes=10)
_BUSY_GAPS = 4
_BUSY_HISTORY = 7
_BUSY_SHARE = 5
RHYTHM_RULE = (
    f"late: older than {_LONGEST_FACTOR} times the second longest gap between the newest {RHYTHM_COMMITS} commits, "
    f"plus {_SPREADS} times the spread of the gaps (1.48 times their median deviation from the median), and than 10 "
    f"minutes; busy: the newest {_BUSY_GAPS} gaps took less than a fifth of any {_BUSY_GAPS} before, and the newest "
    "commit is not older than the median gap; "
    f"unknown: fewer than {_FEWEST_COMMITS} commits, or all within a minute"
)
"""The rule of `Rhythm.pace` in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How often a table receives commits, and how its newest one compares."""

    pace: Pace | None
    """None if there are too few commits to have a rhythm."""
    commits: int
    """The number of commits that the rhythm is computed from."""
    age: timedelta | None
    """The time since the newest commit; None without commits."""
    usual_gap: timedelta | None = None
    """The median of the gaps between commits."""
    latest_gap: timedelta | None = None
    """The gap above which the newest commit is late."""

    def __str__(self) -> str:
        if self.age is None:
            return "no commits"
        newest = f"newest commit {span(self.age)} ago"
        if self.pace is None or self.usual_gap is None or self.latest_gap is None:
            return f"{newest}, unknown rhythm: {pluralize(self.commits, 'commit')}, too few or all within a minute"
        return f"{newest}, {self.pace}: usually every {span(self.usual_gap)}, late after {span(self.latest_gap)}"


def rhythm(times: Iterable[datetime], at: datetime) -> Rhythm:
    """Return the rhythm of a table at a time.

    Two long gaps, such as two nights or two weekends, are a part of the rhythm; a single one is not, as an outage
    must not hide the next.

    Args:
        times: The commit times, in any order. Leave out commits that change no data, such as compactions: a table that
            is only compacted receives nothing.
        at: The time of the judgement. Later commits are ignored.
    """
    newest = sorted(time for time in times if time <= at)[-RHYTHM_COMMITS:]
    age = at - newest[-1] if newest else None
    if len(newest) < _FEWEST_COMMITS or newest[-1] - newest[0] < _SHORTEST_SPAN:
        return Rhythm(pace=None, commits=len(newest), age=age)
    gaps = [(after - before).total_seconds() for before, after in pairwise(newest)]
    usual = median(gaps)
    spread = 1.4826 * median(abs(gap - usual) for gap in gaps)
    limit = max(timedelta(seconds=_LONGEST_FACTOR * sorted(gaps)[-2] + _SPREADS * spread), _SHORTEST_LIMIT)
    is_late = age is not None and age > limit
    is_busy = age is not None and age.total_seconds() <= usual and _is_busy(gaps)
    return Rhythm(
        pace="late" if is_late else "busy" if is_busy else "on time",
        commits=len(newest),
        age=age,
        usual_gap=timedelta(seconds=usual),
        latest_gap=limit,
    )


def _is_busy(gaps: Sequence[float]) -> bool:
    if len(gaps) < _BUSY_HISTORY + _BUSY_GAPS:
        return False
    sums = [sum(gaps[first : first + _BUSY_GAPS]) for first in range(len(gaps) - 2 * _BUSY_GAPS + 1)]
    return sum(gaps[-_BUSY_GAPS:]) < min(sums) / _BUSY_SHARE


def span(duration: timedelta) -> str:
    """Return a duration in its two largest units, such as `3 d 4 h`."""
    seconds = round(duration.total_seconds())
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds % 60, "s")]
    first = next((index for index, (number, _) in enumerate(parts) if number), 3)
    return " ".join(f"{number} {unit}" for number, unit in parts[first : first + 2] if number) or "0 s"
