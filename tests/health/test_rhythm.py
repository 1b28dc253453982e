"""The rhythm of a table: when its newest commit is late."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from snapshot_explorer.analysis.health import rhythm, span

NIGHT = datetime(2026, 11, 22, 3, tzinfo=UTC)


def times(*gaps, end=NIGHT):
    """Return commit times with these gaps in hours between them, the last one at `end`."""
    result = [end]
    for gap in reversed(gaps):
        result.append(result[-1] - timedelta(hours=gap))
    return result[::-1]


def pace(gaps, hours):
    return rhythm(times(*gaps), NIGHT + timedelta(hours=hours)).pace


def test_a_table_is_late_when_its_newest_commit_is_older_than_its_gaps_allow():
    assert pace([1] * 24, 1) == "on time"
    assert pace([1] * 24, 1.6) == "late"
    assert pace([24] * 7, 11 * 24) == "late"


def test_nights_and_weekends_belong_to_the_rhythm():
    nightly_bursts = ([0.01] * 9 + [23.9]) * 3 + [0.01] * 9
    office_hours = (([1] * 8 + [16]) * 4 + [1] * 8 + [64]) * 2 + [1] * 8

    assert pace(nightly_bursts, 24) == "on time"
    assert pace(nightly_bursts, 40) == "late"
    assert pace(office_hours, 64) == "on time"
    assert pace(office_hours, 100) == "late"


def test_one_outage_does_not_hide_the_next():
    assert pace([1] * 20 + [200] + [1] * 20, 11) == "late"


def test_random_gaps_are_seldom_late():
    numbers = random.Random(7)
    late = 0
    for _ in range(500):
        gaps = [numbers.expovariate(1) for _ in range(20)]
        late += pace(gaps, numbers.expovariate(1)) == "late"

    assert late < 10


def test_a_table_without_a_rhythm_is_not_judged():
    assert pace([1] * 4, 1_000) is None
    assert pace([0.0001] * 50, 1_000) is None
    assert rhythm([], NIGHT).age is None
    assert str(rhythm([], NIGHT)) == "no commits"
    assert str(rhythm(times(1), NIGHT)).endswith("unknown rhythm: 2 commits, too few or all within a minute")


def test_more_commits_than_ever_are_busy():
    assert pace([1] * 24 + [0.01] * 5, 0.1) == "busy"
    assert pace(([0.01] * 9 + [23.9]) * 3 + [0.01] * 9, 0.1) == "on time"


def test_later_commits_do_not_count():
    result = rhythm(times(*[1] * 24), NIGHT - timedelta(hours=10))

    assert (result.commits, result.age) == (15, timedelta(0))


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0 s"), (61, "1 min 1 s"), (86_400 * 11 + 60, "11 d"), (90_000, "1 d 1 h")]
)
def test_durations_have_two_units(seconds, shown):
    assert span(timedelta(seconds=seconds)) == shown


def test_a_rhythm_is_a_sentence():
    assert str(rhythm(times(*[1] * 24), NIGHT + timedelta(hours=2))) == (
        "newest commit 2 h ago, late: usually every 1 h, late after 1 h 30 min"
    )
