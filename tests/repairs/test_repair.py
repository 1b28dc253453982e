"""Repair plans: which statement, with how many rows, and what is refused. Connectors run them in tests/oracles."""

import html
import re
import shutil
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.history import history_of
from tests.inner.analysis import literal, qualified_name, spark_identifier, text_literal
from tests.support.delta.table_builder import DeltaTable, add, metadata, remove

FIELDS = [("id", "long"), ("name", "string"), ("amount", "double")]
HEXADECIMAL = re.compile(r"CAST\(X'((?:[0-9A-F]{2})*)' AS STRING\)")


def grown(root, *versions, fields=FIELDS, **options):
    """Return an open table whose versions have these rows, each in a file of its own; version 0 is empty."""
    table = DeltaTable(None, root, fields=fields, **options)
    for number, rows in enumerate(versions):
        gone = [remove(f"{number - 1}.parquet")] if number else []
        table.commit(*gone, table.data(f"{number}.parquet", rows))
    return open_table(str(root))


@pytest.fixture
def orders(tmp_path):
    return grown(
        tmp_path / "orders",
        [(1, "a", 1.0), (2, "O'Hara", 2.0), (3, "c", 3.0)],
        [(1, "a", -1.0), (2, "O'Hara", 2.0), (4, "d", -4.0)],
    )


def test_a_table_as_a_whole_is_restored(orders):
    plan = orders.repair(1)

    assert plan.statement == f"RESTORE TABLE `delta`.`{orders.path}` TO VERSION AS OF 1"
    assert plan.counts == {"inserted": 2, "deleted": 2, "updated": 0}
    assert plan.later.to_arrow()["version"].to_pylist() == [2]
    assert "Repair of orders, not run: all rows as at version 1" in repr(plan)


def test_keys_with_years_that_python_lacks_are_merged_by_the_condition(tmp_path):
    table = DeltaTable(None, tmp_path, fields=[("day", "date"), ("id", "long")])
    days = pa.array([0, 3_000_000, -800_000], pa.int32()).cast(pa.date32())
    for number in (0, 1):
        content = pa.BufferOutputStream()
        pq.write_table(pa.table({"day": days, "id": [number] * 3}), content)
        table.write(f"{number}.parquet", content.getvalue().to_pybytes())
        table.commit(add(f"{number}.parquet"), *([remove("0.parquet")] if number else []))

    plan = open_table(str(tmp_path)).repair(1, "id < 10", key="day")

    assert plan.counts == {"inserted": 0, "deleted": 0, "updated": 3}
    assert "WHEN MATCHED AND ((current.`id` < 10L) OR (earlier.`id` < 10L)) THEN" in plan.statement


def test_rows_are_put_back_by_their_key_if_they_match_now_or_then(orders):
    plan = orders.repair(1, "amount < 0 OR id = 3", key="id", name="lake.shop.orders")

    assert plan.counts == {"inserted": 1, "deleted": 1, "updated": 1}
    assert plan.statement.startswith("MERGE INTO `lake`.`shop`.`orders` AS current\n")
    assert "FROM `lake`.`shop`.`orders` VERSION AS OF 1\n  WHERE `id` IN (" in plan.statement
    assert plan.check.endswith(""".diff_rows(1, "latest", key=['id'], where='amount < 0 OR id = 3').is_empty""")


@pytest.mark.parametrize(
    ("where", "begin"), [("id = 3", "INSERT INTO"), ("id = 4", "DELETE FROM"), ("id = 1", "MERGE INTO")]
)
def test_a_statement_does_no_more_than_it_has_to(orders, where, begin):
    assert orders.repair(1, where, key="id").statement.startswith(begin)


def test_without_a_key_all_rows_that_match_are_replaced_in_one_commit(orders):
    plan = orders.repair(1, "amount < 0 OR name = 'O''Hara'")

    assert "REPLACE WHERE (`amount` < CAST('0.0' AS DOUBLE)\n    OR `name` = CAST(X'4F2748617261' AS STRING))" in (
        plan.statement
    )
    assert "There is no key" in repr(plan)


def test_a_page_never_shows_a_part_of_a_statement(tmp_path):
    fields = [("id", "long"), *((f"column_{number}", "string") for number in range(60))]
    rows = [(number, *["x"] * 60) for number in range(300)]
    table = grown(tmp_path, rows, [(number, *["y"] * 60) for number in range(300)], fields=fields)

    plan = table.repair(1, "id >= 0", key="id", name="orders")

    assert html.escape(plan.statement, quote=True) in plan._repr_mimebundle_()["text/html"]
    assert plan.statement in repr(plan)


def test_a_statement_in_which_a_wrapped_line_would_break_a_name_is_not_drawn(orders):
    plan = orders.repair(1, name="lake.shop.`" + "a b" * 50 + "`")

    assert "Copy it from .statement." in repr(plan)
    assert plan.statement not in repr(plan)


def test_nothing_is_written_where_nothing_differs(orders):
    plan = orders.repair(1, "id = 2", key="id")

    assert plan.is_empty
    assert plan.statement == ""
    assert "Nothing to do: no row differs." in repr(plan)


def test_planning_changes_nothing(orders):
    before = sorted(history_of(orders).table_format.storage.list("_delta_log"), key=lambda entry: entry.name)

    orders.repair(1)

    assert sorted(history_of(orders).table_format.storage.list("_delta_log"), key=lambda entry: entry.name) == before


@pytest.mark.parametrize("key", ["id", ".id"])
def test_a_key_that_does_not_identify_rows_is_refused(tmp_path, key):
    table = grown(tmp_path, [(1, "a", 1.0), (1, "b", 2.0)], [(2, "a", 1.0)], fields=[(key, "long"), *FIELDS[1:]])

    with pytest.raises(InvalidArgumentError, match="the same in several rows"):
        table.repair(1, "amount > 0", key=key)


def test_a_key_of_floats_and_one_with_nulls_are_refused(tmp_path):
    table = grown(tmp_path, [(None, "a", 1.0)], [(2, "a", -1.0)])

    with pytest.raises(UnsupportedFeatureError, match="key column amount is double"):
        table.repair(1, "id > 0", key="amount")
    with pytest.raises(InvalidArgumentError, match="null"):
        table.repair(1, "amount > 0", key="id")


def test_a_condition_that_spark_may_evaluate_otherwise_is_refused_without_a_key(orders):
    with pytest.raises(UnsupportedFeatureError, match=r"Name a key, by which the rows are listed"):
        orders.repair(1, "regexp_matches(name, 'a|b')")


@pytest.mark.parametrize(
    ("fields", "properties", "reason"),
    [
        ([("id", "long", {"delta.identity.start": 1}), *FIELDS[1:]], {}, "identity columns id"),
        ([*FIELDS[:2], ("amount", "double", {"delta.generationExpression": "id * 2"})], {}, "columns amount"),
        (FIELDS, {"delta.appendOnly": "true"}, "delta.appendOnly=true"),
    ],
)
def test_columns_and_properties_that_prevent_an_exact_statement_are_named(tmp_path, fields, properties, reason):
    table = grown(tmp_path, [(1, "a", 1.0)], [(2, "a", 1.0)], fields=fields, configuration=properties)

    with pytest.raises(UnsupportedFeatureError, match=reason):
        table.repair(1, "id = 1", key="id")


@pytest.mark.parametrize(("name", "is_set"), [("a.b", True), ("a`b", True), ("a b", False)])
def test_delta_merges_into_partitions_of_any_name(tmp_path, name, is_set):
    table = DeltaTable(None, tmp_path, fields=[("id", "long"), (name, "string"), ("n", "long")], partition_by=[name])
    for number in (0, 1):
        rows = table.data(f"{number}.parquet", [(1, number), (2 + number, 5)], partition={name: "x"})
        table.commit(*([remove("0.parquet")] if number else []), rows)
    opened = open_table(str(tmp_path))

    *before, merge = opened.repair(1, "id = 1", key="id").statements

    assert before == ["SET spark.databricks.delta.merge.repartitionBeforeWrite.enabled = false"] * is_set
    assert merge.startswith("MERGE INTO")
    assert len(opened.repair(1, "id = 2", key="id").statements) == 1  # an INSERT


def test_rows_of_another_schema_are_refused_and_restored_only_as_a_whole(tmp_path):
    table = DeltaTable(None, tmp_path, fields=FIELDS)
    table.commit(table.data("a.parquet", [(1, "a", 1.0)]))
    table.commit(metadata([*FIELDS, ("late", "string")]))
    orders = open_table(str(tmp_path))
    table.commit(remove("a.parquet"))

    with pytest.raises(UnsupportedFeatureError, match=r"do not fit: late\. table\.repair\(1\) restores the schema too"):
        orders.repair(1, "id = 1", key="id")
    assert orders.repair(1).statement.startswith("RESTORE TABLE")


@pytest.mark.parametrize("name", ["orders", "shipments", "rides"])
def test_each_format_has_its_own_restore(name):
    table = open_table(samples.path(name))
    to = max(history_of(table).tags().values()) if name == "rides" else table.versions()[-3]

    plan = table.repair(to, name="lake.shop.t_1")

    expected = {
        "orders": rf"CALL `lake`\.sys\.rollback\(table => 'shop\.t_1', version => '{to}'\)",
        "shipments": r"CALL `lake`\.system\.rollback_to_snapshot\('shop\.t_1', \d+\)",
        "rides": rf"CALL rollback_to_savepoint\(table => 'shop\.t_1', instant_time => '{to}'\)",
    }
    assert re.fullmatch(expected[name], plan.statement)
    assert (plan.flink is not None) == (name == "orders")


@pytest.mark.parametrize(("folder", "name"), [("shop.db", "shop.orders"), ("my shop.db", "DATABASE.orders")])
def test_flink_has_the_database_in_the_name(tmp_path, folder, name):
    shutil.copytree(samples.path("orders"), tmp_path / folder / "orders")
    table = open_table(str(tmp_path / folder / "orders"))

    expected = f"CALL sys.rollback_to(`table` => '{name}', snapshot_id => 16)"
    assert table.repair(16).flink == expected


def test_a_procedure_is_not_given_a_name_that_needs_quotes():
    with pytest.raises(UnsupportedFeatureError, match="Rename the table"):
        open_table(samples.path("shipments")).repair("latest~2", name="lake.shop.it's")


def test_rows_of_a_table_that_merges_them_are_refused():
    with pytest.raises(UnsupportedFeatureError, match="No statements on rows are written for Hudi"):
        open_table(samples.path("rides")).repair("latest^", "ride_id = 1")


@given(st.text())
def test_text_is_in_quotes_only_if_nothing_in_it_can_end_them(value):
    written = text_literal(value)

    match = HEXADECIMAL.fullmatch(written)
    if match:
        assert bytes.fromhex(match[1]).decode() == value
    else:
        assert written == f"'{value}'"
        assert not set(value) & set("'\\\"`;$\n\r\0")


@given(st.text(min_size=1).filter(lambda name: "${" not in name))
def test_a_name_is_read_back_from_its_quotes(name):
    assert qualified_name(f"lake.{spark_identifier(name)}") == ("lake", name)


def test_a_name_that_spark_replaces_is_refused():
    with pytest.raises(UnsupportedFeatureError, match="replaces"):
        spark_identifier("${spark.app.name}")
    with pytest.raises(InvalidArgumentError, match="not the name of a table"):
        qualified_name("orders; drop table x`")


@pytest.mark.parametrize(
    ("value", "dtype", "written"),
    [
        (-(2**63), pa.int64(), "-9223372036854775808BD"),
        (Decimal("-0.50"), pa.decimal128(4, 2), "CAST('-0.50' AS DECIMAL(4, 2))"),
        (date(1, 1, 1), pa.date32(), "DATE '0001-01-01'"),
        (
            datetime(2026, 1, 2, 3, tzinfo=UTC),
            pa.timestamp("us", "UTC"),
            "TIMESTAMP_LTZ '2026-01-02 03:00:00.000000 UTC'",
        ),
        (datetime(900, 1, 2, 3), pa.timestamp("us"), "TIMESTAMP_NTZ '0900-01-02 03:00:00.000000'"),  # noqa: DTZ001
        (b"'", pa.binary(), "X'27'"),
        (True, pa.bool_(), "true"),
    ],
)
def test_values_have_their_type(value, dtype, written):
    assert literal(value, dtype) == written
