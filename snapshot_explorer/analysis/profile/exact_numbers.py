"""The numbers of columns at versions, from rows. Each file, or group of files that are merged, is read once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import AlignedColumns
from snapshot_explorer.analysis.profile.column_numbers import LACKING, UNORDERED, FileRanges, is_sortable
from snapshot_explorer.analysis.row_history import collected_from
from snapshot_explorer.analysis.row_history.affected_versions import affected_versions
from snapshot_explorer.analysis.row_history.planning import PlannedSplits, plan_splits
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import UNREADABLE
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.records import Bounds
from snapshot_explorer.engines.collations import collation_of
from snapshot_explorer.history import column_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from snapshot_explorer.analysis.row_history import SplitHistory
    from snapshot_explorer.formats import TableVersion
    from snapshot_explorer.history import History
    from snapshot_explorer.history.renames import ColumnNames


def read_ranges(
    source: History,
    versions: Sequence[int],
    reference: TableVersion,
    columns: Sequence[str],
    spark: SparkSession | None = None,
) -> tuple[FileRanges, Mapping[str, list[str | None]]]:
    """Return ranges of positions of the splits of the row history with exact statistics, and why numbers are unknown.

    Args:
        reference: The version whose schema names the columns.
        spark: The session whose executors read the rows; None for this machine.

    Returns:
        The ranges, and for each column and version why its numbers are unknown, None if they are exact.
    """
    affected = affected_versions(source.format, None, reference.number or 0, last=versions[-1])
    lifetimes = affected.lifetimes
    starts = [start for start, _ in affected.schemas]
    names = column_names(source.format, starts or [versions[0]], reference, columns)
    index_of = {number: index for index, number in enumerate(versions)}
    positions = [position for position, number in enumerate(lifetimes.versions) if number in index_of]
    planned = PlannedSplits()
    if positions:
        planned = plan_splits(source, affected, positions, partial(_columns_of, names, reference, columns), None)
    splits = planned.at(positions)
    fields = [reference.arrow_schema.field(name) for name in columns]
    rows, reasons = _read(splits, fields, spark)
    # The positions of splits count the versions whose files are known; all others are unknown.
    places = [index_of[lifetimes.versions[position]] for position in positions]
    unread: dict[int, object] = dict.fromkeys(set(range(len(versions))).difference(places), _NO_FILES)
    unread |= {index_of[number]: error for number, error in lifetimes.unread.items() if number in index_of}
    unread |= {index_of[lifetimes.versions[position]]: error for position, error in planned.unreadable.items()}
    for number, reason in reversed(reasons.items()):  # the first one is named
        for state in splits[number].states:
            unread |= dict.fromkeys(places[state.first : state.last], reason)
    numbered = zip(*(rows[name].to_pylist() for name in ("split", "state")), strict=True)
    states = [splits[number].states[index] for number, index in numbered]
    first = [places[state.first] for state in states] + list(unread)
    last = [places[state.last - 1] + 1 for state in states] + [index + 1 for index in unread]
    unknown = pa.concat_tables([rows.schema.empty_table(), *[_numbers_of(-1, -1, None, {}, fields)] * len(unread)])
    ranges = _ranges(pa.concat_tables([rows, unknown]), fields, (first, last), len(versions))
    called = [names.at(number) for number in versions]
    return ranges, {field.name: _whys(field, [own[field.name] for own in called], unread) for field in fields}


_NO_FILES = "its files are unknown"
_AT_ONCE = 8
"""Splits of a remote table that are read at the same time."""


def _columns_of(
    names: ColumnNames, reference: TableVersion, columns: Sequence[str], version: TableVersion
) -> AlignedColumns:
    """Return the columns as a version has them, whatever their types there: values are converted one by one."""
    own = names.at(version.number or 0)
    return AlignedColumns(
        schema=pa.schema([reference.arrow_schema.field(name) for name in columns]),
        names_a={name: own_name for name in columns if (own_name := own[name]) is not None},
        only_a=(),
        ids_a=version.field_ids,
        ids_b=reference.field_ids,
        primary_key=(),
    )


def _whys(field: pa.Field, names: Sequence[str | None], unread: Mapping[int, object]) -> list[str | None]:
    """Return why numbers are unknown at each version, in which the field has a name, or none."""
    unordered = UNORDERED if collation_of(field) is not None else None
    return [
        f"cannot be read: {unread[index]}" if index in unread else LACKING if name is None else unordered
        for index, name in enumerate(names)
    ]


def _read(
    splits: Sequence[SplitHistory], fields: Sequence[pa.Field], spark: SparkSession | None
) -> tuple[pa.Table, dict[int, str]]:
    """Return the numbers of each state of each split, and why splits cannot be read."""
    numbered = list(enumerate(splits))
    empty = _numbers_of(0, 0, None, {}, fields).slice(0, 0)
    if spark is None:
        with step("Reading splits", total=len(splits)) as reading:
            parts: list[pa.Table] = []
            for begin in range(0, len(splits), _AT_ONCE):
                together = numbered[begin : begin + _AT_ONCE]
                storage = splits[begin].version.storage
                parts += storage.together(*(partial(_numbers_in, fields, [item]) for item in together))
                reading.advance(len(together))
    else:
        parts = collected_from(spark, partial(_numbers_in, fields), numbered, lambda item: item[1].split)
    rows = pa.concat_tables([empty, *parts])
    failed = rows.filter(rows["reason"].is_valid())
    reasons = dict(zip(failed["split"].to_pylist(), failed["reason"].to_pylist(), strict=True))
    return rows.filter(rows["reason"].is_null()), reasons


def _numbers_in(fields: Sequence[pa.Field], numbered: Sequence[tuple[int, SplitHistory]]) -> pa.Table:
    """Return the numbers of each state of numbered splits, at least one. Runs on executors too."""
    return pa.concat_tables([part for number, item in numbered for part in _of_split(number, item, fields)])


def _of_split(number: int, item: SplitHistory, fields: Sequence[pa.Field]) -> list[pa.Table]:
    names = item.columns.names_a
    try:
        batches = list(item.version.read(item.split, list(dict.fromkeys(names.values()))))
        count = sum(batch.num_rows for batch in batches)
        types = {name: item.version.arrow_schema.field(own).type for name, own in names.items()}
        rows = {
            name: pa.chunked_array([batch.column(own) for batch in batches], None if batches else types[name])
            for name, own in names.items()
        }
        result = []
        for index, state in enumerate(item.states):
            if state.deletes is None:
                result.append(_numbers_of(number, index, count, rows, fields))
                continue
            (deleted,) = item.version.native_files.deleted_positions([state.deletes], [count])
            is_live = ~np.isin(np.arange(count), deleted)
            live = {name: values.filter(pa.array(is_live)) for name, values in rows.items()}
            result.append(_numbers_of(number, index, int(is_live.sum()), live, fields))
    except UNREADABLE as error:
        return [_numbers_of(number, 0, None, {}, fields, reason=str(error))]
    return result


def _numbers_of(
    split: int,
    state: int,
    rows: int | None,
    columns: Mapping[str, pa.ChunkedArray],
    fields: Sequence[pa.Field],
    *,
    reason: str | None = None,
) -> pa.Table:
    """Return the numbers of rows as one row. The columns of a field end in its position, such as `min0`."""
    head = {
        "split": pa.array([split], pa.int64()),
        "state": pa.array([state], pa.int64()),
        "rows": pa.array([rows], pa.int64()),
        "reason": pa.array([reason], pa.string()),
    }
    numbers = {
        f"{part}{index}": values
        for index, field in enumerate(fields)
        for part, values in (
            _numbers(columns[field.name], field) if field.name in columns else _row(field, None, None, None)
        ).items()
    }
    return pa.table(head | numbers)


def _ranges(
    rows: pa.Table, fields: Sequence[pa.Field], ends: tuple[Sequence[int], Sequence[int]], count: int
) -> FileRanges:
    lower, upper, nulls, valueless = (
        pa.table({field.name: rows[f"{part}{index}"] for index, field in enumerate(fields)})
        for part in ("min", "max", "nulls", "valueless")
    )
    live = single_chunk(rows["rows"])
    first, last = (np.asarray(positions, np.int64) for positions in ends)
    return FileRanges(
        first=first,
        last=last,
        count=count,
        bounds=Bounds(lower=lower, upper=upper, null_count=nulls, rows=live),
        deleted=pa.nulls(len(rows), pa.int64()),
        valueless=valueless,
    )


def _row(
    field: pa.Field, nulls: int | None, minimum: pa.Scalar | None, maximum: pa.Scalar | None
) -> dict[str, pa.Array]:
    def column(value: pa.Scalar | None) -> pa.Array:
        return pa.nulls(1, field.type) if value is None else pa.repeat(value, 1)

    is_valueless = minimum is not None and not minimum.is_valid
    return {
        "nulls": pa.array([nulls], pa.int64()),
        "min": column(minimum),
        "max": column(maximum),
        "valueless": pa.array([is_valueless]),
    }


def _numbers(column: pa.ChunkedArray, field: pa.Field) -> dict[str, pa.Array]:
    """Return the numbers of a column in some files; unknown if the field's type cannot represent its values."""
    nulls = column.null_count
    if column.type != field.type:
        try:
            column = column.cast(field.type)
        except pa.ArrowException:
            return _row(field, nulls, None, None)
    if pa.types.is_floating(field.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, field.type), column)
    if not is_sortable(field.type) and not pa.types.is_boolean(field.type):
        return _row(field, nulls, None, None)
    ends = pc.min_max(column)
    return _row(field, nulls, ends["min"], ends["max"])
