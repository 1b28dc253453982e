"""The tests of Iceberg and Paimon have REST catalogs: they return where tables are that other libraries write."""

import contextlib
import os
import socket
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import StorageError, TableNotFoundError, UnsupportedFeatureError
from tests.support import java
from tests.support.canonical import canonical_rows
from tests.support.object_stores import free_port

STARTS_WITHIN = 300
"""Seconds."""


@pytest.fixture
def server(environment, tmp_path):
    """A running catalog over a folder, as its process and its URI."""
    hadoop = environment.glob("lib/python*/site-packages/pyspark/jars/hadoop-client-*.jar")
    jars = [*environment.glob("jars/iceberg-rest/*.jar"), *hadoop]
    port = free_port()
    env = os.environ | {"CATALOG_REST_PORT": str(port), "CATALOG_WAREHOUSE": f"file:{tmp_path}/warehouse"}
    options = (*java.SHORT_LIVED, "-Xmx256m", "-cp", ":".join(map(str, jars)))
    with (tmp_path / "log").open("w") as log:
        command = ["java", *options, "org.apache.iceberg.rest.RESTCatalogServer"]
        process = subprocess.Popen(command, env=env, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT)
        try:
            end = time.monotonic() + STARTS_WITHIN
            while process.poll() is None and time.monotonic() < end:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                time.sleep(0.05)
            else:
                pytest.fail(f"the catalog did not start: {(tmp_path / 'log').read_text()}")
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def test_a_table_is_opened_by_the_name_that_its_catalog_gives_it(server):
    from pyiceberg.catalog import load_catalog

    process, uri = server
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "what": ["a", None]})
    with load_catalog("writer", type="rest", uri=uri) as catalog:
        catalog.create_namespace(("shop", "west"))
        written = catalog.create_table(("shop", "west", "orders.new"), schema=rows.schema)
        written.append(rows)
        first = open_table("shop.west.`orders.new`", catalog=uri)
        written.delete("id = 1")
        second = open_table("shop.west.`orders.new`", catalog=uri, catalog_options={"token": "not checked here"})
        assert canonical_rows(second.current.to_arrow()) == canonical_rows(written.scan().to_arrow())

    assert canonical_rows(first.current.to_arrow()) == canonical_rows(rows)
    assert first.update().version == first.current.version < second.current.version
    assert second.at(first.current.version).to_arrow() == first.current.to_arrow()
    with pytest.raises(TableNotFoundError, match=r"no table shop\.west\.orders: .*Table does not exist: shop\.west\."):
        open_table("shop.west.orders", catalog=uri)
    with pytest.raises(TableNotFoundError, match=r"no table east\.orders: .*does not exist"):
        open_table("east.orders", catalog=uri)
    with pytest.raises(StorageError, match=r"No route for request: .*Check the URI and catalog_options\."):
        open_table("shop.west.orders", catalog=f"{uri}/another")
    process.kill()
    process.wait()
    with pytest.raises(StorageError, match=r"Connection refused\. Check the URI and the network"):
        open_table("shop.west.orders", catalog=uri)


@pytest.fixture
def options(environment, tmp_path):
    """A running catalog of Paimon over a folder, as the options for its clients."""
    root, login = Path(__file__).parents[2], {"warehouse": "lake", "token": "one-of-a-test"}
    command = [environment / "bin" / "python", "-m", "tests.oracles.paimon_rest", tmp_path / "lake", *login.values()]
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHONPATH"))
    }
    with (tmp_path / "log").open("w") as log:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
        with subprocess.Popen(command, env=env, cwd=root, text=True, **pipes) as process:
            try:
                uri = process.stdout.readline().strip().rstrip("/")
                assert uri, (tmp_path / "log").read_text()
                yield {"metastore": "rest", "uri": uri, "token.provider": "bear"} | login
            finally:
                process.kill()


def test_a_table_of_paimon_is_opened_by_the_name_that_its_catalog_gives_it(options):
    from pypaimon_rust.datafusion import SQLContext

    writer = SQLContext()
    writer.register_catalog("lake", options)
    for statement in (
        "CREATE SCHEMA lake.shop",
        "CREATE TABLE lake.shop.orders (id INT NOT NULL, what STRING, PRIMARY KEY (id))",
        "INSERT INTO lake.shop.orders VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO lake.shop.orders VALUES (2, 'c'), (3, NULL)",
        "CREATE TABLE lake.shop.guarded (id INT) WITH ('query-auth.enabled' = 'true')",
    ):
        writer.sql(statement)
    uri, login = options["uri"], {name: options[name] for name in ("warehouse", "token")}
    named = {"catalog": uri, "catalog_options": login, "format": "paimon"}

    table = open_table("shop.orders", **named)

    assert table.at(1).to_arrow().to_pydict() == {"id": [1, 2], "what": ["a", "b"]}
    read = pa.Table.from_batches(writer.sql("SELECT * FROM lake.shop.orders"))
    assert canonical_rows(table.current.to_arrow()) == canonical_rows(read)
    with pytest.raises(TableNotFoundError, match=r"no table shop\.none: Table shop\.none does not exist\. Check the"):
        open_table("shop.none", **named)
    with pytest.raises(UnsupportedFeatureError, match=r"query-auth\.enabled"):
        open_table("shop.guarded", **named)
    with pytest.raises(StorageError, match=r"Not authorized: .*Check the URI, warehouse and token"):
        open_table("shop.orders", **named | {"catalog_options": login | {"token": "another"}})
    with pytest.raises(StorageError, match=r"If it is a Paimon REST catalog, add format='paimon'\."):
        open_table("shop.orders", catalog=f"{uri}/x", catalog_options=login)
