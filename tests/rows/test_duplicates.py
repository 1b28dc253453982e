"""Rows whose key occurs several times in a version."""

import pyarrow as pa
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError
from tests.support.delta.table_builder import DeltaTable

TAGS = {"type": "array", "elementType": "string", "containsNull": True}


@pytest.fixture
def doubled(tmp_path):
    """A table in which a job wrote the rows 1 and 2 again, and rows without a name."""
    table = DeltaTable(None, tmp_path, fields=[("id", "long"), ("name", "string"), ("rows", "long")])
    table.append([(1, "a", 1), (2, "b", 1), (3, None, 1)])
    table.append([(1, "a", 1), (2, "c", 1), (1, "a", 1), (4, None, 1)])
    return open_table(str(tmp_path))


def rows_of(frame):
    return [tuple(row.values()) for row in frame.to_dict()]


def test_keys_of_several_rows_are_counted(doubled):
    found = doubled.current.duplicates("id")

    assert found.column_names == ["rows", "id"]
    assert rows_of(found) == [(3, 1), (2, 2)]
    assert "3 of 7 rows repeat the id of another one." in str(found)
    assert 'table.bisect(\'count("id") > count(distinct "id")\')' in str(found)
    assert doubled.bisect('count("id") > count(distinct "id")').version == doubled.current.version


def test_without_a_key_whole_rows_are_counted_and_nulls_are_equal(doubled):
    assert rows_of(doubled.current.duplicates()) == [(3, 1, "a", 1)]
    assert doubled.current.duplicates().column_names == ["rows_", "id", "name", "rows"]
    assert rows_of(doubled.current.duplicates(["name"])) == [(3, "a"), (2, None)]
    assert rows_of(doubled.current.duplicates(["name"], where="id > 1")) == [(2, None)]


def test_a_primary_key_is_the_default_and_is_unique():
    found = open_table(samples.path("orders")).current.duplicates()

    assert (len(found), found.column_names) == (0, ["rows", "order_id"])
    assert "None of 41 rows repeat the order_id of another one." in str(found)


def test_keys_that_do_not_fit_are_refused(doubled, tmp_path):
    types = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])
    nested = DeltaTable(None, tmp_path / "nested", fields=[("id", "long"), ("tags", TAGS)])
    nested.commit(nested.data("a.parquet", [(1, ["a"]), (1, [])], schema=types))
    current = open_table(str(tmp_path / "nested")).current

    with pytest.raises(InvalidArgumentError, match="color"):
        doubled.current.duplicates("color")
    with pytest.raises(InvalidArgumentError, match=r"values of tags are nested .* such as key=\['id'\]"):
        current.duplicates()
    assert rows_of(current.duplicates("id")) == [(2, 1)]
