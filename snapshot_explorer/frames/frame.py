"""`Frame`, which wraps a metadata table and draws it, and the choice of columns to draw."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.python_values import with_dicts
from snapshot_explorer.arrow.variant_texts import with_texts
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.frames.exports import flat, json_text, output_path
from snapshot_explorer.old_libraries import PANDAS_TEXTS, PANDAS_UNITS
from snapshot_explorer.render import DRAWN_ROWS, Drawable, Drawing, Grid, Line
from snapshot_explorer.render.cells import NOT_CHECKED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    import pandas as pd
    import plotly.graph_objects as go

    from snapshot_explorer.render.figures import Picture


class PictureMaker(Protocol):
    """Creates a picture of a frame's rows."""

    def __call__(self, rows: pa.Table, /, *, y: str, title: str, total: int | None) -> Picture:
        """Return the picture; its bars count `y`, and `total` is the number of rows in all."""
        ...


class Frame(Drawable):
    """A metadata table: an Arrow table that draws itself in a terminal and in a notebook.

    Libraries that read Arrow data accept it (`pyarrow.table(frame)`, DuckDB, polars).
    """

    __slots__ = ("_depict", "_draw", "_drawn", "_rows", "limit", "notes", "noun", "title", "total")

    def __init__(  # noqa: PLR0913 - how it is drawn, each part optional
        self,
        rows: pa.Table,
        *,
        title: str,
        noun: str = "rows",
        total: int | None = None,
        drawn: tuple[str, ...] = (),
        draw: Callable[[pa.Table], pa.Table] | None = None,
        limit: int | None = None,
        depict: PictureMaker | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        """Wrap the rows.

        Args:
            total: The number of rows in all, where `rows` contains only the first of them.
            drawn: The columns to draw, in order; all if empty. The data keeps all columns.
            draw: Returns rows as they are drawn, of the first of the rows; by default as they are.
            limit: The number of rows to draw; None for the caller's limit. The data keeps all rows.
            depict: Creates a picture of the rows, for frames with a figure.
            notes: What the rows do not contain, such as a version that is missing; a sentence each, drawn above them.
        """
        self._rows = rows
        self.title = title
        self.noun = noun
        self.total = total
        self.limit = limit
        self.notes = notes
        self._drawn = drawn
        self._draw = draw
        self._depict = depict

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""
        return int(self._rows.num_rows)

    @property
    def column_names(self) -> list[str]:
        """Return the names of the columns, drawn or not."""
        return list(self._rows.column_names)

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema; field metadata contains each column's meaning and unit."""
        return self._rows.schema

    @property
    def df(self) -> pd.DataFrame:
        """Return the rows as pandas, like `to_pandas()`."""
        return self.to_pandas()

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column."""
        if name not in self._rows.column_names:
            listed = ", ".join(self._rows.column_names)
            raise InvalidArgumentError(f"Unknown column {name!r}. {self.title} has the columns {listed}.")
        return self._rows.column(name)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, without a copy."""
        return self._rows

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as pandas with Arrow dtypes: integers with nulls stay integers. Maps become dicts."""
        return as_pandas(self._rows, maps_as_dicts=True)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return a list with a dict per row, of Python values; maps become dicts."""
        rows: list[dict[str, Any]] = with_dicts(self._rows, "strict")
        return rows

    def to_json(self) -> str:
        """Return the rows as JSON text, a list with an object per row.

        Times are ISO 8601 in UTC, decimals and binary text, what JSON has no number for null.
        """
        return json_text(self._rows)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the rows to a CSV file. Structs become a column per field, lists and maps JSON text, binary hex.

        Raises:
            OSError: The file cannot be written.
        """
        import pyarrow.csv as pa_csv  # noqa: PLC0415 - only where a file is written

        target, rows = output_path(path), self._rows
        while any(pa.types.is_struct(field.type) for field in rows.schema):
            rows = rows.flatten()
        pa_csv.write_csv(flat(rows), target)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the rows to a parquet file.

        Raises:
            OSError: The file cannot be written.
        """
        import pyarrow.parquet as pq  # noqa: PLC0415 - the same

        pq.write_table(self._rows, output_path(path))

    def picture(self, *, y: str = "rows") -> Picture:
        """Return the rows as a figure with a table beside it, for terminals and pages that show no figures.

        Args:
            y: The measure of the bars of a history: rows, files or bytes.
        """
        if self._depict is None:
            raise UnsupportedFeatureError(
                f"There is no figure of {self.title!r}. "
                "There is one of table.history(), table.lifetimes() and table.compare(a, b), and of the metadata "
                "tables for which %snapshot inspect says so."
            )
        return self._depict(self._rows, y=y, title=self.title, total=self.total)

    def figure(self, *, y: str = "rows") -> go.Figure:
        """Return only the plotly figure; see `picture`."""
        return self.picture(y=y).figure

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self.column(name)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)

    def drawing(self) -> Drawing:
        """Return the frame as a drawing."""
        limit = DRAWN_ROWS if self.limit is None else self.limit
        rows = self.drawn_rows(limit)
        unchecked = [name for name in rows.column_names if self._is_unchecked(name)]
        rows = rows.drop_columns(unchecked)
        # Rows that are not drawn at all do not count as cut off.
        total = max(self.total or 0, len(rows), len(self._rows) if len(self._rows) > limit else 0)
        grid = Grid(rows, total=total, noun=self.noun, limit=self.limit)
        remarks = [
            Line(f"{name}: {NOT_CHECKED}; readability looks for every file", is_faint=True) for name in unchecked
        ]
        return Drawing(title=self.title, parts=(*map(Line, self.notes), grid, *remarks))

    def drawn_rows(self, limit: int | None = None) -> pa.Table:
        """Return the rows as they are drawn, all of them unless the frame has so many that `limit` applies."""
        rows = self._rows if self._draw is None else self._draw(self._rows.slice(0, limit))
        return rows.select(list(self._drawn)) if self._drawn else rows

    def _is_unchecked(self, name: str) -> bool:
        """Return whether a column states at no row whether a version can be loaded."""
        words = (self._rows.schema.field(name).metadata or {}).get(b"words")
        return words == b"readable" and 0 < len(self._rows) == self._rows[name].null_count


_COMMIT = (
    "version",
    "committed_at",
    "kind",
    "operation",
    "user",
    "added_files",
    "removed_files",
    "added_rows",
    "removed_rows",
    "total_rows",
    "readable",
    "tags",
)


def drawn_of_commits(rows: pa.Table) -> tuple[str, ...]:
    """Return the columns of COMMITS to draw, without `operation`, `user` and `tags` if they are empty."""
    empty = {name for name in ("operation", "user") if rows[name].null_count == rows.num_rows}
    empty |= set() if pc.any(pc.greater(pc.list_value_length(rows["tags"]), 0)).as_py() else {"tags"}
    return tuple(name for name in _COMMIT if name not in empty)


def non_empty_columns(rows: pa.Table, *, exclude: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the columns that contain a value, except the excluded ones; without rows all columns."""
    names = tuple(name for name in rows.column_names if name not in exclude)
    return tuple(name for name in names if not _is_empty(rows[name])) if len(rows) else names


def _is_empty(column: pa.ChunkedArray) -> bool:
    """Return whether a column contains only nulls, or only empty maps."""
    if column.null_count == len(column):
        return True
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    return pa.types.is_map(column.type) and all(chunk.offsets[0] == chunk.offsets[len(chunk)] for chunk in chunks)


def as_pandas(rows: pa.Table, *, maps_as_dicts: bool = False) -> pd.DataFrame:
    """Return Arrow rows as pandas with Arrow dtypes, without loss; variants become JSON text.

    Integers with nulls stay integers, decimals stay decimals, nanoseconds and nested values survive.

    Args:
        maps_as_dicts: Convert maps to dicts, with unique keys, instead of lists of pairs.
    """
    import pandas as pd

    def dtype(arrow_type: pa.DataType) -> pd.api.extensions.ExtensionDtype | None:
        if arrow_type == pa.string() and PANDAS_TEXTS.applies():
            return pd.StringDtype("pyarrow")
        return None if maps_as_dicts and pa.types.is_map(arrow_type) else pd.ArrowDtype(arrow_type)

    rows = with_texts(rows)
    converted: pd.DataFrame = rows.to_pandas(types_mapper=dtype, maps_as_pydicts="strict", ignore_metadata=True)
    return converted


PandasTypes = Literal["arrow", "numpy", "nullable"]
_EXACT_IN_FLOATS = 2**53
_NANOSECONDS = pa.timestamp("ns")


def rows_as_pandas(rows: pa.Table, types: PandasTypes = "arrow") -> pd.DataFrame:
    """Return Arrow rows as pandas.

    Args:
        types: `arrow`: Arrow dtypes, without loss. `numpy`: the types of `pandas.read_parquet`: decimals become the
            nearest float64, integers with nulls float64, dates datetime64, and booleans with nulls objects.
            `nullable`: pandas' own types with NA, such as Int64: only decimals lose digits, as they become Float64.
            Values inside of lists, structs and maps stay as they are. Variants become JSON text.
    """
    match check_types(types):
        case "arrow":
            return as_pandas(rows)
        case "numpy":
            _check_times(rows)
            _check_integers(rows)
            return _converted(_with_floats(rows), {})
        case _:
            _check_times(rows)
            return _converted(_with_floats(rows), _nullable_types())


def check_types(types: str) -> PandasTypes:
    """Return the types if they are known."""
    known: tuple[PandasTypes, ...] = get_args(PandasTypes)
    for name in known:
        if types == name:
            return name
    near = get_close_matches(str(types), known, 1)
    raise InvalidArgumentError(
        f"types={types!r} is unknown. {f'Did you mean {near[0]}? ' if near else ''}Types: {', '.join(known)}."
    )


def decimal_columns(schema: pa.Schema) -> list[str]:
    """Return the names of the decimal columns."""
    return [field.name for field in schema if pa.types.is_decimal(field.type)]


def _with_floats(rows: pa.Table) -> pa.Table:
    for position, field in enumerate(rows.schema):
        if pa.types.is_decimal(field.type):
            # By way of text: Arrow's own cast to float64 is off by one in the last place for some values.
            floats = pc.cast(pc.cast(rows.column(position), pa.string()), pa.float64())
            rows = rows.set_column(position, field.name, floats)
    return rows


def _check_integers(rows: pa.Table) -> None:
    """Raise InvalidArgumentError for a column of integers with nulls that float64 cannot hold exactly."""
    for position, field in enumerate(rows.schema):
        column = rows.column(position)
        if not pa.types.is_integer(field.type) or not column.null_count or field.type.bit_width < 64:  # noqa: PLR2004 - bits
            continue
        extremes = pc.min_max(column).as_py()
        if max(abs(value or 0) for value in extremes.values()) > _EXACT_IN_FLOATS:
            raise InvalidArgumentError(
                f"Column {field.name!r} has nulls and integers beyond 2**53, which NumPy would hold as rounded floats. "
                "Use types='nullable', or leave the column or its nulls out."
            )


def _check_times(rows: pa.Table) -> None:
    """Raise UnsupportedFeatureError for times that this pandas, which has only nanoseconds, cannot hold."""
    if not PANDAS_UNITS.applies():
        return
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if not pa.types.is_date(field.type) and not pa.types.is_timestamp(field.type):
            continue
        try:
            # Dates are multiplied without a check, times are not.
            pc.cast(pc.cast(column, pa.timestamp("ms")) if pa.types.is_date(field.type) else column, _NANOSECONDS)
        except pa.ArrowInvalid as error:
            raise UnsupportedFeatureError(
                f"Column {field.name!r} has times outside of 1677 to 2262, which NumPy types cannot hold: "
                f"{PANDAS_UNITS.remedy()}, or use types='arrow'."
            ) from error


def _nullable_types() -> dict[pa.DataType, object]:
    import pandas as pd

    integers = {getattr(pa, f"{sign}int{bits}")(): f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    named = {dtype: name.replace("int", "Int").replace("u", "U") for dtype, name in integers.items()}
    named |= {pa.float32(): "Float32", pa.float64(): "Float64", pa.bool_(): "boolean"}
    result: dict[pa.DataType, object] = {dtype: pd.api.types.pandas_dtype(name) for dtype, name in named.items()}
    return result | dict.fromkeys((pa.string(), pa.large_string()), pd.StringDtype())


def _converted(rows: pa.Table, types: dict[pa.DataType, object]) -> pd.DataFrame:
    converted: pd.DataFrame = with_texts(rows).to_pandas(
        types_mapper=types.get, date_as_object=False, ignore_metadata=True, maps_as_pydicts=None
    )
    return converted
