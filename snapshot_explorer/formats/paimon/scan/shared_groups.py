"""Partitions and buckets in which two versions have equal files."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.equal_rows import equal_rows
from snapshot_explorer.formats.paimon.metadata.manifests import PLAN_COLUMNS
from snapshot_explorer.formats.paimon.scan.data_skipping import Files

Mask = npt.NDArray[np.bool_]


def shared_groups(first: Files, first_indexes: pa.Table, last: Files, last_indexes: pa.Table) -> tuple[Mask, Mask]:
    """Return for each file of two versions whether all of its partition and bucket is equal in both.

    None is if the versions' schemas differ, because the same files then return other rows.
    """
    entries = first.entries.select(PLAN_COLUMNS), last.entries.select(PLAN_COLUMNS)
    if first.schema != last.schema or first.options != last.options:
        return np.zeros(len(entries[0]), np.bool_), np.zeros(len(entries[1]), np.bool_)
    groups = _groups([*entries, first_indexes, last_indexes])
    equal = [*equal_rows(entries[0], entries[1], "file_name"), *_equal_indexes(first_indexes, last_indexes)]
    differing = np.unique(np.concatenate([of_rows[~mask] for of_rows, mask in zip(groups, equal, strict=True)]))
    return ~np.isin(groups[0], differing), ~np.isin(groups[1], differing)


def _groups(tables: list[pa.Table]) -> list[npt.NDArray[np.int64]]:
    """Return for each row of tables a number that rows of the same partition and bucket share."""
    partitions = pa.chunked_array(
        [chunk for table in tables for chunk in table.column("partition").chunks], pa.binary()
    )
    codes = single_chunk(partitions).dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    buckets = np.concatenate([table.column("bucket").to_numpy().astype(np.int64) for table in tables])
    numbers = codes << 32 | buckets & 0xFFFFFFFF
    return np.split(numbers, np.cumsum([len(table) for table in tables])[:-1])


def _equal_indexes(first: pa.Table, last: pa.Table) -> tuple[Mask, Mask]:
    if first.equals(last):
        return np.ones(len(first), np.bool_), np.ones(len(last), np.bool_)
    rows = [[tuple(row.values()) for row in table.to_pylist()] for table in (first, last)]
    both = set(rows[0]) & set(rows[1])
    masks = [np.fromiter((row in both for row in some), np.bool_, len(some)) for some in rows]
    return masks[0], masks[1]
