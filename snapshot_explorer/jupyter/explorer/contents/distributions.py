"""The distributions of the values of columns in two sets of rows, the largest difference first. Plain data."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.data_types import is_number
from snapshot_explorer.arrow.value_text import format_cell, truncate
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.jupyter.explorer.contents.grid_rows import BINS, bin_places
from snapshot_explorer.view.figures import clean_text

_Counts = npt.NDArray[np.int64]


MOST_TILES = 60
_MOST_VALUES = 8
"""Distinct values that have a bar each; the most frequent ones."""
_WIDEST = 40
_MINUTES = len("2026-11-22 03:00")
_ARROW = " \N{RIGHTWARDS ARROW} "


def distributions(a: pa.Table, b: pa.Table, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return a record for each column: bars of A and B, null rates, how far it moved from 0 to 1, and a sentence."""
    tiles = [_tile(name, a[name], b[name]) for name in names[:MOST_TILES]]
    return sorted(tiles, key=lambda tile: -tile["moved"])


def _tile(name: str, a: pa.ChunkedArray, b: pa.ChunkedArray) -> dict[str, Any]:
    both = pa.chunked_array([*a.chunks, *b.chunks], a.type)
    counts = _counts(both, len(a))
    is_same = len(a) == len(b) and counts is not None and _is_same(a, b)
    nulls = [None if not len(side) else side.null_count / len(side) for side in (a, b)]
    moved = 0.0 if is_same or not len(a) or not len(b) else _distance(counts, a, b)
    return {
        "name": clean_text(name, _WIDEST),
        "bars": [] if counts is None else _bars(counts, both),
        "rows": [len(a), len(b)],
        "nulls": nulls,
        "moved": round(moved, 4),
        "about": "unchanged" if is_same else _about(a, b),
    }


def _is_opaque(dtype: pa.DataType) -> bool:
    """Return whether Arrow neither sorts nor counts values."""
    return bool(pa.types.is_nested(dtype) or pa.types.is_interval(dtype) or pa.types.is_null(dtype))


def _counts(both: pa.ChunkedArray, of_a: int) -> tuple[_Counts, _Counts] | None:
    """Return how often A and B have each part of the range, or each distinct value; None for nested values."""
    places = bin_places(both)
    if places is not None:
        size = BINS
    elif _is_opaque(both.type):
        return None
    else:
        codes = both.combine_chunks().dictionary_encode()
        size = len(codes.dictionary)
        places = pc.fill_null(codes.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    a, b = (np.bincount(part[part >= 0], minlength=size) for part in (places[:of_a], places[of_a:]))
    return a, b


def _bars(counts: tuple[_Counts, _Counts], both: pa.ChunkedArray) -> list[tuple[int, int, str]]:
    """Return the counts of A and of B, and the counted range or value, for each bar."""
    a, b = counts
    if bin_places(both) is not None:
        return [(int(item), int(other), "") for item, other in zip(a, b, strict=True)]
    values = both.combine_chunks().dictionary_encode().dictionary
    frequent = np.argsort(-(a + b), kind="stable")[:_MOST_VALUES]
    return [
        (int(a[index]), int(b[index]), truncate(format_cell(values[index]).text, _WIDEST))
        for index in frequent.tolist()
    ]


def _is_same(a: pa.ChunkedArray, b: pa.ChunkedArray) -> bool:
    """Return whether both have the same values, each as often."""
    return bool(a.take(pc.sort_indices(a)).equals(b.take(pc.sort_indices(b))))


def _distance(counts: tuple[_Counts, _Counts] | None, a: pa.ChunkedArray, b: pa.ChunkedArray) -> float:
    """Return the total variation distance of both distributions; at least a little, since they differ."""
    nulls: float = abs(a.null_count / len(a) - b.null_count / len(b))
    parts: float = 0.0 if counts is None else np.abs(counts[0] / len(a) - counts[1] / len(b)).sum().item()
    return max((parts + nulls) / 2, 1e-4)


def _about(a: pa.ChunkedArray, b: pa.ChunkedArray) -> str:
    """Return the means of numbers, and the numbers of distinct other values."""
    sides = [side for side in (a, b) if len(side) > side.null_count]
    if not sides or _is_opaque(a.type):
        return ""
    if is_number(a.type):
        return "mean " + _ARROW.join(_number(pc.mean(side.cast(pa.float64(), safe=False)).as_py()) for side in sides)
    if pa.types.is_temporal(a.type):
        return f"up to {format_cell(pc.max(sides[-1])).text[:_MINUTES]}"
    distinct = [pc.count_distinct(side).as_py() for side in sides]
    if len(sides) == len(distinct) == distinct.count(1) == 2:  # noqa: PLR2004 - one value in A, and one in B
        return _ARROW.join(truncate(format_cell(pc.drop_null(side)[0]).text, _WIDEST) for side in sides)
    return _ARROW.join(
        [pluralize(distinct[0], "value"), *(f"{count:,}" for count in distinct[1:] if count != distinct[0])]
    )


def _number(value: float) -> str:
    return f"{value:,.2f}" if abs(value) < 1e9 else f"{value:.3g}"  # noqa: PLR2004 - from here on digits are noise
