"""The overview of a lake of 1,000 tables on a store: what it finds, how long it takes, and how much memory.

    python tests/benchmarks/lake.py [--deltalake PYTHON] [--pyiceberg PYTHON] [--pypaimon PYTHON]
        [--tables 1000] [--delay 50] [--alone] [--spark]

Tables are written by deltalake, pyiceberg and pypaimon (`lake_tables.py`), one per history of `tests/support/lakes.py`,
then copied with rewritten commit times. A small S3 server on the loopback interface answers each request after a delay,
in a process of its own. Prints seconds, processor time and memory of all processes that read, and each table that is
reported otherwise than it was planted. The exit status is 1 if there is one. The peer is the plain loop: deltalake,
pyiceberg and pypaimon, 32 threads each, one after another, open each table and read its newest 12 commits, without
their bytes. A library that takes more than 30 seconds is stopped.

With `--spark`, executors of a local Spark session read tables on the disk, each a link to one of 100: `--spark --tables
10000` is a lake that one process should not read.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

sys.path.append(str(Path(__file__).parents[2]))

from snapshot_explorer import open_lake
from snapshot_explorer.lake import overview_request, overview_rows
from tests.benchmarks.lake_tables import set_times
from tests.benchmarks.report import record
from tests.support import lakes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE = Path(__file__).parent
LIBRARIES = {"delta": "deltalake", "iceberg": "pyiceberg", "paimon": "pypaimon"}
FORMATS = tuple(LIBRARIES)
LOOP = "opening each and reading its commits with the formats' libraries"
QUIET_SHARE = 0.9
PORT_SECONDS = 60


class LakeServer:
    """An S3 server of a folder whose answers are in memory, and which answers all requests in one thread.

    The store of a lake does not compute on the processors of its readers. This one does, so it must take few.
    """

    def __init__(self, folder: Path, delay: float) -> None:
        """Serve the files that are now below a folder as the bucket `lake`, each answer after some seconds."""
        self.delay = delay
        self._objects = {
            path.relative_to(folder).as_posix(): _StoredObject(path.read_bytes(), path.stat().st_mtime_ns // 1_000_000)
            for path in folder.rglob("*")
            if path.is_file()
        }
        self._keys = sorted(self._objects)

    async def serve(self, address: Path) -> None:
        """Serve until the process ends. Writes the URL and its processor time to a file once it accepts connections."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(self), "127.0.0.1", 0, backlog=1024)
        partial = address.with_suffix(".new")
        partial.write_text(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]} {time.process_time()}")
        partial.rename(address)
        await server.serve_forever()

    def answer(self, head: str) -> bytes:
        """Return the answer to the head of a request."""
        method, target, _ = head.split(" ", 2)
        path, _, query = target.partition("?")
        _, _, key = unquote(path).lstrip("/").partition("/")
        if not key:
            return _answer(200, "Content-Type: application/xml\r\n", self._listing(dict(parse_qsl(query))))
        stored = self._objects.get(key)
        if stored is None:
            return _answer(404, "", b"<Error><Code>NoSuchKey</Code></Error>" * (method != "HEAD"))
        if method == "HEAD":
            return stored.head
        _, found, rest = head.lower().partition("\r\nrange: bytes=")
        return stored.range(rest.partition("\r\n")[0]) if found else stored.head + stored.body

    def _listing(self, query: Mapping[str, str]) -> bytes:
        prefix, parts = query.get("prefix", ""), []
        has_folders = "delimiter" in query
        position = bisect_right(self._keys, max(prefix, query.get("start-after", "")))
        while position < len(self._keys) and (key := self._keys[position]).startswith(prefix):
            name, slash, _ = key.removeprefix(prefix).partition("/")
            if has_folders and slash:
                parts.append(f"<CommonPrefixes><Prefix>{escape(prefix + name)}/</Prefix></CommonPrefixes>")
                position = bisect_left(self._keys, f"{prefix}{name}0", position)  # 0 is the character after /
            else:
                parts.append(f"<Contents><Key>{escape(key)}</Key>{self._objects[key].listed}</Contents>")
                position += 1
        return (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>lake</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(parts)}</KeyCount><MaxKeys>1000</MaxKeys>"
            f"<IsTruncated>false</IsTruncated>{''.join(parts)}</ListBucketResult>"
        ).encode()


class _StoredObject:
    """An object with what is sent of it."""

    def __init__(self, body: bytes, modified: int) -> None:
        """Store bytes with the time when they were modified, in milliseconds since 1970."""
        self.body = body
        seconds, millis = divmod(modified, 1000)
        time_of = time.gmtime(seconds)
        self.lines = f'ETag: "{len(body)}"\r\nLast-Modified: {time.strftime(_HTTP_TIME, time_of)}\r\n'
        self.head = _answer(200, f"{self.lines}Accept-Ranges: bytes\r\n", body)[: -len(body) or None]
        self.listed = (
            f"<LastModified>{time.strftime('%Y-%m-%dT%H:%M:%S', time_of)}.{millis:03}Z</LastModified>"
            f'<ETag>"1"</ETag><Size>{len(body)}</Size><StorageClass>STANDARD</StorageClass>'
        )

    def range(self, wanted: str) -> bytes:
        """Return the answer to a request of a range, such as `0-99`, `100-` or `-8`."""
        first, _, last = wanted.partition("-")
        start = int(first) if first else max(len(self.body) - int(last), 0)
        end = min(int(last), len(self.body) - 1) if first and last else len(self.body) - 1
        lines = f"{self.lines}Content-Range: bytes {start}-{end}/{len(self.body)}\r\n"
        return _answer(206, lines, self.body[start : end + 1])


_HTTP_TIME = "%a, %d %b %Y %H:%M:%S GMT"


def _answer(status: int, lines: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status} x\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Connection(asyncio.Protocol):
    """A connection of a client, which sends a request after the answer to the one before."""

    def __init__(self, server: LakeServer) -> None:
        """Answer from a server."""
        self.server, self.received = server, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where answers go."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer a request after the delay, once its head is there; it has no body."""
        self.received += data
        if self.received.endswith(b"\r\n\r\n"):
            head, self.received = self.received.decode("latin-1"), b""
            asyncio.get_running_loop().call_later(self.server.delay, self._answer, head)

    def _answer(self, head: str) -> None:
        self.transport.write(self.server.answer(head))


def write_templates(folder: Path, pythons: Mapping[str, str]) -> None:
    """Have the real writers write a table of each history; `pythons` are interpreters by format."""
    histories = {
        name: [asdict(step) for step in history(number)]
        for number, (name, history) in enumerate(lakes.HISTORIES.items())
    }
    (folder / "histories.json").write_text(json.dumps(histories))
    for table_format in FORMATS:
        subprocess.run([pythons[table_format], str(HERE / "lake_tables.py"), table_format, str(folder)], check=True)


def write_lake(templates: Path, root: Path, count: int) -> None:
    """Write so many tables, one in ten with an incident, below folders of 100."""
    numbers = random.Random(1)
    shift = round((datetime.now(UTC) - lakes.NOW).total_seconds() * 1000)
    for number in range(count):
        names = lakes.QUIET if numbers.random() < QUIET_SHARE else lakes.INCIDENTS
        name, table_format = numbers.choice([*names]), FORMATS[number % len(FORMATS)]
        folder = root / f"db{number // 100}.db" / f"{name}_{number}"
        shutil.copytree(templates / f"{name}_{table_format}", folder)
        set_times(folder, table_format, [step.millis + shift for step in lakes.HISTORIES[name](number)])
        if name == "broken":
            lakes.damage(folder, table_format)


def peer_seconds(root: Path, url: str, pythons: Mapping[str, str]) -> tuple[float, bool]:
    """Return the seconds in which the libraries read the newest commits of all tables, and whether one was stopped."""
    seconds, is_stopped = 0.0, False
    for position, table_format in enumerate(FORMATS):
        numbered = [(int(path.name.rpartition("_")[2]), path) for path in root.glob("*/*")]
        names = [f"{path.parent.name}/{path.name}" for number, path in numbered if number % len(FORMATS) == position]
        (root.parent / "names.json").write_text(json.dumps(names))
        command = [
            pythons[table_format],
            str(HERE / "lake_tables.py"),
            table_format,
            str(root),
            url,
            str(root.parent / "names.json"),
        ]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        taken, count, was_running = json.loads(done.stdout.splitlines()[-1])
        is_stopped |= was_running
        ending = ", then stopped" * was_running
        print(f"  {table_format}: {count:,} of {len(names):,} tables in {taken:.1f} s by its library{ending}")
        seconds += taken
    return seconds, is_stopped


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it started and that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure(url: str, peer: tuple[float, bool] | None = None) -> int:
    """Read and check the overview of the store at a URL."""
    options = {"key": "k", "secret": "s", "endpoint_url": url, "client_kwargs": {"region_name": "us-east-1"}}
    began, processor = time.perf_counter(), processor_seconds()
    lake = open_lake("s3://lake/lake", storage_options=options)
    listed = time.perf_counter() - began
    first = None
    rows = []
    for row in overview_rows(lake, overview_request(lake)):
        first = first or time.perf_counter() - began
        rows.append(row)
    seconds = time.perf_counter() - began
    own, largest = (
        resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    peak = own + largest * min(len(os.sched_getaffinity(0)), 4)  # at most: not all have their peak at the same time
    print(
        f"{len(rows):,} tables: listed in {listed:.1f} s, first row after {first or 0:.1f} s, all in {seconds:.1f} s "
        f"({processor_seconds() - processor:.1f} s of processor), peak at most {peak:.0f} MiB"
    )
    work = f"A lake of {len(rows):,} tables on a store: rhythm, rows, bytes and incidents of each"
    others = {} if peer is None else {LOOP: peer[0]}
    record(work, seconds, others, note=f"{peak:.0f} MiB", stopped=[LOOP] if peer is not None and peer[1] else [])
    return compare_with_planted(rows)


def measure_spark(root: Path, count: int) -> int:
    """Read and check the overview of so many tables on the disk with Spark, from links to the tables of a folder."""
    from pyspark.sql import SparkSession

    for number in range(1, count // 100):
        shutil.copytree(root / "db0.db", root / f"db{number}.db", copy_function=os.link)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.config("spark.driver.memory", "1g").config("spark.ui.enabled", "false").getOrCreate()
    began = time.perf_counter()
    lake = open_lake(root)
    listed = time.perf_counter() - began
    rows = lake.overview("1d", engine="spark", spark=spark).to_dict()
    seconds = time.perf_counter() - began
    print(f"{len(rows):,} tables with Spark: listed in {listed:.1f} s, all in {seconds:.1f} s")
    record(f"A lake of {len(rows):,} tables on disk, with Spark: rhythm, rows, bytes and incidents of each", seconds)
    return compare_with_planted(rows)


def compare_with_planted(rows: Sequence[Mapping[str, object]]) -> int:
    """Print what is reported, and each table that is reported otherwise than planted. Return 1 if there is one."""
    wrong = unknowable = 0
    found: Counter[str] = Counter()
    for row in rows:
        name = str(row["name"]).rpartition("/")[2].partition("_")[0]
        planted, reported = name if name in lakes.INCIDENTS else None, lakes.incident_of(row)
        found[str(reported)] += 1
        if (planted, row["format"], reported) == ("doubled", "paimon", None):
            unknowable += 1
        elif planted != reported:
            wrong += 1
            print(f"  {row['name']} ({row['format']}): planted {planted}, reported {reported}: {row.get('problem')}")
    print(f"  reported: {dict(found)}; {wrong} otherwise than planted")
    print(f"  {unknowable} doubled tables of pypaimon, which records no bounds of columns: their metadata cannot tell")
    return 1 if wrong else 0


def main() -> int:
    """Write the lake, serve it in another process, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--delay", type=int, default=50, help="milliseconds per request")
    for library in LIBRARIES.values():
        parser.add_argument(f"--{library}", default=sys.executable, metavar="PYTHON", help=f"one with {library}")
    parser.add_argument("--templates", type=Path, help="a folder with tables that were written before")
    parser.add_argument("--alone", action="store_true", help="measure no peer")
    parser.add_argument("--spark", action="store_true", help="read tables on the disk with Spark, without a peer")
    arguments = parser.parse_args()
    pythons = {table_format: getattr(arguments, library) for table_format, library in LIBRARIES.items()}
    with tempfile.TemporaryDirectory() as folder:
        templates = arguments.templates or Path(folder) / "templates"
        if arguments.templates is None:
            templates.mkdir()
            write_templates(templates, pythons)
        write_lake(templates, Path(folder) / "lake", 100 if arguments.spark else arguments.tables)
        if arguments.spark:
            return measure_spark(Path(folder) / "lake", arguments.tables)
        served, started = os.fork(), "0"
        if not served:
            serve(Path(folder), arguments.delay)
        try:
            address = Path(folder) / "url"
            end = time.monotonic() + PORT_SECONDS
            while not address.exists() and time.monotonic() < end:
                time.sleep(0.05)
            url, started = address.read_text().split()
            peer = None
            if not arguments.alone:
                peer = peer_seconds(Path(folder) / "lake", url, pythons)
            return measure(url, peer)
        finally:
            os.kill(served, 9)
            usage = os.wait4(served, 0)[2]
            used = usage.ru_utime + usage.ru_stime - float(started)
            print(f"  the store itself used {used:.1f} s of processor, of the same {os.cpu_count()} processors")


def serve(folder: Path, delay: int) -> None:
    """Serve a folder until the process is killed; its URL is in the file `url`."""
    asyncio.run(LakeServer(folder, delay / 1000).serve(folder / "url"))


if __name__ == "__main__":
    sys.exit(main())
