"""Rows whose key occurs several times in a version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import check_names
from snapshot_explorer.analysis.diff.diff import memory_bytes
from snapshot_explorer.analysis.diff.row_matching import row_hashes
from snapshot_explorer.analysis.row_history import HistoryReader, RowHistoryRequest, equal_groups, history_by
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import UNREADABLE, InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.engines import local
from snapshot_explorer.engines.duckdb_ast import quote_identifier
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.history import column_names
from snapshot_explorer.results import Frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from snapshot_explorer.analysis.row_history import RowHistory
    from snapshot_explorer.formats import TableVersion
    from snapshot_explorer.history import History


def duplicates(version: TableVersion, key: Sequence[str] | None, where: str | None, *, title: str) -> Frame:
    """Return the keys that several rows of a version have, most frequent first; nulls are equal.

    Reads the columns of the key, of all rows that match, into memory. The frame has the number of rows, then the key.
    """
    schema = version.arrow_schema
    chosen = tuple(key or version.schema.primary_keys or schema.names)
    scan = scan_of(schema, chosen, where)
    nested = next((name for name in chosen if pa.types.is_nested(schema.field(name).type)), None)
    if nested is not None:
        others = [field.name for field in schema if not pa.types.is_nested(field.type)]
        raise InvalidArgumentError(
            Message(
                f"The values of {nested} are nested and cannot be counted. Name other columns as the key, such as ",
                Hint("", {"key": others[:1]}),
                ".",
            )
        )
    rows = local.to_arrow(version, version.plan(scan.condition).splits, scan)
    counts = row_counts(rows)
    several = counts.filter(pc.greater(counts["count_all"], 1)).sort_by([("count_all", "descending")])
    count = "rows" if "rows" not in chosen else "rows_"
    fields = [pa.field(count, pa.int64(), metadata={"unit": "rows", "meaning": "how many rows have this key"})]
    repeated = pa.table(several.columns, schema=pa.schema([*fields, *scan.columns]))
    more = (pc.sum(several["count_all"]).as_py() or 0) - len(several)
    names = f"the {', '.join(chosen)}" if len(chosen) < len(schema) else "all values"
    repeating = f"{more:,} of {pluralize(len(rows), 'row')}" if more else f"None of {pluralize(len(rows), 'row')}"
    notes: list[str] = [f"{repeating} repeat {names} of another one."]
    if more and len(chosen) == 1:
        name = quote_identifier(chosen[0])
        repeats = Hint("table.bisect", {"condition": f"count({name}) > count(distinct {name})"})
        notes.append(Message("The first version with such rows: ", repeats))
    return Frame(repeated, title=title, noun="repeated keys", notes=tuple(notes), of_rows=True)


def duplicate_key_versions(
    source: History,
    key: Sequence[str],
    between: Sequence[int] | None,
    *,
    engine: str | SparkSession | None = None,
) -> Frame:
    """Return the versions at which several rows begin to have the same key: ANOMALIES, ascending.

    From the row history of the columns of the key, of all versions from the first of `between` on. A null in a key of
    one column is not counted, and versions without one of the columns have no key.

    Args:
        engine: Reads the rows; as in `history_by`.
    """
    versions = source.versions(min(between) if between else None, None)
    newest = source.format.version(versions[-1])
    names = check_names(key, newest.arrow_schema.names, "key") or ()
    reader = HistoryReader(source, RowHistoryRequest(columns=names), versions, are_required=False)
    known: Sequence[int] = ()
    is_doubled = np.zeros(0, np.bool_)
    try:
        history = history_by(engine, reader, memory_bytes(None))
        known, is_doubled = history.plan.versions, _has_duplicates(history, names)
    except UNREADABLE:
        if not reader.nothing_is_readable:
            raise
    called = column_names(source.format, [start for start, _ in reader.affected.schemas], newest, names)
    is_doubled &= np.array([None not in called.at(number).values() for number in known], np.bool_)
    begins = np.flatnonzero(is_doubled & ~np.concatenate([[False], is_doubled[:-1]])[: len(is_doubled)]).tolist()
    shown = ", ".join(map(sanitize, key))
    rule = f"several rows have the same {shown}"
    columns = {
        "version": pa.array([known[index] for index in begins], pa.int64()),
        "committed_at": [reader.affected.lifetimes.time_of(known[index]) for index in begins],
        "measure": "duplicates",
        "column": shown,
        "value": "yes",
        "rule": [rule if index else f"{rule}, already at the first version that was read" for index in begins],
    }
    missed = len(versions) - len(known)
    notes = (
        (f"{pluralize(missed, 'version')} of {len(versions):,} could not be read for duplicates.",) if missed else ()
    )
    return Frame(frames.table_of(frames.ANOMALIES, columns), title="", noun="anomalies", notes=notes)


def _has_duplicates(history: RowHistory, key: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return for each version of a history whether several rows have the same key."""
    states = history.to_arrow().combine_chunks()
    if len(key) == 1:
        states = states.filter(states.column(0).is_valid())
    count = len(history.plan.versions)
    from_version, to_version = (np.asarray(states.column(len(key) + side).fill_null(-1)) for side in (0, 1))
    numbers = np.asarray(history.plan.versions, np.int64)
    first = np.searchsorted(numbers, from_version)
    last = np.where(to_version < 0, count, np.searchsorted(numbers, to_version))
    keys = states.select(list(range(len(key))))
    groups = equal_groups(keys, row_hashes([single_chunk(column) for column in keys.columns], len(keys)))
    ranks = np.unique(groups, return_inverse=True)[1] * (count + 1)
    order = np.lexsort((first, ranks))
    ranks, first, last = ranks[order], first[order], last[order]
    # The last position up to which an earlier state of the same key lasts; states of other keys end before their rank.
    until = np.maximum.accumulate(np.concatenate([[-1], (ranks + last)[:-1]]))[: len(ranks)] - ranks
    end = np.minimum(last, until)
    is_shared = end > first
    changes = np.zeros(count + 1, np.int64)
    np.add.at(changes, first[is_shared], 1)
    np.add.at(changes, end[is_shared], -1)
    return np.asarray(np.cumsum(changes)[:-1] > 0, np.bool_)


def row_counts(rows: pa.Table) -> pa.Table:
    """Return the number of each distinct row, in `count_all`, and the rows, renamed. Nulls are equal."""
    # Names that the aggregation cannot interpret, such as a path that begins with a dot.
    columns = [f"c{index}" for index in range(rows.num_columns)]
    counts = rows.rename_columns(columns).group_by(columns, use_threads=False).aggregate([([], "count_all")])
    return counts.select(["count_all", *columns])
