"""Parquet files of parquet-mr 1.11, in whose maps the repeated group has a logical type that pyarrow refuses."""

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from tests.support.delta.table_builder import DeltaTable
from tests.support.parquet_footers import like_parquet_mr_1_11

FIELDS = (("id", "long"), ("m", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}))
SCHEMA = pa.schema([("id", pa.int64()), ("m", pa.map_(pa.string(), pa.int64()))])


class OldWriterTable(DeltaTable):
    """A table whose parquet files parquet-mr 1.11 wrote, checkpoints and sidecars included."""

    def as_written(self, content):
        return like_parquet_mr_1_11(content)


@pytest.mark.parametrize(
    "checkpoint",
    [
        None,
        {"form": "classic"},
        {"form": "multi-part", "parts": 3},
        {"form": "parquet"},
        {"form": "json", "sidecars": 2},
        {"form": "parquet", "sidecars": 1},
    ],
)
def test_data_files_and_checkpoints_of_every_form_are_read(tmp_path, checkpoint):
    features = None if checkpoint is None or checkpoint["form"] in ("classic", "multi-part") else ["v2Checkpoint"]
    table = OldWriterTable(None, tmp_path, fields=FIELDS, features=features)
    expected = [{"id": number, "m": [("a", number)]} for number in range(3)]
    for row in expected:
        table.append([row], schema=SCHEMA)
    if checkpoint is not None:
        table.checkpoint(**checkpoint)
        table.clean(table.version + 1)

    opened = open_table(tmp_path)

    assert sorted(opened.current.to_arrow().to_pylist(), key=lambda row: row["id"]) == expected
    assert opened.current.to_arrow(where="id = 1").to_pylist() == [expected[1]]
    assert opened.current.count() == len(expected)
    assert opened.verify("bytes").files["state"].to_pylist() == ["ok"] * len(expected)
