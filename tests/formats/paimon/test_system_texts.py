"""Text of system tables, as Java prints it."""

from datetime import date, timedelta

import pyarrow as pa
import pytest

from tests.inner.paimon import (
    braced_texts,
    format_iso_duration,
    format_of,
    java_texts,
    java_type,
    map_texts,
    parse_type,
)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (None, None),
        (timedelta(0), "PT0S"),
        (timedelta(hours=36), "PT36H"),
        (timedelta(days=2, minutes=3), "PT48H3M"),
        (timedelta(seconds=90.5), "PT1M30.5S"),
        (timedelta(hours=1, seconds=1), "PT1H1S"),
        (timedelta(hours=-5), "PT-5H"),
    ],
)
def test_a_duration_is_printed_as_java_prints_it(span, text):
    assert format_iso_duration(span) == text


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("data-1.parquet", "parquet"),
        ("data-1.zstd.parquet", "parquet"),
        ("data-1.csv.gz", "csv"),
        ("data-1.ORC", "ORC"),
        ("data", "data"),
        ("data.gz", "gz"),
    ],
)
def test_a_file_name_tells_its_format(name, found):
    assert format_of(name) == found


def test_values_are_printed_as_java_prints_the_internal_form():
    day = java_texts(pa.array([date(1970, 1, 2), None]), parse_type("DATE"))
    data = java_texts(pa.array([b"\x01\xff"]), parse_type("BYTES"))
    nested = java_texts(pa.array([[1], None]), parse_type("ARRAY<INT>"))

    assert (day, data, nested) == (["1", None], ["01ff"], [None, None])


def test_nulls_are_words_and_names_are_in_the_order_of_java_strings():
    assert braced_texts(["a", None, ""]) == "{a, null, }"
    # U+1F98A is two units from D83E on in UTF-16, and so comes before U+F900.
    assert map_texts(["\uf900", "b", "\U0001f98a"], [["1"], [None], ["3"]], 1) == ["{b=null, \U0001f98a=3, \uf900=1}"]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("INT NOT NULL", "INT NOT NULL"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("MAP<STRING NOT NULL, ARRAY<INT>>", "MAP<STRING NOT NULL, ARRAY<INT>>"),
        ("ROW<a INT NOT NULL, b STRING>", "ROW<`a` INT NOT NULL, `b` STRING>"),
        ("VECTOR<FLOAT, 3>", "VECTOR<FLOAT, 3>"),
        ("MULTISET<INT>", "MULTISET<INT>"),
    ],
)
def test_a_type_is_printed_as_java_prints_it(text, printed):
    assert java_type(parse_type(text)) == printed
