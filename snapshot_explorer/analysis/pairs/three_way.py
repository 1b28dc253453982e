"""`diff3`: the rows that two sides changed since a common base, and where they conflict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import check_names, wider_type
from snapshot_explorer.analysis.diff.changed_rows import first_columns
from snapshot_explorer.analysis.diff.comparison_rules import EXACT
from snapshot_explorer.analysis.diff.diff import row_diff
from snapshot_explorer.analysis.diff.row_matching import (
    HashedRows,
    changed_cells,
    match_rows,
    row_hashes,
    take_rows,
    unmatched_indices,
)
from snapshot_explorer.analysis.pairs.pair_plan import PairRequest, plan_pair
from snapshot_explorer.analysis.pairs.paired_columns import LEAVE_OUT, paired_columns
from snapshot_explorer.analysis.pairs.three_way_result import CHANGES, STATUSES, ThreeWayDiff
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import AFTER, BEFORE, DELETED, INSERTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from snapshot_explorer.analysis.diff.diff_result import RowDiff
    from snapshot_explorer.analysis.diff.row_matching import Indices
    from snapshot_explorer.analysis.pairs.pair_plan import PairSide

    Cells = npt.NDArray[np.bool_]

_OURS, _THEIRS, _BOTH, _MERGED, _CONFLICT = range(len(STATUSES))
"""Indices in `STATUSES`."""
_INSERTED, _UPDATED, _DELETED = range(len(CHANGES))
"""Indices in `CHANGES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changes:
    """The rows that one side changed, in any order, one for each key."""

    key: pa.Table
    kinds: npt.NDArray[np.int8]
    """Indices in `CHANGES`."""
    base: pa.Table
    """Each row in the base; null where it was inserted."""
    rows: pa.Table
    """Each row on this side; null where it was deleted."""
    cells: Cells
    """For each row and column outside of the key, whether this side changed the value."""


def three_way_diff(
    base: PairSide, ours: PairSide, theirs: PairSide, request: PairRequest, *, memory_limit: int | None = None
) -> ThreeWayDiff:
    """Return the rows that each side changed since the base. Reads what differs from the base, of both sides.

    Columns are paired by name, and compared if all three have them; they have the names of the base.

    Args:
        request: The key and what is left out, by the names of the base or of a side.

    Raises:
        InvalidArgumentError: The rows have no key, or it is not unique.
        UnsupportedFeatureError: Columns have types whose values cannot be compared.
    """
    sides = (ours, theirs)
    _check_excluded(request.exclude or (), [side.version.arrow_schema for side in (base, *sides)])
    names = [_names_in_base(base, side, request) for side in sides]
    common = set(names[0].values()) & set(names[1].values())
    lacking = [name for name in base.version.arrow_schema.names if name not in common]
    diffs = []
    for side, own in zip(sides, names, strict=True):
        pair = replace(
            request, key=_own_key(request.key, own), exclude=[*_known_excluded(base, side, request), *lacking]
        )
        diffs.append(row_diff(plan_pair(base, side, pair, statistics=False), memory_limit=memory_limit))
    keys = [frozenset(own[name] for name in diff.plan.key) for diff, own in zip(diffs, names, strict=True)]
    if not keys[0] or keys[0] != keys[1]:
        raise InvalidArgumentError(
            Message(
                "A three-way diff needs a key: which rows of both sides belong together is unknown without one. Name "
                "the columns that identify a row: ",
                Hint("", {"key": [...]}),
                ".",
            )
        )
    schema = _common_schema(diffs, names)
    key = [name for name in schema.names if name in keys[0]]
    rest = [name for name in schema.names if name not in keys[0]]
    changes = [_changes(diff, own, schema, key, rest) for diff, own in zip(diffs, names, strict=True)]
    compared = frozenset(schema.names)
    return ThreeWayDiff(
        base=diffs[0].plan.a.title,
        ours=diffs[0].plan.b.title,
        theirs=diffs[1].plan.b.title,
        key=tuple(key),
        columns=tuple(schema.names),
        columns_not_compared=tuple(
            dict.fromkeys(
                name
                for side, own in zip((base, *sides), ({}, *names), strict=True)
                for name in side.version.arrow_schema.names
                if own.get(name, name) not in compared
            )
        ),
        names_in_ours={base_name: own for own, base_name in names[0].items() if base_name in compared},
        rows=_merge(changes[0], changes[1], schema, key, rest),
    )


def _names_in_base(base: PairSide, side: PairSide, request: PairRequest) -> dict[str, str]:
    """Return the name in the base of each column of a side that the base has too."""
    paired = paired_columns(base.version, side.version, None, _known_excluded(base, side, request))
    return dict(paired.aligned.names_a)


def _check_excluded(names: Sequence[str], schemas: Sequence[pa.Schema]) -> None:
    """Raise if a column that is left out is in none of the schemas."""
    check_names(names, [name for schema in schemas for name in schema.names], "exclude")


def _known_excluded(base: PairSide, side: PairSide, request: PairRequest) -> list[str]:
    known = {*base.version.arrow_schema.names, *side.version.arrow_schema.names}
    return [name for name in request.exclude or () if name in known]


def _own_key(key: Sequence[str] | str | None, names: dict[str, str]) -> Sequence[str] | None:
    """Return the key by the names of a side."""
    if key is None:
        return None
    own = {name: side for side, name in names.items()}
    return [own.get(name, name) for name in ((key,) if isinstance(key, str) else key)]


def _common_schema(diffs: Sequence[RowDiff], names: Sequence[dict[str, str]]) -> pa.Schema:
    """Return the columns under the names of the base, in a type that has the values of all three."""
    schemas = [
        {own[field.name]: field.type for field in diff.plan.schema} for diff, own in zip(diffs, names, strict=True)
    ]
    fields = []
    for name, dtype in schemas[0].items():
        wider = wider_type(dtype, schemas[1][name], across_tables=True)
        if wider is None:
            raise UnsupportedFeatureError(
                Message(
                    f"The column {name!r} is {dtype} between the base and ours, and {schemas[1][name]} between the "
                    "base and theirs: values of these types cannot be compared. Leave it out: ",
                    LEAVE_OUT,
                    ".",
                )
            )
        fields.append(pa.field(name, wider))
    return pa.schema(fields)


def _changes(
    diff: RowDiff, names: dict[str, str], schema: pa.Schema, key: Sequence[str], rest: Sequence[str]
) -> _Changes:
    changed = diff.to_arrow()
    kinds = changed.column(first_columns(diff.plan.schema)[0])
    rows = _in_schema(changed.select(list(range(2, changed.num_columns))), names, schema)
    of_kind = {kind: rows.filter(pc.equal(kinds, kind)) for kind in (INSERTED, BEFORE, AFTER, DELETED)}
    inserted, before, after, deleted = of_kind.values()
    nothing = [
        pa.Table.from_arrays([pa.nulls(len(part), field.type) for field in schema], schema=schema)
        for part in (inserted, deleted)
    ]
    base = pa.concat_tables([nothing[0], before, deleted])
    own = pa.concat_tables([inserted, after, nothing[1]])
    sizes = len(inserted), len(before), len(deleted)
    cells = np.ones((sum(sizes), len(rest)), bool)
    indices = np.arange(len(before))
    cells[sizes[0] : sizes[0] + sizes[1]] = changed_cells(before, after, indices, indices, rest)
    return _Changes(
        key=pa.concat_tables([inserted, before, deleted]).select(list(key)),
        kinds=np.repeat(np.array([_INSERTED, _UPDATED, _DELETED], np.int8), sizes),
        base=base,
        rows=own,
        cells=cells,
    )


def _in_schema(rows: pa.Table, names: dict[str, str], schema: pa.Schema) -> pa.Table:
    """Return rows under the names of the base, in the common types."""
    own = {names[name]: index for index, name in enumerate(rows.column_names)}
    columns = [rows.column(own[field.name]) for field in schema]
    return pa.Table.from_arrays(
        [
            column if column.type == field.type else pc.cast(column, field.type)
            for column, field in zip(columns, schema, strict=True)
        ],
        schema=schema,
    )


def _merge(ours: _Changes, theirs: _Changes, schema: pa.Schema, key: Sequence[str], rest: Sequence[str]) -> pa.Table:
    """Return the changed rows of both sides, one row for each key; see `ThreeWayDiff.rows`."""
    hashed = [_hashed(side.key) for side in (ours, theirs)]
    left, right = match_rows(hashed[0], hashed[1], list(key))
    status, conflicts = _pair_statuses(ours, theirs, left, right, rest)
    alone = [unmatched_indices(len(side.kinds), indices) for side, indices in ((ours, left), (theirs, right))]
    nothing = [np.full(len(indices), -1, np.int64) for indices in alone]
    at_ours = np.concatenate([left, alone[0], nothing[1]])
    at_theirs = np.concatenate([right, nothing[0], alone[1]])
    statuses = np.concatenate(
        [status, np.full(len(alone[0]), _OURS, np.int8), np.full(len(alone[1]), _THEIRS, np.int8)]
    )
    no_cells = np.zeros((len(statuses) - len(status), len(rest)), bool)
    base = _either(ours.base, theirs.base, at_ours, at_theirs)
    # A side that did not change a row has it as in the base.
    sides = [
        _either(side.rows, base, indices, np.arange(len(indices)))
        for side, indices in ((ours, at_ours), (theirs, at_theirs))
    ]
    keys = _either(ours.key, theirs.key, at_ours, at_theirs)
    arrays: list[pa.Array | pa.ChunkedArray] = [
        pa.array(STATUSES).take(pa.array(statuses)),
        *(_kinds(side, indices) for side, indices in ((ours, at_ours), (theirs, at_theirs))),
        _names(np.concatenate([conflicts, no_cells]), rest),
        *keys.columns,
    ]
    for name in rest:
        arrays += [part.column(name) for part in (base, *sides)]
    rows = pa.Table.from_arrays(arrays, schema=ThreeWayDiff.schema_of(schema, key))
    order = np.argsort(-statuses, kind="stable")  # conflicts first
    return rows.take(pa.array(order))


def _hashed(keys: pa.Table) -> HashedRows:
    columns = [EXACT.normalized(single_chunk(column)) for column in keys.columns]
    return HashedRows(rows=keys, hashes=row_hashes(columns, len(keys)))


def _pair_statuses(
    ours: _Changes, theirs: _Changes, left: Indices, right: Indices, rest: Sequence[str]
) -> tuple[npt.NDArray[np.int8], Cells]:
    """Return the status of each row that both sides changed, and the cells in which they conflict."""
    differing = changed_cells(ours.rows, theirs.rows, left, right, rest)
    kinds = ours.kinds[left], theirs.kinds[right]
    conflicts = differing & ours.cells[left] & theirs.cells[right]
    is_deleted = (kinds[0] == _DELETED) | (kinds[1] == _DELETED)
    conflicts[is_deleted] = False  # the row as a whole
    is_equal = (kinds[0] == kinds[1]) & ~differing.any(axis=1)
    is_conflict = (conflicts.any(axis=1) | (is_deleted & (kinds[0] != kinds[1]))) & ~is_equal
    status = np.where(is_equal, _BOTH, np.where(is_conflict, _CONFLICT, _MERGED)).astype(np.int8)
    return status, conflicts


def _either(first: pa.Table, second: pa.Table, at_first: Indices, at_second: Indices) -> pa.Table:
    """Return rows of the first table, or of the second one where the index in the first is negative."""
    both = pa.concat_tables([first, second])
    indices = np.where(at_first >= 0, at_first, len(first) + at_second)
    return pa.Table.from_arrays([take_rows(column, indices) for column in both.columns], schema=both.schema)


def _kinds(side: _Changes, indices: Indices) -> pa.Array:
    """Return the changes of one side; null where it did not change the row."""
    kinds = np.append(side.kinds, np.int8(0))[indices]
    return pa.array(CHANGES).take(pa.array(kinds, mask=indices < 0))


def _names(cells: Cells, columns: Sequence[str]) -> pa.Array:
    """Return the names of the chosen columns of each row; null for none."""
    counts = cells.sum(axis=1)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    names = pa.array(list(columns), pa.string()).take(pa.array(np.nonzero(cells)[1]))
    return pa.ListArray.from_arrays(pa.array(offsets), names, mask=pa.array(counts == 0))
