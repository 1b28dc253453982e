"""`DuckLakeMaintenance`: which files exist, and their checks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats.capabilities import Maintenance
from snapshot_explorer.formats.ducklake.metadata.log import DuckLakeLog
from snapshot_explorer.formats.ducklake.metadata.table_metadata import live_mask
from snapshot_explorer.formats.expiry import Presence, checked_files, presence_from
from snapshot_explorer.formats.file_checks import CheckedFile, FileCheck, RecordedFile
from snapshot_explorer.formats.files.whole_files import check_file


@dataclass(frozen=True, kw_only=True)
class DuckLakeMaintenance(Maintenance):
    """The maintenance of a DuckLake table."""

    log: DuckLakeLog

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:
        """Return which data files and delete files exist. One listing for each folder with files."""
        metadata, storage = self.log.current(), self.log.storage
        paths, sizes = (single_chunk(lifetimes.column(name)) for name in ("path", "size_bytes"))
        result = presence_from(checked_files(storage, paths, sizes), paths)
        deletes = metadata.delete_files
        names = single_chunk(deletes.column("location"))
        checked = checked_files(storage, names, single_chunk(deletes.column("file_size_bytes")))
        gone = np.isin(names.to_pylist(), checked.gone.to_pylist())
        unknown = np.isin(names.to_pylist(), checked.unknown.to_pylist())
        missing, unchecked = {}, {}
        for version in versions:
            live = live_mask(deletes, version)
            for words, mask in ((missing, gone & live), (unchecked, unknown & live)):
                if mask.any():
                    words[version] = pluralize(int(mask.sum()), "delete file")
        return Presence(
            gone=result.gone,
            resized=result.resized,
            unknown=result.unknown,
            missing_deletes=missing,
            unchecked_files=unchecked,
        )

    def file_check(self) -> FileCheck:
        return partial(_check, self.log)


def _check(log: DuckLakeLog, file: RecordedFile, is_whole: bool) -> CheckedFile:  # noqa: FBT001 - as FileCheck
    return check_file(log.storage, file, is_whole=is_whole, kind="parquet")
