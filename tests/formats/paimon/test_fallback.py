"""Tables read together with a branch. What Paimon reads of each version is compared in test_read_tables."""

import json
import shutil
from pathlib import Path

import pytest

import snapshot_explorer
from snapshot_explorer.errors import UnsupportedFeatureError

DATA = Path(__file__).parents[2] / "data" / "paimon"


@pytest.fixture
def table(tmp_path):
    shutil.copytree(DATA / "fallback_branch", tmp_path / "t")
    return tmp_path / "t"


def at(folder, ref="latest"):
    return snapshot_explorer.open_table(str(folder)).at(ref)


def values(folder, ref="latest", **arguments):
    rows = at(folder, ref).to_arrow(**arguments)
    return sorted((str(row["day"]), row["k"], row["v"]) for row in rows.to_pylist())


def rewrite(path, **changes):
    body = json.loads(path.read_text())
    body["options"] |= {name.replace("__", "."): value for name, value in changes.pop("options", {}).items()}
    path.write_text(json.dumps(body | changes))


def forget(folder, *versions, latest):
    for version in versions:
        (folder / "snapshot" / f"snapshot-{version}").unlink()
    (folder / "snapshot" / "LATEST").write_text(str(latest))


def test_the_newest_version_shows_the_branch_as_it_is_now(table):
    assert ("d", 1, "branch") in values(table, 3)

    forget(table, 4, latest=3)

    assert {("d", 1, "newer"), ("e", 1, "branch")} <= set(values(table, 3))


def test_a_condition_and_a_count_are_of_both_branches(table):
    assert values(table, 4, where="day >= 'c'") == [
        ("c", 1, "main"),
        ("c", 2, "main"),
        ("d", 1, "newer"),
        ("e", 1, "branch"),
    ]
    assert at(table, 4).count() == 7
    assert at(table, 4).count(where="v = 'branch'") == 1


def test_a_plan_tells_the_files_of_both_and_nothing_of_partitions_that_do_not_count(table):
    plan = at(table, 4).plan(where="day = 'd'").to_arrow().to_pylist()

    assert [row["partition"] for row in plan if not row["skipped"]] == [[("day", "d")]]
    assert {row["skipped"] for row in plan} == {None, "partition"}
    spared = [tuple(row["partition"]) for row in plan if row["skipped"] and row["partition"]]
    assert len(spared) == len(set(spared))
    assert at(table, 4).plan().to_arrow()["skipped"].null_count == 6


@pytest.mark.parametrize(
    ("option", "branch"), [("scan__fallback-branch", "fallback"), ("scan__primary-branch", "primary")]
)
def test_changes_of_rows_of_two_branches_are_refused(table, option, branch):
    for schema in (table / "schema").iterdir():
        rewrite(schema, options={"scan__fallback-branch": "", option: "rt"})
    orders = snapshot_explorer.open_table(str(table))
    refused = f"The rows of version 4 need row changes of a {branch} branch"

    with pytest.raises(UnsupportedFeatureError, match=refused):
        orders.inspect("audit_log", 4)
    with pytest.raises(UnsupportedFeatureError, match=f"row changes of a {branch} branch"):
        orders.row_changes(1, 4, mode="delta")


def test_the_branch_itself_is_read_alone(table):
    rows = snapshot_explorer.open_table(str(table), branch="rt").at("latest").to_arrow()

    assert {row["v"] for row in rows.to_pylist()} == {"branch", "newer"}


def test_a_branch_that_is_not_there_is_refused(table):
    rewrite(table / "schema" / "schema-1", options={"scan__fallback-branch": "../gone"})

    with pytest.raises(UnsupportedFeatureError, match="need the branch '../gone', which does not exist"):
        values(table)


def test_a_branch_of_other_columns_is_refused(table):
    schema = table / "branch" / "branch-rt" / "schema" / "schema-1"
    fields = json.loads(schema.read_text())["fields"]
    fields[2]["name"] = "w"
    rewrite(schema, fields=fields)

    with pytest.raises(UnsupportedFeatureError, match=r"such as 'w' \(the option scan.fallback-branch=rt\)"):
        values(table)


def test_an_older_version_needs_what_the_branch_was_then(table):
    branch = table / "branch" / "branch-rt"
    forget(branch, 1, latest=3)

    assert ("d", 1, "newer") in values(table, 4)
    with pytest.raises(UnsupportedFeatureError, match="whose versions of that time have expired"):
        values(table, 1)


def test_a_branch_without_versions_adds_nothing(table):
    shutil.rmtree(table / "branch" / "branch-rt" / "snapshot")

    assert values(table, 1) == [("None", 1, "main"), ("a", 1, "main")]
    assert len(values(table, 4)) == 5


def test_versions_of_the_branch_at_one_time_are_refused_where_it_matters(table):
    snapshots = table / "branch" / "branch-rt" / "snapshot"
    moment = json.loads((table / "snapshot" / "snapshot-2").read_text())["timeMillis"]
    for version in (1, 2):
        path = snapshots / f"snapshot-{version}"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"timeMillis": moment}))

    with pytest.raises(UnsupportedFeatureError, match="committed at the same time or out of order"):
        values(table, 2)


def test_a_version_that_only_a_tag_holds_is_refused(table):
    (table / "tag").mkdir()
    shutil.copy(table / "snapshot" / "snapshot-1", table / "tag" / "tag-kept")
    forget(table, 1, latest=4)

    with pytest.raises(
        UnsupportedFeatureError, match="a branch combined with a version that has expired and exists only as a tag"
    ):
        values(table, "tag:kept")


def test_a_table_without_versions_does_not_hide_those_of_the_branch(table):
    shutil.rmtree(table / "snapshot")

    snapshot = snapshot_explorer.open_table(str(table)).current

    for read in (snapshot.to_arrow, snapshot.count):
        with pytest.raises(UnsupportedFeatureError, match="is combined with the branch 'rt'"):
            read()
    shutil.rmtree(table / "branch" / "branch-rt" / "snapshot")
    assert snapshot_explorer.open_table(str(table)).current.count() == 0


def test_changes_of_a_table_with_a_fallback_are_refused(table):
    with pytest.raises(UnsupportedFeatureError, match="scan.fallback-branch=rt"):
        snapshot_explorer.open_table(str(table)).row_changes(1, 2)
