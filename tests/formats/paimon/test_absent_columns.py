"""Files that lack columns: null where their own schema lacks them, and refused where they lack those that it names."""

import io
import json
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError
from tests.support.paimon.table_builder import PaimonTable

DATA = Path(__file__).parents[2] / "data" / "paimon"
OTHERS = pa.table({"x": [1, 2], "y": ["a", "b"]})


def dropped(tmp_path, content=None):
    """A file of id and name, or other content, then both columns are dropped and `later` is added."""
    written = PaimonTable(fsspec.filesystem("file", auto_mkdir=True), str(tmp_path))
    written.commit([(1, "a"), (2, "b")], content=content)
    schema = json.loads((tmp_path / "schema/schema-0").read_text())
    schema |= {"id": 1, "fields": [{"id": 2, "name": "later", "type": "INT"}], "highestFieldId": 2}
    written.write("schema/schema-1", json.dumps(schema).encode())
    written.commit((), schemaId=1)
    return written


def test_a_file_of_dropped_columns_is_null_in_those_that_came_later(tmp_path):
    assert open_table(dropped(tmp_path).root).current.to_arrow().to_pylist() == [{"later": None}] * 2


def test_a_file_without_the_columns_of_its_own_schema_is_refused_by_name(tmp_path):
    out = io.BytesIO()
    pq.write_table(OTHERS, out)
    opened = open_table(dropped(tmp_path, out.getvalue()).root)

    with pytest.raises(
        CorruptTableError, match=r"data-1\.parquet has 2 rows and none of the columns of schema/schema-0"
    ):
        opened.current.to_arrow()
    with pytest.raises(CorruptTableError, match=r"data-1\.parquet has no column 'id' of schema/schema-0"):
        opened.at(1).to_arrow()


def test_a_file_that_is_something_else_is_refused_where_nothing_of_it_is_read(tmp_path):
    out = io.BytesIO()
    orc.write_table(OTHERS, out)
    table = dropped(tmp_path, out.getvalue())

    with pytest.raises(CorruptTableError, match=r"data-1\.parquet cannot be read as parquet"):
        open_table(table.root).current.to_arrow()


@pytest.mark.parametrize("name", ["evolution_append", "evolution_append_avro", "evolution_append_orc"])
def test_each_column_read_alone_is_that_of_all(name):
    opened = open_table(DATA / name)

    for version in opened.versions():
        snapshot = opened.at(version)
        rows = snapshot.to_arrow()
        for column in rows.column_names:
            assert snapshot.to_arrow(columns=[column]) == rows.select([column])
