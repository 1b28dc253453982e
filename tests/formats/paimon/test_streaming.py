"""Manifests are read and decoded some at a time: the same files are live and skipped as of all at once."""

import io
import uuid
import weakref
from dataclasses import replace

import fastavro
import fsspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer import open_table
from snapshot_explorer.history import history_of
from snapshot_explorer.storage import Storage
from tests.inner.engines import parse_condition
from tests.inner.formats import skipped as skipped_files
from tests.inner.paimon import contents, read_state
from tests.support.paimon.avro_schemas import MANIFEST_LIST
from tests.support.paimon.splits import entry, files_of, int_row, plan, schema
from tests.support.paimon.table_builder import PaimonTable, avro

KEYED = schema([("id", "INT NOT NULL"), ("v", "INT")], keys=["id"])


@pytest.fixture
def in_small_parts(monkeypatch):
    """Read and decode every manifest for itself, those with DELETE entries first."""
    monkeypatch.setattr(contents, "_READ_BYTES", 1)
    monkeypatch.setattr(contents, "_DECODED_BYTES", 1)


def written(steps):
    """Return a table: each step adds a file, removes some of those before it, and then merges manifests or not."""
    table = PaimonTable(fsspec.filesystem("memory"), f"/streaming/{uuid.uuid4()}", statistics=True, by_name=True)
    for number, (removed, is_merged, name) in enumerate(steps):
        table.commit([(number * 10 + row, name) for row in range(3)], removed=list(table.live)[:removed])
        if is_merged:
            table.merge_manifests()
    return table


def version_of(table):
    opened = open_table(f"memory:/{table.root}")
    return history_of(opened).table_format.version(opened.current.version)


def answers(table, where):
    version = version_of(table)
    condition = parse_condition(where, version.arrow_schema)
    plan = version.plan(condition)
    skipped = sorted(map(repr, plan.skipped().to_pylist()))
    return [(split.files, split.rows) for split in plan.splits], skipped, version.files(condition).to_pylist()


@settings(deadline=None, max_examples=40)
@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.sampled_from("abc")), min_size=1, max_size=12),
    low=st.integers(-5, 130),
    name=st.sampled_from("abcd"),
)
def test_a_plan_is_the_same_whatever_is_read_at_a_time(steps, low, name):
    table = written(steps)

    for where in (f"id > {low}", f"name = '{name}'", f"id < {low} or name = '{name}'"):
        whole = answers(table, where)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(contents, "_READ_BYTES", 1)
            patch.setattr(contents, "_DECODED_BYTES", 1)
            patch.setattr(skipped_files, "_MANY", 2)
            assert answers(table, where) == whole


HISTORY = [(0, False, "a"), (0, False, "b"), (1, False, "a"), (0, True, "c"), (0, False, "a"), (2, False, "b")]
LIVE = ["data-4.parquet", "data-5.parquet", "data-6.parquet"]


@pytest.mark.usefixtures("in_small_parts")
def test_the_files_of_few_manifests_are_in_memory_at_a_time_each_read_once(monkeypatch):
    table, requested, earlier, alive = written(HISTORY), [], [], []
    read_many = Storage.read_many

    def read(storage, paths, **options):
        requested.extend(paths)
        return read_many(storage, paths, **options)

    def select(entries):
        alive.append(sum(part() is not None for part in earlier))
        earlier.append(weakref.ref(entries))
        return entries.slice(0, 0)

    monkeypatch.setattr(Storage, "read_many", read)
    version = version_of(table)
    requested.clear()
    read_state(version._storage, version._snapshot, begin=lambda: select)

    assert len(alive) == 3
    assert max(alive) <= 1  # the variable of the loop
    manifests = [path for path in requested if "manifest-list" not in path]
    assert len(manifests) == len(set(manifests)) == 3


@pytest.mark.usefixtures("in_small_parts")
def test_files_are_removed_by_entries_that_the_list_does_not_count():
    table = written(HISTORY)
    expected = answers(table, "id > 40 or name = 'c'")
    for name in ("manifest-list-6-0", "manifest-list-6-1"):
        path = f"{table.root}/manifest/{name}"
        rows = list(fastavro.reader(io.BytesIO(table.filesystem.cat_file(path))))
        for row in rows:
            total = row["_NUM_ADDED_FILES"] + row["_NUM_DELETED_FILES"]
            row |= {"_NUM_ADDED_FILES": total, "_NUM_DELETED_FILES": 0}
        table.filesystem.pipe_file(path, avro(MANIFEST_LIST, rows))

    found = answers(table, "id > 40 or name = 'c'")

    assert found == expected
    assert [row["path"].rpartition("/")[2] for row in found[2]] == LIVE


def test_a_file_of_a_primary_key_table_is_skipped_by_other_columns_only_if_nothing_is_merged_with_it():
    files = [
        entry(name, min_key=int_row(low), max_key=int_row(high), level=level)
        for name, low, high, level in (("a", 1, 5, 1), ("b", 4, 9, 2), ("c", 20, 30, 1), ("d", 40, 50, 2))
    ]
    chosen = files_of(KEYED, [item | {"file_name": f"{item['file_name']}.parquet"} for item in files])
    reasons = pa.array(["statistics of v", None, "statistics of v", None])

    splits, skipped = plan(replace(chosen, entries=chosen.entries.append_column("ruled_out", reasons)))

    assert [split.files for split in splits] == [("bucket-0/a.parquet", "bucket-0/b.parquet"), ("bucket-0/d.parquet",)]
    assert skipped.tolist() == [False, False, True, False]
