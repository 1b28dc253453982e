"""Merges rows of equal key in overlapping files of a primary-key table.

The implementation is columnar: rows are grouped by sorting key codes, and the merge engine processes only keys with
several rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.group_ids import Codes
from snapshot_explorer.formats.paimon.merge.folding import fold_column
from snapshot_explorer.formats.paimon.merge.key_codes import key_codes, order_codes
from snapshot_explorer.formats.paimon.merge.rules import Aggregation, Deduplicate, FirstRow, PartialUpdate, Rules
from snapshot_explorer.formats.paimon.merge.steps import (
    DELETE,
    KeyGroups,
    Steps,
    aggregation_steps,
    are_adds,
    group_starts,
    partial_update_steps,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSequences:
    """The sequence numbers of files, in the order in which their rows were read."""

    rows: Codes
    """The number of rows read from each file."""
    lowest: Codes
    highest: Codes


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRows:
    """A row per key, deleted keys included."""

    rows: pa.Table
    kinds: npt.NDArray[np.int8]
    """The kind of each row: the input row's kind, or +I or -D if it was merged from several rows."""
    input_rows: Codes
    """The input row that defines the position of each row: the newest of its key, or (first-row) the oldest."""


def columns_needed(rules: Rules, names: Sequence[str]) -> list[str]:
    """Return the columns to read to merge these columns."""
    extra = [*rules.keys, *rules.sequence_fields]
    if isinstance(rules.engine, PartialUpdate):
        for group in rules.engine.groups:
            if group.removes or not set(names).isdisjoint(group.fields + group.order):
                extra.extend(group.order)
    return list(dict.fromkeys([*names, *extra]))


def merge(
    rows: pa.Table,
    names: Sequence[str],
    rules: Rules,
    *,
    sequence: Codes,
    kinds: npt.NDArray[np.int8],
    levels: npt.NDArray[np.int32],
) -> pa.Table:
    """Return the rows after merging, with the requested columns. All rows are in memory at once.

    The row of a key has the position of its newest (first-row: oldest) input row. A key with a single row skips the
    engine: the row is returned unchanged, or dropped if it is a retract.

    Args:
        rows: The columns of `columns_needed`, in the read schema.
        names: The requested columns, at least one.
        sequence: The `_SEQUENCE_NUMBER` of each row.
        kinds: The `_VALUE_KIND` of each row.
        levels: The level of each row's file.

    Raises:
        CorruptBytesError: The rows cannot be merged. Paimon also fails.

    Source: paimon SortMergeReader, ReducerMergeFunctionWrapper, LookupMergeFunction.
    """
    adds = are_adds(kinds)
    by_key = _by_key(rows, rules)
    if takes_newest(rules):
        replaced = _replaced_rows(by_key, rules, adds, lowest=sequence, highest=sequence)
        if replaced is not None:
            return _drop_replaced(rows.select(list(names)), adds, replaced)
    unique_rows, key_groups = _group(rows, by_key, rules, sequence, kinds, levels)
    unique_rows = unique_rows[adds[unique_rows]]
    match rules.engine:
        case Deduplicate() | FirstRow():
            chosen = _chosen(key_groups, rules)
            kept = np.zeros(len(adds), bool)
            kept[unique_rows] = True
            kept[chosen[adds[chosen]]] = True
            return rows.select(list(names)).filter(pa.array(kept))  # copies runs of rows, where take copies each
        case PartialUpdate() | Aggregation() as engine:
            steps = _steps(engine, rows, key_groups, names, rules)
            return _fold(rows.select(list(names)), unique_rows, key_groups, steps, steps.left)[0]


def takes_newest(rules: Rules) -> bool:
    """Return whether the row of a key is the one with the highest sequence number, as `merge_by_files` assumes."""
    return isinstance(rules.engine, Deduplicate) and not rules.sequence_fields and not rules.lookup


def merge_by_files(
    rows: pa.Table, names: Sequence[str], rules: Rules, *, kinds: npt.NDArray[np.int8], files: FileSequences
) -> pa.Table | None:
    """Return the result of `merge` by the sequence numbers of files; None if they do not determine it.

    They do if all rows of a key are in different files, whose ranges of sequence numbers do not overlap. The sequence
    numbers of rows are not needed.
    """
    by_age = np.argsort(files.highest, kind="stable")
    order = None
    if (np.diff(by_age) < 0).any():
        ends = np.cumsum(files.rows)
        order = np.concatenate([np.arange(ends[file] - files.rows[file], ends[file]) for file in by_age])
    adds = are_adds(kinds)
    lowest, highest = np.repeat(files.lowest, files.rows), np.repeat(files.highest, files.rows)
    replaced = _replaced_rows(_by_key(rows, rules, order), rules, adds, lowest=lowest, highest=highest)
    return None if replaced is None else _drop_replaced(rows.select(list(names)), adds, replaced)


def merge_all(
    rows: pa.Table,
    names: Sequence[str],
    rules: Rules,
    *,
    sequence: Codes,
    kinds: npt.NDArray[np.int8],
    levels: npt.NDArray[np.int32],
) -> MergedRows:
    """Return a row per key, deleted keys included, each with its kind. Arguments and errors as `merge`.

    Source: paimon MergeFileSplitRead.forceKeepDelete.
    """
    unique_rows, key_groups = _group(rows, _by_key(rows, rules), rules, sequence, kinds, levels)
    match rules.engine:
        case Deduplicate() | FirstRow():
            indices = np.sort(np.concatenate([unique_rows, _chosen(key_groups, rules)]))
            return MergedRows(
                rows=rows.select(list(names)).take(pa.array(indices)), kinds=kinds[indices], input_rows=indices
            )
        case PartialUpdate() | Aggregation() as engine:
            steps = _steps(engine, rows, key_groups, names, rules)
            made, order = _fold(
                rows.select(list(names)), unique_rows, key_groups, steps, np.ones(len(steps.left), bool)
            )
            indices = np.concatenate([unique_rows, key_groups.row_numbers[key_groups.ends]])[order]
            ends = np.where(steps.left, np.int8(0), np.int8(DELETE))
            return MergedRows(rows=made, kinds=np.concatenate([kinds[unique_rows], ends])[order], input_rows=indices)


def _steps(
    engine: PartialUpdate | Aggregation, rows: pa.Table, key_groups: KeyGroups, names: Sequence[str], rules: Rules
) -> Steps:
    if isinstance(engine, PartialUpdate):
        return partial_update_steps(engine, rows, key_groups, names, ignore_delete=rules.ignore_delete)
    return aggregation_steps(engine, rows, key_groups, names)


def _fold(
    rows: pa.Table, unique_rows: Codes, key_groups: KeyGroups, steps: Steps, left: npt.NDArray[np.bool_]
) -> tuple[pa.Table, Codes]:
    """Return the unique rows and the merged rows, in the order of their newest input rows.

    Also returns the index of each result among all these rows, unique rows first.
    """
    newest = key_groups.row_numbers[key_groups.ends][left]
    order = np.argsort(np.concatenate([unique_rows, newest]), kind="stable")
    columns = []
    for name in rows.column_names:
        column = rows.column(name)
        try:
            made = fold_column(column.take(pa.array(key_groups.row_numbers)), key_groups, steps.columns[name])
        except CorruptBytesError as error:
            raise CorruptBytesError(f"column {name!r}: {error}") from error
        made = made.filter(pa.array(left))
        both = pa.chunked_array([*column.take(pa.array(unique_rows)).chunks, made], column.type)
        columns.append(both.take(pa.array(order)))
    return pa.table(columns, schema=rows.schema), order


@dataclass(frozen=True, slots=True, kw_only=True)
class _ByKey:
    """The rows ordered by key. Rows of the same key are in the order of the files."""

    order: Codes
    codes: Codes
    """The code of each row's key, ascending."""


def _by_key(rows: pa.Table, rules: Rules, order: Codes | None = None) -> _ByKey:
    """Return the rows ordered by key.

    Args:
        order: An order of all rows, used for rows of the same key; None for the order of the table.
    """
    codes = key_codes(rows, rules.keys)
    if order is not None:
        codes = codes[order]
    by_code = np.argsort(codes, kind="stable")  # files are sorted by key, which makes a stable sort fast
    return _ByKey(order=by_code if order is None else order[by_code], codes=codes[by_code])


def _replaced_rows(
    by_key: _ByKey, rules: Rules, adds: npt.NDArray[np.bool_], *, lowest: Codes, highest: Codes
) -> Codes | None:
    """Return the rows that a newer row of their key replaces; None if sequence number bounds do not determine it.

    The newest row of a key is its last one if each row has a greater sequence number than the previous row.
    """
    again = np.flatnonzero(by_key.codes[1:] == by_key.codes[:-1])
    older, newer = by_key.order[again], by_key.order[again + 1]
    if rules.ignore_delete and not (adds[older].all() and adds[newer].all()):
        return None
    return older if (lowest[newer] > highest[older]).all() else None


def _drop_replaced(rows: pa.Table, adds: npt.NDArray[np.bool_], replaced: Codes) -> pa.Table:
    kept = adds.copy()
    kept[replaced] = False
    return rows.filter(pa.array(kept))


def _group(
    rows: pa.Table,
    by_key: _ByKey,
    rules: Rules,
    sequence: Codes,
    kinds: npt.NDArray[np.int8],
    levels: npt.NDArray[np.int32],
) -> tuple[Codes, KeyGroups]:
    """Return the rows with a unique key, and the groups of the other rows, oldest first within a key."""
    order = by_key.order
    starts = group_starts(by_key.codes)
    sizes = np.diff(np.append(starts, len(order)))
    unique_rows = order[starts[sizes == 1]]
    indices = order[np.repeat(sizes > 1, sizes)]
    groups = np.repeat(np.arange(int(np.count_nonzero(sizes > 1))), sizes[sizes > 1])
    if rules.lookup and not isinstance(rules.engine, FirstRow):
        indices, groups = _lowest_levels(indices, groups, levels[indices])
    adds = are_adds(kinds)
    fields = [
        order_codes(rows.column(name).take(pa.array(indices)), descending=rules.descending)
        for name in rules.sequence_fields
    ]
    indices = indices[_by_age(groups, fields, sequence[indices], adds[indices])]
    return unique_rows, KeyGroups(row_numbers=indices, groups=groups, kinds=kinds[indices])


def _by_age(groups: Codes, fields: Sequence[Codes], sequence: Codes, adds: npt.NDArray[np.bool_]) -> Codes:
    """Return the order of rows by group, fields, sequence and kind, retracts first."""
    if len(groups) and not fields:
        minimum, maximum = int(sequence.min()), int(sequence.max())
        span = 2 * (maximum - minimum + 1)
        if span * (int(groups[-1]) + 1) < np.iinfo(np.int64).max:
            # One number per row is compared once, and rows that are nearly in order are sorted fast.
            numbers = groups * span + 2 * (sequence - minimum) + adds
            if (numbers[1:] >= numbers[:-1]).all():
                return np.arange(len(groups))
            return np.argsort(numbers, kind="stable")
    return np.lexsort((adds, sequence, *reversed(fields), groups))


def _lowest_levels(indices: Codes, groups: Codes, levels: npt.NDArray[np.int32]) -> tuple[Codes, Codes]:
    """Return the rows of level 0 and, of each key's other rows, the rows of the lowest level.

    In a table with lookup, a file above level 0 was merged with all levels below it when it was written.
    """
    upper = np.where(levels > 0, levels, np.iinfo(np.int32).max)
    starts = group_starts(groups)
    lowest = np.minimum.reduceat(upper, starts)[groups] if len(starts) else upper
    kept = (levels <= 0) | (levels == lowest)
    return indices[kept], groups[kept]


def _chosen(key_groups: KeyGroups, rules: Rules) -> Codes:
    return _newest(key_groups, rules) if isinstance(rules.engine, Deduplicate) else _oldest(key_groups, rules)


def _newest(key_groups: KeyGroups, rules: Rules) -> Codes:
    """Return the newest row of each key, whatever its kind.

    Source: paimon DeduplicateMergeFunction.
    """
    is_counted = key_groups.adds | (not rules.ignore_delete)
    indices, groups = key_groups.row_numbers[is_counted], key_groups.groups[is_counted]
    last = np.append(groups[1:] != groups[:-1], np.ones(min(len(groups), 1), bool))
    result: Codes = indices[last]
    return result


def _oldest(key_groups: KeyGroups, rules: Rules) -> Codes:
    """Return the oldest row of each key.

    Source: paimon FirstRowMergeFunction.
    """
    if not rules.ignore_delete and not key_groups.adds.all():
        raise CorruptBytesError(
            "a table with merge-engine=first-row contains rows of kind -U or -D, and its option ignore-delete is off"
        )
    indices, groups = key_groups.row_numbers[key_groups.adds], key_groups.groups[key_groups.adds]
    return indices[group_starts(groups)]
