"""Rows with their kinds: what changelog and delta files hold, unmerged, and the difference of two states."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.errors import BadReferenceError, UnsupportedFeatureError
from snapshot_explorer.formats.paimon.key_codes import equality_codes, key_codes
from snapshot_explorer.formats.paimon.merge import RETRACTS, Rules, deduplicate
from snapshot_explorer.formats.paimon.plans import Plan
from snapshot_explorer.formats.paimon.read import unmerged
from snapshot_explorer.storage import Storage

ROW_KIND = "rowkind"
_KINDS = pa.array(["+I", "-U", "+U", "-D"])
_DELETE = 3
_BATCH_ROWS = 65_536

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Files whose rows are events. `Split.detail`; picklable."""

    plan: Plan
    """The files, and how they are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The files of a bucket that one state has and the other has not. `Split.detail`; picklable."""

    before: Plan | None
    """The files of the earlier state alone."""
    after: Plan | None
    """The files of the later state alone."""
    rules: Rules
    """How rows of one key are merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """The newest row of each key, deleted ones included."""

    rows: pa.Table
    """All columns of the read schema."""
    kinds: npt.NDArray[np.int8]
    """The kind of each row."""

    @property
    def adds(self) -> Mask:
        """Which rows are there, and not deleted."""
        return ~np.isin(self.kinds, RETRACTS)


def read_events(storage: Storage, detail: Events | Difference, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield rows with these columns, in this order; `rowkind` (+I, -U, +U, -D) is one that may be asked for.

    Events come in the order of files and rows, and are streamed. A difference holds both states of its bucket in
    memory, in all columns: first come rows of the later state, then what it lacks.

    Raises: as `read.read`.
    """
    match detail:
        case Events(plan=plan):
            _check(plan, columns)
            yield from _events(storage, plan, columns)
        case Difference():
            _check(detail.before or detail.after, columns)
            table = _difference(storage, detail).select(list(columns))
            yield from table.to_batches(max_chunksize=_BATCH_ROWS)


def _check(plan: Plan | None, columns: Sequence[str]) -> None:
    known = [ROW_KIND, *(field.name for field in plan.schema.fields)] if plan else []
    for name in columns:
        if name not in known:
            raise BadReferenceError(f"The rows have no column {name!r}. Columns: {', '.join(known)}.")


def _events(storage: Storage, plan: Plan, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    names = [name for name in columns if name != ROW_KIND]
    for file in plan.files:
        for batch, own in unmerged(storage, plan, file, names):
            kinds = pa.repeat(pa.scalar(0, pa.int8()), batch.num_rows) if own is None else own.column("_VALUE_KIND")
            if not columns:
                yield batch
                continue
            given = {name: batch.column(name) for name in names} | {ROW_KIND: _KINDS.take(kinds)}
            yield pa.RecordBatch.from_arrays([given[name] for name in columns], names=list(columns))


def _difference(storage: Storage, detail: Difference) -> pa.Table:
    """Return the rows that tell two states apart, with their kinds.

    Of a key that only the later state has, its row; of one that both have in other values, the later row; of one
    that only the earlier has, that row as -D.

    Source: paimon IncrementalDiffSplitRead.
    """
    before, after = (_state(storage, plan, detail.rules) for plan in (detail.before, detail.after))
    if before is None or after is None:
        only = before or after
        if only is None:
            raise BadReferenceError("A difference without files was given to be read.")
        return _with_kinds(only.rows, only.kinds) if before is None else _deleted(only, np.ones(len(only.kinds), bool))
    codes = key_codes(pa.concat_tables([before.rows, after.rows]), detail.rules.keys)
    old, new = codes[: before.rows.num_rows], codes[before.rows.num_rows :]
    _, at_old, at_new = np.intersect1d(old, new, assume_unique=True, return_indices=True)
    same = _equal(before.rows.take(pa.array(at_old)), after.rows.take(pa.array(at_new)))
    same &= before.adds[at_old] == after.adds[at_new]
    told = np.ones(len(new), bool)
    told[at_new[same]] = False
    gone = np.ones(len(old), bool)
    gone[at_old] = False
    later = _with_kinds(after.rows.filter(pa.array(told)), after.kinds[told])
    return pa.concat_tables([later, _deleted(before, gone)])


def _deleted(state: _State, chosen: Mask) -> pa.Table:
    """Return the rows of a state that are there, as deleted."""
    rows = state.rows.filter(pa.array(chosen & state.adds))
    return _with_kinds(rows, np.full(rows.num_rows, _DELETE, np.int8))


def _with_kinds(rows: pa.Table, kinds: npt.NDArray[np.int8]) -> pa.Table:
    return rows.add_column(0, ROW_KIND, _KINDS.take(pa.array(kinds)))


def _state(storage: Storage, plan: Plan | None, rules: Rules) -> _State | None:
    """Return the newest row of each key in some files, of whatever kind it is."""
    if plan is None:
        return None
    names = [field.name for field in plan.schema.fields]
    rows: list[pa.RecordBatch] = []
    own: list[pa.RecordBatch] = []
    levels: list[npt.NDArray[np.int32]] = []
    for file in plan.files:
        for batch, system in unmerged(storage, plan, file, names):
            rows.append(batch)
            own.extend([system] if system is not None else [])
            levels.append(np.full(batch.num_rows, file.level, np.int32))
    if not rows:
        return None
    table, system_rows = pa.Table.from_batches(rows), pa.Table.from_batches(own)
    kinds = system_rows.column("_VALUE_KIND").to_numpy().astype(np.int8)
    adds = ~np.isin(kinds, RETRACTS)
    if rules.ignore_delete and not adds.all():
        raise UnsupportedFeatureError(
            f"The data file {plan.files[0].path} or one beside it holds deletes, and the table has ignore-delete=true: "
            "the difference of such versions is not read. Use mode='delta', or compare to_arrow() of both versions."
        )
    # Merged as if all were adds: what is deleted is left, and of equal sequence numbers a delete is the older.
    left = deduplicate(
        table,
        replace(rules, ignore_delete=False),
        sequence=system_rows.column("_SEQUENCE_NUMBER").to_numpy() * 2 + adds,
        kinds=np.zeros(len(kinds), np.int8),
        levels=np.concatenate(levels),
    )
    return _State(rows=table.take(left), kinds=kinds[left.to_numpy()])


def _equal(left: pa.Table, right: pa.Table) -> Mask:
    """Return for each row whether all its values are the same: nulls are, and NaN is itself, and 0 is not -0."""
    same = np.ones(left.num_rows, bool)
    for one, other in zip(left.columns, right.columns, strict=True):
        same &= _same(one, other)
    return same


def _same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Mask:
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.fromiter((repr(one) == repr(other) for one, other in pairs), bool, len(left))
    codes = equality_codes(pa.chunked_array([*left.chunks, *right.chunks], left.type))
    return np.asarray(codes[: len(left)] == codes[len(left) :], bool)
