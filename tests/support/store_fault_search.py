"""Have an object store lie in one answer or in all, to every client, and look what comes of it.

    python -m tests.support.store_fault_search --cases 2000 --seed 7     so many cases, drawn by chance
    python -m tests.support.store_fault_search --seed 7 --only 1234      the case of that number alone
    python -m tests.support.store_fault_search --client s3fs --kind slow  only these

Every case is a table of one of the formats, read by one of the clients from a server on the loopback interface; a call;
one of the requests that the call makes; and a lie: a redirect elsewhere, a false length, another part than wanted, an
answer that is too slow, an object that was replaced, a listing without an end, a document that grows, a broken answer.

What may come of it: the right answer, or an error of ours without a secret, in time. No request may arrive at another
server. A line is printed for everything else; the exit status says whether there was any.
"""

import argparse
import collections
import contextlib
import dataclasses
import gzip
import io
import itertools
import json
import logging
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.storage import bounded_answers
from tests.support.delta.table_builder import DeltaTable, add
from tests.support.outputs import shown_by
from tests.support.public_calls import answer
from tests.support.store_server import HOSTS, SECRETS, served

SECONDS = 45
"""How long a call may take until it hangs: each request that fails may be repeated for 30 seconds."""
GRACE, PAUSE = 0.25, 0.05
CLIENTS = ("s3", "s3", "s3", "azure", "azure sas", "google", "google", "s3fs", "adlfs", "gcsfs", "web")
TABLES = ("payments", "orders", "shipments", "rides", "pairs")
ROWS = 150_000
STATUSES = (300, 301, 302, 303, 305, 307, 308)
ENTITIES = (
    b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "'
    + b"a" * 1000
    + b'">'
    + b"".join(b'<!ENTITY %c "%b">' % (letter, b"&%c;" % (letter - 1) * 10) for letter in range(ord("b"), ord("j")))
    + b"]><ListBucketResult><Name>&i;</Name></ListBucketResult>"
)


def pairs(value):
    """Return a parquet file in which two columns are equal in every row."""
    out = io.BytesIO()
    table = pa.table({"x": np.full(ROWS, value), "y": np.full(ROWS, value)})
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table, out, row_group_size=ROWS // 3, **plain)
    return out.getvalue()


OLD, NEW = pairs(1), pairs(2)


def write_tables(folder):
    for name in TABLES[:-1]:
        shutil.copytree(samples.path(name), folder / name)
    table = DeltaTable(None, folder / "pairs", fields=[("x", "long"), ("y", "long")])
    table.write("f.parquet", OLD)
    table.commit(add("f.parquet", size=len(OLD), rows=None))


CALLS = {
    "open": lambda table: (table.current.version, table.format, str(table.at("latest").schema)),
    "load": lambda table: table.current.to_arrow(),
    "load older": lambda table: table.at("latest~1").to_arrow(),
    "history": lambda table: table.history().to_arrow().drop_columns("readable"),
    "files": lambda table: table.current.files().to_arrow(),
    "changes": lambda table: table.at("latest").file_changes(since="earliest").to_arrow(),
    "diff": lambda table: table.diff_rows("latest~1", "latest").to_arrow(),
    "count": lambda table: table.current.count(),
    "readability": lambda table: table.verify().versions.to_arrow(),
    "verify": lambda table: table.verify("footers").files.to_arrow(),
}


# Each kind returns a function that answers a request and returns True, or False where the kind does not fit it.


def redirect(chance, bench):
    status = chance.choice(STATUSES)
    other = chance.choice(bench.others)
    target = chance.choice(
        [
            f"{other.url}/lake/x",
            f"//{other.host}/x",
            f"{other.url.replace('127.0.0.', 'localhost' if other is bench.others[0] else '127.0.0.')}/x".replace(
                "localhost1", "localhost"
            ),
            f"http://{bench.server.host}@{other.host}/x?sig=canary-signature",
            f"https://{other.host}/",
        ]
    )
    return lambda request: request.redirect(target, status) or True


def length(chance, bench):
    claim = chance.choice([10**13, 2**31, 2**63 - 1, 10**30, -1, "x", "", "1, 2"])

    def lie(request):
        content = bench.server.content(request.key) if request.key else b"<x/>"
        headers = bench.server.headers_of(content or b"")
        request.start(200, headers, claim)
        request.write((content or b"")[:1000])
        request.hang_up()
        return True

    return lie


def near_length(chance, bench):
    more = chance.choice([-1, 1, -7, 1000])

    def lie(request):
        content = bench.server.content(request.key) if request.key else None
        if not content:
            return False
        request.start(200, bench.server.headers_of(content), max(len(content) + more, 0))
        request.write(content)
        request.hang_up()
        return True

    return lie


def unbounded(chance, bench):
    is_gzip = chance.random() < 0.3

    def lie(request):
        headers = {"ETag": '"x"', "x-goog-generation": "1", "Content-Type": "application/octet-stream"}
        if is_gzip:
            body = gzip.compress(bytes(2**24))
            request.send(200, {**headers, "Content-Encoding": "gzip"}, body)
            return True
        request.start(200, {**headers, "Transfer-Encoding": "chunked"})
        end = time.monotonic() + 2
        while time.monotonic() < end and request.write(b"10000\r\n" + bytes(2**16) + b"\r\n"):
            pass
        request.hang_up()
        return True

    return lie


def slow(chance, bench):
    where = chance.choice(["body", "headers", "stalls", "never"])

    def lie(request):
        content = (bench.server.content(request.key) if request.key else None) or b"<x/>" * 500
        end = time.monotonic() + 20
        if where == "headers":
            request.handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            pieces = itertools.repeat(b"X: y\r\n")
        elif where == "never":
            pieces = itertools.repeat(b"")
        else:
            request.start(200, bench.server.headers_of(content), len(content))
            half = len(content) // 2 if where == "stalls" else 0
            request.write(content[:half])
            pieces = itertools.repeat(b"") if where == "stalls" else ([byte] for byte in content)
        for piece in pieces:
            if time.monotonic() > end or not request.write(bytes(piece)):
                break
            time.sleep(PAUSE)
        request.hang_up()
        return True

    return lie


def another_part(chance, bench):
    how = chance.choice(["shifted", "whole", "short", "total", "no range"])

    def lie(request):
        given = request.headers.get("Range") or request.headers.get("x-ms-range")
        content = bench.server.content(request.key) if request.key else None
        if not given or not content:
            return False
        first, _, last = given.removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last or len(content) - 1), len(content) - 1)
        headers = bench.server.headers_of(content)
        total = len(content)
        if how == "shifted":
            start, end = max(start - 3, 0), max(end - 3, 0)
        elif how == "short":
            end = (start + end) // 2
        elif how == "total":
            total = 10**13
        if how != "no range":
            headers["Content-Range"] = f"bytes {start}-{end}/{total}"
        body = content if how == "whole" else content[start : end + 1]
        request.send(200 if how in ("whole", "no range") else 206, headers, body)
        return True

    return lie


def replaced(chance, bench):
    """From the request on, the object is another one of the same length."""

    def lie(request):
        content = bench.server.content(request.key) if request.key else None
        if content is None:
            return False
        if request.key == "pairs/f.parquet":
            bench.server.contents[request.key] = NEW
        elif not request.key.endswith((".parquet", ".orc")):
            return False  # what is read whole is the new one, and right
        else:
            bench.server.contents[request.key] = content[::-1]
        return False

    return lie


def etags(chance, bench):
    how = chance.choice(["none", "new", "weak"])

    def lie(request):
        content = bench.server.content(request.key) if request.key else None
        if content is None:
            return False
        tag = {"none": "", "new": f'"{chance.random()}"', "weak": 'W/"x"'}[how]
        bench.server.send_object(request, headers={"ETag": tag, "x-goog-generation": str(chance.randrange(99))})
        return True

    return lie


def listing(chance, bench):
    how = chance.choice(["endless", "same token", "entities", "utf-16", "cut", "page", "error", "json", "empty"])
    count = itertools.count()

    def lie(request):
        if not request.is_listing:
            return False
        number = next(count) if how == "endless" else 1
        token = f"t{number}" if how == "endless" else "same"
        key = f"x{number:09d}" if how == "endless" else "x"
        xml = (
            f"<ListBucketResult><Name>lake</Name><IsTruncated>true</IsTruncated><NextContinuationToken>{token}"
            f"</NextContinuationToken><Contents><Key>{request.query.get('prefix', '')}{key}</Key><Size>1</Size>"
            "<LastModified>2023-11-14T22:13:20.000Z</LastModified></Contents></ListBucketResult>"
        )
        if "comp" in request.query:
            xml = (
                "<EnumerationResults><Blobs><Blob><Name>x</Name><Properties><Content-Length>1</Content-Length>"
                f"</Properties></Blob></Blobs><NextMarker>{token}</NextMarker></EnumerationResults>"
            )
        body = {
            "entities": ENTITIES,
            "utf-16": ENTITIES.decode().encode("utf-16"),
            "cut": xml[: len(xml) // 2].encode(),
            "page": b"<!DOCTYPE html><html><body><h1>It works!</h1></body></html>",
            "error": b"<Error><Code>InternalError</Code><Message>no</Message></Error>",
            "json": b'{"error": "no"}',
            "empty": b"",
        }.get(how, xml.encode())
        request.send(200, {"Content-Type": "application/xml"}, body)
        return True

    return lie


def broken(chance, bench):
    how = chance.choice([b"", b"HTTP/1.1 200\r\n", b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\nX\r\n\r\n", b"\0" * 99])

    def lie(request):
        request.write(how)
        request.hang_up()
        return True

    return lie


KINDS = {
    one.__name__: one
    for one in (
        redirect,
        length,
        near_length,
        unbounded,
        slow,
        another_part,
        replaced,
        etags,
        listing,
        broken,
    )
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A lie in a call."""

    number: int
    client: str
    table: str
    call: str
    kind: str
    at: int
    """Which request of the call."""
    lasts: bool

    def __str__(self):
        where = f"request {self.at}" + (" and all later ones" if self.lasts else "")
        return f"#{self.number}: {self.client}: {self.call} of {self.table}: {self.kind} at {where}"


class Bench:
    """A server with tables, two servers to which nothing may be sent, and what calls answer when all is well."""

    def __init__(self, server, others):
        self.server, self.others = server, others
        self._truths = {}

    def opened(self, client, table):
        root, options = self.server.clients()[client]
        return open_table(f"{root}/{table}", storage_options=options)

    def asked(self, client, table, call):
        return answer(lambda: CALLS[call](self.opened(client, table)))

    def truth(self, client, table, call):
        """Return the answer of a call, and the number of its requests."""
        key = client, table, call
        if key not in self._truths:
            self.server.answering, self.server.requests = None, []
            found = self.asked(client, table, call)
            self._truths[key] = found, len(self.server.requests)
        return self._truths[key]

    def case(self, seed, number, client=None, kind=None):
        chance = random.Random(f"{seed}/{number}")
        chosen = [client] if client else CLIENTS
        case = Case(
            number,
            chance.choice(chosen),
            chance.choice(TABLES),
            chance.choice(list(CALLS)),
            chance.choice([kind] if kind else list(KINDS)),
            0,
            chance.random() < 0.3,
        )
        _, count = self.truth(case.client, case.table, case.call)
        return dataclasses.replace(case, at=chance.randrange(max(count, 1))), chance

    def find(self, case, chance):
        """Return what comes of a case that should not, or None; and whether the lie was told."""
        truth, _ = self.truth(case.client, case.table, case.call)
        lie, told = KINDS[case.kind](chance, self), []
        numbers = itertools.count()

        def answering(request):
            number = next(numbers)
            if number < case.at or (number > case.at and told and not case.lasts):
                return False
            told.append(number)
            return lie(request)

        for one in (self.server, *self.others):
            one.requests = []
        self.server.answering = answering
        began = time.monotonic()
        try:
            found = self.asked(case.client, case.table, case.call)
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            return f"foreign: {type(error).__name__}: {error}", bool(told)
        finally:
            self.server.answering = None
            self.server.contents.clear()
        return self._problem(case, found, truth, time.monotonic() - began), bool(told)

    def _problem(self, case, found, truth, seconds):
        if any(other.requests for other in self.others):
            return "another server was asked"
        if seconds > SECONDS:
            return f"hangs: {seconds:.0f} s"
        if isinstance(found, SnapshotExplorerError):
            texts = [text for text in shown_by(found) if any(secret in text for secret in SECRETS)]
            return f"secret: {texts[0][:200]}" if texts else None
        if found == truth or str(found) == str(truth):
            return None
        if case.kind == "replaced" and case.table == "pairs" and case.call in ("load", "load older", "diff", "count"):
            return "mixed" if "1" in _values(found) and "2" in _values(found) else None
        if case.call in ("readability", "verify") and says_unread(found):
            return None
        if case.call == "history" and marks_unread(found, truth):
            return None
        return f"wrong: {str(found)[:300]} != {str(truth)[:300]}"


def _values(found):
    return set(json.dumps(str(found)).replace(",", " ").split())


def marks_unread(found, truth):
    """Return whether a history differs only in commits of which it says no more than that they are there."""
    rows, right = found[1], truth[1]
    return len(rows) == len(right) and all(
        row == other or (row[0] == other[0] and row[2] == "'other'" and set(row[3:-2]) == {"None"})
        for row, other in zip(rows, right, strict=True)
    )


def says_unread(found):
    """Return whether an answer says of a file or version that it could not be read."""
    return any(word in str(found) for word in ("unreadable", "Could not read", "cannot be", "None"))


@contextlib.contextmanager
def running():
    """Yield a Bench; what is slow for it is a quarter of a second."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(bounded_answers, "GRACE_SECONDS", GRACE),
        mock.patch.object(bounded_answers, "READ_SECONDS", 3.0),
        mock.patch.object(bounded_answers, "_CALL_SECONDS", 3.0),
    ):
        write_tables(Path(folder))
        with served(folder) as server, served(folder) as port, served(folder, HOSTS[1]) as host:
            yield Bench(server, (port, host))


def run(cases, seed, *, only=None, client=None, kind=None, seconds=None):
    """Run cases; return the counts of what came of them, and what should not have come."""
    counts, findings, began = collections.Counter(), [], time.monotonic()
    with running() as bench:
        for number in [only] if only is not None else range(cases):
            case, chance = bench.case(seed, number, client, kind)
            problem, was_told = bench.find(case, chance)
            counts["cases"] += 1
            counts[f"{case.kind}{'' if was_told else ' (not told)'}"] += 1
            if problem:
                counts["findings"] += 1
                findings.append(f"{case}\n    {problem}")
            if seconds and time.monotonic() - began > seconds:
                break
    return counts, findings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="what chance begins with")
    parser.add_argument("--only", type=int, help="the number of one case")
    parser.add_argument("--client", choices=sorted(set(CLIENTS)))
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--seconds", type=float, help="end after this time, wherever it is")
    given = parser.parse_args()
    logging.disable()
    counts, findings = run(
        given.cases, given.seed, only=given.only, client=given.client, kind=given.kind, seconds=given.seconds
    )
    for finding in findings:
        print(finding)  # noqa: T201 - a command
    print(json.dumps(counts, indent=1))  # noqa: T201 - a command
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
