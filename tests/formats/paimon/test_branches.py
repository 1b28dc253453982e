"""Which version of a table's history its branches begin with."""

import json
from pathlib import Path

import pytest

from snapshot_explorer import open_table
from tests.support.paimon.table_builder import PaimonTable

DATA = Path(__file__).parents[2] / "data" / "paimon"


@pytest.fixture
def table(memory_root):
    """A table of four versions."""
    table = PaimonTable(*memory_root)
    for key in range(4):
        table.commit([(key, "a")])
    return table


def fork(table, name, number, **changed):
    """Make a branch that begins with a copy of a snapshot, some of its fields other."""
    snapshot = json.loads(table.filesystem.cat_file(f"{table.root}/snapshot/snapshot-{number}")) | changed
    table.write(f"branch/branch-{name}/schema/schema-0", table.filesystem.cat_file(f"{table.root}/schema/schema-0"))
    table.write(f"branch/branch-{name}/snapshot/snapshot-{snapshot['id']}", json.dumps(snapshot).encode())


def branches(table, **options):
    rows = open_table(f"memory://{table.root}", **options).branches().to_dict()
    return {row["branch"]: (row["forked_version"], row["newest_version"]) for row in rows}


def test_a_branch_begins_with_the_version_that_it_is_a_copy_of(table):
    fork(table, "dev", 2)
    fork(table, "dev", 3, commitUser="somebody of the branch")
    fork(table, "exp", 3)

    assert branches(table) == {"dev": (2, 3), "exp": (3, 3)}


@pytest.mark.parametrize(
    "other",
    [
        {"commitUser": "another"},
        {"commitIdentifier": 7},
        {"timeMillis": 5},
        {"commitKind": "COMPACT"},
        {"baseManifestList": "manifest-list-9-0"},
        {"deltaManifestList": "manifest-list-9-1"},
        {"changelogManifestList": "manifest-list-9-2"},
        {"id": 9},
    ],
)
def test_another_commit_under_the_same_number_proves_nothing(table, other):
    fork(table, "dev", 2, **other)

    assert branches(table) == {"dev": (None, other.get("id", 2))}


def test_a_branch_begins_with_a_version_that_only_a_tag_holds(table):
    fork(table, "dev", 2)
    fork(table, "exp", 1)
    table.tag("v1", 2)
    table.expire(4)

    assert branches(table) == {"dev": (2, 2), "exp": (None, 1)}


def test_a_branch_without_versions_begins_nowhere(table):
    fork(table, "dev", 2)
    table.remove("branch/branch-dev/snapshot/snapshot-2")

    assert branches(table) == {"dev": (None, None)}


def test_a_branch_that_is_open_does_not_begin_with_itself(table):
    fork(table, "dev", 2)
    fork(table, "other", 3)

    assert branches(table, branch="dev") == {"dev": (None, 2), "other": (None, 3)}


def test_a_folder_that_is_called_as_the_main_branch_is_not_taken_for_it(table):
    fork(table, "main", 2)

    assert branches(table) == {"main": (None, None)}


@pytest.mark.parametrize("content", [b"", b"{", b'{"id": 3}', b"\xff\x00", b"[]"])
def test_a_broken_branch_is_listed_with_its_name_alone(table, content):
    fork(table, "dev", 2)
    fork(table, "lost", 3)
    table.write("branch/branch-lost/snapshot/snapshot-3", content)

    assert branches(table) == {"dev": (2, 2), "lost": (None, 3)}


@pytest.mark.parametrize("forbidden", ["branch-lost/snapshot", "branch-lost/snapshot/snapshot-3"])
def test_a_branch_without_read_permission_is_listed_with_its_name_alone(table, counted, forbidden, monkeypatch):
    fork(table, "dev", 2)
    fork(table, "lost", 3)
    asked = counted.record_request

    def refuse(self, kind, path, content=b""):
        asked(self, kind, path, content)
        if path.endswith(forbidden):
            raise PermissionError(path)

    monkeypatch.setattr(counted, "record_request", refuse)
    rows = open_table(f"counted://{table.root}").branches().to_dict()

    assert [row["branch"] for row in rows] == ["dev", "lost"]
    assert [row["forked_version"] for row in rows] == [2, None]


def test_a_version_here_that_is_broken_hides_no_other(table):
    fork(table, "dev", 2)
    fork(table, "lost", 3)
    table.write("snapshot/snapshot-3", b"{")

    assert branches(table) == {"dev": (2, 2), "lost": (None, 3)}


def test_of_many_branches_there_are_only_names(table):
    for number in range(100):
        fork(table, f"b{number:03}", 2)
    assert set(branches(table).values()) == {(2, 2)}

    fork(table, "one_more", 2)

    assert set(branches(table).values()) == {(None, None)}
    assert len(branches(table)) == 101


@pytest.mark.parametrize(
    ("name", "branch"),
    [
        # made of the tag v1, which is on version 3
        ("written_by_1_4", {"dev": (3, 3)}),
        ("manifests_orc_1_4", {"dev": (3, 3)}),
        # made without a tag: their numbers are those of main by chance
        ("fallback_branch", {"rt": (None, 3)}),
        ("primary_branch", {"rt": (None, 1)}),
    ],
)
def test_branches_that_paimon_made(name, branch):
    rows = open_table(str(DATA / name)).branches().to_dict()

    assert {row["branch"]: (row["forked_version"], row["newest_version"]) for row in rows} == branch


def test_a_branch_costs_a_listing_and_two_small_files(table, counted):
    costs = []
    for count in (0, 10, 20):
        for number in range(count):
            fork(table, f"b{number:03}", 1 + number % 4)
        opened = open_table(f"counted://{table.root}")
        counted.requests.clear()
        opened.branches()
        costs.append(len(counted.requests))

    assert costs[0] == 1
    # of the four versions here the newest is known
    assert costs[1] - costs[0] == 2 * 10 + 3
    assert costs[2] - costs[1] == 2 * 10
