"""What holds for tables of every format, tested once for all. `nth` is a commit's place in the scenario, from 1."""

import gc
import json
import weakref
from collections import Counter
from datetime import timedelta

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.history import history_of
from snapshot_explorer.table import parts_of
from snapshot_explorer.view import drawing_of
from tests.support.scenarios import FIRST, SCENARIOS, played


@pytest.fixture(params=SCENARIOS, ids=[scenario.format for scenario in SCENARIOS])
def scenario(request, memory_root):
    return played(request.param(*memory_root))


@pytest.fixture
def table(scenario):
    return open_table(scenario.url)


@pytest.fixture
def version(scenario):
    """Return the version that the nth commit made."""
    return lambda nth: scenario.earliest + nth - 1


def ids(rows):
    return sorted(rows["id"].to_pylist())


def nths(scenario, frame):
    return [number - scenario.earliest + 1 for number in frame["version"].to_pylist()]


def test_a_table_opens_at_its_newest_version(table, scenario, version):
    assert table.format == scenario.format
    assert table.current.version == version(5)
    assert ids(table.current.to_arrow()) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("ref", "nth"),
    [
        ("latest", 5),
        ("latest~2", 3),
        ("latest^", 4),
        ("earliest", 1),
        ("@2026-01-01T00:02:30Z", 2),
        ("@2026-01-01T00:02:30Z~1", 1),
        (FIRST, 1),
        (FIRST + timedelta(minutes=2), 3),
        (FIRST + timedelta(days=999), 5),
    ],
)
def test_a_ref_names_a_version(table, version, ref, nth):
    assert table.at(ref).version == version(nth)


def test_a_number_names_a_version(table, version):
    assert table.at(version(2)).version == version(2)
    assert table.at(str(version(2))).version == version(2)
    assert table.at(f"{version(4)}~1").version == version(3)


def test_a_version_that_is_not_there_is_refused_with_those_that_are(table, version):
    for missing in (version(6), 10**9):
        with pytest.raises(SnapshotNotFoundError, match=rf"{version(1)}( to |){version(5)}"):
            table.at(missing)


def test_a_time_before_the_first_commit_is_refused_with_the_first(table, version):
    with pytest.raises(
        SnapshotNotFoundError, match=f"The earliest is {version(1)}, committed at 2026-01-01T00:01:00Z. Try earl"
    ):
        table.at(FIRST - timedelta(milliseconds=1))


def test_each_version_has_the_rows_of_its_time(table, version):
    assert table.versions() == tuple(version(nth) for nth in range(1, 6))
    assert [ids(table.at(one).to_arrow()) for one in table.versions()] == [
        [1],
        [1, 2, 3],
        [1, 2, 3, 4],
        [1, 2, 3, 4],
        [1, 2, 3, 4],
    ]
    assert sorted(table.at(version(3)).to_arrow()["name"].to_pylist()) == ["a", "b", "c", "d"]
    assert sorted(table.at(version(4)).to_arrow()["name"].to_pylist()) == ["A", "b", "c", "d"]


def test_columns_conditions_and_limits_choose_rows(table):
    rows = table.current.to_arrow(columns=["name"], where="id >= 3")

    assert sorted(rows["name"].to_pylist()) == ["c", "d"]
    assert rows.schema == pa.schema([("name", pa.string())])
    assert table.current.to_arrow(limit=2).num_rows == 2
    assert table.current.count() == 4
    assert table.current.count(where="id > 1") == 3


@pytest.mark.parametrize("where", ["id < 0", "false"])
def test_a_condition_that_no_row_meets_has_empty_answers(table, where):
    assert table.current.to_arrow(where=where).num_rows == table.current.count(where) == 0
    assert len(table.blame(where)) == 0
    assert table.row_history(where).to_arrow().num_rows == 0
    assert table.diff_rows("earliest", "latest", where=where).is_empty
    assert set(table.trace(where).versions["rows"].to_pylist()) == {0}
    assert len(table.history(user="nobody")) == 0


def test_pandas_keeps_integers(table):
    assert str(table.current.to_pandas()["id"].dtype) == "int64[pyarrow]"


def test_a_table_is_freed_as_soon_as_it_is_not_used(scenario):
    gc.disable()
    try:
        table = open_table(scenario.url)
        table.history()
        freed = weakref.ref(table)
        del table

        assert freed() is None
    finally:
        gc.enable()


def test_history_is_newest_first_with_what_each_commit_did(table, scenario):
    history = table.history().to_arrow()

    assert nths(scenario, history) == [5, 4, 3, 2, 1]
    assert history["kind"].to_pylist() == ["compact", scenario.overwriting, "append", "append", "append"]
    assert history["added_files"].to_pylist() == [1, 1, 1, 1, 1]
    assert history["removed_files"].to_pylist() == [2, 1, 0, 0, 0]
    assert history["added_rows"].to_pylist() == [3, 1, 1, 2, 1]
    assert history["removed_rows"].to_pylist() == [3, 1, 0, 0, 0]
    assert history["total_rows"].to_pylist() == [4, 4, 4, 3, 1]
    assert history["readable"].to_pylist() == [None] * 5
    table.verify()
    assert table.history()["readable"].to_pylist() == ["yes"] * 5
    assert history["committed_at"].to_pylist() == [FIRST + timedelta(minutes=nth) for nth in range(4, -1, -1)]


def test_commits_are_those_of_the_history_in_the_order_of_the_versions(table, version):
    rows = {row["version"]: row for row in table.history().to_dict()}
    versions = [version(4), version(1), version(5)]

    assert history_of(table).commits_frame(versions).to_dict() == [rows[one] for one in versions]
    with pytest.raises(SnapshotNotFoundError, match="99"):
        history_of(table).commits_frame([99])


def test_history_can_be_limited_and_says_how_much_there_is(table, scenario):
    history = table.history(limit=2)

    assert nths(scenario, history) == [5, 4]
    assert history.total == 5
    assert "2 of 5 versions" in repr(history)


def test_history_can_be_of_a_range(table, scenario, version):
    for between, expected in [
        (f"{version(2)}..{version(4)}", [4, 3, 2]),
        (f"{version(4)}..{version(2)}", [4, 3, 2]),
        (f"..{version(2)}", [2, 1]),
        ("latest~1..", [5, 4]),
    ]:
        assert nths(scenario, table.history(between)) == expected


@pytest.mark.parametrize("between", ["99..", "..99", "99..100", "latest..99"])
def test_a_range_that_names_a_version_which_is_not_there_is_refused(table, between):
    for asked in (table.history, lambda between: table.health(between=between), table.anomalies):
        with pytest.raises(SnapshotNotFoundError, match=r"[vV]ersion 99\b.* not "):
            asked(between=between)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"kind": "append"}, [3, 2, 1]),
        ({"kind": "append", "limit": 1}, [3]),
        ({"since": "@2026-01-01T00:04:00Z"}, [5, 4]),
        ({"since": FIRST + timedelta(days=1)}, []),
        ({"since": "@2020-01-01"}, [5, 4, 3, 2, 1]),
        ({"limit": 0}, []),
    ],
)
def test_history_can_be_filtered(table, scenario, filters, expected):
    assert nths(scenario, table.history(**filters)) == expected


def test_history_can_be_searched_for_a_text(table, scenario):
    assert nths(scenario, table.history(text=scenario.compaction)) == [5]
    assert nths(scenario, table.history(text="nothing of the kind")) == []


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"kind": "vacuum"}, "'vacuum' is not a kind of commit. Kinds: append, overwrite, compact"),
        ({"limit": -1}, "limit must be 0 or more, got -1."),
        ({"since": "latest"}, "since='latest' is not a time"),
    ],
)
def test_an_invalid_filter_is_refused(table, filters, message):
    with pytest.raises(InvalidArgumentError, match=message):
        table.history(**filters)


def test_a_commit_is_its_row_of_the_history(table):
    for row in table.history().to_dict():
        commit = table.at(row["version"]).commit
        assert {name: getattr(commit, name) for name in row} == row | {"tags": ()}


def test_changes_are_what_the_commit_added_and_removed(table, version):
    changes = table.at(version(5)).file_changes().to_arrow()

    rows = changes.select(["change", "path"]).to_pylist()
    named = [(row["change"], file_of(row["path"])) for row in rows]
    assert sorted(named) == [("add", "data-5"), ("remove", "data-2"), ("remove", "data-3")]
    assert set(changes["data_change"].to_pylist()) == {False}


def file_of(path):
    """Return the name of a file without its folder, its ending and what Hudi adds to it."""
    return path.rsplit("/", 1)[-1].removesuffix(".parquet").partition("_")[0]


def test_files_are_the_live_ones(table, version):
    paths = table.at(version(4)).files()["path"].to_pylist()

    assert sorted(map(file_of, paths)) == ["data-2", "data-3", "data-4"]


def test_manifests_account_for_the_live_files(table, scenario, version):
    for nth in range(1, 6):
        manifests = table.at(version(nth)).manifests().to_arrow()
        removed = pa.compute.sum(manifests["removed_files"]).as_py()
        live = pa.compute.sum(manifests["added_files"]).as_py() - (0 if scenario.manifests_are_rewritten else removed)
        assert live == table.at(version(nth)).files().num_rows


def test_the_number_of_live_files_is_that_of_the_files(table, version):
    for nth in range(1, 6):
        snapshot = table.at(version(nth))
        assert parts_of(snapshot).loaded.live_files() == len(snapshot.files())


def test_manifests_are_drawn_without_columns_that_say_nothing(table, scenario):
    manifests = table.current.manifests()

    (grid,) = drawing_of(manifests).parts

    sizes = {"size_bytes"} if scenario.has_manifest_files else set()
    assert {"list", "path"} | sizes <= set(grid.rows.column_names)
    assert all(column.null_count < len(manifests) for column in grid.rows.columns)


def test_partitions_are_dicts_in_pandas(table):
    for found in (table.current.files(), table.current.file_changes(), table.lifetimes()):
        assert all(isinstance(partition, dict) for partition in found.to_pandas()["partition"])


def test_entries_of_manifests_lead_to_the_live_files(table, version):
    snapshot = table.at(version(4))
    live = set()

    for path in snapshot.manifests()["path"].to_pylist():
        rows = snapshot.entries(path.rpartition("/")[2]).to_arrow().select(["change", "path"]).to_pylist()
        live -= {row["path"] for row in rows if row["change"] == "remove"}
        live |= {row["path"] for row in rows if row["change"] == "add"}

    assert live == set(snapshot.files()["path"].to_pylist())


def test_a_manifest_that_is_not_there_is_refused_with_the_nearest(table, version):
    name = table.at(version(2)).manifests()["path"].to_pylist()[0].rpartition("/")[2]

    with pytest.raises(
        InvalidArgumentError,
        match=rf"^'{name}x' is not a manifest of version {version(2)}\. The nearest is {name}\. See manifests",
    ):
        table.at(version(2)).entries(f"{name}x")


def test_a_partition_filter_on_a_table_without_partitions_is_refused(table):
    with pytest.raises(InvalidArgumentError, match="'dt' is not a partition key. The table is not partitioned"):
        table.current.files(partition={"dt": "2026-01-01"})


def test_a_plan_says_what_would_be_read(table, version):
    plan = table.at(version(3)).plan()

    assert sum(plan["files"].to_pylist()) == 3
    assert sum(plan["rows"].to_pylist()) == 4


def test_appended_rows_are_what_changed(table, version):
    changed = table.row_changes(version(1), version(3))

    assert changed.schema == pa.schema(
        [pa.field("rowkind", pa.string(), nullable=False), *table.current.to_arrow().schema]
    )
    assert sorted(zip(*changed.to_pydict().values(), strict=True)) == [("+I", 2, "b"), ("+I", 3, "c"), ("+I", 4, "d")]
    assert sorted(table.row_changes("earliest^", version(1))["id"].to_pylist()) == [1]
    assert table.row_changes(version(2), version(2)).num_rows == 0


def test_a_compaction_changes_no_row(table, version):
    assert table.row_changes(version(4), version(5), mode="delta").num_rows == 0


def test_changes_are_chosen_by_columns_and_conditions(table, version):
    changed = table.row_changes(version(1), version(3), ["name"], "id > 3 and rowkind = '+I'")

    assert changed.to_pydict() == {"rowkind": ["+I"], "name": ["d"]}


@pytest.mark.parametrize(
    ("a", "b", "mode", "error", "message"),
    [
        ("latest", "earliest", "auto", InvalidArgumentError, "comes before"),
        (
            "earliest",
            "latest",
            "both",
            InvalidArgumentError,
            "'both' is not a mode. Modes: auto, delta, changelog",
        ),
        ("earliest", 99, "auto", SnapshotNotFoundError, "Version .* does not exist"),
        ("earliest~2", "latest", "auto", SnapshotNotFoundError, "it goes back past the earliest"),
    ],
)
def test_an_invalid_range_of_changes_is_refused(table, a, b, mode, error, message):
    with pytest.raises(error, match=message):
        table.row_changes(a, b, mode=mode)


def test_every_inspection_gives_a_frame_of_the_version_it_tells_of(table, version):
    assert history_of(table).table_format.inspections
    for one in history_of(table).table_format.inspections:
        ref = version(3) if one.at_version else None
        if one.name == "row_tracking":
            with pytest.raises(InvalidArgumentError, match="the table does not track its rows"):
                table.inspect(one.name, ref)
            continue
        frame = table.inspect(one.name, ref)
        frame.to_arrow().validate(full=True)
        assert one.name in frame.title


def test_an_unknown_inspection_is_refused_with_the_known_ones(table):
    with pytest.raises(
        InvalidArgumentError, match=f"is called 'nothing'.*: {history_of(table).table_format.inspections[0].name}, "
    ):
        table.inspect("nothing")


def test_a_new_commit_is_seen_by_update_and_by_latest(table, scenario, version):
    before = table.current
    scenario.append([(9, "z")])

    assert table.current is before
    assert table.at("latest").version == version(6)
    assert table.current.version == version(6)
    assert before.version == version(5)
    assert ids(before.to_arrow()) == [1, 2, 3, 4]
    assert nths(scenario, table.history(limit=1)) == [6]
    assert table.row_changes(version(5), "latest")["id"].to_pylist() == [9]


def test_an_update_without_news_returns_the_same_snapshot(table, version):
    assert table.update() is table.current
    assert table.at(version(5)) is table.current


def test_what_is_known_is_returned_without_a_request(counted, scenario):
    table = open_table(scenario.url.replace("memory", "counted"))
    table.history()
    _ = table.current.schema
    counted.requests.clear()

    known = history_of(table).cached

    assert known.versions == history_of(table).cached.versions == tuple(range(scenario.earliest, scenario.earliest + 5))
    assert known.columns == ("id", "name")
    assert not counted.requests


def test_reprs_read_well_and_show_no_option(scenario, version):
    table = open_table(scenario.url, storage_options={"skip_instance_cache": True})

    path = scenario.url + scenario.table_name
    assert repr(table) == f"Table(path='{path}', format='{scenario.format}', version={version(5)})"
    assert repr(table.at(version(4))) == f"Snapshot(path='{path}', version={version(4)})"
    plain = table.at(version(4))._repr_mimebundle_()["text/plain"]
    assert scenario.overwriting in plain
    assert scenario.type_of_id in plain


def test_changes_since_are_the_row_diffs_of_the_commits_wherever_they_are_cut(table, scenario, version):
    whole = pa.Table.from_batches(table.changes_since(version(1))).to_pylist()
    position, resumed = table.changes_since(version(1)).position, []
    for _ in range(5):
        cursor = open_table(scenario.url).changes_since(json.dumps(json.loads(position)), max_versions=1)
        resumed += [row for batch in cursor for row in batch.to_pylist()]
        position = cursor.position
    rows = Counter(map(repr, table.at(version(1)).to_arrow().to_pylist()))
    for nth in range(2, 6):
        diff = table.diff_rows(version(nth - 1), version(nth))
        before, after = (Counter(map(repr, side.to_pylist())) for side in (diff.before, diff.after))
        own = [row for row in whole if row["_commit_version"] == version(nth)]
        gone, new = (
            Counter(repr({name: row[name] for name in ("id", "name")}) for row in own if row["_change_type"] in kinds)
            for kinds in (("delete", "update_preimage"), ("insert", "update_postimage"))
        )
        assert (gone, new) == (before, after)
        rows = rows - gone + new

    assert resumed == whole
    assert rows == Counter(map(repr, table.at(version(5)).to_arrow().to_pylist()))
    assert json.loads(position)["version"] == version(5)
