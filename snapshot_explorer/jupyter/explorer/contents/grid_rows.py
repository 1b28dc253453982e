"""Rows of a grid in the kernel: facts on its columns, their order, a filter, and pages of text. No widget."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.data_types import is_number
from snapshot_explorer.arrow.value_text import DRAWN, NULL, format_cell, truncate, unit_of
from snapshot_explorer.arrow.variant_texts import with_texts
from snapshot_explorer.core.errors import CorruptTableError, InvalidArgumentError
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.engines.duckdb_ast import quote_identifier
from snapshot_explorer.jupyter.explorer.contents.row_conditions import comparison
from snapshot_explorer.results.exports import flatten_rows, indented_json
from snapshot_explorer.view.drawing import DRAWN_COLUMNS, Grid
from snapshot_explorer.view.figures import clean_text
from snapshot_explorer.view.grid import heading_of, shown_columns
from snapshot_explorer.view.palette import KIND_COLORS

PAGE = 60
"""The maximum number of rows of a page."""
MOST_ROWS = 1_000_000
"""The maximum number of rows that a page can scroll through."""
_WIDEST, _WIDEST_PATH = 80, 40
_LONGEST = 1_000
"""Characters of a value whose cell shows less of it."""
_LARGEST_VALUES, _LARGEST_TEXT = 2_000_000, 100_000
"""The maximum number of bytes of nested values that are formatted as JSON, and of characters of a full value."""
BINS = 16
"""Parts of the range of values in a histogram."""
_ZERO_FRACTION = re.compile(r"(?<=:\d\d)\.0+(?=Z?$)")
_SLOW_ROWS = 200_000
"""The maximum number of rows whose nested values are sorted and filtered: each is formatted as text for that."""
_TOP_VALUES, _SHORT_VALUE = 3, 16
"""The number of top values of a column of text, and their longest in characters."""
_COMPARISONS = {
    "<=": pc.less_equal,
    ">=": pc.greater_equal,
    "!=": pc.not_equal,
    "<": pc.less,
    ">": pc.greater,
    "=": pc.equal,
}

Draw: TypeAlias = Callable[[Sequence[int]], tuple[pa.Table, frozenset[tuple[int, int]]]]
Opens = Literal["blame", "version", "where"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRows:
    """The rows of a grid."""

    rows: pa.Table
    """The rows, by whose values they are sorted and filtered."""
    noun: str
    """The plural noun for rows."""
    sample: str = ""
    """The set of rows that `rows` is a part of, such as `999,990 rows in 10 files`; empty if `rows` is all of it."""
    draw: Draw | None = None
    """Returns the rows at these places as they are drawn, and the cells that are marked; None to draw them as they
    are."""
    columns: tuple[Mapping[str, object], ...]
    """The columns: name, type, whether they are numbers, nulls, minimum and maximum, a histogram."""
    opens: Opens | None = None
    """The target that a row opens: its condition under Blame, or its version as B."""
    choose: Callable[[int], str] = lambda _: ""
    """Returns the condition or the version of a row; empty text if there is none."""
    total: int | None = None
    """The number of all rows if `rows` is only their first part, which is in order already."""
    part: int = 0
    """The number of rows of a part."""
    read: "Callable[[int], GridRows] | None" = None
    """Reads the part that begins at a place."""
    order: tuple[int | None, bool] = (None, False)
    """The column by which these rows are sorted, and whether the largest values come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """How the rows of a grid are sorted and filtered."""

    sort: int | None = None
    """The place of the column to sort by."""
    descending: bool = False
    """Whether the largest values come first."""
    column: int | None = None
    """The place of the column that the text applies to; None for any."""
    text: str = ""
    """Text that a value contains, a comparison such as `> 10`, `null` or `not null`; empty for all rows."""


def grid_rows(
    rows: pa.Table,
    *,
    noun: str,
    sample: str = "",
    types: Mapping[str, str] | None = None,
    draw: Draw | None = None,
    opens: Opens | None = None,
    choices: Sequence[str] = (),
) -> GridRows:
    """Return the rows of a grid, with facts on their columns; see the fields of `GridRows`.

    `types` are the types of columns in the notation of the table's format; by default in Arrow's.
    """
    return GridRows(
        rows=rows,
        noun=noun,
        sample=sample,
        draw=draw,
        columns=tuple(_describe_columns(rows, types or {})),
        opens=opens,
        choose=lambda row: choices[row] if row < len(choices) else "",
    )


def _describe_columns(rows: pa.Table, types: Mapping[str, str]) -> list[dict[str, object]]:
    result: list[dict[str, object]] = []
    for index, item in enumerate(rows.schema):
        if index >= DRAWN_COLUMNS:
            break
        column = rows.column(index)
        metadata = item.metadata or {}
        unit = unit_of(item.name, metadata) if metadata else None
        minimum, maximum = _bounds(column)
        result.append(
            {
                "name": clean_text(item.name, _WIDEST),
                "heading": clean_text(heading_of(item), _WIDEST),
                # The meaning of a column of metadata is more useful than its type in Arrow.
                "type": "" if b"meaning" in metadata else clean_text(types.get(item.name, str(item.type)), _WIDEST),
                "meaning": clean_text(metadata.get(b"meaning", b"").decode(errors="replace"), _LONGEST),
                "number": is_number(item.type),
                "nulls": column.null_count,
                "min": None
                if minimum is None
                else _ZERO_FRACTION.sub("", truncate(format_cell(minimum, unit).text, _WIDEST)),
                "max": None
                if maximum is None
                else _ZERO_FRACTION.sub("", truncate(format_cell(maximum, unit).text, _WIDEST)),
                "bins": _histogram(column),
                "distinct": _distinct(column),
                "top": [(truncate(sanitize(value), _SHORT_VALUE), count) for value, count in top_values(column)],
                "share": column.null_count / len(column) if len(column) else 0,
                "colors": KIND_COLORS if item.name == "kind" else None,
            }
        )
    return result


def arrange_rows(grid: GridRows, how: Arrangement) -> npt.NDArray[np.int64] | None:
    """Return the places of the rows that pass the filter, in order; None for all of them as they are."""
    rows, order = grid.rows, None
    if how.text.strip():
        columns = range(min(rows.num_columns, DRAWN_COLUMNS)) if how.column is None else [how.column]
        mask = np.zeros(len(rows), np.bool_)
        for index in columns:
            mask |= _filter_mask(
                rows.column(index), rows.schema.field(index), how.text.strip(), is_any=how.column is None
            )
        order = np.flatnonzero(mask)
    if how.sort is not None:
        key = _sort_key(rows, how.sort)
        key = key if order is None else key.take(pa.array(order))
        way = "descending" if how.descending else "ascending"
        places = np.arange(len(key))
        # A column of places keeps the order of equal rows.
        sorted_places = pc.sort_indices(
            pa.table({"key": key, "place": places}), sort_keys=[("key", way), ("place", "ascending")]
        ).to_numpy()
        order = sorted_places if order is None else order[sorted_places]
    return None if order is None else order.astype(np.int64)


def ranks_of(grid: GridRows, count: int) -> list[list[int | None]]:
    """Return for each column the ranks of the values of the first rows; equal values have the same, null has none."""
    rows = grid.rows.slice(0, count)
    return [_ranks(rows, index) for index in range(min(rows.num_columns, DRAWN_COLUMNS))]


def _ranks(rows: pa.Table, index: int) -> list[int | None]:
    key = _sort_key(rows, index)
    try:
        ranks = pc.rank(key, sort_keys="ascending", tiebreaker="dense")
    except pa.ArrowException:  # of a type without an order
        key = _texts(rows.column(index), rows.schema.field(index))
        ranks = pc.rank(key, sort_keys="ascending", tiebreaker="dense")
    result: list[int | None] = pc.if_else(key.is_valid(), ranks, None).to_pylist()
    return result


def _sort_key(rows: pa.Table, index: int) -> pa.ChunkedArray | pa.Array:
    column = rows.column(index)
    return _texts(column, rows.schema.field(index)) if pa.types.is_nested(column.type) else column


def page_of(grid: GridRows, order: npt.NDArray[np.int64] | None, start: int) -> dict[str, object]:
    """Return a page of rows as text: its start, columns of cells, and the full values of truncated cells."""
    total = len(grid.rows) if order is None else len(order)
    start = max(0, min(start, total))
    places = np.arange(start, min(start + PAGE, total)) if order is None else order[start : start + PAGE]
    if grid.draw is None:
        rows, marked = grid.rows.take(pa.array(places)), frozenset[tuple[int, int]]()
    else:
        rows, marked = grid.draw(places.tolist())
    cells, full = [], []
    for column, shown in enumerate(shown_columns(Grid(rows), PAGE)):
        texts = []
        for row, item in enumerate(shown.cells):
            whole = _ZERO_FRACTION.sub("", item.text) if pa.types.is_timestamp(rows.schema.types[column]) else item.text
            text = (
                whole
                if item.whole
                else truncate(whole, _WIDEST_PATH if shown.is_path else _WIDEST, middle=shown.is_path)
            )
            exact = item.exact or (item.text if text != whole else None)
            texts.append(text)
            if exact:
                full.append([row, column, truncate(exact, _LONGEST)])
        cells.append(texts)
    return {"start": start, "cells": cells, "full": full, "marked": sorted(marked)}


def with_json(rows: pa.Table) -> pa.Table:
    """Return rows with nested values as JSON; a column of very large or damaged values is not changed."""
    for index, item in enumerate(rows.schema):
        column = rows.select([index])
        if pa.types.is_nested(item.type) and column.nbytes <= _LARGEST_VALUES:
            with suppress(CorruptTableError):
                texts = flatten_rows(with_texts(column)).column(0)
                rows = rows.set_column(index, pa.field(item.name, pa.string(), metadata=DRAWN), texts)
    return rows


def full_text(rows: pa.Table, row: int, column: int) -> str:
    """Return a value in full, but for very large ones; a nested one as JSON in lines."""
    value = rows.select([column]).slice(row, 1).combine_chunks()
    is_nested = pa.types.is_nested(value.schema.field(0).type)
    text = format_cell(value.column(0)[0]).text
    if value.take([0]).nbytes <= _LARGEST_VALUES:
        with suppress(CorruptTableError):
            formatted = indented_json(with_texts(value)) if is_nested else flatten_rows(value).column(0)[0].as_py()
            text = formatted if isinstance(formatted, str) else text
    return "\n".join(sanitize(line) for line in text[:_LARGEST_TEXT].split("\n"))


def _bounds(column: pa.ChunkedArray) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    dtype = column.type
    if pa.types.is_nested(dtype) or pa.types.is_null(dtype) or column.null_count == len(column):
        return None, None
    try:
        result = pc.min_max(column)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None, None
    return result["min"], result["max"]


def _histogram(column: pa.ChunkedArray) -> list[int]:
    """Return the number of values in each part of their range; empty for values that are neither numbers nor times."""
    places = bin_places(column)
    if places is None:
        return []
    counts: list[int] = np.bincount(places[places >= 0], minlength=BINS).tolist()
    return counts


def bin_places(column: pa.ChunkedArray) -> npt.NDArray[np.int64] | None:
    """Return the bin of each value, one of `BINS` parts of their range; -1 for nulls and values that are not finite.

    None if the values are neither numbers nor times, or are all equal.
    """
    dtype = column.type
    if pa.types.is_temporal(dtype) and not pa.types.is_interval(dtype):
        column = column.cast(pa.int32() if dtype.bit_width == pa.int32().bit_width else pa.int64())
    elif not is_number(dtype):
        return None
    is_valid, valid = column.is_valid().to_numpy(), pc.drop_null(column)
    if pa.types.is_integer(column.type) and len(valid):
        # Differences of large numbers are exact before they are decimals.
        wide = valid.cast(pa.uint64() if pa.types.is_uint64(valid.type) else pa.int64()).to_numpy()
        values = (wide.view(np.uint64) - wide.min().view(np.uint64)).astype(np.float64)
    else:
        values = valid.cast(pa.float64(), safe=False).to_numpy()
    is_finite = np.isfinite(values)
    finite = values[is_finite]
    width = np.ptp(finite) if len(finite) else 0.0
    if not width or not np.isfinite(width):
        return None
    bins = np.full(len(values), -1)
    bins[is_finite] = np.minimum((finite - finite.min()) / width * BINS, BINS - 1)
    places = np.full(len(column), -1)
    places[is_valid] = bins
    return places


def _distinct(column: pa.ChunkedArray) -> int | None:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    count: int = pc.count_distinct(column).as_py()
    return count


def top_values(column: pa.ChunkedArray) -> list[tuple[str, int]]:
    """Return the most frequent texts, and how many rows have each, the most frequent first; none that only one has."""
    if _distinct(column) is None:
        return []
    counted = pc.value_counts(pc.drop_null(column))
    order = np.argsort(-counted.field("counts").to_numpy(), kind="stable")[:_TOP_VALUES]
    values = counted.take(pa.array(order)).to_pylist()
    return [(value["values"], value["counts"]) for value in values if value["counts"] > 1]


def brushed_condition(rows: pa.Table, index: int, first: int, last: int) -> str:
    """Return the condition in SQL of some bars of a column's histogram, or of one of its top values; empty for none.

    The ends of bars are whole numbers where the values are, and have six digits otherwise. A bar at an end of the
    histogram has no limit there.
    """
    column, name = rows.column(index), rows.schema.names[index]
    if tops := top_values(column):
        return comparison(name, "=", pa.scalar(tops[first][0])) or "" if first < len(tops) else ""
    if bin_places(column) is None or not 0 <= first <= last < BINS:
        return ""
    ends = pc.min_max(column.filter(pc.is_finite(column)) if pa.types.is_floating(column.type) else column)
    is_temporal = pa.types.is_temporal(column.type)
    storage = pa.int32() if is_temporal and column.type.bit_width == pa.int32().bit_width else pa.int64()
    low, high = ((ends[end].cast(storage) if is_temporal else ends[end]).as_py() for end in ("min", "max"))
    terms = []
    for sign, bar in ((">=", first), ("<", last + 1)):
        edge = low + (high - low) * bar / BINS
        whole = math.ceil(edge)
        if is_temporal:
            term = comparison(name, sign, pa.scalar(whole, storage).cast(column.type))
        else:
            text = str(whole) if pa.types.is_integer(column.type) else f"{edge:.6g}"
            term = f"{quote_identifier(name)} {sign} {text}"
        terms += [term] if term and 0 < bar < BINS else []
    return " and ".join(terms)


def _texts(column: pa.ChunkedArray, item: pa.Field) -> pa.Array:
    """Return values as text to search in; null for null."""
    dtype = column.type
    if pa.types.is_boolean(dtype):
        return pc.if_else(column, "yes", "no").combine_chunks()
    if not (pa.types.is_nested(dtype) or pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype)):
        try:
            return column.cast(pa.string()).combine_chunks()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            pass
    if len(column) > _SLOW_ROWS:
        raise InvalidArgumentError(
            f"{item.name} of {len(column):,} rows cannot be sorted or filtered here; up to {_SLOW_ROWS:,} can. "
            "Use the line of code."
        )
    texts = [format_cell(value).text for value in column]
    return pa.array([None if text == NULL else text for text in texts], pa.string())


def _filter_mask(column: pa.ChunkedArray, item: pa.Field, text: str, *, is_any: bool) -> npt.NDArray[np.bool_]:
    mask: pa.Array | pa.ChunkedArray
    if text.lower() in ("null", "not null"):
        mask = column.is_null() if text.lower() == "null" else column.is_valid()
    elif sign := next((item for item in _COMPARISONS if text.startswith(item)), ""):
        if is_any:
            raise InvalidArgumentError(f"{text!r} compares with a column. Choose the column first.")
        mask = _COMPARISONS[sign](column, _value(text[len(sign) :].strip(), item))
    else:
        mask = pc.match_substring(_texts(column, item), text, ignore_case=True)
    passing: npt.NDArray[np.bool_] = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - the value that null becomes
    return passing


def _value(text: str, item: pa.Field) -> pa.Scalar:
    for spelled in (text, f"{text}Z"):
        try:
            return pa.scalar(spelled).cast(item.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    raise InvalidArgumentError(f"{text!r} is not a value of {item.name}, which is {item.type}. Write another one.")
