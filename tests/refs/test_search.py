"""Which version a ref names, and what finding it costs."""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.core.refs import AsOf, Latest, Tag, Version, not_found, parse_ref
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError
from tests.inner.core import Listing
from tests.inner.history import resolve

START = datetime(2026, 11, 1, tzinfo=UTC)


def listing(*versions):
    return Listing(versions=versions, identity=())


class Past:
    """A history that notes what it is asked."""

    def __init__(self, versions, tags=(), *, times=None, expired=()):
        self.existing = list(versions)
        self.tagged = dict(tags)
        self.times = times or {version: START + timedelta(hours=version) for version in versions}
        self.expired = set(expired)
        self.asked = []

    @property
    def loadable(self):
        self.asked.append("versions")
        return listing(*self.existing)

    def latest(self):
        self.asked.append("latest")
        return self.existing[-1] if self.existing else None

    def tags(self):
        self.asked.append("tags")
        return self.tagged

    def candidates_at(self, time, versions, *, follow_log):
        return versions

    def committed_at(self, versions):
        self.asked += ["committed_at"] * len(versions)
        if self.expired & set(versions):
            raise SnapshotNotFoundError("expired")
        return [self.times[version] for version in versions]


def found(text, past):
    return resolve(parse_ref(text), past)


def refused(text, past, error=SnapshotNotFoundError):
    with pytest.raises(error) as caught:
        found(text, past)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("latest", 41),
        ("earliest", 3),
        ("7", 7),
        ("41", 41),
        ("latest~1", 40),
        ("7~1", 5),
        ("7^^", 4),
        ("latest~7", 3),
        ("tag:v1", 5),
        ("tag:v1~1", 4),
        ("tag:old", 1),
        ("tag:gone", 6),
        ("tag:gone^", 5),
        ("@2026-11-01T05:00", 5),
        ("@2026-11-01T05:59:59.999", 5),
        ("@2026-11-01T06:30", 5),
        ("@2026-11-01T07:00", 7),
        ("@2026-11-01T07:00~1", 5),
        ("@2027-01-01", 41),
    ],
)
def test_a_ref_names_a_version(text, version):
    past = Past([3, 4, 5, 7, 38, 39, 40, 41], {"v1": 5, "old": 1, "gone": 6})

    assert found(text, past) == version


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("latest", ["latest"]),
        ("500", []),
        ("earliest", ["versions"]),
        ("latest~3", ["versions"]),
        ("500~3", ["versions"]),
        ("tag:v1", ["tags"]),
        ("tag:v1~1", ["tags", "versions"]),
    ],
)
def test_a_ref_costs_what_it_needs_and_no_more(text, asked):
    past = Past(range(1, 1001), {"v1": 5})

    found(text, past)

    assert list(dict.fromkeys(past.asked)) == asked
    assert past.asked.count("latest") <= 1
    assert past.asked.count("tags") <= 1


@given(st.integers(1, 3000), st.integers(-10, 80_000))
def test_a_time_costs_about_log2_of_the_history(count, minutes):
    past = Past(range(1, count + 1))
    time = START + timedelta(minutes=minutes)
    expected = bisect_right([past.times[version] for version in past.existing], time)

    if expected:
        assert resolve(AsOf(time=time), past) == expected
    else:
        with pytest.raises(SnapshotNotFoundError):
            resolve(AsOf(time=time), past)
    assert past.asked.count("committed_at") <= count.bit_length()
    assert past.asked.count("versions") <= 2


def test_of_commits_at_the_same_time_the_last_counts():
    past = Past([1, 2, 3, 4], times={1: START, 2: START, 3: START, 4: START + timedelta(hours=1)})

    assert found("@2026-11-01", past) == 3


@given(st.lists(st.integers(0, 20), min_size=1, max_size=40), st.integers(-1, 21))
def test_whatever_the_clocks_a_time_names_a_version_committed_by_then_or_none(hours, asked):
    past = Past(range(len(hours)), times={v: START + timedelta(hours=h) for v, h in enumerate(hours)})
    time = START + timedelta(hours=asked)

    try:
        version = resolve(AsOf(time=time), past)
    except SnapshotNotFoundError:
        assert hours[0] > asked
    else:
        assert past.times[version] <= time


def test_versions_that_expire_during_the_search_are_passed_over():
    past = Past(range(1, 101), expired=range(1, 61))

    assert found("@2026-11-03T22:00", past) == 70
    assert "The earliest is 61, committed at 2026-11-03T13:00:00Z." in refused("@2026-11-02", past)


def test_all_versions_expired_during_the_search():
    assert "the versions expired during the search. Try again." in refused(
        "@2027-01-01", Past([1, 2, 3], expired=[1, 2, 3])
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "6~1",
            "Version 6 is missing: its file is gone, though versions before it exist. Available versions: 3 to 41,",
        ),
        ("99~1", "Version 99 does not exist. Available versions: 3 to 41, with gaps. Try 41, latest or @2h."),
        (
            "latest~8",
            (
                "No version matches latest~8: it goes back past the earliest. "
                "Available versions: 3 to 41, with gaps (8 in total). Try earliest."
            ),
        ),
        ("earliest^", "No version matches earliest~1: it goes back past the earliest."),
        ("tag:old~1", "No version matches tag:old~1: it goes back past the earliest."),
        (
            "@2026-11-01T02:59",
            (
                "No version matches @2026-11-01T02:59:00Z: no available version was committed at or before this time. "
                "The earliest is 3, committed at 2026-11-01T03:00:00Z. Try earliest or @2026-11-01T03:00:00Z."
            ),
        ),
        ("tag:v2", "Tag 'v2' does not exist. Tags: old, v1. Did you mean tag:v1?"),
        ("tag:zzzzz", "Tag 'zzzzz' does not exist. Tags: old, v1. Use one of them."),
    ],
)
def test_what_is_not_there_says_what_is(text, said):
    past = Past([3, 4, 5, 7, 38, 39, 40, 41], {"v1": 5, "old": 1})

    assert refused(text, past).startswith(said)


def test_a_caller_that_misses_says_what_exists():
    assert str(not_found(99, listing(3, 4, 41))) == (
        "Version 99 does not exist. Available versions: 3 to 41, with gaps. Try 41, latest or @2h."
    )
    assert str(not_found(1, listing(*range(3, 42)))) == (
        "Version 1 has expired. Available versions: 3 to 41. Try 3, latest or @2h."
    )
    assert str(not_found(Version(number=9), listing(7))) == (
        "Version 9 does not exist. Available versions: 7. Try 7, latest or @2h."
    )
    assert (
        str(not_found(Latest(back=2), listing(7)))
        == "No version matches latest~2. Available versions: 7. Try earliest or 7."
    )


@pytest.mark.parametrize("text", ["latest", "latest~1", "earliest", "1~1", "@2h", "@2026-11-01"])
def test_an_empty_table_has_no_version_yet(text):
    said = refused(text, Past([]))

    assert said.endswith(": the table has no version yet. Update after the first commit.")
    assert said == str(not_found(parse_ref(text), listing())) or text.startswith("@2h")


def test_a_table_without_tags_says_so():
    assert refused("tag:v1", Past([1])) == ("Tag 'v1' does not exist: the table has no tags. Try latest or @2h.")


def test_many_tags_are_not_all_named():
    said = refused("tag:t7000", Past([1], {f"t{i:04}": 1 for i in range(500)}))

    assert "and 490 more." in said
    assert len(said) < 400


def test_a_number_alone_is_for_the_caller_to_load():
    past = Past([1, 2, 3])

    assert found("99", past) == 99
    assert past.asked == []


def test_a_tag_that_ends_like_steps_is_found_unless_it_can_be_read_in_two_ways():
    assert found("tag:v1~2", Past([1, 2, 3], {"v1~2": 2})) == 2
    assert found("tag:v1^^", Past([1, 2, 3], {"v1^^": 2})) == 2
    assert found('tag:"v1~2"', Past([1, 2, 3], {"v1~2": 2, "v1": 3})) == 2
    assert refused("tag:v1~2", Past([1, 2, 3], {"v1~2": 2, "v1": 3}), InvalidArgumentError) == (
        "tag:v1~2 is ambiguous: the table has the tags 'v1' and 'v1~2'. Write tag:\"v1~2\" or 3~2."
    )


def test_steps_beyond_all_measure_cost_nothing():
    assert "goes back past the earliest" in refused(f"tag:v1~{2**63 - 1}", Past([1], {"v1": 1}))


def test_tags_with_the_same_letters_are_apart():
    assert resolve(Tag(name="V1"), Past([1, 2], {"v1": 1, "V1": 2})) == 2


@pytest.mark.parametrize(
    ("text", "version"), [("v3", 3), ("HEAD", 5), ("head~1", 4), ("-2", 4), ("2026-11-01T02:30", 2), ("v4~1", 3)]
)
def test_a_short_form_is_a_ref_where_no_tag_is_called_so(text, version):
    assert found(text, Past(range(1, 6), {"eom": 1})) == version


@pytest.mark.parametrize(
    ("text", "tags", "said"),
    [
        ("v3", {"v3": 2}, "'v3' is ambiguous: a tag of this name is version 2, and 3 is version 3. Write tag:v3 or 3."),
        ("v3~1", {"v3": 3, "v3~1": 5}, "is ambiguous"),
        (
            "v3^",
            {"v3^": 5},
            """'v3^' is ambiguous: a tag of this name is version 5, and 3~1 is version 2. Write tag:"v3^" or 3~1.""",
        ),
        ("HEAD", {"HEAD": 1}, "'HEAD' is ambiguous: a tag of this name is version 1, and latest is version 5."),
        ("-1", {"-1": 1}, "'-1' is ambiguous: a tag of this name is version 1, and latest is version 5."),
        ("2026-11-01", {"2026-11-01": 4}, "and @2026-11-01T00:00:00Z is no version. Write tag:2026-11-01 or @2026-11"),
    ],
)
def test_a_short_form_that_is_also_the_name_of_another_version_is_refused(text, tags, said):
    assert said in refused(text, Past(range(1, 6), tags), InvalidArgumentError)


def test_a_short_form_and_a_tag_of_its_name_that_agree_are_one_version():
    past = Past(range(1, 6), {"v3": 3, "2026-11-01": 2})
    past.times = {version: START - timedelta(hours=3 - version) for version in past.existing}

    assert found("v3", past) == found("v3~0", past) == 3
    assert found("v3~1", past) == 2
    assert refused("2026-11-01", past, InvalidArgumentError)
    past.tagged["2026-11-01"] = 3
    assert found("2026-11-01", past) == 3


def test_a_ref_in_full_does_not_read_the_tags():
    past = Past(range(1, 6), {"v3": 2})

    for text in ("3", "latest", "@2026-11-01T02:30"):
        found(text, past)

    assert "tags" not in past.asked
