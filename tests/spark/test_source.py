"""`spark.read.format("snapshot")`: rows, types, options and errors as Spark shows them."""

import json
import shutil
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest

import snapshot_explorer
from snapshot_explorer import samples
from tests.inner.core import PYSPARK_DATA_SOURCES
from tests.inner.engines_spark import spark_schema
from tests.support.canonical import canonical_rows
from tests.support.paimon.table_builder import PaimonTable
from tests.support.spark_frames import arrow_table

DATA = Path(__file__).parents[1] / "data"
pytestmark = pytest.mark.skipif(PYSPARK_DATA_SOURCES.applies(), reason=PYSPARK_DATA_SOURCES.problem)
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def read(spark):
    """Load a table with options, as a user would."""
    spark.dataSource.register(snapshot_explorer.SnapshotDataSource)
    return lambda path, **options: spark.read.format("snapshot").options(**options).load(str(path))


@pytest.fixture
def pushdown(spark):
    """Have Spark push filters to sources in Python; PySpark 4.0 cannot."""
    from pyspark.sql.datasource import DataSourceReader

    if not hasattr(DataSourceReader, "pushFilters"):
        pytest.skip("PySpark 4.0 pushes no filters to sources in Python")
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.unset(PUSHDOWN)


@pytest.fixture
def table(tmp_path):
    """An append table on the local disk, partitioned by name."""
    return PaimonTable(fsspec.filesystem("file", auto_mkdir=True), str(tmp_path / "table"), by_name=True)


def test_the_session_is_of_the_kind_that_was_requested(spark, spark_mode):
    kind = type(spark).__module__

    assert ("connect" in kind) == (spark_mode == "connect")
    if spark_mode != "connect":
        assert spark.sparkContext.master.startswith("spark://" if spark_mode == "cluster" else "local[")


@pytest.mark.parametrize("case", ["delta/types/4", "paimon/append_parquet/3", "paimon/odd_names/2"])
def test_rows_are_those_that_the_writer_reads(read, case):
    expected = json.loads((DATA / "expected" / f"{case}.json").read_text())
    path, _, version = case.rpartition("/")

    rows = read(DATA / path, version=version)

    assert rows.columns == expected["columns"]
    assert canonical_rows(arrow_table(rows)) == expected["rows"]


def test_types_and_nullability_are_those_of_the_version(read):
    orders = snapshot_explorer.open_table(samples.path("orders"))

    rows = read(samples.path("orders"), version="17")

    assert rows.schema == spark_schema(orders.at(17).to_arrow().schema)
    assert not rows.schema["order_id"].nullable


def test_sql_reads_a_version(spark, read):
    path = samples.path("orders")
    read(path)
    spark.sql(f"create or replace temporary view nine using snapshot options (path '{path}', version '9')")

    counted = spark.sql("select count(*) from nine").first()[0]
    spark.catalog.dropTempView("nine")

    assert counted == snapshot_explorer.open_table(path).at(9).count()


def test_options_choose_columns_and_rows(read):
    orders = snapshot_explorer.open_table(samples.path("orders")).at("latest~2")

    rows = read(samples.path("orders"), version="latest~2", columns="status, order_id", where="amount > 30")

    assert rows.columns == ["status", "order_id"]
    assert canonical_rows(arrow_table(rows)) == canonical_rows(orders.to_arrow(["status", "order_id"], "amount > 30"))


def test_a_version_that_is_named_stays(read, table):
    table.commit([(1, "a")])
    rows = read(table.root, version="1")

    table.commit([(2, "b")])

    assert [tuple(row) for row in rows.collect()] == [(1, "a")]


def test_the_newest_version_is_chosen_when_spark_analyses_the_query(read, table, spark_mode):
    """Once for a DataFrame of a classic session; over Connect at each action."""
    table.commit([(1, "a")])
    rows = read(table.root)
    table.commit([(2, "b")])

    counted = rows.count()

    assert counted == (2 if spark_mode == "connect" else 1)


def test_a_table_without_versions_has_no_rows(read):
    rows = read(DATA / "paimon" / "empty")

    assert rows.columns == ["k", "v", "n"]
    assert rows.count() == 0


def test_pushed_filters_spare_partitions(read, table, pushdown):
    table.commit([(1, "a")])
    table.commit([(2, "b")])
    shutil.rmtree(Path(table.root) / "name=a")

    kept = read(table.root).filter("name = 'b' and id > 0")

    assert [tuple(row) for row in kept.collect()] == [(2, "b")]


def test_filters_hold_where_none_are_pushed(read, table):
    table.commit([(1, "a")])
    table.commit([(2, "b")])

    kept = read(table.root).filter("name = 'b' and id > 0")

    assert [tuple(row) for row in kept.collect()] == [(2, "b")]


def test_a_schema_that_is_given_chooses_columns(spark, read):
    read(samples.path("orders"))
    chosen = spark.read.format("snapshot").schema("status string, order_id bigint")

    rows = chosen.load(str(samples.path("orders")))

    wanted = snapshot_explorer.open_table(samples.path("orders")).current.to_arrow(["status", "order_id"])
    assert canonical_rows(arrow_table(rows)) == canonical_rows(wanted)


def test_errors_are_a_readable_line(read):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as caught:
        read(samples.path("orders"), version="999").schema  # noqa: B018 - over Connect, only this asks for the table

    wanted = "SnapshotNotFoundError: Version 999 does not exist. Available versions: 1 to 18. Try 18, latest or @2h."
    assert any(line.endswith(wanted) for line in str(caught.value).splitlines())


def test_an_error_of_a_task_is_a_readable_line(read):
    from pyspark.errors import PySparkException

    rows = read(DATA / "paimon" / "aggregates_refused", version="2")

    with pytest.raises(PySparkException, match="CorruptTableError: The rows of bucket-0/data-.* cannot be merged"):
        rows.collect()


def test_storage_options_reach_the_executors_and_no_plan(spark, s3, capsys):
    client, bucket, options = s3
    folder = Path(samples.path("orders"))
    for path in filter(Path.is_file, folder.rglob("*")):
        client.upload_file(str(path), bucket, f"orders/{path.relative_to(folder).as_posix()}")
    spark.dataSource.register(snapshot_explorer.SnapshotDataSource.with_storage_options(options))

    rows = spark.read.format("snapshot").load(f"s3://{bucket}/orders")

    assert rows.count() == 41
    rows.explain(extended=True)
    shown = capsys.readouterr().out
    assert "BatchScan snapshot" in shown
    assert not [value for value in options.values() if value in shown]


def test_every_task_has_rows_of_its_own(read):
    events = read(samples.path("events"))

    assert events.count() == 75
    assert events.select("event_id").distinct().count() == 75
    assert pa.types.is_string(arrow_table(events).schema.field("day").type)
