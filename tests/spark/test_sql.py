"""Queries in SQL on Spark: the same text as on DuckDB, and nothing left behind."""

import pytest

import snapshot_explorer
from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError
from tests.support.spark_frames import arrow_table

QUERIES = (
    "select * from orders version as of 3",
    "select status, count(*) n, sum(cast(amount as double)) total from orders version as of 'v1' group by status",
    "select order_id from orders except select order_id from orders version as of 17",
    """select p.channel, min(orders.amount) least from payments@21 p
    join orders on p.payment_id = orders.order_id group by p.channel""",
    """with old as (select * from events version as of 3), orders as (select * from orders timestamp as of '2026-11-05')
    select day, count(*) n from old group by day union all select status, count(*) from ORDERS group by status""",
    "select day, count(*) n from payments where day > '2026-11-02' group by day",
    'select "orders"."order_id", `orders`.`status` from "orders" where `order_id` in (select event_id from `events@2`)',
    "select orders.order_id /* orders */ from orders -- events\nwhere orders.status <> 'from orders version as of 3'",
    "select order_id, 'it''s {a} {{b}} \\d' s, $$a'b\\$$ d, '{orders}' o from orders@latest~2 where order_id < 9",
    "select a.order_id from orders a, orders@2 b, (select max(order_id) m from this) c where a.order_id = b.order_id",
    "select o.*, extract(year from o.updated_at) y from orders o where status is not distinct from 'paid'",
    "select 1 as one, 'x{}' x",
    "values (1, 'a'), (2, 'b')",
)  # fmt: skip


@pytest.fixture(scope="module")
def tables():
    opened = {name: open_table(samples.path(name)) for name in ("orders", "events", "payments")}
    return opened | {"this": opened["orders"]}


def rows(frame):
    """Return the rows of a result of either engine, in no order, zones aside."""
    if hasattr(frame, "sparkSession"):
        table = arrow_table(frame)
    else:
        import pyarrow as pa

        table = pa.Table.from_pandas(frame, preserve_index=False)
    return sorted(
        str(
            [
                value.isoformat()[:19] if hasattr(value, "isoformat") and hasattr(value, "hour") else value
                for value in row
            ]
        )
        for row in zip(*(_utc(column).to_pylist() for column in table.columns), strict=True)
    )


def _utc(column):
    import pyarrow as pa

    is_zoned = pa.types.is_timestamp(column.type) and column.type.tz
    return column.cast(pa.timestamp("us", "UTC")) if is_zoned else column


@pytest.mark.parametrize("query", QUERIES)
def test_the_same_text_gives_the_same_rows_on_both_engines(spark, tables, query):
    expected = snapshot_explorer.sql(query, tables)

    got = snapshot_explorer.sql(query, tables, engine="spark", spark=spark)

    assert got.columns == list(expected.columns) or query.startswith("values")
    assert rows(got) == rows(expected)


def test_results_are_lazy_and_outlive_the_call(spark, tables):
    got = snapshot_explorer.sql("select order_id from orders@3", tables, engine="spark", spark=spark)
    more = tables["orders"].sql("select count(*) n from this", "spark", spark=spark)

    assert got.filter("order_id < 5").count() == len(tables["orders"].at(3).to_arrow(where="order_id < 5"))
    assert more.join(got).limit(1).collect()[0]["n"] == tables["orders"].current.count()


def test_nothing_stays_registered_or_cached(spark, tables):
    got = snapshot_explorer.sql(
        "select * from orders a join orders@3 b using (order_id)", tables, engine="spark", spark=spark
    )
    got.count()
    with pytest.raises(InvalidArgumentError):
        snapshot_explorer.sql("select nope from orders", tables, engine="spark", spark=spark)

    assert [one.name for one in spark.catalog.listTables()] == []
    assert not got.is_cached


def test_plans_are_explained_and_columns_described(spark, tables):
    described = snapshot_explorer.sql("describe orders@3", tables, engine="spark", spark=spark)
    explained = snapshot_explorer.sql("explain select * from orders@3", tables, engine="spark", spark=spark)

    assert [row[0] for row in described.collect()] == tables["orders"].at(3).to_arrow(limit=0).column_names
    assert "Physical Plan" in explained.collect()[0][0]


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (
            "select 'x',\n  orders.nope from orders version as of 3",
            InvalidArgumentError,
            "The query fails at line 2, column 3 (orders): A column",
        ),
        (
            "select order_id\nfrom orders version as of 3 oops more words",
            InvalidArgumentError,
            "The query fails at line 2, column 34 (more): Syntax error at or near 'more'.",
        ),
        (
            "select frob(1) from orders",
            InvalidArgumentError,
            "The query fails at line 1, column 8 (frob): Cannot resolve",
        ),
        ("select * from orders@99", SnapshotNotFoundError, "Version 99 does not exist."),
        (
            "select * from spark_catalog.default.x",
            InvalidArgumentError,
            "Unknown table spark_catalog.default.x at",
        ),
        (
            "select * from parquet.`/etc`",
            InvalidArgumentError,
            "Unknown table parquet.`/etc` at line 1, column 15.",
        ),
        ("insert into orders select 1", InvalidArgumentError, "insert at line 1, column 1 is refused"),
        ("cache table orders", InvalidArgumentError, "cache at line 1, column 1 is refused"),
    ],
)
def test_what_is_wrong_is_reported_in_the_words_of_the_query(spark, tables, query, error, message):
    with pytest.raises(error) as raised:
        snapshot_explorer.sql(query, tables, engine="spark", spark=spark)

    assert str(raised.value).startswith(message)
    assert "_pyspark" not in str(raised.value)
    assert "SQLSTATE" not in str(raised.value)


@pytest.mark.filterwarnings("ignore:The SQL config 'spark.sql.parser.escapedStringLiterals' has been deprecated")
def test_strings_whose_meaning_a_setting_changes_are_refused(spark, tables):
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        with pytest.raises(InvalidArgumentError) as raised:
            snapshot_explorer.sql("select '\\d' from orders", tables, engine="spark", spark=spark)
        plain = snapshot_explorer.sql("select 'a' a", tables, engine="spark", spark=spark).collect()
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")

    assert str(raised.value).startswith("The string at line 1, column 8 (') contains a quote or a backslash, and")
    assert plain[0]["a"] == "a"


def test_an_unknown_column_that_was_renamed_is_named(spark, tables):
    with pytest.raises(InvalidArgumentError, match="customer was renamed to buyer in version 13") as raised:
        snapshot_explorer.sql("select o.customer from orders o", tables, engine="spark", spark=spark)
    assert "`customer` cannot be resolved" in str(raised.value)
