"""One instant of a lake on Spark: the same rows as on DuckDB."""

import shutil

from snapshot_explorer import open_lake, samples
from tests.support import lakes


def test_a_query_over_a_lake_reads_the_pinned_versions_on_spark_too(spark, tmp_path):
    for name in ("orders", "payments"):
        shutil.copytree(samples.path(name), tmp_path / name)
    pinned = open_lake(tmp_path).at("2026-11-08 14:00")
    query = "select (select count(*) from orders) as a, (select count(*) from payments) as b"

    rows = pinned.sql(query, engine="spark", spark=spark).collect()

    assert [tuple(row) for row in rows] == [tuple(pinned.sql(query).iloc[0])]
    assert tuple(rows[0]) == (pinned["orders"].count(), pinned["payments"].count())


def test_executors_read_the_overview_that_is_read_here(spark, tmp_path):
    lakes.write_lake(tmp_path)
    lake = open_lake(tmp_path, at=lakes.NOW)

    on_spark, here = (lake.overview("1d", **options) for options in ({"engine": "spark", "spark": spark}, {}))

    assert on_spark.to_arrow().equals(here.to_arrow())
