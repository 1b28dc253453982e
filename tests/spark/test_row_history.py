"""The row history on Spark has the states of the one on this machine, and its questions the same answers."""

from collections import Counter
from pathlib import Path

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError
from tests.inner.core import PYSPARK_ARROW
from tests.support.canonical import canonical_rows
from tests.support.delta.table_builder import DeltaTable, remove
from tests.support.old_libraries import refused_if

DATA = Path(__file__).parents[1] / "data"


def multiset(rows):
    return Counter(map(repr, canonical_rows(rows)))


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("delta/dv_partitioned", None),
        ("delta/mapping_name", None),
        ("delta/types", None),
        ("paimon/partial_update", None),
        ("paimon/dv", None),
        ("iceberg/v2_mor_partitioned", None),
        ("iceberg/v2_equality_deletes", None),
        ("hudi/v6_mor_compaction_run", None),
        ("hudi/v9_cow_vectors", None),
    ],
)
def test_spark_finds_the_same_states_and_changes(spark, name, where):
    table = open_table(str(DATA / name))

    with refused_if(PYSPARK_ARROW):
        here, there = table.row_history(where), table.row_history(where, engine=spark)

        assert len(there) == len(here) > 0
        assert there.schema == here.schema
        assert there.plan.reading == here.plan.reading
        assert multiset(there.to_arrow()) == multiset(here.to_arrow())
        assert multiset(table.blame(where, engine=spark).to_arrow()) == multiset(table.blame(where).to_arrow())


@pytest.mark.skipif(PYSPARK_ARROW.applies(), reason=PYSPARK_ARROW.problem)
def test_the_states_can_stay_on_spark(spark):
    history = open_table(str(DATA / "delta" / "dv_partitioned")).row_history(engine=spark)

    frame = history.to_spark()

    assert frame.columns == history.schema.names
    assert frame.filter("_to_version is null").count() == open_table(history.plan.path).current.count()
    assert {row["_from_version"] for row in frame.collect()} == set(history.to_arrow()["_from_version"].to_pylist())


@pytest.mark.skipif(PYSPARK_ARROW.applies(), reason=PYSPARK_ARROW.problem)
def test_rows_that_files_share_over_time_are_one_state_with_their_count(spark, tmp_path):
    table = DeltaTable(None, tmp_path / "table")
    first = table.append([(1, "ann"), (1, "ann"), (2, "bob")], name="a.parquet")
    table.commit(remove("a.parquet"), table.data("b.parquet", [(1, "ann"), (2, "cy")]), operation="UPDATE")

    states = open_table(table.url).row_history(engine=spark).to_arrow()

    ends = Counter((row["name"], row["_from_version"], row["_to_version"]) for row in states.to_pylist())
    assert ends == {
        ("ann", first, None): 1,
        ("ann", first, first + 1): 1,
        ("bob", first, first + 1): 1,
        ("cy", first + 1, None): 1,
    }


@pytest.mark.skipif(PYSPARK_ARROW.applies(), reason=PYSPARK_ARROW.problem)
def test_an_empty_history_has_the_columns(spark):
    history = open_table(str(DATA / "delta" / "types")).row_history("c_byte > 127", engine=spark)

    assert len(history) == 0
    assert history.to_spark().count() == 0
    assert history.to_arrow().schema == history.schema


def test_an_unknown_engine_and_a_local_result_are_refused():
    table = open_table(str(DATA / "delta" / "types"))

    with pytest.raises(InvalidArgumentError, match="No engine is called 'flink'. Engines: local, spark"):
        table.row_history(engine="flink")
    with pytest.raises(InvalidArgumentError, match="computed on this machine. For a DataFrame of Spark, pass engine="):
        table.row_history().to_spark()


@pytest.mark.skipif(PYSPARK_ARROW.applies(), reason=PYSPARK_ARROW.problem)
def test_versions_without_their_local_files_are_left_out(spark, tmp_path):
    table = DeltaTable(None, tmp_path / "table")
    table.append([(1, "ann")], name="a.parquet")
    table.commit(remove("a.parquet"), table.data("b.parquet", [(1, "bob")]), operation="UPDATE")
    table.remove_file("a.parquet")

    history = open_table(table.url).row_history(engine=spark)

    assert [(row["name"], row["_to_version"]) for row in history.to_arrow().to_pylist()] == [("bob", None)]
    assert "data files are missing" in " ".join(history.plan.notes)


@pytest.mark.parametrize("condition", ["id % 2 = 0 AND id > 3", "count(*) > 5", "max(id) - min(id) > 3"])
def test_a_condition_is_evaluated_at_every_version_on_executors(spark, tmp_path, condition):
    table = DeltaTable(None, tmp_path / "table")
    table.append([(number, "ann") for number in range(3)], name="a.parquet")
    table.append([(4, "bob"), (5, "cy"), (6, "dan")], name="b.parquet")
    table.commit(remove("b.parquet"), table.data("c.parquet", [(5, "cy")]), operation="DELETE")

    with refused_if(PYSPARK_ARROW):
        here = open_table(table.url).bisect(condition, every=True)
        there = open_table(table.url).bisect(condition, engine=spark)

        assert there.version == here.version == 2
        assert there.evaluated.to_dict() == here.evaluated.to_dict()


def test_what_spark_cannot_evaluate_in_a_single_pass_is_refused(spark):
    table = open_table(str(DATA / "delta" / "dv_partitioned"))

    with pytest.raises(InvalidArgumentError, match="counts, exact sums.*Leave out single_pass and the engine"):
        table.bisect("avg(id) > 1", engine=spark)
    with pytest.raises(
        InvalidArgumentError, match=r"not be exact here: a function is called with one version at a time\."
    ):
        table.bisect(lambda snapshot: snapshot.count() > 1, engine=spark)
    with pytest.raises(InvalidArgumentError, match="Spark evaluates conditions in a single pass"):
        table.bisect("id > 1", engine=spark, single_pass=False)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("delta/dv_partitioned", "id > 3"),
        ("paimon/aggregation", "TRUE"),
        ("iceberg/v2_equality_deletes", "id IS NOT NULL"),
        ("hudi/v9_mor_basic", "TRUE"),
    ],
)
def test_a_trace_on_spark_finds_the_same_rows_and_evidence(spark, name, where):
    table = open_table(str(DATA / name))

    with refused_if(PYSPARK_ARROW):
        here, there = table.trace(where), table.trace(where, engine=spark)

        assert there.digest == here.digest
        assert (there.verdict, there.is_complete) == (here.verdict, here.is_complete)


def test_profiles_and_anomalies_on_spark_have_the_same_numbers(spark):
    table = open_table(str(DATA / "delta" / "dv_partitioned"))

    with refused_if(PYSPARK_ARROW):
        here, there = (table.profile_over(exact=True, engine=engine) for engine in ("local", spark))
        assert there.to_arrow().equals(here.to_arrow())
        here, there = (table.anomalies([], key="id", engine=engine) for engine in ("local", spark))
        assert there.to_arrow().equals(here.to_arrow())
    with pytest.raises(InvalidArgumentError, match="without exact=True numbers come from metadata"):
        table.profile_over(engine=spark)
    with pytest.raises(InvalidArgumentError, match="Name a key"):
        table.anomalies(engine=spark)


@pytest.mark.skipif(PYSPARK_ARROW.applies(), reason=PYSPARK_ARROW.problem)
def test_a_trace_on_spark_says_which_files_cannot_be_read(spark, tmp_path):
    table = DeltaTable(None, tmp_path)
    table.append([(1, "a")], name="good.parquet")
    table.append([(1, "a")], name="bad.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"x" * (tmp_path / "bad.parquet").stat().st_size)

    trace = open_table(table.root).trace("id = 1", engine=spark)

    assert [row["rows"] for row in trace.versions.to_arrow().to_pylist()] == [0, 1, None]
    assert {row["path"]: row["stored_rows"] for row in trace.files.to_arrow().to_pylist()} == {
        "good.parquet": 1,
        "bad.parquet": None,
    }
    assert "bad.parquet" in repr(trace)
