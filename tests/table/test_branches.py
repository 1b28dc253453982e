"""Refs to versions of other branches, such as `branch:audit`, wherever a version is accepted."""

import json
from collections import Counter
from pathlib import Path

import pytest

from snapshot_explorer import explore, open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError, UnsupportedFeatureError
from tests.support.canonical import canonical_rows
from tests.support.paimon.table_builder import PaimonTable

DATA = Path(__file__).parents[1] / "data"


def cases():
    """Each version of a branch whose rows its engine read: the table's format and name, and the file of the rows."""
    for path in sorted((DATA / "expected").glob("*/*/*.json")):
        expected = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(expected, dict) and expected.get("branch") and not expected["branch"].isdigit():
            yield path.parent.parent.name, path.parent.name, path


CASES = list(cases())


def folder(kind, name):
    return samples.path(name) if kind == "samples" else str(DATA / kind / name)


def multiset(rows):
    return Counter(json.dumps(row, sort_keys=True) for row in canonical_rows(rows))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]}-{case[2].stem}")
def test_rows_of_a_branch_are_those_that_the_engine_reads(case):
    kind, name, path = case
    expected = json.loads(path.read_text(encoding="utf-8"))
    versions = open_table(folder(kind, name), branch=expected["branch"]).versions()
    back = len(versions) - 1 - versions.index(expected["version"])
    table = open_table(folder(kind, name))

    snapshot = table.at(f"branch:{expected['branch']}" + (f"~{back}" if back else ""))

    assert snapshot.version == expected["version"]
    assert canonical_rows(snapshot.to_arrow()) == expected["rows"]
    assert snapshot.count() == len(expected["rows"])


@pytest.mark.parametrize(
    "case",
    {case[:2]: case for case in CASES}.values(),
    ids=lambda case: case[1],
)
def test_rows_that_differ_lead_from_main_to_the_branch_and_back(case):
    kind, name, path = case
    branch = json.loads(path.read_text(encoding="utf-8"))["branch"]
    table = open_table(folder(kind, name))
    for a, b in (("main", f"branch:{branch}"), (f"branch:{branch}", "main")):
        both = table.diff_rows(a, b, preview=True).aligned.names_a
        diff = table.diff_rows(a, b, key=[], columns=list(both))
        names = list(diff.plan.columns)
        before = table.at(a).to_arrow(columns=[both[name] for name in names]).rename_columns(names)
        after = table.at(b).to_arrow(columns=names)
        before, after = before.cast(diff.plan.schema), after.cast(diff.plan.schema)

        gone, came = multiset(diff.before), multiset(diff.after)

        assert multiset(before) - gone + came == multiset(after)
        assert not gone - multiset(before)


@pytest.fixture
def main(memory_root):
    """A table of three versions."""
    table = PaimonTable(*memory_root)
    for key in range(3):
        table.commit([(key, "a")])
    return table


@pytest.fixture
def audit(main):
    """Its branch audit, which begins with version 3 and has a version 4 of its own, as main has."""
    branch = main.fork("audit", 3)
    branch.commit([(9, "audit")])
    main.commit([(3, "main")])
    return branch


def opened(table, **options):
    return open_table(f"memory://{table.root}", **options)


def ids(rows):
    return sorted(rows["id"].to_pylist())


def test_a_version_of_a_branch_is_not_that_of_the_same_number_in_main(audit):
    table = opened(audit)

    assert ids(table.at(4).to_arrow()) == [0, 1, 2, 3]
    assert ids(table.at("branch:audit").to_arrow()) == [0, 1, 2, 9]
    assert table.at("branch:audit").version == table.at("main").version == 4
    assert "version 4 of branch audit" in repr(table.at("branch:audit").files())
    assert table.at("branch:audit^").version == 3
    with pytest.raises(SnapshotNotFoundError, match="No version matches latest~2: it goes back past the earliest"):
        table.at("branch:audit~2")


def test_a_version_of_a_branch_has_a_ref_that_is_valid_whichever_branch_is_open(audit):
    tables = opened(audit), opened(audit, branch="audit")
    snapshots = [tables[0].at(4), tables[1].at(4), tables[1].at("branch:main@3"), tables[0].at("branch:audit@4~1")]

    assert [str(one.ref) for one in snapshots] == ["branch:main@4", "branch:audit@4", "branch:main@3", "branch:audit@3"]
    for table in tables:
        for snapshot in snapshots:
            again = table.at(snapshot.ref)
            assert (again.version, again.branch) == (snapshot.version, snapshot.branch)
            assert ids(again.to_arrow()) == ids(snapshot.to_arrow())
    assert str(open_table(samples.path("payments")).at(5).ref) == "5"
    with pytest.raises(SnapshotNotFoundError, match="Version 9 does not exist"):
        tables[0].at("branch:audit@9").to_arrow()


def test_a_query_reads_versions_of_two_branches_under_one_number(audit):
    table = opened(audit)
    for ref in ("branch:audit", "audit"):
        only = table.sql(f"select id from this version as of '{ref}' except select id from this version as of 4")
        assert only["id"].tolist() == [9]
    assert table.sql("select count(*) n from this@branch:audit~1")["n"].tolist() == [3]
    assert table.sql("select max(id) n from this version as of 'branch:audit@4'")["n"].tolist() == [9]
    assert table.sql("select max(id) n from this@branch:audit@4")["n"].tolist() == [9]


def test_a_comparison_of_two_branches_is_not_one_of_their_numbers(audit):
    comparison = opened(audit).compare("main", "branch:audit")

    assert [(row["change"], row["path"]) for row in comparison.files.to_dict()] == [
        ("removed", "bucket-0/data-4.parquet"),
        ("added", "bucket-0/data-4-audit.parquet"),
    ]
    assert comparison.proof == "At most 2 rows changed: 1 file removed, 1 added; 3 of 5 files are shared."
    assert comparison.commits["version"].to_pylist() == [4]
    text = repr(comparison)
    assert "version 4 of branch main to 4 of branch audit" in text
    assert "1 append, since version 3" in text
    assert "None" not in text
    assert len(comparison.manifests) == 5


def test_rows_of_two_branches_differ_though_their_numbers_are_equal(audit):
    table = opened(audit)

    diff = table.diff_rows("main", "branch:audit", key=[])

    assert ids(diff.deleted) == [3]
    assert ids(diff.inserted) == [9]
    assert diff.plan.shared_files == 3
    assert diff.plan.call.endswith(".diff_rows('branch:main', 'branch:audit', key=[])")
    assert "version 4 of branch main to 4 of branch audit" in repr(diff)


def test_rows_with_the_same_key_are_looked_for_in_the_branch_of_the_range(main):
    branch = main.fork("audit", 3)
    branch.commit([(0, "audit")])
    main.commit([(3, "main")])

    found = opened(main).anomalies([], "3..branch:audit", key="id")

    assert [(row["version"], row["rule"]) for row in found.to_dict()] == [(4, "several rows have the same id")]


def test_a_version_that_the_branch_has_too_is_compared_in_the_history_of_the_branch(main):
    branch = main.fork("audit", 3)
    for key in (8, 9):
        branch.commit([(key, "audit")])
    table = opened(main)

    comparison = table.compare("main", "branch:audit")

    assert (comparison.a, comparison.b) == (3, 5)
    assert comparison.commits["version"].to_pylist() == [5, 4]
    assert table.compare("branch:audit", 3).a == 5
    assert table.diff_rows(3, "branch:audit").plan.call == f"open_table('{table.path}', branch='audit').diff_rows(3, 5)"
    assert table.history("main..branch:audit")["version"].to_pylist() == [5, 4, 3]
    assert table.at("branch:audit~1").file_changes(since="3")["version"].to_pylist() == [3, 4]
    assert ids(table.row_changes("main", "branch:audit")) == [8, 9]
    assert table.bisect("id = 9", good=3, bad="branch:audit").version == 5
    assert table.blame("id = 8", between="..branch:audit").lines["version"].to_pylist() == [4]
    assert table.profile_over("id", "3..branch:audit").to_arrow()["version"].to_pylist() == [5, 4, 3]
    assert table.health("branch:audit").version == 5


def test_no_versions_lie_between_those_of_two_branches(audit):
    table = opened(audit)
    for call in (
        lambda: table.history("main..branch:audit"),
        lambda: table.bisect("id = 9", "main", "branch:audit"),
        lambda: table.row_changes("main", "branch:audit"),
    ):
        with pytest.raises(InvalidArgumentError, match=r"on two branches, and neither has both .* of both is 3\. Use"):
            call()


def test_main_is_the_main_branch_whichever_is_open(audit):
    table = opened(audit, branch="audit")

    assert ids(table.at("main").to_arrow()) == [0, 1, 2, 3]
    assert ids(table.at("branch:audit").to_arrow()) == [0, 1, 2, 9]
    assert ids(table.diff_rows("main", "latest", key=[]).inserted) == [9]


def test_a_tag_called_main_makes_the_word_ambiguous(audit, main):
    main.tag("main", 1)
    table = opened(audit)

    with pytest.raises(InvalidArgumentError, match="Write tag:main or branch:main"):
        table.at("main")
    assert table.at("branch:main").version == 4


def test_an_unknown_branch_names_those_that_exist(audit):
    table = opened(audit)

    with pytest.raises(
        SnapshotNotFoundError, match=r"no branch 'audi'\. Branches: audit, main\. Did you mean branch:audit"
    ):
        table.at("branch:audi")
    with pytest.raises(InvalidArgumentError, match="'audit' is not a valid ref. Did you mean branch:audit"):
        table.at("audit")


def test_delta_tables_have_no_branches():
    table = open_table(samples.path("payments"))
    for ref in ("branch:audit", "main"):
        with pytest.raises(
            InvalidArgumentError, match="^payments is a Delta Lake table, and this format has no branches"
        ):
            table.at(ref)


def with_column(branch, name):
    """Add a column under the next field id, in a schema 1 of the branch's own, and commit with it."""
    schema = json.loads(branch.filesystem.cat_file(f"{branch.root}/schema/schema-0"))
    schema["fields"].append({"id": 2, "name": name, "type": "STRING"})
    branch.write(f"{branch.own}schema/schema-1", json.dumps(schema | {"id": 1, "highestFieldId": 2}).encode())
    branch.commit([(7, "a")], schemaId=1)


def test_columns_that_two_branches_added_under_one_id_are_not_taken_for_one(audit, main):
    with_column(audit, "note")
    with_column(main, "city")
    table = opened(main)

    for call in (table.compare, table.diff_rows):
        with pytest.raises(UnsupportedFeatureError, match=r"'city' and 'note' were added on different branches.* id 2"):
            call("main", "branch:audit")
    assert table.at("branch:audit").to_arrow().column_names == ["id", "name", "note"]


def test_an_explorer_says_that_its_history_lacks_a_version_of_a_branch(audit):
    explorer = explore(opened(audit))
    explorer.wait()

    explorer.choose("branch:audit")
    explorer.wait()
    note = explorer.state.note
    explorer.choose("branch:audit~1")
    explorer.wait()

    assert "branch:audit is version 4 of branch audit, which branch main does not have. Open that branch" in note
    assert explorer.state.b == 3


def test_iceberg_compares_a_branch_with_main():
    table = open_table(samples.path("shipments"))

    comparison = table.compare("main", "branch:reweigh")

    assert (comparison.a, comparison.b) == (16, 7)
    assert comparison.commits["version"].to_pylist() == [7]
    assert table.compare("branch:reweigh~1", "main").commits["version"].to_pylist() == [16, 15, 14, 13, 12, 11, 8]
    assert table.history("3..branch:reweigh")["version"].to_pylist() == [7, 6, 5, 4, 3]
    assert (
        table.sql("select count(*) n from this version as of 'reweigh'")["n"][0] == table.at("branch:reweigh").count()
    )
