"""What statistics say of files: never more than is so."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inner.delta import bounds, bounds_of, partitions_of, rows_of, schema_of
from tests.inner.formats import with_bounds
from tests.support.delta.log_reader import adds_of, metadata
from tests.support.delta.table_builder import schema_json

NAN = float("nan")


def add_with(stats, **more):
    return {"path": "f", "stats": stats if stats is None or isinstance(stats, str) else json.dumps(stats)} | more


def rows(*stats):
    return rows_of(adds_of(*map(add_with, stats))).to_pylist()


def test_the_number_of_rows_is_found_wherever_it_stands():
    assert rows(
        '{"numRecords":5}', '{"numRecords":6,"minValues":{}}', '{"minValues":{"numRecords":1},"numRecords":7}'
    ) == [
        5,
        6,
        7,
    ]
    assert rows('{ "numRecords" : "8" }', ' {"numRecords":9}') == [8, 9]


@pytest.mark.parametrize(
    "stats",
    [
        None,
        "",
        "{}",
        "null",
        "[1]",
        '{"numRecords":-1}',
        '{"numRecords":1.5}',
        '{"numRecords":true}',
        '{"numRecords":null}',
        '{"numRecords":99999999999999999999}',
        '{"numRecords":5',
        '{"minValues":{"numRecords":5}}',
    ],
)
def test_a_number_of_rows_that_is_not_recorded_is_unknown(stats):
    cut = stats == '{"numRecords":5'

    assert rows(stats, '{"numRecords":3}') == [None, 3], cut


def test_of_change_data_no_number_of_rows_is_known():
    adds = adds_of(add_with(None)).drop_columns(["stats"])

    assert rows_of(adds).to_pylist() == [None]


def ends(kind, least, greatest, *, careful=False, more=None, **stats):
    """Return the bounds and null count of one column of one file."""
    table_metadata = metadata(schema_json([("c", kind, more or {})]))
    adds = adds_of(add_with({"numRecords": 10, "minValues": {"c": least}, "maxValues": {"c": greatest}} | stats))
    schema = schema_of(table_metadata)
    found = bounds(adds, schema.fields, rows_of(adds), partitions_of(adds, schema), careful=careful)
    assert found.lower.schema == found.upper.schema
    return tuple(table.column("c")[0].as_py() for table in (found.lower, found.upper, found.null_count))


@pytest.mark.parametrize(
    ("kind", "least", "greatest", "lower", "upper"),
    [
        ("long", 1, 2**63 - 1, 1, 2**63 - 1),
        ("long", "-5", "5", -5, 5),
        ("byte", -129, 128, None, None),
        ("integer", 1.5, "x", None, None),
        ("double", -1.5, 2, -1.5, 2.0),
        ("double", "NaN", "NaN", None, None),
        ("double", "-Infinity", "Infinity", None, None),
        ("float", 0.1, 1e300, pytest.approx(0.1), None),
        ("string", "a", "b", "a", "b"),
        ("string", "a", "abc\U0010ffff", "a", "abc\U0010ffff"),
        ("string", "a", "abc\ufffd", "a", "abc\U0010ffff"),
        ("string", "a", "abc?\ufffd", "a", "abc\U0010ffff"),
        ("string", 5, "\ud83d", None, None),
        ("date", "2020-01-01", "2020-01-02", date(2020, 1, 1), date(2020, 1, 2)),
        ("date", "2020-01-01T00:00:00", "soon", None, None),
        (
            "timestamp",
            "2000-01-01T00:00:00.000-08:00",
            "2000-01-01T10:00:00.123Z",
            datetime(2000, 1, 1, 8, tzinfo=UTC),
            datetime(2000, 1, 1, 10, 0, 0, 123_999, tzinfo=UTC),
        ),
        # Spark's mode LEGACY writes days that the old calendar lacks as 1582-10-15.
        ("date", "1582-10-03", "1582-10-14", date(1582, 10, 3), None),
        ("date", "1582-10-10", "1582-10-16", None, date(1582, 10, 16)),
        ("timestamp_ntz", "1582-10-14T12:00:00.000", "1582-10-14T12:00:00.000", None, None),
        ("timestamp", "2000-01-01T00:00:00.000", "2000-01-01 00:00:00", None, None),
        (
            "timestamp_ntz",
            "2000-01-01T00:00:00.000",
            "2000-01-01",
            datetime(2000, 1, 1),  # noqa: DTZ001 - it has no zone
            datetime(2000, 1, 1, 0, 0, 0, 999),  # noqa: DTZ001
        ),
        ("decimal(38,18)", 0, 12345678901234567890, Decimal(0), Decimal(12345678901234567890)),
        ("decimal(5,2)", "1.25", 999.99, Decimal("1.25"), Decimal("999.99")),
        ("decimal(5,2)", 1.234, 1.234, Decimal("1.23"), Decimal("1.24")),
        ("decimal(5,2)", 1000, "1E+999999999", None, None),
        ("decimal(5,2)", "NaN", "Infinity", None, None),
        ("boolean", False, True, None, None),
        ("binary", "a", "b", None, None),
        ({"type": "array", "elementType": "long"}, [1], [2], None, None),
    ],
)
def test_bounds_hold_or_are_unknown(kind, least, greatest, lower, upper):
    assert ends(kind, least, greatest)[:2] == (lower, upper)


def test_decimals_are_not_rounded():
    text = '{"numRecords":1,"minValues":{"c":0.1234567890123456789},"maxValues":{"c":98765432109876543210.987654321}}'
    found = bounds_of(adds_of(add_with(text)), metadata(schema_json([("c", "decimal(38,18)")])))

    assert found.lower.column("c")[0].as_py() == Decimal("0.123456789012345678")
    assert found.upper.column("c")[0].as_py() == Decimal("98765432109876543210.987654321")


@given(st.decimals(min_value=-(10**19), max_value=10**19, places=9, allow_nan=False))
def test_careful_bounds_hold_of_decimals_that_a_writer_took_for_floats(value):
    rounded = float(value)

    lower, upper, _ = ends("decimal(38,9)", rounded, rounded, careful=True)

    assert lower <= value <= upper


def test_a_column_widened_from_float_has_no_bounds():
    more = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}

    assert ends("double", 0.1, 0.1, more=more)[:2] == (None, None)


def test_texts_with_an_order_of_their_own_have_no_bounds():
    assert ends("string", "a", "b", more={"__COLLATIONS": {"c": "icu.UTF8_LCASE"}})[:2] == (None, None)


@pytest.mark.parametrize(
    ("count", "tight", "wanted"),
    [
        (3, True, 3),
        (3, None, 3),
        (3, False, None),
        (0, False, 0),
        (10, False, 10),
        ("4", True, 4),
        (-1, True, None),
        ({"inner": 1}, True, None),
    ],
)
def test_a_number_of_nulls_counts_where_it_means_what_it_says(count, tight, wanted):
    more = {"nullCount": {"c": count}} | ({} if tight is None else {"tightBounds": tight})

    assert ends("long", 1, 2, **more)[2] == wanted


def test_statistics_stand_under_physical_names():
    table_metadata = metadata(
        schema_json([("c", "long", {"delta.columnMapping.physicalName": "col-1", "delta.columnMapping.id": 1})]),
        configuration={"delta.columnMapping.mode": "name"},
    )
    stats = {"numRecords": 1, "minValues": {"col-1": 5, "c": 6}, "maxValues": {"col-1": 7}, "nullCount": {"col-1": 0}}

    found = bounds_of(adds_of(add_with(stats)), table_metadata)

    assert [table.column("c").to_pylist() for table in (found.lower, found.upper, found.null_count)] == [[5], [7], [0]]


def test_partition_columns_have_their_one_value():
    table_metadata = metadata(schema_json([("p", "integer"), ("c", "long")]), partition_by=["p"])
    adds = adds_of(
        add_with('{"numRecords":4}', partition_values=[("p", "3")]),
        add_with('{"numRecords":5}', partition_values=[("p", None)]),
        add_with(None, partition_values=[("p", None)]),
    )

    found = bounds_of(adds, table_metadata)

    assert found.lower.column("p").to_pylist() == found.upper.column("p").to_pylist() == [3, None, None]
    assert found.null_count.column("p").to_pylist() == [0, 5, None]
    assert found.rows.to_pylist() == [4, 5, None]


STRUCT = pa.struct(
    {
        "numRecords": pa.int64(),
        "tightBounds": pa.bool_(),
        "minValues": pa.struct({"c": pa.int32(), "s": pa.string(), "d": pa.float64(), "t": pa.timestamp("us", "UTC")}),
        "maxValues": pa.struct({"c": pa.int32(), "s": pa.string(), "d": pa.float64(), "t": pa.timestamp("us", "UTC")}),
        "nullCount": pa.struct({"c": pa.int64(), "s": pa.int64()}),
    }
)
MOMENT = datetime(2020, 1, 1, tzinfo=UTC)


def parsed(adds, *values):
    return adds.append_column("stats_parsed", pa.array(values, STRUCT))


def test_statistics_in_columns_are_read_where_there_is_no_text():
    table_metadata = metadata(
        schema_json([("c", "long"), ("s", "string"), ("d", "double"), ("t", "timestamp"), ("x", "long")])
    )
    low = {"c": 1, "s": "a", "d": 1.5, "t": MOMENT}
    high = {"c": 9, "s": "b\ufffd", "d": NAN, "t": MOMENT}
    whole = {"numRecords": 3, "minValues": low, "maxValues": high, "nullCount": {"c": 2, "s": 0}}
    adds = parsed(
        adds_of(add_with(None), add_with('{"numRecords":7,"minValues":{"c":5}}'), add_with(None), add_with(None)),
        whole,
        whole,
        None,
        whole | {"tightBounds": False},
    )

    found = bounds_of(adds, table_metadata)

    assert found.rows.to_pylist() == [3, 7, None, 3]
    assert found.lower.column("c").to_pylist() == [1, 5, None, 1]
    assert found.upper.column("c").to_pylist() == [9, None, None, 9]
    assert found.null_count.column("c").to_pylist() == [2, None, None, None]
    assert found.null_count.column("s").to_pylist() == [0, None, None, 0]
    assert found.upper.column("s")[0].as_py() == "b\U0010ffff"
    assert found.lower.column("d")[0].as_py() == 1.5
    assert found.upper.column("d")[0].as_py() is None
    assert found.lower.column("t")[0].as_py() == MOMENT
    assert found.upper.column("t")[0].as_py() == MOMENT.replace(microsecond=999)
    assert found.lower.column("x").null_count == 4


def test_statistics_in_columns_of_another_type_are_unknown():
    table_metadata = metadata(schema_json([("c", "string"), ("s", "long")]))
    adds = parsed(adds_of(add_with(None)), {"numRecords": 1, "minValues": {"c": 1, "s": "a"}, "maxValues": None})

    found = bounds_of(adds, table_metadata)

    assert (found.lower.column("c").to_pylist(), found.lower.column("s").to_pylist()) == ([None], [None])


def test_the_frame_of_files_gets_structs_with_the_columns_of_the_table():
    table_metadata = metadata(schema_json([("c", "long"), ("where", "interval year")]))
    adds = adds_of(add_with({"numRecords": 2, "minValues": {"c": 1}, "maxValues": {"c": 3}, "nullCount": {"c": 0}}))

    found = with_bounds(adds.select(["path"]), bounds_of(adds, table_metadata))

    assert found.to_pylist() == [{"path": "f", "lower": {"c": 1}, "upper": {"c": 3}, "null_count": {"c": 0}}]


def test_without_columns_or_files_the_frame_is_whole():
    table_metadata = metadata(None)

    assert with_bounds(pa.table({"path": ["f"]}), bounds_of(adds_of(add_with(None)), table_metadata)).num_rows == 1
    assert (
        with_bounds(
            pa.table({"path": pa.array([], pa.string())}), bounds_of(adds_of(), metadata(schema_json()))
        ).num_rows
        == 0
    )


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(
            st.sampled_from(["numRecords", "minValues", "maxValues", "nullCount", "tightBounds", "c"]), part
        )
    ),
    max_leaves=10,
)


@given(ANYTHING, st.sampled_from(["long", "double", "string", "date", "timestamp", "decimal(20,3)", "boolean"]))
def test_no_statistics_break_anything(stats, kind):
    table_metadata = metadata(schema_json([("c", kind)]))

    assert len(bounds_of(adds_of(add_with(json.dumps(stats))), table_metadata).rows) == 1
