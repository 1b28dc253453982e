"""Where a query names tables and versions."""

from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.errors import InvalidArgumentError
from tests.inner.table import references, rewrite, tokens

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TABLES = ("orders", "events", "Order Lines")


def found(query):
    """Return the versions that a query asks for, by table."""
    return [f"{one.table} {one.ref}" for one in references(query, tokens(query), TABLES, NOW)]


def spelled(query, dialect="duckdb"):
    cut = tokens(query)
    places = [(one, f"t{number}") for number, one in enumerate(references(query, cut, TABLES, NOW))]
    return rewrite(query, cut, places, dialect).text


@pytest.mark.parametrize(
    ("clause", "ref"),
    [
        ("", "latest"),
        ("version as of 17", "17"),
        ("VERSION AS OF '17'", "17"),
        ("for version as of 17", "17"),
        ("system_version as of 17", "17"),
        ("for system_version\nas -- x\n of 17", "17"),
        ("version as of 'latest~2'", "latest~2"),
        ("version as of 'v1'", "tag:v1"),
        ("version as of 'tag:v1'", "tag:v1"),
        ("version as of 'end of month'", "tag:end of month"),
        ("version as of '@2026-11-01'", "@2026-11-01T00:00:00Z"),
        ("version as of $$earliest$$", "earliest"),
        ("timestamp as of '2026-11-01'", "@2026-11-01T00:00:00Z"),
        ("timestamp as of '2026-11-01 12:30:00+02:00'", "@2026-11-01T10:30:00Z"),
        ("for timestamp as of timestamp '2026-11-01 12:00:00'", "@2026-11-01T12:00:00Z"),
        ("system_time as of date '2026-11-01'", "@2026-11-01T00:00:00Z"),
        ("timestamp as of '2h'", "@2026-11-21T10:00:00Z"),
        ("timestamp as of '@2h'", "@2026-11-21T10:00:00Z"),
        ("timestamp as of 1793534400", "@2026-11-01T12:00:00Z"),
    ],
)
def test_a_clause_behind_a_table_names_its_version(clause, ref):
    for name in ("orders", "ORDERS", '"orders"', "`orders`"):
        for behind in ("", " as o", " o", " where 1 = 1", " o join events using (id)", ", events e"):
            expected = [f"orders {ref}"] + (["events latest"] if "events" in behind else [])
            assert found(f"select * from {name} {clause}{behind}") == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("from orders@17, events@latest~2 e", ["orders 17", "events latest~2"]),
        ("from orders@tag:v1", ["orders tag:v1"]),
        ('from "orders@tag:v1" o, `events@@2026-11-01`', ["orders tag:v1", "events @2026-11-01T00:00:00Z"]),
        ('select * from "order lines"', ["Order Lines latest"]),
        ("select 'from orders', \"from events\", $$join orders$$ -- from orders\nfrom events", ["events latest"]),
        ("select orders.events from events", ["events latest"]),
        ("select extract(year from orders), trim(both from events), substring(orders from 2)", []),
        ("select a is distinct from orders, b is not distinct from events", []),
        ("select * from events where (select max(x) from orders) in (1, orders)", ["events latest", "orders latest"]),
        ("select * from a_function(orders), unnest([1]) as t(orders), events", ["events latest"]),
        ("select [x for x in [orders] if x], {'from': orders}, f(a, orders) from events", ["events latest"]),
        ("(select 1 from orders) union (from events)", ["orders latest", "events latest"]),
        (
            "select * from (orders o join (events) using (id)), lateral (select * from orders)",
            ["orders latest", "events latest", "orders latest"],
        ),
        ("select * from (values (1, orders)) v(a, b), events", ["events latest"]),
        ("select * from orders group by a, events order by b, events limit 1", ["orders latest"]),
        ("select * from orders lateral view explode(m) t as k, v where events", ["orders latest"]),
        (
            "with a as (select * from orders), b(x) as materialized (from events) select * from a, b",
            ["orders latest", "events latest"],
        ),
        (
            "with orders as (select * from orders version as of 3) select * from ORDERS, events",
            ["orders 3", "events latest"],
        ),
        ("with orders as (from events), x as (from orders) from x", ["events latest"]),
        ("select * from (with orders as (select 1) from orders), orders", ["orders latest"]),
        ("with recursive orders as (select 1 union all select * from orders) from orders", []),
        ("table orders", ["orders latest"]),
        ("describe orders version as of 3", ["orders 3"]),
        ("desc select * from orders", ["orders latest"]),
        ("summarize orders", ["orders latest"]),
        ("explain (format json) select * from orders@2", ["orders 2"]),
        ("explain extended with a as (from orders) from a;", ["orders latest"]),
        ("pivot orders on a using sum(b)", ["orders latest"]),
        ("select * from (pivot orders on a using sum(b))", ["orders latest"]),
        ("select version as of, timestamp as of2 from orders", ["orders latest"]),
        ("select * from orders version, events timestamp", ["orders latest", "events latest"]),
        ("values (1)", []),
    ],
)
def test_tables_are_found_where_they_are_and_nowhere_else(query, expected):
    assert found(query) == expected


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("select orders.id from orders version as of 3 where x", 'select orders.id from t0 AS "orders" where x'),
        ("select * from Orders@3 o", "select * from t0 o"),
        ("select * from `orders@3`", 'select * from t0 AS "orders@3"'),
        ("describe orders", "describe t0"),
        ("select `a``b` /* c\n */ from orders;", 'select "a`b"  \n from t0 AS "orders"'),
        ("select /*+ hint */ 1", "select /*+ hint */ 1"),
    ],
)
def test_only_tables_comments_and_backquotes_are_rewritten(query, text):
    assert spelled(query) == text


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ('select "a" from "orders"', "select `a` from t0 AS `orders`"),
        (r"select 'it''s \d', $$a'b$$, E'a\n''', r'\d'", r"select 'it\'s \\d', 'a\'b', 'a\n\'', r'\d'"),
        ("select * from orders tablesample (1 percent)", "select * from t0 tablesample (1 percent)"),
    ],
)
def test_for_spark_names_and_strings_are_spelled_to_mean_the_same(query, text):
    assert spelled(query, "spark") == text


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "The query is empty. Write one, such as: select * from orders version as of 17 limit 10."),
        (" -- nothing\n;", "The query is empty."),
        (
            "select * from ordres",
            "Unknown table ordres at line 1, column 15. Did you mean orders? Tables: orders, events, Order Lines.",
        ),
        ("select * from shop.orders o", "Unknown table shop.orders at line 1, column 15. Did you mean orders?"),
        ("from sqlite_master", "Unknown table sqlite_master at line 1, column 6. Tables:"),
        ("from information_schema.tables", "Unknown table information_schema.tables at line 1, column 6."),
        ('from "orders@"', "'' is not a valid ref."),
        ("from orders@", "orders@ needs a version at line 1, column 12. Write orders@17,"),
        (
            "from orders o version as of 3",
            "The version follows the alias at line 1, column 15. Write it after the table's name:",
        ),
        (
            "with orders as (select 1) from orders version as of 3",
            "orders at line 1, column 32 is a WITH query, which has no versions.",
        ),
        ("from orders version as of", "version AS OF needs a version at line 1, column 26. Write 17,"),
        ("from orders version as of -1", "version AS OF needs a version at line 1, column 27."),
        (
            "from orders for timestamp as of now()",
            "timestamp AS OF needs a version at line 1, column 33. Write",
        ),
        ("from orders timestamp as of 'noon'", "'@noon' is not a valid ref."),
        ("from orders timestamp as of 99999999999999999999", "99999999999999999999 is not a time. A number"),
        ("from orders version as of 'latest~x'", "'latest~x' is not a valid ref."),
        ("select 1; select 2", "A second statement begins at line 1, column 11. Write one query at a time."),
        (
            "insert into orders values (1)",
            "insert at line 1, column 1 is refused: queries are read-only. Begin with SELECT, WITH, VALUES, FROM,",
        ),
        ("with a as (select 1) delete from orders", "delete at line 1, column 22 is refused"),
        ("from orders insert into events select *", "INSERT at line 1, column 13 is refused"),
        ("explain analyze select 1", "EXPLAIN ANALYZE at line 1, column 9 is refused"),
        ("explain insert into orders values (1)", "insert at line 1, column 9 is refused"),
        *((f"{word} x", f"{word} at line 1, column 1 is refused") for word in ("COPY", "attach", "SET", "show")),
    ],
)
def test_invalid_input_is_refused(query, message):
    with pytest.raises(InvalidArgumentError) as raised:
        found(query)

    assert str(raised.value).startswith(message)


PIECES = st.sampled_from(
    [
        *("select", "from", "join", "with", "as", "(", ")", ",", "orders", "events", "version as of 3", "@3", "union"),
        *("[", "]", ";", "'x'", "1", "a", ".", "*", "where", "on", "lateral", "values", "table", "explain", "describe"),
        *(
            "recursive",
            "for",
            "timestamp as of '2h'",
            '"orders@2"',
            "pivot",
            "insert",
            "into",
            "of",
            "@",
            "/*c*/",
            "--\n",
        ),
    ]
)


@given(st.lists(PIECES, max_size=25).map(" ".join))
def test_any_words_are_taken_apart_or_refused(query):
    try:
        places = references(query, tokens(query), TABLES, NOW)
    except InvalidArgumentError:
        return

    assert [one.start for one in places] == sorted(one.start for one in places)
    assert all(before.end <= after.start for before, after in pairwise(places))
    spelled(query)


@given(st.text(max_size=60))
def test_any_text_is_taken_apart_or_refused(text):
    for query in (text, f"select {text} from orders", f"select * from orders {text}"):
        with suppress(InvalidArgumentError):
            spelled(query)


def test_a_position_in_the_text_for_the_engine_leads_back_to_the_query():
    query = "select /* long comment */ a,\n b from orders version as of 17 where c"
    cut = tokens(query)
    result = rewrite(query, cut, [(one, "generated") for one in references(query, cut, TABLES, NOW)])

    for word in ("a,", "b from", "where", "c"):
        assert query[result.origin(result.text.index(word, 7)) :].startswith(word)
    assert query[result.origin(result.text.index("generated") + 4) :].startswith("rs version")
    assert result.origin(len(result.text)) == len(query) - 1
