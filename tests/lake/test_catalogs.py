"""Lakes in catalogs: their tables are listed by namespace and pattern, and opened by name."""

from pathlib import Path

import pytest

from snapshot_explorer import errors, open_lake, samples
from tests.support.rest_catalogs import FILE, in_paimon, loaded, served


@pytest.fixture
def catalog():
    location = Path(samples.path("shipments"), "metadata", FILE).as_uri()
    with served(loaded(location)) as (uri, _):
        yield uri


@pytest.mark.parametrize("pattern", ["shop", "shop.*", "*", "shop.ship*", "sh*.*"])
def test_a_rest_catalog_lists_the_tables_of_a_namespace_or_pattern(catalog, pattern):
    lake = open_lake(pattern, catalog=catalog)

    assert [table.name for table in lake] == ["shop.shipments"]
    (row,) = lake.overview("3650d").to_dict()
    assert (row["format"], row["problem"]) == ("iceberg", None)
    assert lake.at().sql("select count(*) n from shipments")["n"].tolist() == [lake["shipments"].current.count()]


@pytest.mark.parametrize("pattern", ["shop", "*"])
def test_a_paimon_catalog_lists_its_tables(pattern):
    pytest.importorskip("pypaimon_rust")
    with served(in_paimon(samples.path("orders"))) as (uri, _):
        lake = open_lake(pattern, catalog=uri, format="paimon", catalog_options={"token": "t", "warehouse": "w"})

        assert [table.name for table in lake] == ["shop.orders"]
        assert lake["orders"].format == "paimon"


def test_a_pattern_without_a_table_and_an_absent_namespace_are_said(catalog):
    with pytest.raises(errors.TableNotFoundError, match=r"The catalog has no table shop\.zz\*"):
        open_lake("shop.zz*", catalog=catalog)
    with pytest.raises(errors.TableNotFoundError, match=r"has no table none\.\*"):
        open_lake("none", catalog=catalog)
    with pytest.raises(errors.InvalidArgumentError, match="Give a namespace such as shop"):
        open_lake(" ", catalog=catalog)
