"""Rows that deletion vectors take away are left out by Spark itself: by bitmaps of chunks of places."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer import open_table
from snapshot_explorer.engines.spark import native
from tests.inner.core import PYSPARK_ARROW
from tests.support.delta.table_builder import DeltaTable, add
from tests.support.spark_frames import arrow_table

PLACES = st.sets(st.one_of(st.integers(0, 300_000), st.integers(2**62 - 200_000, 2**62)), max_size=60)


@given(places=PLACES, width=st.sampled_from(native.CHUNK_WIDTHS))
def test_bitmaps_hold_the_places_and_no_others(places, width):
    chunks, words = native.chunk_bits(np.array(sorted(places), np.int64), width)

    bits = np.unpackbits(words.view(np.uint8), bitorder="little").reshape(len(chunks), 1 << width)
    found = [(int(chunks[row]) << width) + int(bit) for row, bit in np.argwhere(bits)]
    assert found == sorted(places)


def test_chunks_are_small_where_few_rows_are_deleted_and_large_where_many_are():
    tenth, few = np.arange(0, 2**20, 10), np.arange(0, 2**20, 5000)

    assert (native.chunk_width([tenth]), native.chunk_width([few]), native.chunk_width([few[:0]])) == (16, 6, 6)
    assert native.bitmap_bytes([tenth]) == 16 * (8192 + 64)
    assert native.bitmap_bytes([few]) == len(few) * (8 + 64)


@pytest.mark.skipif(PYSPARK_ARROW.applies(), reason=PYSPARK_ARROW.problem)
@pytest.mark.parametrize("width", [6, 10, 16])
def test_places_are_looked_up_in_chunks_of_any_size(here, tmp_path, monkeypatch, width):
    monkeypatch.setattr(native, "CHUNK_WIDTHS", (width,))
    table = DeltaTable(None, tmp_path / "t", fields=[("id", "long")], features=["deletionVectors"])
    gone = {0, 63, 64, 65_535, 65_536, 65_599, 131_072, 139_999, *range(70_000, 70_200)}
    pq.write_table(pa.table({"id": pa.array(range(140_000), pa.int64())}), tmp_path / "t" / "f.parquet")
    table.commit(add("f.parquet", rows=140_000, vector=table.vector(sorted(gone))))

    rows = open_table(str(tmp_path / "t")).current.to_spark(here)

    assert set(arrow_table(rows)["id"].to_pylist()) == set(range(140_000)) - gone
