"""Partition specs: transforms, values as text, and the partitions that a condition leaves."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from snapshot_explorer.errors import CorruptTableError
from tests.inner.arrow import murmur3
from tests.inner.engines import parse_condition
from tests.inner.iceberg import (
    arrow_schema,
    arrow_type,
    bucket,
    matching,
    parse_schema,
    parse_spec,
    parse_type,
    partition_columns,
    partition_texts,
)


def columns_of(source, transform, values, *, kind=None):
    """The schema of a table with one column `a`, and its one partition field with these stored values."""
    schema = parse_schema({"fields": [{"id": 1, "name": "a", "required": False, "type": source}]})
    spec = parse_spec(
        {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": "p", "transform": transform}]}
    )
    stored = pa.StructArray.from_arrays([pa.array(values, kind)], names=["1000"])
    return schema, partition_columns(spec, schema, stored)


def kept(source, transform, values, where, *, kind=None):
    schema, columns = columns_of(source, transform, values, kind=kind)
    predicate = parse_condition(where, arrow_schema(schema))
    return matching(columns, len(values), schema, predicate).tolist()


@pytest.mark.parametrize(
    ("spelled", "value", "expected"),
    [
        ("int", 34, 2017239379),
        ("long", 34, 2017239379),
        ("decimal(9,2)", Decimal("14.20"), -500754589),
        ("date", date(2017, 11, 16), -653330422),
        ("timestamp", datetime.fromisoformat("2017-11-16T22:31:08.000001"), -1207196810),
        ("timestamptz", datetime(2017, 11, 16, 22, 31, 8, tzinfo=UTC), -2047944441),
        ("timestamp_ns", datetime.fromisoformat("2017-11-16T22:31:08.000001"), -1207196810),
        ("string", "iceberg", 1210000089),
    ],
)
def test_the_test_values_of_the_specification_have_its_hashes(spelled, value, expected):
    kind = parse_type(spelled)

    assert bucket(pa.scalar(value, arrow_type(kind)), kind, 2**31) == expected & 0x7FFF_FFFF


def test_bytes_of_no_whole_word_have_the_hash_of_the_specification():
    assert murmur3(bytes([0, 1, 2, 3])) - 2**32 == -188683207
    assert murmur3(bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7")) == 1488055340


@pytest.mark.parametrize(
    ("source", "transform", "stored", "expected"),
    [
        ("date", "year", [54, -1, None], ["2024", "1969", None]),
        ("date", "month", [-1], ["1969-12"]),
        ("date", "day", [-1], ["1969-12-31"]),
        ("timestamp", "hour", [-2], ["1969-12-31-22"]),
        ("timestamp", "identity", [1, 0], ["1970-01-01T00:00:00.000001", "1970-01-01T00:00:00"]),
        ("timestamptz", "identity", [1_000], ["1970-01-01T00:00:00.001+00:00"]),
        ("binary", "identity", [b"\0\xff"], ["AP8="]),
        ("decimal(9,2)", "identity", [b"\x6e"], ["1.10"]),
        ("boolean", "identity", [True], ["true"]),
        ("int", "bucket[4]", [3], ["3"]),
        ("string", "truncate[3]", ["ice"], ["ice"]),
        ("int", "zorder[4]", [7], ["7"]),
    ],
)
def test_partition_values_have_the_text_of_their_folders(source, transform, stored, expected):
    _, columns = columns_of(source, transform, stored)

    assert [text["p"] for text in partition_texts(columns, len(stored))] == expected


def test_void_fields_have_no_text_and_make_no_partition():
    spec = parse_spec({"spec-id": 1, "fields": [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "void"}]})
    _, columns = columns_of("int", "void", [None])

    assert spec.is_unpartitioned
    assert partition_texts(columns, 1) == [{}]


@pytest.mark.parametrize(
    ("source", "transform", "stored", "where", "expected"),
    [
        ("int", "identity", [1, 2, None], "a % 2 = 0", [False, True, False]),
        ("int", "identity", [1, 2, None], "a IS NULL", [False, False, True]),
        ("int", "truncate[10]", [-10, 0, 10, None], "a = -1", [True, False, False, False]),
        ("int", "truncate[10]", [-10, 0, 10, None], "a > 9", [False, False, True, False]),
        # Java's integers wrap around: the least ones are in the partition of a number near the greatest.
        ("int", "truncate[10]", [2**31 - 8, 2**31 - 2, 0], f"a = {-(2**31)}", [False, True, False]),
        ("long", "truncate[10]", [2**63 - 18, 2**63 - 2, 0], "a < 0", [False, True, False]),
        ("string", "truncate[2]", ["ab", "a", "b", None], "a = 'abc'", [True, False, False, False]),
        ("string", "truncate[2]", ["ab", "a", "b", None], "a >= 'ad'", [False, False, True, False]),
        ("decimal(9,2)", "truncate[50]", [b"\xce", b"\0"], "a = -0.05", [True, False]),
        ("date", "month", [649, 650, None], "a = DATE '2024-02-29'", [True, False, False]),
        ("timestamp", "day", [19_782, 19_783], "a >= TIMESTAMP '2024-03-01 00:00:00'", [False, True]),
        ("timestamptz", "hour", [0, 5], "a = TIMESTAMPTZ '1970-01-01 05:59:59.999999+00'", [False, True]),
        ("string", "bucket[16]", [*range(16), None], "a = 'iceberg'", [n == 1210000089 % 16 for n in range(17)]),
        ("int", "bucket[16]", [0, None], "a IS NULL", [False, True]),
        ("int", "zorder[4]", [7, 8], "a = 7", [True, True]),
        ("int", "void", [None], "a = 7", [True]),
    ],
)
def test_a_condition_leaves_the_partitions_that_might_match(source, transform, stored, where, expected):
    assert kept(source, transform, stored, where) == expected


def test_a_time_before_1970_may_be_in_the_partition_above_its_own():
    assert kept("timestamp", "day", [-2, -1, 0, 1], "a = TIMESTAMP '1969-12-31 12:00:00'") == [False, True, True, False]


def test_a_partition_whose_source_was_dropped_is_kept_and_has_its_stored_value_as_text():
    schema = parse_schema({"fields": [{"id": 2, "name": "b", "required": False, "type": "int"}]})
    spec = parse_spec(
        {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "identity"}]}
    )
    columns = partition_columns(spec, schema, pa.StructArray.from_arrays([pa.array([5])], names=["1000"]))

    assert partition_texts(columns, 1) == [{"p": "5"}]
    assert matching(columns, 1, schema, parse_condition("b = 1", arrow_schema(schema))).tolist() == [True]


def test_a_spec_that_contradicts_the_format_is_refused():
    with pytest.raises(CorruptTableError, match="partition spec in the table's metadata file is not readable"):
        parse_spec({"spec-id": 0, "fields": [{"name": "p", "field-id": 1000, "transform": "identity"}]})
