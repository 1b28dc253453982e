"""Logical counts of commits: the rows that each inserted, updated, deleted, and only rewrote.

A commit that deletes 10 rows of a file may remove the file with 700 rows and add one with 690. Its files show 690 added
and 700 removed rows; its logical counts are 10 deleted and 690 rewritten rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import array, from_numpy
from snapshot_explorer.core.records import RowSource

_Mask = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.int64]
RECORDED = ("inserted", "updated", "deleted")
"""The counts that a writer records, in the order of the columns of COMMITS."""
_SOURCES: tuple[RowSource | None, ...] = ("contradicted", "metadata", "writer", "net", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """What the metadata of several commits contains about their rows. Arrays have a value per commit."""

    added: pa.Array
    """Live rows in the added files, and rows of other files that are no longer deleted; null if unknown."""
    removed: pa.Array
    """Live rows in the removed files, and rows of other files that are deleted now; null if unknown."""
    removes_files: _Mask
    """Whether the commit removes data files."""
    keeps_rows: _Mask
    """Whether the commit changes no row of the table, such as a compaction."""
    is_plain: _Mask
    """Whether the rows of files are the rows of the table, and the amounts are not differences of unlike rows."""
    deletes_only: _Mask
    """Whether the operation only deletes rows: rows in added files were in removed ones."""
    recorded: Mapping[str, pa.Array]
    """The counts that the writer recorded, by the names in RECORDED; null if it recorded none."""


def logical_counts(changes: RowChanges) -> dict[str, pa.Array]:
    """Return the columns `rows_inserted`, `rows_updated`, `rows_deleted`, `rows_rewritten`, `rows_source` of COMMITS.

    Metadata proves the counts of a commit that changes no row, of one that only adds rows, and of one that only removes
    rows. All others are the writer's counts. These are null if they contradict the files: inserted less deleted rows
    are not added less removed rows, fewer rows were added than inserted and updated, or removed files had no rows.
    """
    added, has_added = _numbers(changes.added)
    removed, has_removed = _numbers(changes.removed)
    (inserted, updated, deleted), masks = zip(*(_numbers(changes.recorded[name]) for name in RECORDED), strict=True)
    is_recorded = np.logical_and.reduce(masks)
    is_known = has_added & has_removed
    repeats = ~changes.removes_files & (removed == 0)
    keeps = changes.keeps_rows & ~(is_known & (added != removed) & ~repeats)
    is_plain = changes.is_plain & ~changes.keeps_rows & is_known
    inserts = is_plain & (removed == 0)
    deletes = is_plain & ~inserts & ((added == 0) | (changes.deletes_only & (added <= removed)))
    agrees = ~(is_known & (inserted - deleted != added - removed)) & ~(has_added & (inserted + updated > added))
    agrees &= ~(has_added & changes.removes_files & (added - inserted + deleted == 0))
    is_proven = keeps | inserts | deletes
    is_read = is_recorded & agrees & ~changes.keeps_rows & ~is_proven
    counts = [
        np.where(inserts, added, np.where(is_read, inserted, 0)),
        np.where(is_read, updated, 0),
        np.where(deletes, removed - added, np.where(is_read, deleted, 0)),
    ]
    rewritten = np.where(keeps & repeats, 0, added - counts[0] - counts[1])
    unknown = ~(is_proven | is_read)
    is_same = (inserted == counts[0]) & (updated == counts[1]) & (deleted == counts[2])
    source = np.where(unknown, np.where(is_plain, 3, 4), 1 + (is_recorded & is_same))
    source[unknown & (is_recorded | changes.keeps_rows)] = 0
    return {
        **{f"rows_{name}": from_numpy(count, unknown) for name, count in zip(RECORDED, counts, strict=True)},
        "rows_rewritten": from_numpy(rewritten, unknown | ~has_added),
        "rows_source": array([_SOURCES[number] for number in source.tolist()], pa.string()),
    }


def no_record(count: int) -> dict[str, pa.Array]:
    """Return the recorded counts of commits whose writers record none."""
    return dict.fromkeys(RECORDED, pa.nulls(count, pa.int64()))


def _numbers(values: pa.Array | pa.ChunkedArray) -> tuple[_Numbers, _Mask]:
    """Return numbers, 0 where unknown, and a mask of the known ones."""
    known = np.ones(len(values), np.bool_) if not values.null_count else np.array(values.is_valid(), np.bool_)
    return np.asarray(pc.fill_null(values.cast(pa.int64()), 0).to_numpy(), np.int64), known
