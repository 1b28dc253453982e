"""Columns of type VECTOR: lists of a fixed length, stored as bytes in little-endian order."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from tests.inner.hudi import arrow_type, type_text
from tests.inner.hudi import schema_parse_fields as parse_fields

DATA = Path(__file__).parents[2] / "data" / "hudi"
TABLES = [DATA / f"v9_{kind}_vectors" for kind in ("cow", "mor")]


def parsed(size, root="fixed", **more):
    stored = {"type": root, "name": "v", "size": size, "logicalType": "vector"} | more
    schema = {"type": "record", "name": "r", "fields": [{"name": "v", "type": ["null", stored]}]}
    return parse_fields(json.dumps(schema), "a schema")[0].type


@pytest.mark.parametrize(
    ("items", "dimension", "size", "dtype", "text"),
    [
        ("FLOAT", 3, 12, pa.float32(), "vector(3, float)"),
        ("DOUBLE", 2, 16, pa.float64(), "vector(2, double)"),
        ("INT8", 5, 5, pa.int8(), "vector(5, int8)"),
        (None, 1, 4, pa.float32(), "vector(1, float)"),
        ("FLOAT", 1_048_576, 4_194_304, pa.float32(), "vector(1048576, float)"),
    ],
)
def test_a_vector_is_a_list_of_its_length(items, dimension, size, dtype, text):
    found = parsed(size, dimension=dimension, **({"elementType": items} if items else {}))

    assert arrow_type(found) == pa.list_(pa.field("item", dtype, nullable=False), dimension)
    assert type_text(found) == text


@pytest.mark.parametrize(
    "stored",
    [
        {"size": 12, "dimension": 3, "elementType": "BFLOAT16"},
        {"size": 12, "dimension": 3, "storageBacking": "ARRAY"},
        {"size": 12, "dimension": 0},
        {"size": 12},
        {"size": 8_388_608, "dimension": 2_097_152},
        {"size": 12, "dimension": 3, "root": "bytes"},
    ],
    ids=["items", "backing", "no item", "no dimension", "long", "bytes"],
)
def test_another_kind_of_vector_is_refused_by_name(stored):
    with pytest.raises(UnsupportedFeatureError, match="vector"):
        parsed(**stored)


@pytest.mark.parametrize("size", [11, 13, 24])
def test_a_vector_in_bytes_of_another_number_is_not_read(size):
    with pytest.raises(CorruptTableError):
        parsed(size, dimension=3, elementType="FLOAT")


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("v[1] > 1", {1, 2}),
        ("v IS NULL", set()),
        ("d IS NULL", {2}),
        ("d IS NOT NULL", {1}),
        ("b = [-128, 127, 0, 1]", {1}),
        ("array_distance(v, [9, 8, 7]::FLOAT[3]) = 0", {2}),
    ],
)
def test_conditions_find_the_rows_that_match(path, where, ids):
    assert set(open_table(str(path)).current.to_arrow(where=where)["id"].to_pylist()) == ids


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_rows_that_changed_are_found_and_files_have_no_bounds(path):
    table = open_table(str(path))

    changes = table.diff_rows(table.versions()[0], table.versions()[-1]).to_arrow().to_pylist()
    files = table.current.files(statistics=True).to_arrow()

    assert [(row["rowkind"], row["id"], row["v"]) for row in changes if row["rowkind"] != "-D"] == [
        ("-U", 2, None),
        ("+U", 2, [9.0, 8.0, 7.0]),
    ]
    assert all(bound is None or bound["v"] is None for bound in files["lower"].to_pylist())
