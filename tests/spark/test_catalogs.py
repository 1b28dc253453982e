"""Tables that are named in a session's catalog. `tests/oracles` asks the catalogs of Delta and Iceberg."""

import pyarrow as pa
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, StorageError, TableNotFoundError, UnsupportedFeatureError
from tests.support.spark_catalogs import DescribingSession

DELTA = (
    ("payment_id", "bigint"),
    ("", ""),
    ("# Detailed Table Information", ""),
    ("Name", "spark_catalog.shop.payments"),
    ("Type", "MANAGED"),
    ("Location", "file:{path}"),
    ("Provider", "delta"),
)
"""What DESCRIBE TABLE EXTENDED answers with Delta's connector 4.4."""


def test_a_table_is_opened_by_its_name():
    path = samples.path("payments")
    spark = DescribingSession([{"col_name": name, "data_type": kind.format(path=path)} for name, kind in DELTA])

    table = open_table("shop.`pay``ments`", spark=spark)

    assert (table.path, table.format) == (path, "delta")
    assert spark.asked == ["DESCRIBE TABLE EXTENDED `shop`.`pay``ments`"]


def test_the_error_says_what_the_catalog_said(here):
    with pytest.raises(TableNotFoundError, match=r"no table shop\.orders: \[TABLE_OR_VIEW_NOT_FOUND\]"):
        open_table("shop.orders", spark=here)


def test_views_and_tables_of_other_formats_are_refused(here):
    here.createDataFrame(pa.table({"id": [1]})).createOrReplaceTempView("seen")

    with pytest.raises((TableNotFoundError, UnsupportedFeatureError), match="seen is a"):
        open_table("seen", spark=here)
    here.catalog.dropTempView("seen")


def test_a_refusal_of_the_catalog_is_not_a_missing_table():
    errors = pytest.importorskip("pyspark.errors")

    class Refusing:
        def sql(self, query):
            raise errors.AnalysisException("[INSUFFICIENT_PERMISSIONS] User lacks SELECT on shop.orders.")

    with pytest.raises(StorageError, match=r"could not say where shop\.orders is: \[INSUFFICIENT_PERMISSIONS\]"):
        open_table("shop.orders", spark=Refusing())


@pytest.mark.parametrize("name", ["", "a b", "shop.", "orders; drop table orders", "'orders'", "/data/orders"])
def test_what_is_no_name_is_never_sent(name):
    spark = DescribingSession([])

    with pytest.raises(InvalidArgumentError, match="is not the name of a table"):
        open_table(name, spark=spark)
    assert spark.asked == []
