"""Leave out rows that deletion vectors delete, in Spark: by a join with bitmaps of row addresses.

The address of a row combines the size of its file with its position in the file, which Spark provides for Parquet. A
bitmap covers a chunk of addresses, and each row looks up the bitmap of its chunk: a small join that Spark broadcasts.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from snapshot_explorer.arrow.roaring import Positions

METADATA = "_metadata"
"""Spark's metadata column about the file of a row."""
MOST_ROWS = 2**31
MOST_BYTES = 2**32
"""Limits for files whose deleted rows are left out: the product of both fits a long."""
_CHUNKS = (6, 8, 10, 12, 14, 16)
"""Sizes of a chunk, as powers of two: small chunks suit few deleted rows that are far apart."""
_WORD = 6
"""Bits of a long, as a power of two."""
_ENTRY_BYTES = 64
"""The bytes of a chunk in Spark's hash table, without its bits."""


def bitmap_bytes(gone: Sequence[Positions]) -> int:
    """Return an estimate of the memory that leaving out these rows needs on each executor."""
    return _bitmap_bytes(gone, _chunk(gone))


def _chunk(gone: Sequence[Positions]) -> int:
    return min(_CHUNKS, key=lambda chunk: _bitmap_bytes(gone, chunk))


def _bitmap_bytes(gone: Sequence[Positions], chunk: int) -> int:
    chunks = sum(1 + int(np.count_nonzero(np.diff(positions >> chunk))) for positions in gone if len(positions))
    return chunks * (_ENTRY_BYTES + (1 << chunk) // 8)


def without_deleted_rows(
    spark: SparkSession, rows: DataFrame, sizes: Sequence[int], gone: Sequence[Positions]
) -> DataFrame:
    """Return the rows of Parquet files without deleted ones. Spark fails on a file with an unknown size.

    Args:
        sizes: The size of each file, below `MOST_BYTES`. All differ.
        gone: The positions of the deleted rows of each file, ascending and below `MOST_ROWS`.

    Source: spark docs, "File metadata column"; ParquetRowIndexUtil, which also counts rows that are not read.
    """
    from pyspark.sql import functions as f

    stem = "_" * max(map(len, rows.columns), default=0)
    place, chunk, words = (f"{stem}_{name}" for name in ("place", "chunk", "words"))
    width = _chunk(gone)
    bitmaps = spark.createDataFrame(_bitmaps(sizes, gone, width).rename_columns([chunk, words]))
    size = f.col(f"{METADATA}.file_size")
    changed = f.raise_error(
        f.lit("The size of a data file has changed since the DataFrame was created. Create it again.")
    )
    row_place = f.when(size.isin(list(sizes)), size * f.lit(MOST_ROWS) + f.col(f"{METADATA}.row_index"))
    placed = rows.select("*", row_place.otherwise(changed.cast("bigint")).alias(place))
    placed = placed.withColumn(chunk, f.shiftright(place, width))
    word = f.shiftright(place, _WORD).bitwiseAND(f.lit((1 << width - _WORD) - 1)).cast("int")
    bit = f.getbit(f.get(words, word), f.col(place).bitwiseAND(f.lit((1 << _WORD) - 1)).cast("int"))
    # A chunk without deleted rows has no bitmap.
    kept = placed.join(f.broadcast(bitmaps), chunk, "left").where(f.coalesce(bit, f.lit(0)) == 0)
    return kept.drop(place, chunk, words)


def _bitmaps(sizes: Sequence[int], gone: Sequence[Positions], width: int) -> pa.Table:
    """Return the number of each chunk with deleted rows, and its bits as longs, lowest bit first."""
    places = (positions + size * MOST_ROWS for size, positions in zip(sizes, gone, strict=True))
    chunks, words = zip(*starmap(_bits, ((each, width) for each in places)), strict=True)
    flat = np.concatenate(words)
    offsets = np.arange(0, len(flat) + 1, 1 << width - _WORD, dtype=np.int32)
    return pa.table([np.concatenate(chunks), pa.ListArray.from_arrays(offsets, flat)], names=["chunk", "words"])


def _bits(places: Positions, width: int) -> tuple[Positions, Positions]:
    """Return the chunks of ascending addresses, and the words of all chunks, concatenated."""
    chunks, at = np.unique(places >> width, return_inverse=True)
    words = np.zeros(len(chunks) << width - _WORD, np.int64)
    if len(places):
        word = (at << width - _WORD) + (places >> _WORD & (1 << width - _WORD) - 1)
        firsts = np.flatnonzero(np.diff(word, prepend=-1))
        bits = np.left_shift(np.int64(1), places & (1 << _WORD) - 1)
        words[word[firsts]] = np.bitwise_or.reduceat(bits, firsts)
    return chunks, words
