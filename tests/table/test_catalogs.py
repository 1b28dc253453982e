"""Tables by their name in a REST catalog. `tests/oracles` asks those that Iceberg's and Paimon's own tests use."""

import base64
import builtins
import sys
from pathlib import Path

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import (
    InvalidArgumentError,
    MissingDependencyError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tests.support.outputs import shown_by
from tests.support.rest_catalogs import CONFIG, FILE, in_paimon, loaded, refused, served

FOLDER = samples.path("shipments")
HERE = f"{FOLDER}/metadata/{FILE}"
NAME = "shop.shipments"
CANARY = "canary-7f3a"
KEYS = {"s3.access-key-id": "AKIAVENDED", "s3.secret-access-key": CANARY, "s3.region": "us-east-1"}


@pytest.mark.parametrize("location", ["{}", "file://{}", "file:{}"])
def test_a_table_is_opened_at_the_metadata_file_that_the_catalog_names(location):
    with served(loaded(location.format(HERE))) as (uri, requests):
        table = open_table(NAME, catalog=uri, catalog_options={"token": "secret"})

    direct = open_table(HERE)
    assert (table.path, table.format, table.current.version) == (FOLDER, "iceberg", direct.current.version)
    assert (table.name, direct.name) == (NAME, FOLDER.rpartition("/")[2])
    assert table.current.to_arrow() == direct.current.to_arrow()
    assert table.current.version < open_table(FOLDER).current.version
    assert [authorization for _, authorization in requests] == ["Bearer secret"] * 2


def test_credentials_that_the_catalog_returns_open_its_files(s3):
    client, bucket, options = s3
    for file in Path(FOLDER).rglob("*.*"):
        client.put_object(Bucket=bucket, Key=f"shop/{file.relative_to(FOLDER)}", Body=file.read_bytes())
    location = f"s3a://{bucket}/shop/metadata/{FILE}"
    vended = {"prefix": f"s3a://{bucket}/", "config": {"s3.endpoint": options["endpoint_url"]}}
    of_a_writer = {"s3.endpoint": "http://127.0.0.1:1", "s3.profile-name": "none"}

    with served(loaded(location, config=KEYS, properties=of_a_writer, credentials=[vended])) as (uri, _):
        table = open_table(NAME, catalog=uri)
    with served(loaded(location, config=of_a_writer)) as (uri, _):
        other = open_table(NAME, catalog=uri, storage_options=options)

    assert table.current.count() == other.current.count() == open_table(HERE).current.count()
    assert CANARY not in repr(table) + str(table)


def test_a_property_of_the_table_makes_the_client_call_nothing(monkeypatch):
    called = []
    monkeypatch.setattr(builtins, "snapshot_explorer_canary", called.append, raising=False)

    with served(loaded(HERE, properties={"py-io-impl": "builtins.snapshot_explorer_canary"})) as (uri, _):
        open_table(NAME, catalog=uri)

    assert called == []


@pytest.mark.parametrize(
    ("answer", "config", "error", "said"),
    [
        (refused(404, "gone"), CONFIG, TableNotFoundError, "has no table shop.shipments: .*gone. Check the namespace"),
        (
            refused(401, "who?"),
            CONFIG,
            StorageError,
            "location of shop.shipments: .*who?.*Check the token or the credential",
        ),
        (refused(403, "not you"), CONFIG, StorageError, "not you. Check the token or the credential"),
        (refused(503, "busy"), CONFIG, StorageError, "busy. Try again later"),
        (("<html>login" + " page" * 500, 200), CONFIG, StorageError, "Check the URI and catalog_options."),
        (refused(500, "x"), ("<html>", 404), StorageError, "Check the URI and catalog_options."),
        ({"metadata": 1}, CONFIG, StorageError, "Check the URI and catalog_options."),
        (loaded(None), CONFIG, UnsupportedFeatureError, "names no metadata file of shop.shipments"),
        (loaded("/data/shop/latest"), CONFIG, UnsupportedFeatureError, "names /data/shop/latest as the metadata file"),
    ],
)
def test_an_error_has_what_the_catalog_said_and_no_secret(answer, config, error, said):
    body, status = answer if isinstance(answer, tuple) else (answer, 200)
    if isinstance(body, dict) and "error" in body:  # a server may repeat what it was sent
        sent = f"Bearer {CANARY}-t, {CANARY}%2Fk, {CANARY}-c, id:{CANARY}-c, {CANARY}-h, {CANARY}-p"
        body = {"error": body["error"] | {"type": sent}}
    options = {"token": f"{CANARY}-t", "credential": f"id:{CANARY}-c", "header.X-Key": f"Basic {CANARY}-h"}
    options |= {"oauth2-server-uri": "http://127.0.0.1:1", "s3.secret-access-key": f"{CANARY}/k"}

    with served((body, status), config) as (uri, _), pytest.raises(error, match=said) as caught:
        open_table(NAME, catalog=uri.replace("//", f"//me:{CANARY}-p@"), catalog_options=options)

    assert CANARY not in "".join(shown_by(caught.value))
    assert f"The catalog {uri} " in str(caught.value)
    assert len(str(caught.value)) < 700
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_catalog_that_cannot_be_reached_is_named():
    with served(loaded(HERE)) as (uri, _):
        pass

    with pytest.raises(StorageError, match=f"The catalog {uri} did not .*: Connection refused. Check the URI and the"):
        open_table(NAME, catalog=uri)


def test_user_and_password_in_the_uri_are_sent_as_basic_authentication():
    with served(loaded(HERE)) as (uri, requests):
        open_table(NAME, catalog=uri.replace("//", "//me:p%40ss@"))

    assert {authorization for _, authorization in requests} == {f"Basic {base64.b64encode(b'me:p@ss').decode()}"}


def test_the_name_of_a_catalog_is_looked_up_in_the_configuration_of_pyiceberg(monkeypatch):
    with served(loaded(HERE)) as (uri, requests):
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", uri)
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__TYPE", "rest")
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__TOKEN", CANARY)
        table = open_table(NAME, catalog="prod")
        with pytest.raises(TableNotFoundError, match="The catalog prod has no table shop.none: .*not exist: none."):
            open_table("shop.none", catalog="prod")
        with pytest.raises(InvalidArgumentError, match=r"has no catalog test\. Configured: prod\. Or give"):
            open_table(NAME, catalog="test")
        open_table(NAME, catalog=uri)

    assert table.path == FOLDER
    assert [str(authorization).endswith(CANARY) for _, authorization in requests] == [True] * 4 + [False] * 2


@pytest.mark.parametrize(
    "name", ["", "orders", "shop.", "a b.c", "shop.orders; drop", "/data/orders", "../shop.orders"]
)
def test_what_is_not_a_name_is_never_sent(name):
    with served(loaded(HERE)) as (uri, requests), pytest.raises(InvalidArgumentError, match="such as shop."):
        open_table(name, catalog=uri)

    assert requests == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"catalog": f"thrift://me:{CANARY}@host"}, "catalog must be the URI of an Iceberg REST catalog"),
        ({"catalog": f"http://host/x?token={CANARY}"}, "without a query"),
        ({"catalog": f"http://me:{CANARY}/x@host"}, "catalog must be the URI"),
        ({"catalog": f"host/{CANARY}"}, "catalog must be the URI"),
        ({"catalog": ""}, "catalog must be the URI"),
        ({"catalog_options": {"token": CANARY}}, "catalog_options needs catalog"),
        ({"catalog": "http://host", "limits": 5}, "limits must be Limits"),
        ({"catalog": "http://host", "spark": object()}, "catalog and spark both name a catalog"),
    ],
)
def test_what_is_not_a_catalog_is_refused(arguments, said):
    with pytest.raises(InvalidArgumentError, match=said) as caught:
        open_table(NAME, **arguments)

    assert CANARY not in "".join(shown_by(caught.value))


@pytest.fixture
def login():
    pytest.importorskip("pypaimon_rust")
    return {"token": f"{CANARY}-t", "warehouse": "lake"}


def test_a_table_is_opened_in_the_folder_that_a_paimon_catalog_names(login):
    path = samples.path("orders")

    with served(in_paimon(f"file:{path}")) as (uri, requests):
        table = open_table("shop.orders", catalog=uri, catalog_options=login, format="paimon")

    assert (table.path, table.format, table.name) == (path, "paimon", "shop.orders")
    assert table.current.version == open_table(path).current.version
    assert requests == [
        (f"/v1/{request}", f"Bearer {CANARY}-t")
        for request in ("config?warehouse=lake", "databases/shop/tables/orders")
    ]


def test_a_table_of_a_paimon_catalog_is_read_with_the_storage_options(s3, login):
    client, bucket, options = s3
    folder = samples.path("orders")
    for file in Path(folder).rglob("*"):
        if file.is_file():
            client.put_object(Bucket=bucket, Key=f"named/{file.relative_to(folder)}", Body=file.read_bytes())

    with served(in_paimon(f"s3://{bucket}/named")) as (uri, _):
        named = {"catalog": uri, "catalog_options": login, "storage_options": options}
        table = open_table("shop.orders", format="paimon", **named)

    assert table.current.version == open_table(folder).current.version


@pytest.mark.parametrize(
    ("name", "answer", "error", "said"),
    [
        (
            "shop.none",
            None,
            TableNotFoundError,
            "has no table shop.none: Table shop.none does not exist. Check the database",
        ),
        (
            "shop.orders",
            refused(401, "who?"),
            StorageError,
            "location of shop.orders: .*Check the URI, warehouse and token",
        ),
        ("shop.orders", ("<html>login", 200), StorageError, "Check the URI, warehouse and token"),
        ("shop.orders", in_paimon("/x", {"type": "format-table"}), UnsupportedFeatureError, "the type 'format-table'"),
        ("shop.orders", in_paimon("/x", {"query-auth.enabled": "true"}), UnsupportedFeatureError, "query-auth.enabled"),
        ("shop.`orders$branch_dev`", None, UnsupportedFeatureError, "with branch= for a branch"),
        ("west.shop.orders", None, InvalidArgumentError, "give database and table"),
    ],
)
def test_what_a_paimon_catalog_does_not_have_is_refused_by_name(login, name, answer, error, said):
    if isinstance(answer, tuple) and isinstance(answer[0], dict):  # a server may repeat what it was sent
        answer = ({"message": f"Bearer {CANARY}-t", "code": answer[1]}, answer[1])

    with served(answer) as (uri, _), pytest.raises(error, match=said) as caught:
        open_table(name, catalog=uri, catalog_options=login, format="paimon")

    assert CANARY not in "".join(shown_by(caught.value))
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_paimon_catalog_that_cannot_be_reached_is_named(login):
    with served(None) as (uri, _):
        pass

    with pytest.raises(StorageError, match=f"The catalog {uri} did not .*: Connection refused. Check the URI and the"):
        open_table("shop.orders", catalog=uri, catalog_options=login, format="paimon")


def test_without_its_client_a_paimon_catalog_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pypaimon_rust.datafusion", None)

    with pytest.raises(MissingDependencyError, match=r"pip install 'snapshot-explorer\[paimon-catalogs\]'"):
        open_table("shop.orders", catalog="http://127.0.0.1:1", format="paimon")
    with pytest.raises(InvalidArgumentError, match="must be the URI of a Paimon REST catalog"):
        open_table("shop.orders", catalog=f"http://me:{CANARY}@127.0.0.1:1", format="paimon")


@pytest.mark.parametrize("catalog", ["http://127.0.0.1:1", "prod"])
def test_without_pyiceberg_the_error_names_the_extra(monkeypatch, catalog):
    for module in ("pyiceberg.catalog", "pyiceberg.utils.config"):
        monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingDependencyError, match=r"pip install 'snapshot-explorer\[catalogs\]'"):
        open_table(NAME, catalog=catalog)
