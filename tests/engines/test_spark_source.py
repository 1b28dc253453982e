"""Options of the data source and what they are answered with. Needs PySpark, but no Java: Spark only carries it."""

import pickle
import re

import pyarrow as pa
import pytest

from snapshot_explorer import samples
from snapshot_explorer.errors import InvalidArgumentError, LimitError, SnapshotNotFoundError, TableNotFoundError

pytest.importorskip("pyspark.sql.datasource")

import snapshot_explorer
from snapshot_explorer.spark import check_schema, describe, plan
from tests.inner.engines_spark import arrow_schema, spark_batch, spark_schema

ORDERS = str(samples.path("orders"))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        pytest.param(
            {"versionAsOf": "3"},
            InvalidArgumentError,
            "no option 'versionAsOf'. Did you mean version? Options: path, branch, format, columns, where, "
            "external_files, limits, version, changes, startingVersion, startingTimestamp, key, "
            "maxVersionsPerTrigger. For storage options, register SnapshotDataSource.with_storage_options",
            id="an option of another source",
        ),
        pytest.param({"secret": "hush"}, InvalidArgumentError, "has no option 'secret'. Options:", id="a credential"),
        pytest.param({"version": "99"}, SnapshotNotFoundError, "Version 99 does not exist", id="no such version"),
        pytest.param({"version": "?"}, InvalidArgumentError, "'?'", id="no ref"),
        pytest.param({"columns": "order_ids"}, InvalidArgumentError, "Did you mean order_id?", id="no such column"),
        pytest.param({"columns": ","}, InvalidArgumentError, "must contain column names, got", id="no column at all"),
        pytest.param({"where": "amount >"}, InvalidArgumentError, "is not SQL", id="no condition"),
        pytest.param({"limits": "many"}, InvalidArgumentError, "limits must be NAME=NUMBER", id="no limits"),
        pytest.param({"limits": "value_bytes=9"}, LimitError, "the limit is 9", id="limits that are too low"),
        pytest.param({"branch": "nope"}, TableNotFoundError, "'nope'", id="no such branch"),
        pytest.param(
            {"format": "delta"}, TableNotFoundError, "is not a delta table but a paimon table", id="no such format"
        ),
        pytest.param(
            {"path": "/nowhere"},
            TableNotFoundError,
            "No Paimon, Delta Lake, Iceberg, Hudi or DuckLake table at /nowhere",
            id="no table",
        ),
    ],
)
def test_an_invalid_option_is_refused(options, kind, message):
    with pytest.raises(kind, match=re.escape(message)) as caught:
        describe({"path": ORDERS} | options, {})

    assert "hush" not in str(caught.value)


def test_a_path_is_required():
    with pytest.raises(InvalidArgumentError, match="needs a path to one table"):
        describe({}, {})


def test_names_of_options_are_found_in_any_case():
    _, schema = describe({"PATH": ORDERS, "Columns": "status"}, {})

    assert schema.names == ["status"]


def test_a_schema_that_is_given_may_only_choose():
    from pyspark.sql.types import LongType, StringType, StructType

    _, own = describe({"path": ORDERS}, {})

    check_schema(StructType().add("status", StringType()).add("order_id", LongType()), own)
    for wrong in (
        StructType().add("nope", StringType()),
        StructType().add("order_id", StringType()),
        StructType().add("status", StringType(), nullable=False),
    ):
        with pytest.raises(
            InvalidArgumentError, match="The given schema has the column '.*' as .* Leave out the schema"
        ):
            check_schema(wrong, own)


def test_filters_spare_what_no_row_of_passes():
    datasource = pytest.importorskip("pyspark.sql.datasource")
    if not hasattr(datasource, "EqualTo"):
        pytest.skip("PySpark 4.0 pushes no filters to data sources in Python")
    described, _ = describe({"path": str(samples.path("events"))}, {})

    assert plan(described, [])
    assert plan(described, [datasource.EqualTo(("day",), "1999-01-01")]) == []


def test_storage_options_have_no_text():
    from pyspark.cloudpickle import dumps

    source = snapshot_explorer.SnapshotDataSource.with_storage_options({"secret": "hush"})

    found = pickle.loads(dumps(source))

    assert found.name() == "snapshot"
    assert "hush" not in repr(vars(source)) + repr(source) + repr(source(options={}))
    held = [cell.cell_contents for cell in source.schema.__closure__]
    assert "hush" not in repr(held)
    assert {"secret": "hush"} in [value for value in held if isinstance(value, dict)]


def test_the_class_is_one_and_the_same_each_time():
    assert snapshot_explorer.SnapshotDataSource is snapshot_explorer.SnapshotDataSource
    assert "SnapshotDataSource" in dir(snapshot_explorer)


def test_unsigned_numbers_have_the_types_that_spark_gives_them_in_parquet_files():
    widths = {8: "smallint", 16: "int", 32: "bigint", 64: "decimal(20,0)"}
    kinds = {bits: pa.type_for_alias(f"uint{bits}") for bits in widths}
    schema = pa.schema(
        [(f"n{bits}", kind) for bits, kind in kinds.items()]
        + [("items", pa.list_(pa.uint64())), ("in", pa.struct([("n", pa.uint8())]))]
    )
    most = {f"n{bits}": 2**bits - 1 for bits in kinds} | {"items": [2**64 - 1, None], "in": {"n": 255}}
    rows = pa.Table.from_pylist([most, {}], schema).combine_chunks().to_batches()[0]

    batch = spark_batch(rows.columns, arrow_schema(schema))

    assert (
        spark_schema(schema).simpleString()
        == "struct<"
        + ",".join(
            [
                *(f"n{bits}:{name}" for bits, name in widths.items()),
                "items:array<decimal(20,0)>",
                "in:struct<n:smallint>",
            ]
        )
        + ">"
    )
    assert batch.to_pylist() == rows.to_pylist()


def test_intervals_are_structs_of_their_numbers():
    interval = pa.month_day_nano_interval()
    schema = pa.schema([("one", interval), ("many", pa.list_(interval))])
    some = pa.MonthDayNano((1, -2, -(2**62)))
    rows = pa.Table.from_pylist([{}, {"one": some, "many": [some, None]}, {"one": None}], schema)
    batch = rows.combine_chunks().to_batches()[0].slice(1)

    converted = spark_batch(batch.columns, arrow_schema(schema))

    parts = {"months": 1, "days": -2, "nanoseconds": -(2**62)}
    assert spark_schema(schema).simpleString() == (
        "struct<one:struct<months:int,days:int,nanoseconds:bigint>,"
        "many:array<struct<months:int,days:int,nanoseconds:bigint>>>"
    )
    assert converted.to_pylist() == [{"one": parts, "many": [parts, None]}, {"one": None, "many": None}]
