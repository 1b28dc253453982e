"""How often calls wait for an object store: rounds of requests that depend on each other, and how many requests."""

import random

import fsspec
import pytest

from snapshot_explorer import open_table
from tests.support import filesystems
from tests.support.delta.table_builder import DeltaTable
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable

FILES, ROWS = 6, 14_000
_RANDOM = random.Random(1)
TEXTS = [_RANDOM.randbytes(40).hex() for _ in range(ROWS)]
"""Texts that compression leaves large: a data file has more than 1 MiB."""


def rows(number):
    return [(number * ROWS + place, text) for place, text in enumerate(TEXTS)]


def delta(filesystem, root):
    table = DeltaTable(filesystem, root)
    for number in range(FILES):
        table.append(rows(number), name=f"{number}.parquet")
        if number == FILES - 3:
            table.checkpoint()
            table.hint(table.version)


def paimon(filesystem, root):
    table = PaimonTable(filesystem, root)
    for number in range(FILES):
        table.commit(rows(number))


def iceberg(filesystem, root):
    table = IcebergTable(filesystem, root, location=f"counted://{root}")
    for number in range(FILES):
        table.commit(rows(number))


@pytest.fixture(scope="module")
def tables():
    """A store with a large table of each format: its class, and their paths."""
    counted = filesystems.counting(in_rounds=True)
    filesystem, root = fsspec.filesystem("memory"), "/rounds"
    for write in (delta, paimon, iceberg):
        write(filesystem, f"{root}/{write.__name__}")
    yield counted, f"counted://{root}"
    filesystem.rm(root, recursive=True)


CALLS = {
    "open": lambda table: open_table(table.path),
    "update": lambda table: table.update(),
    "history": lambda table: table.history(limit=20),
    "files": lambda table: table.current.files(),
    "rows": lambda table: table.current.to_arrow(),
    "one column": lambda table: table.current.to_arrow(columns=["id"]),
    "condition": lambda table: table.current.to_arrow(where="id < 1000"),
    "preview": lambda table: table.current.to_arrow(limit=200),
    "count": lambda table: table.current.count(),
    "row_changes": lambda table: table.row_changes("latest~1", "latest"),
    "compare": lambda table: repr(table.compare("latest~2", "latest")),
}
MOST = {
    "delta": {
        "open": (3, 7),
        "update": (1, 1),
        "history": (2, 8),
        "files": (0, 0),
        "rows": (2, 2 * FILES),
        "one column": (2, 2 * FILES),
        "condition": (2, FILES + 1),
        "preview": (2, 2),
        "count": (0, 0),
        "row_changes": (5, 5),
        "compare": (5, 15),
    },
    "paimon": {
        "open": (3, 4),
        "update": (2, 3),
        "history": (5, 23),
        "files": (2, FILES + 4),
        "rows": (5, 3 * FILES + 4),
        "one column": (5, 3 * FILES + 4),
        "condition": (5, 2 * FILES + 5),
        "preview": (5, FILES + 6),
        "count": (3, FILES + 4),
        "row_changes": (10, 14),
        "compare": (12, 48),
    },
    "iceberg": {
        "open": (5, 10),
        "update": (1, 7),
        "history": (1, 7),
        "files": (2, FILES + 1),
        "rows": (4, 3 * FILES + 1),
        "one column": (4, 3 * FILES + 1),
        "condition": (4, 2 * FILES + 2),
        "preview": (4, FILES + 3),
        "count": (2, FILES + 1),
        "row_changes": (6, 18),
        "compare": (4, 37),
    },
}
"""The most rounds and requests of each call, after the table was opened."""


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", MOST)
def test_a_call_waits_for_the_store_no_more_often_than_it_must(tables, register, name, call):
    counted, root = tables
    register(counted)
    table = open_table(f"{root}/{name}")
    counted.requests.clear()
    counted.rounds = 0

    CALLS[call](table)

    cost = counted.rounds, len(counted.requests)
    assert cost[0] <= MOST[name][call][0], cost
    assert cost[1] <= MOST[name][call][1], cost
