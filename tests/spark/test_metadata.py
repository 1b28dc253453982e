"""Files, changes and lifetimes on Spark: the same rows as the local engine gives, whatever the log."""

import pickle
import re
import shutil
import signal
import tempfile
import threading
import time
from functools import partial, reduce
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from snapshot_explorer import open_table, samples
from snapshot_explorer.core import frames
from snapshot_explorer.errors import (
    InvalidArgumentError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.formats import metadata_tasks as units
from snapshot_explorer.formats.delta import metadata_tasks as delta_units
from snapshot_explorer.formats.paimon import metadata_tasks as paimon_units
from snapshot_explorer.history import history_of
from tests.inner.engines_spark import collect
from tests.inner.formats import PREFETCHED, RECORDS
from tests.support.delta.table_builder import DeltaTable, add, metadata, protocol, remove
from tests.support.paimon.table_builder import PaimonTable
from tests.support.spark_frames import arrow_table

TABLES = Path(__file__).parents[1] / "data"
REFUSED = ("foreign_table_format", "table_version_10")
"""Tables of Hudi that do not open."""
WRITTEN = sorted(
    folder
    for kind in ("delta", "hudi", "iceberg", "paimon")
    for folder in (TABLES / kind).iterdir()
    if folder.name not in REFUSED
)
ALIKE = (
    "delta/checkpoint_v2_parquet",
    "delta/dv_partitioned",
    "hudi/archive_deleted",
    "iceberg/v2_mor_partitioned",
    "paimon/dv_append",
    "paimon/evolution_pk",
    "paimon/expired",
)
"""Tables whose metadata is of every kind that reaches executors."""
PARTS = 4


def spelled(rows, schema):
    """Return rows as sorted text, their columns by name and cast to the types of a frame."""
    columns = [rows.column(field.name).cast(field.type) for field in schema]
    return sorted(map(repr, pa.table(columns, schema=schema).to_pylist()))


def all_of(dataframes):
    """Return the rows of several DataFrames by their names: one job in place of many."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as f

    named = [dataframe.withColumn("table", f.lit(name)) for name, dataframe in dataframes.items()]
    while len(named) > 1:  # in pairs: Spark looks through all of a union each time that it grows
        named = [reduce(DataFrame.unionAll, named[place : place + 2]) for place in range(0, len(named), 2)]
    rows = arrow_table(named[0])
    return {name: rows.filter(pa.compute.equal(rows["table"], name)).drop_columns("table") for name in dataframes}


def assert_same(spark, tables):
    """Compare the lifetimes of tables, all their changes, and the files of some versions, with those read locally."""
    for schema, asked in questions(tables):
        local, there = {}, {}
        for name, ask in asked.items():
            refused, found = answered(ask)
            refused_there, dataframe = answered(lambda ask=ask: ask(engine="spark", spark=spark))
            notes = " ".join(getattr(found, "notes", ()))
            if refused_there and "cannot be read" in notes:  # a DataFrame has no notes: Spark refuses
                assert refused_there.partition(": ")[2] in notes, name
                continue
            assert refused_there == refused, name
            if refused is None:
                local[name], there[name] = found.to_arrow(), dataframe
        assert_same_frames(local, there, schema)


def questions(tables):
    """Yield frames' schemas, each with what is asked of tables that gives such frames, by name."""
    yield frames.LIFETIMES, {name: table.lifetimes for name, table in tables.items()}
    changes, files = {}, {}
    for name, table in tables.items():
        listing = history_of(table).listing
        if not listing.versions:
            continue
        for since in ("earliest", listing.versions[0]) if listing.without_commit else ("earliest",):
            changes[f"{name} since {since}"] = partial(table.at("latest").file_changes, since=since)
        files |= {f"{name} {ref}": table.at(ref).files for ref in ("latest", earliest_state(table))}
    yield frames.CHANGES, changes
    yield frames.FILES, files


def answered(ask):
    """Return the error that refuses what is asked, None without one, and the answer."""
    try:
        return None, ask()
    except SnapshotExplorerError as error:
        return f"{type(error).__name__}: {error}", None


def earliest_state(table):
    listing = history_of(table).listing
    return min(set(listing.reachable).difference(listing.without_files))


def assert_same_frames(local, dataframes, schema):
    for name, dataframe in dataframes.items():
        assert dataframe.columns == schema.names, name
    for name, rows in (all_of(dataframes) if dataframes else {}).items():
        assert spelled(rows, schema) == spelled(local[name], schema), name


@pytest.fixture
def plainly(spark):
    """Have Spark run plans as they are: of many small tables at once it takes longer to compile them than to run."""
    changed = {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false"}
    changed["spark.sql.shuffle.partitions"] = "1"
    before = {name: spark.conf.get(name) for name in changed}
    for name, value in changed.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.parametrize("part", range(PARTS))
def test_rows_are_those_of_the_local_engine_on_tables_that_engines_wrote(over_connect, plainly, part):
    """A quarter of all, over Connect only: what sessions of other kinds do otherwise shows in a few tables."""
    tables = WRITTEN[::4][part::PARTS]

    assert_same(over_connect, {f"{folder.parent.name}/{folder.name}": open_table(folder) for folder in tables})


def test_rows_are_those_of_the_local_engine_in_a_session_of_any_kind(spark, plainly):
    assert_same(spark, {name: open_table(TABLES / name) for name in ALIKE})


def test_types_are_those_of_the_frames(spark):
    table = open_table(TABLES / "delta" / "dv_partitioned")

    assert table.lifetimes(engine="spark", spark=spark).dtypes == [
        ("path", "string"),
        ("partition", "map<string,string>"),
        ("bucket", "int"),
        ("level", "int"),
        ("rows", "bigint"),
        ("size_bytes", "bigint"),
        ("schema_id", "bigint"),
        ("data_change", "boolean"),
        ("deletion_vector", "string"),
        ("deleted_rows", "bigint"),
        ("added_version", "bigint"),
        ("added_at", "timestamp"),
        ("first_version", "bigint"),
        ("removed_version", "bigint"),
        ("removed_at", "timestamp"),
    ]
    assert table.current.files(engine="spark", spark=spark).columns == frames.FILES.names
    assert table.current.file_changes(engine="spark", spark=spark).columns == frames.CHANGES.names


PAIMON = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(0, 3), st.sampled_from(["APPEND", "COMPACT", "OVERWRITE"])),
        st.tuples(st.sampled_from(["merge", "tag"]), st.just(0), st.just("")),
        st.tuples(st.just("expire"), st.integers(1, 3), st.just("")),
    ),
    min_size=1,
    max_size=10,
)
ACTIONS = st.lists(
    st.tuples(st.sampled_from("aarv"), st.sampled_from("xyz"), st.integers(1, 2)),
    max_size=4,
    unique_by=lambda one: one[:2],
)
DELTA = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), ACTIONS),
        st.tuples(st.sampled_from(["rename", "clean", "lose"]), st.just(())),
        st.tuples(st.just("checkpoint"), st.sampled_from(["classic", "multi-part", "parquet", "json"])),
    ),
    min_size=1,
    max_size=14,
)


def paimon_of(folder, steps):
    """Write a Paimon table; versions expire, and tags keep some of them."""
    table = PaimonTable(fsspec.filesystem("file", auto_mkdir=True), str(folder))
    for step in [("commit", 0, "APPEND"), *steps]:
        table.take(*step)


def delta_of(folder, steps):
    """Write a Delta table: files come, go and come back as others, and get deletion vectors; commits are lost."""
    table = DeltaTable(None, folder, partition_by=["name"])
    partition, there, whole = "name", set(), 0
    for step, reported in steps:
        match step:
            case "commit":
                table.commit(*(action(table, *one, partition) for one in reported))
            case "rename":
                partition = {"name": "id", "id": "name"}[partition]
                table.commit(protocol(), metadata(partition_by=[partition]))
            case "checkpoint":
                table.checkpoint(form=reported, sidecars=2 if reported in ("parquet", "json") else None)
                whole = table.version
            case "clean":
                for version in range(whole):
                    there.add(version)
            case "lose" if whole > 1:
                # A gap: the version before the checkpoint and that of the checkpoint are lost.
                there |= {whole - 1}
    for version in there:
        table.remove_file(f"_delta_log/{version:020d}.json")


def action(table, kind, name, size, partition):
    values = {partition: "7"}
    if kind == "a":
        return add(name, partition=values, size=size, rows=1)
    vector = {
        "storageType": "u",
        "pathOrInlineDv": f"v{size}".ljust(20, "0"),
        "offset": 1,
        "sizeInBytes": 34,
        "cardinality": 1,
    }
    if kind == "v":
        return add(name, partition=values, size=1, rows=2, vector=vector)
    return remove(name, partition=values, size=size, vector=vector if size > 1 else None)


HISTORIES = st.lists(
    st.tuples(st.just(paimon_of), PAIMON) | st.tuples(st.just(delta_of), DELTA), min_size=5, max_size=6
)


@settings(
    max_examples=2,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(HISTORIES)
def test_rows_of_random_histories_are_those_of_the_local_engine(here, plainly, histories):
    """In the session on this machine only: what is put together is the same in all."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        small_units(patch)
        tables = {}
        for number, (write, steps) in enumerate(histories):
            write(Path(name) / str(number), steps)
            tables[f"{number}: {steps}"] = open_table(Path(name) / str(number))

        assert_same(here, tables)


@pytest.fixture
def partly_lost(tmp_path):
    """A Delta table with commits from 5 on, and checkpoints of the versions 1 and 4."""
    steps = [("commit", [("v", "y", 1)]), ("checkpoint", "json"), ("commit", []), ("rename", ()), ("lose", ())]
    steps += [("commit", []), ("checkpoint", "multi-part"), ("checkpoint", "json"), ("commit", [("a", "x", 1)])]
    steps += [("checkpoint", "classic"), ("rename", ()), ("commit", [("a", "x", 2), ("v", "y", 1), ("a", "z", 1)])]
    delta_of(tmp_path / "table", [*steps, ("clean", ()), ("checkpoint", "json")])
    return open_table(tmp_path / "table")


def test_changes_are_reported_from_the_first_commit_that_is_there(spark, partly_lost):
    message = (
        "_delta_log/00000000000000000004.json does not exist in .*: the commit of version 4 was cleaned up or removed "
        "by hand. Read from version 5 on, the next one whose commit exists."
    )

    changes = partly_lost.at(7).file_changes(since=4)
    assert set(changes["version"].to_pylist()) == {5, 7}
    assert re.fullmatch(f"The changes of version 4 cannot be read: {message}", " ".join(changes.notes))
    with pytest.raises(SnapshotNotFoundError, match=message):  # a DataFrame has no notes
        partly_lost.at(7).file_changes(since=4, engine="spark", spark=spark)
    assert partly_lost.versions() == (4, 5, 6, 7)
    assert set(partly_lost.at("latest").file_changes(since="earliest")["version"].to_pylist()) == {5, 7}
    assert_same(spark, {"table": partly_lost})


def small_units(patch):
    """Make each commit a unit, and each manifest, and look for settings where units are read."""
    for module, size_bytes in ((delta_units, "_BYTES"), (units, "_TASK_BYTES")):
        patch.setattr(module, "_COMMITS", 2)
        patch.setattr(module, size_bytes, 1)
    patch.setattr(delta_units, "_MAX_LOCAL", 0)
    patch.setattr(delta_units, "_CHECKPOINT_BYTES", 1_000)


@pytest.fixture
def partitioned(tmp_path):
    """A Delta table in two partitions and the null one, with a file that came, went and came back as another."""
    table = DeltaTable(None, tmp_path / "table", partition_by=["name"])
    table.commit(
        *(add(name, partition={"name": value}, rows=1) for name, value in zip("abc", ("x", "y", None), strict=True))
    )
    table.commit(remove("a", partition={"name": "x"}))
    table.commit(add("a", partition={"name": "x"}, size=7, rows=1))
    return table


def test_a_file_that_is_added_again_has_two_intervals(spark, partitioned):
    reported = open_table(partitioned.root).lifetimes(engine="spark", spark=spark)

    rows = (
        reported.where("path = 'a'").orderBy("first_version").select("size_bytes", "added_version", "removed_version")
    )

    assert [tuple(row) for row in rows.collect()] == [(500, 1, 2), (7, 3, None)]


@pytest.mark.parametrize(("value", "paths"), [("x", ["a"]), (None, ["c"]), ("z", [])])
def test_files_of_one_partition_are_reported(spark, partitioned, value, paths):
    rows = open_table(partitioned.root).current.files({"name": value}, engine="spark", spark=spark)

    assert [row.path for row in rows.select("path").collect()] == paths


def test_changes_of_one_version_and_of_a_range_are_reported(spark, partitioned):
    table = open_table(partitioned.root)

    of_one = table.at(2).file_changes(engine="spark", spark=spark).select("version", "change", "path")
    of_range = (
        table.at("latest").file_changes(since="2", engine="spark", spark=spark).select("version", "change", "path")
    )

    assert [tuple(row) for row in of_one.collect()] == [(2, "remove", "a")]
    assert sorted(tuple(row) for row in of_range.collect()) == [(2, "remove", "a"), (3, "add", "a")]
    assert table.at("latest").file_changes(since="2")["version"].to_pylist() == [2, 3]


def test_a_table_without_versions_has_no_rows(spark, tmp_path):
    PaimonTable(fsspec.filesystem("file", auto_mkdir=True), str(tmp_path / "table"))
    table = open_table(tmp_path / "table")

    changes = partial(table.current.file_changes, since="earliest")
    for rows in (table.lifetimes, changes, table.current.files, table.current.file_changes):
        assert rows(engine="spark", spark=spark).collect() == []


def test_the_log_is_read_again_each_time_that_rows_are_requested(spark, partitioned):
    rows = open_table(partitioned.root).at(1).files(engine="spark", spark=spark)
    assert rows.count() == 3

    partitioned.remove_file("_delta_log/00000000000000000001.json")

    assert not rows.is_cached
    with pytest.raises(Exception, match="00000000000000000001.json does not exist"):
        rows.count()


def test_a_commit_that_is_damaged_is_named(spark, partitioned):
    rows = open_table(partitioned.root).lifetimes(engine="spark", spark=spark)
    partitioned.write("_delta_log/00000000000000000003.json", b'{"commitInfo":{}}\n{"add":')

    with pytest.raises(Exception, match="CorruptTableError: _delta_log/00000000000000000003.json is damaged: line 2"):
        rows.collect()


def test_a_manifest_that_is_gone_is_named(spark, tmp_path):
    table = PaimonTable(fsspec.filesystem("file", auto_mkdir=True), str(tmp_path / "table"))
    table.commit()
    rows = open_table(table.root).current.files(engine="spark", spark=spark)
    table.remove("manifest/manifest-1")

    with pytest.raises(
        Exception, match="CorruptTableError: Version 1 cannot be read: .*manifest/manifest-1 does not exist"
    ):
        rows.collect()


def test_a_mode_of_column_mapping_that_is_not_known_is_refused_before_any_job(spark, tmp_path):
    table = DeltaTable(None, tmp_path, configuration={"delta.columnMapping.mode": "color"})
    table.commit(add("a", rows=1))

    with pytest.raises(UnsupportedFeatureError, match="color"):
        open_table(tmp_path).lifetimes(engine="spark", spark=spark)


def test_storage_options_show_nowhere(spark, partitioned, capfd, caplog):
    table = open_table(f"file://{partitioned.root}", storage_options={"password": "hush-hush"})
    caplog.handler.filters.clear()  # neither does Spark log them
    with caplog.at_level("DEBUG"):
        changes = partial(table.at("latest").file_changes, since="earliest")
        for rows in (table.lifetimes, changes, table.current.files):
            dataframe = rows(engine="spark", spark=spark)
            dataframe.explain(mode="extended")
            dataframe.collect()

    said = capfd.readouterr()
    assert "hush" not in said.out + said.err + caplog.text
    assert "mapInArrow" in said.out or "MapInArrow" in said.out


@pytest.mark.parametrize("of", ["lifetimes", "changes", "files of a version", "changes of a version"])
def test_an_engine_that_is_not_known_is_refused(partitioned, of):
    table = open_table(partitioned.root)
    ask = {
        "lifetimes": table.lifetimes,
        "changes": partial(table.at("latest").file_changes, since="earliest"),
        "files of a version": table.current.files,
        "changes of a version": table.current.file_changes,
    }[of]

    with pytest.raises(InvalidArgumentError, match="'dask' is not an engine for metadata. Engines: local, spark."):
        ask(engine="dask")


def test_what_only_the_local_engine_does_is_refused_on_spark(partitioned, tmp_path):
    table = open_table(partitioned.root)

    with pytest.raises(InvalidArgumentError, match="engine='spark' does not support cache_dir, since it keeps nothing"):
        table.lifetimes(engine="spark", cache_dir=tmp_path)
    with pytest.raises(UnsupportedFeatureError, match="engine='spark' does not read the statistics of files"):
        table.current.files(engine="spark", statistics=True)
    with pytest.raises(InvalidArgumentError, match="'day' is not a partition key"):
        table.current.files({"day": "x"}, engine="spark")


@pytest.mark.parametrize(
    "name",
    ["paimon/dv", "delta/checkpoint_v2_parquet", "delta/mapping_later", "hudi/v6_cow_archived", "iceberg/v3_dv"],
)
def test_units_are_picklable_and_tell_records(name):
    table_format = history_of(open_table(TABLES / name)).table_format
    versions = table_format.listing(0).versions

    read = pickle.loads(pickle.dumps(table_format.metadata_tasks.reader()))
    found = [
        *table_format.metadata_tasks.of_state(versions[-1], None).tasks,
        *table_format.metadata_tasks.of_changes(versions[-2:], None, lifetimes=True),
    ]

    for unit in pickle.loads(pickle.dumps(found)):
        for records in read(unit):
            assert records.schema.equals(RECORDS)
            assert set(records["version"].to_pylist()) <= set(versions)


def test_settings_are_reported_with_the_lines_that_they_are_on(tmp_path):
    table = DeltaTable(None, tmp_path, first=None)
    table.commit(add("a"), protocol(), add("b"), metadata())
    table.commit(add("c"))
    log = history_of(open_table(tmp_path)).table_format._log

    found = delta_units._of_settings(
        history_of(open_table(tmp_path)).table_format.storage,
        delta_units.SettingsTask(version=0, commits=tuple(log.commits())),
    )

    assert found.schema.equals(PREFETCHED)
    assert found["version"].to_pylist() == [0]
    assert [bool(line) for line in found["content"][0].as_py().split(b"\n")[:5]] == [False, False, True, False, True]


def test_paths_of_manifest_entries_that_differ_in_one_part_are_distinguished():
    from tests.inner.paimon import ENTRIES

    plain = {"partition": b"p", "bucket": 0, "level": 0, "file_name": "f", "embedded_index": None}
    plain |= {"external_path": None, "extra_files": None}
    others = [{"partition": b"q"}, {"bucket": 1}, {"level": 1}, {"file_name": "g"}, {"embedded_index": b""}]
    others += [
        {"external_path": ""},
        {"extra_files": ["a,b"]},
        {"extra_files": ["a", "b"]},
        {"extra_files": ["a", ",b"]},
    ]
    rows = [plain, *(plain | one for one in others), plain | {"extra_files": []}]
    entries = pa.table({name: pa.array([row[name] for row in rows], ENTRIES.field(name).type) for name in plain})

    found = paimon_units.identities(entries).to_pylist()

    assert len(set(found)) == len(rows) - 1
    assert found[0] == found[-1]  # a missing list of extra files is an empty one


def test_an_interrupt_cancels_the_job_and_the_session_stays_usable(spark, tmp_path):
    began, ended = tmp_path / "began", tmp_path / "ended"
    paths = str(began), str(ended)

    def slow(batches):
        for path in paths:
            open(path, "w").close()  # noqa: PTH123 - this runs in Spark's Python, which has no need of pathlib
            time.sleep(300)
        yield from batches

    def stop():
        while not began.exists():
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    rows = spark.range(1).mapInArrow(slow, "id bigint")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # as ipykernel does for each cell
    stopping = threading.Thread(target=stop, daemon=True)
    stopping.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            collect(spark, rows)
    finally:
        signal.signal(signal.SIGINT, before)

    assert not ended.exists()
    assert [row["id"] for row in collect(spark, spark.range(3))] == [0, 1, 2]


def test_missing_versions_are_named_in_a_warning(spark, tmp_path, caplog):
    folder = Path(shutil.copytree(samples.path("orders"), tmp_path / "orders"))
    (folder / "snapshot" / "snapshot-8").unlink()
    table = open_table(str(folder))

    changes = table.at("11").file_changes(since="5", engine="spark", spark=spark)
    assert caplog.messages[-1] == "Version 8 is missing: what changed there is not among these rows."
    table.lifetimes(engine="spark", spark=spark)
    assert caplog.messages[-1].startswith("Version 8 is missing: files that were added or removed there count as")

    assert 8 not in {row.version for row in changes.select("version").distinct().collect()}
