"""`Frame`, a metadata table with what is needed to draw it, and the choice of columns to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.python_values import with_dicts
from snapshot_explorer.arrow.shown_texts import without_url_secrets
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.shown import Shown, figure_of
from snapshot_explorer.results.exports import Exportable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go


FrameKind = Literal["table", "log", "branches", "actions", "slices", "readability", "parts", "lake log"]
"""The contents of frames that are drawn differently from other tables; `table` for all others."""


class Frame(Exportable, Shown):
    """A metadata table: an Arrow table that draws itself in a terminal and in a notebook."""

    __slots__ = (
        "_of_rows",
        "_recorded",
        "_shown",
        "drawn",
        "kind",
        "limit",
        "notes",
        "noun",
        "options",
        "title",
        "total",
    )

    def __init__(  # noqa: PLR0913 - how it is drawn, each part optional
        self,
        rows: pa.Table,
        *,
        title: str,
        noun: str = "rows",
        total: int | None = None,
        drawn: tuple[str, ...] = (),
        limit: int | None = None,
        kind: FrameKind = "table",
        options: Mapping[str, Any] | None = None,
        notes: tuple[str, ...] = (),
        of_rows: bool = False,
    ) -> None:
        """Wrap the rows. The secrets of URLs in texts of metadata are hidden.

        Args:
            total: The number of all rows, if `rows` contains only the first of them.
            drawn: The columns to draw, in order; all if empty. The data keeps all columns.
            limit: The number of rows to draw; None for the caller's limit. The data keeps all rows.
            kind: The kind of the rows, if they are drawn differently from other tables.
            options: What is drawn in addition for that kind.
            notes: Sentences on what the rows do not contain, such as a missing version; drawn above them.
            of_rows: Whether texts are values of a table's rows, which are not changed.
        """
        self._recorded = rows
        self._shown = rows if of_rows else None
        self._of_rows = of_rows
        self.title = title
        self.noun = noun
        self.total = total
        self.limit = limit
        self.notes = notes
        self.drawn = drawn
        self.kind = kind
        self.options = {} if options is None else options

    @property
    def has_values(self) -> bool:
        """Whether its texts are values of a table's rows, rather than metadata."""
        return self._of_rows

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        names = [name for cls in type(self).__mro__ for name in getattr(cls, "__slots__", ())]
        return None, {name: getattr(self, name) for name in names} | {"_recorded": self._rows, "_shown": self._rows}

    @property
    def _rows(self) -> pa.Table:
        """The rows, with the secrets of URLs hidden. Computed when they are first used."""
        if self._shown is None:
            self._shown = self._without_secrets(self._recorded)
        return self._shown

    def _without_secrets(self, rows: pa.Table) -> pa.Table:
        return rows if self._of_rows else without_url_secrets(rows, exact=_value_columns(rows.schema))

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""
        return int(self._recorded.num_rows)

    @property
    def column_names(self) -> list[str]:
        """Return the names of the columns, drawn or not."""
        return list(self._recorded.column_names)

    @property
    def schema(self) -> pa.Schema:
        """Return the Arrow schema; field metadata contains each column's meaning and unit."""
        return self._recorded.schema

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column."""
        if name not in self._recorded.column_names:
            listed = ", ".join(self._recorded.column_names)
            raise InvalidArgumentError(f"Unknown column {name!r}. {self.title} has the columns {listed}.")
        return self._rows.column(name)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, without a copy."""
        return self._rows

    def to_dict(self) -> list[dict[str, Any]]:
        """Return a list with a dict per row, of Python values; maps become dicts."""
        rows: list[dict[str, Any]] = with_dicts(self._rows, "strict")
        return rows

    def first_rows(self, limit: int | None) -> pa.Table:
        """Return the first rows, with the secrets of URLs hidden in these alone; all rows if `limit` is None."""
        return self._rows if limit is None else self._without_secrets(self._recorded.slice(0, limit))

    def is_unchecked(self, name: str) -> bool:
        """Return whether a column states at no row whether a version can be loaded."""
        words = (self._recorded.schema.field(name).metadata or {}).get(b"words")
        return words == b"readable" and 0 < len(self) == self._recorded[name].null_count

    def picture(self, *, y: str = "rows") -> go.Figure | Shown:
        """Return the rows as a figure. It displays as a table on pages that show no figures.

        A history is a plotly figure; `svg` of other figures is their text as SVG.

        Args:
            y: The measure of the bars of a history: rows, files or bytes.
        """
        return figure_of(self, y=y)

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self.column(name)


def _value_columns(schema: pa.Schema) -> frozenset[str]:
    """Return the columns that contain values of a table's rows, not the log's statements about files."""
    return frozenset(field.name for field in schema if field.name == "partition" or b"value" in (field.metadata or {}))


_COMMIT = (
    "version",
    "committed_at",
    "kind",
    "operation",
    "user",
    "rows",
    "total_rows",
    "readable",
    "tags",
)


def drawn_of_commits(rows: pa.Table) -> tuple[str, ...]:
    """Return the columns of COMMITS to draw, without `operation`, `user` and `tags` if they are empty.

    `rows` is what each commit did to the rows of the table, as text, which is made when it is drawn.
    """
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
