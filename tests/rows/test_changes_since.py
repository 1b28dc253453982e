"""The stream of row changes: its rows, its position, and what it says when the history does not continue."""

import json
import shutil
import time
from collections import Counter
from pathlib import Path
from threading import Timer
from uuid import uuid4

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer import open_table
from snapshot_explorer.analysis.changes import cursor as cursors
from snapshot_explorer.errors import (
    InvalidArgumentError,
    PositionError,
    SnapshotNotFoundError,
    StorageError,
    UnsupportedFeatureError,
)
from tests.support.delta.table_builder import DeltaTable, metadata, protocol, remove
from tests.support.hudi.table_builder import HudiTable, completion, text
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable
from tests.support.row_histories import KINDS, STEPS, play
from tests.support.row_relations import keys_of
from tests.support.scenarios import SCENARIOS, played

TABLES = sorted(
    path
    for name in ("delta", "hudi", "iceberg", "paimon")
    for path in (Path(__file__).parents[1] / "data" / name).iterdir()
    if path.is_dir()
)
ADDED = ("insert", "update_postimage")


def rows_of(batches):
    return [row for batch in batches for row in batch.to_pylist()]


def versions_of(batches):
    return sorted({row["_commit_version"] for row in rows_of(batches)})


def replayed(rows, state=()):
    """Return the rows after changes, as a multiset; each removed row must be there."""
    state = Counter(state)
    for row in rows:
        own = repr({name: value for name, value in row.items() if not name.startswith("_c")})
        state[own] += 1 if row["_change_type"] in ADDED else -1
    assert min(state.values(), default=0) >= 0
    return +state


def loaded(table, version):
    return Counter(map(repr, table.at(version).to_arrow().to_pylist()))


@pytest.fixture
def delta(memory_root):
    """Return a Delta table of one row per version: 0 to 3."""
    table = DeltaTable(*memory_root, first=None)
    table.commit(protocol(), metadata(), table.data("data-0.parquet", [(0, "a")]))
    for number in (1, 2, 3):
        table.append([(number, "b")], name=f"data-{number}.parquet")
    return table


@pytest.fixture
def paimon(memory_root):
    """Return a Paimon table of one row per version: 1 to 5; and its path."""
    filesystem, root = memory_root
    table = PaimonTable(filesystem, f"{root}/paimon")
    for number in range(1, 6):
        table.commit([(number, "a")])
    return table, f"memory://{root}/paimon"


@given(
    kind=st.sampled_from(sorted(KINDS)),
    steps=STEPS,
    bounds=st.lists(st.integers(1, 3), min_size=1),
    by_rows=st.booleans(),
)
@settings(max_examples=60)
def test_any_cuts_give_the_same_stream_which_replays_every_version(kind, steps, bounds, by_rows):
    model = play(kind, fsspec.filesystem("memory"), f"/{uuid4()}", steps)
    table = open_table(model.url)
    whole = rows_of(table.changes_since(key="id"))

    parts, position = [], None
    for bound in bounds * 20:
        cursor = open_table(model.url).changes_since(
            position, key="id", **{"max_rows" if by_rows else "max_versions": bound}
        )
        parts += rows_of(cursor)
        assert json.loads(cursor.position)["version"] == cursor.version
        if cursor.position == position:
            break
        position = cursor.position
    if cursor.version == model.versions[-1]:
        assert parts == whole
    else:
        assert parts == whole[: len(parts)]
    for version, rows in zip(model.versions, model.rows, strict=True):
        expected = Counter(repr({"id": key, "name": name}) for key, name in rows.values())
        assert replayed(row for row in whole if row["_commit_version"] <= version) == expected


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_changes_of_tables_of_real_engines_are_the_rows_that_differ(path):
    try:
        table = open_table(str(path))
        batches = list(table.changes_since())
    except (PositionError, UnsupportedFeatureError, InvalidArgumentError):
        return  # refused by name, as `diff_rows` refuses the versions
    schema, state = None, Counter()
    for version in sorted({batch["_commit_version"][0].as_py() for batch in batches}):
        rows = table.at(version).to_arrow()
        before, state = state, keys_of(rows.columns)
        changes = pa.Table.from_batches(
            [batch for batch in batches if batch["_commit_version"][0].as_py() == version]
        ).select([*rows.column_names, "_change_type"])
        is_added = pc.is_in(changes["_change_type"], pa.array(ADDED))
        gone, new = (keys_of(changes.filter(mask).columns[:-1]) for mask in (pc.invert(is_added), is_added))
        if schema in (None, rows.schema):
            assert not gone - before
            assert before - gone + new == state, f"version {version}"
        schema = rows.schema


def test_updates_are_pairs_with_a_key(delta):
    delta.commit(remove("data-1.parquet"), delta.data("data-4.parquet", [(1, "B")]))
    table = open_table(delta.url)

    (batch,) = table.changes_since(3, key="id")

    assert batch.schema.names == ["id", "name", "_change_type", "_commit_version", "_commit_timestamp"]
    assert batch.schema.field("_commit_timestamp").type == pa.timestamp("us", "UTC")
    assert [(row["name"], row["_change_type"]) for row in batch.to_pylist()] == [
        ("b", "update_preimage"),
        ("B", "update_postimage"),
    ]
    assert batch["_commit_timestamp"][0].as_py() == table.at(4).commit.committed_at
    assert {row["_change_type"] for row in rows_of(table.changes_since(3))} == {"delete", "insert"}


def test_columns_and_a_condition_choose_rows_of_the_first_version_too(delta):
    changes = rows_of(open_table(delta.url).changes_since(columns=["name"], where="id < 2"))

    assert [(row["name"], row["_commit_version"]) for row in changes] == [("a", 0), ("b", 1)]
    assert "id" not in changes[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": "name"}, "Give a list of names"),
        ({"columns": ["nope"]}, "nope"),
        ({"key": ["nope"]}, "nope"),
        ({"where": "nope = 1"}, "nope"),
        ({"where": "id >"}, "SQL"),
    ],
)
@pytest.mark.parametrize("start", [None, 1])
def test_arguments_that_do_not_fit_are_refused_from_the_beginning_and_later(delta, start, arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        list(open_table(delta.url).changes_since(start, **arguments))


@pytest.mark.parametrize("start", [1, "1", "latest~2", "@2026-01-01T00:01:30Z"])
def test_a_ref_is_the_version_after_which_changes_begin(scenario_table, start):
    assert versions_of(scenario_table.changes_since(start))[0] == scenario_table.at(start).version + 1


@pytest.fixture
def scenario_table(memory_root):
    return open_table(played(SCENARIOS[1](*memory_root)).url)


def test_a_large_commit_is_several_batches_and_the_position_moves_with_the_last(delta, monkeypatch):
    monkeypatch.setattr("snapshot_explorer.analysis.changes.commit_changes._BATCH_ROWS", 2)
    delta.append([(number, "x") for number in range(5)], name="data-4.parquet")
    cursor = open_table(delta.url).changes_since(3)

    seen = [(batch.num_rows, cursor.version) for batch in cursor]

    assert seen == [(2, 3), (2, 3), (1, 4)]


def test_a_table_without_versions_begins_with_its_first(memory_root):
    table = PaimonTable(*memory_root)
    table.write("schema/placeholder", b"")
    cursor = open_table(f"memory://{memory_root[1]}").changes_since()
    assert list(cursor) == []
    assert cursor.version is None

    table.commit([(1, "a")])

    assert versions_of(open_table(f"memory://{memory_root[1]}").changes_since(cursor.position)) == [1]


def test_one_cursor_goes_on_with_new_commits(delta):
    cursor = open_table(delta.url).changes_since("latest")
    assert list(cursor) == []

    delta.append([(9, "z")], name="data-9.parquet")

    assert [row["id"] for row in rows_of(cursor)] == [9]
    assert list(cursor) == []


def test_a_cursor_waits_for_a_commit_as_long_as_it_is_told(delta, monkeypatch):
    monkeypatch.setattr(cursors, "_POLL_SECONDS", 0.02)
    table = open_table(delta.url)
    cursor = table.changes_since("latest", wait=300, max_versions=1)
    writer = Timer(0.05, lambda: delta.append([(9, "z")], name="data-9.parquet"))
    writer.start()

    began = time.monotonic()
    found = rows_of(cursor)

    writer.join()
    assert [row["id"] for row in found] == [9]
    assert list(table.changes_since("latest", wait=0.05)) == []
    assert time.monotonic() - began < 100


# What the position says.


def test_a_position_has_neither_the_path_nor_an_option(delta):
    cursor = open_table(delta.url).changes_since()
    list(cursor)

    assert json.loads(cursor.position).keys() == {
        "layout",
        "format",
        "branch",
        "version",
        "fingerprint",
        "pending",
        "read",
    }
    assert delta.root.strip("/") not in cursor.position


def test_a_position_is_one_of_a_copy_elsewhere_too(delta, tmp_path):
    cursor = open_table(delta.url).changes_since(max_versions=2)
    list(cursor)
    delta.filesystem.get(delta.root, str(tmp_path / "copy"), recursive=True)

    assert versions_of(open_table(str(tmp_path / "copy")).changes_since(cursor.position)) == [2, 3]


@pytest.mark.parametrize(
    "position",
    [
        "{",
        "{}",
        '{"layout": 2}',
        '{"layout": 1, "format": "delta", "branch": "main", "version": "1", "fingerprint": "", "pending": []}',
        '{"layout": 1, "format": "delta", "branch": "main", "version": -1, "fingerprint": "", "pending": []}',
        '{"layout": 1, "format": "delta", "branch": "main", "version": true, "fingerprint": "", "pending": []}',
        '{"layout": 1, "format": "delta", "branch": 3, "version": 1, "fingerprint": "", "pending": []}',
        '{"layout": 1, "format": "delta", "branch": "main", "version": 1, "fingerprint": "", "pending": [null]}',
        '{"layout": 1, "format": "delta", "branch": "main", "version": 1, "fingerprint": "", "pending": [], "read": 1}',
        '{"layout": 1, "pending": [' + "[" * 70_000,
        "[" * 10 + "{",
    ],
)
def test_a_text_that_is_no_position_is_refused(delta, position):
    with pytest.raises(InvalidArgumentError, match="not a (position of changes|valid ref)"):
        open_table(delta.url).changes_since(position)


def test_a_position_of_another_format_is_refused(delta, paimon):
    cursor = open_table(paimon[1]).changes_since("latest")

    with pytest.raises(
        InvalidArgumentError, match=r"is of branch main of a paimon table, and this is branch main of a delta table\."
    ):
        open_table(delta.url).changes_since(cursor.position)


@pytest.mark.parametrize(
    "bounds", [{"max_versions": 0}, {"max_rows": True}, {"wait": -1}, {"wait": float("nan")}, {"max_rows": 1.5}]
)
def test_an_invalid_bound_is_refused(delta, bounds):
    with pytest.raises(InvalidArgumentError, match=f"{next(iter(bounds))} must be"):
        open_table(delta.url).changes_since(**bounds)


# Where the history does not go on.


def saved(url, start):
    return open_table(url).changes_since(start).position


def refused(url, position, match):
    cursor = open_table(url).changes_since(position)
    with pytest.raises(PositionError, match=match) as caught:
        list(cursor)
    assert cursor.position == position
    return [dict(hint.arguments) for hint in caught.value.message.hints]


def test_a_rollback_below_the_position_is_named(paimon):
    table, url = paimon
    position = saved(url, 5)

    table.rollback(3)

    hints = refused(
        url, position, "Version 5, up to which changes were read, does not exist any more: the table was rol"
    )
    assert hints[0] == {"position": 3}


def test_a_rollback_behind_the_position_changes_nothing(paimon):
    table, url = paimon
    position = saved(url, 3)
    table.rollback(3)
    table.commit([(7, "x")])

    assert [row["id"] for row in rows_of(open_table(url).changes_since(position))] == [7]


def test_a_version_that_was_rolled_back_and_committed_again_is_named(paimon):
    table, url = paimon
    position = saved(url, 4)
    table.rollback(3)
    for number in (4, 5):
        table.commit([(number, "x")], commitUser="another")

    refused(url, position, "Version 4 is not the one up to which changes were read: it has another commit")


def test_a_rollback_in_one_process_is_named_too(memory_root):
    table = IcebergTable(*memory_root)
    for number in range(1, 5):
        table.commit([(number, "a")])
    cursor = open_table(f"memory://{memory_root[1]}").changes_since()
    list(cursor)
    snapshot_id = table.metadata["snapshots"][1]["snapshot-id"]
    table.rollback(snapshot_id, table.metadata["last-updated-ms"] + 1)
    table.commit([(9, "b")])

    with pytest.raises(PositionError, match="Version 4.* is not in the history any more: it was rolled back"):
        list(cursor)


def test_expired_versions_are_named(paimon):
    table, url = paimon
    position = saved(url, 2)
    table.expire(4)

    hints = refused(url, position, "Version 2, up to which changes were read, has expired")
    assert hints == [{"position": 4}, {"ref": 5}, {"position": 5}]
    assert versions_of(open_table(url).changes_since(4)) == [5]


def test_without_a_position_the_stream_begins_after_the_last_gap(paimon):
    table, url = paimon
    table.tag("kept", 1)
    table.expire(4)

    changes = rows_of(open_table(url).changes_since())

    assert [(row["_commit_version"], row["id"]) for row in changes] == [(4, 1), (4, 2), (4, 3), (4, 4), (5, 5)]


def test_versions_that_are_missing_between_are_named(paimon):
    table, url = paimon
    table.tag("kept", 1)
    position = saved(url, 1)
    table.expire(4)

    hints = refused(url, position, r"Versions 2 and 3 are missing\..* has all changes from 1 to 4")
    assert hints[0] == {"a": 1, "b": 4}


def test_the_log_of_delta_that_was_cleaned_up_is_named(delta):
    position = saved(delta.url, 1)
    delta.checkpoint(2)
    delta.clean(2)

    hints = refused(delta.url, position, "Version 1, up to which changes were read, has expired")
    assert hints[0] == {"position": 2}


def test_a_version_of_delta_whose_commit_is_gone_is_not_called_another_one(delta):
    position = saved(delta.url, 2)
    delta.checkpoint(2)
    delta.clean(3)

    refused(
        delta.url, position, "The commit of version 2, up to which changes were read, is gone: it is unknown whether"
    )
    assert versions_of(open_table(delta.url).changes_since(saved(delta.url, 2))) == [3]


def test_a_table_that_was_created_again_is_named(delta, memory_root):
    position = saved(delta.url, 2)
    delta.filesystem.rm(delta.root, recursive=True)
    again = DeltaTable(*memory_root, first=None)
    again.commit(protocol(), metadata(), again.data("data-0.parquet", [(0, "a")]))
    refused(delta.url, position, "Version 2, up to which changes were read, does not exist any more")

    for number in (1, 2, 3):
        again.append([(number, "c")], name=f"other-{number}.parquet")

    refused(delta.url, position, r"it has another commit\. The table was created again, rolled back")


def test_a_version_that_was_rewritten_is_named(delta):
    position = saved(delta.url, 3)
    delta.append([(5, "other")], name="other.parquet")
    later = saved(delta.url, 4)
    delta.commit(delta.data("third.parquet", [(6, "third")]), version=4)

    refused(delta.url, later, "Version 4 is not the one up to which changes were read")
    assert [row["id"] for row in rows_of(open_table(delta.url).changes_since(position))] == [6]


def test_files_that_were_vacuumed_are_named(delta):
    delta.commit(remove("data-1.parquet"))
    delta.remove_file("data-1.parquet")
    position = saved(delta.url, 3)

    hints = refused(delta.url, position, r"The changes of version 4 cannot be read: .*data-1\.parquet")
    assert hints[-3] == {"position": 4}
    assert rows_of(open_table(delta.url).changes_since(4)) == []


def test_a_start_that_cannot_be_read_is_refused(paimon):
    table, url = paimon
    table.expire(4)

    with pytest.raises(SnapshotNotFoundError, match="2"):
        open_table(url).changes_since(2)


def late(memory_root, *, operation="INSERT"):
    """Return a Hudi table whose instant 3 is running while 4 is complete, and a function that completes it."""
    table = HudiTable(*memory_root)
    for number in (1, 2):
        table.insert([(number, "a")])
    table.write(f".hoodie/timeline/{text(3)}.commit.requested", "")
    table.write(f".hoodie/timeline/{text(3)}.commit.inflight", "")
    table.number = 3
    table.insert([(4, "a")])

    def complete(rows=((3, "late"),), replaced=()):
        table.number = 2
        table.insert(list(rows), replaced=replaced, operation=operation)
        table.filesystem.mv(
            f"{table.root}/.hoodie/timeline/{text(3)}_{completion(3)}.commit",
            f"{table.root}/.hoodie/timeline/{text(3)}_{completion(9)}.commit",
        )

    return f"memory://{memory_root[1]}", complete


def test_a_commit_of_hudi_that_completes_late_is_named(memory_root):
    url, complete = late(memory_root)
    cursor = open_table(url).changes_since()
    assert versions_of(cursor) == [1, 2, 4]
    assert json.loads(cursor.position)["pending"] == [3]
    position = cursor.position
    assert rows_of(open_table(url).changes_since(position)) == []

    complete()

    hints = refused(
        url, position, r"Version 3 was completed after version 4, .*Its changes were not read\..* changes of 3"
    )
    assert hints[0] == {"a": 2, "b": 3}
    with pytest.raises(PositionError, match="Version 3 was completed after version 4"):
        list(cursor)
    assert rows_of(open_table(url).changes_since(4)) == []


def test_a_commit_of_hudi_that_began_unseen_and_completes_late_is_named(memory_root):
    table = HudiTable(*memory_root)
    for number in (1, 2, 4):
        table.number = number - 1
        table.insert([(number, "a")])
    url = f"memory://{memory_root[1]}"
    cursor = open_table(url).changes_since()
    assert versions_of(cursor) == [1, 2, 4]
    assert json.loads(cursor.position)["pending"] == []

    table.number = 2
    table.insert([(3, "late")])

    for _ in range(2):
        refused(url, cursor.position, r"Version 3 was completed after version 4, .*Its changes were not read\.")
    with pytest.raises(PositionError, match="Version 3 was completed after version 4"):
        list(cursor)
    assert versions_of(open_table(url).changes_since()) == [1, 2, 3, 4]


def test_a_version_before_the_first_one_that_was_read_is_not_late(memory_root):
    table = HudiTable(*memory_root)
    for number in (2, 3):
        table.number = number - 1
        table.insert([(number, "a")])
    url = f"memory://{memory_root[1]}"
    position = saved(url, 3)

    table.number = 0
    table.insert([(1, "restored")])

    assert rows_of(open_table(url).changes_since(position)) == []


def test_a_clustering_of_hudi_that_completes_late_changed_nothing(memory_root):
    url, complete = late(memory_root, operation="CLUSTER")
    position = saved(url, 4)

    complete([(1, "a")], ["data-1"])

    assert rows_of(open_table(url).changes_since(position)) == []


def test_a_commit_of_hudi_that_completes_while_changes_are_read_is_in_order(memory_root, monkeypatch):
    url, complete = late(memory_root)
    plan_commit, left = cursors.plan_commit, [complete]

    def plan(source, commit, request):
        planned = plan_commit(source, commit, request)
        if commit.version == 4 and left:
            left.pop()()
        return planned

    monkeypatch.setattr(cursors, "plan_commit", plan)

    changes = rows_of(open_table(url).changes_since())

    assert [(row["_commit_version"], row["id"]) for row in changes] == [(1, 1), (2, 2), (3, 3), (4, 4)]


# Faults.


def test_a_fault_leaves_the_position_where_it_was(delta, monkeypatch):
    table = open_table(delta.url)
    cursor = table.changes_since(0)
    next(cursor)
    position = cursor.position

    def fail(*_, **__):
        raise OSError(5, "planted")

    monkeypatch.setattr(type(delta.filesystem), "cat_file", fail)
    monkeypatch.setattr(type(delta.filesystem), "_open", fail)
    with pytest.raises(StorageError):
        next(cursor)
    monkeypatch.undo()

    assert cursor.position == position
    assert versions_of(cursor) == [2, 3]


def test_an_interrupted_iteration_goes_on_where_it_was(delta):
    cursor = open_table(delta.url).changes_since()
    for _ in cursor:
        break

    assert versions_of(cursor) == [1, 2, 3]


def test_a_column_of_the_name_of_a_change_column_is_refused(memory_root):
    table = DeltaTable(*memory_root, fields=[("id", "long"), ("_change_type", "string")])
    table.append([(1, "x")])

    with pytest.raises(InvalidArgumentError, match="has a column '_change_type'"):
        list(open_table(table.url).changes_since())
    assert len(rows_of(open_table(table.url).changes_since(columns=["id"]))) == 1


def test_the_files_of_a_local_table_that_is_gone_are_not_called_a_rollback(tmp_path, delta):
    delta.filesystem.get(delta.root, str(tmp_path / "copy"), recursive=True)
    cursor = open_table(str(tmp_path / "copy")).changes_since("latest")
    shutil.rmtree(tmp_path / "copy")

    with pytest.raises(OSError, match="copy"):
        list(cursor)
