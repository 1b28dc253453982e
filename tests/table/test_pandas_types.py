"""Rows as pandas DataFrames of Arrow, NumPy and nullable types, and what each keeps."""

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.results import Frame, rows_as_pandas

ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "count": pa.array([3, None], pa.int32()),
        "price": pa.array([Decimal("0.10"), None], pa.decimal128(10, 2)),
        "flag": pa.array([True, None]),
        "name": pa.array(["a", None]),
        "day": pa.array([date(2026, 11, 1), None]),
        "at": pa.array([datetime(2026, 11, 1, 12, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "list": pa.array([[1], None], pa.list_(pa.int64())),
    }
)


def kinds(frame):
    return {name: str(dtype) for name, dtype in frame.dtypes.items()}


@pytest.fixture
def orders():
    return open_table(samples.path("orders"))


def test_numpy_types_are_those_that_numpy_computes_with():
    found = rows_as_pandas(ROWS, "numpy")

    assert kinds(found) | {"name": "", "at": ""} == {
        "id": "int64",
        "count": "float64",
        "price": "float64",
        "flag": "object",
        "name": "",
        "day": "datetime64[ms]",
        "at": "",
        "list": "object",
    }
    assert found["at"].dt.tz is not None
    assert found["price"][0] == 0.1
    assert found["price"].isna()[1]
    assert found["count"].isna()[1]


def test_nullable_types_keep_integers_booleans_and_nulls():
    found = rows_as_pandas(ROWS, "nullable")

    assert kinds(found) | {"name": "", "day": "", "at": "", "list": ""} == {
        "id": "Int64",
        "count": "Int32",
        "price": "Float64",
        "flag": "boolean",
        "name": "",
        "day": "",
        "at": "",
        "list": "",
    }
    assert found["count"][1] is pd.NA
    assert found["name"][1] is pd.NA
    assert found["price"][0] == 0.1


DECIMALS = st.decimals(-(10**29), 10**29, places=8)


@given(st.lists(DECIMALS, min_size=1, max_size=20), st.sampled_from(["numpy", "nullable"]))
def test_a_decimal_becomes_the_nearest_float(values, types):
    rows = pa.table({"value": pa.array(values, pa.decimal128(38, 8))})

    assert rows_as_pandas(rows, types)["value"].tolist() == [float(value) for value in values]


def test_an_integer_that_a_float_cannot_hold_is_refused_and_not_rounded():
    ids = pa.table({"id": pa.array([2**53 + 1, None])})

    with pytest.raises(InvalidArgumentError, match=r"Column 'id' has nulls and integers beyond 2\*\*53"):
        rows_as_pandas(ids, "numpy")
    assert rows_as_pandas(ids, "nullable")["id"][0] == 2**53 + 1
    assert rows_as_pandas(ids.slice(0, 1), "numpy")["id"][0] == 2**53 + 1
    assert rows_as_pandas(pa.table({"id": pa.array([None, -(2**53)])}), "numpy")["id"][1] == -(2**53)


def test_the_default_is_exact(orders):
    found = orders.at(8).to_pandas()

    assert str(found.dtypes["amount"]).startswith("decimal128")
    assert found.equals(orders.at(8).to_pandas(types="arrow"))


@pytest.mark.parametrize("types", ["numpy", "nullable"])
def test_amounts_can_be_computed_with(orders, types):
    condition = "amount is not null"
    exact, found = (orders.at(8).to_pandas(where=condition, types=one) for one in ("arrow", types))

    assert found["amount"].tolist() == [float(amount) for amount in exact["amount"]]
    assert found["amount"].describe()["count"] == len(exact)
    assert len(found["amount"].cumsum()) == len(exact)
    assert np.sqrt(found["amount"].abs().astype("float64")).notna().all()
    assert (np.where(found["amount"] < 0, 1, 0) == [amount < 0 for amount in exact["amount"]]).all()
    assert len(found.merge(pd.DataFrame({"amount": found["amount"].astype("float64").unique()}), on="amount")) == len(
        exact
    )


def test_a_frame_of_numpy_types_plots(orders):
    found = orders.at(8).to_pandas(where="amount is not null", types="numpy")

    figure = found.plot(x="order_id", y="amount", backend="plotly")

    assert list(figure.data[0].y) == found["amount"].tolist()


def test_where_matplotlib_is_missing_pandas_names_it(orders, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)

    with pytest.raises(ImportError, match="matplotlib is required for plotting"):
        orders.at(8).to_pandas(types="numpy").plot(backend="matplotlib")


def test_unknown_types_are_refused_before_reading(orders):
    with pytest.raises(
        InvalidArgumentError, match=r"types='nmpy' is unknown\. Did you mean numpy\? Types: arrow, numpy"
    ):
        orders.at(8).to_pandas(types="nmpy")


@pytest.mark.parametrize("types", ["numpy", "nullable"])
@pytest.mark.parametrize("values", [[date(3000, 1, 1), None], [datetime(1, 1, 1)]])  # noqa: DTZ001 - without a zone
def test_times_outside_of_nanoseconds_keep_their_years(types, values):
    times = rows_as_pandas(pa.table({"t": values}), types)["t"]

    assert [time.year for time in times.dropna()] == [value.year for value in values if value]


@pytest.mark.parametrize("types", ["arrow", "numpy", "nullable"])
def test_intervals_are_offsets_and_can_be_printed(types):
    spans = rows_as_pandas(pa.table({"span": [pa.MonthDayNano([1, 2, 3_000]), None]}), types)

    assert spans["span"].tolist() == [pd.DateOffset(months=1, days=2, nanoseconds=3_000), None]
    assert "DateOffset" in repr(spans)


def test_rows_of_empty_chunks_are_written_once(tmp_path):
    numbers = pa.chunked_array([[], [1], [], [2, 3]], pa.int64())

    Frame(pa.table({"n": numbers}), title="Numbers", noun="numbers").to_csv(tmp_path / "numbers.csv")

    assert (tmp_path / "numbers.csv").read_text().splitlines() == ['"n"', "1", "2", "3"]
