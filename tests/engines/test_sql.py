"""Queries on DuckDB: what is read for them, what their values are, and what they cannot reach."""

import datetime as dt
import json
import subprocess
import sys
from decimal import Decimal
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snapshot_explorer.engines import duckdb_sessions, pushdown, sql
from snapshot_explorer.errors import InvalidArgumentError, ResourceError, UnsupportedFeatureError
from tests.inner.core import DUCKDB_ALLOWED_PATHS, DUCKDB_NANOSECONDS, DUCKDB_PIVOT
from tests.inner.engines import Relation, parse_condition, run
from tests.support.old_libraries import refused_if, since_duckdb

OTHER_WORDS = since_duckdb("2.0", "its parser has other words")
OTHER_CAST = since_duckdb("1.4", "its message of a cast is shorter")
OTHER_FILTERS = since_duckdb("2.0", "it writes filters in other words")
READS_MORE = since_duckdb("2.0", "its plan contains no limit of a scan")

ROWS = pa.table(
    {
        "i": pa.array([1, 2, 3, None, 7], pa.int32()),
        "s": ["a", "it's", None, "__1__ x", "b"],
        "d": pa.array([dt.date(2026, 1, 1), None, dt.date(2026, 1, 3), dt.date(2026, 1, 4), dt.date(2026, 1, 1)]),
        "e": pa.array(
            [Decimal("1.50"), Decimal("-2.00"), None, Decimal("1.50"), Decimal("9.99")], pa.decimal128(10, 2)
        ),
        "f": [1.5, float("nan"), None, 2.5, -0.0],
        'odd name"': [[1], [], None, [2, None], [3]],
    }
)


class Read:
    """A relation over rows in memory that keeps what was asked of it, and drops what fails the condition."""

    def __init__(self, rows=ROWS):
        self.rows = rows
        self.asked = []

    def read(self, columns, where, limit):
        self.asked.append((list(columns), where) if limit is None else (list(columns), where, limit))
        rows = (
            self.rows if where is None else self.rows.filter(parse_condition(where, self.rows.schema).mask(self.rows))
        )
        return rows.select(columns).slice(0, limit)

    def count(self):
        self.asked.append("count")
        return self.rows.num_rows

    def relation(self):
        return Relation(what="t at version 1", schema=self.rows.schema, read=self.read, count=self.count)


def failure(sentence, at):
    return f"{at}: {sentence}"


def ran(query, rows=ROWS, **options):
    read = Read(rows)
    return run(query, {"t": read.relation()}, failure, **options), read.asked


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("select i from t", [(["i"], None)]),
        ("select * exclude (i, f, e, d) from t", [(["s", 'odd name"'], None)]),
        ("select count(*) from t", ["count"]),
        ("select 1 from t", ["count"]),
        pytest.param(
            "select sum(i) from t where d = '2026-01-01'",
            [(["i", "d"], "((\"d\" = (CAST('2026-01-01' AS DATE))))")],
            marks=OTHER_FILTERS,
        ),
        pytest.param(
            "select s from t where s = 'it''s' and length(s) > 1",
            [(["s"], "((\"s\" = ('it''s')))")],
            marks=OTHER_FILTERS,
        ),
        ("select s from t where f > 1", [(["s", "f"], None)]),
        ("select s from t where i + 1 = 3.5", [(["i", "s"], None)]),
        ("select i from t where random() < 2", [(["i"], None)]),
        pytest.param(
            "select a.s from t a join t b on a.i = b.i where a.i = 7",
            [(["i", "s"], '(("i" = (7)))')],
            marks=OTHER_FILTERS,
        ),
        pytest.param(
            "select i from t where i = 1 union all select i from t where i = 2",
            [(["i"], '(("i" = (1))) OR (("i" = (2)))')],
            marks=OTHER_FILTERS,
        ),
        ("select i from t where i = 1 union all select i from t", [(["i"], None)]),
        ("select i from (select i, row_number() over () n from t) where i = 1", [(["i"], None)]),
        pytest.param("select i from (select * from t limit 2) where i = 2", [(["i"], None, 2)], marks=READS_MORE),
        pytest.param("select i + 1 from t limit 1 offset 1", [(["i"], None, 2)], marks=READS_MORE),
        pytest.param("select a.i from (from t limit 1) a, (from t limit 2) b", [(["i"], None, 2)], marks=READS_MORE),
        ("select a.i from (from t limit 1) a join t b using (i)", [(["i"], None)]),
        ("select i from t where f > 1 limit 1", [(["i", "f"], None)]),
        ("select i from t order by i limit 1", [(["i"], None)]),
        ("select distinct i from t limit 1", [(["i"], None)]),
        ("select i from t limit 50%", [(["i"], None)]),
        ("select i from t offset 1", [(["i"], None)]),
        ("select t from t", [(["i", "s", "d", "e", "f", 'odd name"'], None)]),
        ("select 1", []),
        ("describe t", []),
        ("select i from t where false", []),
        ("select plan__0__1 from (select i as plan__0__1 from t) where plan__0__1 = 1", [(ROWS.column_names, None)]),
    ],
)
def test_what_a_query_does_not_need_is_not_read(query, asked):
    assert ran(query)[1] == asked


@pytest.mark.parametrize(
    ("query", "plan"),
    [
        ("select i from t", []),
        ("select count(*) from t", []),
        ("select i from t", [pushdown.PlannedScan(("plan__0__1",), None)]),
        ("select 1 from t where s = 'a' and i = 1", [pushdown.PlannedScan(("plan__0__1",), None)]),
    ],
)
def test_rows_that_a_plan_does_not_name_are_an_error_and_never_missing(query, plan):
    connection = duckdb.connect()
    bound = sql.RelationView(0, "t", Read().relation())
    bound.show(connection, as_it_is=False)
    bound.fill(connection, bound.required(plan))

    with pytest.raises(duckdb.Error, match="rows are read that the plan does not name"):
        connection.execute(query)


@pytest.mark.parametrize("condition", ["i between 1 and 1 and i <> 1", "i >= 3 and i <= 3 and i <> 3 and s is null"])
def test_conditions_that_exclude_each_other_match_no_row(condition):
    assert ran(f"select count(*) as n from t where {condition}")[0].to_pydict() == {"n": [0]}


def test_what_is_going_to_be_read_is_reported_before_and_may_be_refused():
    reported = []

    def before(wanted):
        reported.append(wanted)
        raise PermissionError

    read = Read()
    with pytest.raises(PermissionError):
        run("select s from t where i = 7 limit 3", {"t": read.relation()}, failure, before=before)

    (required,) = (rows for each in reported for rows in each.values())
    assert required.columns == ("i", "s")
    assert '"i" = (7)' in required.where
    assert read.asked == []


def test_an_explained_query_reads_nothing():
    rows, asked = ran("explain select i from t", explain=True)

    assert (rows.column_names, asked) == (["explain_key", "explain_value"], [])
    assert "ARROW_SCAN" in rows["explain_value"][0].as_py()


def test_a_query_may_read_all():
    if DUCKDB_PIVOT.applies():
        with refused_if(DUCKDB_PIVOT):
            ran("pivot t on s using count(*) group by d", whole=True)
        return

    rows, asked = ran("pivot t on s using count(*) group by d", whole=True)

    assert asked == [(ROWS.column_names, None)]
    assert set(rows.column_names) == {"d", "a", "b", "it's", "__1__ x"}


ATOMS = st.sampled_from(
    [
        *(f"i {op} {n}" for op in ("=", "<>", "<", ">=") for n in (1, 3, -2, "2.5", "null")),
        *(f"s {op} '{text}'" for op in ("=", "<", ">=") for text in ("a", "it''s", "__1__ x", "b", "")),
        *(f"d {op} '2026-01-0{n}'" for op in ("=", ">", "<=", "<>") for n in (1, 3)),
        *(f"e {op} {n}" for op in ("=", ">", "<=") for n in ("1.5", "9.99", "1.555", "2", "1e0")),
        *(f"f {op} {n}" for op in ("=", ">", "<=", "<>") for n in ("1.5", "'nan'", "0", "'inf'")),
        *("i is null", "d is not null", "i in (1, 2)", "s in ('a', 'b')", "i between 1 and 3", "s like 'i%'"),
        *("d between '2026-01-01' and '2026-01-03'", "i = e", "i is not distinct from 7", "d > timestamp '2026-01-02'"),
        *("s not in ('a', 'x')", "cast(i as text) = '1'", "coalesce(i, 3) = 3", 'len("odd name""") = 1'),
    ]
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda it: f"({it[0]} {it[1]} {it[2]})"),
        inner.map(lambda it: f"not ({it})"),
    ),
    max_leaves=4,
)
QUERIES = st.tuples(
    st.sampled_from(
        [
            "select * from t where {}",
            "select count(*) from t where {}",
            "select a.* from t a join t b on a.s = b.s and b.i > 0 where a.i in (select i from t where {})",
            "select a.i, b.e from t a left join (select * from t where {}) b on a.i = b.i",
            'with c as (select i, s, d, e, f, "odd name""" from t) select i from c where {} union all select 1',
            'select * from (select e as x, i, s, d, e, f, "odd name""" from t) where {}',
            "select i from t where not exists (select * from t u where u.i = t.i and ({}))",
        ]
    ),
    CONDITIONS,
).map(lambda parts: parts[0].format(parts[1]))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(QUERIES)
def test_reading_less_changes_no_result(query):
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    connection.register("t_of_arrow", ROWS)
    connection.execute("create table t as from t_of_arrow")  # older ones compare NaN otherwise in Arrow data
    try:
        expected = connection.sql(query).to_arrow_table()
    except duckdb.Error:
        with pytest.raises(InvalidArgumentError):
            ran(query)
        return

    got = ran(query)[0]

    assert got.schema.types == expected.schema.types
    assert sorted(map(str, got.to_pylist())) == sorted(map(str, expected.to_pylist()))


TYPES = [
    (pa.int8(), -128),
    (pa.uint64(), 2**64 - 1),
    (pa.float32(), 1.5),
    (pa.decimal128(38, 10), Decimal("1234567890123456789012345678.0123456789")),
    (pa.string(), "\x00 é"),
    (pa.binary(), b"\x00\xff"),
    (pa.bool_(), True),
    (pa.date32(), dt.date(1500, 1, 1)),
    (pa.time64("us"), dt.time(23, 59, 59, 999_999)),
    (pa.time64("ns"), 86_399_999_999_999),
    (pa.timestamp("us"), -12_345_678_901),
    (pa.timestamp("ns"), 1_234_567_890_123_456_789),
    (pa.timestamp("ms"), -1),
    (pa.timestamp("us", "UTC"), 1_234_567_890_123_456),
    (pa.timestamp("ns", "UTC"), 1_234_567_890_123_456_789),
    (pa.list_(pa.int32()), [1, None]),
    (pa.map_(pa.int32(), pa.string()), [(1, "a"), (2, None)]),
    (pa.struct([("a b", pa.int8()), ("l", pa.list_(pa.timestamp("ns", "UTC")))]), {"a b": 1, "l": [5]}),
]


@pytest.mark.parametrize(("kind", "value"), TYPES, ids=[str(kind) for kind, _ in TYPES])
def test_values_come_back_exactly(kind, value):
    rows = pa.table({"x": pa.array([value, None], kind), "y": pa.array([None, value], kind)})

    for query in (
        "select x from t",
        "select x from t where true order by y is null desc",
        "select any_value(x) x from t",
    ):
        if DUCKDB_NANOSECONDS.applies() and duckdb_sessions.is_truncated(kind):
            with refused_if(DUCKDB_NANOSECONDS):
                ran(query, rows)
            continue
        got = ran(query, rows)[0]["x"]
        assert str(got.type).replace("item: ", "l: ") == str(kind).replace("item: ", "l: ")
        assert got.cast(kind)[0].equals(rows["x"][0])


@pytest.mark.parametrize(
    ("kind", "given"),
    [(pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC")), (pa.time64("us"), pa.time32("ms"))],
)
def test_coarse_times_keep_their_value_in_microseconds(kind, given):
    got = ran("select x from t", pa.table({"x": pa.array([1_234, None], given)}))[0]["x"]

    assert got.type == kind
    assert got.cast(given).to_pylist() == pa.array([1_234, None], given).to_pylist()


def test_sums_of_integers_are_exact_decimals():
    rows = pa.table({"x": pa.array([2**63 - 1] * 3, pa.int64())})

    got = ran("select sum(x) x, count(*) n from t", rows)[0]

    assert got.schema.types == [pa.decimal128(38, 0), pa.int64()]
    assert got["x"].to_pylist() == [Decimal(3 * (2**63 - 1))]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            "'12:00:00+02'::timetz",
            "The result's column 'x' is a TIME WITH TIME ZONE, which Arrow and pandas do not have.",
        ),
        pytest.param(
            "[1::bignum]",
            "The result's column 'x' is a BIGNUM, which Arrow and pandas do not have.",
            marks=since_duckdb("1.4", "it has another name for the type"),
        ),
        ("(2::hugeint * 85070591730234615865843651857942052863)", "has an integer of more than 38 digits"),
    ],
)
def test_values_that_arrow_has_not_are_refused(expression, message):
    with pytest.raises(UnsupportedFeatureError, match="Convert it in the query, such as CAST") as raised:
        ran(f"select {expression} x")

    assert message in str(raised.value)


def test_not_a_number_compares_as_duckdb_says():
    assert ran("select count(*) n from t where f > 2")[0]["n"].to_pylist() == [2]


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from read_text('/etc/hostname')",
        "select * from glob('/*')",
        "select * from '/etc/passwd'",
        "copy (select 1) to '/tmp/snapshot_explorer_leak.csv'",
        "attach '/tmp/snapshot_explorer_leak.db'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set memory_limit = '1TB'",
        "select * from secret_of_the_caller",
    ],
)
def test_a_query_reaches_no_file_no_network_and_no_variable(query):
    secret_of_the_caller = pa.table({"x": [1]})

    with pytest.raises(InvalidArgumentError):
        run(query, {}, failure)
    assert secret_of_the_caller.num_rows == 1


def test_memory_is_bounded_and_nothing_is_spilled():
    got = run("select current_setting('memory_limit') m, current_setting('temp_directory') d", {}, failure)

    assert got["d"].to_pylist() == [""]
    assert "B" in got["m"][0].as_py()


def test_too_little_memory_is_reported_without_advice_that_cannot_be_followed(monkeypatch):
    monkeypatch.setattr(duckdb_sessions, "memory_limit_of", lambda connection, share: "50MB")
    monkeypatch.setattr(duckdb_sessions, "os", SimpleNamespace(getpid=lambda: -1))  # has no open instance

    with pytest.raises(ResourceError) as raised:
        run("select list(range) from range(30000000)", {}, failure)

    assert str(raised.value).startswith("The query did not finish: there is not enough memory. Read fewer columns or ")
    assert str(raised.value).endswith("or use engine='spark'.")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select nope from t", '7: Referenced column "nope" not found in FROM clause! Candidate bindings: "'),
        ("select 'é', nope from t", '12: Referenced column "nope" not found'),
        pytest.param(
            "select cast(s as int) from t",
            "7: Could not convert string 'a' to INT32 when casting from source column s",
            marks=OTHER_CAST,
        ),
        pytest.param("select 1 +", '9: syntax error at or near "+"', marks=OTHER_WORDS),
        ("select frob(i) from t", "7: Scalar Function with name frob does not exist!"),
        ("select i + s from t", "9: No function matches the given name and argument types '+(INTEGER, VARCHAR)'. You"),
        ("select error('mine') from t", "None: mine"),
    ],
)
def test_errors_are_duckdbs_sentence_and_the_place(query, message):
    with pytest.raises(InvalidArgumentError) as raised:
        ran(query)

    assert str(raised.value).startswith(message)
    assert "plan__" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_columns_that_differ_in_case_only_are_refused_by_name():
    with pytest.raises(InvalidArgumentError) as raised:
        ran("select 1 from t", pa.table({"a": [1], "A": [2], "b": [3]}))

    assert str(raised.value) == (
        "t at version 1 has columns whose names differ only in case: A, a. DuckDB ignores case: read the "
        "rows with snapshot.to_arrow(columns=[...]) instead."
    )


def test_the_plan_is_read_as_duckdb_writes_it():
    """Guards against a DuckDB that names its scans otherwise: all columns would be reported as not read."""
    connection = duckdb.connect()
    connection.register("t", ROWS)

    plan = json.loads(connection.execute("explain (format json) select i from t where i = 1").fetchall()[0][1])

    scan = plan[0]
    while scan["children"]:
        scan = scan["children"][0]
    assert scan["name"].strip().endswith("ARROW_SCAN")
    assert scan["extra_info"]["Projections"] == "i"


FORKED = """
import os, sys
from snapshot_explorer.engines import duckdb_sessions

for path in "ab":
    with duckdb_sessions.query_cursor([path]):
        pass
child = os.fork()
for number in range(3):  # one more than are kept
    with duckdb_sessions.query_cursor([str(number)]) as cursor:
        cursor.execute("select 1").fetchall()
if not child:
    os._exit(0)  # it does not have the threads that the end of its parent's instances waits for
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(DUCKDB_ALLOWED_PATHS.applies(), reason=DUCKDB_ALLOWED_PATHS.problem)
def test_a_forked_process_queries_without_its_parents_instances():
    # In a process of its own: a fork does not get the threads that other tests have left, but their locks.
    subprocess.run([sys.executable, "-W", "ignore:.*fork", "-c", FORKED], check=True, timeout=300)
