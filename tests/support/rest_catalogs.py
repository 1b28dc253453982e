"""A REST catalog, of Iceberg or Paimon, on the loopback interface that answers with what a test gives it."""

import contextlib
import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from snapshot_explorer import samples

CONFIG = {"defaults": {}, "overrides": {}}
FILE = "v23.gz.metadata.json"
"""A metadata file of the sample, which has newer ones."""

LISTINGS = {
    "/namespaces/shop/tables": {"identifiers": [{"namespace": ["shop"], "name": "shipments"}]},
    "/v1/namespaces": {"namespaces": [["shop"]]},
    "/databases/shop/tables": {"tables": ["orders"]},
    "/databases": {"databases": ["shop"]},
    "/unity-catalog/catalogs": {"catalogs": [{"name": "main"}]},
    "/unity-catalog/schemas": {"schemas": [{"name": "shop", "catalog_name": "main"}], "next_page_token": ""},
    "/unity-catalog/tables": {
        "tables": [
            {"name": "orders", "table_type": "EXTERNAL", "storage_location": "file:///lake/orders"},
            {"name": "daily", "table_type": "VIEW"},
        ]
    },
}
"""What a catalog answers that is asked for its namespaces and tables."""
TABLES = ("/namespaces/shop/tables/shipments", "/databases/shop/tables/orders", "/tables/main.shop.orders")


def loaded(location, *, config=None, properties=None, credentials=()):
    """What a catalog answers that has the sample `shipments` at the location of a metadata file."""
    metadata = json.loads(gzip.decompress(Path(samples.path("shipments"), "metadata", FILE).read_bytes()))
    metadata["properties"] |= properties or {}
    return {
        "metadata-location": location,
        "metadata": metadata,
        "config": config or {},
        "storage-credentials": list(credentials),
    }


def in_paimon(path, options=None):
    """What a Paimon REST catalog answers that has a table with one column, as the one of Paimon's tests does."""
    fields = [{"id": 0, "name": "id", "type": "INT"}]
    schema = {"fields": fields, "partitionKeys": [], "primaryKeys": [], "options": options or {}}
    table = {"id": "455b3c00", "database": "shop", "name": "orders", "path": path, "isExternal": False}
    return table | {"schemaId": 0, "schema": schema, "owner": "me", "createdAt": 1, "createdBy": "me"}


def in_unity(location, table_format="DELTA"):
    """What a Unity Catalog answers that has a table, with the members of its REST description."""
    name = {"name": "orders", "catalog_name": "main", "schema_name": "shop", "table_id": "455b3c00"}
    return name | {"table_type": "EXTERNAL", "data_source_format": table_format, "storage_location": location}


def refused(status, message, kind="Refused"):
    """An error of a catalog, as its answer and its status."""
    return {"error": {"message": message, "type": kind, "code": status}}, status


@contextlib.contextmanager
def served(table, config=CONFIG, token=None):
    """Yield a catalog's URI and the requests as (path, Authorization). It has one table, shop.shipments or shop.orders.

    An answer is the body, as JSON or text, or a pair of body and status, or a function that writes all of it.
    """
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.partition("?")[0]
            requests.append((self.path, self.headers["Authorization"]))
            if path.endswith(TABLES):
                self.answer(table)
            elif (listing := next((LISTINGS[end] for end in LISTINGS if path.endswith(end)), None)) is not None:
                self.answer(listing)
            elif path == "/v1/config":
                self.answer(config)
            else:
                name = path.rpartition("/")[2]
                self.answer(refused(404, f"Table does not exist: {name}", "NoSuchTableException"))

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            requests.append((self.path, self.headers["Authorization"]))
            self.answer(token)

        def answer(self, answer):
            if callable(answer):
                with contextlib.suppress(ConnectionError):
                    answer(self.wfile)
                return
            body, status = answer if isinstance(answer, tuple) else (answer, 200)
            content = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
