"""Conditions in SQL: what they read, what they refuse, which rows pass."""

import datetime as dt
import pickle
import re
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.errors import InvalidArgumentError, SnapshotExplorerError
from tests.inner.engines import locked_cursor, parse_condition
from tests.support.old_libraries import since_duckdb

NO_LAMBDA = since_duckdb("1.3", "it has no keyword lambda")
OTHER_PLACE = since_duckdb("2.0", "its parser names another place")
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, None], pa.int64()),
        "name": ["ann", "bob", None, "o'neil"],
        'we ird."name': [1, 2, 3, 4],
        "addr": pa.array(
            [{"city": "x", "in": {"zip": 1}}, None, {"city": "y", "in": None}, {"city": None, "in": {"zip": 2}}]
        ),
        "tags": [["a"], [], None, ["a", "b"]],
        "amount": pa.array([Decimal("1.50"), Decimal("-2.00"), None, Decimal("0.00")], pa.decimal128(10, 2)),
        "moment": pa.array([0, 1, 2, None], pa.timestamp("ms", tz="UTC")),
        "select": [True, False, None, True],
        "Order": [1, 2, 3, 4],
        "nanos": pa.array([1, 2, 3, 4], pa.timestamp("ns")),
    }
)


def passing(text):
    found = parse_condition(text, ROWS.schema)
    return found.mask(ROWS).to_pylist()


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ("id > 1", {"id"}, [False, True, True, False]),
        ("ID > 1 AND Name IS NOT NULL", {"id", "name"}, [False, True, False, False]),
        ("name = 'o''neil' -- a comment", {"name"}, [False, False, False, True]),
        ('"we ird.""name" >= 3', {'we ird."name'}, [False, False, True, True]),
        ("addr.city = 'y'", {"addr"}, [False, False, True, False]),
        ("addr.in.zip = 2 OR addr['city'] = 'x'", {"addr"}, [True, False, False, True]),
        ("list_contains(tags, 'b')", {"tags"}, [False, False, False, True]),
        pytest.param(
            "len(list_filter(tags, lambda tag: tag = 'a')) = 1", {"tags"}, [True, False, False, True], marks=NO_LAMBDA
        ),
        pytest.param(
            "len(list_filter(tags, lambda id: id = 'a')) = 1",
            {"tags", "id"},
            [True, False, False, True],
            marks=NO_LAMBDA,
        ),
        ("amount < 0", {"amount"}, [False, True, False, False]),
        ("moment >= '1970-01-01 00:00:00.001'", {"moment"}, [False, True, True, False]),
        ('"select"', {"select"}, [True, False, False, True]),
        ('NOT "select"', {"select"}, [False, True, False, False]),
        ('"order" = 2', {"Order"}, [False, True, False, False]),
        ("id IN (1, 3) AND (name = 'ann' OR amount IS NULL)", {"id", "name", "amount"}, [True, False, True, False]),
        ("id BETWEEN 2 AND 3", {"id"}, [False, True, True, False]),
        ("moment < current_timestamp", {"moment"}, [True, True, True, False]),
        ("nanos = '1970-01-01 00:00:00.000000003'::timestamp_ns", {"nanos"}, [False, False, True, False]),
        ("true", set(), [True, True, True, True]),
        ("1 = 2", set(), [False] * 4),
        ("null", set(), [False] * 4),
    ],
)
def test_a_condition_knows_its_columns_and_its_rows(text, columns, rows):
    found = parse_condition(text, ROWS.schema)

    assert found.columns == columns
    assert found.mask(ROWS).to_pylist() == rows
    assert found.mask(ROWS).type == pa.bool_()


def test_an_unknown_column_is_answered_with_the_nearest():
    with pytest.raises(InvalidArgumentError) as error:
        parse_condition("nam = 'x'", ROWS.schema)

    assert "Unknown column 'nam' in the condition \"nam = 'x'\". Did you mean name" in str(error.value)
    assert "Columns: id, name" in str(error.value)


def test_the_nearest_column_is_written_as_a_condition_needs_it():
    with pytest.raises(InvalidArgumentError, match=r'Did you mean "region\.code"\? Columns: id, region\.code\.$'):
        parse_condition("region.code = 'x'", pa.schema([("id", pa.int64()), ("region.code", pa.string())]))


@pytest.mark.parametrize("text", ["name = placed", 'name = "placed"'])
def test_text_without_the_quotes_of_sql_says_which_it_needs(text):
    with pytest.raises(InvalidArgumentError, match=r"Unknown column 'placed' in .* Text has single quotes: 'placed'\."):
        parse_condition(text, ROWS.schema)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id in (select 1)", "a subquery"),
        ("exists (from read_csv('/etc/passwd'))", "a subquery"),
        ("row_number() over () = 1", "a window function"),
        ("count(*) > 1", "a star|aggregate"),
        ("sum(id) > 1", "aggregates"),
        ("columns('i.*') > 1", "a star"),
        ("id = ?", "a parameter"),
        ("1) from read_csv('/etc/passwd') where (1", "more than a condition"),
        ("id > 1; drop table x", "not SQL"),
        ("1), (2", "more than a condition|not SQL"),
        ("id > 1) union select (2", "more than a condition|not SQL"),
        ("unnest(tags) = 'a'", "UNNEST|unnest"),
        ("", "is empty"),
        (" -- nothing", "is empty|not SQL"),
        ("()", "is empty|not SQL"),
        ("id > ", "not SQL"),
        ("nosuchfunction(id)", "nosuchfunction"),
        ("name > 3 and addr > 1", "does not fit"),
        ("rowid = 1", "column 'rowid'"),
    ],
)
def test_more_than_the_values_of_a_row_is_refused(text, said):
    with pytest.raises(InvalidArgumentError, match=said):
        parse_condition(text, ROWS.schema)


def test_a_syntax_error_is_one_sentence_that_names_the_place():
    with pytest.raises(InvalidArgumentError) as error:
        parse_condition("id = in 1", ROWS.schema)

    assert str(error.value) == (
        "The condition 'id = in 1' is not SQL: syntax error at or near \"in\" (character 6). "
        "Write a WHERE clause without WHERE, such as: amount > 10 AND name IS NULL."
    )


@pytest.mark.parametrize(
    ("text", "said", "character"),
    [
        ("id >", "a value is missing after >.", None),
        ("id > 1 AND\n", "a value is missing after AND.", None),
        ("id >\n  and name = 1", 'near "and"', 8),
        ("id b", 'near "b"', 4),
        ("id > 1)", 'near ")"', 7),
        ("id > 1) or (1=1", 'near ")"', 7),
        ("id > 1;", 'near ";"', 7),
        ("id > 1; drop table x", 'near ";"', 7),
        ("id > 1 limit 3", 'near "limit"', 8),
        pytest.param("name = 'é' id", 'near "id"', 12, marks=OTHER_PLACE),
        (";", 'near ";"', 1),
        ("id > 1 /* x", 'near "/* x"', None),
        ("name > 'x", "unterminated", None),
    ],
)
def test_text_that_is_not_sql_is_quoted_in_the_message(text, said, character):
    with pytest.raises(InvalidArgumentError) as error:
        parse_condition(text, ROWS.schema)

    reported = str(error.value)
    assert reported.startswith(f"The condition {text!r} is not SQL: ")
    assert said in reported
    assert reported.endswith(". Write a WHERE clause without WHERE, such as: amount > 10 AND name IS NULL.")
    assert character is None or f" (character {character})." in reported


@pytest.mark.parametrize("text", ["(id > 1", "((id > 1)", "id in (1, 2"])
def test_a_parenthesis_that_is_not_closed_is_not_reported_by_the_one_that_we_add(text):
    with pytest.raises(InvalidArgumentError, match="is not SQL") as error:
        parse_condition(text, ROWS.schema)

    assert 'near ")"' not in str(error.value) or text.endswith(")")


@pytest.mark.parametrize("text", ["id > 1, 2", "(id > 1, 2)", "row(id)"])
def test_a_list_of_values_is_not_a_condition(text):
    with pytest.raises(InvalidArgumentError, match="is a list of values, not a condition. Write a WHERE clause"):
        parse_condition(text, ROWS.schema)


def test_nothing_outside_of_the_rows_can_be_reached(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    with locked_cursor() as cursor:
        import duckdb

        for statement in (
            f"select * from read_csv('{secret}')",
            f"select * from '{secret}'",
            f"copy (select 1) to '{tmp_path / 'out'}'",
            f"attach '{tmp_path / 'new.db'}'",
            "install httpfs",
            "load httpfs",
            "set enable_external_access = true",
            "select * from ROWS",
        ):
            with pytest.raises(duckdb.Error):
                cursor.execute(statement)


def test_a_condition_can_be_pickled():
    again = pickle.loads(pickle.dumps(parse_condition("id > 1", ROWS.schema)))

    assert again == parse_condition("id > 1", ROWS.schema)
    assert again.mask(ROWS).to_pylist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("text", "columns", "part"),
    [
        ("id > 1 AND name = 'bob'", {"id"}, {"id"}),
        ("id > 1 AND (name = 'bob' AND amount > 0)", {"id", "amount"}, {"id", "amount"}),
        ("id > 1 OR name = 'bob'", {"id"}, None),
        ("id > 1 OR name = 'bob'", {"id", "name"}, {"id", "name"}),
        ("NOT (id > 1 AND name = 'bob')", {"id"}, None),
        ("1 = 1 AND id > 1", {"name"}, None),
        ('"we ird.""name" = 1 AND id = 1', {'we ird."name'}, {'we ird."name'}),
        ("addr.city = 'x' AND id BETWEEN 1 AND 2", {"id"}, {"id"}),
    ],
)
def test_the_part_on_some_columns_is_found_in_the_parse_tree(text, columns, part):
    found = parse_condition(text, ROWS.schema).on(frozenset(columns))

    assert (found and found.columns) == part


PARTS = st.sampled_from(
    [
        "id > 1",
        "name IS NULL",
        "amount <= 0",
        'NOT "select"',
        "(id = 1 OR name = 'bob')",
        "addr.city IS NOT NULL",
        "true",
    ]
)


@settings(deadline=None)
@given(st.lists(PARTS, min_size=1, max_size=4), st.sets(st.sampled_from(["id", "name", "amount", "select", "addr"])))
def test_rows_that_fail_a_part_fail_the_whole(parts, columns):
    whole = parse_condition(" AND ".join(parts), ROWS.schema)
    part = whole.on(frozenset(columns))

    if part is not None:
        assert part.columns <= columns
        for passes, might in zip(whole.mask(ROWS).to_pylist(), part.mask(ROWS).to_pylist(), strict=True):
            assert might or not passes


def test_a_value_that_can_not_be_cast_is_one_sentence():
    found = parse_condition("cast(name as int) = 1", ROWS.schema)

    with pytest.raises(InvalidArgumentError, match="cannot be evaluated: .*ann.* TRY_CAST returns null"):
        found.mask(ROWS)


def test_columns_that_differ_only_in_case_are_not_guessed():
    schema = pa.schema([("a", pa.int64()), ("A", pa.int64()), ("b", pa.int64())])

    assert parse_condition('"A" = 1', schema).columns == {"A"}
    with pytest.raises(InvalidArgumentError, match="differ only in case: A, a"):
        parse_condition('a = 1 AND "A" = 2', schema)


def test_dates_are_compared_in_utc():
    rows = pa.table({"moment": pa.array([dt.datetime(2026, 1, 1, 0, 30, tzinfo=dt.UTC)])})

    assert parse_condition("moment::date = '2026-01-01'", rows.schema).mask(rows).to_pylist() == [True]


@given(st.text(alphabet="ab'\"()=<>,;- \n*0.1[]{}", max_size=20))
def test_any_text_is_a_condition_or_raises_our_error(text):
    try:
        parse_condition(text, pa.schema([("a", pa.int64()), ("b", pa.string())]))
    except SnapshotExplorerError as error:
        assert str(error)  # noqa: PT017 - which of the two it is does not matter


def test_a_condition_nested_without_end_is_refused():
    with pytest.raises(InvalidArgumentError):
        parse_condition("(" * 500_000 + "1" + ")" * 500_000, ROWS.schema)
    with pytest.raises(InvalidArgumentError):
        parse_condition("NOT " * 5000 + "true", ROWS.schema)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("42", "id = 42"),
        (" -1.5 ", "id = -1.5"),
        ("'x'", "\"a name\" = 'x'"),
        ("id", "id = 42"),
        ('"A name"', "\"A name\" = '...'"),
    ],
)
def test_a_single_column_or_value_is_no_condition(text, meant):
    schema = pa.schema([("flag", pa.bool_()), ("id", pa.int64()), ("a name", pa.string())])

    with pytest.raises(InvalidArgumentError, match=f"not a condition on rows. Did you mean {re.escape(meant)}[?]$"):
        parse_condition(text, schema)
    assert parse_condition("flag", schema).columns == {"flag"}
    assert parse_condition("true", schema).columns == frozenset()
