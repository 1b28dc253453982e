"""Reconciliation: which files are live after all actions, by path and deletion vector, in columns.

Source: delta PROTOCOL.md, "Action Reconciliation".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import empty_table, from_numpy, scalar, to_numpy
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.delta.metadata.records import (
    ADDS,
    Actions,
    DeltaState,
    Domain,
    Metadata,
    Protocol,
    Transaction,
)

ADD_RANK, REMOVE_RANK = 3, 2
"""Within a commit, all removes apply before all adds."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayState:
    """The result of actions, oldest first: the state for a whole log, a change of state for a part of it."""

    adds: pa.Table = field(default_factory=lambda: empty_table(ADDS))
    """The files that are live at the end. `version` is the commit since which a file is live; null if unknown."""
    removed: pa.Array = field(default_factory=lambda: pa.nulls(0, pa.string()))
    """The keys of removed files, even if they were added again: earlier states no longer contain them."""
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: Mapping[str, Transaction] = field(default_factory=dict)
    domains: Mapping[str, Domain] = field(default_factory=dict)
    """The newest metadata of each domain, removed ones included."""


def followed_by(before: ReplayState, actions: Actions, *, open_ended: bool = False) -> ReplayState:
    """Return the state after more commits.

    Within a commit, all removes apply before all adds, regardless of the order of its lines.

    Args:
        before: The state before the actions.
        actions: The actions of the next commits, in order of version.

        open_ended: Unknown actions precede `before`: keep the keys of removed files.

    """
    adds, removed = _files_after(before, actions, open_ended=open_ended)
    transactions = dict(before.transactions)
    for _, committed in sorted(actions.transactions.items()):
        transactions |= {item.app_id: item for item in committed}
    domains = dict(before.domains)
    for _, changed in sorted(actions.domains.items()):
        domains |= {item.domain: item for item in changed}
    return ReplayState(
        adds=adds,
        removed=removed,
        protocol=_newest(actions.protocols, before.protocol),
        metadata=_newest(actions.metadatas, before.metadata),
        transactions=transactions,
        domains=domains,
    )


def join_states(before: ReplayState, after: ReplayState) -> ReplayState:
    """Return the state of one part of a log followed by another."""
    later = LaterFiles(after)
    adds = concat_adds([later.without(before.adds), later.added()]) if before.adds.num_rows else after.adds
    return ReplayState(
        adds=adds,
        protocol=after.protocol or before.protocol,
        metadata=after.metadata or before.metadata,
        transactions={**before.transactions, **after.transactions},
        domains={**before.domains, **after.domains},
    )


def complete(state: ReplayState, version: int, root: str) -> tuple[Protocol, Metadata]:
    """Return the protocol and the metadata of a whole log.

    Source: delta Snapshot.scala; the error class DELTA_STATE_RECOVER_ERROR.
    """
    if state.protocol is not None and state.metadata is not None:
        return state.protocol, state.metadata
    missing = "protocol" if state.protocol is None else "metadata"
    raise CorruptTableError(
        f"The {missing} of your Delta table couldn't be recovered while Reconstructing version: {version}. "
        f"No file of {root}/_delta_log up to that version contains it. Did you manually delete files in the log? "
        "Restore them from a backup."
    )


def state_of(state: ReplayState, version: int, root: str) -> DeltaState:
    """Return the state of a whole log at a version."""
    protocol, metadata = complete(state, version, root)
    return DeltaState(
        version=version,
        protocol=protocol,
        metadata=metadata,
        adds=state.adds,
        transactions=state.transactions,
        domains={name: item.configuration for name, item in state.domains.items() if not item.removed},
    )


def replay_state_of(state: DeltaState) -> ReplayState:
    """Return a state as the start for later commits."""
    domains = {
        name: Domain(domain=name, configuration=configuration, removed=False)
        for name, configuration in state.domains.items()
    }
    return ReplayState(
        adds=state.adds,
        protocol=state.protocol,
        metadata=state.metadata,
        transactions=state.transactions,
        domains=domains,
    )


def keys(files: pa.Table) -> pa.Array:
    """Return the reconciliation key of each file action: the path and the deletion vector's id, if any.

    Source: delta PROTOCOL.md, "Action Reconciliation" and "Deletion Vector Descriptor Schema", `uniqueId`.
    """
    path = single_chunk(files.column("path"))
    vector = single_chunk(files.column("deletion_vector"))
    if vector.null_count == len(vector):
        return path
    storage_type, where, offset = (
        pc.struct_field(vector, [name]) for name in ("storage_type", "path_or_inline", "offset")
    )
    empty, at_sign, line_end = (scalar(text, pa.string()) for text in ("", "@", "\n"))
    at = pc.fill_null(pc.binary_join_element_wise(at_sign, pc.cast(offset, pa.string()), empty), empty)
    unique = pc.binary_join_element_wise(path, line_end, storage_type, where, at, empty)
    return pc.if_else(pc.is_valid(vector), unique, path)


def _files_after(before: ReplayState, actions: Actions, *, open_ended: bool) -> tuple[pa.Table, pa.Array]:
    """Return the live files, and the removed keys if unknown actions precede."""
    adds = concat_adds([before.adds, actions.adds])
    if not actions.removes.num_rows and not len(before.removed) and not open_ended:
        return _distinct(adds), before.removed
    added, removed_keys = keys(adds), keys(actions.removes)
    all_keys = pa.concat_arrays([added, before.removed, removed_keys])
    encoded = all_keys.dictionary_encode()
    codes = to_numpy(encoded.indices)
    count = len(encoded.dictionary)
    # Ranks: the state before is 0 (removed) or 1 (added); then each version has one for removes and one for adds.
    rank = np.concatenate([np.ones(before.adds.num_rows, np.int64), ranks(actions.adds, ADD_RANK)])
    removed_rank = np.concatenate([np.zeros(len(before.removed), np.int64), ranks(actions.removes, REMOVE_RANK)])
    last_removed = np.full(count, -1, np.int64)
    np.maximum.at(last_removed, codes[len(added) :], removed_rank)
    of_adds = codes[: len(added)]
    alive = rank > last_removed[of_adds]
    kept, versions = _last_of_each(adds, of_adds, alive, count)
    live = _with_versions(adds.take(from_numpy(kept)), versions)
    if not open_ended:
        return live, before.removed
    return live, encoded.dictionary.filter(from_numpy(last_removed >= 0))


def ranks(files: pa.Table, index: int) -> npt.NDArray[np.int64]:
    """Return the rank of each file action: by version, then ADD_RANK or REMOVE_RANK within a commit."""
    versions = pc.fill_null(single_chunk(files.column("version")), scalar(-1, pa.int64()))
    return to_numpy(versions) * 2 + index


def _distinct(adds: pa.Table) -> pa.Table:
    encoded = keys(adds).dictionary_encode()
    if len(encoded.dictionary) == adds.num_rows:
        return adds
    codes = to_numpy(encoded.indices)
    kept, versions = _last_of_each(adds, codes, np.ones(len(codes), np.bool_), len(encoded.dictionary))
    return _with_versions(adds.take(from_numpy(kept)), versions)


def _last_of_each(
    adds: pa.Table, codes: npt.NDArray[np.int64], alive: npt.NDArray[np.bool_], count: int
) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Return the rows of the last live add of each key, in order, and the version of the first add of each key."""
    rows = np.flatnonzero(alive)
    last = np.full(count, -1, np.int64)
    last[codes[rows]] = rows  # for a repeated index, the last value wins
    first = np.full(count, -1, np.int64)
    first[codes[rows][::-1]] = rows[::-1]
    kept = np.sort(last[last >= 0])
    return kept, single_chunk(adds.column("version")).take(from_numpy(first[codes[kept]]))


class LaterFiles:
    """The files that later commits add and remove. The live files before these commits are passed some at a time."""

    def __init__(self, after: ReplayState) -> None:
        self._after = after
        self._added = keys(after.adds)
        self._gone = pa.concat_arrays([after.removed, self._added])
        self._known: list[tuple[pa.Array, pa.Array]] = []

    def without(self, before: pa.Table) -> pa.Table:
        """Return the earlier files that are neither removed nor added again."""
        if not len(self._gone):
            return before
        # Usually a few files follow very many: build a set of the few and look up the many.
        known = keys(before)
        is_gone = pc.is_in(known, value_set=self._gone)
        if not pc.any(is_gone, min_count=0).as_py():
            return before
        self._known.append((known.filter(is_gone), single_chunk(before.column("version")).filter(is_gone)))
        return before.filter(pc.invert(is_gone))

    def added(self) -> pa.Table:
        """Return the later adds; a file that was already live keeps the version since which it is live."""
        adds = self._after.adds
        if not self._known:
            return adds
        known, versions = (pa.concat_arrays(parts) for parts in zip(*self._known, strict=True))
        indices = pc.index_in(self._added, known)
        is_old = pc.and_(pc.is_valid(indices), pc.invert(pc.is_in(self._added, self._after.removed)))
        since = versions.take(indices)
        return _with_versions(adds, pc.if_else(is_old, since, single_chunk(adds.column("version"))))


def _with_versions(adds: pa.Table, versions: pa.Array) -> pa.Table:
    return adds.set_column(adds.column_names.index("version"), ADDS.field("version"), versions)


def _newest(by_version: Mapping[int, T], before: T | None) -> T | None:
    return by_version[max(by_version)] if by_version else before


def concat_adds(tables: Sequence[pa.Table]) -> pa.Table:
    """Return ADDS as one table. Columns that a table lacks, or has with other fields, are null in its rows."""
    filled = [table for table in tables if table.num_rows] or tables[:1]
    if len(filled) < 2:  # noqa: PLR2004 - nothing to join
        return filled[0] if filled else empty_table(ADDS)
    try:
        return pa.concat_tables(filled, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        # Statistics as structs with incompatible types: unknown values are safe.
        return pa.concat_tables([table.select(ADDS.names) for table in filled])
