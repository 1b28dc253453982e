from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from snapshot_explorer.results import Frame
from tests.inner.arrow import format_cell, sanitize, text_width, truncate, unit_of
from tests.inner.core import format_size, format_utc
from tests.inner.view import JsonBounds, json_value


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (1_200_000, "1.2 MB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (5_088_161, "5.1 MB"),
        (2**63 - 1, "9.2 EB"),
        (-1_500, "-1.5 kB"),
    ],
)
def test_bytes_are_drawn_in_decimal_units(count: int, said: str) -> None:
    assert format_size(count) == said


def test_counts_have_thousands_separators_and_ids_have_none() -> None:
    assert format_cell(1234567, "count").text == "1,234,567"
    assert format_cell(1234567).text == "1234567"
    assert format_cell(9223372036854775807).text == "9223372036854775807"


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((0, 0, 0), "PT0S"),
        ((14, -2, 0), "P14M-2D"),
        ((0, 0, -3_500_000_000), "PT-3.5S"),
        ((1, 2, 100), "P1M2DT0.0000001S"),
        ((0, 1, 36_000 * 10**9), "P1DT36000S"),
    ],
)
def test_intervals_are_iso_8601_in_cells_and_in_json(parts, said):
    interval = pa.MonthDayNano(parts)
    frame = Frame(pa.table({"i": pa.array([interval, None])}), title="Spans", noun="spans")

    assert format_cell(frame.to_arrow()["i"][0]).text == said
    assert format_cell([interval]).text == said
    assert frame.to_json() == f'[{{"i":"{said}"}},{{"i":null}}]'
    assert json_value({"spans": [interval]}, str, JsonBounds(letters=100)) == {"spans": [said]}


def test_a_rounded_size_keeps_its_exact_value() -> None:
    assert format_cell(1_234_567, "bytes").exact == "1,234,567 bytes"
    assert format_cell(12, "bytes").exact is None


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (datetime(2026, 11, 1, 12, 0, 0, 123_999, tzinfo=UTC), "2026-11-01 12:00:00.123Z"),
        (datetime(2026, 11, 1, 14, 0, tzinfo=timezone(timedelta(hours=2))), "2026-11-01 12:00:00.000Z"),
        (datetime(2026, 11, 1, 12, 0), "2026-11-01 12:00:00.000"),  # noqa: DTZ001 - a time without zone is the case
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=2))), "0001-01-01 00:00:00+02:00"),
    ],
)
def test_times_are_utc_to_the_millisecond(time: datetime, said: str) -> None:
    assert format_utc(time) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "-"),
        ("-", '"-"'),
        ("", '""'),
        ("null", "null"),
        (" padded ", '" padded "'),
        ('"quoted"', '"\\"quoted\\""'),
        (True, "yes"),
        (False, "no"),
        (1.5, "1.5"),
        (Decimal("10.20"), "10.20"),
        (date(2026, 11, 1), "2026-11-01"),
        (b"\x00\xff", "0x00ff"),
        (bytes(17), "0x" + "00" * 16 + "…"),
        (("a", "b"), "a, b"),
        (("a,b", None, ""), '"a,b", -, ""'),
        ({"dt": "2026-01-01", "hr": "3"}, "dt=2026-01-01/hr=3"),
        ({"dt": None, "hr": "-"}, 'dt=-/hr="-"'),
        ({"dt": "a/b"}, 'dt="a/b"'),
        ([{"a": 1}, [2]], "{a=1}, [2]"),
        ([], ""),
    ],
)
def test_each_kind_of_value_has_its_own_look(value: object, said: str) -> None:
    assert format_cell(value).text == said


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ([("dt", "2026-01-01"), ("hr", None)], pa.map_(pa.string(), pa.string()), "dt=2026-01-01/hr=-"),
        (["x", "y"], pa.large_list(pa.string()), "x, y"),
        ({"id": 1, "at": datetime(2026, 1, 1, tzinfo=UTC)}, None, "id=1/at=2026-01-01 00:00:00.000000Z"),
        (datetime(2026, 1, 1, tzinfo=UTC), pa.timestamp("ms", tz="Europe/Berlin"), "2026-01-01 00:00:00.000Z"),
        (date(2026, 1, 1), pa.date32(), "2026-01-01"),
        (2**62, pa.duration("s"), "4611686018427387904"),
        ("x", pa.dictionary(pa.int8(), pa.string()), "x"),
    ],
)
def test_arrow_values_look_like_python_values(value: object, kind: pa.DataType, said: str) -> None:
    if kind is not None and pa.types.is_duration(kind):
        scalar = pa.array([value], pa.int64()).cast(kind)[0]
    else:
        scalar = pa.array([value], kind)[0]

    assert format_cell(scalar).text == said


def test_times_that_python_cannot_hold_are_drawn() -> None:
    far = pa.array([2**62], pa.int64()).cast(pa.timestamp("ms", tz="UTC"))

    assert format_cell(far[0]).text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain", "plain"),
        ("two\nlines\tand\r", "two\\nlines\\tand\\r"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("ab\u202egnp.exe", "ab\\u202egnp.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
        ("\u2764\ufe0f\u200d\U0001f525", "\u2764\ufe0f\u200d\U0001f525"),
        ("pay\u200dpal \U0001f469\u200d", "pay\\u200dpal \U0001f469\\u200d"),
        ("\u00a0", "\\xa0"),
        ("\u0301x", "\\u0301x"),
        ("e\u0301", "e\u0301"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("日本", "日本"),
    ],
)
def test_what_cannot_be_seen_is_escaped(text: str, said: str) -> None:
    assert sanitize(text) == said


def test_wide_letters_take_two_columns_and_marks_none() -> None:
    assert [text_width("abc"), text_width("日本"), text_width("e\u0301")] == [3, 4, 1]


def test_cutting_keeps_within_the_room_and_says_so() -> None:
    assert truncate("abcdefgh", 5) == "abcd…"
    assert truncate("日本語", 4) == "日…"
    assert truncate("bucket-0/data-123.parquet", 12, middle=True) == "bucket…rquet"
    assert truncate("fits", 4) == "fits"


def test_a_columns_unit_comes_from_its_metadata_or_the_last_word_of_its_name() -> None:
    assert unit_of("anything", {b"unit": b"bytes"}) == "bytes"
    assert unit_of("anything", {b"unit": b"files"}) == "count"
    assert unit_of("added_bytes") == "bytes"
    assert unit_of("live files") == "count"
    assert unit_of("schema_id") is None
