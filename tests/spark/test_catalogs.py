"""Tables that are named in a session's catalog. `tests/oracles` asks Delta's own catalog."""

import pytest

from snapshot_explorer import open_lake, open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, StorageError, TableNotFoundError, UnsupportedFeatureError
from tests.support.spark_catalogs import DescribingSession, ListingSession

DELTA = (
    ("payment_id", "bigint"),
    ("", ""),
    ("# Detailed Table Information", ""),
    ("Name", "spark_catalog.shop.payments"),
    ("Type", "MANAGED"),
    ("Location", "file:{path}"),
    ("Provider", "delta"),
)
"""What DESCRIBE TABLE EXTENDED answers with Delta's connector 4.4; the same in a Hive metastore, but for the owner."""
PAIMON = (
    ("id", "bigint"),
    ("# Partition Information", ""),
    ("# col_name", "data_type"),
    ("day", "string"),
    ("", ""),
    ("# Metadata Columns", ""),
    ("__paimon_file_path", "string"),
    ("", ""),
    ("# Detailed Table Information", ""),
    ("Name", "shop.orders"),
    ("Type", "MANAGED"),
    ("Provider", "paimon"),
    ("Owner", "root"),
    ("Table Properties", "[bucket=2,comment=x,path=file:/elsewhere,path=file:{path},primary-key=id,day]"),
)
"""What it answers with Paimon's catalog 0.9 on Spark 3.5, and a comment that looks like another property."""
HIVE = (
    ("id", "bigint"),
    ("", ""),
    ("# Detailed Table Information", ""),
    ("Catalog", "spark_catalog"),
    ("Type", "MANAGED"),
    ("Provider", "hive"),
    ("Location", "file:/warehouse/shop.db/events"),
    ("Serde Library", "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"),
)
"""What it answers for a table of Hive's own in a Hive metastore, on Spark 4.1."""


def described(rows, path=""):
    return [{"col_name": name, "data_type": kind.format(path=path)} for name, kind in rows]


def test_a_table_is_opened_by_its_name():
    path = samples.path("payments")
    spark = DescribingSession(described(DELTA, path))

    table = open_table("shop.`pay``ments`", spark=spark)

    assert (table.path, table.format) == (path, "delta")
    assert spark.asked == ["DESCRIBE TABLE EXTENDED `shop`.`pay``ments`"]


def test_a_table_of_paimons_catalog_is_opened_where_its_property_says():
    path = samples.path("orders")
    properties = (("bucket", "2"), ("comment", "x,path=file:/elsewhere"), ("path", f"file:{path}"))
    spark = DescribingSession(described(PAIMON, path), [{"key": key, "value": value} for key, value in properties])

    table = open_table("paimon.shop.orders", spark=spark)

    assert (table.path, table.format) == (path, "paimon")
    assert spark.asked[1:] == ["SHOW TBLPROPERTIES `paimon`.`shop`.`orders`"]
    with pytest.raises(
        UnsupportedFeatureError, match=r"branch of a Paimon table\. Open the table by its own name, with branch="
    ):
        open_table("paimon.shop.`orders$branch_dev`", spark=spark)


def test_the_tables_of_a_namespace_or_of_a_whole_catalog_are_listed_without_views():
    path = samples.path("payments")
    tables = [{"namespace": "shop", "tableName": name, "isTemporary": False} for name in ("payments", "seen")]
    spark = ListingSession(  # what Spark 4.1 returned with the catalogs of Delta and Iceberg
        {
            "SHOW NAMESPACES": [{"namespace": "shop"}],
            "SHOW NAMESPACES IN lake": [{"namespace": "shop"}],
            "SHOW TABLES IN shop": tables,
            "SHOW VIEWS IN shop": [{"namespace": "shop", "viewName": "seen", "isTemporary": False}],
            "SHOW TABLES IN lake.shop": tables[:1],
            "DESCRIBE TABLE EXTENDED `shop`.`payments`": described(DELTA, path),
        }
    )

    names = {pattern: [table.name for table in open_lake(pattern, spark=spark)] for pattern in ("shop", "*", "lake.*")}

    assert names == {"shop": ["shop.payments"], "*": ["shop.payments"], "lake.*": ["lake.shop.payments"]}
    assert open_lake("shop.pay*", spark=spark)["payments"].format == "delta"
    with pytest.raises(StorageError, match=r"could not say where none\.\* is: Missing database"):
        open_lake("none.*", spark=spark)


def test_a_table_of_hives_own_is_refused_with_its_path():
    with pytest.raises(
        UnsupportedFeatureError, match=r"a table of hive\. .* by its path, file:/warehouse/shop\.db/events"
    ):
        open_table("shop.events", spark=DescribingSession(described(HIVE)))


def test_the_error_says_what_the_catalog_said(here):
    with pytest.raises(TableNotFoundError, match=r"no table shop\.orders: \[TABLE_OR_VIEW_NOT_FOUND\]"):
        open_table("shop.orders", spark=here)


def test_views_and_tables_of_other_formats_are_refused(here):
    here.range(1).createOrReplaceTempView("seen")

    with pytest.raises((TableNotFoundError, UnsupportedFeatureError), match="seen is a"):
        open_table("seen", spark=here)
    here.catalog.dropTempView("seen")


def test_a_refusal_of_the_catalog_is_not_a_missing_table():
    errors = pytest.importorskip("pyspark.errors")

    class Refusing:
        createDataFrame = None  # noqa: N815 - Spark's name

        def sql(self, query):
            raise errors.AnalysisException("[INSUFFICIENT_PERMISSIONS] User lacks SELECT on shop.orders.")

    with pytest.raises(StorageError, match=r"could not say where shop\.orders is: \[INSUFFICIENT_PERMISSIONS\]"):
        open_table("shop.orders", spark=Refusing())


@pytest.mark.parametrize("name", ["", "a b", "shop.", "orders; drop table orders", "'orders'", "/data/orders"])
def test_what_is_not_a_name_is_never_sent(name):
    spark = DescribingSession([])

    with pytest.raises(InvalidArgumentError, match="is not the name of a table"):
        open_table(name, spark=spark)
    assert spark.asked == []
