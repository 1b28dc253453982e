"""Rows of any version as a Spark DataFrame: the same as locally, whichever way they are read."""

import json
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.engines.spark import conditions, executors, native, sessions, tasks
from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.table import parts_of
from tests.inner.core import PYSPARK_ARROW, PYSPARK_COLLATIONS, PYSPARK_VARIANTS, Split
from tests.inner.engines import parse_condition
from tests.inner.engines_spark import spark_schema
from tests.support import spark_clusters
from tests.support.canonical import canonical_rows
from tests.support.delta.table_builder import DeltaTable, add, metadata
from tests.support.old_libraries import refused_if
from tests.support.paimon.table_builder import PaimonTable
from tests.support.spark_frames import arrow_table

DATA = Path(__file__).parents[1] / "data"
FORMATS = ("delta", "paimon", "hudi")
VECTORS = ["deletionVectors"]
NEWEST = {
    kind: sorted(path.name for path in (DATA / kind).iterdir() if path.is_dir() and not path.name.startswith("aggr"))
    for kind in ("delta", "paimon")
} | {"hudi": ["v9_cow_basic", "v9_mor_basic"]}


def local(snapshot):
    try:
        return snapshot.to_arrow()
    except SnapshotExplorerError as error:
        return type(error), str(error)


def plans(frame):
    """What Spark tells of how it gives rows, in all stages."""
    with redirect_stdout(StringIO()) as printed:
        frame.explain(extended=True)
    return printed.getvalue()


def scans(frame):
    """What rows are read with: the kind of file for Spark's own readers, MapInArrow for the formats'."""
    found = re.findall(r"FileScan (parquet|orc)|\b(?:Python)?(MapInArrow)\b", plans(frame))
    return {one or other for one, other in found}


def append(table, rows, *, name=None, partition=None):
    """Write rows as one new file of a Delta table, in a commit of its own."""
    name = name or f"part-{table.version}.parquet"
    path = Path(table.root) / name
    pq.write_table(rows, path)
    table.commit(add(name, partition=partition, size=path.stat().st_size, rows=rows.num_rows))


@pytest.fixture
def numbers(tmp_path):
    """A Delta table of four files with a column of every type that conditions are pushed on."""
    fields = [
        ("id", "long"),
        ("small", "integer"),
        ("amount", "double"),
        ("name", "string"),
        ("day", "date"),
        ("good", "boolean"),
    ]
    table = DeltaTable(None, tmp_path / "numbers", fields=fields)
    for start in range(0, 40, 10):
        ids = range(start, start + 10)
        rows = pa.table(
            {
                "id": pa.array([None if one % 7 == 3 else one for one in ids], pa.int64()),
                "small": pa.array([None if one % 5 == 1 else one - 20 for one in ids], pa.int32()),
                "amount": pa.array(
                    [{0: None, 1: float("nan"), 2: -0.0, 3: float("inf")}.get(one % 6, one / 4) for one in ids]
                ),
                "name": pa.array([{0: None, 1: "", 2: "Ä"}.get(one % 4, f"n{one}") for one in ids]),
                "day": pa.array([None if one % 9 == 0 else one * 400 - 5000 for one in ids], pa.int32()).cast(
                    pa.date32()
                ),
                "good": pa.array([None if one % 3 == 0 else one % 2 == 0 for one in ids]),
            }
        )
        append(table, rows)
    return tmp_path / "numbers"


ALIKE = {
    "delta": ("dv_partitioned", "types", "mapping_later", "variants"),
    "paimon": ("append_orc", "aggregation", "dv", "evolution_append"),
    "hudi": ("v9_cow_basic", "v9_mor_basic"),
}
"""Tables that are read in every way."""


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_types_and_nullability_are_those_of_the_local_rows(spark, spark_mode, kind):
    """All tables in the session on this machine; in others a few that are read in every way."""
    seen = set()
    for name in NEWEST[kind] if spark_mode == "classic" else ALIKE[kind]:
        snapshot = open_table(str(DATA / kind / name)).current
        expected = local(snapshot)
        if isinstance(expected, tuple):
            with pytest.raises(expected[0]):
                arrow_table(snapshot.to_spark(spark))
            continue
        if name == "variants" and PYSPARK_VARIANTS.applies():
            with refused_if(PYSPARK_VARIANTS):
                snapshot.to_spark(spark)
            continue

        frame = snapshot.to_spark(spark)

        seen |= scans(frame)
        assert frame.schema == spark_schema(snapshot.arrow_schema), name
        if name == "variants":  # PySpark 4.3 fails on any variant that is null, its own too
            frame = frame.selectExpr("count(*)", *(f"count(`{column}`)" for column in frame.columns))
            counts = [expected.num_rows, *(len(column) - column.null_count for column in expected.columns)]
            assert list(frame.first()) == counts
            continue
        assert canonical_rows(arrow_table(frame)) == canonical_rows(expected), name
    assert seen == {"parquet", "MapInArrow"}


def test_orc_files_are_read_by_spark_with_columns_that_are_never_null(spark):
    table = open_table(str(DATA / "paimon" / "evolution_append_orc"))
    snapshot = table.at(table.current.version)  # in the schema of its commit, which its newest file has too

    frame = snapshot.to_spark(spark, columns=["k", "a", "b"])

    assert "orc" in scans(frame)
    assert not frame.schema["k"].nullable
    assert canonical_rows(arrow_table(frame)) == canonical_rows(snapshot.to_arrow(columns=["k", "a", "b"]))


@pytest.mark.parametrize("columns", [None, ["_col0", "_col1"], ["_col0"]])
def test_columns_of_orc_files_are_found_by_name_whatever_spark_takes_the_names_for(spark, columns):
    snapshot = open_table(str(DATA / "paimon" / "orc_hive_names")).current

    found = snapshot.to_spark(spark, columns=columns)

    assert canonical_rows(arrow_table(found)) == canonical_rows(snapshot.to_arrow(columns=columns))


def test_nothing_is_read_and_nothing_is_kept_until_rows_are_requested(classic, numbers):
    spark = classic
    spark.sparkContext.setJobGroup("lazy", "lazy")

    frame = open_table(str(numbers)).current.to_spark(spark, where="id > 3", limit=5)

    assert not spark.sparkContext.statusTracker().getJobIdsForGroup("lazy")
    assert not frame.is_cached
    assert frame.count() == 5
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0


@pytest.mark.parametrize(
    ("where", "native"),
    [
        ("id > 3 AND small <= 10", True),
        ("NOT (id IN (1, 2, 38) OR name = 'n3')", True),
        ("id NOT BETWEEN 5 AND 30", True),
        ("amount >= 3", True),
        ("amount <> 3", True),
        ("day < DATE '1960-01-01'", True),
        ("day >= '1970-01-01' AND good", True),
        ("name IS NULL OR name < 'n2'", True),
        ("NOT good AND 10 > id", True),
        ("small > -5", True),
        ("id > 5000000000000", True),
        ("amount > 2.5", False),
        ("name LIKE 'n%'", False),
        ("upper(name) = 'N3'", False),
        ("id + 1 = 4", False),
        ("id IN (1, NULL)", False),
    ],
)
def test_a_condition_keeps_the_rows_that_it_keeps_locally(spark, numbers, where, native):
    snapshot = open_table(str(numbers)).current

    frame = snapshot.to_spark(spark, columns=["small", "id"], where=where)

    assert canonical_rows(arrow_table(frame)) == canonical_rows(snapshot.to_arrow(columns=["small", "id"], where=where))
    assert scans(frame) == {"parquet"} if native else {"MapInArrow"}


def test_every_pair_of_comparisons_means_the_same_to_spark(here, numbers):
    snapshot = open_table(str(numbers)).current
    parts = [
        f"{column} {sign} {value}"
        for column, values in {
            "id": (0, 17, -3),
            "small": (0, -7),
            "amount": (0, 2),
            "name": ("''", "'n7'", "'Ä'"),
            "day": ("'1958-01-01'",),
            "good": ("true", "false"),
        }.items()
        for value in values
        for sign in ("=", "<>", "<", ">", "<=", ">=")
    ]
    texts = [f"NOT ({one}) OR {other}" for one, other in zip(parts, parts[5:] + parts[:5], strict=True)] + parts
    from pyspark.sql import functions as f

    asked = [parse_condition(text, snapshot.arrow_schema) for text in texts]
    found = [conditions.translate_condition(one, snapshot.arrow_schema) for one in asked]
    rows = snapshot.to_spark(here)
    sums = rows.agg(*(f.count(f.when(one, 1)) for one in found)).first()

    assert list(sums) == [snapshot.count(text) for text in texts]


@pytest.mark.parametrize("where", ["x > 5", "NOT (x <= 5)", "y = 0", "y >= 0", "NOT (z < 0)", "x IN (0, 5)"])
def test_doubles_that_statistics_leave_out_are_found(spark, tmp_path, where):
    table = DeltaTable(None, tmp_path / "t", fields=[("x", "double"), ("y", "double"), ("z", "float")])
    kinds = {"x": pa.float64(), "y": pa.float64(), "z": pa.float32()}
    values = {"x": [1.0, float("nan")], "y": [-0.0, -0.0], "z": [-1.0, float("nan")]}
    append(table, pa.table({name: pa.array(values[name], kinds[name]) for name in kinds}))
    snapshot = open_table(str(tmp_path / "t")).current

    asked, filtered = snapshot.to_spark(spark, where=where), snapshot.to_spark(spark).filter(where)

    assert scans(filtered) == {"parquet"}
    assert asked.count() == filtered.count() == snapshot.count(where)


def test_doubles_in_structs_are_found_though_spark_pushes_filters_on_them(spark, tmp_path):
    inner = {"type": "struct", "fields": [{"name": "x", "type": "double", "nullable": True, "metadata": {}}]}
    table = DeltaTable(None, tmp_path / "t", fields=[("s", inner)])
    append(table, pa.table({"s": pa.array([{"x": 1.0}, {"x": float("nan")}])}))
    snapshot = open_table(str(tmp_path / "t")).current

    assert snapshot.to_spark(spark).filter("s.x > 5").count() == snapshot.count("s.x > 5") == 1


@pytest.mark.parametrize("sign", ["<", "<>", "<="])
def test_times_in_milliseconds_are_found_by_times_between_them(spark, tmp_path, sign):
    table = DeltaTable(None, tmp_path / "t", fields=[("at", "timestamp"), ("id", "long")])
    append(table, pa.table({"at": pa.array([0, 0], pa.timestamp("ms", tz="UTC")), "id": pa.array([1, 2], pa.int64())}))
    rows = open_table(str(tmp_path / "t")).current.to_spark(spark)

    found = rows.filter(f"at {sign} timestamp'1970-01-01 00:00:00.0005 UTC'")

    assert (scans(found), found.count()) == ({"parquet"}, 2)


def test_columns_come_in_the_order_requested_hidden_ones_too(spark):
    snapshot = open_table(str(DATA / "delta" / "row_tracking")).current

    frame = snapshot.to_spark(spark, columns=["_row_id", "id"])

    assert frame.columns == ["_row_id", "id"]
    assert canonical_rows(arrow_table(frame)) == canonical_rows(snapshot.to_arrow(columns=["_row_id", "id"]))


def test_rows_without_columns_are_counted(spark, numbers):
    frame = open_table(str(numbers)).current.to_spark(spark, columns=[], where="id < 5")

    assert frame.columns == []
    assert frame.count() == 4


def test_a_table_without_rows_has_its_columns(spark, tmp_path, numbers):
    DeltaTable(None, tmp_path / "none").commit()
    empty = open_table(str(tmp_path / "none")).current.to_spark(spark)
    nothing = open_table(str(numbers)).current.to_spark(spark, limit=0)

    assert (empty.columns, empty.count()) == (["id", "name"], 0)
    assert nothing.collect() == []


def test_arguments_are_refused_before_spark_is_asked(spark, numbers):
    snapshot = open_table(str(numbers)).current

    with pytest.raises(InvalidArgumentError, match="Unknown column 'ids'. Did you mean id?"):
        snapshot.to_spark(spark, columns=["ids"])
    with pytest.raises(InvalidArgumentError, match="limit must be 0 or more, got -1. Leave it out for all rows."):
        snapshot.to_spark(spark, limit=-1)


@pytest.mark.parametrize("name", ["a {b}", "[x]", "a*b?", "100%25", "a#b", "50% a=b", "a,b"])
def test_a_folder_of_any_name_is_read(spark, tmp_path, name):
    table = DeltaTable(None, tmp_path / name)
    append(table, pa.table({"id": pa.array([1], pa.int64()), "name": ["x"]}))

    assert open_table(str(tmp_path / name)).current.to_spark(spark).collect() == [(1, "x")]


@pytest.mark.parametrize("name", ["_part.parquet", ".part.parquet", "part.parquet._COPYING_"])
def test_a_file_that_spark_would_pass_over_is_read(spark, tmp_path, name):
    table = DeltaTable(None, tmp_path / "t")
    append(table, pa.table({"id": pa.array([1], pa.int64()), "name": ["x"]}), name=name)

    assert open_table(str(tmp_path / "t")).current.to_spark(spark).collect() == [(1, "x")]


def test_a_file_beside_checksums_of_another_one_is_read(spark, tmp_path):
    table = DeltaTable(None, tmp_path / "t")
    append(table, pa.table({"id": pa.array([1], pa.int64()), "name": ["x"]}), name="part.parquet")
    (tmp_path / "t" / ".part.parquet.crc").write_bytes(b"crc\0\0\0\2\0")

    assert open_table(str(tmp_path / "t")).current.to_spark(spark).collect() == [(1, "x")]


def test_files_that_other_readers_take_otherwise_are_left_to_the_formats_own(spark, tmp_path):
    table = DeltaTable(None, tmp_path / "t", fields=[("id", "long"), ("at", "timestamp")])
    rows = pa.table({"id": pa.array([1], pa.int64()), "at": pa.array([-(10**15)], pa.timestamp("us", tz="UTC"))})
    pq.write_table(rows, tmp_path / "t" / "int96.parquet", use_deprecated_int96_timestamps=True)
    old = rows.replace_schema_metadata({"org.apache.spark.version": "2.4.0", "org.apache.spark.timeZone": "UTC"})
    pq.write_table(old, tmp_path / "t" / "old.parquet")
    table.commit(add("int96.parquet"), add("old.parquet"))
    snapshot = open_table(str(tmp_path / "t")).current

    frame = snapshot.to_spark(spark)

    assert scans(frame) == {"MapInArrow"}
    assert canonical_rows(arrow_table(frame)) == canonical_rows(snapshot.to_arrow())


def test_narrower_numbers_of_old_files_and_columns_they_lack_are_read_by_spark(spark, tmp_path):
    table = DeltaTable(
        None, tmp_path / "t", fields=[("id", "long"), ("part", "date"), ("more", "double")], partition_by=("part",)
    )
    append(table, pa.table({"id": pa.array([1, None], pa.int16())}), partition={"part": "2026-01-01"})
    append(
        table,
        pa.table({"id": pa.array([2], pa.int64()), "more": pa.array([0.5], pa.float32())}),
        partition={"part": None},
    )
    snapshot = open_table(str(tmp_path / "t")).current

    frame = snapshot.to_spark(spark)

    assert scans(frame) == {"parquet"}
    assert canonical_rows(arrow_table(frame)) == canonical_rows(snapshot.to_arrow())


@pytest.fixture
def deleted(tmp_path):
    """A Delta table of three files of several row groups, two of them equally large, from which vectors take rows."""
    table = DeltaTable(None, tmp_path / "deleted", fields=[("id", "long"), ("name", "string")], features=VECTORS)
    for number, places in enumerate(([0, 1, 2, 3], range(0, 300, 2), [299], None)):
        ids = range(number * 300, number * 300 + 300)
        rows = pa.table({"id": pa.array(ids, pa.int64()), "name": [f"name {one:04}" for one in ids]})
        path = tmp_path / "deleted" / f"part-{number}.parquet"
        pq.write_table(rows, path, row_group_size=50)
        vector = None if places is None else table.vector(places)
        table.commit(add(path.name, size=path.stat().st_size, rows=300, vector=vector))
    return tmp_path / "deleted"


@pytest.mark.parametrize(
    "where", [None, "id >= 1 AND id < 420", "id IN (0, 298, 300, 301, 599, 899)", "name = 'name 0599'"]
)
@pytest.mark.parametrize("columns", [None, ["name"], ["id"]])
def test_rows_that_vectors_delete_are_left_out_by_spark_itself(spark, deleted, where, columns):
    snapshot = open_table(str(deleted)).current

    frame = snapshot.to_spark(spark, columns=columns, where=where)

    assert canonical_rows(arrow_table(frame)) == canonical_rows(snapshot.to_arrow(columns=columns, where=where))
    assert frame.schema == spark_schema(snapshot.to_arrow(columns=columns, limit=0).schema)
    assert scans(frame) == ({"parquet", "MapInArrow"} if PYSPARK_ARROW.applies() else {"parquet"})


def test_filters_and_counts_of_the_user_see_no_deleted_row(spark, deleted):
    snapshot = open_table(str(deleted)).current
    rows = snapshot.to_spark(spark)

    assert rows.count() == snapshot.count()
    assert rows.filter("id = 300").count() == rows.filter("name = 'name 0899'").count() == 0
    assert rows.filter("id between 299 and 301").collect() == [(299, "name 0299"), (301, "name 0301")]
    assert rows.selectExpr("min(id)").first()[0] == 4


def test_files_in_whose_paths_spark_writes_other_characters_lose_their_deleted_rows(spark, deleted):
    other = deleted.rename(deleted.parent / "a b%20c=+@,-")

    snapshot = open_table(str(other)).current

    assert canonical_rows(arrow_table(snapshot.to_spark(spark))) == canonical_rows(snapshot.to_arrow())


@pytest.mark.parametrize("name", ["dv", "dv_1_4", "dv_bitmap64"])
def test_rows_that_paimons_vectors_delete_are_left_out_at_each_version(spark, name):
    table = open_table(str(DATA / "paimon" / name))

    for version in table.history().to_arrow()["version"].to_pylist():
        snapshot = table.at(version)
        assert canonical_rows(arrow_table(snapshot.to_spark(spark))) == canonical_rows(snapshot.to_arrow()), version


@pytest.mark.parametrize("limit", ["_MAX_DELETED", "_MAX_BITMAP_BYTES"])
def test_more_deleted_rows_than_can_be_held_are_left_to_the_formats_own_reader(spark, deleted, monkeypatch, limit):
    monkeypatch.setattr(native, limit, 154)
    snapshot = open_table(str(deleted)).current

    frame = snapshot.to_spark(spark)

    assert scans(frame) == {"parquet", "MapInArrow"}
    assert canonical_rows(arrow_table(frame)) == canonical_rows(snapshot.to_arrow())


def test_a_column_named_as_sparks_own_is_read(spark, tmp_path):
    table = DeltaTable(None, tmp_path / "t", fields=[("id", "long"), ("_Metadata", "string")], features=VECTORS)
    pq.write_table(pa.table({"id": [1, 2], "_Metadata": ["a", "b"]}), tmp_path / "t" / "f.parquet")
    table.commit(add("f.parquet", rows=2, vector=table.vector([0])))

    assert open_table(str(tmp_path / "t")).current.to_spark(spark).collect() == [(2, "b")]


@pytest.mark.skipif(PYSPARK_ARROW.applies(), reason=PYSPARK_ARROW.problem)
def test_a_damaged_vector_is_reported_before_any_job(spark, deleted):
    vector = next(deleted.glob("*.bin"))
    vector.write_bytes(vector.read_bytes()[:6])

    with pytest.raises(CorruptTableError, match="The deletion vector of part-"):
        open_table(str(deleted)).current.to_spark(spark)


def test_scans_past_the_most_are_left_to_the_formats_own_reader(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(native, "MAX_GROUPS", 1)
    table = DeltaTable(None, tmp_path / "t", fields=[("id", "long"), ("part", "date")], partition_by=("part",))
    for number in range(3):
        append(table, pa.table({"id": pa.array([number], pa.int64())}), partition={"part": f"2026-01-0{number + 1}"})
    snapshot = open_table(str(tmp_path / "t")).current

    frame = snapshot.to_spark(spark)

    assert scans(frame) == {"parquet", "MapInArrow"}
    assert canonical_rows(arrow_table(frame)) == canonical_rows(snapshot.to_arrow())


def test_sparks_readers_get_few_files_or_large_ones():
    mega = 2**20

    assert native.is_worthwhile([part(32, files=32)])
    assert not native.is_worthwhile([part(33 * mega, files=33)])
    assert native.is_worthwhile([part(128 * mega)] * 5000)
    assert not native.is_worthwhile([part(128 * mega)] * 20_001)


def test_a_missing_file_is_reported_before_any_job(spark, numbers):
    gone = next(numbers.glob("*.parquet"))
    gone.unlink()

    with pytest.raises(CorruptTableError, match=f"The data file {gone.name} does not exist."):
        open_table(str(numbers)).current.to_spark(spark)


@pytest.mark.parametrize(
    ("kept", "end", "message"),
    [(100, b"", "has 100 bytes, but its action in the log records"), (-4, b"torn", "cannot be read as parquet")],
)
def test_a_damaged_file_is_reported_in_our_words(spark, numbers, kept, end, message):
    damaged = next(numbers.glob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:kept] + end)
    frame = open_table(str(numbers)).current.to_spark(spark)

    with pytest.raises(Exception, match=f"CorruptTableError: The data file {damaged.name} {message}"):
        frame.collect()


def test_storage_options_show_nowhere(spark, numbers):
    frame = open_table(str(numbers), storage_options={"key": "hunter2"}).current.to_spark(spark, where="name LIKE 'n%'")
    function, parts = executors.pack_value("hunter2"), [executors.pack_value(["hunter2"])]

    shown = (repr(frame), str(frame.schema), plans(frame))

    assert frame.count() > 0
    assert not [text for text in shown if "hunter2" in text]
    assert b"hunter2" not in function + parts[0]


def test_executors_without_the_package_say_how_to_ship_it(tmp_path):
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    work = cloudpickle.dumps(tasks.task_function(b"", [b""], tasks.NOT_ON_EXECUTOR))
    (tmp_path / "work").write_bytes(work)
    code = (
        "import pickle, sys, pyarrow as pa; sys.modules['snapshot_explorer'] = None\n"
        f"work = pickle.loads(open({str(tmp_path / 'work')!r}, 'rb').read())\n"
        "list(work([pa.record_batch([[0]], ['id'])]))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert "snapshot_explorer cannot be imported on a Spark executor" in done.stderr
    assert "spark.addArtifacts(..., archive=True) or --archives; --py-files ships the package alone." in done.stderr


def test_a_format_reads_a_split_after_both_were_pickled():
    for kind, name in (("delta", "dv_partitioned"), ("paimon", "dv")):
        snapshot = open_table(str(DATA / kind / name)).current
        splits = parts_of(snapshot).loaded.version.plan().splits
        names = snapshot.arrow_schema.names
        theirs, parts = pickle.loads(pickle.dumps((parts_of(snapshot).loaded.version, splits)))

        found = [batch for part in parts for one in theirs.split_by_file(part) for batch in theirs.read(one, names)]

        assert canonical_rows(pa.Table.from_batches(found)) == canonical_rows(snapshot.to_arrow())


def part(size, files=1):
    return Split(files=("f",) * files, raw=True, partition={}, rows=None, size_bytes=size, detail=None)


def test_splits_are_packed_by_size_and_cut_where_cores_would_idle():
    mega = 2**20
    cut = lambda split: [part(split.size_bytes // len(split.files)) for _ in split.files]  # noqa: E731

    large = tasks.pack_splits([part(100 * mega)] * 20, 2, cut)
    small = tasks.pack_splits([part(1)] * 100, 2, cut)
    one = tasks.pack_splits([part(128 * mega, files=8)], 4, cut)

    assert [len(task) for task in large] == [1] * 20
    assert [len(task) for task in small] == [32, 32, 32, 4]
    assert [sum(split.size_bytes for split in task) for task in one] == [32 * mega] * 4


def run(code, **environment):
    env = {"PYTHONPATH": ":".join(path for path in sys.path if path), **environment}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)


OPENED = f"from snapshot_explorer import open_table\nopen_table({str(DATA / 'delta' / 'types')!r}).current.to_spark()"


def test_without_java_one_line_says_what_to_install(tmp_path):
    message = "Install Java 17 or newer (openjdk-17-jre-headless on Debian), or pass a session that runs elsewhere"

    nowhere = run(OPENED, PATH=str(tmp_path)).stderr.splitlines()[-1]
    wrong = run(OPENED, PATH=str(tmp_path), JAVA_HOME=str(tmp_path)).stderr.splitlines()[-1]

    assert f"Spark needs Java, but no java is on the PATH. {message}" in nowhere
    assert f"Spark needs Java, but JAVA_HOME is {tmp_path}, which has no bin/java. {message}" in wrong


def test_without_pyspark_one_line_says_what_to_install():
    said = run(f"import sys; sys.modules['pyspark'] = None\n{OPENED}").stderr.splitlines()[-1]

    assert "Spark needs pyspark, which is not installed. Install it with: pip install" in said


def test_a_session_is_found_from_any_thread(spark):
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(sessions.session).result()

    assert found is spark


def test_a_session_that_is_started_says_so_once_and_is_found_again(spark_mode):
    import os

    code = f"""
import json, warnings, threading
{OPENED.replace("to_spark()", "to_spark().count()")}
open_table({str(DATA / "paimon" / "dv")!r}).lifetimes(engine="spark")
from pyspark.sql import SparkSession
from snapshot_explorer.engines.spark import sessions
found = []
thread = threading.Thread(target=lambda: found.append(sessions.session()))
thread.start(); thread.join()
spark = SparkSession.getActiveSession()
print(json.dumps([spark.conf.get("spark.driver.host"), spark.sparkContext.master, found[0] is spark]))
spark.stop()
"""
    home = {name: os.environ[name] for name in ("JAVA_HOME", "PATH", "HOME") if name in os.environ}
    done = run(code, **home, **spark_clusters.SHORT_LIVED)

    said = "No Spark session is active. Starting a local one, which uses all cores of this machine."
    assert done.stderr.count(said) == 1
    assert json.loads(done.stdout.splitlines()[-1])[:2] == ["127.0.0.1", "local[*]"]


def write_over(root, path, rows):
    pq.write_table(rows, root / path)
    return (root / path).stat().st_size


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_columns_are_mapped_as_locally_whatever_the_protocol_lists(spark, tmp_path, mode):
    physical = {"delta.columnMapping.id": 7, "delta.columnMapping.physicalName": "col-7"}
    said = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": ["columnMapping"]}
    table_metadata = metadata([("id", "long", physical)], configuration={"delta.columnMapping.mode": mode})
    table = DeltaTable(None, tmp_path / "t", first=[{"protocol": said}, table_metadata])
    stored = pa.schema([pa.field("id" if mode == "none" else "col-7", pa.int64(), metadata={"PARQUET:field_id": "7"})])
    size = write_over(tmp_path / "t", "f.parquet", pa.table([pa.array([1, 2])], schema=stored))
    table.commit(add("f.parquet", size=size, rows=2))

    rows = open_table(str(tmp_path / "t")).current.to_spark(spark)

    assert sorted(row.id for row in rows.collect()) == [1, 2]


@pytest.mark.parametrize(
    ("stats", "there", "message"),
    [
        ({}, {"x": [1, 2]}, "none of the table's columns"),
        ({"nullCount": {"name": 0}}, {"id": [1, 2]}, "has no column 'name'"),
    ],
)
def test_files_that_lack_what_they_must_hold_are_refused_as_locally(spark, tmp_path, stats, there, message):
    table = DeltaTable(None, tmp_path / "t")
    size = write_over(tmp_path / "t", "f.parquet", pa.table(there))
    table.commit(add("f.parquet", size=size, stats={"numRecords": 2} | stats))
    snapshot = open_table(str(tmp_path / "t")).current

    with pytest.raises(CorruptTableError, match=message):
        snapshot.to_arrow()
    with pytest.raises(Exception, match=message):
        snapshot.to_spark(spark).collect()


def test_paimon_files_without_the_columns_of_their_schema_are_refused_as_locally(spark, tmp_path):
    table = PaimonTable(fsspec.filesystem("file", auto_mkdir=True), str(tmp_path))
    without = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1, 2]}), without)
    table.commit([(1, "a"), (2, "b")], content=without.getvalue().to_pybytes())

    with pytest.raises(Exception, match="has no column 'name' of schema/schema-0"):
        open_table(str(tmp_path)).current.to_spark(spark).collect()


def test_spark_compares_texts_by_their_collation(spark, tmp_path):
    lower = {"__COLLATIONS": {"c.c": "spark.UTF8_LCASE"}}
    built = DeltaTable(None, tmp_path / "t", fields=[("id", "long"), ("c.c", "string", lower)])
    built.append([(1, "A"), (2, "a"), (3, "b")])
    table = open_table(built.url)

    with refused_if(PYSPARK_COLLATIONS):
        rows = table.at(1).to_spark(spark)
        found = table.sql("select count(distinct `c.c`) as n from this where `c.c` >= 'B'", engine="spark", spark=spark)

        assert rows.schema["c.c"].dataType.simpleString() == "string collate UTF8_LCASE"
        assert rows.select("`c.c`").distinct().count() == 2
        assert found.collect()[0].n == 1
