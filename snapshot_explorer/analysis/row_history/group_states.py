"""Groups of files whose rows are read independently, and the ranges of versions over which their rows stay the same."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snapshot_explorer.analysis.row_history.affected_versions import AffectedVersions, Mask
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.records import RowModifier
from snapshot_explorer.formats import TableVersion

Ints = npt.NDArray[np.int64]

WHOLE_TABLE = -1
"""The group of all files if they are not distinguished. It has a state at every version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStates:
    """A range of positions over which the rows of a group stay the same and may contain matching rows."""

    group: Ints
    first: Ints
    last: Ints
    """The position after the range."""


def file_groups(affected: AffectedVersions, reference: TableVersion, modifiers: Collection[RowModifier]) -> Ints:
    """Return the group of each row of lifetimes: its file, or its partition and bucket where files are merged.

    All are one group if most of the affected versions can have changed rows of any file.
    """
    rows = affected.lifetimes.intervals.rows
    if 2 * len(affected.common) > len(affected.indices):
        return np.full(len(rows), WHOLE_TABLE, np.int64)
    names = ("folder", "name")
    if reference.schema.is_merged or "data evolution" in modifiers:
        names = ("partition", "bucket")
    first, second = (
        single_chunk(rows.column(name)).dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)
        for name in names
    )
    groups: Ints = first << 32 | second
    return groups


def may_store(affected: AffectedVersions) -> Mask:
    """Return which rows of lifetimes are of files that can store matching rows, including deleted ones."""
    vectors = affected.lifetimes.intervals.rows.column("deletion_vector")
    # The statistics of a file with deletes may cover its live rows alone.
    result: Mask = affected.admits | single_chunk(pc.is_valid(vectors)).to_numpy(zero_copy_only=False)
    return result


def group_states(affected: AffectedVersions, groups: Ints) -> GroupStates:
    """Return the states of groups that can have matching rows, and of the table between its common changes."""
    rows, chosen = affected.lifetimes.intervals.rows, np.flatnonzero(may_store(affected))
    count = len(affected.lifetimes.versions)
    first, last = (
        np.minimum(rows.column(name).to_numpy()[chosen].astype(np.int64), count) for name in ("first", "last")
    )
    own = groups[chosen]
    common = np.asarray(affected.common, np.int64)
    every = np.append(np.unique(own), WHOLE_TABLE)
    group = np.concatenate([own, own, np.repeat(every, len(common)), [WHOLE_TABLE, WHOLE_TABLE]])
    position = np.concatenate([first, last, np.tile(common, len(every)), [0, count]])
    change = np.concatenate(
        [np.ones(len(own)), -np.ones(len(own)), np.zeros(len(every) * len(common)), [1, -1]]
    ).astype(np.int64)
    order = np.lexsort((position, group))
    group, position, live = group[order], position[order], np.cumsum(change[order])
    is_last = np.append((group[1:] != group[:-1]) | (position[1:] != position[:-1]), True)
    group, position, live = group[is_last], position[is_last], live[is_last]
    begins = np.flatnonzero(live[:-1] > 0)  # after the last position of a group, none is live
    return GroupStates(group=group[begins], first=position[begins], last=position[begins + 1])
