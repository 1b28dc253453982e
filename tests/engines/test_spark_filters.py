"""Filters of Spark's as conditions: true and false on the same rows. The filters need PySpark, but no Java."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inner.engines import parse_condition
from tests.inner.engines_spark import filter_to_sql, pushed_condition

ds = pytest.importorskip("pyspark.sql.datasource")
if not hasattr(ds, "EqualTo"):
    pytest.skip("PySpark 4.0 pushes no filters to data sources in Python", allow_module_level=True)

TIME = datetime(2026, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001 - a wall clock time
COLUMNS = {
    "i": (pa.int32(), [1, 2, -5]),
    "b": (pa.bool_(), [True, False]),
    "x": (pa.float64(), [0.1, 1e300, -2.5]),
    "single": (pa.float32(), [0.5, 0.10000000149011612]),
    "d": (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-99999999.99")]),
    "s": (pa.string(), ["a", "it's", 'say "x"', "ü\n", ""]),
    "day": (pa.date32(), [date(2026, 1, 2), date(1, 1, 1)]),
    "at": (pa.timestamp("us", tz="UTC"), [TIME.replace(tzinfo=UTC)]),
    "wall": (pa.timestamp("us"), [TIME]),
    'a "quoted".name': (pa.int64(), [7, 2**60]),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
ORDERED = {
    "EqualTo": lambda a, b: a == b,
    "GreaterThan": lambda a, b: a > b,
    "GreaterThanOrEqual": lambda a, b: a >= b,
    "LessThan": lambda a, b: a < b,
    "LessThanOrEqual": lambda a, b: a <= b,
}


@st.composite
def filters(draw):
    """A filter, and what Spark says of a value of its column: true, false or null."""
    name = draw(st.sampled_from(list(COLUMNS)))
    values = st.sampled_from(COLUMNS[name][1])
    kind = draw(st.sampled_from([*ORDERED, "EqualNullSafe", "In", "IsNull", "IsNotNull", "Not"]))
    if kind in ORDERED:
        wanted = draw(values)
        found = getattr(ds, kind)((name,), wanted)
        says = lambda value: None if value is None else ORDERED[kind](value, wanted)  # noqa: E731
    elif kind == "EqualNullSafe":
        wanted = draw(st.none() | values)
        found, says = ds.EqualNullSafe((name,), wanted), lambda value: value == wanted
    elif kind == "In":
        several = tuple(draw(st.lists(values, min_size=1, max_size=3)))
        found, says = ds.In((name,), several), lambda value: None if value is None else value in several
    elif kind == "Not":
        wanted = draw(values)
        found = ds.Not(ds.EqualTo((name,), wanted))
        says = lambda value: None if value is None else value != wanted  # noqa: E731
    else:
        found = getattr(ds, kind)((name,))
        says = lambda value: (value is None) == (kind == "IsNull")  # noqa: E731
    return name, found, says


@given(filters())
def test_a_filter_passes_the_rows_that_spark_passes(drawn):
    name, found, says = drawn
    kind, values = COLUMNS[name]
    held = [*pa.array(values, kind).to_pylist(), None]
    rows = pa.table([pa.array(held, kind)], names=[name])

    passes = parse_condition(filter_to_sql(found, SCHEMA), SCHEMA).mask(rows)

    assert passes.to_pylist() == [says(value) is True for value in held]


def test_searches_in_text_become_conditions():
    rows = pa.table({"s": ["it's", "its", None]})
    made = [ds.StringStartsWith(("s",), "it'"), ds.StringEndsWith(("s",), "'s"), ds.StringContains(("s",), "'")]

    for found in made:
        assert parse_condition(filter_to_sql(found, SCHEMA), SCHEMA).mask(rows).to_pylist() == [True, False, False]


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(ds.EqualTo(("i",), "1"), id="text for a number"),
        pytest.param(ds.EqualTo(("i",), value=True), id="truth for a number"),
        pytest.param(ds.EqualTo(("x",), float("nan")), id="no number"),
        pytest.param(ds.EqualTo(("s", "field"), "a"), id="a field of a struct"),
        pytest.param(ds.EqualTo(("nope",), 1), id="no column"),
        pytest.param(ds.EqualTo(("at",), TIME), id="a time without a zone for an instant"),
        pytest.param(ds.EqualTo(("wall",), TIME.replace(tzinfo=UTC)), id="an instant for a time without a zone"),
        pytest.param(ds.EqualTo(("day",), TIME), id="a time for a day"),
        pytest.param(ds.EqualTo(("s",), "a\0b"), id="a zero byte"),
        pytest.param(ds.In(("i",), (1, None)), id="a null among values"),
        pytest.param(ds.In(("i",), tuple(range(1001))), id="very many values"),
        pytest.param(ds.Not(ds.EqualTo(("i",), "1")), id="the negation of one"),
        pytest.param(ds.Filter, id="a filter of tomorrow"),
    ],
)
def test_what_may_mean_something_else_is_left_to_spark(found):
    assert filter_to_sql(found, SCHEMA) is None


def test_columns_that_spark_sees_as_text_are_left_to_it():
    schema = pa.schema([("ns", pa.timestamp("ns")), ("time", pa.time32("ms"))])

    assert filter_to_sql(ds.EqualTo(("ns",), "2026-01-01T00:00:00"), schema) is None
    assert filter_to_sql(ds.GreaterThan(("time",), "10"), schema) is None


def test_filters_are_joined_to_a_condition():
    where = parse_condition("i > 0", SCHEMA)

    found = pushed_condition([ds.EqualTo(("s",), "a"), ds.EqualTo(("x",), "?"), ds.IsNotNull(("d",))], SCHEMA, where)

    assert found.columns == {"i", "s", "d"}
    assert pushed_condition([], SCHEMA) is None
    assert pushed_condition([], SCHEMA, where) is where


def test_columns_that_differ_in_case_or_have_a_collation_are_not_joined():
    schema = pa.schema([("a", pa.int64()), ("A", pa.int64()), pa.field("c", pa.string(), metadata={"collation": "x"})])

    found = pushed_condition([ds.EqualTo(("a",), 1), ds.EqualTo(("A",), 2), ds.EqualTo(("c",), "x")], schema)

    assert found.columns == {"a"}
