"""Conditions that pick rows out by their key hold for those rows alone."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.inner.engines import parse_condition
from tests.inner.jupyter import row_conditions

COLUMNS = {
    "whole": pa.array([-(2**63), 0, 2**63 - 1]),
    "text": pa.array(["it's", 'say "x"', "-- ; \n"]),
    "yes": pa.array([True, False, True]),
    "decimal": pa.array([Decimal("-1.10"), Decimal("0.00"), Decimal("99999999.99")], pa.decimal128(10, 2)),
    "float": pa.array([0.1, -1e300, 5e-324]),
    "day": pa.array([date(1969, 12, 31), date(2026, 11, 1), date(9999, 12, 31)]),
    "time": pa.array([1, -86_400_000_000, 1_800_000_000_000_000], pa.timestamp("us")),
    "instant": pa.array([datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in range(3)], pa.timestamp("us", "UTC")),
    'odd "name" order': pa.array([1, 2, 3]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_condition_holds_for_its_row(name):
    rows = pa.table({name: COLUMNS[name], "row": [0, 1, 2]})

    found = row_conditions(rows, [name])

    values = rows[name].to_pylist()
    for text, value in zip(found, values, strict=True):
        mask = parse_condition(text, rows.schema).mask(rows)
        assert pa.array(mask).to_pylist() == [one == value for one in values]


def test_a_key_of_several_columns_is_joined():
    rows = pa.table({"a": [1, 1], "b": ["x", "y"]})

    assert row_conditions(rows, ["a", "b"]) == ['"a" = 1 and "b" = \'x\'', '"a" = 1 and "b" = \'y\'']


@pytest.mark.parametrize(
    ("values", "key"),
    [
        (pa.array([None], pa.int64()), ["k"]),
        (pa.array([float("nan")]), ["k"]),
        (pa.array([0.1], pa.float32()), ["k"]),
        (pa.array([b"x"]), ["k"]),
        (pa.array([1], pa.timestamp("ns")), ["k"]),
        (pa.array(["x" * 300]), ["k"]),
        (pa.array([1]), []),
        (pa.array([1]), ["other"]),
    ],
)
def test_what_a_condition_cannot_spell_has_none(values, key):
    assert row_conditions(pa.table({"k": values}), key) == []
