"""SQL queries over tables at any version, on DuckDB or Spark.

```
select * from orders version as of 17                    a version, as Delta and Paimon write it in Spark
... from orders for version as of 'latest~2'             any ref in quotes; FOR may be left out
... from orders version as of 'v1'                       a tag, also 'tag:v1'
... from orders version as of 'branch:audit'             the newest version of a branch; 'audit' if no tag has the name
... from orders timestamp as of '2026-11-01 12:00:00'    the last version by then; without a zone, UTC; also '2h'
... from orders@17 o join "events@latest~2" using (id)   the short forms
... from orders                                          the newest version
... from orders for system_time all                      each state of a row once, with the versions that have it
... from orders for version from 5 to 9                  the states at a version from 5 on, before 9
... from orders for version between 5 and 9              the same, with those at 9
```

The states of rows have the columns of `Table.row_history` behind their own. `for system_time` takes times, or refs in
quotes, and `for version` versions. They are read by DuckDB alone.

Both engines use the syntax above: strings in single quotes, with `''` as the only escape, and names in double quotes or
backquotes. Functions and types are the engine's own.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import pyarrow as pa

from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.refs import Latest, OfBranch, Tag, Version
from snapshot_explorer.core.resources import reports_lacking_resources
from snapshot_explorer.core.text import did_you_mean
from snapshot_explorer.engines import duckdb_files
from snapshot_explorer.engines import sql as duckdb_sql
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.history import WithPast, history_of, renamed_column
from snapshot_explorer.results import as_pandas
from snapshot_explorer.table.cost import Cost, cost_of
from snapshot_explorer.table.queries.periods import RowStates, row_states
from snapshot_explorer.table.queries.references import references
from snapshot_explorer.table.queries.rewrite import (
    Dialect,
    RewrittenQuery,
    generated_name,
    restore_column,
    restore_names,
    rewrite,
)
from snapshot_explorer.table.queries.tokens import near, tokens
from snapshot_explorer.table.snapshot import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from snapshot_explorer.core.refs import RefLike
    from snapshot_explorer.engines.duckdb_files import QueryFile
    from snapshot_explorer.table.queries.references import Reference
    from snapshot_explorer.table.queries.tokens import Token
    from snapshot_explorer.table.snapshot import Snapshot

__all__ = ["ENGINES", "Before", "Engine", "QueryReading", "VersionedTable", "check", "sql", "to_arrow", "with_limit"]

Engine = Literal["duckdb", "spark"]
ENGINES: tuple[Engine, ...] = get_args(Engine)


class VersionedTable(WithPast):
    """A table that queries can name: the base of `Table`."""

    @abstractmethod
    def at(self, ref: RefLike) -> Snapshot:
        """Return the snapshot of a ref."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReading:
    """The rows that a query will read from a table at a version."""

    table: str
    """The table's name in the query."""
    snapshot: Snapshot
    where: str | None
    """A condition that all rows to read match; None for all rows."""
    limit: int | None
    """The maximum number of rows to read; None for all."""
    states: RowStates | None = None
    """The states of rows in a period; None for the rows of the snapshot."""

    def cost(self) -> Cost:
        """Return what it reads without the limit. Reads metadata."""
        if self.states is None:
            return cost_of(self.snapshot, self.where)
        plan = self.states.plan(self.where)
        return Cost(rows=plan.rows, files=plan.files, size_bytes=plan.size_bytes)


_DESCRIBING = ("DESC", "DESCRIBE", "SUMMARIZE")
"""The first words of queries whose first column contains the names of columns."""
_WITH_ROWS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
"""The first words of queries that can be in parentheses."""
_UNKNOWN_COLUMN = re.compile(
    r'column "([^"]+)" not found|column named "([^"]+)"|Column "([^"]+)" in \w+ list|'
    r"parameter with name (?:`[^`]+`\.)*`([^`]+)`"
)
"""The name of an unknown column in messages of DuckDB and Spark."""

Before: TypeAlias = "Callable[[Sequence[QueryReading]], object]"
"""Called with what a query will read, before it does. It may raise."""


@reports_lacking_resources
def sql(
    query: str,
    tables: Mapping[str, VersionedTable],
    *,
    engine: str = "duckdb",
    spark: SparkSession | None = None,
    before: Before | None = None,
) -> pd.DataFrame | DataFrame:
    """Return the result of a query over tables at any version. See the module's docstring for the syntax.

    DuckDB reads only the columns and files that the query needs into memory, and only as many rows as a LIMIT directly
    on a table needs. The result is a pandas DataFrame with Arrow dtypes and exactly DuckDB's values. Sums of integers
    are decimals of 38 digits, as DuckDB's HUGEINT; timestamps with a zone keep their values, and zones are UTC.
    Spark returns a lazy DataFrame. Nothing is registered in its catalog, and nothing is cached. Projections and filters
    are pushed down to files that Spark's own readers read. All columns and rows of other files, such as those that are
    merged, are read; use `Snapshot.to_spark(columns=, where=)` to read fewer.

    Args:
        query: One read-only statement: SELECT, WITH, VALUES, FROM, EXPLAIN or DESCRIBE.
        tables: The tables by their names in the query, which ignore case.
        engine: `duckdb` or `spark`.
        spark: The session for Spark; by default the active one, or a new local one.
        before: Called with what DuckDB will read, before it does. It may raise. Not called for Spark.
    """
    if engine == "duckdb":
        return as_pandas(to_arrow(query, tables, before=before))
    if engine == "spark":
        return _on_spark(query, tables, spark)
    if not isinstance(engine, str):
        raise InvalidArgumentError(
            f"engine must be {' or '.join(ENGINES)}, got {type(engine).__name__}. Give a Spark session as spark=."
        )
    near = did_you_mean(engine, ENGINES)
    raise InvalidArgumentError(f"{engine!r} is not an engine for SQL.{near} Engines: {', '.join(ENGINES)}.")


def check(query: str, tables: Mapping[str, VersionedTable]) -> None:
    """Find the tables and versions of a query, by `VersionedTable.at`. Reads no rows. Errors as for `sql`."""
    _Query.of(query, tables)


def with_limit(query: str, limit: int) -> str:
    """Return a query with at most so many rows; DESCRIBE and EXPLAIN, which return few, as they are."""
    parts = [token for token in tokens(query) if token.kind not in ("space", "comment")]
    while parts and parts[-1].text == ";":
        parts.pop()
    if next((token.keyword for token in parts if token.text != "("), "") not in _WITH_ROWS:
        return query
    return f"select * from (\n{query[: parts[-1].end]}\n) limit {limit}"  # noqa: S608 - it is a query of the caller


def to_arrow(query: str, tables: Mapping[str, VersionedTable], *, before: Before | None = None) -> pa.Table:
    """Return the result of a query from DuckDB as an Arrow table. Arguments and errors as for `sql`."""
    parsed = _Query.of(query, tables)
    rewritten = parsed.rewritten("duckdb", generated_name)
    words = {token.keyword for token in parsed.tokens}
    relations = {generated_name(number): _relation(item) for number, item in enumerate(parsed.sources)}
    rows = duckdb_sql.run(
        rewritten.text,
        relations,
        lambda sentence, at: parsed.failure(sentence, None if at is None else rewritten.origin(at)),
        # The plan of a pivot depends on the existing values.
        whole=bool(words & {"PIVOT", "UNPIVOT", "PIVOT_WIDER", "PIVOT_LONGER"}),
        explain=parsed.first == "EXPLAIN",
        before=None if before is None else lambda required: before(_readings(parsed, required)),
    )
    if parsed.first in _DESCRIBING and rows.num_columns and pa.types.is_string(rows.schema.field(0).type):
        described = [restore_column(column, query, parsed.written) for column in rows.column(0).to_pylist()]
        rows = rows.set_column(0, rows.schema.field(0), pa.array(described, pa.string()))
    return rows.rename_columns([restore_column(column, query, parsed.written) for column in rows.column_names])


def _readings(parsed: _Query, required: Mapping[str, duckdb_sql.RequiredRows]) -> Sequence[QueryReading]:
    """Return what is read: snapshots whose rows are not only counted, and states of rows, which are read to count."""
    named = {generated_name(number): item for number, item in enumerate(parsed.sources)}
    return [
        QueryReading(
            table=named[relation].written,
            snapshot=named[relation].snapshot,
            where=rows.where if rows.columns else None,
            limit=rows.limit if named[relation].states is None else None,
            states=named[relation].states,
        )
        for relation, rows in required.items()
        if rows.columns or named[relation].states is not None
    ]


def _on_spark(query: str, tables: Mapping[str, VersionedTable], spark: SparkSession | None) -> DataFrame:
    from snapshot_explorer.engines.spark import sql as spark_sql  # noqa: PLC0415 - only for Spark
    from snapshot_explorer.engines.spark.sessions import session  # noqa: PLC0415 - the same

    parsed = _Query.of(query, tables)
    if any(source.states is not None for source in parsed.sources):
        raise UnsupportedFeatureError(
            Message(
                "Spark does not read the states of rows in a period. Use ",
                Hint("", {"engine": "duckdb"}),
                ", or ",
                Hint("table.row_history", {"where": ...}),
                ".",
            )
        )
    chosen = session(spark)
    if not spark_sql.reads_backslashes(chosen):
        _check_strings(parsed)
    names = spark_sql.stand_ins(chosen, len(parsed.sources))
    rewritten = parsed.rewritten("spark", names.__getitem__)
    return spark_sql.run(
        chosen,
        rewritten.text,
        {name: item.snapshot.to_spark(chosen) for name, item in zip(names, parsed.sources, strict=True)},
        lambda sentence, at: parsed.failure(sentence, None if at is None else rewritten.origin(at)),
    )


def _check_strings(parsed: _Query) -> None:
    """Refuse string literals whose meaning depends on a Spark setting."""
    for token in parsed.tokens:
        if token.kind == "text" and ("\\" in token.value or "'" in token.value):
            raise InvalidArgumentError(
                f"The string{near(parsed.text, token.start)} contains a quote or a backslash, and "
                "spark.sql.parser.escapedStringLiterals is on, which changes what they mean. Turn it off for the query."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A table at a version that a query reads."""

    written: str
    """The table's name in the query."""
    snapshot: Snapshot
    states: RowStates | None = None
    """The states of rows in a period; None for the rows of the snapshot."""

    @property
    def what(self) -> str:
        return f"{self.written} at {self.snapshot.label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    text: str
    tokens: Sequence[Token]
    references: Sequence[tuple[Reference, int]]
    """The references to tables, each with the number of its source."""
    sources: Sequence[_Source]

    @classmethod
    def of(cls, text: str, tables: Mapping[str, VersionedTable]) -> _Query:
        if not isinstance(text, str):
            raise InvalidArgumentError(f"A query must be a str, got {type(text).__name__}. Write it in quotes.")
        if not isinstance(tables, Mapping):
            raise InvalidArgumentError(f"tables must be a dict of names and open tables, got {type(tables).__name__}.")
        parsed_tokens = tokens(text)
        sources: list[_Source] = []
        numbers: dict[tuple[object, ...], int] = {}
        numbered = []
        newest: dict[int, Snapshot] = {}
        for reference in references(text, parsed_tokens, tables, datetime.now(UTC)):
            table = tables[reference.table]
            if not hasattr(table, "at"):
                type_name = type(table).__name__
                raise InvalidArgumentError(
                    Message(
                        f"{reference.table} must be a table, got {type_name}. Open it with ",
                        Hint("open_table", {"path": ...}),
                        ".",
                    )
                )
            snapshot = _snapshot(table, reference, newest)
            has_own_schema = parts_of(snapshot).loaded.in_own_schema() is parts_of(snapshot).loaded
            period = reference.period
            key = (id(table), snapshot.branch, snapshot.version, has_own_schema, period)
            if key not in numbers:
                numbers[key] = len(sources)
                states = None if period is None else row_states(table, reference.table, period)
                sources.append(_Source(written=reference.table, snapshot=snapshot, states=states))
            numbered.append((reference, numbers[key]))
        return cls(text=text, tokens=parsed_tokens, references=numbered, sources=sources)

    @property
    def written(self) -> Mapping[int, str]:
        return {number: source.written for number, source in enumerate(self.sources)}

    @property
    def first(self) -> str:
        return next(token.keyword for token in self.tokens if token.kind not in ("space", "comment"))

    def rewritten(self, dialect: Dialect, named: Callable[[int], str]) -> RewrittenQuery:
        return rewrite(self.text, self.tokens, [(index, named(number)) for index, number in self.references], dialect)

    def failure(self, sentence: str, at: int | None) -> str:
        """Return the message of an error, with the user's names and position."""
        message = restore_names(sentence, self.written)
        message += "" if message.endswith("?") else "."
        return " ".join([f"The query fails{near(self.text, at)}: {message}", *self._renamed(sentence)])

    def _renamed(self, sentence: str) -> list[str]:
        """Return sentences on the new name of the unknown column in an engine's message."""
        match = _UNKNOWN_COLUMN.search(sentence)
        if match is None:
            return []
        column = next(part for part in match.groups() if part is not None)
        sentences: list[str | None] = []
        for source in self.sources:
            parts = parts_of(source.snapshot)
            with suppress(SnapshotExplorerError):
                sentences.append(renamed_column(parts.table_format, parts.loaded.version, column))
        return [f"{item}." for item in dict.fromkeys(sentences) if item is not None]


def _snapshot(table: VersionedTable, reference: Reference, newest: dict[int, Snapshot]) -> Snapshot:
    """Return the snapshot of a reference. All references to the newest version in a query use the same one."""
    ref = reference.ref
    if reference.number_as_text is not None and isinstance(ref, Version):
        tagged = history_of(table).tags().get(reference.number_as_text)
        if tagged is not None and tagged != ref.number:
            raise InvalidArgumentError(
                f"'{reference.number_as_text}' is a tag of {reference.table} as well as a version. Write "
                f"{ref.number} without quotes for the version, or '{Tag(name=reference.number_as_text)}' for the tag."
            )
    if isinstance(ref, Tag) and not ref.back and ref.name not in history_of(table).tags():
        # Engines accept the name of a branch there, too.
        ref = OfBranch(name=ref.name) if ref.name in history_of(table).branch_names() else ref
    if not isinstance(ref, Latest):
        return table.at(ref)
    if id(table) not in newest:
        newest[id(table)] = table.at(Latest())
    snapshot = newest[id(table)]
    if snapshot.version is None or not ref.back:
        return snapshot
    return table.at(Version(number=snapshot.version, back=ref.back))


def _relation(source: _Source) -> duckdb_sql.Relation:
    if source.states is not None:
        return source.states.relation
    snapshot = source.snapshot
    return duckdb_sql.Relation(
        what=source.what,
        schema=snapshot.arrow_schema,
        read=snapshot.to_arrow,
        count=snapshot.count,
        files=partial(_files, snapshot),
    )


def _files(snapshot: Snapshot, columns: Sequence[str], where: str | None) -> Sequence[QueryFile] | None:
    """Return the files of a scan, if DuckDB may read them itself."""
    scan = scan_of(snapshot.arrow_schema, columns, where)
    splits = parts_of(snapshot).loaded.version.plan(scan.condition).splits
    return duckdb_files.provable_files(parts_of(snapshot).loaded.version, splits, scan.columns, scan.condition)
