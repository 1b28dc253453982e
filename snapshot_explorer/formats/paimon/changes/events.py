"""Rows with their row kinds: changelog and delta files, the last event per key, and differences of two versions."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.group_ids import Codes
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.records import AFTER, BEFORE, DELETED, INSERTED, ROW_KIND, Split
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.files import deletion_vectors
from snapshot_explorer.formats.paimon.files.deletion_vectors import PaimonVector
from snapshot_explorer.formats.paimon.merge.key_codes import equality_codes, key_codes, order_codes
from snapshot_explorer.formats.paimon.merge.rules import Rules
from snapshot_explorer.formats.paimon.merge.steps import DELETE, RETRACTS
from snapshot_explorer.formats.paimon.scan.metadata_columns import SEQUENCE_NUMBER
from snapshot_explorer.formats.paimon.scan.plans import PaimonPlan
from snapshot_explorer.formats.paimon.scan.read import last_events, read, read_only, read_unmerged
from snapshot_explorer.storage import Storage

_KINDS = (INSERTED, BEFORE, AFTER, DELETED)
_BATCH_ROWS = 65_536

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonEvents:
    """Files whose rows are events. `Split.detail`; picklable."""

    plan: PaimonPlan

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal for splits with the same rows."""
        return "events", self.plan.identity


@dataclass(frozen=True, slots=True, kw_only=True)
class LastEvents:
    """A split of a version, read as the last event per key, deleted keys included."""

    split: Split

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal for splits with the same rows."""
        return "last events", self.split.identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The files of a bucket that only one of two versions has. `Split.detail`; picklable."""

    before: PaimonPlan | None
    after: PaimonPlan | None
    rules: Rules

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal for splits with the same rows."""
        plans = tuple(None if plan is None else plan.identity for plan in (self.before, self.after))
        return "difference", plans, repr(self.rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonVectorDifference:
    """The rows of a file that are in one deletion vector and not in another. `Split.detail`; picklable."""

    plan: PaimonPlan
    deleted_by: PaimonVector
    not_deleted_by: PaimonVector | None

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal for splits with the same rows."""
        return "vector difference", self.plan.identity, self.deleted_by, self.not_deleted_by


def read_events(
    storage: Storage, detail: PaimonEvents | LastEvents | Difference, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield rows with these columns, in this order. `rowkind` (+I, -U, +U, -D) is one of the available columns.

    Events are streamed in the order of files and rows. A difference loads all columns of both versions of its bucket
    into memory. It returns the rows of the later version first, then those that it lacks. Last events are merged in
    memory, and have `_SEQUENCE_NUMBER` in a table with a primary key.
    """
    match detail:
        case PaimonEvents(plan=plan):
            _check(plan, columns)
            yield from _events(storage, plan, columns)
        case LastEvents(split=split):
            yield from _last_events(storage, split, columns)
        case Difference():
            _check(detail.before or detail.after, columns)
            table = _difference(storage, detail).select(list(columns))
            yield from table.to_batches(max_chunksize=_BATCH_ROWS)


def _check(plan: PaimonPlan | None, columns: Sequence[str]) -> None:
    known = [ROW_KIND, *(field.name for field in plan.schema.fields)] if plan else []
    for name in columns:
        if name not in known:
            raise InvalidArgumentError(f"Unknown column {name!r}. Columns: {', '.join(known)}.")


def _events(storage: Storage, plan: PaimonPlan, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    names = [name for name in columns if name not in (ROW_KIND, SEQUENCE_NUMBER.name)]
    for file in plan.files:
        for batch, own in read_unmerged(storage, plan, file, names):
            if not columns:
                yield batch
                continue
            kinds = pa.repeat(pa.scalar(0, pa.int8()), batch.num_rows) if own is None else own.column("_VALUE_KIND")
            columns_by_name = {name: batch.column(name) for name in names} | {ROW_KIND: pa.array(_KINDS).take(kinds)}
            if own is not None:
                columns_by_name[SEQUENCE_NUMBER.name] = own.column(SEQUENCE_NUMBER.name)
            yield pa.RecordBatch.from_arrays([columns_by_name[name] for name in columns], names=list(columns))


def _last_events(storage: Storage, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the last event per key of a split: its merged rows, and deletes."""
    plan = split.detail
    if not isinstance(plan, PaimonPlan):
        raise InvalidArgumentError("The split is not from a Paimon table. Use a split of its own plan.")
    names = [name for name in columns if name not in (ROW_KIND, SEQUENCE_NUMBER.name)]
    if not plan.schema.primary_keys:
        for batch in read(storage, split, names):
            columns_by_name = {name: batch.column(name) for name in names}
            columns_by_name[ROW_KIND] = pa.array(_KINDS).take(pa.repeat(pa.scalar(0, pa.int8()), batch.num_rows))
            yield pa.RecordBatch.from_arrays([columns_by_name[name] for name in columns], names=list(columns))
    elif plan.merge is None:
        yield from _events(storage, plan, columns)
    else:
        merged, sequence = last_events(storage, plan, plan.merge, names or plan.merge.keys)
        if merged is not None:
            table = _with_kinds(merged.rows, merged.kinds)
            table = table.append_column(SEQUENCE_NUMBER.name, pa.array(sequence))
            yield from table.select(list(columns)).to_batches(max_chunksize=_BATCH_ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    rows: pa.Table
    kinds: npt.NDArray[np.int8]
    sequence: Codes

    @property
    def adds(self) -> Mask:
        return ~np.isin(self.kinds, RETRACTS)


def _difference(storage: Storage, detail: Difference) -> pa.Table:
    """Return the rows that differ between two versions, with their kinds.

    For a key only in the later version, its row; for a key in both with other values, the later row; for a key only in
    the earlier version, its row as -D.

    Source: paimon IncrementalDiffSplitRead.
    """
    before, after = (_state(storage, plan, detail.rules) for plan in (detail.before, detail.after))
    if before is None or after is None:
        only = before or after
        plan = detail.after or detail.before
        if only is None:
            names = [field.name for field in plan.schema.fields] if plan else []
            return pa.table({name: pa.nulls(0) for name in [ROW_KIND, *names]})
        return _with_kinds(only.rows, only.kinds) if before is None else _deleted(only, np.ones(len(only.kinds), bool))
    codes = key_codes(pa.concat_tables([before.rows, after.rows]), detail.rules.keys)
    old, new = codes[: before.rows.num_rows], codes[before.rows.num_rows :]
    _, at_old, at_new = np.intersect1d(old, new, assume_unique=True, return_indices=True)
    same = _equal(before.rows.take(pa.array(at_old)), after.rows.take(pa.array(at_new)))
    same &= before.adds[at_old] == after.adds[at_new]
    _check_order(before, after, at_old[~same], at_new[~same], detail)
    changed = np.ones(len(new), bool)
    changed[at_new[same]] = False
    is_missing = np.ones(len(old), bool)
    is_missing[at_old] = False
    later = _with_kinds(after.rows.filter(pa.array(changed)), after.kinds[changed])
    return pa.concat_tables([later, _deleted(before, is_missing)])


def _check_order(before: _State, after: _State, at_old: Codes, at_new: Codes, detail: Difference) -> None:
    """Raise if the later row of a changed key does not have the greater sequence fields and number.

    Paimon sorts the two rows by these, and returns a change only if the later one comes last.
    """
    old, new = before.rows.take(pa.array(at_old)), after.rows.take(pa.array(at_new))
    newer = after.sequence[at_new] > before.sequence[at_old]
    for name in reversed(detail.rules.sequence_fields):
        both = pa.chunked_array([*old.column(name).chunks, *new.column(name).chunks], old.schema.field(name).type)
        codes = order_codes(both, descending=detail.rules.descending)
        later_codes, earlier_codes = codes[len(at_old) :], codes[: len(at_old)]
        newer = (later_codes > earlier_codes) | ((later_codes == earlier_codes) & newer)
    if not newer.all():
        files = detail.after.files if detail.after else ()
        raise refusal(features.DIFFERENCE_OF_OLDER_ROWS, path=files[0].path)


def _deleted(state: _State, chosen: Mask) -> pa.Table:
    rows = state.rows.filter(pa.array(chosen & state.adds))
    return _with_kinds(rows, np.full(rows.num_rows, DELETE, np.int8))


def _with_kinds(rows: pa.Table, kinds: npt.NDArray[np.int8]) -> pa.Table:
    return rows.add_column(0, ROW_KIND, pa.array(_KINDS).take(pa.array(kinds)))


def _state(storage: Storage, plan: PaimonPlan | None, rules: Rules) -> _State | None:
    if plan is None:
        return None
    merged, sequence = last_events(storage, plan, rules, [field.name for field in plan.schema.fields])
    return None if merged is None else _State(rows=merged.rows, kinds=merged.kinds, sequence=sequence)


def _equal(left: pa.Table, right: pa.Table) -> Mask:
    """Return for each row whether all values are equal. Nulls are equal, NaN equals NaN, and 0 differs from -0."""
    same = np.ones(left.num_rows, bool)
    for item, other in zip(left.columns, right.columns, strict=True):
        same &= _same(item, other)
    return same


def _same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Mask:
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.fromiter((repr(item) == repr(other) for item, other in pairs), bool, len(left))
    codes = equality_codes(pa.chunked_array([*left.chunks, *right.chunks], left.type))
    return np.asarray(codes[: len(left)] == codes[len(left) :], bool)


def read_difference(
    storage: Storage, detail: PaimonVectorDifference, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a difference with these columns, in file order. Rows of kind -D and -U are left out."""
    (file,) = detail.plan.files
    gone = deletion_vectors.read_deleted_positions(storage, [(file.path, detail.deleted_by, file.rows)])[file.path]
    if detail.not_deleted_by is not None:
        before = deletion_vectors.read_deleted_positions(storage, [(file.path, detail.not_deleted_by, file.rows)])[
            file.path
        ]
        gone = np.setdiff1d(gone, before, assume_unique=True)
    if len(gone):
        yield from read_only(storage, detail.plan, columns, gone)
