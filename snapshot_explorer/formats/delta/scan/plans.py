"""Plans of splits of a Delta table."""

from collections.abc import Hashable
from dataclasses import dataclass, replace

import pyarrow as pa

from snapshot_explorer.arrow.equal_rows import SharedRows
from snapshot_explorer.core.records import Split
from snapshot_explorer.formats.delta.files.data_files import DeltaDataFile
from snapshot_explorer.formats.delta.metadata.schema import DeltaSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTracking:
    """The columns of row ids. Picklable."""

    id_column: str | None
    """The column of data files with the ids of moved rows; None if the table has none."""
    version_column: str | None
    """The column with the commit versions of moved rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaPlan:
    """The plan of a split. `Split.detail` of a Delta split; picklable.

    Another reader of raw splits finds a column in the files by `schema`: by `Field.stored`, or by `Field.id` in the
    mode `id`, and adds the partition columns from `partition`. Columns that were added after a file are null.
    """

    files: tuple[DeltaDataFile, ...]
    """The files, in the order to read."""
    schema: DeltaSchema
    partition_values: SharedRows[pa.Table] | None
    """One row: the typed value of each partition column, by its name. None for a table without partitions."""
    row_tracking: RowTracking | None
    stats: SharedRows[pa.Array] | None = None
    """The statistics of each file in the log; None without any."""

    @property
    def partition(self) -> pa.Table | None:
        """Return the typed values of the partition columns as one row; None for a table without partitions."""
        return None if self.partition_values is None else self.partition_values.take_rows()

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal if the same rows are read; see `Split.identity`."""
        files = tuple((file.path, file.vector, file.base_row_id, file.commit_version) for file in self.files)
        return files, self.schema, self.row_tracking

    def stats_of(self, index: int) -> str | None:
        """Return the statistics of a file, JSON; None without any."""
        return None if self.stats is None else self.stats.values[self.stats.indices[index]].as_py()

    def for_file(self, index: int) -> "DeltaPlan":
        """Return the plan of one of the files."""
        stats = None if self.stats is None else SharedRows(self.stats.values, (self.stats.indices[index],))
        return replace(self, files=(self.files[index],), stats=stats)


def plan_of_file(split: Split) -> DeltaPlan | None:
    """Return the plan of a split of one file; None for several files, or a split of changes."""
    plan = split.detail
    return plan if isinstance(plan, DeltaPlan) and len(plan.files) == 1 else None
