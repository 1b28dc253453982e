"""Rows but for those that deletion vectors take away, left out by Spark itself: by a join with bitmaps of their places.

A row's place is made of its file's size and its position in the file, which Spark tells of parquet files. A bitmap is
of a chunk of places, and each row looks up the one of its own chunk: a join of few rows, which Spark broadcasts.
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
"""Spark's own column, of facts about a row's file."""
MOST_ROWS = 2**31
MOST_BYTES = 2**32
"""Limits of files whose deleted rows are left out: the product of both is a long."""
_CHUNKS = (6, 8, 10, 12, 14, 16)
"""How many places a chunk may have, as powers of two: few where few rows are deleted, far from each other."""
_WORD = 6
"""Bits of a long, as a power of two."""
_ENTRY_BYTES = 64
"""What a chunk takes in Spark's hash table beside its bits."""


def bitmap_bytes(gone: Sequence[Positions]) -> int:
    """Return about how much memory of each executor it takes to leave these rows out."""
    return _bitmap_bytes(gone, _chunk(gone))


def _chunk(gone: Sequence[Positions]) -> int:
    return min(_CHUNKS, key=lambda chunk: _bitmap_bytes(gone, chunk))


def _bitmap_bytes(gone: Sequence[Positions], chunk: int) -> int:
    chunks = sum(1 + int(np.count_nonzero(np.diff(positions >> chunk))) for positions in gone if len(positions))
    return chunks * (_ENTRY_BYTES + (1 << chunk) // 8)


def without_deleted_rows(
    spark: SparkSession, rows: DataFrame, sizes: Sequence[int], gone: Sequence[Positions]
) -> DataFrame:
    """Return the rows of parquet files but for those deleted; an error at a file of a size that none had.

    Args:
        spark: The session.
        rows: The rows, as a scan of the files gives them.
        sizes: How large each file is, below `MOST_BYTES`: no two alike.
        gone: The positions of the deleted rows of each, ascending and below `MOST_ROWS`.

    Source: spark docs, "File metadata column"; ParquetRowIndexUtil, which counts rows that are not read too.
    """
    from pyspark.sql import functions as f

    stem = "_" * max(map(len, rows.columns), default=0)
    place, chunk, words = (f"{stem}_{name}" for name in ("place", "chunk", "words"))
    width = _chunk(gone)
    bitmaps = spark.createDataFrame(_bitmaps(sizes, gone, width).rename_columns([chunk, words]))
    size = f.col(f"{METADATA}.file_size")
    changed = f.raise_error(f.lit("A data file has another size than when the DataFrame was made. Make it anew."))
    row_place = f.when(size.isin(list(sizes)), size * f.lit(MOST_ROWS) + f.col(f"{METADATA}.row_index"))
    placed = rows.select("*", row_place.otherwise(changed.cast("bigint")).alias(place))
    placed = placed.withColumn(chunk, f.shiftright(place, width))
    word = f.shiftright(place, _WORD).bitwiseAND(f.lit((1 << width - _WORD) - 1)).cast("int")
    bit = f.getbit(f.get(words, word), f.col(place).bitwiseAND(f.lit((1 << _WORD) - 1)).cast("int"))
    # Where nothing of a chunk is deleted, it has no bitmap.
    kept = placed.join(f.broadcast(bitmaps), chunk, "left").where(f.coalesce(bit, f.lit(0)) == 0)
    return kept.drop(place, chunk, words)


def _bitmaps(sizes: Sequence[int], gone: Sequence[Positions], width: int) -> pa.Table:
    """Return the number of each chunk in which rows are deleted, and its bits as longs, the lowest bit first."""
    places = (positions + size * MOST_ROWS for size, positions in zip(sizes, gone, strict=True))
    chunks, words = zip(*starmap(_bits, ((each, width) for each in places)), strict=True)
    flat = np.concatenate(words)
    offsets = np.arange(0, len(flat) + 1, 1 << width - _WORD, dtype=np.int32)
    return pa.table([np.concatenate(chunks), pa.ListArray.from_arrays(offsets, flat)], names=["chunk", "words"])


def _bits(places: Positions, width: int) -> tuple[Positions, Positions]:
    """Return the chunks of ascending places, and the words of all of them one after the other."""
    chunks, at = np.unique(places >> width, return_inverse=True)
    words = np.zeros(len(chunks) << width - _WORD, np.int64)
    if len(places):
        word = (at << width - _WORD) + (places >> _WORD & (1 << width - _WORD) - 1)
        firsts = np.flatnonzero(np.diff(word, prepend=-1))
        bits = np.left_shift(np.int64(1), places & (1 << _WORD) - 1)
        words[word[firsts]] = np.bitwise_or.reduceat(bits, firsts)
    return chunks, words
