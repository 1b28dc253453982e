"""What each snapshot of a catalog changed in a table, counted from the lifetimes of its rows in one pass.

A snapshot is an index in the line of existing snapshots, which begins with one before the first: a row lives from its
first index up to the last, without that.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snapshot_explorer.formats.ducklake.metadata.table_metadata import DuckLakeMetadata, Ints, Mask, numbers


@dataclass(frozen=True, kw_only=True)
class Lifetimes:
    """Rows of the catalog with lifetimes, as indices of snapshots."""

    begins: Ints
    """The index of the first snapshot that sees each row."""
    ends: Ints
    """The index of the first later snapshot that does not; the number of snapshots for a row that is there."""
    length: int
    """The number of snapshots."""

    @property
    def is_seen(self) -> Mask:
        """Whether an existing snapshot sees each row."""
        return self.begins < self.ends

    def begun(self, amounts: Ints | Mask | None = None) -> Ints:
        """Return for each snapshot the number of rows that begin at it, or their sum of amounts."""
        return self._sums(self.begins, amounts)

    def ended(self, amounts: Ints | Mask | None = None) -> Ints:
        """Return for each snapshot the number of rows that end at it, or their sum of amounts."""
        return self._sums(self.ends, amounts)

    def live(self, amounts: Ints | Mask | None = None) -> Ints:
        """Return for each snapshot the number of rows that live at it, or their sum of amounts."""
        return np.cumsum(self.begun(amounts) - self.ended(amounts))

    def _sums(self, indices: Ints, amounts: Ints | Mask | None) -> Ints:
        result = np.zeros(self.length + 1, np.int64)
        seen = self.is_seen
        np.add.at(result, indices[seen], 1 if amounts is None else amounts[seen])
        return result


class TableEvents:
    """What the rows of the catalog about a table say of each snapshot."""

    def __init__(self, metadata: DuckLakeMetadata) -> None:
        """Compare the lifetimes of all rows with the existing snapshots. Reads nothing."""
        existing = metadata.snapshot_ids
        self._line = np.concatenate([existing[:1] - 1, existing])
        self.files = self._lifetimes(metadata.rows["data_file"])
        self.deletes = self._lifetimes(metadata.rows["delete_file"])
        self.inlined = [self._lifetimes(table.rows) for table in metadata.inlined]
        self._metadata = metadata

    def _lifetimes(self, rows: pa.Table) -> Lifetimes:
        begins, ends = (np.searchsorted(self._line, numbers(rows, name)) for name in ("begin_snapshot", "end_snapshot"))
        return Lifetimes(begins=begins, ends=ends, length=len(self._line))

    def indices(self, versions: Ints) -> Ints:
        """Return the indices of existing snapshots."""
        return np.searchsorted(self._line, versions)

    def follows(self, indices: Ints) -> Mask:
        """Return whether the snapshot before each has not expired."""
        return np.asarray(self._line[indices] - self._line[indices - 1] == 1, np.bool_)

    def inlined_rows(self) -> tuple[Ints, Ints, Ints]:
        """Return for each snapshot the numbers of inlined rows that begin, that end, and that live."""
        begun, ended = np.zeros((2, len(self._line) + 1), np.int64)
        for table in self.inlined:
            begun, ended = begun + table.begun(), ended + table.ended()
        return begun, ended, np.cumsum(begun - ended)

    def unknown_added(self) -> Mask:
        """Return for each snapshot whether it is unknown how many rows it adds: some are in merged files."""
        begins, lasts = self._ranges_of_partials()
        return self._in_ranges(begins, self.indices(lasts) + 1)

    def unknown_removed(self) -> Mask:
        """Return for each snapshot whether it is unknown how many rows it removes: deletes hide some, or are new."""
        deletes, inlined = self._metadata.rows["delete_file"], self._metadata.rows["inlined_delete"]
        with_deletes = np.concatenate([numbers(deletes, "data_file_id"), numbers(inlined, "file_id")])
        is_deleted = np.isin(numbers(self._metadata.rows["data_file"], "data_file_id"), with_deletes)
        hidden = self.files.ended(self._is_partial() | is_deleted) > 0
        begins, new = numbers(deletes, "begin_snapshot"), numbers(inlined, "begin_snapshot")
        lasts = np.maximum(begins, numbers(deletes, "partial_max", -1))
        return hidden | self._in_ranges(begins, self.indices(lasts) + 1) | self._in_ranges(new, self.indices(new) + 1)

    def unknown_total(self) -> Mask:
        """Return for each snapshot whether its number of rows is unknown: deletes or merged files hide some.

        Source: reference, "Statistics".
        """
        begins, lasts = self._ranges_of_partials()
        new = numbers(self._metadata.rows["inlined_delete"], "begin_snapshot")
        endless = np.full(len(new), len(self._line))
        merged = self._in_ranges(begins, self.indices(lasts))
        return (self.deletes.live() > 0) | merged | self._in_ranges(new, endless)

    def _in_ranges(self, begins: Ints, ends: Ints) -> Mask:
        """Return for each snapshot whether it is in a range: from a snapshot on, up to an index, without that."""
        return Lifetimes(begins=self.indices(begins), ends=ends, length=len(self._line)).live() > 0

    def _ranges_of_partials(self) -> tuple[Ints, Ints]:
        """Return the first and the last snapshots whose rows are in merged files."""
        partials = self._metadata.partials.values()
        begins, lasts = np.asarray([(item.begin, item.last) for item in partials], np.int64).reshape(-1, 2).T
        return begins, lasts

    def _is_partial(self) -> Mask:
        return np.isin(numbers(self._metadata.rows["data_file"], "data_file_id"), list(self._metadata.partials))

    def changed_files(self, indices: Ints) -> tuple[Ints, Ints, Mask]:
        """Return the data files that snapshots remove and add, in order: the snapshot, the file, whether it is added.

        Args:
            indices: The snapshots. A returned snapshot is a position in them, a file one in ducklake_data_file.
        """
        ranks = np.full(len(self._line) + 1, -1, np.int64)
        ranks[indices] = np.arange(len(indices))
        seen = np.flatnonzero(self.files.is_seen)
        of_files = np.concatenate([ranks[self.files.ends[seen]], ranks[self.files.begins[seen]]])
        files, is_new = np.concatenate([seen, seen]), np.repeat([False, True], len(seen))
        order = np.lexsort((files, is_new, of_files))
        order = order[of_files[order] >= 0]
        return of_files[order], files[order], is_new[order]
