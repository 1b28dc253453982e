"""The grid of an explorer on the kernel's side: pages of text, order, filters, facts of columns, hostile messages."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from snapshot_explorer.errors import InvalidArgumentError
from tests.inner.jupyter import Arrangement, GridView, arrange_rows, brushed_condition, grid_rows, page_of, with_json

LARGE = 2**63 - 1
ROWS = pa.table(
    {
        "id": pa.array([3, LARGE, None, 1], pa.int64()),
        "price": pa.array([Decimal("2.50"), Decimal("10.00"), Decimal("-1.25"), None], pa.decimal128(10, 2)),
        "name": ["b<i>", "-", None, "B" * 100],
        "at": pa.array([datetime(2026, 1, day, tzinfo=UTC) for day in (2, 1, 4, 3)], pa.timestamp("us", "UTC")),
        "tags": [["x"], [], None, ["y", "z"]],
        "flag": [True, None, False, True],
        "ratio": [float("nan"), 1.5, float("inf"), None],
    }
)
IDS, PRICE, NAME, AT, TAGS, FLAG, RATIO = range(7)


@pytest.fixture
def grid():
    return grid_rows(ROWS, noun="rows", opens="blame", choices=["one", "two", "", "four"])


@pytest.fixture
def view(grid):
    """A view that shows the rows, and what is opened."""
    made = GridView(lambda what, choice: made.opened.append((what, choice)))
    made.opened = []
    made.show(grid)
    return made


def places(grid, **how):
    found = arrange_rows(grid, Arrangement(**how))
    return None if found is None else found.tolist()


def test_cells_are_exact_text_and_cut_ones_are_sent_in_full(grid):
    page = page_of(grid, None, 0)

    assert page["cells"][IDS] == ["3", str(LARGE), "-", "1"]
    assert page["cells"][PRICE] == ["2.50", "10.00", "-1.25", "-"]
    assert page["cells"][NAME] == ["b<i>", '"-"', "-", "B" * 79 + "…"]
    assert page["full"] == [[3, NAME, "B" * 100]]


def test_columns_are_described(grid):
    facts = [(one["type"], one["nulls"], one["min"], one["max"], one["distinct"]) for one in grid.columns]

    assert facts[IDS] == ("int64", 1, "1", str(LARGE), None)
    assert facts[PRICE] == ("decimal128(10, 2)", 1, "-1.25", "10.00", None)
    assert facts[NAME][-1] == 3
    assert facts[AT][2:4] == ("2026-01-01 00:00:00Z", "2026-01-04 00:00:00Z")
    assert facts[TAGS] == ("list<item: string>", 1, None, None, None)
    assert [sum(one["bins"]) for one in grid.columns] == [3, 3, 0, 4, 0, 0, 0]


@pytest.mark.parametrize(
    ("sort", "descending", "expected"),
    [(IDS, False, [3, 0, 1, 2]), (IDS, True, [1, 0, 3, 2]), (PRICE, False, [2, 0, 1, 3]), (TAGS, True, [3, 0, 1, 2])],
)
def test_rows_are_sorted_with_nulls_last(grid, sort, descending, expected):
    assert places(grid, sort=sort, descending=descending) == expected


def test_equal_rows_keep_their_order_both_ways():
    equal = grid_rows(pa.table({"k": [1] * 5}), noun="rows")

    assert places(equal, sort=0) == places(equal, sort=0, descending=True) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("column", "text", "expected"),
    [
        (None, "", None),
        (None, "b", [0, 3]),
        (IDS, f"= {LARGE}", [1]),
        (IDS, f"<{LARGE}", [0, 3]),
        (PRICE, ">= 2.5", [0, 1]),
        (PRICE, "!= 10", [0, 2]),
        (NAME, "null", [2]),
        (NAME, "not null", [0, 1, 3]),
        (AT, "> 2026-01-02 00:00:00", [2, 3]),
        (TAGS, "z", [3]),
        (FLAG, "yes", [0, 3]),
        (FLAG, "= true", [0, 3]),
        (IDS, "no such", []),
    ],
)
def test_rows_are_filtered(grid, column, text, expected):
    assert places(grid, column=column, text=text) == expected


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        (IDS, "> x", "'x' is not a value of id, which is int64."),
        (IDS, "= 1.5", "'1.5' is not a value of id, which is int64."),
        (None, "> 5", "'> 5' compares with a column. Choose the column first."),
        (TAGS, "= x", "'x' is not a value of tags"),
    ],
)
def test_a_filter_that_does_not_fit_is_told(grid, view, column, text, message):
    with pytest.raises(InvalidArgumentError, match=message.partition("(")[0]):
        places(grid, column=column, text=text)

    view.receive({"arrange": {"column": column, "text": text}})
    assert view.content["error"].startswith(message)
    assert view.content["count"] == 4


def test_a_page_sorts_filters_scrolls_and_opens(view):
    view.receive({"arrange": {"sort": IDS, "descending": True, "column": FLAG, "text": "yes"}})
    assert (view.content["count"], view.content["total"], view.content["page"]["cells"][IDS]) == (2, 4, ["3", "1"])

    assert view.receive({"need": 1})["page"]["cells"][IDS] == ["1"]
    view.receive({"open": 1})
    assert view.opened == [("blame", "four")]

    view.receive({"arrange": {}})
    assert (view.content["count"], view.content["how"]["sort"]) == (4, None)
    view.receive({"open": 2})  # there is nothing to open
    assert len(view.opened) == 1


@pytest.mark.parametrize(
    "message",
    [
        *(None, 3, {}, {"need": -1}, {"need": "1"}, {"need": True}, {"need": 10**30}),
        *({"open": 10**30}, {"open": -1}, {"arrange": 3}),
        {"arrange": {"sort": "x", "column": 99, "text": 5, "descending": "yes"}},
    ],
)
def test_what_is_not_a_message_of_a_page_changes_nothing(view, message):
    before = view.content

    view.receive(message)

    assert view.content == before
    assert view.opened == []


def test_an_arrangement_stays_while_the_columns_do(view):
    view.arrange(Arrangement(sort=IDS, descending=True))

    view.show(grid_rows(ROWS.slice(0, 2), noun="rows"))
    assert view.content["page"]["cells"][IDS] == [str(LARGE), "3"]
    view.show(grid_rows(pa.table({"k": [1]}), noun="rows"))
    assert view.content["how"]["sort"] is None
    view.show(None)
    assert view.content == {}


def test_a_page_is_bounded_in_rows_and_columns():
    wide = pa.table({f"c{at}": pa.array(range(500)) for at in range(150)})

    page = page_of(grid_rows(wide, noun="rows"), None, 480)

    assert (len(page["cells"]), [len(one) for one in page["cells"]][:2], page["start"]) == (100, [20, 20], 480)


def test_a_value_is_inspected_in_full_and_a_nested_one_as_json(view):
    view.arrange(Arrangement(sort=NAME))

    texts = {column: view.receive({"inspect": [0, column]})["value"]["text"] for column in (IDS, NAME, TAGS)}

    assert texts == {IDS: str(LARGE), NAME: "-", TAGS: "[]"}
    assert view.receive({"inspect": [1, NAME]})["value"] == {"row": 1, "column": NAME, "text": "B" * 100}
    assert view.receive({"inspect": [1, TAGS]})["value"]["text"] == '[\n  "y",\n  "z"\n]'
    for cell in ([9, 0], [0, 99], [-1, 0], [0], "0 0"):
        assert view.receive({"inspect": cell}) is None


def test_nested_values_are_drawn_as_json_and_large_ones_as_before():
    rows = pa.table({"id": [1], "at": [{"lat": 2**62, "names": ["a", None]}], "many": [list(range(500_000))]})

    drawn = with_json(rows)

    assert drawn["at"].to_pylist() == ['{"lat":4611686018427387904,"names":["a",null]}']
    assert drawn["many"].type == rows["many"].type


def test_the_condition_of_bars_selects_the_rows_that_they_count():
    days = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=at * at) for at in range(40)]
    rows = pa.table({"id": [at * at for at in range(40)], "at": days, "price": [at / 7 for at in range(40)]})

    for index, column in enumerate(grid_rows(rows, noun="rows").columns):
        for first, last in ((0, 0), (2, 6), (15, 15)):
            condition = brushed_condition(rows, index, first, last)
            found = duckdb.sql(f"select count(*) from rows where {condition}").fetchall()
            assert found == [(sum(column["bins"][first : last + 1]),)], condition
    assert brushed_condition(rows, 0, 0, 15) == ""


def test_a_column_of_text_has_its_top_values_and_the_share_of_nulls():
    rows = pa.table({"shop": ["a", "b", "a", None, "c", "b", "a", None], "note": list("abcdefgh")})

    shop, note = grid_rows(rows, noun="rows").columns

    assert (shop["top"], shop["share"]) == ([("a", 3), ("b", 2)], 0.25)
    assert (note["top"], note["share"]) == ([], 0)
    assert brushed_condition(rows, 0, 1, 1) == "\"shop\" = 'b'"
