"""Rows as a file that the browser saves."""

import io

import pyarrow as pa

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.results.exports import flatten_rows

FILE_FORMATS = ("csv", "parquet")
_MOST_BYTES = 200_000_000
"""The maximum number of bytes of rows in memory that are sent to a page as a file."""


def file_bytes(rows: pa.Table, file_format: str) -> bytes:
    """Return rows as a file: parquet, or CSV with nested values as JSON and binary as hexadecimal text."""
    if rows.nbytes > _MOST_BYTES:
        raise InvalidArgumentError(
            f"{len(rows):,} rows take {rows.nbytes:,} bytes; up to {_MOST_BYTES:,} are sent to the browser. "
            "Filter them, or use the line of code."
        )
    sink = io.BytesIO()
    if file_format == "parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415 - only where a file is made

        pq.write_table(rows, sink)
    else:
        import pyarrow.csv as pa_csv  # noqa: PLC0415 - likewise

        pa_csv.write_csv(flatten_rows(rows), sink)
    return sink.getvalue()
