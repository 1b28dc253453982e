"""Tables that are named in a session's catalog. `tests/oracles` asks the catalogs of Delta and Iceberg."""

import pyarrow as pa
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError

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


class Answering:
    """A session whose catalog answers with recorded rows: Delta's connector does not fit this PySpark."""

    def __init__(self, rows):
        self.rows = rows
        self.asked = []

    def sql(self, query):
        self.asked.append(query)
        return self

    def collect(self):
        return [Row(name, kind) for name, kind in self.rows]


class Row(dict):
    def __init__(self, name, kind):
        super().__init__(col_name=name, data_type=kind)

    def asDict(self):  # noqa: N802 - PySpark's name
        return dict(self)


def test_a_table_is_opened_by_its_name():
    path = samples.path("payments")
    spark = Answering([(name, kind.format(path=path)) for name, kind in DELTA])

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


@pytest.mark.parametrize("name", ["", "a b", "shop.", "orders; drop table orders", "'orders'", "/data/orders"])
def test_what_is_no_name_is_never_sent(name):
    spark = Answering([])

    with pytest.raises(InvalidArgumentError, match="is not the name of a table"):
        open_table(name, spark=spark)
    assert spark.asked == []
