"""The diff of a version and rows that belong to no table: DataFrames, Arrow data and plain files."""

import datetime as dt
import io
from pathlib import Path

import duckdb
import fastavro
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import snapshot_explorer as sx
from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import (
    CorruptTableError,
    InvalidArgumentError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tests.support.delta.table_builder import DeltaTable

DATA = Path(__file__).parents[1] / "data"
TABLES = (
    *("delta/types", "delta/partition_types", "delta/widened_nested", "delta/dv_partitioned", "delta/empty"),
    *("delta/variants", "hudi/v9_cow_types", "hudi/v9_mor_vectors", "iceberg/v3_row_lineage", "paimon/append_avro"),
    *("paimon/append_orc", "paimon/evolution_nested", "paimon/vectors_nested", "paimon/aggregates"),
)
"""Tables with columns of all types."""
SAME = {"inserted": 0, "deleted": 0, "updated": 0}
FIELDS = [("id", "long"), ("name", "string"), ("amount", "double")]
ROWS_OF_ORDERS = pa.table({"id": [1], "name": ["a"], "amount": [1.0]})
ROWS = [(1, "a", 1.0), (2, "b", 2.0), (3, None, 3.0)]


@pytest.fixture
def orders(tmp_path):
    """A version with the columns id, name and amount."""
    table = DeltaTable(None, tmp_path / "orders", fields=FIELDS)
    table.commit(table.data("a.parquet", ROWS))
    return open_table(str(tmp_path / "orders")).at("latest")


@pytest.mark.parametrize("name", TABLES)
def test_what_a_version_was_loaded_as_is_equal_to_it(name):
    snapshot = open_table(DATA / name).at("latest")
    stream = pa.table(snapshot)
    loaded = [stream, snapshot.to_arrow()]
    if name != "delta/variants":  # they are text in pandas
        loaded.append(snapshot.to_pandas())

    assert stream.schema.equals(snapshot.to_arrow().schema)
    assert [sx.diff(snapshot, rows, key=[]).counts for rows in loaded] == [SAME] * len(loaded)


def test_changed_rows_of_a_data_frame_are_found_by_key(orders):
    frame = orders.to_pandas()
    frame.loc[0, "amount"] = 1.5
    frame = pd.concat([frame.iloc[:2], pd.DataFrame({"id": [9], "name": ["z"], "amount": [9.0]})])

    diff = sx.diff(orders, frame, key="id")

    assert diff.counts == {"inserted": 1, "deleted": 1, "updated": 1}
    assert diff.inserted.to_pylist() == [{"id": 9, "name": "z", "amount": 9.0}]
    assert diff.plan.title == "Row diff: version 1 of orders to pandas DataFrame"
    assert "Reads 1 file, 3 rows and" in diff.plan.announcement
    assert "of version 1 of orders, and 3 rows of pandas DataFrame." in diff.plan.announcement
    assert diff.plan.call.endswith(".at(1), df, key='id')")


def test_the_data_frame_may_come_first(orders):
    diff = sx.diff(orders.to_pandas().iloc[1:], orders, key="id")

    assert diff.counts == {"inserted": 1, "deleted": 0, "updated": 0}
    assert diff.plan.title == "Row diff: pandas DataFrame to version 1 of orders"


def test_a_preview_reads_nothing_and_counts_what_is_in_memory(orders):
    plan = sx.diff(orders, orders.to_arrow().slice(1), preview=True)

    assert (plan.most_deleted, plan.most_inserted) == (3, 2)
    assert plan.proof == "The rows differ: A has 1 row more."
    assert "pyarrow Table" in repr(plan)


def test_an_index_with_a_name_is_a_column_and_one_without_is_none(orders):
    frame = orders.to_pandas()

    assert sx.diff(orders, frame.set_index("id"), key="id").counts == SAME
    assert sx.diff(orders, frame.sample(frac=1, random_state=7), key="id").counts == SAME


def test_integers_with_nulls_are_floats_in_numpy_and_still_compared_as_integers(tmp_path):
    table = DeltaTable(None, tmp_path / "t", fields=[("id", "long"), ("n", "long")])
    table.commit(table.data("a.parquet", [(1, 5), (2, None)]))
    snapshot = open_table(str(tmp_path / "t")).at("latest")

    assert sx.diff(snapshot, pd.DataFrame({"id": [1, 2], "n": [5, np.nan]}), key="id").counts == SAME
    for value in (5.5, 2.0**53):
        with pytest.raises(UnsupportedFeatureError, match=r"'n' \(int64 in A, double in B\)"):
            sx.diff(snapshot, pd.DataFrame({"id": [1, 2], "n": [value, np.nan]}), key="id")


WIDER = {
    "dictionary": lambda rows: rows.set_column(1, "name", rows["name"].dictionary_encode()),
    "dictionary of views": lambda rows: rows.set_column(
        1, "name", pa.DictionaryArray.from_arrays([0, 1, None], pa.array(["a", "b"], pa.string_view()))
    ),
    "large text": lambda rows: rows.set_column(1, "name", rows["name"].cast(pa.large_string())),
    "view": lambda rows: rows.set_column(1, "name", rows["name"].cast(pa.string_view())),
    "unsigned": lambda rows: rows.set_column(0, "id", rows["id"].cast(pa.uint64())),
    "decimal": lambda rows: rows.set_column(0, "id", rows["id"].cast(pa.decimal128(20, 1))),
    "runs": lambda rows: rows.set_column(
        0, "id", pa.chunked_array([pa.RunEndEncodedArray.from_arrays([1, 2, 3], pa.array([1, 2, 3]))])
    ),
    "reader": lambda rows: rows.to_reader(),
    "relation": duckdb.from_arrow,
    "pandas categories": lambda rows: rows.to_pandas().astype({"name": "category"}),
}


@pytest.mark.parametrize("kind", WIDER)
def test_types_of_other_libraries_are_compared_by_their_values(orders, kind):
    assert sx.diff(orders, WIDER[kind](orders.to_arrow()), key="id").counts == SAME


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pd.DataFrame({0: [1]}), "has a column 0, which is not text"),
        (pd.DataFrame([[1, 2]], columns=["id", "id"]), "has several columns 'id'"),
        (pd.DataFrame({"id": [1, "x"]}), "'id' of the pandas DataFrame has values of several types"),
        (pd.DataFrame({"id": [1]}, index=pd.Index([5], name="id")), "has a column and an index 'id'"),
        (pa.table({"other": [1]}), "No column of A is compared with one of B"),
        (17, "diff compares snapshots, DataFrames and paths of files, got int"),
        (None, "got NoneType"),
        (pd.Series([1], name="id"), "has no rows that Arrow can read|got Series"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_has_no_rows_in_named_columns_is_refused(orders, rows, message):
    with pytest.raises(InvalidArgumentError, match=message):
        sx.diff(orders, rows)


def test_a_key_that_is_null_or_twice_is_refused_with_what_has_it(orders):
    with pytest.raises(InvalidArgumentError, match="is null in a row of pyarrow Table: id="):
        sx.diff(orders, pa.table({"id": pa.array([None], pa.int64())}), key="id")
    with pytest.raises(InvalidArgumentError, match="several rows of pyarrow Table have id=1"):
        sx.diff(orders, pa.table({"id": [1, 1], "name": ["x", "y"]}), key="id")


def test_renamed_columns_and_a_condition_apply_to_a_data_frame_too(orders):
    frame = pd.DataFrame({"order_id": [1, 2], "name": ["a", "B"], "amount": [1.0, 2.0]})

    diff = sx.diff(orders, frame, key="order_id", columns={"id": "order_id"}, where="order_id < 3", ignore_case=True)

    assert diff.counts == SAME
    assert diff.plan.columns == ("order_id", "name", "amount")


# Files.


def write(folder, kind, rows):
    """Write rows as a file of a kind, and return its path."""
    path = folder / f"rows.{kind}"
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        pq.write_table(rows, path)
    elif kind == "orc":
        pyarrow.orc.write_table(rows, str(path))
    elif kind == "csv":
        pyarrow.csv.write_csv(rows, path)
    elif kind == "csv.gz":
        with pa.CompressedOutputStream(str(path), "gzip") as sink:
            pyarrow.csv.write_csv(rows, sink)
    elif kind == "avro":
        types = {pa.int64(): "long", pa.string(): "string", pa.float64(): "double"}
        fields = [{"name": field.name, "type": ["null", types[field.type]]} for field in rows.schema]
        with path.open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, rows.to_pylist())
    else:
        new = pa.ipc.new_stream if kind == "arrows" else pa.ipc.new_file
        with new(str(path), rows.schema) as writer:
            writer.write_table(rows)
    return path


KINDS = ("parquet", "orc", "avro", "csv", "csv.gz", "arrow", "arrows", "feather")


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_compared_alone_and_as_a_folder(orders, tmp_path, kind):
    rows = orders.to_arrow()
    path = write(tmp_path / "export", kind, rows.slice(0, 2))
    (tmp_path / "export" / "_SUCCESS").write_text("")

    assert sx.diff(orders, path, key="id").counts == {"inserted": 0, "deleted": 1, "updated": 0}
    assert sx.diff(str(tmp_path / "export"), orders, key="id").counts == {"inserted": 1, "deleted": 0, "updated": 0}
    plan = sx.diff(orders, path, preview=True)
    assert plan.b.named == str(path)
    assert plan.call.endswith(f", {str(path)!r})")


@pytest.mark.parametrize("name", TABLES)
def test_what_a_version_was_written_to_is_equal_to_it(tmp_path, name):
    snapshot = open_table(DATA / name).at("latest")
    rows = snapshot.to_arrow()
    rows = rows.cast(pa.schema([field.with_nullable(nullable=True) for field in rows.schema]))
    is_nested = any(pa.types.is_nested(field.type) for field in rows.schema)

    for kind in ("parquet", "arrow") if is_nested else ("parquet", "arrow", "csv"):
        path = write(tmp_path, kind, rows)
        assert sx.diff(snapshot, path, key=[]).counts == SAME, kind


def test_times_that_nanoseconds_cannot_hold_are_read_from_orc(tmp_path):
    table = DeltaTable(None, tmp_path / "t", fields=[("id", "long"), ("at", "timestamp")])
    far = dt.datetime(9999, 12, 31, tzinfo=dt.UTC)
    table.commit(table.data("a.parquet", [(1, far), (2, None)]))
    snapshot = open_table(str(tmp_path / "t")).at("latest")

    assert sx.diff(snapshot, write(tmp_path / "x", "orc", snapshot.to_arrow()), key="id").counts == SAME


def test_times_of_old_spark_files_are_compared(tmp_path):
    table = DeltaTable(None, tmp_path / "t", fields=[("id", "long"), ("at", "timestamp")])
    table.commit(table.data("a.parquet", [(1, dt.datetime(2026, 11, 1, tzinfo=dt.UTC))]))
    snapshot = open_table(str(tmp_path / "t")).at("latest")
    pq.write_table(snapshot.to_arrow(), tmp_path / "x.parquet", use_deprecated_int96_timestamps=True)

    assert sx.diff(snapshot, tmp_path / "x.parquet", key="id").counts == SAME


def test_folders_of_partitions_are_columns_of_the_type_that_they_are_compared_with(orders, tmp_path):
    rows = orders.to_arrow()
    for value, text in ((1, "1"), (2, "2"), (3, "3")):
        part = rows.filter(pa.compute.equal(rows["id"], value)).drop_columns(["id"])
        write(tmp_path / "x" / f"id={text}", "parquet", part)
    assert sx.diff(orders, tmp_path / "x", key="id").counts == SAME

    by_name = tmp_path / "y"
    for name, row in (("a", 0), ("b%2Fc", 1), ("__HIVE_DEFAULT_PARTITION__", 2)):
        write(by_name / f"name={name}", "csv", rows.slice(row, 1).drop_columns(["name"]))
    diff = sx.diff(orders, by_name, key="id")
    assert diff.counts == {"inserted": 0, "deleted": 0, "updated": 1}
    assert diff.after.to_pylist() == [{"id": 2, "name": "b/c", "amount": 2.0}]
    write(tmp_path / "z" / "id=x", "parquet", rows.drop_columns(["id"]))
    with pytest.raises(InvalidArgumentError, match="id=x of id=x/rows.parquet is no int64"):
        sx.diff(orders, tmp_path / "z", key="id")


def test_a_text_in_csv_is_itself_and_only_an_unquoted_empty_one_is_null(tmp_path):
    table = DeltaTable(None, tmp_path / "t", fields=[("id", "long"), ("name", "string"), ("amount", "double")])
    table.commit(table.data("a.parquet", [(1, "NA", 1.50), (2, "", None), (3, None, -2.00), (4, "null", None)]))
    snapshot = open_table(str(tmp_path / "t")).at("latest")
    (tmp_path / "x.csv").write_text('id,name,amount\n1,NA,1.5\n2,"",\n3,,-2\n4,null,\n')
    (tmp_path / "bad.csv").write_text("id,name\n1,a\nx,b\n")

    assert sx.diff(snapshot, tmp_path / "x.csv", key="id").counts == SAME
    with pytest.raises(InvalidArgumentError, match="bad.csv cannot be read as CSV with the columns of the table"):
        sx.diff(snapshot, tmp_path / "bad.csv", key="id")


def test_files_that_do_not_fit_together_are_refused(orders, tmp_path):
    write(tmp_path / "a", "parquet", pa.table({"id": [1]}))
    pq.write_table(pa.table({"id": [1], "more": [2]}), tmp_path / "a" / "z.parquet")
    write(tmp_path / "b", "parquet", pa.table({"id": [1]}))
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "b" / "z.parquet")
    write(tmp_path / "c" / "id=1", "parquet", pa.table({"id": [1]}))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x.json").write_text("{}")
    (tmp_path / "e").mkdir()

    with pytest.raises(InvalidArgumentError, match=r"different columns: id in rows.parquet, id, more in z.parquet"):
        sx.diff(orders, tmp_path / "a")
    with pytest.raises(UnsupportedFeatureError, match="without a common one"):
        sx.diff(orders, tmp_path / "b")
    with pytest.raises(InvalidArgumentError, match="'id' is in id=1/rows.parquet and in the name of its folder"):
        sx.diff(orders, tmp_path / "c")
    with pytest.raises(
        InvalidArgumentError,
        match="The file x.json in .* cannot be compared. Name a folder of files that end in .parquet",
    ):
        sx.diff(orders, tmp_path / "d")
    for path in (tmp_path / "e", tmp_path / "nothing", tmp_path / "nothing.csv"):
        with pytest.raises(TableNotFoundError, match="There is nothing to compare with at"):
            sx.diff(orders, path)


def test_a_table_is_not_compared_file_by_file(orders, tmp_path):
    (tmp_path / "lake" / "shop").mkdir(parents=True)
    (tmp_path / "orders").rename(tmp_path / "lake" / "shop" / "orders")

    for folder in ("lake/shop/orders", "lake/shop", "lake"):
        with pytest.raises(InvalidArgumentError, match="orders is a table, and some files in it may not be live"):
            sx.diff(ROWS_OF_ORDERS, tmp_path / folder)


def test_columns_with_odd_names_are_found_in_every_kind_of_file(tmp_path):
    names = ["id", "a.b", 'q"x`', "", "a b"]
    plain = pa.table([[1, 2]] * len(names), names=names)
    nested = plain.append_column("a", pa.array([{"b": 5, "c": "x"}, {"b": 6, "c": "y"}]))

    for kind in ("parquet", "orc", "csv", "arrow"):
        rows = plain if kind == "csv" else nested
        assert sx.diff(rows, write(tmp_path, kind, rows), key="id").counts == SAME, kind


def test_a_damaged_file_is_named(orders, tmp_path):
    for kind in ("parquet", "orc", "avro", "arrow", "csv.gz"):
        path = write(tmp_path / kind, kind, orders.to_arrow())
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises((CorruptTableError, InvalidArgumentError), match=f"rows.{kind}"):
            _ = sx.diff(orders, path, key="id").counts


def test_files_on_a_store_are_read_with_storage_options(memory_root, orders):
    filesystem, root = memory_root
    sink = io.BytesIO()
    pq.write_table(orders.to_arrow(), sink)
    filesystem.pipe_file(f"{root}/x/a.parquet", sink.getvalue())

    assert sx.diff(orders, f"memory://{root}/x", key="id", storage_options={}).counts == SAME
    assert sx.diff(orders, f"memory://{root}/x/a.parquet", key="id").counts == SAME


# The stream of a snapshot.


def test_a_snapshot_is_a_stream_for_duckdb_and_pandas(orders):
    assert duckdb.sql("select sum(id) from orders").fetchall() == [(6,)]
    assert pa.table(orders).equals(orders.to_arrow())


def test_a_stream_reads_a_few_files_ahead_and_not_all(tmp_path, monkeypatch):
    table = DeltaTable(None, tmp_path / "t", fields=[("id", "long")])
    table.commit(*(table.data(f"{number}.parquet", [(number,)]) for number in range(60)))
    snapshot = open_table(str(tmp_path / "t")).at("latest")
    reads = []
    version = snapshot._version
    read = type(version).read
    monkeypatch.setattr(type(version), "read", lambda *args: reads.append(1) or read(*args))

    reader = pa.RecordBatchReader.from_stream(snapshot)
    reader.read_next_batch()

    assert len(reads) < 20
    assert reader.read_all().num_rows == 59


def test_a_version_without_rows_is_a_stream_of_its_columns(tmp_path):
    table = DeltaTable(None, tmp_path / "t", fields=FIELDS)
    table.commit()
    snapshot = open_table(str(tmp_path / "t")).at("latest")

    assert pa.table(snapshot).equals(snapshot.to_arrow())
    assert sx.diff(snapshot, pd.DataFrame({"id": [], "name": [], "amount": []})).counts == SAME


def test_samples_can_be_compared_with_what_was_exported():
    snapshot = open_table(samples.path("orders")).at("latest")

    assert sx.diff(snapshot, snapshot.to_pandas(), key=[]).counts == SAME
