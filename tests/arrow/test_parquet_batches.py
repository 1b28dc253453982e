"""Batches of parquet files: as large as memory allows."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.inner.arrow import batches

ROWS = 200_000


def sizes(rows: pa.Table, names: list[str], groups: list[int] | None = None, **options: object) -> list[int]:
    """Return the number of rows of each batch of a file with these rows, which are checked."""
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, **options)
    source = pa.BufferReader(buffer.getvalue())
    reader = pq.ParquetFile(source)
    found = list(batches(reader, names, groups))
    expected = rows if groups is None else reader.read_row_groups(groups)
    assert pa.Table.from_batches(found).equals(expected.select(names))
    return [batch.num_rows for batch in found]


def test_narrow_rows_come_in_one_batch_per_row_group() -> None:
    rows = pa.table({"id": range(ROWS), "word": ["a", "b"] * (ROWS // 2)})

    assert sizes(rows, ["id", "word"]) == [ROWS]
    assert sizes(rows, ["word"], [1], row_group_size=ROWS // 2) == [ROWS // 2]


@pytest.mark.parametrize("options", [{}, {"write_statistics": False}], ids=["statistics", "none"])
def test_a_dictionary_of_long_texts_comes_in_small_batches(options: dict[str, object]) -> None:
    few = pa.DictionaryArray.from_arrays(pa.array([0, 1] * (ROWS // 2)), pa.array(["a" * 600, "b" * 600]))
    rows = pa.table({"text": few.cast(pa.string())})

    assert max(sizes(rows, ["text"], **options)) <= 70_000


def test_small_row_groups_come_together_and_large_ones_apart() -> None:
    rows = pa.table({"id": range(ROWS), "word": ["a", "b"] * (ROWS // 2)})

    assert sizes(rows, ["id"], row_group_size=ROWS // 10) == [ROWS]
    texts = pa.table({"text": [f"{number:0100}" for number in range(ROWS)]})
    assert sizes(texts, ["text"], row_group_size=ROWS // 2) == [ROWS // 2, ROWS // 2]
