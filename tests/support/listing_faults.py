"""Let listings fail in every way, in every public call, on every storage, and look what comes of it.

    python -m tests.support.listing_faults --cases 1000 --seed 7      a thousand cases, by chance

A folder is absent only if the storage lists nothing in it. So the answer must be the true one, an error of ours, or
one that marks what was not read. A line is printed for everything else, with counts at the end; the exit status says
whether there was any.
"""

import argparse
import collections
import contextlib
import errno
import json
import logging
import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from snapshot_explorer import find_tables, open_lake, open_table
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.storage import files as storage_files
from snapshot_explorer.storage import retries
from tests.support import fault_search
from tests.support.fault_search import (
    SAYS,
    Hangs,
    are_same,
    claims_no_more,
    difference_of,
    differs_by_errors_only,
    ended_after,
    is_text,
    new_lines,
    spot_of,
    states_damage,
)
from tests.support.key_server import STORES, KeyServer, failures_of, keys_of, stores
from tests.support.public_calls import Drawn, answer, arguments_for, calls, drawings, notebook_calls, proofs

LOCAL = "local"
DISK = {
    "input/output error": errno.EIO,
    "permission denied": errno.EACCES,
    "stale handle": errno.ESTALE,
    "not connected": errno.ENOTCONN,
    "too many open files": errno.EMFILE,
    "host is down": errno.EHOSTDOWN,
}
"""How the local disk, which may be mounted from elsewhere, fails to list a folder."""
_SLOW = 30
"""Seconds after which a case hangs: each client waits for less, several times."""


@dataclass(frozen=True, slots=True)
class Case:
    """A listing that fails in a call."""

    table: str
    store: str
    call: str
    folder: str
    failure: str
    lasts: bool

    def __str__(self):
        lasts = "from then on" if self.lasts else "once"
        return f"{self.table} on {self.store}: {self.call}: {self.failure}, {lasts}, at {self.folder or 'the root'}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of a case that should not."""

    case: Case
    outcome: str
    """foreign, wrong or hangs."""
    detail: str


class Bench:
    """A table on one storage, its calls, and their answers when all is well."""

    def __init__(self, name, store):
        self.name, self.store = name, store
        self.listed = collections.Counter()
        """How often each folder was listed, below the root."""
        self._failing = None
        self._closing = contextlib.ExitStack()
        folder = fault_search.tables()[name]
        objects = keys_of(folder, "shop/t") | keys_of(folder, "other/copy")
        if store == LOCAL:
            self.root, self.options = self._closing.enter_context(tempfile.TemporaryDirectory()), {}
            _write(objects, self.root)
            patch = mock.patch.object(storage_files.os, "scandir", self._scandir(os.scandir))
            self._closing.enter_context(patch)
        else:
            server = KeyServer(objects)
            server.fault = self._fault
            self._closing.callback(server.close)
            self.root, self.options, _ = stores(server)[store]
        given = arguments_for(self.opened())
        self.opened()._repr_mimebundle_()  # what a card says only once per table is said
        self.calls = {
            "open": lambda _: (table := self.opened(), table.current.version, table.format, table.at("latest").schema),
            "find_tables": lambda _: _rows(find_tables(self.root, storage_options=self.options).to_arrow(), "problem"),
            "lake": lambda _: _rows(self._lake().overview().to_arrow(), "problem", "unreadable", "note"),
            "lake at": lambda _: _rows(self._lake().at().versions.to_arrow(), "problem"),
            "lake drawn": lambda _: Drawn(repr(self._lake())),
            **calls(given),
            **drawings(given),
            **notebook_calls(given),
            **proofs(given, self.opened("other/copy")),
        }
        self._truths = {}

    def close(self):
        self._closing.close()

    def opened(self, name="shop/t"):
        """Return the table, opened."""
        return open_table(f"{self.root}/{name}", storage_options=self.options)

    def _lake(self):
        return open_lake(f"{self.root}/shop", storage_options=self.options)

    def _fault(self, folder):
        """Note a listing, and return how it fails; None if it does not."""
        folder = folder.strip("/")
        self.listed[folder] += 1
        if self._failing is None or self._failing.folder != folder:
            return None
        failure = self._failing.failure
        self._failing = self._failing if self._failing.lasts else None
        return failure

    def _scandir(self, scandir):
        def listed(path):
            text = path if isinstance(path, int) else os.fspath(path)
            is_below = isinstance(text, str) and text.startswith(self.root)
            if is_below and (failure := self._fault(text[len(self.root) :])):
                raise OSError(DISK[failure], os.strerror(DISK[failure]), text)
            return scandir(path)

        return listed

    def truth(self, call):
        """Return a call's answer when all is well, and the folders that it listed."""
        if call not in self._truths:
            table = self.opened()
            self.listed.clear()
            found = self.run(call, table)
            self._truths[call] = found, sorted(folder for folder in self.listed if folder.startswith("shop/t"))
        return self._truths[call]

    def run(self, call, table):
        return answer(self.calls[call], table)

    def cases(self, chance):
        """Yield cases by chance, without an end; nothing for calls that list nothing."""
        names = list(self.calls)
        failures = list(DISK) if self.store == LOCAL else failures_of(self.store)
        while True:
            call = chance.choice(names)
            folders = self.truth(call)[1]
            failure, lasts = chance.choice(failures), chance.random() < 0.8
            yield Case(self.name, self.store, call, chance.choice(folders), failure, lasts) if folders else None

    def find(self, case):
        """Return what comes of a case that should not, or None."""
        truth, _ = self.truth(case.call)
        table = self.opened()
        self._failing = case
        try:
            with ended_after(_SLOW):
                found = self.run(case.call, table)
        except Hangs:
            return Finding(case, "hangs", "")
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            return Finding(case, "foreign", spot_of(error))
        finally:
            self._failing = None
        return None if is_right(found, truth) else Finding(case, "wrong", difference_of(truth, found))


def is_right(found, truth):
    """Return whether an answer is the true one, an error of ours, or marks what was not read."""
    if isinstance(found, SnapshotExplorerError) or are_same(found, truth) or differs_by_errors_only(found, truth):
        return True
    if is_text(found):
        return bool(SAYS.search(new_lines(found, truth)))
    if isinstance(found, dict) and isinstance(truth, dict):
        if "rows" in found:
            return _marks_rows(found["rows"], truth["rows"])
        return claims_no_more(found, truth, may_be_gone=False)
    return states_damage(found, truth)


def _marks_rows(found, truth):
    """Return whether every row is there, and is as it should be or has marks of what was not read."""
    marked = {name for name, (_, marks) in found.items() if marks}
    return truth.keys() <= found.keys() | {f"{name}/" for name in marked} and all(
        values == truth.get(name, (None,))[0] or name in marked for name, (values, _) in found.items()
    )


def _rows(table, *marks):
    """Return the rows of a table by their names, each with what it says of parts that were not read."""
    kept = [name for name in ("name", "format", "version", "files", "size_bytes", "rows") if name in table.column_names]
    rows = table.to_pylist()
    return {
        "rows": {
            row["name"]: [[row[name] for name in kept], [row[name] for name in marks if row[name]]] for row in rows
        }
    }


def _write(objects, root):
    for key, content in objects.items():
        path = Path(root, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (1_700_000_000, 1_700_000_000))


def run(names, store_names, *, cases, seed, seconds=None):
    """Run cases by chance, as many on each table and storage; return counts, and what should not have come."""
    chance = random.Random(seed)
    pairs = [(name, store) for name in names for store in store_names]
    chance.shuffle(pairs)
    counts, groups, began = collections.Counter(), {}, time.monotonic()
    for number, (name, store) in enumerate(pairs):
        share = (cases - counts["cases"]) // (len(pairs) - number)
        try:
            bench = Bench(name, store)
        except SnapshotExplorerError:
            counts["refused tables"] += 1
            continue
        try:
            for case in (case for case, _ in zip(bench.cases(chance), range(2 * share), strict=False) if case):
                if counts["of this"] >= share or (seconds and time.monotonic() - began > seconds):
                    break
                counts.update(["cases", "of this"])
                finding = bench.find(case)
                counts[finding.outcome if finding else "right, or our error"] += 1
                if finding:
                    groups.setdefault((finding.outcome, case.call, case.failure), []).append(finding)
        finally:
            bench.close()
            del counts["of this"]
    return counts, groups


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500, help="how many, over all tables and storages")
    parser.add_argument("--seed", type=int, default=0, help="what chance begins with")
    parser.add_argument("--table", default="samples/", help="only tables whose names contain this")
    parser.add_argument("--store", default="", help="only storages whose names contain this")
    parser.add_argument("--seconds", type=float, help="end after this time, wherever it is")
    given = parser.parse_args()
    logging.disable()
    names = [name for name in fault_search.tables() if given.table in name]
    store_names = [name for name in (*STORES, LOCAL) if given.store in name]
    with mock.patch.object(retries, "FIRST_WAIT", 0.001):
        counts, groups = run(names, store_names, cases=given.cases, seed=given.seed, seconds=given.seconds)
    for (outcome, call, failure), found in sorted(groups.items()):
        print(f"{outcome}: {call}: {failure} ({len(found)}x)\n    {found[0].case}\n    {found[0].detail}")  # noqa: T201 - a command
    print(json.dumps(counts, indent=1))  # noqa: T201 - a command
    return 1 if groups else 0


if __name__ == "__main__":
    sys.exit(main())
