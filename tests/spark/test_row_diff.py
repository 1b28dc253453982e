"""A row diff on Spark has the rows of the one on this machine."""

from collections import Counter
from pathlib import Path

import fsspec
import pytest

import snapshot_explorer as sx
from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError
from tests.inner.core import PYSPARK_ARROW
from tests.support.canonical import canonical_rows
from tests.support.delta.table_builder import DeltaTable
from tests.support.old_libraries import refused_if
from tests.support.pair_tables import random_pair

DATA = Path(__file__).parents[1] / "data"


def multiset(rows):
    return Counter(map(repr, canonical_rows(rows)))


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [
        ("delta/dv_partitioned", 1, 3),
        ("delta/mapping_name", 0, 5),
        ("delta/types", 0, 1),
        ("paimon/evolution_pk", 1, 3),
        ("paimon/dv", 1, 3),
        ("paimon/evolution_nested", 1, 3),
    ],
)
def test_spark_finds_the_same_rows(spark, name, a, b):
    table = open_table(str(DATA / name))

    with refused_if(PYSPARK_ARROW):
        here, there = table.diff_rows(a, b), table.diff_rows(a, b, engine=spark)

        assert there.counts == here.counts
        assert multiset(there.to_arrow()) == multiset(here.to_arrow())
        assert there.to_arrow().schema == here.to_arrow().schema
        assert there.updated.schema == here.updated.schema


@pytest.mark.skipif(PYSPARK_ARROW.applies(), reason=PYSPARK_ARROW.problem)
def test_the_rows_can_stay_on_spark_or_come_here_in_any_kind_of_session(spark):
    diff = open_table(str(DATA / "paimon" / "evolution_pk")).diff_rows(1, 3, engine=spark)

    frame = diff.to_spark()

    assert frame.columns == ["rowkind", "changed_columns", *diff.plan.columns]
    assert Counter(row["rowkind"] for row in frame.collect()) == {"+I": 2, "-U": 1, "+U": 1}
    assert diff.counts == {"inserted": 2, "deleted": 0, "updated": 1}


@pytest.mark.skipif(PYSPARK_ARROW.applies(), reason=PYSPARK_ARROW.problem)
def test_a_key_that_is_not_one_is_refused(spark, tmp_path):
    table = DeltaTable(None, tmp_path)
    table.append([(1, "a"), (1, "b")])
    opened = open_table(str(tmp_path))

    with pytest.raises(InvalidArgumentError, match=r"The key id is not unique: several rows of version 1 have id=1\."):
        opened.diff_rows(0, 1, key="id", engine=spark).to_arrow()


@pytest.mark.skipif(PYSPARK_ARROW.applies(), reason=PYSPARK_ARROW.problem)
@pytest.mark.parametrize("number", range(6))
def test_two_tables_of_any_formats_differ_in_the_same_rows(spark, tmp_path, number):
    files = fsspec.filesystem("file", auto_mkdir=True)
    roots, _, renames, is_keyed = random_pair(20_000 + number, str(tmp_path), files)
    a, b = (open_table(str(root)).at("latest") for root in roots)
    key = ["id"] if is_keyed else []

    here, there = (sx.diff(a, b, key, columns=renames, engine=engine) for engine in ("local", spark))

    assert there.counts == here.counts
    assert multiset(there.to_arrow()) == multiset(here.to_arrow())
    assert there.to_arrow().schema == here.to_arrow().schema


@pytest.mark.skipif(PYSPARK_ARROW.applies(), reason=PYSPARK_ARROW.problem)
def test_tolerances_and_conditions_hold_on_spark_too(spark, tmp_path):
    sides = []
    for name, rows in (
        ("orders", [(1, " a", 1.0), (2, "b", 2.0), (3, "c", 3.0), (9, "z", 9.0)]),
        ("copy", [(1, "A", 1.001), (2, "b", 2.5), (4, "d", 4.0)]),
    ):
        table = DeltaTable(None, tmp_path / name, fields=[("id", "long"), ("name", "string"), ("amount", "double")])
        table.commit(table.data("a.parquet", rows))
        sides.append(open_table(str(tmp_path / name)).at("latest"))
    rules = {"tolerance": 0.01, "ignore_case": True, "trim": True, "where": "id < 9"}

    here, there = (sx.diff(*sides, "id", engine=engine, **rules) for engine in (None, spark))

    assert there.counts == here.counts == {"inserted": 1, "deleted": 1, "updated": 1}
    assert there.updated.to_pylist() == here.updated.to_pylist()
    with pytest.raises(InvalidArgumentError, match="No engine is called 'flink'"):
        sx.diff(*sides, "id", engine="flink")


@pytest.mark.skipif(PYSPARK_ARROW.applies(), reason=PYSPARK_ARROW.problem)
@pytest.mark.parametrize("name", ["delta/types", "delta/dv_partitioned", "hudi/v9_cow_types", "paimon/evolution_pk"])
def test_a_data_frame_of_spark_is_compared_where_it_is(spark, name):
    snapshot = open_table(str(DATA / name)).at("latest")
    frame = snapshot.to_spark(spark=spark)
    columns = frame.columns

    assert sx.diff(snapshot, frame, key=[], engine=spark).is_empty
    fewer = sx.diff(frame.limit(0), snapshot, key=[], engine=spark)
    assert fewer.counts == {"inserted": snapshot.count(), "deleted": 0, "updated": 0}
    assert fewer.to_spark().columns == ["rowkind", "changed_columns", *columns]
    with pytest.raises(InvalidArgumentError, match=r"pass engine='spark'"):
        sx.diff(snapshot, frame, key=[])
    assert sx.diff(snapshot, frame, preview=True).most_inserted is None
