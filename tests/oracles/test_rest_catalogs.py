"""Iceberg's own tests have a REST catalog: it returns where tables are that pyiceberg writes; we read the same rows."""

import contextlib
import os
import socket
import subprocess
import time

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import StorageError, TableNotFoundError
from tests.support.canonical import canonical_rows

pytestmark = pytest.mark.oracle
STARTS_WITHIN = 60
"""Seconds."""


@pytest.fixture
def server(environment, tmp_path):
    """A running catalog over a folder, as its process and its URI."""
    hadoop = environment.glob("lib/python*/site-packages/pyspark/jars/hadoop-client-*.jar")
    jars = [*environment.glob("jars/iceberg-rest/*.jar"), *hadoop]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = os.environ | {"CATALOG_REST_PORT": str(port), "CATALOG_WAREHOUSE": f"file:{tmp_path}/warehouse"}
    options = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-cp", ":".join(map(str, jars)))
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
