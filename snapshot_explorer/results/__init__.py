"""The results of calls: `Frame`, a metadata table that draws itself, and the export of rows to files and pandas.

What frames look like is in `view`. The only files that this package writes are written here, never in a table.
"""

from snapshot_explorer.results.exports import Exportable
from snapshot_explorer.results.frame import Frame, drawn_of_commits, non_empty_columns
from snapshot_explorer.results.pandas_types import (
    PandasTypes,
    as_pandas,
    check_types,
    decimal_columns,
    rows_as_pandas,
)

__all__ = [
    "Exportable",
    "Frame",
    "PandasTypes",
    "as_pandas",
    "check_types",
    "decimal_columns",
    "drawn_of_commits",
    "non_empty_columns",
    "rows_as_pandas",
]
