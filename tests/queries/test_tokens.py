"""A query's text, cut into tokens."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.errors import InvalidArgumentError
from tests.inner.table import tokens, with_limit
from tests.support.old_libraries import since_duckdb

PIECES = st.sampled_from(
    [
        *("select", "from", "e", "E", "r", "x", "$", "$a$", "$$", "'", "''", '"', '""', "`", "\\", "--", "/*", "*/"),
        *("\n", " ", "1", ".", "1.5e3", "é", "@", ",", "(", ")", "/*+", ";"),
    ]
)


@given(st.lists(PIECES).map("".join))
def test_tokens_joined_are_the_text(text):
    try:
        found = tokens(text)
    except InvalidArgumentError:
        return

    assert "".join(token.text for token in found) == text
    assert [token.start for token in found] == [
        sum(len(before.text) for before in found[:place]) for place in range(len(found))
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a'", "a"),
        ("'it''s -- /* \"`'", "it's -- /* \"`"),
        (r"'a\'", r"a\\"[:-1]),
        ("$$it's$$", "it's"),
        ("$tag$a $$ b$tag$", "a $$ b"),
        ('"a ""b"" c"', 'a "b" c'),
        pytest.param("`a ``b` ", "a `b", marks=since_duckdb("2.0", "it has no names in backticks")),
    ],
)
def test_strings_and_names_are_unquoted_as_duckdb_does(text, value):
    token = tokens(text)[0]

    assert token.value == value
    if token.kind == "text":
        assert duckdb.sql(f"select {text}").fetchall() == [(value,)]
    else:
        assert duckdb.sql(f"select 1 as {text}").columns == [value]


def test_comments_are_nested_and_end_with_their_line():
    kinds = [(token.kind, token.text) for token in tokens("1/* a /* ' */ b */--x'y\n2") if token.kind != "space"]

    assert kinds == [("number", "1"), ("comment", "/* a /* ' */ b */"), ("comment", "--x'y"), ("number", "2")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "select\n 'a",
            "A string is opened at line 2, column 2, but never closed. Close it with '; within it",
        ),
        ('select "a', "A quoted name is opened at line 1, column 8, but never closed."),
        ("select 1 /* /* */", "A comment is opened at line 1, column 10, but never closed. Close it with */."),
    ],
)
def test_what_is_never_closed_is_reported_with_its_place(text, message):
    with pytest.raises(InvalidArgumentError) as raised:
        tokens(text)

    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("query", "limited"),
    [
        ("select 1", "select 1"),
        ("-- which?\nselect 1 -- this", "-- which?\nselect 1"),
        ("/* with */ with t as (select 1) from t ; -- end\n", "/* with */ with t as (select 1) from t"),
        ("(select 1) union (select 2);", "(select 1) union (select 2)"),
        ("describe o;", None),
        ("-- nothing", None),
    ],
)
def test_a_query_is_limited_whatever_stands_around_it(query, limited):
    expected = query if limited is None else f"select * from (\n{limited}\n) limit 3"

    assert with_limit(query, 3) == expected
