"""Columns with a collation: their texts are returned, and compared by nothing that compares them by their bytes."""

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError
from tests.support.delta.table_builder import DeltaTable, metadata

LOWER = ({"__COLLATIONS": {"c": "spark.UTF8_LCASE"}},)
FIELDS = (("id", "long"), ("c", "string", *LOWER), ("plain", "string"))
REFUSED = "'c'.*, which has the collation spark.UTF8_LCASE"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    built = DeltaTable(None, tmp_path_factory.mktemp("collated"), fields=FIELDS)
    built.append([(1, "A", "x"), (2, "a", "x"), (3, "b", "y")])
    built.append([(4, "B", "z")])
    return open_table(built.url)


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.at(2).to_arrow(where="lower(c) = 'a'"),
        lambda table: table.at(2).count("c IS NOT NULL"),
        lambda table: table.row_changes(1, 2, where="c = 'B'"),
        lambda table: table.diff_rows(1, 2, where="c = 'B'"),
        lambda table: table.blame("c = 'B'"),
        lambda table: table.bisect("c = 'B'"),
        lambda table: table.bisect("count(distinct c) > 3"),
    ],
    ids=["where", "count", "row_changes", "diff_rows", "blame", "bisect", "bisect on all rows"],
)
def test_conditions_on_a_column_with_a_collation_are_refused_everywhere(table, ask):
    with pytest.raises(UnsupportedFeatureError, match=f"(condition|query) reads the column {REFUSED}"):
        ask(table)


@pytest.mark.parametrize(
    "query",
    [
        "select distinct c from this",
        "select c, count(*) from this group by c",
        "select count(distinct C) from this",
        "select max(c) from this",
        "select id from this order by c limit 2",
        "select id, c from this order by 2",
        "select c as d, id from this order by d",
        "select c from this order by all",
        "select upper(c) from this",
        "select id, c = 'a' from this",
        "select id from this where lower(c) = 'a'",
        "select id from this where c = 'a'",
        "select * replace (upper(c) as c) from this",
        "select columns('c') from this",
        "select d = 'a' from (select c as d from this)",
        "select d from (select * from this) x(i, d, p) where d = 'a'",
        "select b.id from this a join this b using (c)",
        "select count(*) from this a natural join this b",
        "select a.id from this a join this b on a.c = b.c",
        "select c from this union select c from this",
        "from this version as of 2 except from this version as of 1",
        "with w as (from this) select c, count(*) from w group by all",
        "select t from this t order by t",
        "select row_number() over (order by c) from this",
        "pivot this on c using count(*)",
        "summarize this",
        "select * from (select unnest([this.c, 'a']) as u from this) where u = 'a'",
    ],
)
def test_sql_that_may_compare_texts_with_a_collation_is_refused(table, query):
    with pytest.raises(UnsupportedFeatureError, match=rf"query reads the column {REFUSED}"):
        table.sql(query)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select c from this where id = 2", [("a",)]),
        ("select t.c as d, id from this t order by id desc limit 2", [("B", 4), ("b", 3)]),
        ("select * exclude (plain) from this where plain = 'y'", [(3, "b")]),
        ("from this version as of 2 limit 1 offset 3", [(4, "B", "z")]),
        ("select plain, count(*) as n from this group by plain order by plain", [("x", 2), ("y", 1), ("z", 1)]),
        ("select count(*) from (select * from this)", [(4,)]),
        ("select count(distinct encode(c)) from this", [(4,)]),
        ("select a.id from this a join this b on encode(a.c) = encode(b.c) order by 1", [(1,), (2,), (3,), (4,)]),
    ],
)
def test_sql_returns_texts_with_a_collation_and_compares_their_bytes_where_it_says_so(table, query, rows):
    assert list(table.sql(query).itertuples(index=False, name=None)) == rows


def test_texts_with_a_collation_have_no_least_and_greatest_value(table):
    for exact in (False, True):
        found = table.profile_over("c", exact=exact).frame.to_dict()[-1]

        assert (found["rows"], found["min"], found["max"]) == (0, None, None)


def test_another_collation_is_another_type(tmp_path):
    built = DeltaTable(None, tmp_path, fields=FIELDS)
    built.append([(1, "A", "x")])
    built.commit(metadata([("id", "long"), ("c", "string"), ("plain", "string")]))
    table = open_table(built.url)

    changes = table.compare(1, 2).schema.to_dict()

    assert [(one["change"], one["before"], one["after"]) for one in changes] == [
        ("retyped", "string collate UTF8_LCASE", "string")
    ]
    with pytest.raises(InvalidArgumentError, match="a column of the condition was added, renamed or had another type"):
        table.bisect("c = 'a'", single_pass=True)
    assert any("has the collation" in (one["note"] or "") for one in table.bisect("c = 'A'").frame.to_dict())
