"""What reading from an object store costs: ours against deltalake, polars, DuckDB, pyiceberg, pypaimon and hudi-rs.

    python tests/benchmarks/store.py [delta paimon iceberg hudi] [--peers PYTHON ...] [--delays 0 50 200] [--runs 3]
        [--works WORK ...] [--only LIBRARY ...]

A small S3 server on the loopback interface answers each request after a fixed delay. Every measurement has a process of
its own, with everything imported. Prints the work, the seconds, the requests and the dependent rounds: the most
requests of which each begins after the one before has ended. All of them run to their end, in turns: a peer that makes
one request after another takes a minute at 200 ms, and all formats together half an hour. A table has 110 commits of a
file of 40,000 rows, that of Delta a checkpoint too. Each peer is taken from the first interpreter that has it, and left
out without one. DuckDB needs its extensions as packages (duckdb-extensions, and duckdb-extension-httpfs, -delta,
-iceberg and -avro), and reads no Paimon and no Hudi. The table of Hudi has the table version 6: of newer ones, hudi-rs
reads only commits in Avro. An Iceberg table is opened by the path of its newest metadata file, which pyiceberg and
DuckDB are given too: without a catalog, pyiceberg finds no table by its folder. What the folder takes us is measured
beside it, without a peer. pandas is imported too: pyarrow imports it when it converts its first value from Python,
which no call but the opening does without.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import argparse
import io
import json
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.report import record
from tests.support.hudi.table_builder import META, HudiTable
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.avro_schemas import newest_manifest
from tests.support.paimon.table_builder import PaimonTable, avro, binary_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FILES, ROWS, RUNS, DELAYED_RUNS = 110, 40_000, 3, 2
SLOW = 200


class Server:
    """An S3 server of a folder: GET, HEAD and listings, each after a delay. Notes when each request began and ended."""

    def __init__(self, folder: Path) -> None:
        """Serve a folder as the bucket `lake`."""
        self.folder, self.delay = folder, 0.0
        self.spans: list[tuple[float, float]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def log_message(self, *_: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self.do_GET(has_body=False)

            def do_GET(self, *, has_body: bool = True) -> None:
                began = time.perf_counter()
                time.sleep(server.delay)
                status, headers, body = server.answer(self.path, self.headers.get("Range"))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if has_body:
                    self.wfile.write(body)
                self.wfile.flush()
                server.spans.append((began, time.perf_counter()))

        class Threads(ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 256

            def handle_error(self, *_: object) -> None:
                """Ignore a client that is gone: a preview ends before all that it requested is there."""

        self._server = Threads(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, target: str, wanted: str | None) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of a request."""
        url = urlsplit(target)
        _, _, key = unquote(url.path).lstrip("/").partition("/")
        if not key:
            return 200, {"Content-Type": "application/xml"}, self._listing(parse_qs(url.query))
        file = self.folder / key
        if not file.is_file():
            code = "<Error><Code>NoSuchKey</Code><Message>missing</Message></Error>"
            return 404, {"Content-Type": "application/xml"}, code.encode()
        body = file.read_bytes()
        modified = "Mon, 23 Nov 2026 00:00:00 GMT"
        headers = {"ETag": f'"{len(body)}"', "Last-Modified": modified, "Accept-Ranges": "bytes"}
        if wanted is None:
            return 200, headers, body
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(len(body) - int(last), 0)
        end = min(int(last), len(body) - 1) if first and last else len(body) - 1
        headers["Content-Range"] = f"bytes {start}-{end}/{len(body)}"
        return 206, headers, body[start : end + 1]

    def _listing(self, query: dict[str, list[str]]) -> bytes:
        prefix, after = query.get("prefix", [""])[0], query.get("start-after", [""])[0]
        has_folders = "delimiter" in query
        files, folders = [], set()
        for file in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            key = file.relative_to(self.folder).as_posix()
            if not key.startswith(prefix) or key <= after:
                continue
            rest = key[len(prefix) :]
            if has_folders and "/" in rest:
                folders.add(prefix + rest.partition("/")[0] + "/")
            else:
                files.append(
                    f"<Contents><Key>{escape(key)}</Key><LastModified>2026-11-23T00:00:00.000Z</LastModified>"
                    f'<ETag>"1"</ETag><Size>{file.stat().st_size}</Size><StorageClass>STANDARD</StorageClass></Contents>'
                )
        parts = [f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in sorted(folders)]
        return (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>lake</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(files) + len(parts)}</KeyCount>"
            f"<MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{''.join(files)}{''.join(parts)}</ListBucketResult>"
        ).encode()

    def rounds(self) -> int:
        """Return the most requests of which each began after the one before had ended."""
        count, last = 0, 0.0
        for began, ended in sorted(self.spans, key=lambda span: span[1]):
            if began >= last:
                count, last = count + 1, ended
        return count


def write_delta(folder: Path) -> None:
    """Write 110 commits of a file each, and a checkpoint at 100."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    rng = np.random.default_rng(1)
    schema = {
        "type": "struct",
        "fields": [
            {"name": name, "type": dtype, "nullable": True, "metadata": {}}
            for name, dtype in (("id", "long"), ("amount", "double"), ("price", "double"), ("name", "string"))
        ],
    }
    metadata = {
        "id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps(schema),
        "partitionColumns": [], "configuration": {}, "createdTime": 0,
    }  # fmt: skip
    adds = []
    for number in range(FILES):
        rows = _rows(rng, number)
        path = folder / f"part-{number:05}.parquet"
        pq.write_table(rows, path)
        statistics_ = {
            "numRecords": ROWS,
            "minValues": {"id": number * ROWS},
            "maxValues": {"id": number * ROWS + ROWS - 1},
            "nullCount": {"id": 0},
        }
        add = {
            "path": path.name, "partitionValues": {}, "size": path.stat().st_size, "modificationTime": number,
            "dataChange": True, "stats": json.dumps(statistics_),
        }  # fmt: skip
        adds.append(add)
        actions: list[dict[str, Any]] = [
            {"commitInfo": {"timestamp": 1_700_000_000_000 + number, "operation": "WRITE"}},
            {"add": add},
        ]
        if number == 0:
            actions[1:1] = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
        (log / f"{number:020}.json").write_text("\n".join(map(json.dumps, actions)))
        if number == 100:
            _checkpoint(log, number, metadata, adds)


def _checkpoint(log: Path, number: int, metadata: dict[str, Any], adds: list[dict[str, Any]]) -> None:
    pairs = pa.map_(pa.string(), pa.string())
    schema = pa.schema(
        {
            "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
            "metaData": pa.struct(
                {
                    "id": pa.string(),
                    "format": pa.struct({"provider": pa.string(), "options": pairs}),
                    "schemaString": pa.string(),
                    "partitionColumns": pa.list_(pa.string()),
                    "configuration": pairs,
                    "createdTime": pa.int64(),
                }
            ),
            "add": pa.struct(
                {
                    "path": pa.string(),
                    "partitionValues": pairs,
                    "size": pa.int64(),
                    "modificationTime": pa.int64(),
                    "dataChange": pa.bool_(),
                    "stats": pa.string(),
                }
            ),
        }
    )
    flat = {**metadata, "format": {"provider": "parquet", "options": []}, "configuration": []}
    rows = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": flat},
        *({"add": {**add, "partitionValues": []}} for add in adds),
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), log / f"{number:020}.checkpoint.parquet")
    (log / "_last_checkpoint").write_text(json.dumps({"version": number, "size": len(rows)}))


def write_iceberg(folder: Path) -> None:
    """Write 110 snapshots of a file each, with a manifest for each."""
    table = _Iceberg(LocalFileSystem(auto_mkdir=True), str(folder), location=f"s3://lake/{folder.name}")
    rng = np.random.default_rng(1)
    for number in range(FILES):
        table.commit(_rows(rng, number))


class _Iceberg(IcebergTable):
    """A table with the columns of the benchmark."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        names = {"id": "long", "amount": "double", "price": "double", "name": "string"}
        fields = [
            {"id": number, "name": name, "required": False, "type": dtype}
            for number, (name, dtype) in enumerate(names.items(), 1)
        ]
        self.metadata["schemas"] = [{"type": "struct", "schema-id": 0, "fields": fields}]
        self.metadata["last-column-id"] = len(fields)

    def data_file(self, name: str, rows: pa.Table) -> dict[str, Any]:
        schema = [field.with_metadata({"PARQUET:field_id": str(id_)}) for id_, field in enumerate(rows.schema, 1)]
        out = io.BytesIO()
        pq.write_table(rows.cast(pa.schema(schema)), out)
        return {
            "content": 0, "file_path": self.path(f"data/{name}"), "file_format": "PARQUET", "partition": {},
            "record_count": len(rows), "file_size_in_bytes": self.write(f"data/{name}", out.getvalue()),
            "null_value_counts": [{"key": 1, "value": 0}],
            "lower_bounds": [{"key": 1, "value": struct.pack("<q", rows["id"][0].as_py())}],
            "upper_bounds": [{"key": 1, "value": struct.pack("<q", rows["id"][-1].as_py())}],
        }  # fmt: skip


class _Paimon(PaimonTable):
    """A table whose manifests have all columns that pypaimon reads."""

    def manifest_record(self, name: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
        record: dict[str, Any] = super().manifest_record(name, entries)
        content = avro(newest_manifest(), entries)
        self.write(f"manifest/{name}", content)
        return record | {"_FILE_SIZE": len(content)}

    def statistics_of(self, rows: Sequence[object]) -> dict[str, Any]:
        first = (self.snapshots - 1) * ROWS
        return {
            "_MIN_VALUES": binary_row(first, None, None, None),
            "_MAX_VALUES": binary_row(first + len(rows) - 1, None, None, None),
            "_NULL_COUNTS": [0] * 4,
        }


def write_paimon(folder: Path) -> None:
    """Write 110 snapshots of a file each, with a manifest for each, as an append table."""
    table = _Paimon(LocalFileSystem(auto_mkdir=True), str(folder), statistics=True)
    schema = json.loads((folder / "schema" / "schema-0").read_text())
    names = {"id": "BIGINT", "amount": "DOUBLE", "price": "DOUBLE", "name": "STRING"}
    schema["fields"] = [
        {"id": number, "name": name, "type": dtype} for number, (name, dtype) in enumerate(names.items())
    ]
    schema["highestFieldId"] = len(names) - 1
    table.write("schema/schema-0", json.dumps(schema).encode())
    rng = np.random.default_rng(1)
    for number in range(FILES):
        out = io.BytesIO()
        pq.write_table(_rows(rng, number), out)
        table.commit([(None, None)] * ROWS, content=out.getvalue())


class _Hudi(HudiTable):
    """A table of table version 6 with the columns of the benchmark."""

    schema: ClassVar[dict[str, Any]] = {
        "type": "record",
        "name": "rows",
        "fields": [
            {"name": name, "type": ["null", dtype], "default": None}
            for name, dtype in {"id": "long", "amount": "double", "price": "double", "name": "string"}.items()
        ],
    }

    def write(self, path: str, content: str | bytes) -> None:
        # The timeline of the first layout, where names do not contain when commits were completed.
        super().write(re.sub(r"/timeline/(\d+)_\d+\.", r"/\1.", path), content)

    def base(self, rows: pa.Table, number: int, group: str) -> tuple[str, bytes]:
        text = pa.array([str(number).zfill(17)] * len(rows))
        meta = dict.fromkeys(META, text) | {"_hoodie_record_key": rows["id"].cast(pa.string())}
        out = io.BytesIO()
        pq.write_table(pa.table({**meta, **{name: rows[name] for name in rows.column_names}}), out)
        return f"{group}_0-0-0_{number:017d}.parquet", out.getvalue()


def write_hudi(folder: Path) -> None:
    """Write 110 commits of a file each, copy on write."""
    version = {"hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"}
    table = _Hudi(LocalFileSystem(auto_mkdir=True), str(folder), properties=version)
    rng = np.random.default_rng(1)
    for number in range(FILES):
        table.insert(_rows(rng, number))


def _rows(rng: np.random.Generator, number: int) -> pa.Table:
    return pa.table(
        {
            "id": np.arange(number * ROWS, (number + 1) * ROWS),
            "amount": rng.random(ROWS).round(2),
            "price": rng.random(ROWS).round(2),
            "name": pa.array([f"n{value}" for value in rng.integers(0, 1000, ROWS)]),
        }
    )


WORKS = ("open", "history of 20", "all rows", "two columns", "where id < 1000", "preview of 200 rows")
BY_FOLDER = {"iceberg": ("open by folder", "history of 20 by folder")}
"""More works of a format: where the other works open a file, as the peers can only do."""
TABLES = {"delta": write_delta, "paimon": write_paimon, "iceberg": write_iceberg, "hudi": write_hudi}
NAMES = {"delta": "delta", "paimon": "shop.db/paimon", "iceberg": "iceberg", "hudi": "hudi"}
"""The folder of each table below the bucket."""
OURS = """
from snapshot_explorer import open_table
import pandas, pyarrow, pyarrow.parquet, duckdb, s3fs
from snapshot_explorer.storage import buckets, store_listings
options = {"key": "k", "secret": "s", "endpoint_url": url, "client_kwargs": {"region_name": "us-east-1"}}
path = f"s3://lake/{name}"
if name == "iceberg" and not work.endswith("by folder"): path += "/metadata/v110.metadata.json"
def run(work):
    table = open_table(path, storage_options=options)
    if work.startswith("history of 20"): return len(table.history(limit=20))
    now = table.current
    if work == "all rows": return now.to_arrow().num_rows
    if work == "two columns": return now.to_arrow(columns=["id", "amount"]).num_rows
    if work == "where id < 1000": return now.to_arrow(where="id < 1000").num_rows
    if work == "preview of 200 rows": return now.to_arrow(limit=200).num_rows
"""
DELTALAKE = """
from deltalake import DeltaTable, QueryBuilder
options = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_endpoint_url": url, "aws_region": "us-east-1",
           "aws_allow_http": "true"}
QUERIES = {"all rows": "select * from t", "two columns": "select id, amount from t",
           "where id < 1000": "select * from t where id < 1000", "preview of 200 rows": "select * from t limit 200"}
def run(work):
    table = DeltaTable(f"s3://lake/{name}", storage_options=options)
    if work == "history of 20": return len(table.history(20))
    if work in QUERIES: return QueryBuilder().register("t", table).execute(QUERIES[work]).read_all().num_rows
"""
POLARS = """
import polars as pl
options = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_endpoint_url": url, "aws_region": "us-east-1",
           "aws_allow_http": "true"}
def run(work):
    if work in ("open", "history of 20"): raise NotImplementedError
    rows = pl.scan_delta(f"s3://lake/{name}", storage_options=options)
    if work == "two columns": rows = rows.select("id", "amount")
    if work == "where id < 1000": rows = rows.filter(pl.col("id") < 1000)
    if work == "preview of 200 rows": rows = rows.head(200)
    return len(rows.collect())
"""
DUCKDB = """
import duckdb
from duckdb_extensions import import_extension
connection = duckdb.connect(config={"extension_directory": __import__("tempfile").mkdtemp()})
connection.sql("set enable_progress_bar = false")
for extension in ("httpfs", "delta") if name == "delta" else ("httpfs", "avro", "iceberg"):
    import_extension(extension, con=connection)
    connection.load_extension(extension)
host = url.partition("//")[2]
connection.sql(f"create secret (type s3, key_id 'k', secret 's', region 'us-east-1', endpoint '{host}', "
               "url_style 'path', use_ssl false)")
source = "delta_scan('s3://lake/delta')"
if name == "iceberg": source = "iceberg_scan('s3://lake/iceberg/metadata/v110.metadata.json')"
QUERIES = {"all rows": "*", "two columns": "id, amount", "where id < 1000": "*", "preview of 200 rows": "*"}
REST = {"where id < 1000": " where id < 1000", "preview of 200 rows": " limit 200"}
def run(work):
    rows = connection.sql(f"select {QUERIES[work]} from {source}{REST.get(work, '')}").arrow()
    return rows.read_all().num_rows if hasattr(rows, "read_all") else rows.num_rows
"""
HUDI = """
from hudi import HudiReadOptions, HudiTableBuilder
options = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_endpoint": url, "aws_region": "us-east-1",
           "aws_allow_http": "true"}
CHOSEN = {"two columns": {"projection": ["id", "amount"]}, "where id < 1000": {"filters": [("id", "<", "1000")]}}
def run(work):
    table = HudiTableBuilder.from_base_uri(f"s3://lake/{name}").with_storage_options(options).build()
    if work == "open": return
    if work == "history of 20": return len(table.get_timeline().get_completed_commits())
    chosen = HudiReadOptions(**CHOSEN.get(work, {}))
    if work == "preview of 200 rows": return next(iter(table.read_stream(chosen))).num_rows
    return sum(batch.num_rows for batch in table.read(chosen))
"""
PYICEBERG = """
from pyiceberg.table import StaticTable
import pyarrow.dataset
options = {"s3.endpoint": url, "s3.access-key-id": "k", "s3.secret-access-key": "s", "s3.region": "us-east-1"}
def run(work):
    if work.endswith("by folder"): raise NotImplementedError
    table = StaticTable.from_metadata(f"s3://lake/{name}/metadata/v110.metadata.json", options)
    if work == "history of 20": return len(table.inspect.snapshots())
    if work == "all rows": return table.scan().to_arrow().num_rows
    if work == "two columns": return table.scan(selected_fields=("id", "amount")).to_arrow().num_rows
    if work == "where id < 1000": return table.scan("id < 1000").to_arrow().num_rows
    if work == "preview of 200 rows": return table.scan(limit=200).to_arrow().num_rows
"""
PYPAIMON = """
from pypaimon import CatalogFactory
options = {"warehouse": "s3://lake", "s3.endpoint": url, "s3.access-key": "k", "s3.secret-key": "s",
           "s3.region": "us-east-1", "s3.path.style.access": "true"}
COLUMNS = ["id", "amount"]
def run(work):
    table = CatalogFactory.create(options).get_table("shop.paimon")
    if work == "open": return
    if work == "history of 20": raise NotImplementedError
    builder = table.new_read_builder()
    if work == "two columns": builder = builder.with_projection(COLUMNS)
    if work == "where id < 1000": builder = builder.with_filter(builder.new_predicate_builder().less_than("id", 1000))
    if work == "preview of 200 rows": builder = builder.with_limit(200)
    return builder.new_read().to_arrow(builder.new_scan().plan().splits()).num_rows
"""
TIMED = """
import time
print("ready", flush=True)
sys.stdin.readline()
start = time.perf_counter()
found = run(work)
print(json.dumps([time.perf_counter() - start, found]))
"""
CODES = {
    "delta": {"ours": OURS, "deltalake": DELTALAKE, "polars": POLARS, "duckdb": DUCKDB},
    "iceberg": {"ours": OURS, "pyiceberg": PYICEBERG, "duckdb": DUCKDB},
    "paimon": {"ours": OURS, "pypaimon": PYPAIMON},
    "hudi": {"ours": OURS, "hudi-rs": HUDI},
}
"""What each library does, by the format."""
MODULES = {"duckdb": "duckdb_extensions", "hudi-rs": "hudi", "polars": "polars, deltalake"}
"""What an interpreter must import to run a library, where that has another name."""


def interpreter(library: str, peers: Sequence[str]) -> str | None:
    """Return the first interpreter that has a library; this one for ours, None if no other has it."""
    if library == "ours":
        return sys.executable
    code = f"import {MODULES.get(library, library)}"
    tried = (subprocess.run([python, "-c", code], capture_output=True, check=False).returncode for python in peers)
    return next((python for python, failed in zip(peers, tried, strict=True) if not failed), None)


def start(server: Server, python: str, code: str, name: str, work: str) -> subprocess.Popen[str]:
    """Return a new process that imports a library and then waits."""
    head = f"import json, sys\nurl, name, work = {server.url!r}, {name!r}, {work!r}\n"
    return subprocess.Popen(
        [python, "-c", head + code + TIMED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


class Run(NamedTuple):
    """A measurement."""

    seconds: float
    requests: int
    rounds: int


def measure(server: Server, process: subprocess.Popen[str]) -> Run | None:
    """Return what the work of a process cost; None if the library cannot do it."""
    server.spans.clear()
    out, _ = process.communicate("go\n")
    if process.returncode:
        return None
    return Run(json.loads(out.splitlines()[-1])[0], len(server.spans), server.rounds())


def measure_each(server: Server, table: str, work: str, libraries: Mapping[str, str]) -> Iterator[tuple[str, Run]]:
    """Yield the library and its run, one after another, ours first. All processes import before the first run."""
    processes = {
        library: start(server, python, CODES[table][library], NAMES[table], work)
        for library, python in libraries.items()
    }
    for process in processes.values():
        process.stdout.readline()
    for library, process in processes.items():
        if (run := measure(server, process)) is not None:
            yield library, run


def main() -> None:
    """Measure each work with each library at each delay, in turns, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("formats", nargs="*", default=list(TABLES))
    parser.add_argument("--peers", nargs="*", default=[sys.executable], help="interpreters that have the peers")
    parser.add_argument("--delays", type=int, nargs="*", default=[0, 50, SLOW], help="milliseconds per request")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each work; two with a delay")
    parser.add_argument("--works", nargs="*", help="by default all of the format")
    parser.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        server = Server(Path(root))
        for table in arguments.formats:
            TABLES[table](Path(root) / NAMES[table])
            pythons = {name: interpreter(name, arguments.peers) for name in arguments.only or CODES[table]}
            libraries = {name: python for name, python in pythons.items() if python is not None}
            for delay in arguments.delays:
                server.delay = delay / 1000
                for work in arguments.works or (*WORKS, *BY_FOLDER.get(table, ())):
                    compare(server, table, work, libraries, arguments)


def compare(server: Server, table: str, work: str, libraries: Mapping[str, str], arguments: argparse.Namespace) -> None:
    """Measure a work with each library, in turns; print the medians, and record them for the guide's page."""
    delay = round(server.delay * 1000)
    runs: dict[str, list[Run]] = {}
    for _ in range(min(DELAYED_RUNS, arguments.runs) if delay else arguments.runs):
        for library, run in measure_each(server, table, work, libraries):
            runs.setdefault(library, []).append(run)
    medians = {library: statistics.median(run.seconds for run in found) for library, found in runs.items()}
    costs = {library: (found[-1].requests, found[-1].rounds) for library, found in runs.items()}
    for library, (requests, rounds) in costs.items():
        print(
            f"{delay:4} ms  {table:8} {work:20} {library:10} "
            f"{medians[library]:6.2f} s {requests:5} requests {rounds:4} rounds",
            flush=True,
        )
    ours = medians.pop("ours", None)
    if ours is not None:
        note = "; ".join(
            f"{library}: {requests} requests in {rounds} rounds" for library, (requests, rounds) in costs.items()
        )
        record(f"{table.capitalize()} on S3, {delay} ms per request: {work}", ours, medians, note=note)


if __name__ == "__main__":
    main()
