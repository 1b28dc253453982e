"""`Exportable`: results that export their rows. Rows of any type as JSON text and as columns of a CSV file."""

from __future__ import annotations

import io
from contextlib import nullcontext
from typing import TYPE_CHECKING, overload

import orjson
import pyarrow as pa

from snapshot_explorer.arrow.python_values import with_dicts
from snapshot_explorer.arrow.value_text import interval_text
from snapshot_explorer.core.safe_text import sanitize_json
from snapshot_explorer.results.outputs import output_file
from snapshot_explorer.results.pandas_types import as_pandas

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    import pandas as pd

_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


class Exportable:
    """A result with rows, which it exports to files and to other libraries.

    Libraries that read Arrow data accept it (`pyarrow.table(result)`, DuckDB, polars). Methods that write a file raise
    OSError if it cannot be written.
    """

    __slots__ = ()

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as pandas with Arrow dtypes: integers with nulls stay integers. Maps become dicts."""
        return as_pandas(self.to_arrow(), maps_as_dicts=True)

    @overload
    def to_json(self, path: None = None) -> str: ...
    @overload
    def to_json(self, path: str | PathLike[str]) -> None: ...
    def to_json(self, path: str | PathLike[str] | None = None) -> str | None:
        """Return the rows as JSON text, a list with an object per row; with a path, write it there.

        Times are ISO 8601 in UTC, decimals and binary text, and NaN and infinity are null.
        """
        content = json_text(self.to_arrow())
        if path is None:
            return content
        with output_file(path) as file:
            file.write(content.encode())
        return None

    @overload
    def to_csv(self, path: None = None) -> str: ...
    @overload
    def to_csv(self, path: str | PathLike[str]) -> None: ...
    def to_csv(self, path: str | PathLike[str] | None = None) -> str | None:
        """Return the rows as CSV text with a header; with a path, write it there.

        Structs become a column per field, such as `before.amount`, lists and maps JSON text, binary hexadecimal text.
        Empty text is quoted, null is not.
        """
        from pyarrow import csv  # noqa: PLC0415 - loaded at first use: it takes time

        text = io.BytesIO()
        with nullcontext(text) if path is None else output_file(path) as sink:
            schema, parts = self._parts()
            with csv.CSVWriter(sink, self._csv_rows(schema.empty_table()).schema) as writer:
                for part in parts:
                    writer.write_table(self._csv_rows(part))
        return text.getvalue().decode() if path is None else None

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the rows to a parquet file."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - likewise

        schema, parts = self._parts()
        with output_file(path) as file, pq.ParquetWriter(file, schema) as writer:
            for part in parts:
                writer.write_table(part)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _parts(self) -> tuple[pa.Schema, Iterable[pa.Table]]:
        rows = self.to_arrow()
        return rows.schema, [rows]

    def _csv_rows(self, rows: pa.Table) -> pa.Table:
        while any(pa.types.is_struct(field.type) for field in rows.schema):
            rows = rows.flatten()
        return flatten_rows(rows)


def json_text(rows: pa.Table) -> str:
    """Return rows as JSON text, a list with an object per row.

    Times are ISO 8601 in UTC, decimals text, binary hexadecimal text, and NaN and infinity are null. Invisible
    characters are escapes.
    """
    return sanitize_json(_dump(with_dicts(rows, "lossy")))


def flatten_rows(rows: pa.Table) -> pa.Table:
    """Return rows in one chunk, with nested values as JSON text and binary as hexadecimal text."""
    for index, item in enumerate(rows.schema):
        if _is_binary(item.type) or pa.types.is_nested(item.type) or pa.types.is_null(item.type):
            values = with_dicts(rows.column(index), "lossy")
            texts = pa.array([None if item is None else _flat_text(item) for item in values], pa.string())
            rows = rows.set_column(index, item.name, texts)
    return rows.combine_chunks()  # see PYARROW_CSV_CHUNKS


def indented_json(rows: pa.Table) -> str:
    """Return the first value of rows with one column as JSON in indented lines."""
    (value,) = with_dicts(rows.column(0).slice(0, 1), "lossy")
    return value if isinstance(value, str) else _dump(value, orjson.OPT_INDENT_2)


def _is_binary(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype) or pa.types.is_fixed_size_binary(dtype))


def _flat_text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else _dump(value)


def _dump(value: object, more: int = 0) -> str:
    return orjson.dumps(value, option=_OPTIONS | more, default=_json_value).decode()


def _json_value(value: object) -> str:
    if isinstance(value, pa.MonthDayNano):
        return interval_text(value)
    return value.hex() if isinstance(value, bytes) else str(value)
