"""What storing and reading files costs, at prices that the caller passes. None is built in."""

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.refs.records import brief_repr

Price = float | Mapping[str, float]
"""A price per GB (10^9 bytes) and month; or prices by their names: `gb_month`, and per 1,000 requests of two classes
that stores bill: `read` (GET; Google's class B) and `write` (PUT, COPY, POST and LIST; Google's class A)."""
_UNITS = {"gb_month": 1e9, "read": 1e3, "write": 1e3}
_COSTS = {
    "gb_month": ("cost_per_month", "size_bytes at the price that was passed; null if the size is unknown"),
    "read": ("cost_to_read", "of a request for each file, or of read_files; readers of parts of a file need more"),
    "write": ("cost_to_write", "of a request for each file; uploads of large files in parts need more"),
}


def checked_prices(price: object) -> Mapping[str, float]:
    """Return prices by their names; none for None.

    Raises:
        InvalidArgumentError: A price is not a number of 0 or more, or has another name.
    """
    prices: dict[str, Any] = {} if price is None else dict(price) if isinstance(price, Mapping) else {"gb_month": price}
    for name, value in prices.items():
        if name not in _UNITS:
            raise InvalidArgumentError(f"The names of prices are {', '.join(_UNITS)}; got {brief_repr(name)}.")
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
            where = f"price[{name!r}]" if isinstance(price, Mapping) else "price"
            raise InvalidArgumentError(
                f"{where} must be a number of 0 or more, got {brief_repr(value)}. Pass a price per GB and month, or a "
                f"dict with some of {', '.join(_UNITS)}."
            )
    return prices


def with_costs(rows: pa.Table, prices: Mapping[str, float]) -> tuple[pa.Table, tuple[str, ...]]:
    """Return rows of usage with a column of costs for each price, and the names of these columns."""
    names = []
    for kind in (kind for kind in _UNITS if kind in prices):
        name, meaning = _COSTS[kind]
        counted = "read_files" if kind == "read" and "read_files" in rows.column_names else "files"
        units = rows["size_bytes" if kind == "gb_month" else counted].cast(pa.float64())
        cost = pc.divide(pc.multiply(units, float(prices[kind])), _UNITS[kind])
        rows = rows.append_column(pa.field(name, pa.float64(), metadata={"meaning": meaning}), cost)
        names.append(name)
    return rows, tuple(names)
