"""Columns of a data file under the table's types and names."""

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from tests.inner.delta import Calendar, Origin, arrow_type, calendar_of, conform, parse_type, schema_of, stored_fields
from tests.support.delta.log_reader import metadata
from tests.support.delta.table_builder import schema_json
from tests.support.effort import at_most_steps

PLAIN = Origin(path="f.parquet", mode="none")
BY_ID = Origin(path="f.parquet", mode="id")
JULIAN = Origin(path="f.parquet", mode="none", calendar=Calendar(dates=True, int96=True, zone="UTC"))
NAIVE = datetime(2020, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001 - it has no zone
AWARE = NAIVE.replace(tzinfo=UTC)

LONGS = {"type": "array", "elementType": "long"}
LONGS_BY_NAME = {"type": "map", "keyType": "string", "valueType": "long"}


def of(values, stored, kind, origin=PLAIN):
    kind = parse_type(kind)
    read = conform(pa.array(values, stored), kind, origin)
    assert read.type == arrow_type(kind)
    read.validate(full=True)
    return read.to_pylist()


@pytest.mark.parametrize(
    ("values", "stored", "kind", "wanted"),
    [
        ([1, None], pa.int8(), "byte", [1, None]),
        ([-128], pa.int32(), "byte", [-128]),
        ([-1], pa.int16(), "byte", [-1]),
        ([1], pa.int8(), "short", [1]),
        ([5], pa.uint16(), "short", [5]),
        ([255], pa.uint8(), "short", [255]),
        ([1], pa.int16(), "integer", [1]),
        ([65535], pa.uint16(), "integer", [65535]),
        ([1], pa.int32(), "long", [1]),
        ([2**32 - 1], pa.uint32(), "long", [2**32 - 1]),
        ([0.1], pa.float32(), "double", [float(np.float32(0.1))]),
        ([2**31 - 1], pa.int32(), "double", [2147483647.0]),
        ([5], pa.int32(), "decimal(12,2)", [Decimal(5)]),
        ([5], pa.int64(), "decimal(22,2)", [Decimal(5)]),
        ([Decimal("1.25")], pa.decimal128(5, 2), "decimal(7,4)", [Decimal("1.2500")]),
        ([Decimal("1.25")], pa.decimal32(5, 2), "decimal(5,2)", [Decimal("1.25")]),
        ([date(1, 1, 1)], pa.date32(), "date", [date(1, 1, 1)]),
        ([date(2020, 1, 2)], pa.date32(), "timestamp_ntz", [datetime(2020, 1, 2)]),  # noqa: DTZ001
        ([NAIVE], pa.timestamp("us"), "timestamp", [AWARE]),
        ([AWARE], pa.timestamp("us", tz="UTC"), "timestamp", [AWARE]),
        ([AWARE], pa.timestamp("us", tz="Asia/Tokyo"), "timestamp", [AWARE]),
        ([NAIVE], pa.timestamp("ns"), "timestamp_ntz", [NAIVE]),
        ([AWARE], pa.timestamp("us", tz="UTC"), "timestamp_ntz", [NAIVE]),
        ([NAIVE.replace(microsecond=0)], pa.timestamp("ms"), "timestamp_ntz", [NAIVE.replace(microsecond=0)]),
        (["a", None], pa.large_string(), "string", ["a", None]),
        (["a"], pa.string_view(), "string", ["a"]),
        ([b"a"], pa.binary(), "string", ["a"]),
        (["a", "b", "a"], pa.dictionary(pa.int8(), pa.string()), "string", ["a", "b", "a"]),
        ([b"ab"], pa.binary(2), "binary", [b"ab"]),
        (["a"], pa.string(), "binary", [b"a"]),
        ([True], pa.bool_(), "boolean", [True]),
        ([[1], None, []], pa.large_list(pa.int32()), LONGS, [[1], None, []]),
        ([[1, 2], None, [], [3]], pa.list_view(pa.int32()), LONGS, [[1, 2], None, [], [3]]),
        ([[1, 2], None, [3]], pa.large_list_view(pa.int8()), LONGS, [[1, 2], None, [3]]),
        ([None, [3]], pa.list_(pa.int8(), 1), {"type": "array", "elementType": "short"}, [None, [3]]),
        ([[("a", 1)], None], pa.map_(pa.string(), pa.int32()), LONGS_BY_NAME, [[("a", 1)], None]),
    ],
)  # fmt: skip
def test_values_come_in_the_type_of_the_table(values, stored, kind, wanted):
    assert of(values, stored, kind) == wanted


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        (pa.int64(), "integer"),
        (pa.uint32(), "integer"),
        (pa.uint64(), "long"),
        (pa.int64(), "double"),
        (pa.float64(), "float"),
        (pa.int32(), "float"),
        (pa.int32(), "decimal(11,2)"),
        (pa.decimal128(6, 2), "decimal(5,2)"),
        (pa.decimal128(5, 2), "decimal(6,1)"),
        (pa.int32(), "string"),
        (pa.string(), "long"),
        (pa.int32(), "date"),
        (pa.date32(), "timestamp"),
        (pa.int64(), "timestamp"),
        (pa.int8(), "boolean"),
        (pa.int32(), {"type": "array", "elementType": "integer"}),
        (pa.list_(pa.int32()), {"type": "struct", "fields": []}),
        (pa.list_(pa.int32()), {"type": "map", "keyType": "string", "valueType": "long"}),
        (pa.map_(pa.string(), pa.int64()), {"type": "array", "elementType": "long"}),
        (pa.struct({"value": pa.binary()}), "variant"),
        (pa.binary(), "variant"),
    ],
)
def test_another_type_is_refused(stored, kind):
    with pytest.raises(UnsupportedFeatureError, match="which is not supported for"):
        of([None], stored, kind)


@pytest.mark.parametrize(
    ("values", "stored", "kind"),
    [
        ([300], pa.int32(), "byte"),
        ([40_000], pa.int32(), "short"),
        ([1], pa.timestamp("ns"), "timestamp"),
        ([b"\xff"], pa.binary(), "string"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error(values, stored, kind):
    with pytest.raises(pa.ArrowInvalid):
        of(values, stored, kind)


def test_a_variant_is_a_struct_whatever_the_order_of_its_parts():
    stored = pa.struct({"metadata": pa.binary(), "value": pa.binary()})

    assert of([{"metadata": b"m", "value": b"v"}, None], stored, "variant") == [{"value": b"v", "metadata": b"m"}, None]


def test_a_shredded_variant_is_put_together():
    stored = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.int64()})
    rows = [{"metadata": b"\1\0\0", "typed_value": 1000}, None, {"metadata": b"\1\0\0", "value": b"\0"}]

    assert of(rows, stored, "variant") == [
        {"value": b"\x10\xe8\3", "metadata": b"\1\0\0"},
        None,
        {"value": b"\0", "metadata": b"\1\0\0"},
    ]


def test_a_variant_in_a_type_that_variants_do_not_have_is_refused():
    stored = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.uint64()})

    with pytest.raises(UnsupportedFeatureError, match="its variants are shredded into uint64"):
        of([None], stored, "variant")


def test_fields_of_a_struct_are_found_by_name_and_missing_ones_are_null():
    kind = {
        "type": "struct",
        "fields": [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("a", "B", "c")],
    }
    stored = pa.struct({"b": pa.int32(), "x": pa.string(), "a": pa.int64()})

    values = [{"b": 2, "x": "no", "a": 1}, None, {"b": None, "x": None, "a": 3}]
    assert of(values, stored, kind) == [{"a": 1, "B": 2, "c": None}, None, {"a": 3, "B": None, "c": None}]


def test_parts_of_a_slice_are_its_own():
    kind = parse_type({"type": "array", "elementType": {"type": "struct", "fields": [
        {"name": "a", "type": "long", "nullable": True, "metadata": {}}]}})  # fmt: skip
    stored = pa.array([[{"a": number}] * number for number in range(6)], pa.list_(pa.struct({"a": pa.int32()})))

    assert conform(stored.slice(2, 3), kind, PLAIN).to_pylist() == [[{"a": number}] * number for number in (2, 3, 4)]


def fields(*columns, mode="none"):
    table_metadata = metadata(schema_json(list(columns)), configuration={"delta.columnMapping.mode": mode})
    return schema_of(table_metadata).fields


def numbered(number):
    return {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}


def test_a_column_is_found_by_its_exact_name_then_by_its_name_but_for_case():
    there = pa.schema({"ID": pa.int64(), "id": pa.int64(), "Name": pa.string()})

    names = [
        field and field.name
        for field in stored_fields(fields(("id", "long"), ("NAME", "string"), ("x", "long")), there, PLAIN)
    ]

    assert names == ["id", "Name", None]


def test_a_name_that_fits_several_columns_but_for_case_is_damage():
    with pytest.raises(CorruptTableError, match="The data file f.parquet has 2 columns that match 'Id'"):
        stored_fields(fields(("Id", "long")), pa.schema({"ID": pa.int64(), "id": pa.int64()}), PLAIN)


def test_a_column_is_found_by_its_physical_name():
    there = pa.schema({"a": pa.int64(), "col-1": pa.int64()})

    (place,) = stored_fields(fields(("a", "long", numbered(1)), mode="name"), there, PLAIN)

    assert place.name == "col-1"


def with_id(name, kind, number):
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def test_a_column_is_found_by_its_id_and_a_file_without_ids_is_damage():
    there = pa.schema([with_id("a", pa.int64(), 2), with_id("b", pa.int64(), 1)])
    columns = fields(("a", "long", numbered(1)), ("c", "long", numbered(3)), mode="id")

    assert [field and field.name for field in stored_fields(columns, there, BY_ID)] == ["b", None]
    with pytest.raises(CorruptTableError, match="f.parquet has no field ids"):
        stored_fields(columns, pa.schema({"a": pa.int64()}), BY_ID)


def test_fields_of_a_struct_are_found_by_id():
    inner = {"type": "struct", "fields": [
        {"name": "x", "type": "long", "nullable": True, "metadata": numbered(5)},
        {"name": "y", "type": "long", "nullable": True, "metadata": numbered(6)}]}  # fmt: skip
    (field,) = fields(("s", inner, numbered(1)), mode="id")
    stored = pa.struct([with_id("y", pa.int64(), 5), with_id("x", pa.int64(), 7)])

    read = conform(pa.array([{"y": 1, "x": 2}], stored), field.type, BY_ID)

    assert read.to_pylist() == [{"x": 1, "y": None}]


@pytest.mark.parametrize(
    ("stored", "meant"),
    [
        (date(1582, 10, 15), date(1582, 10, 15)),
        (date(1582, 10, 14), date(1582, 10, 4)),
        (date(1500, 3, 11), date(1500, 3, 1)),
        (date(1500, 3, 10), date(1500, 3, 1)),  # 1500-02-29, which today's calendar does not have
        (date(1500, 3, 9), date(1500, 2, 28)),
        (date(1000, 1, 6), date(1000, 1, 1)),
        (-719_164, date(1, 1, 1)),
        (date(200, 3, 1), date(200, 3, 1)),
        (date(1, 1, 3), date(1, 1, 5)),
    ],
)
def test_dates_by_the_old_calendar_are_the_dates_that_were_meant(stored, meant):
    assert of([None, stored], pa.date32(), "date", JULIAN) == [None, meant]


def test_timestamps_by_the_old_calendar_keep_their_time_of_day():
    stored = datetime(1582, 10, 14, 23, 59, 59, 999_999, tzinfo=UTC)

    assert of([None, stored], pa.timestamp("us", tz="UTC"), "timestamp", JULIAN) == [None, stored.replace(day=4)]
    assert of([stored], pa.timestamp("us"), "timestamp", JULIAN) == [stored.replace(day=4)]


def test_timestamps_without_a_zone_are_never_by_the_old_calendar():
    stored = datetime(1582, 10, 14, 23, 59, 59, 999_999, tzinfo=UTC).replace(tzinfo=None)
    elsewhere = Origin(path="f", mode="none", calendar=Calendar(dates=True, int96=True, zone="Europe/Paris"))

    assert of([None, stored], pa.timestamp("us"), "timestamp_ntz", JULIAN) == [None, stored]
    assert of([stored], pa.timestamp("us"), "timestamp_ntz", elsewhere) == [stored]


def test_dates_by_the_old_calendar_that_became_timestamps_are_the_dates_that_were_meant():
    elsewhere = Origin(path="f", mode="none", calendar=Calendar(dates=True, zone="Europe/Paris"))
    meant = datetime(1582, 10, 4, tzinfo=UTC).replace(tzinfo=None)

    assert of([None, date(1582, 10, 14)], pa.date32(), "timestamp_ntz", elsewhere) == [None, meant]


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_timestamps_before_1900_by_the_clocks_of_another_zone_are_refused(zone):
    origin = Origin(path="f", mode="none", calendar=Calendar(dates=True, zone=zone))
    early, late = datetime(1899, 12, 31, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC)

    with pytest.raises(
        UnsupportedFeatureError, match="before 1900 in the hybrid calendar and local time of old versions"
    ):
        of([early], pa.timestamp("us", tz="UTC"), "timestamp", origin)
    assert of([late], pa.timestamp("us", tz="UTC"), "timestamp", origin) == [late]
    assert of([early], pa.timestamp("us"), "timestamp", origin) == [early]


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ({}, Calendar()),
        ({"version": "2.4.6"}, Calendar(dates=True, int96=True)),
        ({"version": "3.0.1"}, Calendar(int96=True)),
        ({"version": "3.1.0", "timeZone": "UTC"}, Calendar(zone="UTC")),
        ({"version": "4.0.0", "legacyDateTime": ""}, Calendar(dates=True)),
        ({"version": "nonsense", "legacyINT96": ""}, Calendar(dates=True, int96=True)),
    ],
)
def test_a_file_tells_its_calendar(keys, wanted):
    assert calendar_of({f"org.apache.spark.{key}".encode(): value.encode() for key, value in keys.items()}) == wanted


def test_times_by_todays_calendar_stay_as_they_are():
    assert of([date(1, 1, 3), None], pa.date32(), "date") == [date(1, 1, 3), None]


def test_newer_times_and_other_values_of_such_files_are_as_they_are():
    assert of([AWARE, None], pa.timestamp("us", tz="UTC"), "timestamp", JULIAN) == [AWARE, None]
    assert of(["a"], pa.string(), "string", JULIAN) == ["a"]
    assert of([None], pa.date32(), "date", JULIAN) == [None]


@pytest.mark.parametrize("in_other_case", [False, True])
def test_columns_of_a_wide_file_are_found_in_one_pass(in_other_case):
    names = [f"column_{number}" for number in range(2_000)]
    fields = schema_of(metadata(schema_json([(name, "long") for name in names]))).fields
    stored = pa.schema([(name.upper() if in_other_case else name, pa.int64()) for name in names])

    with at_most_steps(100_000):
        columns = stored_fields(fields, stored, PLAIN)

    assert columns == list(stored)
