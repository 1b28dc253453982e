"""`sql`: queries over tables at any of their versions."""

import re
import shutil
import sys
from pathlib import Path

import duckdb
import fsspec
import pandas as pd
import pytest

import snapshot_explorer
from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import (
    InvalidArgumentError,
    MissingDependencyError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.history import history_of
from snapshot_explorer.results import as_pandas
from tests.inner.core import PYARROW_VARIANTS
from tests.support.filesystems import counting
from tests.support.old_libraries import refused_if
from tests.support.paimon.table_builder import PaimonTable

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def tables():
    return {name: open_table(samples.path(name)) for name in ("orders", "events", "payments")}


QUERIES = (
    "select * from {orders@3} order by all",
    "select status, count(*) n, sum(amount) total from {orders@5} group by all order by all",
    "select order_id from {orders@18} o except select order_id from {orders@17} order by all",
    """select p.channel, max(paid_at), min(orders.amount) from {payments@21} p
    join {orders@18} orders on p.payment_id = orders.order_id group by p.channel order by all""",
    """with old as (from {events@3}) select day, count(*) from old group by day
    union all by name select day, count(*) from {events@15} group by day order by all""",
    "select day, count(*) from {payments@21} where day > '2026-11-02' group by day order by day",
)
"""Queries in which a table at a version is written in braces."""


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("form", [r"\1@\2", r"\1 version as of \2", r"\1 for version as of '\2'"])
def test_results_are_those_of_duckdb_over_the_rows_of_each_version(tables, query, form):
    by_hand = re.sub(r"\{(\w+)@(\d+)\}", r"\1_\2", query)
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    for name, table in tables.items():
        for version in {3, 5, 15, 17, 18, 21} & set(table.versions()):
            connection.register(f"{name}_{version}", table.at(version).to_arrow())
    expected = as_pandas(connection.sql(by_hand).to_arrow_table())

    got = snapshot_explorer.sql(re.sub(r"\{(\w+)@(\d+)\}", form, query), tables)

    pd.testing.assert_frame_equal(got, expected)


def test_a_table_is_called_as_its_folder_and_this(tables):
    orders = tables["orders"]

    for name in ("orders", "Orders", "this", '"orders"', "`this`"):
        assert orders.sql(f"select count(*) n from {name} version as of 3")["n"].tolist() == [orders.at(3).count()]


def test_a_folder_whose_name_is_not_a_word_is_quoted(tmp_path):
    shutil.copytree(samples.path("orders"), tmp_path / "my orders-2")
    orders = open_table(tmp_path / "my orders-2")

    assert len(orders.sql('select "my orders-2".order_id from "my orders-2"')) == orders.current.count()


def test_another_table_of_the_name_this_wins(tables):
    assert snapshot_explorer.sql("select * from this limit 0", {"this": tables["events"]}).columns[0] == "event_id"


def test_an_engine_is_chosen_by_name(tables):
    assert len(tables["orders"].sql("select 1", "duckdb")) == 1
    with pytest.raises(InvalidArgumentError) as raised:
        tables["orders"].sql("select 1", "sparc")
    assert str(raised.value) == "'sparc' is not an engine for SQL. Did you mean spark? Engines: duckdb, spark."


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (
            "from orders@99",
            SnapshotNotFoundError,
            "Version 99 does not exist. Available versions: 1 to 18. Try 18, latest or @2h.",
        ),
        ("from orders version as of 'v9'", SnapshotNotFoundError, "Tag 'v9' does not exist. Tags: opening, v1."),
        ("from orders timestamp as of '1999-01-01'", SnapshotNotFoundError, "1999-01-01"),
        ("from ordr", InvalidArgumentError, "Unknown table ordr at line 1, column 6. Did you mean orders?"),
        (
            "select 1,\n  bayer from orders",
            InvalidArgumentError,
            "The query fails at line 2, column 3 (bayer): Referenced",
        ),
        ("from orders@1 join orders@2 using (order_id)", InvalidArgumentError, 'uplicate alias "orders"'),
        ("select cast(status as int) from orders", InvalidArgumentError, "line 1, column 8 (cast): Could not convert"),
        ("select '1'::timetz", UnsupportedFeatureError, "TIME WITH TIME ZONE"),
        (17, InvalidArgumentError, "A query must be a str, got int. Write it in quotes."),
    ],
)
def test_what_is_wrong_is_reported_in_the_words_of_the_query(tables, query, error, message):
    with pytest.raises(error) as raised:
        snapshot_explorer.sql(query, tables)

    assert message in str(raised.value)
    assert "snapshot__" not in str(raised.value)


def test_without_pyspark_the_message_shows_how_to_install_it(tables, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)

    with pytest.raises(MissingDependencyError, match="pip install"):
        tables["orders"].sql("select * from orders", "spark")


@pytest.fixture
def counted(memory_root):
    """A file system that counts requests, over the same store as memory://."""
    fs = counting("countedsql")
    fsspec.register_implementation("countedsql", fs, clobber=True)
    return fs


def copied(memory_root, name):
    """Copy a sample to the memory store and return its root."""
    memory = fsspec.filesystem("memory")
    root = f"/sql/{name}"
    memory.put(f"{samples.path(name)}/", f"{root}/", recursive=True)
    return root


def data_files(fs):
    return {request.path for request in fs.requests if request.path.endswith(".parquet") and request.kind == "get"}


def test_a_condition_on_a_partition_column_opens_no_file_of_other_partitions(counted, memory_root):
    events = open_table(f"countedsql:/{copied(memory_root, 'events')}")
    counted.requests.clear()

    got = events.sql("select count(*) n from events e where e.day = '2026-11-03' and user_id > 0")

    assert got["n"].tolist() == [len(events.current.to_pandas(where="day = '2026-11-03' and user_id > 0"))]
    assert data_files(counted)
    assert {path.split("/day=")[1][:10] for path in data_files(counted)} == {"2026-11-03"}


def test_counting_all_rows_opens_no_data_file(counted, memory_root):
    payments = open_table(f"countedsql:/{copied(memory_root, 'payments')}")
    counted.requests.clear()

    got = payments.sql("select count(*) n, 1 one from payments version as of 0")

    assert got["n"].tolist() == [payments.at(0).count()]
    assert data_files(counted) == set()


def test_a_commit_during_a_query_is_not_seen(memory_root):
    writer = PaimonTable(*memory_root)
    writer.commit([(1, "a")])
    writer.commit([(2, "b")])
    table = open_table(f"memory://{writer.root}")

    class Meanwhile:
        """A table that is written to between any two questions."""

        def at(self, ref):
            found = table.at(ref)
            writer.commit([(3, "c")])
            return found

        def tag_versions(self):
            return history_of(table).tags()

    got = snapshot_explorer.sql(
        "select (select count(*) from t) a, (select count(*) from t) b, "
        "(select count(*) from t version as of 'latest~1') c",
        {"t": Meanwhile()},
    )

    assert got.to_numpy().tolist() == [[2, 2, 1]]


def test_a_number_in_quotes_that_is_a_tag_too_is_refused(memory_root):
    writer = PaimonTable(*memory_root)
    for row in ((1, "a"), (2, "b"), (3, "c")):
        writer.commit([row])
    writer.tag("2", 3)
    table = open_table(f"memory://{writer.root}")

    assert len(table.sql("from this version as of 2")) == 2
    assert len(table.sql("from this version as of 'tag:2'")) == 3
    assert len(table.sql("from this version as of '3'")) == 3
    with pytest.raises(InvalidArgumentError) as raised:
        table.sql("from this version as of '2'")
    assert str(raised.value) == (
        "'2' is a tag of this as well as a version. Write 2 without quotes for the version, or 'tag:2' for the tag."
    )


def test_a_table_without_versions_is_reported(memory_root):
    writer = PaimonTable(*memory_root)

    with pytest.raises(SnapshotNotFoundError, match="the table has no version yet"):
        open_table(f"memory://{writer.root}").sql("select count(*) n from this")


def test_variants_are_json_text_in_queries_as_in_pandas():
    table = open_table(DATA / "delta" / "variants")
    with refused_if(PYARROW_VARIANTS):
        table.sql("select * from this")
    if PYARROW_VARIANTS.applies():
        return

    rows = table.sql("select * from this where v is not null order by id")
    numbers = table.sql("select id from this where v->>'$' = '1'")

    expected = table.at("latest").to_pandas()
    expected = expected[expected["v"].notna()].sort_values("id")
    assert rows["v"].tolist() == expected["v"].tolist()
    assert rows["l"].map(list).tolist() == expected["l"].map(list).tolist()
    assert 10 in numbers["id"].tolist()


def test_columns_without_an_alias_are_called_by_the_names_in_the_query(tables):
    got = snapshot_explorer.sql(
        'select (select max(order_id) from orders@3), exists (from "ORDERS" o), 1 as snapshot from orders limit 1',
        tables,
    )

    assert list(got.columns) == [
        "(SELECT max(order_id) FROM orders)",
        "EXISTS(SELECT * FROM orders AS o)",
        "snapshot",
    ]


@pytest.mark.parametrize("clause", ["@5", " version as of 5", " for version as of 5"])
def test_a_version_of_a_with_query_is_refused_by_name(tables, clause):
    with pytest.raises(
        InvalidArgumentError, match="orders at line 1, column 50 is a WITH query, which has no versions"
    ):
        snapshot_explorer.sql(f"with orders as (select 1 order_id) select * from orders{clause}", tables)


@pytest.mark.parametrize("word", ["exists", "not exists"])
@pytest.mark.parametrize("name", ["orders", "events", "payments"])
def test_a_correlated_exists_between_two_versions_reads_each_of_them_once(tables, name, word):
    table, read = tables[name], []
    old, new = table.versions()[-2:]
    key, value = table.current.arrow_schema.names[:2]
    query = (
        f"select count(*) n from {name}@{old} a where {word} (select * from {name}@{new} b "
        f"where a.{key} = b.{key} and a.{value} is not distinct from b.{value})"
    )

    got = snapshot_explorer.sql(query, tables, before=read.append)

    rows = [set(zip(*table.at(version).to_pandas()[[key, value]].T.to_numpy(), strict=True)) for version in (old, new)]
    assert got["n"].tolist() == [len(rows[0] & rows[1] if word == "exists" else rows[0] - rows[1])]
    assert [sorted(reading.snapshot.version for reading in readings) for readings in read] == [[old, new]]


@pytest.mark.parametrize("word", ["describe", "summarize"])
def test_a_described_subquery_has_the_names_of_the_query(word):
    table = open_table(samples.path("orders"))

    described = table.sql(f"{word} select (select max(this.order_id) from this@3) from this")

    assert "snapshot__" not in described.to_string()
    assert described["column_name"].tolist() == ["(SELECT max(this.order_id) FROM this)"]
