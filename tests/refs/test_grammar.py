"""What refs look like, and what is said of texts that are none."""

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.core.refs import (
    AsOf,
    Earliest,
    Latest,
    OfBranch,
    Ref,
    Tag,
    Version,
    parse_range,
    parse_ref,
    parse_time_bound,
)
from snapshot_explorer.errors import InvalidArgumentError
from tests.support.effort import at_most_steps, ended_if_it_hangs

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
STEPS = st.integers(0, 2**63 - 1)
REFS = st.one_of(
    st.builds(Version, number=st.integers(0, 2**63 - 1), back=STEPS),
    st.builds(Latest, back=STEPS),
    st.builds(Earliest, back=STEPS),
    st.builds(Tag, name=st.text(min_size=1, max_size=255), back=STEPS),
    st.builds(Tag, name=st.text('".~^ 1a@', min_size=1, max_size=12), back=st.integers(0, 3)),
    st.builds(AsOf, time=st.datetimes(timezones=st.just(UTC)), back=STEPS),
)


@given(REFS)
def test_the_text_of_a_ref_parses_to_the_ref(ref):
    assert parse_ref(str(ref)) == ref
    assert parse_ref(ref) is ref


@given(REFS, REFS)
def test_the_texts_of_two_refs_parse_as_a_range(first, last):
    assert parse_range(f"{first}..{last}") == (first, last)
    assert parse_range(f"..{last}") == (Earliest(), last)
    assert parse_range(f"{first}..") == (first, Latest())


@given(st.one_of(st.text(max_size=60), st.text('0123456789~^@.:"-+TZtagles hdmwv#', max_size=40)))
def test_any_text_is_a_ref_or_a_bad_reference(text):
    for parse in (parse_ref, parse_range):
        try:
            parsed = parse(text)
        except InvalidArgumentError as error:
            said = str(error)
        else:
            said = ""
            for ref in parsed if isinstance(parsed, tuple) else (parsed,):
                assert parse_ref(str(ref)) == ref
        assert said.isprintable()
        assert len(said) < 500


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("17", Version(number=17)),
        (" 017 ", Version(number=17)),
        ("0", Version(number=0)),
        ("17~1", Version(number=17, back=1)),
        ("17^", Version(number=17, back=1)),
        ("17^^", Version(number=17, back=2)),
        ("17~", Version(number=17, back=1)),
        ("latest", Latest()),
        ("Latest", Latest()),
        ("latest~2", Latest(back=2)),
        ("latest~2^", Latest(back=3)),
        ("latest^~2^", Latest(back=4)),
        ("earliest", Earliest()),
        ("earliest~0", Earliest()),
        ("tag:v1", Tag(name="v1")),
        ("tag:2026-11-01", Tag(name="2026-11-01")),
        ("tag:v1~2", Tag(name="v1", back=2)),
        ('tag:"v1~2"', Tag(name="v1~2")),
        ('tag:"v1~2"^', Tag(name="v1~2", back=1)),
        ('tag:"say ""hi"""', Tag(name='say "hi"')),
        ("tag:a..b", Tag(name="a..b")),
        ("tag:a b", Tag(name="a b")),
        ("branch:audit", OfBranch(name="audit")),
        ("branch:audit~1", OfBranch(name="audit", back=1)),
        ("Branch:audit^", OfBranch(name="audit", back=1)),
        ('branch:"a..b~1"~2', OfBranch(name="a..b~1", back=2)),
        ("branch:audit@5", OfBranch(name="audit", number=5)),
        ("branch:audit@5~2", OfBranch(name="audit", number=5, back=2)),
        ('branch:"a@5"', OfBranch(name="a@5")),
        ('branch:"a@5"@6', OfBranch(name="a@5", number=6)),
        ("main", OfBranch(name="main")),
        ("main~2", OfBranch(name="main", back=2)),
        ("@2026-11-01", AsOf(time=datetime(2026, 11, 1, tzinfo=UTC))),
        ("@2026-11-01 12:00", AsOf(time=datetime(2026, 11, 1, 12, tzinfo=UTC))),
        ("@2026-11-01T12:00:00+02:00", AsOf(time=datetime(2026, 11, 1, 10, tzinfo=UTC))),
        ("@2026-11-01T12:00-0130", AsOf(time=datetime(2026, 11, 1, 13, 30, tzinfo=UTC))),
        ("@2026-11-01 12:00:01.5 Z", AsOf(time=datetime(2026, 11, 1, 12, 0, 1, 500_000, tzinfo=UTC))),
        ("@2026-11-01T12:00:00.123456789Z", AsOf(time=datetime(2026, 11, 1, 12, 0, 0, 123_456, tzinfo=UTC))),
        ("@2026-11-01~1", AsOf(time=datetime(2026, 11, 1, tzinfo=UTC), back=1)),
        ("@2h", AsOf(time=NOW - timedelta(hours=2))),
        ("@90m", AsOf(time=NOW - timedelta(minutes=90))),
        ("@3d", AsOf(time=NOW - timedelta(days=3))),
        ("@1w", AsOf(time=NOW - timedelta(weeks=1))),
        ("@45s", AsOf(time=NOW - timedelta(seconds=45))),
        ("@1d12h", AsOf(time=NOW - timedelta(hours=36))),
        ("@2 hours ago", AsOf(time=NOW - timedelta(hours=2))),
        ("@2h^^", AsOf(time=NOW - timedelta(hours=2), back=2)),
        ("v17", Version(number=17)),
        ("V17~1", Version(number=17, back=1)),
        ("HEAD", Latest()),
        ("head", Latest()),
        ("HEAD~1", Latest(back=1)),
        ("HEAD^", Latest(back=1)),
        ("-1", Latest()),
        ("-3", Latest(back=2)),
        ("-3~1", Latest(back=3)),
        ("2026-11-01", AsOf(time=datetime(2026, 11, 1, tzinfo=UTC))),
        ("2026-11-01T12:00Z~1", AsOf(time=datetime(2026, 11, 1, 12, tzinfo=UTC), back=1)),
        ("2026-11-01 12:00", AsOf(time=datetime(2026, 11, 1, 12, tzinfo=UTC))),
        ("2h", AsOf(time=NOW - timedelta(hours=2))),
        ("2 hours ago", AsOf(time=NOW - timedelta(hours=2))),
        ("yesterday", AsOf(time=datetime(2026, 11, 20, 23, 59, 59, 999_999, tzinfo=UTC))),
        ("@Yesterday", AsOf(time=datetime(2026, 11, 20, 23, 59, 59, 999_999, tzinfo=UTC))),
    ],
)
def test_a_text_that_is_a_ref(text, ref):
    assert parse_ref(text, now=NOW) == ref


@pytest.mark.parametrize(
    ("value", "ref"),
    [
        (17, Version(number=17)),
        (datetime(2026, 11, 1), AsOf(time=datetime(2026, 11, 1, tzinfo=UTC))),  # noqa: DTZ001 - naive is UTC
        (datetime(2026, 11, 1, 2, tzinfo=timezone(timedelta(hours=2))), AsOf(time=datetime(2026, 11, 1, tzinfo=UTC))),
        (date(2026, 11, 1), AsOf(time=datetime(2026, 11, 1, tzinfo=UTC))),
    ],
)
def test_a_number_or_a_time_is_a_ref(value, ref):
    assert parse_ref(value) == ref


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)),
        ("@3d", NOW - timedelta(days=3), NOW - timedelta(days=3)),
        ("yesterday", datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 20, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("@today", datetime(2026, 11, 21, tzinfo=UTC), datetime(2026, 11, 21, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("17", None, None),
        ("3d~1", None, None),
    ],
)
def test_a_range_of_times_starts_with_its_first_day_and_ends_with_its_last(text, first, last):
    assert parse_time_bound(text, start=True, now=NOW) == first
    assert parse_time_bound(text, start=False, now=NOW) == last


def test_numbers_and_times_of_numpy_and_pandas_are_refs():
    import numpy as np
    import pandas as pd

    moment = pd.Timestamp("2026-11-01 12:00:00.000000789", tz="Europe/Berlin")

    assert parse_ref(np.int64(17)) == Version(number=17)
    assert parse_ref(moment) == AsOf(time=datetime(2026, 11, 1, 11, tzinfo=UTC))
    assert type(parse_ref(moment).time) is datetime
    with pytest.raises(InvalidArgumentError, match="^NaT is not a time"):
        parse_ref(pd.NaT)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("version 17", "17"),
        ("snapshot-17", "17"),
        ("#17", "17"),
        ("lastest", "latest"),
        ("latst~2", "latest~2"),
        ("haed", "latest"),
        ("newest", "latest"),
        ("oldest", "earliest"),
        ("first", "earliest"),
        ("erliest", "earliest"),
        ("latest^2", "latest~2"),
        ("~2", "latest~2"),
        ("^", "latest~1"),
        (-3, "latest~2"),
        ("today", "@1d"),
        ("@17", "17"),
        ("@20261101", "@2026-11-01"),
        ("@2026-11", "@2026-11-01"),
        ("2026/1/5", "@2026-01-05"),
        ("@1767225600123", "@2026-01-01T00:00:00.123000Z"),
        ("@2H", "@2h"),
    ],
)
def test_a_near_miss_says_what_may_be_meant(text, meant):
    with pytest.raises(InvalidArgumentError) as caught:
        parse_ref(text)

    assert f" Did you mean {meant}? Refs look like 17, latest, earliest, latest~2, 17^, " in str(caught.value)
    parse_ref(meant)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'' is not a valid ref. Refs look like 17, latest, earliest, latest~2, 17^, tag:v1, branch:dev, @2026"),
        ("eom", "'eom' is not a valid ref. For a tag, write tag:eom; for a branch, branch:eom. Refs look like"),
        ("branch:", "'branch:' is not a valid ref. A branch name has 1 to 255 characters. Inside quotes"),
        ("1..5", "'1..5' is not a valid ref. Expected one ref, got a range. Refs look like"),
        ("tag:", "'tag:' is not a valid ref. A tag name has 1 to 255 characters"),
        ('tag:"x', "'tag:\"x' is not a valid ref. A tag name has 1 to 255 characters. Inside quotes"),
        ("@", "'@' is not a valid ref. Refs look like"),
        ("@2026-13-01", "'@2026-13-01' is not a valid ref. Refs look like"),
        ("@99999999999d", "'@99999999999d' is not a valid ref. Refs look like"),
        ("\uff11\uff17", "'\uff11\uff17' is not a valid ref. "),
        ("99999999999999999999", "99999999999999999999 is not a valid version: it must be 0 to 9223372036854775807."),
        pytest.param(10**6000, "A number of 19,932 bits is not a valid version: it must be 0 to", id="huge"),
        ("latest~99999999999999999999", "99999999999999999999 is not a valid number of steps: it must be 0 to"),
        (None, "A value of type NoneType is not a valid ref. Use a number, a text or a datetime. Refs look like"),
        (1.5, "A value of type float is not a valid ref. Use a number, a text or a datetime."),
        (True, "A value of type bool is not a valid ref. Use a number, a text or a datetime."),
        ("\x1b[31m\n", r"'\x1b[31m' is not a valid ref. "),
        ("x" * 5000, " is not a valid ref: it has 5,000 characters. Refs look like"),
    ],
)
def test_a_text_that_is_not_a_ref_is_refused(text, said):
    with pytest.raises(InvalidArgumentError) as caught:
        parse_ref(text)

    assert said in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_bare_word_that_is_a_tag_says_how_a_tag_is_written():
    tags = {"eom": 3, "w1~2": 4, "now": 5}

    for text, meant in (("eom", "tag:eom"), ("eom~1", "tag:eom~1"), ("w1~2", 'tag:"w1~2"'), ("now", "tag:now")):
        with pytest.raises(InvalidArgumentError, match="is not a valid ref") as caught:
            parse_ref(text, tags=lambda: tags)
        assert f"Did you mean {meant}?" in str(caught.value)
    with pytest.raises(InvalidArgumentError, match=r"^'what' is not a valid ref\. Refs look like"):
        parse_ref("what", tags=lambda: tags)


def test_tags_are_not_requested_while_the_text_is_a_ref():
    def never():
        raise AssertionError

    assert parse_ref("tag:v1", tags=never) == Tag(name="v1")


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("..", "earliest", "latest"),
        ("1..5", "1", "5"),
        (" 1 .. latest~1 ", "1", "latest~1"),
        ("@2026-11-01 12:00:00.5..@2026-11-02", "@2026-11-01T12:00:00.5Z", "@2026-11-02"),
        ("tag:a..tag:b", "tag:a", "tag:b"),
        ('tag:"a..b"..', 'tag:"a..b"', "latest"),
        ("v3..HEAD~1", "3", "latest~1"),
        ("-3..-1", "latest~2", "latest"),
        ("2026-11-01..2026-11-02", "@2026-11-01", "@2026-11-02"),
        ('tag:0"..tag:""""', 'tag:"0"""', 'tag:""""'),
        ('tag:"a"".."..tag:".."', 'tag:"a"".."', 'tag:".."'),
    ],
)
def test_a_range_has_two_sides(text, first, last):
    assert parse_range(text) == (parse_ref(first), parse_ref(last))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("17", "'17' is not a range of versions: it has no `..`. Write two refs, such as 3..17 or 17..latest."),
        ("", "'' is not a range of versions: it has no `..`."),
        (
            "1...5",
            "'1...5' is not a range of versions: it must contain `..` exactly once. Write two refs, such as 3..17. ",
        ),
        ("1..2..3", "'1..2..3' is not a range of versions: it must contain `..` exactly once."),
        (17, "A value of type int is not a range of versions. Write two refs"),
        (None, "A value of type NoneType is not a range of versions. Write two refs"),
        ("." * 5000, "is not a range of versions. Write two refs"),
        ("1..version 5", "'version 5' is not a valid ref. Did you mean 5?"),
    ],
)
def test_one_ref_is_not_a_range(text, said):
    with pytest.raises(InvalidArgumentError) as caught:
        parse_range(text)

    assert said in str(caught.value)


@pytest.mark.parametrize("unit", ["~", "^", "~1", "1", "@1d", '"', 'tag:"', "..", ". ", "9d ", "-", "2026-11-01 "])
def test_a_huge_text_is_refused_at_once(unit):
    for text in (unit * 100_000, (unit * 1000)[:1000], "@" + (unit * 1000)[:999], "tag:" + (unit * 1000)[:996] + "x"):
        for parse in (parse_ref, parse_range):
            with at_most_steps(20_000), ended_if_it_hangs(), suppress(InvalidArgumentError):
                parse(text)


@pytest.mark.parametrize(
    "build", [lambda: Version(number=-1), lambda: Latest(back=-1), lambda: Tag(name=""), lambda: Tag(name="x" * 256)]
)
def test_a_ref_that_exists_is_right(build):
    with pytest.raises(InvalidArgumentError):
        build()


def test_the_union_is_closed():
    assert set(Ref.__args__) == {Version, Latest, Earliest, Tag, OfBranch, AsOf}
