"""What Delta commits did, and which versions can still be loaded."""

from pathlib import Path

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotNotFoundError
from snapshot_explorer.history import history_of
from tests.support.delta.table_builder import DeltaTable, add, domain, metadata, remove, txn

COUNTS = ("added_files", "removed_files", "added_rows", "removed_rows", "added_bytes", "removed_bytes", "total_rows")


@pytest.fixture
def table(memory_root):
    return DeltaTable(*memory_root)


def commits(table, *versions):
    opened = open_table(table.url)
    return history_of(opened).table_format.commits(versions or opened.versions()).to_pylist()


def counts(table, version):
    return tuple(commits(table, version)[0][name] for name in COUNTS)


def readable(table):
    return {row["version"]: row["readable"] for row in open_table(table.url).history().to_dict()}


def test_a_commit_keeps_the_operation_of_its_writer(table):
    table.commit(
        add("a", rows=3),
        operation="MERGE",
        info={"userId": "7", "userName": "ada", "txnId": "t-1", "operationParameters": {"predicate": "x"}, "odd": [1]},
    )
    row = commits(table, 1)[0]

    assert {name: row[name] for name in ("kind", "operation", "user", "identifier", "schema_id", "watermark")} == {
        "kind": "merge",
        "operation": "MERGE",
        "user": "ada",
        "identifier": "t-1",
        "schema_id": None,
        "watermark": None,
    }
    assert row["committed_at"] == table.committed_at(1)
    assert '"odd":[1]' in row["details"]
    assert row["tags"] == []


def test_a_user_without_a_name_is_shown_by_the_id(table):
    table.commit(info={"userId": "7"})

    assert commits(table, 1)[0]["user"] == "7"


def test_a_streaming_commit_is_identified_by_its_application(table):
    table.commit(add("a"), txn("stream", 12))
    table.commit(txn("one", 1), txn("two", 2))

    assert [row["identifier"] for row in commits(table, 1, 2)] == ["stream:12", None]


def test_a_commit_without_an_operation_is_described_by_its_actions(table):
    table.commit(add("a", rows=1), info=False)
    table.commit(metadata(configuration={"x": "y"}), info=False)
    table.commit(domain("d"), info=False)

    assert [(row["kind"], row["operation"], row["details"]) for row in commits(table, 1, 2, 3)] == [
        ("append", None, "{}"),
        ("schema", None, "{}"),
        ("schema", None, "{}"),
    ]


def test_rows_come_in_the_order_requested_also_twice(table):
    table.commit(add("a"))
    table.commit(add("b"))

    assert [row["version"] for row in commits(table, 2, 0, 2)] == [2, 0, 2]


def test_counts_are_those_of_the_actions(table):
    table.commit(add("a", size=100, rows=10), add("b", size=50, rows=5))
    table.commit(remove("a", size=100, stats='{"numRecords":10}'), add("c", size=30, rows=9))

    assert counts(table, 0) == (0, 0, 0, 0, 0, 0, 0)
    assert counts(table, 1) == (2, 0, 15, 0, 150, 0, 15)
    assert counts(table, 2) == (1, 1, 9, 10, 30, 100, 14)


def test_counts_that_a_remove_lacks_are_those_of_its_add(table):
    table.commit(add("a", size=100, rows=10))
    table.commit(remove("a"))

    assert counts(table, 2) == (0, 1, 0, 10, 0, 100, 0)


def test_a_file_without_statistics_makes_sums_unknown_never_0(table):
    table.commit(add("a", size=100))
    table.commit(add("b", size=50, rows=5))
    table.commit(remove("a"))

    assert counts(table, 1) == (1, 0, None, 0, 100, 0, None)
    assert counts(table, 2) == (1, 0, 5, 0, 50, 0, None)
    assert counts(table, 3) == (0, 1, 0, None, 0, 100, 5)


def test_a_file_that_is_added_again_counts_once_in_the_total(table):
    table.commit(add("a", size=100, rows=10))
    table.commit(add("a", size=100, rows=10, data_change=False), operation="COMPUTE STATS")

    assert counts(table, 2)[-1] == 10
    assert commits(table, 2)[0]["kind"] == "analyze"


def test_rows_that_a_deletion_vector_removes_are_removed_and_those_that_it_gives_back_are_added(table):
    first, second = table.vector([0, 1]), table.vector([0, 1, 5])
    table.commit(add("a", rows=10), add("b", rows=3))
    table.commit(remove("a"), add("a", rows=10, vector=first), operation="DELETE")
    table.commit(
        remove("a", vector=first), add("a", rows=10, vector=second), remove("b"), add("c", rows=2), operation="DELETE"
    )
    table.commit(remove("a", vector=second), add("a", rows=10, vector=first), operation="RESTORE")
    table.commit(remove("a", vector=first))

    assert [counts(table, version)[2:4] for version in (2, 3, 4, 5)] == [(0, 2), (2, 1 + 3), (1, 0), (0, 8)]
    totals = open_table(table.url).history()["total_rows"].to_pylist()[::-1]
    assert totals == [0, 13, 11, 9, 10, 2]


def test_rows_that_a_deletion_vector_removes_from_a_file_of_unknown_rows_are_unknown(table):
    vector = table.vector([0, 1])
    table.commit(add("a"))
    table.commit(remove("a"), add("a", vector=vector), operation="DELETE")

    assert counts(table, 2)[2:4] == (None, None)


def test_totals_are_unknown_where_they_would_need_many_files(table):
    for number in range(70):
        table.commit(add(str(number), rows=1))
    reported = {row["version"]: row["total_rows"] for row in commits(table, 3, 70)}

    assert reported == {3: 3, 70: None}
    table.checkpoint(68)
    assert commits(table, 70)[0]["total_rows"] == 70


def test_totals_begin_with_the_checkpoint_that_a_cleaned_log_begins_with(table):
    for number in range(6):
        table.commit(add(str(number), rows=1))
    table.checkpoint(4)
    table.clean(3)

    rows = open_table(table.url).history().to_dict()
    assert [(row["version"], row["readable"], row["total_rows"]) for row in rows] == [
        (6, None, 6),
        (5, None, 5),
        (4, None, 4),
        (3, "no", None),
    ]


def test_a_version_whose_log_was_cleaned_is_listed_but_not_loaded(table):
    for number in range(6):
        table.append([(number, "x")])
    table.checkpoint(4)
    table.clean(3)
    opened = open_table(table.url)

    assert opened.versions() == (4, 5, 6)
    assert opened.at("earliest").version == 4
    assert opened.history()["version"].to_pylist() == [6, 5, 4, 3]
    assert opened.history("3..5")["version"].to_pylist() == [5, 4, 3]
    assert opened.history("..5")["version"].to_pylist() == [5, 4]
    assert opened.history(since=table.committed_at(4))["version"].to_pylist() == [6, 5, 4]
    assert opened.history(since=table.committed_at(2))["version"].to_pylist() == [6, 5, 4, 3]
    for gone in (3, 0, 7):
        with pytest.raises(SnapshotNotFoundError, match=rf"^Version {gone} .* Available versions: 4 to 6\."):
            opened.at(gone)
    with pytest.raises(SnapshotNotFoundError, match="The earliest is 4"):
        opened.at(table.committed_at(3))


def test_a_version_behind_a_gap_is_not_loaded_until_a_checkpoint_makes_good(table):
    for number in range(9):
        table.append([(number, "x")])
    table.checkpoint(7)
    table.remove_file("_delta_log/00000000000000000004.json")

    reported = readable(table)
    assert {version for version, word in reported.items() if word == "no"} == {5, 6}
    assert {version for version, word in reported.items() if word is None} == {0, 1, 2, 3, 7, 8, 9}
    totals = {row["version"]: row["total_rows"] for row in open_table(table.url).history().to_dict()}
    assert totals == {0: 0, 1: 1, 2: 2, 3: 3, 5: None, 6: None, 7: 7, 8: 8, 9: 9}


def test_a_broken_checkpoint_does_not_hide_what_commits_say(table):
    for number in range(6):
        table.append([(number, "x")])
    (path,) = table.checkpoint(3)
    table.clean(2)
    table.checkpoint(6)
    table.write(path, b"PAR1 no more PAR1")

    rows = open_table(table.url).history().to_dict()
    assert [row["added_rows"] for row in rows] == [1] * 5
    assert rows[-1]["total_rows"] is None


def test_a_version_whose_data_was_vacuumed_is_metadata(table):
    table.append([(1, "a")], name="a.parquet")
    table.append([(2, "b")], name="b.parquet")
    table.commit(remove("a.parquet"))
    table.append([(3, "c")], name="c.parquet")
    assert set(readable(table).values()) == {None}

    table.remove_file("a.parquet")

    assert readable(table) == {0: None, 1: "metadata", 2: "metadata", 3: None, 4: None}
    with pytest.raises(SnapshotNotFoundError, match="a.parquet does not exist"):
        open_table(table.url).at(2).to_arrow()


def test_a_vacuumed_deletion_vector_makes_its_versions_metadata(table):
    first = table.data("a.parquet", [(number, "x") for number in range(5)])
    table.commit(first)
    vectors = [table.vector([0], name=f"{number:08}-0000-0000-0000-000000000000") for number in (1, 2)]
    again = {"path": "a.parquet", "size": 9, "rows": 5}
    table.commit(remove("a.parquet"), add(**again, vector=vectors[0]), operation="DELETE")
    table.commit(remove("a.parquet", vector=vectors[0]), add(**again, vector=vectors[1]), operation="DELETE")

    table.remove_file("deletion_vector_00000001-0000-0000-0000-000000000000.bin")

    assert readable(table) == {0: None, 1: None, 2: "metadata", 3: None}


def test_a_restored_version_needs_its_files_again(table):
    table.append([(1, "a")], name="a.parquet")
    table.commit(remove("a.parquet"))
    table.append([(1, "a")], name="a.parquet", operation="RESTORE")
    table.commit(remove("a.parquet"))
    table.remove_file("a.parquet")

    assert readable(table) == {0: None, 1: "metadata", 2: None, 3: "metadata", 4: None}


def test_new_statistics_of_a_file_do_not_hide_that_it_is_gone(table):
    table.append([(1, "a")], name="a.parquet")
    table.commit(add("a.parquet", rows=1, data_change=False), operation="COMPUTE STATS")
    table.commit(remove("a.parquet"))
    table.remove_file("a.parquet")

    assert readable(table) == {0: None, 1: "metadata", 2: "metadata", 3: None}


def test_one_version_has_the_row_that_the_whole_history_has(table):
    for number in range(5):
        table.append([(number, "x")], name=f"{number}.parquet")
        if number:
            table.commit(remove(f"{number - 1}.parquet"))
    for number in range(3):
        table.remove_file(f"{number}.parquet")
    every = {row["version"]: row for row in open_table(table.url).history().to_dict()}

    assert {version: open_table(table.url).at(version).commit.readable for version in every} == readable(table)
    assert list(readable(table).values()).count("metadata") == 6
    for version, row in every.items():
        assert history_of(open_table(table.url)).table_format.commits([version]).to_pylist(
            maps_as_pydicts="strict"
        ) == [row]


def test_an_old_version_of_a_long_history_is_read_from_its_state(table):
    table.append([(1, "a")], name="a.parquet")
    table.commit(remove("a.parquet"))
    for _ in range(80):
        table.commit()
    table.remove_file("a.parquet")

    # More commits came after it than are read for that, and the newest state takes more files than are read.
    assert commits(table, 1)[0]["readable"] is None
    table.checkpoint(60)
    assert [row["readable"] for row in commits(table, 1, 2)] == ["metadata", None]


def test_the_history_of_many_versions_is_read_page_by_page(table):
    table.append([(1, "a")], name="a.parquet")
    for _ in range(150):
        table.commit()
    table.commit(remove("a.parquet"))
    table.remove_file("a.parquet")

    reported = readable(table)
    assert [reported[0], reported[1], reported[100], reported[151], reported[152]] == [
        None,
        "metadata",
        "metadata",
        "metadata",
        None,
    ]


def test_files_that_are_looked_for_one_by_one_cost_a_request_each(counted, table):
    for number in range(4):
        table.append([(number, "x")], name=f"{number}.parquet")
    table.commit(remove("0.parquet"), remove("1.parquet"))
    opened = open_table(f"counted://{table.root}")
    counted.requests.clear()

    opened.history(limit=2)

    looked = [one.path for one in counted.requests if one.path.endswith(".parquet")]
    assert sorted(path.rsplit("/", 1)[1] for path in looked) == ["0.parquet", "1.parquet"]
    assert len([one for one in counted.requests if one.path.endswith(".json")]) <= 6


def test_many_files_are_looked_for_by_listing_their_folders(counted, table):
    names = [f"{number}.parquet" for number in range(300)]
    table.commit(*[add(name, rows=1) for name in names])
    table.write("0.parquet", b"PAR1")
    table.commit(*[remove(name) for name in names])
    opened = open_table(f"counted://{table.root}")
    counted.requests.clear()

    assert opened.history()["readable"].to_pylist() == [None, "metadata", None]
    assert not [one for one in counted.requests if one.path.endswith(".parquet")]
    assert len([one for one in counted.requests if one.kind == "list"]) <= 3


def test_where_there_are_too_many_folders_it_is_not_known(table):
    names = [f"f{number}/x.parquet" for number in range(300)]
    table.commit(*[add(name, rows=1) for name in names])
    table.commit(*[remove(name) for name in names])

    assert open_table(table.url).history()["readable"].to_pylist() == [None, None, None]


def test_a_removed_file_on_another_storage_is_not_looked_for(table):
    table.commit(add("s3://elsewhere/a.parquet", rows=1))
    table.commit(remove("s3://elsewhere/a.parquet"))

    assert readable(table) == {0: None, 1: None, 2: None}


def test_a_version_of_which_only_the_checkpoint_is_left_is_reported_without_its_commit(table):
    table.append([(1, "a")])
    table.checkpoint(1)
    table.clean(2)
    opened = open_table(table.url)

    assert opened.current.to_arrow().num_rows == 1
    assert opened.history().to_dict()[0] | {"details": "{}"} == {
        name: {"version": 1, "readable": None, "kind": "other", "tags": [], "details": "{}"}.get(name)
        for name in opened.history().column_names
    }


def test_whether_a_version_can_be_loaded_is_reported_of_one_whose_commit_is_gone(table):
    table.append([(1, "a")], name="a.parquet")
    table.append([(2, "b")], name="b.parquet")
    table.checkpoint(1)
    table.checkpoint(2)
    for version in (0, 1, 2):
        table.remove_file(f"_delta_log/{version:020d}.json")
    table.commit(remove("b.parquet"))
    table.remove_file("b.parquet")

    assert readable(table) == {1: None, 2: "metadata", 3: None}


BRIEF = ["version", "committed_at", "kind", "operation", "user", "added_bytes", "removed_bytes"]


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "data" / "delta").iterdir()), ids=lambda path: path.name
)
def test_brief_commits_are_the_same_before_and_after_their_changes_are_read(path):
    def commits(*, changes):
        table_format = history_of(open_table(str(path))).table_format
        versions = table_format.listing(0).versions[::-1]
        if changes:
            table_format.changes(
                [version for version in versions if version not in table_format.listing(0).without_commit]
            )
        return [table_format.commits(versions, columns=columns).select(BRIEF).to_pylist() for columns in (None, BRIEF)]

    (whole, brief), (_, later) = commits(changes=False), commits(changes=True)

    assert brief == later == whole


def test_a_removed_file_of_unknown_size_is_counted_by_its_add(table):
    table.commit(add("a", size=7), add("b", size=9))
    table.commit(remove("a"), add("c", size=1, data_change=False), operation=None)
    table_format = history_of(open_table(table.url)).table_format
    versions = table_format.listing(0).versions
    table_format.changes(versions)

    assert [row["removed_bytes"] for row in table_format.commits(versions, columns=BRIEF).to_pylist()][-1] == 7
