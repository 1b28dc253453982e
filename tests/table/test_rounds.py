"""How often calls wait for an object store: rounds of requests that depend on each other, and how many requests."""

import io
import random
from functools import partial
from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import find_tables, open_table
from tests.support import filesystems
from tests.support.delta.table_builder import DeltaTable
from tests.support.hudi.table_builder import HudiTable
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable

DATA = Path(__file__).parents[1] / "data"
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


def hudi(filesystem, root):
    table = HudiTable(filesystem, root)
    for number in range(FILES):
        table.insert(rows(number))


def counting_in_rounds():
    """Return a file system class that counts rounds, and lists when files were written, as object stores do."""

    class Counted(filesystems.counting(in_rounds=True)):
        def ls(self, path, detail=True, **_):  # noqa: FBT002 - fsspec's
            found = super().ls(path, detail=detail)
            return [{**item, "mtime": 1_700_000_000} for item in found] if detail else found

    return Counted


@pytest.fixture(scope="module")
def tables():
    """A store with a large table of each format: its class, and their paths."""
    counted = counting_in_rounds()
    filesystem, root = fsspec.filesystem("memory"), "/rounds"
    for write in (delta, paimon, iceberg, hudi):
        write(filesystem, f"{root}/{write.__name__}")
    yield counted, f"counted://{root}"
    filesystem.rm(root, recursive=True)


def explored(table):
    """Draw each tab of the explorer."""
    from snapshot_explorer.jupyter.explorer import Explorer

    explorer = Explorer(table, name="t", variables={}).wait()
    try:
        for tab in ("commit", "manifests", "compare", "data", "files", "health"):
            explorer.state.tab = tab
            explorer.wait()
    finally:
        explorer.close()


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
    "diff_rows": lambda table: table.diff_rows("latest~2", "latest").to_arrow(),
    "blame": lambda table: table.blame("id = 5", columns=["id"]),
    "bisect": lambda table: table.bisect(f"count(*) > {5 * ROWS}"),
    "profile_over": lambda table: table.profile_over(),
    "lifetimes": lambda table: table.lifetimes(),
    "readability": lambda table: table.verify().versions,
    "health": lambda table: table.health(metadata_only=True),
    "what went wrong": lambda table: table.health(),
    "retention": lambda table: table.retention(keep_last=2),
    "find_tables": lambda table: find_tables(table.path.rpartition("/")[0]),
    "explorer": explored,
    "sql": lambda table: table.sql("select max(id) from this where id < 1000"),
}
MOST = {
    "delta": {
        "open": (3, 10),
        "update": (1, 1),
        "history": (1, 8),
        "files": (0, 0),
        "rows": (2, 2 * FILES),
        "one column": (2, 2 * FILES),
        "condition": (2, FILES + 1),
        "preview": (2, 2),
        "count": (0, 0),
        "row_changes": (5, 5),
        "compare": (3, 5),
        "diff_rows": (5, 7),
        "blame": (5, 22),
        "bisect": (6, 22),
        "profile_over": (3, 10),
        "lifetimes": (2, 9),
        "readability": (4, 11),
        "health": (1, 1),
        "what went wrong": (8, 15),
        "retention": (3, 10),
        "find_tables": (7, 50),
        "explorer": (6, 22),
        "sql": (3, 8),
    },
    "paimon": {
        "open": (2, 7),
        "update": (1, 4),
        "history": (3, 24),
        "files": (2, FILES + 4),
        "rows": (4, 3 * FILES + 4),
        "one column": (4, 3 * FILES + 4),
        "condition": (4, 2 * FILES + 5),
        "preview": (4, FILES + 6),
        "count": (2, FILES + 4),
        "row_changes": (8, 16),
        "compare": (6, 34),
        "diff_rows": (7, 33),
        "blame": (11, 62),
        "bisect": (12, 55),
        "profile_over": (7, 39),
        "lifetimes": (4, 33),
        "readability": (7, 49),
        "health": (5, 13),
        "what went wrong": (12, 71),
        "retention": (6, 43),
        "find_tables": (7, 50),
        "explorer": (17, 84),
        "sql": (5, 20),
    },
    "iceberg": {
        "open": (3, 11),
        "update": (1, 7),
        "history": (1, 7),
        "files": (1, FILES),
        "rows": (3, 3 * FILES),
        "one column": (3, 3 * FILES),
        "condition": (3, 2 * FILES + 1),
        "preview": (3, FILES + 2),
        "count": (1, FILES),
        "row_changes": (5, 17),
        "compare": (3, 30),
        "diff_rows": (5, 32),
        "blame": (7, 45),
        "bisect": (7, 45),
        "profile_over": (5, 33),
        "lifetimes": (4, 26),
        "readability": (7, 42),
        "health": (2, 13),
        "what went wrong": (11, 63),
        "retention": (5, 33),
        "find_tables": (7, 50),
        "explorer": (10, 58),
        "sql": (4, 20),
    },
    "hudi": {
        "open": (3, 7),
        "update": (1, 3),
        "history": (1, 9),
        "files": (1, 6),
        "rows": (3, 18),
        "one column": (3, 18),
        "condition": (3, 13),
        "preview": (3, 8),
        "count": (1, 6),
        "row_changes": (5, 14),
        "compare": (4, 15),
        "diff_rows": (6, 19),
        "blame": (5, 27),
        "bisect": (6, 27),
        "profile_over": (3, 15),
        "lifetimes": (2, 12),
        "readability": (4, 16),
        "health": (2, 9),
        "what went wrong": (8, 28),
        "retention": (3, 13),
        "find_tables": (7, 50),
        "explorer": (5, 24),
        "sql": (4, 16),
    },
}
"""The most rounds and requests of each call, after the table was opened."""


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", MOST)
def test_a_call_waits_for_the_store_no_more_often_than_it_must(tables, register, name, call):
    counted, root = tables
    register(counted)
    most_rounds, most_requests = MOST[name][call]
    costs = []
    while len(costs) < 3 and (not costs or min(costs)[0] > most_rounds):  # threads may also ask one after another
        table = open_table(f"{root}/{name}")
        counted.requests.clear()
        counted.rounds = 0
        CALLS[call](table)
        costs.append((counted.rounds, len(counted.requests)))

    rounds, requests = min(costs)
    assert rounds <= most_rounds, costs
    assert requests <= most_requests, costs


KINDS = {
    "delta/types": 3,
    "delta/checkpoint_parts": 3,
    "delta/checkpoint_v2_json": 3,
    "delta/checkpoint_v2_parquet": 3,
    "delta/compacted_log": 3,
    "delta/cleaned_log": 3,
    "iceberg/v1_upgraded_to_v3": 3,
    "iceberg/v2_equality_deletes": 3,
    "iceberg/v3_dv": 3,
    "iceberg/v3_dv without version-hint.text": 4,
    "iceberg/registered_again": 4,
    "hudi/v9_mor_basic": 3,
    "hudi/v6_cow_archived": 3,
    "hudi/v6_mor_compaction_pending": 3,
    "hudi/only_backup_properties": 3,
    "hudi/v9_cow_archived": 4,  # its archive is a tree: the list of its files, their manifest and the files
    "paimon/aggregates": 2,
    "paimon/dv_append": 2,
    "paimon/blobs": 2,
    "paimon/data_evolution": 2,
    "paimon/empty": 4,
    "paimon/expired": 2,
    "paimon/fallback_branch": 2,
    "paimon/primary_branch": 2,
}
"""The most rounds in which a kind of table opens."""
OPEN, HISTORY, PREVIEW = 4, 5, 7
"""The most rounds of any kind of table: to open it, and then to show 20 commits, or 200 rows."""
HINTS = {
    "delta/checkpoint_parts": ("_delta_log/_last_checkpoint", (b'{"version":1,"size":1}', b'{"version":999,"size":1}')),
    "paimon/aggregates": ("snapshot/LATEST", (b"1", b"999")),
}


def fewest_rounds(counted, root, most, call=lambda table: None):
    """Return the rounds of a call on a table that is opened for it; tries again where there are more than `most`."""
    costs = []
    while len(costs) < 3 and (not costs or min(costs) > most):  # threads may also ask one after another
        counted.rounds = 0
        call(open_table(f"counted://{root}"))
        costs.append(counted.rounds)
    return min(costs)


@pytest.mark.parametrize("name", KINDS)
def test_a_table_opens_and_is_shown_in_a_few_rounds_also_without_a_right_hint(register, memory_root, name):
    counted = register(counting_in_rounds())
    filesystem, root = memory_root
    folder, _, left_out = name.partition(" without ")
    for file in (path for path in (DATA / folder).rglob("*") if path.is_file() and path.name != left_out):
        filesystem.pipe_file(f"{root}/{file.relative_to(DATA / folder).as_posix()}", file.read_bytes())

    rounds = partial(fewest_rounds, counted, root)
    assert rounds(KINDS[name]) <= KINDS[name] <= OPEN
    assert rounds(HISTORY, lambda table: table.history(limit=20)) <= HISTORY
    assert rounds(PREVIEW, lambda table: table.current.to_arrow(limit=200)) <= PREVIEW
    path, hints = HINTS.get(name, ("", ()))
    for hint in hints:
        filesystem.pipe_file(f"{root}/{path}", hint)
        assert rounds(OPEN) <= OPEN


def test_a_hudi_table_with_a_folder_for_each_day_is_shown_in_as_few_rounds(register, memory_root):
    counted = register(counting_in_rounds())
    table = HudiTable(*memory_root)
    for day in ("2026/11/24", "2026/11/25", "2026/12/01"):
        table.number += 1
        name, content = table.base(rows(table.number), table.number, f"data-{table.number}")
        table.write(f"{day}/{name}", content)
        stat = table.stat(f"data-{table.number}", f"{day}/{name}", content, rows(table.number))
        table.commit([stat], partition=day)

    rounds = partial(fewest_rounds, counted, memory_root[1])
    assert rounds(HISTORY, lambda table: table.history(limit=20)) <= HISTORY
    assert rounds(PREVIEW, lambda table: table.current.to_arrow(limit=200)) <= PREVIEW


def test_an_iceberg_table_is_shown_from_its_metadata_file_in_two_rounds(tables, register):
    counted, root = tables
    register(counted)
    counted.requests.clear()
    counted.rounds = 0

    table = open_table(f"{root}/iceberg/metadata/v{FILES}.metadata.json")

    assert len(table.history(limit=20)) == FILES
    assert counted.rounds == len(counted.requests) == 2  # the metadata file and the newest manifest list
    assert table.current.to_arrow(limit=200).num_rows == 200
    assert counted.rounds <= 5


def one_file_of(name, memory_root, rows):
    """Write a table of a format with these rows in one file of several row groups; return its URL."""
    filesystem, root = memory_root
    if name == "delta":
        DeltaTable(filesystem, root).append(rows)
    elif name == "paimon":
        PaimonTable(filesystem, root).commit(rows)
    elif name == "iceberg":
        IcebergTable(filesystem, root, location=f"counted://{root}").commit(rows)
    else:
        HudiTable(filesystem, root).insert(rows)
    return f"counted://{root}"


@pytest.mark.parametrize("name", ["delta", "paimon", "iceberg", "hudi"])
def test_sql_fetches_only_the_columns_and_row_groups_that_it_needs(counted, memory_root, monkeypatch, name):
    write = partial(pq.write_table, row_group_size=ROWS, use_dictionary=False)
    monkeypatch.setattr(pq, "write_table", write)
    table = open_table(one_file_of(name, memory_root, [(place, TEXTS[place % ROWS]) for place in range(6 * ROWS)]))
    file = table.current.files()["path"][0].as_py()
    content = memory_root[0].cat_file(f"{memory_root[1]}/{file}")
    group = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0)
    chunks = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    most = {column: chunk.total_compressed_size for column, chunk in chunks.items()}

    def fetched(column):
        counted.requests.clear()
        version = table.current.version
        found = table.sql(f"select max({column}) from this version as of {version} where id < {ROWS}").iloc[0, 0]
        return found, sum(one.bytes for one in counted.requests if one.path.endswith(".parquet"))

    footer = 2 * 131_072  # the end of the file, and what lies between two columns
    answer, size = fetched("name")
    assert answer == max(TEXTS)
    assert size < most["name"] + most["id"] + footer < len(content) / 4
    answer, size = fetched("id")
    assert answer == ROWS - 1
    assert size < most["id"] + footer < most["name"]
