"""A seeded sample of what `listing_faults` does for longer: a listing that fails, and what comes of it in a call."""

import itertools
import os
import random

import pytest

from snapshot_explorer import find_tables, open_table
from snapshot_explorer.storage import retries
from tests.support.fault_search import tables
from tests.support.key_server import PACKAGES, STORES, KeyServer, failures_of, keys_of, stores
from tests.support.listing_faults import LOCAL, Bench, Case

SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "13"))
CASES = 2
"""Cases on each storage; `python -m tests.support.listing_faults --cases N --seed N` looks for more."""


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_WAIT", 0)


@pytest.fixture(scope="module")
def benches():
    """The bench of a table on a storage, made once."""
    known = {}

    def bench(name, store):
        known[name, store] = known.get((name, store)) or Bench(name, store)
        return known[name, store]

    yield bench
    for made in known.values():
        made.close()


@pytest.mark.parametrize("store", [*STORES, LOCAL])
def test_a_listing_that_fails_gives_the_right_answer_or_our_error_or_marks_what_was_not_read(benches, store):
    pytest.importorskip(PACKAGES.get(store) or "snapshot_explorer")
    chance = random.Random(f"{SEED} {store}")
    bench = benches("samples/payments", store)

    cases = itertools.islice(filter(None, bench.cases(chance)), CASES)
    findings = [finding for case in cases if (finding := bench.find(case))]

    assert findings == []


IMPORTANT = {
    "samples/payments": ("open", "find_tables", "lake", "orphans", "verify existence"),
    "samples/orders": ("tags", "branches"),
}
"""Calls that would claim the most of an empty folder."""


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in IMPORTANT.items() for call in calls])
def test_no_call_takes_a_folder_that_cannot_be_listed_for_empty(benches, name, call):
    bench = benches(name, "s3")
    _, folders = bench.truth(call)
    failures = itertools.cycle(failures_of("s3"))

    cases = [Case(name, bench.store, call, folder, next(failures), lasts=True) for folder in folders]
    findings = [finding for case in cases if (finding := bench.find(case))]

    assert cases
    assert findings == []


ODD_KEYS = (
    "//x.parquet",
    "/_delta_log//00000000000000000099.json",
    "/_delta_log/./x",
    "/a/../x",
    "/tag//x",
    "/x/",
    "/x\t",
)


@pytest.fixture(scope="module")
def odd():
    """A table on S3, with a key of each odd form in its folder."""
    server = KeyServer(keys_of(tables()["samples/payments"], "shop/t"))
    server.objects |= {f"shop/t{key}": b"x" for key in ODD_KEYS}
    yield stores(server)["s3"]
    server.close()


def test_odd_keys_hide_no_table_and_are_the_only_orphans(odd):
    url, options, _ = odd

    table = open_table(f"{url}/shop/t", storage_options=options)
    orphans = table.orphans("0d")

    rows = {row["path"]: row["is_orphan"] for row in orphans.files.to_arrow().to_pylist()}
    assert rows == dict.fromkeys([key[1:] for key in ODD_KEYS], True)
    assert table.verify().verdict == "All 15 data files exist, with the recorded sizes where some are recorded."
    assert table.current.to_arrow().num_rows == 126
    assert find_tables(url, storage_options=options).to_arrow()["name"].to_pylist() == ["shop/t"]
