"""Existence of the files of a Hudi table."""

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.formats.expiry import Presence, checked_files, presence_from
from snapshot_explorer.formats.hudi.metadata.properties import TableConfig
from snapshot_explorer.storage import Storage


def presence_of(storage: Storage, config: TableConfig, lifetimes: pa.Table) -> Presence:
    """Return which base files and log files exist. One listing for each folder with files.

    Up to table version 7 rollbacks append to log files, so their sizes are not compared.
    """
    paths = single_chunk(lifetimes.column("path"))
    sizes = single_chunk(lifetimes.column("size_bytes"))
    if not config.has_completion_times:
        sizes = pc.if_else(pc.match_substring(paths, ".log."), pa.scalar(None, pa.int64()), sizes)
    return presence_from(checked_files(storage, paths, sizes), paths)
