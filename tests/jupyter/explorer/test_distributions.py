"""How the values of columns moved between two sets of rows: bars, null rates, order, sentences."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.inner.jupyter import distributions

NAN = float("nan")
DAYS = [datetime(2026, 1, day, 3, 4, 5, tzinfo=UTC) for day in (1, 2, 3, 4)]
A = pa.table(
    {
        "country": ["FR", "FR", "PL", None],
        "amount": pa.array([Decimal(10), Decimal(20), Decimal(30), Decimal(40)], pa.decimal128(10, 2)),
        "id": pa.array([2**63 - 1, 1, 2, 3], pa.int64()),
        "at": pa.array(
            [datetime(2026, 1, day, 3, 4, 5, tzinfo=UTC) for day in (1, 2, 3, 4)], pa.timestamp("us", "UTC")
        ),
        "tags": [["x"], None, [], ["y"]],
        "ratio": [NAN, 1.0, 2.0, None],
        "flag": [True, True, False, None],
    }
)


def tiles_of(a, b):
    return {tile["name"]: tile for tile in distributions(a, b, a.column_names)}


def test_the_column_that_moved_most_is_first_and_others_are_unchanged():
    negated = A.set_column(1, "amount", pa.array([Decimal(-value) for value in (10, 20, 30, 40)], A["amount"].type))
    shuffled = negated.set_column(0, "country", [["PL", None, "FR", "FR"]])

    tiles = distributions(A, shuffled, A.column_names)
    amount, by_name = tiles[0], {tile["name"]: tile for tile in tiles}

    assert (amount["name"], amount["about"], amount["moved"]) == (
        "amount",
        "mean 25.00 \N{RIGHTWARDS ARROW} -25.00",
        1.0,
    )
    assert [sum(side) for side in list(zip(*amount["bars"], strict=True))[:2]] == [4, 4]
    for name in ("country", "id", "at", "flag"):
        assert (by_name[name]["moved"], by_name[name]["about"]) == (0, "unchanged")
    assert by_name["country"]["bars"] == [(2, 2, "FR"), (1, 1, "PL")]
    assert by_name["country"]["nulls"] == [0.25, 0.25]
    assert (by_name["tags"]["bars"], by_name["tags"]["about"]) == ([], "")


def test_a_column_that_became_null_moved():
    country = tiles_of(A, A.set_column(0, "country", pa.array([None] * 4, pa.string())).select(A.column_names))[
        "country"
    ]

    assert (country["nulls"], country["moved"], country["about"]) == ([0.25, 1.0], 0.75, "2 values")
    assert country["bars"] == [(2, 0, "FR"), (1, 0, "PL")]


@pytest.mark.parametrize(("a", "b"), [(A.slice(0, 0), A), (A, A.slice(0, 0))])
def test_of_rows_on_one_side_nothing_moved(a, b):
    tiles = tiles_of(a, b)

    assert {tile["moved"] for tile in tiles.values()} == {0}
    assert tiles["amount"]["about"] == "mean 25.00"
    assert tiles["at"]["about"] == "up to 2026-01-04 03:04"
    assert None in tiles["amount"]["nulls"]
    assert sum(one + other for one, other, _ in tiles["ratio"]["bars"]) == 2  # NaN is in no part of the range
