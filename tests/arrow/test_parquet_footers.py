"""Footers of parquet files that pyarrow does not read as they are."""

import io
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer.arrow import int96
from tests.inner.formats import open_parquet
from tests.support.parquet_footers import STRING, UNKNOWN, like_parquet_mr_1_11, with_logical_type

MAP = pa.map_(pa.string(), pa.int64())
PAIRS = [[("a", 1), ("b", None)], None, []]
COLUMNS = {
    "map": pa.array(PAIRS, MAP),
    "map of structs": pa.array([[("a", {"x": 1})], [], None], pa.map_(pa.string(), pa.struct({"x": pa.int32()}))),
    "map of maps": pa.array([[("a", [("b", 2)])], [("c", None)], None], pa.map_(pa.string(), MAP)),
    "list of maps": pa.array([[PAIRS[0], None], None, []], pa.list_(MAP)),
    "map in a struct": pa.array([{"m": PAIRS[0]}, {"m": None}, None], pa.struct({"m": MAP})),
    "map of numbers": pa.array([[(1, "x")], [], None], pa.map_(pa.int32(), pa.string())),
    "map of lists": pa.array([[("a", [1, None])], [("b", [])], None], pa.map_(pa.string(), pa.list_(pa.int8()))),
}


def written(column, **options):
    out = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2, 3], "c": column}), out, **options)
    return out.getvalue()


def read(content):
    """Return the columns of a file."""
    file = open_parquet(pa.BufferReader(content))
    rows = file.reader.metadata.num_rows
    return pa.Table.from_batches(file.batches(file.reader.schema_arrow.names, range(file.reader.num_row_groups), rows))


@pytest.mark.parametrize("options", [{}, {"row_group_size": 1}, {"compression": "none", "use_dictionary": False}])
@pytest.mark.parametrize("name", COLUMNS)
def test_maps_are_read_as_parquet_mr_1_11_writes_them(name, options):
    content = written(COLUMNS[name], **options)
    as_written = like_parquet_mr_1_11(content)

    with pytest.raises(OSError, match="Logical type Null cannot be applied to group node"):
        pq.ParquetFile(pa.BufferReader(as_written))
    assert read(as_written).equals(read(content))


@pytest.mark.parametrize("groups", [("c",), ("key_value",), ("c", "key_value"), ("schema",)])
def test_the_logical_type_unknown_of_any_group_is_ignored(groups):
    structs = written(pa.array([{"key_value": {"x": 1}}, {"key_value": None}, None]))

    assert read(with_logical_type(structs, UNKNOWN, *groups)).equals(read(structs))


def test_int96_beside_such_a_map_is_read_exactly():
    moments = pa.array([datetime(1, 1, 1), None, datetime(9999, 12, 31)], pa.timestamp("us"))  # noqa: DTZ001 - as stored
    column = pa.StructArray.from_arrays([moments, COLUMNS["map"]], names=["t", "m"])
    content = like_parquet_mr_1_11(written(column, use_deprecated_int96_timestamps=True))

    found = read(content)["c"].combine_chunks()

    assert int96.timestamps(found.field("t"), "us").to_pylist() == moments.to_pylist()
    assert found.field("m").to_pylist() == PAIRS


def test_a_logical_type_that_contradicts_a_group_is_an_error():
    content = with_logical_type(written(COLUMNS["map in a struct"]), STRING, "c")

    with pytest.raises(OSError, match="Logical type String cannot be applied to group node"):
        open_parquet(pa.BufferReader(content))
