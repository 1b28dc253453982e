"""Columns of type VECTOR: lists of a fixed length, in conditions, diffs, metadata tables and schemas that changed."""

import io
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import diff, open_table
from snapshot_explorer.arrow import parquet_footers
from snapshot_explorer.core import old_libraries
from snapshot_explorer.errors import (
    CorruptTableError,
    InvalidArgumentError,
    SnapshotExplorerError,
    UnsupportedFeatureError,
)
from snapshot_explorer.history import history_of
from tests.inner.paimon import read
from tests.support.paimon.splits import Files, entry, measured, parquet, rows, schema, splits

DATA = Path(__file__).parents[2] / "data" / "paimon"
MERGED, APPENDED, NESTED = (str(DATA / f"vectors_{name}") for name in ("parquet", "avro", "nested"))
ALL = [DATA / f"vectors_{name}" for name in ("parquet", "orc", "avro", "evolving")]


def vector(item, length):
    return pa.list_(pa.field("element", item), length)


def test_the_schema_shows_the_type_and_arrow_has_the_length():
    table = open_table(MERGED)

    assert [column.type for column in table.at("latest").schema.columns] == [
        "INT",
        "VECTOR<FLOAT, 3>",
        "VECTOR<TINYINT, 2>",
    ]
    assert table.current.to_arrow().schema.field("f").type == vector(pa.float32(), 3)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("f[1] > 1", {1}),
        ("f IS NULL", {2, 3}),
        ("f IS NOT NULL", {1, 4}),
        ("b = [9, 9]", {2}),
        ("b[2] BETWEEN 0 AND 5", {4}),
        ("f = [0, 0, 0]::FLOAT[3]", {4}),
        ("array_distance(f, [0, 0, 0]::FLOAT[3]) = 0", {4}),
        ("id = 3", {3}),
    ],
)
def test_conditions_find_the_rows_that_match(path, where, ids):
    found = set(open_table(str(path)).at(2).to_arrow(where=where)["id"].to_pylist())

    # Without a key there are two rows with the id 2.
    assert found - {2} == ids - {2}
    assert (2 in found) >= (2 in ids)


def test_rows_that_changed_are_found_by_the_bits_of_their_vectors():
    changes = open_table(MERGED).diff_rows(1, 2).to_arrow().to_pylist()

    kinds = [(row["rowkind"], row["id"], row["f"]) for row in changes]
    assert ("+I", 4, [0.0, 0.0, 0.0]) in kinds
    assert ("-U", 2, [math.inf, -math.inf, np.float32(1e-45)]) in kinds
    assert ("+U", 2, None) in kinds
    assert not [row for row in kinds if row[1] in (1, 3)]


def test_a_copy_of_the_table_in_another_file_format_has_the_same_rows():
    compared = diff(open_table(MERGED).at(2), open_table(str(DATA / "vectors_orc")).at(2), key="id")

    assert compared.to_arrow().num_rows == 0


@pytest.mark.parametrize("path", [*ALL, DATA / "vectors_nested"], ids=lambda path: path.name)
def test_files_and_metadata_tables_have_no_bounds_of_vectors(path):
    table = open_table(str(path))
    column = table.at("latest").schema.columns[1].name

    files = table.current.files(statistics=True).to_arrow()

    assert all(bound[column] is None for name in ("lower", "upper") for bound in files[name].to_pylist())
    for inspection in history_of(table).table_format.inspections:
        try:
            table.inspect(inspection.name).to_arrow().validate(full=True)
        except (InvalidArgumentError, UnsupportedFeatureError):  # it needs an option that the table lacks
            continue


def test_sql_has_the_vectors():
    found = open_table(APPENDED).sql("SELECT id, f[1] AS first FROM this WHERE f IS NOT NULL ORDER BY id, first")

    assert found["first"].tolist() == [1.5, math.inf, 0.0]


def test_files_for_vectors_alone_are_refused_by_name():
    with pytest.raises(UnsupportedFeatureError, match=r"files for vectors alone .the data file .*\.vector\.parquet"):
        open_table(str(DATA / "vectors_apart")).current.to_arrow()


LISTS = pa.table({"k": [1, 2, 3], "v": pa.array([[1.0, 2.0], None, [3.0, math.nan]], pa.list_(pa.float32()))})
FIXED = LISTS.set_column(1, "v", LISTS["v"].cast(vector(pa.float32(), 2)))


@pytest.mark.parametrize(
    "stored",
    [LISTS, FIXED, LISTS.set_column(1, "v", LISTS["v"].cast(pa.large_list(pa.float32())))],
    ids=["list", "fixed", "large"],
)
def test_lists_of_any_type_in_files_become_vectors(stored):
    version = schema([("k", "BIGINT"), ("v", "VECTOR<FLOAT, 2>")])
    (split,) = splits(version, [entry("a.parquet", rows=3)])

    found = rows(Files({"bucket-0/a.parquet": parquet(stored)}), split, ["k", "v"])

    found.validate(full=True)
    assert found["v"].type == vector(pa.float32(), 2)
    assert str(found["v"].to_pylist()) == str(LISTS["v"].to_pylist())


@pytest.mark.parametrize(
    "values",
    [[[1.0]], [[1.0, 2.0, 3.0]], [[]], [[1.0, None]], [None, [1.0]]],
    ids=["one", "three", "none", "null", "mixed"],
)
def test_lists_that_are_no_vectors_of_the_type_are_refused(values):
    version = schema([("k", "BIGINT"), ("v", "VECTOR<FLOAT, 2>")])
    stored = pa.table({"k": pa.array(range(len(values)), pa.int64()), "v": pa.array(values, pa.list_(pa.float32()))})
    (split,) = splits(version, [entry("a.parquet", rows=len(values))])

    with pytest.raises(SnapshotExplorerError, match="a.parquet"):
        rows(Files({"bucket-0/a.parquet": parquet(stored)}), split, ["k", "v"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("VECTOR<FLOAT, 2>", "VECTOR<FLOAT, 3>"),
        ("VECTOR<FLOAT, 2>", "VECTOR<DOUBLE, 2>"),
        ("ARRAY<FLOAT>", "VECTOR<FLOAT, 2>"),
        ("VECTOR<FLOAT, 2>", "ARRAY<FLOAT>"),
        ("VECTOR<FLOAT, 2>", "STRING"),
    ],
)
def test_a_change_of_a_vectors_type_is_refused_before_any_row(before, after):
    old, new = schema([("k", "INT"), ("v", before)]), schema([("k", "INT"), ("v", after)], number=1)

    with pytest.raises(UnsupportedFeatureError, match="The column 'v' was changed"):
        splits(new, [entry("a.parquet")], file_schemas={0: old, 1: new})


def test_a_vector_that_files_lack_is_null_within_the_memory_of_a_batch():
    old = schema([("k", "BIGINT")])
    new = schema([("k", "BIGINT"), ("v", "VECTOR<DOUBLE, 131072>")], number=1)
    (split,) = splits(new, [entry("a.parquet", rows=100)], file_schemas={0: old, 1: new})
    stored = pa.table({"k": pa.array(range(100), pa.int64())})

    files = Files({"bucket-0/a.parquet": parquet(stored)})
    found = list(read.read(files, measured(split, files), ["k", "v"]))

    assert sum(batch.num_rows for batch in found) == 100
    assert all(batch.column(1).null_count == batch.num_rows for batch in found)
    assert max(batch.num_rows for batch in found) <= 64


def test_a_schema_with_another_length_than_the_files_is_not_read(tmp_path):
    path = Path(shutil.copytree(APPENDED, tmp_path / "t"))
    stored = json.loads((path / "schema" / "schema-0").read_text())
    stored["fields"][1]["type"]["length"] = 4
    (path / "schema" / "schema-0").write_text(json.dumps(stored))

    with pytest.raises((CorruptTableError, UnsupportedFeatureError), match="f"):
        open_table(str(path)).current.to_arrow()


@pytest.mark.parametrize("dtype", [vector(pa.int8(), 2), pa.struct({"v": vector(pa.int8(), 2)})], ids=str)
def test_older_pyarrow_reads_null_vectors_of_parquet_files_as_lists(dtype, monkeypatch):
    monkeypatch.setattr(old_libraries, "installed_version", lambda _: "25.0")
    out = io.BytesIO()
    value = [1, 2] if pa.types.is_fixed_size_list(dtype) else {"v": [1, 2]}
    pq.write_table(pa.table({"x": pa.array([value, None], dtype)}), out)

    found = parquet_footers.open_file(pa.BufferReader(out.getvalue())).read()

    assert found["x"].to_pylist() == [value, None]
    assert found.schema.field("x").type != dtype
