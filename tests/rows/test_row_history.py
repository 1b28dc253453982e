"""The history of rows: each state once, with the versions that have it."""

from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import duckdb
import fsspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError, SnapshotExplorerError
from tests.support.delta.table_builder import DeltaTable, metadata, remove
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.row_histories import KINDS, STEPS, play
from tests.support.row_relations import assert_history_is_every_version
from tests.support.scenarios import SCENARIOS, played

DATA = Path(__file__).parents[1] / "data"
TABLES = sorted(path for kind in ("paimon", "delta", "iceberg", "hudi") for path in (DATA / kind).iterdir())


@pytest.fixture
def memory():
    return fsspec.filesystem("memory")


@pytest.fixture
def delta(memory):
    return DeltaTable(memory, f"/{uuid4()}")


def states(table, *arguments, **options):
    """Return the states of rows as tuples: the columns, then from and to."""
    rows = open_table(table.url).row_history(*arguments, **options).to_arrow().drop_columns(["_from_time", "_to_time"])
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_history_has_the_rows_of_every_version_of_a_table_and_the_changes_between_the_first_and_the_last(path):
    """The changes between neighbors are compared in test_changes_since.py, row by row."""
    try:
        table = open_table(str(path))
        versions = table.versions()
        pairs = [(versions[0], versions[-1]), (versions[-1], versions[0])] if versions else []
        history = assert_history_is_every_version(table, pairs=pairs)
    except SnapshotExplorerError:
        return  # no version can be read, or a column has types whose values cannot be compared
    assert len(history) == len(history.to_arrow())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_the_history_has_the_rows_of_a_model(kind, steps):
    model = play(kind, fsspec.filesystem("memory"), f"/{uuid4()}", steps)

    history = assert_history_is_every_version(open_table(model.url))

    rows = history.to_arrow()
    for version, expected in zip(model.versions, model.rows, strict=True):
        is_there = [
            first <= version and (last is None or version < last)
            for first, last in zip(rows["_from_version"].to_pylist(), rows["_to_version"].to_pylist(), strict=True)
        ]
        live = rows.filter(pa.array(is_there, pa.bool_()))
        assert sorted(zip(live["id"].to_pylist(), live["name"].to_pylist(), strict=True)) == sorted(expected.values())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.format)
def test_a_row_that_a_compaction_rewrites_is_one_state(scenario, memory):
    table = open_table(played(scenario(memory, f"/{uuid4()}")).url)
    numbers = table.versions()

    rows = table.row_history().to_arrow().select(["id", "name", "_from_version", "_to_version"]).to_pylist()

    assert [tuple(row.values()) for row in sorted(rows, key=lambda row: (row["id"], row["_from_version"]))] == [
        (1, "a", numbers[0], numbers[3]),
        (1, "A", numbers[3], None),
        (2, "b", numbers[1], None),
        (3, "c", numbers[1], None),
        (4, "d", numbers[2], None),
    ]


def test_a_row_that_is_deleted_and_inserted_again_later_is_two_states(delta):
    delta.append([(1, "a")], name="one")
    delta.commit(remove("one"))
    delta.append([(1, "a")], name="two")

    assert states(delta) == [(1, "a", 1, 2), (1, "a", 3, None)]


def test_equal_rows_are_counted_and_the_oldest_go_on_where_some_are_rewritten(delta):
    delta.append([(1, "a")], name="one")
    delta.append([(1, "a"), (1, "a")], name="two")
    delta.commit(remove("one"), remove("two"), delta.data("three", [(1, "a"), (1, "a")]))

    assert states(delta) == [(1, "a", 1, None), (1, "a", 2, 3), (1, "a", 2, None)]


def test_equal_rows_that_are_not_rewritten_end_with_their_file(delta):
    delta.append([(1, "a")], name="one")
    delta.append([(1, "a")], name="two")
    delta.commit(remove("one"))

    assert states(delta) == [(1, "a", 1, 3), (1, "a", 2, None)]


def test_values_are_compared_as_they_are_stored(memory):
    table = DeltaTable(memory, f"/{uuid4()}", fields=[("value", "double")])
    table.append([(float("nan"),), (0.0,), (None,)], name="one")
    table.commit(remove("one"), table.data("two", [(float("nan"),), (-0.0,), (None,)]))

    assert [repr(row) for row in states(table)] == [
        "(-0.0, 2, None)",
        "(0.0, 1, 2)",
        "(None, 1, None)",
        "(nan, 1, None)",
    ]


def test_a_new_column_is_no_new_state_until_it_has_a_value(memory):
    fields = [("id", "long"), ("name", "string")]
    table = DeltaTable(memory, f"/{uuid4()}", fields=fields)
    table.append([(1, "a"), (2, "b")], name="one")
    table.fields = [*fields, ("more", "long")]
    table.commit(metadata(table.fields))
    table.commit(remove("one"), table.data("two", [(1, "a", None), (2, "b", 7)]))

    history = open_table(table.url).row_history()

    assert states(table) == [(1, "a", None, 1, None), (2, "b", 7, 3, None), (2, "b", None, 1, 3)]
    assert sum(len(item.split.files) for item in history.plan.splits) == history.plan.files == 2


def test_a_file_is_read_once_for_all_its_deletion_vectors(delta):
    rows = [(number, "a") for number in range(6)]
    vectors = [None, *(delta.vector(range(count)) for count in range(1, 5))]
    delta.commit(delta.data("one", rows))
    for before, after in pairwise(vectors):
        delta.commit(remove("one", vector=before), delta.data("one", rows, vector=after))

    history = open_table(delta.url).row_history()

    assert states(delta) == [
        *((number, "a", 1, number + 2) for number in range(4)),
        (4, "a", 1, None),
        (5, "a", 1, None),
    ]
    assert [item.split.files for item in history.plan.splits] == [("one",)]


def test_a_deletion_vector_that_shrinks_brings_rows_back(delta):
    vector = delta.vector([0])
    delta.commit(delta.data("one", [(1, "a"), (2, "b")]))
    delta.commit(remove("one"), delta.data("one", [(1, "a"), (2, "b")], vector=vector))
    delta.commit(remove("one", vector=vector), delta.data("one", [(1, "a"), (2, "b")]), operation="RESTORE")

    assert states(delta) == [(1, "a", 1, 2), (1, "a", 3, None), (2, "b", 1, None)]


def test_only_files_that_can_have_matching_rows_are_read(delta):
    for number in range(4):
        stats = f'{{"numRecords": 1, "minValues": {{"id": {number}}}, "maxValues": {{"id": {number}}}}}'
        delta.commit(delta.data(f"{number}", [(number, "a")], stats=stats))
    table = open_table(delta.url)

    history = table.row_history("id = 2")
    plan = table.row_history("id = 2", preview=True)

    assert states(delta, "id = 2") == [(2, "a", 3, None)]
    assert history.plan.files == plan.files == 1
    assert "Reads 1 file, 1 row" in str(plan)
    assert "not read: 3 other files" in str(plan)


def test_a_state_is_one_of_the_chosen_columns(delta):
    delta.append([(1, "a")], name="one")
    delta.commit(remove("one"), delta.data("two", [(1, "b")]))

    assert states(delta, columns=["id"]) == [(1, 1, None)]
    assert states(delta, "name = 'b'", columns=["id"]) == [(1, 2, None)]


def test_a_range_of_versions_begins_and_ends_with_its_rows(delta):
    delta.append([(1, "a")], name="one")
    delta.append([(2, "b")], name="two")
    delta.commit(remove("one"))
    delta.commit(remove("two"))

    history = open_table(delta.url).row_history(between="2..3")

    assert states(delta, between="2..3") == [(1, "a", 2, 3), (2, "b", 2, None)]
    assert history.to_arrow()["_from_time"].to_pylist() == [None, None]


def test_times_are_those_of_the_commits(delta):
    delta.append([(1, "a")], name="one")
    delta.commit(remove("one"))

    (row,) = open_table(delta.url).row_history().to_arrow().to_pylist()

    assert (row["_from_time"], row["_to_time"]) == (delta.committed_at(1), delta.committed_at(2))


def test_versions_whose_files_are_gone_are_left_out_and_named(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.append([(1, "a")], name="one")
    table.append([(2, "b")], name="two")
    table.commit(remove("two"), table.data("three", [(2, "b")]))
    table.commit(remove("one"))
    (tmp_path / "two").unlink()

    history = open_table(table.url).row_history()

    assert history.plan.versions == (0, 1, 3, 4)
    assert history.plan.notes[0].startswith("Version 2 cannot be read: a row that was there before and after")
    assert history.plan.notes[1:] == (
        "Version 2 cannot be read: data files are missing; table.verify() lists the versions that can be loaded.",
    )
    assert states(table) == [(1, "a", 1, 4), (2, "b", 3, None)]
    by_id = {row["id"]: row for row in history.to_arrow().to_pylist()}
    assert by_id[2]["_from_time"] is None
    assert by_id[1]["_to_time"] == table.committed_at(4)


def test_a_file_that_cannot_be_decoded_leaves_its_versions_out(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.append([(1, "a")], name="one")
    table.append([(2, "b")], name="two")
    table.commit(remove("two"))
    content = (tmp_path / "two").read_bytes()
    (tmp_path / "two").write_bytes(b"PAR1" + bytes(len(content) - 8) + b"PAR1")

    history = open_table(table.url).row_history()

    assert history.plan.versions == (0, 1, 3)
    assert "two" in history.plan.notes[-1]
    assert states(table) == [(1, "a", 1, None)]


def test_a_table_without_a_readable_version_is_refused(tmp_path):
    table = DeltaTable(None, tmp_path, first=None)
    table.commit(*DeltaTable(None, tmp_path / "other").log[0][1:], table.data("one", [(1, "a")]))
    (tmp_path / "one").unlink()

    with pytest.raises(SnapshotExplorerError, match="data files are missing"):
        open_table(table.url).row_history()


def test_missing_versions_are_named_and_what_changed_there_has_no_time(delta):
    for number in range(1, 6):
        delta.append([(number, "a")], name=f"{number}")
    delta.checkpoint(5)
    delta.remove_file(f"_delta_log/{3:020d}.json")

    history = open_table(delta.url).row_history()

    assert any("3" in note for note in history.plan.notes)
    rows = {row["id"]: row for row in history.to_arrow().to_pylist()}
    assert history.plan.versions[-1] == 5
    assert rows[5]["_from_version"] == 5


def test_rows_in_equality_deletes_end_where_they_are_deleted(memory):
    table = IcebergTable(memory, f"/{uuid4()}")
    table.commit([(1, "a"), (2, "b")])
    table.delete_ids([1])
    table.commit([(1, "a")])
    opened = open_table(f"memory://{table.root}")
    first, second, third = opened.versions()

    rows = opened.row_history().to_arrow().select(["id", "_from_version", "_to_version"]).to_pylist()

    assert sorted(tuple(row.values()) for row in rows if row["id"] == 1) == [(1, first, second), (1, third, None)]


def test_more_rows_than_fit_in_memory_give_the_same_states(delta):
    rows = [(number, f"name {number}") for number in range(500)]
    delta.append(rows, name="one")
    delta.commit(remove("one"), delta.data("two", [*rows[100:][::-1], *rows[:50], (7, "new")]))

    assert states(delta, memory_limit=0) == states(delta)
    with pytest.raises(InvalidArgumentError, match="memory_limit must be a number of bytes"):
        states(delta, memory_limit=-1)


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_large_files_have_the_same_states_as_those_of_small_ones(delta, monkeypatch, seed):
    random = np.random.default_rng(seed)
    live = {f"start {number}": [(10 * number + row % 7, "a") for row in range(30)] for number in range(3)}
    delta.commit(*(delta.data(name, rows) for name, rows in live.items()))
    for commit in range(8):
        name, others = f"file {commit}", [(int(random.integers(0, 100)), "new") for _ in range(random.integers(0, 20))]
        count = random.integers(1, 1 + min(2, len(live)))
        replaced = random.choice(sorted(live), count, replace=False).tolist()
        kept = [row for old in replaced for row in live.pop(old) if random.random() < 0.9]
        if random.random() < 0.5:
            random.shuffle(kept)
        live[name] = [(int(key), str(text)) for key, text in kept] + others
        delta.commit(*map(remove, replaced), delta.data(name, live[name]))
    expected = states(delta)
    assert_history_is_every_version(open_table(delta.url))

    monkeypatch.setattr("snapshot_explorer.analysis.row_history.reading._LARGE_BYTES", -1)

    assert states(delta) == expected
    assert states(delta, memory_limit=4_000) == expected


def test_rows_of_large_files_with_other_keys_are_not_compared(delta, monkeypatch):
    delta.append([(number, "a") for number in range(100)], name="one")
    delta.commit(remove("one"), delta.data("two", [(number, "a") for number in range(1_000, 1_100)]))
    monkeypatch.setattr("snapshot_explorer.analysis.row_history.reading._LARGE_BYTES", -1)
    monkeypatch.setattr("snapshot_explorer.analysis.row_history.continuation.row_hashes", None)

    assert len(states(delta)) == 200


def test_rows_with_equal_hashes_are_compared_by_their_values(delta, monkeypatch):
    rows = [(number % 40, f"name {number % 40}") for number in range(60)]
    delta.append(rows, name="one")
    delta.append([(7, "name 7")], name="two")
    delta.commit(remove("one"), remove("two"), delta.data("three", [*rows[5:][::-1], (7, "new")]))
    expected = states(delta)

    monkeypatch.setattr(
        "snapshot_explorer.analysis.row_history.continuation.row_hashes", lambda _, count: np.zeros(count, np.uint64)
    )

    assert states(delta) == expected


def test_long_runs_of_rewritten_rows_are_compared_value_by_value(delta):
    rows = [(number, "a") for number in range(1_500)]
    delta.append(rows, name="one")
    changed = [*rows[:500], (500, "b"), *rows[501:900], *rows[901:]]
    delta.commit(remove("one"), delta.data("two", changed))

    assert [state for state in states(delta) if state[2:] != (1, None)] == [
        (500, "a", 1, 2),
        (500, "b", 2, None),
        (900, "a", 1, 2),
    ]
    assert len(states(delta)) == 1_501


def test_a_history_is_arrow_data(delta):
    delta.append([(1, "a")], name="one")
    history = open_table(delta.url).row_history()

    assert pa.table(history).equals(history.to_arrow())
    assert duckdb.sql("select id, _to_version from history").fetchall() == [(1, None)]
    assert history.to_pandas()["_from_version"].tolist() == [1]
    assert history.to_csv().splitlines()[0] == '"id","name","_from_version","_to_version","_from_time","_to_time"'


def test_columns_of_a_table_keep_their_names(memory):
    table = DeltaTable(memory, f"/{uuid4()}", fields=[("_from_version", "long"), ("_to_version", "string")])
    table.append([(1, "a")])

    assert open_table(table.url).row_history().schema.names == [
        "_from_version",
        "_to_version",
        "_from_version_",
        "_to_version_",
        "_from_time",
        "_to_time",
    ]


def test_a_history_is_drawn_with_its_versions_first(delta):
    delta.append([(1, "a")], name="one")
    delta.commit(remove("one"))

    text = str(open_table(delta.url).row_history("id = 1"))

    assert "where id = 1" in text
    assert "from version   to version" in text
    assert "1 file, 1 row" in text
    assert ".row_history('id = 1')" in text


def test_arguments_that_do_not_fit_are_refused(delta):
    delta.append([(1, "a")])

    with pytest.raises(InvalidArgumentError, match="nam"):
        states(delta, "nam = 1")
    with pytest.raises(InvalidArgumentError, match="nothing"):
        states(delta, columns=["nothing"])


def test_a_column_that_versions_lack_is_null_in_them_also_for_the_condition(memory):
    fields = [("id", "long"), ("name", "string")]
    table = DeltaTable(memory, f"/{uuid4()}", fields=fields)
    stored = pa.table({"id": [1, 2], "name": ["a", "b"], "more": pa.array([7, None], pa.int64())})
    table.commit(table.data("one", stored))
    table.commit(metadata([*fields, ("more", "long")]))

    assert states(table) == [(1, "a", 7, 2, None), (1, "a", None, 1, 2), (2, "b", None, 1, None)]
    assert states(table, "more = 7") == [(1, "a", 7, 2, None)]
    assert states(table, "more is null") == [(1, "a", None, 1, 2), (2, "b", None, 1, None)]
    assert states(table, "more is null", columns=["id"]) == [(1, 1, 2), (2, 1, None)]


def test_rows_of_merged_files_are_compared_state_by_state(monkeypatch):
    monkeypatch.setattr("snapshot_explorer.analysis.row_history.reading._SORTED_ROWS", 3)
    table = open_table(str(DATA / "hudi" / "v9_mor_log_compaction"))

    history = assert_history_is_every_version(table)

    opened = sum(len(item.split.files) for item in history.plan.splits)
    assert opened > history.plan.files, "a file is read again for each state of its merge"
