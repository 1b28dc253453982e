"""Partition values: texts of the log as values of their columns."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from tests.inner.delta import arrow_schema, partition_texts, partitions_of, schema_of
from tests.support.delta.log_reader import adds_of, metadata
from tests.support.delta.table_builder import schema_json


def table_metadata_of(kind, **more):
    return metadata(schema_json([("id", "long"), ("p", kind)]), partition_by=["p"], **more)


def value(kind, text):
    table_metadata = table_metadata_of(kind)
    found = partitions_of(adds_of({"path": "f", "partition_values": [("p", text)]}), schema_of(table_metadata))
    assert found.values.schema.field("p").type == arrow_schema(table_metadata).field("p").type
    return found.values.column("p")[0].as_py()


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("string", "null", "null"),
        ("string", " ", " "),
        ("string", "", ""),
        ("string", "ä/é", "ä/é"),
        ("byte", "-128", -128),
        ("short", "32767", 32767),
        ("integer", "-5", -5),
        ("long", "9223372036854775807", 2**63 - 1),
        ("float", "1.5", 1.5),
        ("double", "1.0E10", 1e10),
        ("double", "-Infinity", float("-inf")),
        ("double", "4.9E-324", 5e-324),
        ("float", "inf", float("inf")),
        ("double", "-inf", float("-inf")),
        ("decimal(38,18)", "200.000000000000000000", Decimal(200)),
        ("decimal(5,2)", "-1.5", Decimal("-1.50")),
        ("decimal(10,0)", "1E+3", Decimal(1000)),
        ("boolean", "TRUE", True),
        ("boolean", "false", False),
        ("date", "2021-09-08", date(2021, 9, 8)),
        ("date", "0001-1-1", date(1, 1, 1)),
        ("date", "2021-09-08 00:00:00", date(2021, 9, 8)),
        ("date", "2021-09-08T23:59:59.5Z", date(2021, 9, 8)),
        ("timestamp", "2021-09-08 11:11:11", datetime(2021, 9, 8, 11, 11, 11, tzinfo=UTC)),
        ("timestamp", "2021-09-08T11:11:11.123456Z", datetime(2021, 9, 8, 11, 11, 11, 123456, tzinfo=UTC)),
        ("timestamp", "2021-09-08 11:11:11.5+02:00", datetime(2021, 9, 8, 9, 11, 11, 500000, tzinfo=UTC)),
        ("timestamp", "1969-12-31 23:59:59.999999", datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
        ("timestamp_ntz", "0001-01-01 00:00:00", datetime(1, 1, 1)),  # noqa: DTZ001 - it has no zone
        ("timestamp_ntz", "2021-11-18 02:30:00.123456", datetime(2021, 11, 18, 2, 30, 0, 123456)),  # noqa: DTZ001
        ("binary", "\u0001\u0002é", b"\x01\x02\xc3\xa9"),
        ("binary", "", b""),
    ],
)
def test_a_text_is_a_value_of_its_type(kind, text, wanted):
    assert value(kind, text) == wanted


def test_a_text_may_be_nan():
    assert value("float", "NaN") != value("float", "NaN")


@pytest.mark.parametrize(
    "kind", ["string", "integer", "double", "decimal(5,2)", "boolean", "date", "timestamp", "binary"]
)
def test_null_is_null(kind):
    assert value(kind, None) is None


@pytest.mark.parametrize("kind", ["integer", "double", "decimal(5,2)", "boolean", "date", "timestamp"])
def test_the_empty_text_is_null_where_it_is_no_value(kind):
    assert value(kind, "") is None


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("byte", "128"),
        ("long", "9223372036854775808"),
        ("integer", "1.0"),
        ("integer", "1_000"),
        ("integer", "x"),
        ("double", "infinite"),
        ("double", "1,5"),
        ("decimal(5,2)", "1.234"),
        ("decimal(5,2)", "1000.00"),
        ("decimal(5,2)", "1E9999"),
        ("decimal(5,2)", "NaN"),
        ("boolean", "yes"),
        ("date", "2021-13-01"),
        ("date", "10000-01-01"),
        ("timestamp", "noon"),
        ("timestamp", "2021-09-08 25:00:00"),
        ("timestamp", "2021-09-08 11:11:11.1234567"),
        ("timestamp_ntz", "2021-09-08 11:11:11+02:00"),
    ],
)
def test_a_text_of_another_type_names_a_file_that_has_it(kind, text):
    adds = adds_of(
        {"path": "good", "partition_values": [("p", None)]}, {"path": "p=bad/f", "partition_values": [("p", text)]}
    )

    with pytest.raises(CorruptTableError, match=r"The file p=bad/f is in the partition p=.* which is not a "):
        partitions_of(adds, schema_of(table_metadata_of(kind)))


def test_a_struct_is_not_a_partition():
    nested = {"type": "struct", "fields": []}

    with pytest.raises(UnsupportedFeatureError, match="Partition columns of type struct<> are not supported"):
        value(nested, "x")


def test_values_stand_under_physical_names_and_are_given_by_those_that_users_know():
    table_metadata = metadata(
        schema_json([("p", "integer", {"delta.columnMapping.physicalName": "col-1", "delta.columnMapping.id": 1})]),
        partition_by=["p"],
        configuration={"delta.columnMapping.mode": "id"},
    )
    adds = adds_of({"path": "f", "partition_values": [("col-1", "7"), ("p", "8")]})

    assert partition_texts(adds, table_metadata).to_pylist() == [[("p", "7")]]
    assert partitions_of(adds, schema_of(table_metadata)).values.to_pylist() == [{"p": 7}]


def test_a_partition_column_that_a_file_does_not_tell_is_null():
    adds = adds_of({"path": "f", "partition_values": []}, {"path": "g", "partition_values": None})

    assert partition_texts(adds, table_metadata_of("integer")).to_pylist() == [[("p", None)], [("p", None)]]


def test_without_partition_columns_there_is_one_partition():
    table_metadata = metadata(schema_json())
    adds = adds_of({"path": "f"}, {"path": "g"})

    assert partition_texts(adds, table_metadata).to_pylist() == [[], []]
    assert partition_texts(adds.slice(0, 0), table_metadata).to_pylist() == []
    assert partitions_of(adds, schema_of(table_metadata)).of_rows.tolist() == [0, 0]


@given(st.lists(st.tuples(st.sampled_from(["1", "2", "", None]), st.sampled_from(["a", "b", "", None])), max_size=20))
def test_each_file_has_its_own_values(pairs):
    table_metadata = metadata(schema_json([("n", "integer"), ("s", "string")]), partition_by=["s", "n"])
    adds = adds_of(*({"path": str(i), "partition_values": [("n", n), ("s", s)]} for i, (n, s) in enumerate(pairs)))

    found = partitions_of(adds, schema_of(table_metadata))

    wanted = [{"s": s, "n": int(n) if n else None} for n, s in pairs]
    assert found.values.take(pa.array(found.of_rows)).to_pylist() == wanted
    assert len(found.texts) == len({tuple(one.items()) for one in wanted})
    assert found.column().to_pylist() == [[("s", s), ("n", n or None)] for n, s in pairs]
