"""Conditions on the metadata of versions: rows, files, bytes, nulls and schema. Evaluated for all versions at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.analysis.profile.column_numbers import lacking_columns, ranges_of, rows_note, rows_over
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.engines import sql
from snapshot_explorer.engines.conditions import names_of, parse_expression, unknown_column
from snapshot_explorer.formats.unread_versions import Reasons
from snapshot_explorer.history import History
from snapshot_explorer.history.lifetimes import FileLifetimes, read_statistics

QUALIFIER = "metadata"
"""The prefix of a name that a column of the table also has: `metadata.rows`."""
_TOTALS = ("version", "committed_at", "rows", "files", "bytes")
_OF_SCHEMA = ("columns", "types")
_OF_COLUMNS = ("null_count", "null_rate")
NAMES = (*_TOTALS, *_OF_SCHEMA, *_OF_COLUMNS)
"""The names that a condition on metadata can contain."""


def is_on_metadata(text: str, columns: Sequence[str]) -> bool:
    """Return whether a condition names metadata rather than columns of the table.

    A name that is both refers to the column, unless `metadata.` precedes it.
    """
    known = {name.lower() for name in columns}
    named = list(names_of(parse_expression(text)))
    on_metadata = [
        parts for parts in named if parts[0].lower() not in known and parts[0].lower() in (*NAMES, QUALIFIER)
    ]
    if on_metadata and len(on_metadata) < len(named):
        other = next(parts for parts in named if parts not in on_metadata)
        if other[0].lower() not in known:
            raise unknown_column(".".join(other), columns, in_condition=text)
        raise InvalidArgumentError(
            f"The condition {text!r} names metadata, {'.'.join(on_metadata[0])}, and a column, {'.'.join(other)}. Use "
            f"one kind of them. Metadata: {', '.join(NAMES)}."
        )
    return bool(on_metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataCondition:
    """A condition on the metadata of each version; made by `metadata_condition`."""

    text: str
    """The condition as SQL."""
    columns: pa.Schema
    """The columns of the table that the condition may name after `null_count` and `null_rate`."""
    names: tuple[str, ...]
    """The metadata that the condition names, and `version`."""
    named: frozenset[str]
    """The columns whose null counts the condition names."""

    def holds(self, source: History, versions: Sequence[int]) -> tuple[list[bool | None], Reasons]:
        """Return for each version whether the condition holds; None if its files or deciding numbers are unknown.

        Also returns which versions cannot be read, and why.

        One pass over the log, as `lifetimes`; with statistics if the condition names null counts.
        """
        lifetimes, more, lacking = source.lifetimes(), {}, {}
        if self.named:
            names = sorted(self.named)
            statistics = read_statistics(source.format, names, versions[-1])
            lifetimes = statistics.lifetimes
            ranges = ranges_of(statistics)
            more = {name: numbers.null_count for name, numbers in ranges.numbers(names)}
            lacking = lacking_columns(source, statistics, source.format.version(versions[-1]), names)
        requested, known = np.asarray(versions, np.int64), np.asarray(lifetimes.versions, np.int64)
        is_known = np.isin(requested, known)
        indices = pa.array(np.searchsorted(known, requested[is_known]))

        def read(columns: Sequence[str], _where: str | None, _limit: int | None) -> pa.Table:
            values = self._values(source, lifetimes, columns, more)
            rows = pa.table([values[name] for name in columns], schema=self._schema(columns))
            return rows.take(indices)

        answers = self._answers(read, len(indices))
        # SQL returns null if a number that it needs is unknown, but also for a rate of zero rows.
        unknown = self._unknown(self._values(source, lifetimes, (), more), more, lacking)[indices.to_numpy()].tolist()
        kept = (
            False if answer is None and not is_open else answer
            for answer, is_open in zip(answers, unknown, strict=True)
        )
        return [next(kept) if is_in_metadata else None for is_in_metadata in is_known.tolist()], lifetimes.unread

    def _unknown(
        self,
        totals: Mapping[str, pa.Array | pa.ChunkedArray],
        nulls: Mapping[str, pa.Array],
        lacking: Mapping[str, Sequence[tuple[int, int]]],
    ) -> npt.NDArray[np.bool_]:
        """Return the versions at which a named number is unknown; nulls only at versions that have the column."""
        result = np.zeros(len(totals["version"]), np.bool_)
        needed = {*self.names, *(["rows"] if "null_rate" in self.names else [])}
        for name in needed & set(_TOTALS):
            result |= totals[name].is_null().to_numpy(zero_copy_only=False)
        for name, known in nulls.items():
            of_column = known.is_null().to_numpy(zero_copy_only=False).copy()
            for begin, end in lacking[name]:
                of_column[begin:end] = False
            result |= of_column
        return result

    def notes(self, source: History, versions: Sequence[int]) -> tuple[str, ...]:
        """Return a sentence on the rows that are counted, if these are not the rows of the table."""
        counts_rows = {"rows", *_OF_COLUMNS} & set(self.names)
        return rows_note(source.format, versions) if counts_rows else ()

    def check(self) -> None:
        """Raise InvalidArgumentError if the condition does not fit. Reads nothing."""
        self._answers(lambda columns, _where, _limit: self._schema(columns).empty_table(), 0)

    def _answers(self, read: sql.Read, count: int) -> list[bool | None]:
        relation = sql.Relation(what="the metadata", schema=self._schema(self.names), read=read, count=lambda: count)
        expression = f"CAST((\n{self.text}\n) AS BOOLEAN)"
        results = sql.run(
            f"SELECT version, {expression} AS holds FROM {QUALIFIER}",  # noqa: S608 - one expression
            {QUALIFIER: relation},
            lambda sentence, _: (
                f"The condition {self.text!r} does not fit the metadata of versions: {sentence.rstrip('.')}. "
                f"It is evaluated for each version, on {', '.join(NAMES)}."
            ),
            whole=True,
        )
        holds: list[bool | None] = results.sort_by("version").column("holds").to_pylist()
        return holds

    def _schema(self, names: Sequence[str]) -> pa.Schema:
        kinds = {
            "version": pa.int64(),
            "committed_at": frames.UTC_MILLIS,
            "columns": pa.list_(pa.string()),
            "types": pa.map_(pa.string(), pa.string()),
            "null_count": pa.struct([(name, pa.int64()) for name in self.columns.names]),
            "null_rate": pa.struct([(name, pa.float64()) for name in self.columns.names]),
        }
        return pa.schema([pa.field(name, kinds.get(name, pa.int64())) for name in names])

    def _values(
        self, source: History, lifetimes: FileLifetimes, names: Sequence[str], nulls: Mapping[str, pa.Array]
    ) -> dict[str, pa.Array | pa.ChunkedArray]:
        totals = lifetimes.totals()
        values = {name: totals[name] for name in totals.column_names} | {"bytes": totals["size_bytes"]}
        values["rows"] = rows_over(lifetimes)
        if set(_OF_SCHEMA) & set(names):
            schemas = source.schemas(lifetimes.versions)
            values["columns"] = pa.array([[column.name for column in schema.columns] for schema in schemas])
            values["types"] = pa.array(
                [[(column.name, column.type) for column in schema.columns] for schema in schemas],
                pa.map_(pa.string(), pa.string()),
            )
        for name in set(_OF_COLUMNS) & set(names):
            struct = self._schema([name]).field(0).type
            of_columns = [self._of_column(field, name, nulls, values["rows"]) for field in struct]
            values[name] = pa.StructArray.from_arrays(of_columns, fields=list(struct))
        return values

    def _of_column(self, field: pa.Field, name: str, nulls: Mapping[str, pa.Array], rows: pa.Array) -> pa.Array:
        if field.name not in self.named:
            return pa.nulls(len(rows), field.type)
        if name == "null_count":
            return nulls[field.name]
        divisor = pc.if_else(pc.equal(rows, 0), pa.scalar(None, pa.int64()), rows)
        return pc.divide(nulls[field.name].cast(pa.float64()), divisor.cast(pa.float64()))


def metadata_condition(text: str, columns: pa.Schema) -> MetadataCondition:
    """Return the condition that SQL text states on the metadata of a version. Reads nothing."""
    named: set[str] = set()
    metadata = {"version"}
    for parts in names_of(parse_expression(text)):
        name, *rest = parts[1:] if parts[0].lower() == QUALIFIER and len(parts) > 1 else parts
        metadata.add(name.lower())
        if name.lower() in _OF_COLUMNS:
            alike = [column for column in columns.names if rest and column.lower() == rest[0].lower()]
            if rest and not alike:
                raise unknown_column(rest[0], columns.names, in_condition=text)
            named |= {rest[0]} & set(alike) or set(alike) if rest else set(columns.names)
    names = tuple(name for name in NAMES if name in metadata)
    result = MetadataCondition(text=text, columns=columns, names=names, named=frozenset(named))
    result.check()
    return result
