"""Lakes in catalogs: their tables are listed by namespace and pattern, and opened by name."""

import traceback
from pathlib import Path

import pytest

from snapshot_explorer import errors, open_lake, open_table, samples
from snapshot_explorer.table import catalogs
from tests.support.rest_catalogs import FILE, in_paimon, in_unity, loaded, served


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


@pytest.fixture
def unity():
    """Yield the URI of a Unity Catalog, by the recorded form of its answers: no server of it is in a registry."""
    location = Path(samples.path("payments")).as_uri()
    with served(in_unity(location)) as (uri, requests):
        yield f"{uri}/api/2.1/unity-catalog", requests


@pytest.mark.parametrize("pattern", ["*", "main", "main.shop", "main.shop.*", "main.sh*.ord*"])
def test_a_unity_catalog_lists_and_opens_its_tables_without_views(unity, pattern):
    uri, requests = unity

    lake = open_lake(pattern, catalog=uri, catalog_options={"token": "t0k3n-canary"})

    assert [table.name for table in lake] == ["main.shop.orders"]
    assert lake["orders"].current.count() == open_table(samples.path("payments")).current.count()
    assert {authorization for _, authorization in requests} == {"Bearer t0k3n-canary"}


def test_temporary_keys_of_a_unity_catalog_reach_the_storage_and_no_message():
    keys = {"access_key_id": "AKIA-canary", "secret_access_key": "s3cret-canary", "session_token": "sess-canary"}
    with served(in_unity("s3://bucket/orders"), token={"aws_temp_credentials": keys}) as (uri, requests):
        catalog = f"{uri}/api/2.1/unity-catalog"
        settings = {"token": "t0k3n-canary", "s3.endpoint": "http://127.0.0.1:9", "s3.region": "eu-west-1"}

        located = catalogs.locate(catalog, "main.shop.orders", settings)
        with pytest.raises(errors.StorageError) as failure:
            open_table("main.shop.orders", catalog=catalog, catalog_options=settings)

    assert located.storage_options == {
        "key": "AKIA-canary",
        "secret": "s3cret-canary",
        "token": "sess-canary",
        "client_kwargs": {"region_name": "eu-west-1"},
        "endpoint_url": "http://127.0.0.1:9",
    }
    assert "canary" not in "".join([repr(located), *traceback.format_exception(failure.value)])
    assert [path for path, _ in requests][:2] == [
        "/api/2.1/unity-catalog/tables/main.shop.orders",
        "/api/2.1/unity-catalog/temporary-table-credentials",
    ]


def test_a_temporary_token_of_google_is_sent_with_each_request():
    with served(in_unity("gs://bucket/orders"), token={"gcp_oauth_token": {"oauth_token": "ya29.canary"}}) as (
        uri,
        requests,
    ):
        located = catalogs.locate(f"{uri}/api/2.1/unity-catalog", "main.shop.orders", {"s3.region": "eu-west-1"})
        with pytest.raises(errors.SnapshotExplorerError) as failure:
            open_table(located.path, storage_options={**located.storage_options, "endpoint_url": uri})

    assert located.storage_options == {"token": "ya29.canary"}
    assert {key for path, key in requests if "unity-catalog" not in path} == {"Bearer ya29.canary"}
    assert "canary" not in "".join([repr(located), *traceback.format_exception(failure.value)])


DENIED = {"error_code": "PERMISSION_DENIED", "message": "t0k3n-canary may not read"}


@pytest.mark.parametrize(
    ("answer", "name", "error", "message"),
    [
        (in_unity("file:///t", "CSV"), "main.shop.orders", errors.UnsupportedFeatureError, "is a table of csv"),
        (in_unity(None), "main.shop.orders", errors.UnsupportedFeatureError, "has the type external and no location"),
        (in_unity("s3://b/t"), "main.shop.orders", errors.UnsupportedFeatureError, "pass storage_options"),
        ((DENIED, 403), "main.shop.orders", errors.StorageError, r"\*\*\* may not read. Check the token"),
        (({"message": "down"}, 503), "main.shop.orders", errors.StorageError, "Try again later"),
        ("<html>", "main.shop.orders", errors.StorageError, "is not that of a Unity Catalog"),
        ({}, "main.shop.none", errors.TableNotFoundError, "has no table main.shop.none"),
        ({}, "shop.orders", errors.InvalidArgumentError, "give catalog, schema and table"),
    ],
)
def test_what_a_unity_catalog_does_not_return_is_said_without_its_token(answer, name, error, message):
    with (
        served(answer, token={"r2_temp_credentials": {}}) as (uri, _),
        pytest.raises(error, match=message),
    ):
        open_table(name, catalog=f"{uri}/api/2.1/unity-catalog", catalog_options={"token": "t0k3n-canary"})


def test_an_unknown_option_of_a_unity_catalog_is_named_without_its_value():
    with pytest.raises(
        errors.InvalidArgumentError, match=r"no option secret\. Options: s3\.endpoint, s3\.region, token"
    ):
        open_lake("main", catalog="http://127.0.0.1:9/api/2.1/unity-catalog", catalog_options={"secret": "canary"})


@pytest.mark.parametrize("function", [open_lake, open_table])
@pytest.mark.parametrize("path", ["uc://main.shop", "unity:main", "https://user:canary@host/api/2.1/unity-catalog"])
def test_the_address_of_a_unity_catalog_as_the_path_is_answered_with_what_to_pass(function, path):
    with pytest.raises(errors.InvalidArgumentError, match=r"as catalog, such as https://HOST/api/2\.1") as failure:
        function(path)

    assert "canary" not in str(failure.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pattern": 3}, r"must be text such as shop\.\*, got"),
        ({"format": "delta"}, "format is for tables in a catalog"),
        ({"depth": 0}, "not searched: raise depth"),
    ],
)
def test_wrong_arguments_of_a_lake_are_named(options, message):
    with pytest.raises(errors.SnapshotExplorerError, match=message):
        open_lake(Path(samples.path("orders")).parent, **options)
