"""SQL queries, run by DuckDB over Arrow data, with projection and filter pushdown.

A query is first planned over empty tables. The plan contains the columns of each scan and the filters directly above
it; only these columns and rows are then read. Each query has a new connection, without access to other files, the
network or Python variables.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from snapshot_explorer.arrow.variant_texts import has_variant, text_schema, with_texts
from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.old_libraries import DUCKDB_ALLOWED_PATHS, DUCKDB_ARROW_FILTERS, DUCKDB_PIVOT
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.engines import duckdb_files, pushdown
from snapshot_explorer.engines.collations import check_query
from snapshot_explorer.engines.duckdb_ast import hide_statistics, quote_identifier
from snapshot_explorer.engines.duckdb_sessions import (
    check_nanoseconds,
    planning_cursor,
    query_cursor,
    run_interruptible,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import duckdb

    from snapshot_explorer.engines.duckdb_files import QueryFile

log = logger_of(__name__)

_PIVOT = re.compile(r"\bpivot", re.IGNORECASE)
_NO_TYPE = ("TIME WITH TIME ZONE", "BIGNUM", "VARINT")
"""DuckDB types whose values Arrow cannot represent."""
_UNREAD_MESSAGE = "rows are read that the plan does not name"
_UNREAD = f"CAST(CAST('{_UNREAD_MESSAGE}' AS INTEGER) AS VARCHAR)"
"""Fails the query if it is computed. DuckDB's `error` is volatile, which changes the plans of correlated subqueries."""
_PLAN = "EXPLAIN (FORMAT json) "

Failure: TypeAlias = Callable[[str, int | None], str]
"""Returns a message for an engine's message and the position in the query, in characters, if known."""

Read: TypeAlias = "Callable[[Sequence[str], str | None, int | None], pa.Table]"
"""Returns columns of at least the rows that match a condition in SQL, or of a number of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredRows:
    """The columns and rows of a relation that a query needs."""

    columns: tuple[str, ...]
    """The columns; none if rows are only counted."""
    where: str | None = None
    """A condition in SQL that all needed rows match."""
    limit: int | None = None
    """A number of rows that is enough, no matter which; None if all are needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Rows that a query may read."""

    what: str
    """A description for messages: `orders at version 17`."""
    schema: pa.Schema
    """The Arrow schema of the rows."""
    read: Read
    """Returns the required columns of at least the required rows."""
    count: Callable[[], int]
    """Returns the number of rows."""
    files: Callable[[Sequence[str], str | None], Sequence[QueryFile] | None] = lambda *_: None
    """Returns the files that contain the required columns and rows, if DuckDB may read them itself; otherwise None."""


def run(
    query: str,
    relations: Mapping[str, Relation],
    failure: Failure,
    *,
    whole: bool = False,
    explain: bool = False,
    before: Callable[[Mapping[str, RequiredRows]], object] | None = None,
) -> pa.Table:
    """Return the result of a query, as Arrow.

    Types are DuckDB's: sums of integers are decimal(38, 0); timestamps with a zone in milliseconds or seconds, and
    times in milliseconds, become microseconds. Zones are UTC.

    Args:
        relations: The tables that it may use, by name; the names need no quotes.
        failure: Returns the message for an error of DuckDB.
        whole: Whether to read all columns and rows, without pushdown.
        before: Called with the requirements of each relation before anything is read. It may raise.
    """
    import duckdb

    views = [RelationView(number, name, relation) for number, (name, relation) in enumerate(relations.items())]
    with _translate_errors(query, failure):
        if explain:
            with query_cursor() as connection:
                for view in views:
                    view.show(connection, as_it_is=True)
                return _result(connection, query)
        with planning_cursor() as cursor:
            for view in views:
                view.show(cursor, as_it_is=False)
            # The query's names could be confused with the plan's names.
            plan = None if whole or pushdown.PREFIX in query.lower() else _plan_scans(cursor, query, failure, views)
        try:
            return _result_of(query, views, plan, before)
        except duckdb.Error as error:
            # The plan over the rows may differ from the plan over empty tables, such as in conditions that exclude
            # each other.
            if plan is None or _UNREAD_MESSAGE not in str(error):
                raise
            log.debug("A query reads all columns and rows, because DuckDB's plan changed with the rows")
        return _result_of(query, views, None, before)


def _result_of(
    query: str,
    views: Sequence[RelationView],
    plan: Sequence[pushdown.PlannedScan] | None,
    before: Callable[[Mapping[str, RequiredRows]], object] | None,
) -> pa.Table:
    required = [view.required(plan) for view in views]
    for view, rows in zip(views, required, strict=True):
        view.check(query, rows)
    if before is not None:
        before({view.name: rows for view, rows in zip(views, required, strict=True) if rows is not None})
    files: list[Sequence[QueryFile] | None] = [None] * len(views)
    if not DUCKDB_ALLOWED_PATHS.applies():
        files = [view.files(rows) for view, rows in zip(views, required, strict=True)]
    result = _result_from_files(query, views, required, files) if any(files) else None
    if result is not None:
        return result
    with query_cursor() as connection:
        for view, rows in zip(views, required, strict=True):
            view.fill(connection, rows)
        return _result(connection, query)


def _result_from_files(
    query: str,
    views: Sequence[RelationView],
    required: Sequence[RequiredRows | None],
    files: Sequence[Sequence[QueryFile] | None],
) -> pa.Table | None:
    """Return the result of a query for which DuckDB reads files itself; None if it reports an error."""
    import duckdb

    paths = [file.path for view_files in files for file in view_files or ()]
    try:
        with query_cursor(paths) as connection:
            for view, rows, view_files in zip(views, required, files, strict=True):
                view.fill(connection, rows, view_files)
            result = _result(connection, query)
    except duckdb.Error as error:
        log.debug("DuckDB does not read the files of a query itself: %s", str(error).splitlines()[0])
        return None
    # Otherwise rows of two contents may be mixed.
    return result if all(map(duckdb_files.are_unchanged, filter(None, files))) else None


@contextmanager
def _translate_errors(query: str, failure: Failure) -> Iterator[None]:
    """Raise DuckDB's errors as InvalidArgumentError."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        resources.check(error, "The query did not finish")
        raise InvalidArgumentError(_message(error, query, failure)) from error


def _plan_scans(
    connection: duckdb.DuckDBPyConnection, query: str, failure: Failure, views: Sequence[RelationView]
) -> Sequence[pushdown.PlannedScan] | None:
    """Return the scans of a query's plan; None if the columns of a scan are unknown."""
    with _translate_errors(
        _PLAN + query, lambda sentence, at: failure(sentence, None if at is None else at - len(_PLAN))
    ):
        rows = connection.execute(_PLAN + query).fetchall()
    try:
        result = pushdown.scans(json.loads(rows[0][1]))
    except RecursionError:
        return None
    if len(views) == 1:  # DuckDB before 2.0 names no column of a scan whose rows are only counted
        result = [scan if scan.columns else replace(scan, columns=(pushdown.rows_name(0),)) for scan in result]
    return result if all(scan.columns for scan in result) else None


class RelationView:
    """A relation as a view in a connection. Its columns have generated names in the plan; variants are JSON text."""

    def __init__(self, number: int, name: str, relation: Relation) -> None:
        self._number = number
        self.name = name
        self._relation = relation
        folded = Counter(column.lower() for column in relation.schema.names)
        twice = sorted(column for column in relation.schema.names if folded[column.lower()] > 1)
        if twice:
            raise InvalidArgumentError(
                Message(
                    f"{relation.what} has columns whose names differ only in case: {', '.join(twice)}. DuckDB ignores "
                    "case: read the rows with ",
                    Hint("snapshot.to_arrow", {"columns": [...]}),
                    " instead.",
                )
            )
        self._plan_names = {pushdown.column_name(number, at): column for at, column in enumerate(relation.schema.names)}
        self._comparable_names = {
            name: column
            for name, column in self._plan_names.items()
            if not has_variant(relation.schema.field(column).type)
        }

    def show(self, connection: duckdb.DuckDBPyConnection, *, as_it_is: bool) -> None:
        """Register the empty relation. In the plan, its first column represents the number of rows."""
        if as_it_is:
            connection.register(self.name, text_schema(self._relation.schema).empty_table())
            return
        marked = pa.schema([pa.field(pushdown.rows_name(self._number), pa.bool_())])
        shown = text_schema(self._relation.schema)
        for plan_name, column in self._plan_names.items():
            marked = marked.append(pa.field(plan_name, shown.field(column).type))
        connection.register(f"{self.name}__rows", marked.empty_table())
        self._view(connection, [quote_identifier(name) for name in self._plan_names], f"{self.name}__rows")

    def required(self, plan: Sequence[pushdown.PlannedScan] | None) -> RequiredRows | None:
        """Return the columns and rows that the plan reads: all of them without a plan, None if it reads none."""
        if plan is None:
            return RequiredRows(columns=tuple(self._plan_names.values()))
        mine = [scan for scan in plan if pushdown.number_of(scan.columns[0]) == self._number]
        if not mine:
            return None
        read = frozenset(column for scan in mine for column in scan.columns)
        return RequiredRows(
            columns=tuple(column for name, column in self._plan_names.items() if name in read),
            where=pushdown.condition_of(mine, self._comparable_names, self._relation.schema),
            limit=pushdown.limit_of(mine),
        )

    def check(self, query: str, required: RequiredRows | None) -> None:
        """Raise UnsupportedFeatureError if a collation or an old DuckDB may change the result."""
        if required is not None:
            check_query(query, required.columns, self._relation.schema, self._relation.what)
            check_nanoseconds(required.columns, self._relation.schema)

    def files(self, required: RequiredRows | None) -> Sequence[QueryFile] | None:
        """Return the files that contain the required rows, if DuckDB may read them itself; otherwise None."""
        if required is None or not required.columns:
            return None
        return self._relation.files(required.columns, required.where)

    def fill(
        self,
        connection: duckdb.DuckDBPyConnection,
        required: RequiredRows | None,
        files: Sequence[QueryFile] | None = None,
    ) -> None:
        """Register the required rows, or a view of their files. If the query reads other columns or rows, it fails."""
        if files and required is not None:
            read = {column: name for name, column in self._plan_names.items() if column in required.columns}
            rows = duckdb_files.view(connection, files, read, f"{self.name}__constants")
            self._show_columns(connection, {name: quote_identifier(name) for name in read.values()}, f"({rows})")
        elif required is None:
            self._show_rows(connection, 1, (), f" WHERE {_UNREAD} IS NULL")
        elif required.columns:
            names = [name for name, column in self._plan_names.items() if column in required.columns]
            rows = self._relation.read(required.columns, required.where, required.limit)
            self._show_rows(connection, with_texts(rows).rename_columns(names), names)
        else:
            self._show_rows(connection, self._relation.count(), ())

    def _show_rows(
        self, connection: duckdb.DuckDBPyConnection, rows: pa.Table | int, read: Sequence[str], where: str = ""
    ) -> None:
        """Register rows, or a number of rows without columns."""
        if isinstance(rows, int):
            rows = pa.table({pushdown.rows_name(self._number): pa.nulls(rows, pa.bool_())})
        connection.unregister(f"{self.name}__rows")
        connection.register(f"{self.name}__rows", rows)
        as_value = hide_statistics if DUCKDB_ARROW_FILTERS.applies() else str
        self._show_columns(
            connection, {name: as_value(quote_identifier(name)) for name in read}, f"{self.name}__rows{where}"
        )

    def _show_columns(self, connection: duckdb.DuckDBPyConnection, read: Mapping[str, str], source: str) -> None:
        values = [
            read.get(name, f"CAST({_UNREAD} AS {type_name})")
            for name, type_name in zip(self._plan_names, _types(text_schema(self._relation.schema)), strict=True)
        ]
        self._view(connection, values, source)

    def _view(self, connection: duckdb.DuckDBPyConnection, values: Sequence[str], source: str) -> None:
        columns = zip(values, self._plan_names.values(), strict=True)
        chosen = ", ".join(f"{value} AS {quote_identifier(column)}" for value, column in columns)
        # The names are generated or quoted, and the types DuckDB's own.
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {self.name} AS SELECT {chosen} FROM {source}")  # noqa: S608


@lru_cache(maxsize=256)
def _types(schema: pa.Schema) -> tuple[str, ...]:
    with planning_cursor() as cursor:
        return tuple(str(type_name) for type_name in cursor.from_arrow(schema.empty_table()).types)


def _result(connection: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    """Return the rows of a query, with exactly DuckDB's values. Ctrl-C ends it soon."""
    if DUCKDB_PIVOT.applies() and _PIVOT.search(query):
        raise UnsupportedFeatureError(f"SQL does not run PIVOT here: {DUCKDB_PIVOT.remedy()}")
    return run_interruptible(connection, lambda: _rows(connection, query))


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    answer = connection.sql(query)
    for name, type_name in zip(answer.columns, answer.types, strict=True):
        lost = next((word for word in _NO_TYPE if word in str(type_name)), None)
        if lost is not None:
            raise UnsupportedFeatureError(
                f"The result's column {name!r} is a {lost}, which Arrow and pandas do not have. Convert it in the "
                "query, such as CAST(... AS VARCHAR)."
            )
    rows: pa.Table = answer.to_arrow_table()
    for index, item in enumerate(rows.schema):
        if "decimal128(38, 0)" in str(item.type):
            try:
                rows.column(index).validate(full=True)
            except pa.ArrowInvalid as error:
                raise UnsupportedFeatureError(
                    f"The result's column {item.name!r} has an integer of more than 38 digits, which Arrow and pandas "
                    "do not have. Convert it in the query, such as CAST(... AS VARCHAR)."
                ) from error
    return rows


def _message(error: Exception, query: str, failure: Failure) -> str:
    text = str(error).strip().split("Error: ", 1)[-1]
    fields = _json(text)
    sentence = str(fields.get("exception_message") or text).split("\n\tCandidate functions", 1)[0]
    sentence = " ".join(sentence.split()).rstrip(".!")
    position = str(fields.get("position", ""))
    at = None
    if position.isdecimal():
        at = len(query.encode()[: int(position)].decode(errors="ignore"))
    return failure(sentence, at)


def _json(text: str) -> dict[str, Any]:
    try:
        result = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return result if isinstance(result, dict) else {}
