"""The versions after one and up to another."""

import pytest

from snapshot_explorer.core.refs import parse_ref
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError
from tests.inner.core import Listing
from tests.inner.history import resolve_range


class Known:
    """A history of known versions."""

    def __init__(self, *versions):
        self._versions = versions

    def latest(self):
        return self._versions[-1] if self._versions else None

    @property
    def loadable(self):
        return Listing(versions=self._versions, identity=())

    def tags(self):
        return {}

    def candidates_at(self, time, versions, *, follow_log):
        return versions

    def committed_at(self, versions):
        raise AssertionError("no time is asked for")


def span(first, last, *versions, whole=True):
    return resolve_range(parse_ref(first), parse_ref(last), Known(*versions), whole=whole)


def test_both_ends_are_found():
    assert span(3, "latest", 3, 4, 5) == (3, 5)
    assert span(4, 4, 3, 4, 5) == (4, 4)


def test_the_start_may_be_one_before_the_earliest():
    assert span(2, 4, 3, 4, 5) == (2, 4)
    with pytest.raises(SnapshotNotFoundError):
        span(1, 4, 3, 4, 5)


def test_before_the_earliest_has_a_name_also_where_the_earliest_is_0():
    assert span("earliest^", 4, 0, 1, 2, 3, 4) == (-1, 4)
    assert span("earliest^", "latest", 3, 4, 5) == (2, 5)
    assert span(0, 4, 0, 1, 2, 3, 4) == (0, 4)
    with pytest.raises(SnapshotNotFoundError, match="goes back past the earliest"):
        span("earliest^", 4, 3, 4, whole=False)


def test_a_gap_is_refused_unless_only_the_ends_count():
    with pytest.raises(
        SnapshotNotFoundError, match=r"Version 4 of 3..6 does not exist .* in this range: 5, 6. Use 5\.\.6\."
    ):
        span(3, 6, 3, 5, 6)
    with pytest.raises(
        SnapshotNotFoundError, match=r"Version 2 of earliest\^..5 does not exist or has expired.*Use 3\.\.5\."
    ):
        span("earliest^", 5, 0, 1, 3, 4, 5)
    with pytest.raises(
        SnapshotNotFoundError, match="in this range: 4. Use a range without it, or compare the two versions."
    ):
        span(3, 6, 3, 4)
    assert span(3, 6, 3, 5, 6, whole=False) == (3, 6)


def test_a_wide_gap_costs_nothing():
    with pytest.raises(SnapshotNotFoundError, match="Version 2 of 1"):
        span(1, 10**15, 1, 10**15)


def test_the_earlier_version_comes_first():
    with pytest.raises(InvalidArgumentError, match="Version 3 comes before 5. Put the earlier version first."):
        span(5, 3, 3, 4, 5)
