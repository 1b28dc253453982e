"""Which versions can be loaded, by listings, and what asking costs."""

import json
import shutil
from pathlib import Path

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.history import history_of
from tests.support.delta.table_builder import BASE_MILLIS, DeltaTable, add, remove
from tests.support.paimon.table_builder import PaimonTable

DATA = Path(__file__).parents[1] / "data" / "paimon"
WITH_VECTORS = "dv_append"


def readable(table):
    return {row["version"]: (row["readable"], row["reason"]) for row in table.verify().versions.to_dict()}


def missing(table):
    rows = table.verify().versions.to_dict()
    return {row["version"]: (row["files"], row["missing_files"], row["missing_bytes"]) for row in rows}


@pytest.fixture
def paimon(memory_root):
    filesystem, root = memory_root
    table = PaimonTable(filesystem, root)
    for number in range(1, 7):
        table.commit([(number, "a")], removed=[f"data-{number - 2}.parquet"] if number > 2 else [])
    return table


def test_all_versions_of_a_whole_table_can_be_loaded(paimon):
    table = open_table(f"memory://{paimon.root}")

    frame = table.verify().versions

    assert set(frame["readable"].to_pylist()) == {"yes"}
    assert frame["version"].to_pylist() == [6, 5, 4, 3, 2, 1]
    assert "++++++" in frame.title
    assert missing(table)[6] == (2, 0, 0)


def test_versions_that_lack_a_data_file_are_reported_with_what_is_missing(paimon):
    paimon.remove("bucket-0/data-3.parquet")
    table = open_table(f"memory://{paimon.root}")

    assert readable(table)[3] == ("metadata", "1 of 2 files are gone")
    assert [version for version, (answer, _) in readable(table).items() if answer != "yes"] == [4, 3]
    assert missing(table)[4] == (2, 1, paimon.sizes["data-3.parquet"])
    assert "++~~++" in table.verify().versions.title


def test_a_version_that_lacks_its_manifest_list_cannot_be_loaded(paimon):
    table = open_table(f"memory://{paimon.root}")
    table.lifetimes()
    paimon.remove("manifest/manifest-list-4-0")

    assert readable(table)[4] == ("no", "manifest/manifest-list-4-0 does not exist")
    assert readable(table)[5] == ("yes", None)


def test_a_version_that_only_a_tag_holds_is_loaded_through_it(paimon):
    paimon.tag("month", 2)
    paimon.expire(4)
    table = open_table(f"memory://{paimon.root}")

    assert readable(table)[2] == ("yes", "through its tag; the snapshot has expired")
    assert list(readable(table)) == [6, 5, 4, 2]


def test_a_version_of_which_only_the_changelog_is_left_is_metadata(paimon):
    paimon.write("changelog/changelog-1", paimon.filesystem.cat_file(f"{paimon.root}/snapshot/snapshot-1"))
    paimon.expire(3)
    table = open_table(f"memory://{paimon.root}")

    assert readable(table)[1] == ("metadata", "only its changelog is left")
    assert missing(table)[1] == (None, None, None)


def test_it_costs_a_listing_per_folder_and_opens_no_data_file(counted, paimon):
    table = open_table(f"counted://{paimon.root}")
    table.lifetimes()
    counted.requests.clear()

    table.verify()

    kinds = [request.kind for request in counted.requests]
    assert kinds.count("list") <= 13  # one of them for the names of branches
    assert kinds.count("get") <= 6 + 2 * 6
    assert not [request for request in counted.requests if "bucket-0/data" in request.path]


def test_vacuumed_and_cleaned_versions_of_delta_are_distinguished(tmp_path):
    table = DeltaTable(None, tmp_path / "t")
    for version in range(1, 7):
        gone = [remove(f"data-{version - 1}.parquet", millis=BASE_MILLIS)] if version > 1 else []
        table.commit(table.data(f"data-{version}.parquet", [(version, "a")]), *gone)
    table.checkpoint(3)
    table.clean(2)
    table.remove_file("data-4.parquet")
    opened = open_table(table.url)

    answers = readable(opened)

    assert answers[2] == ("no", "its log was cleaned away, or its metadata is gone")
    assert answers[4] == ("metadata", "1 of 1 files are gone")
    assert [answers[version][0] for version in (3, 5, 6)] == ["yes", "yes", "yes"]


def test_files_on_another_storage_are_not_known(tmp_path):
    table = DeltaTable(None, tmp_path / "t")
    table.commit(add("s3://elsewhere/x/data.parquet"))

    assert readable(open_table(table.url))[1] == (None, "1 of 1 files are on another storage")


def test_what_can_be_loaded_can_be_loaded(paimon):
    paimon.remove("bucket-0/data-3.parquet")
    table = open_table(f"memory://{paimon.root}")

    for version, (answer, _) in readable(table).items():
        if answer == "yes":
            assert table.at(version).to_arrow().num_rows == missing(table)[version][0]


def test_a_long_history_is_a_strip_of_runs(memory_root):
    filesystem, root = memory_root
    table = PaimonTable(filesystem, root)
    for number in range(70):
        table.commit([(number, "a")], removed=[f"data-{number}.parquet"] if number else [])
    table.remove("bucket-0/data-9.parquet")

    assert "+8 ~1 +61" in open_table(f"memory://{root}").verify().versions.title


def test_a_table_without_versions_has_none(memory_root):
    filesystem, root = memory_root
    PaimonTable(filesystem, root)

    assert len(open_table(f"memory://{root}").verify().versions) == 0


@pytest.fixture(params=["paimon", "delta"])
def lacking(request, memory_root, tmp_path):
    """A table that lacks a file of versions 2 and 3, which is live in the newest one too; and a way to restore it."""
    if request.param == "paimon":
        filesystem, root = memory_root
        table, file = PaimonTable(filesystem, root), "bucket-0/data-2.parquet"
        for _ in range(3):
            table.commit()
        content = filesystem.cat_file(f"{root}/{file}")
        table.remove(file)
        return open_table(f"memory://{root}"), lambda: table.write(file, content)
    table = DeltaTable(None, tmp_path / "t")
    for version in (1, 2, 3):
        table.commit(table.data(f"data-{version}.parquet", [(version, "a")]))
    file = tmp_path / "t" / "data-2.parquet"
    content = file.read_bytes()
    file.unlink()
    return open_table(table.url), lambda: file.write_bytes(content)


def of_the_history(table):
    return {row["version"]: row["readable"] for row in table.history().to_dict()}


def test_history_and_commits_follow_what_readability_found(lacking):
    table, _ = lacking
    snapshot = table.at(3)
    assert (snapshot.commit.readable, table.at(1).commit.readable) == (None, None)

    found = {row["version"]: row["readable"] for row in table.verify().versions.to_dict()}

    assert [found[version] for version in (1, 2, 3)] == ["yes", "metadata", "metadata"]
    assert of_the_history(table) == found
    assert {version: table.at(version).commit.readable for version in found} == found
    assert snapshot.commit.readable == "metadata"
    assert table.compare(1, 3).commits["readable"].to_pylist() == ["metadata", "metadata"]
    assert history_of(table).commits_frame([3, 1])["readable"].to_pylist() == ["metadata", "yes"]


def test_a_file_that_was_restored_is_found_by_the_next_readability(lacking):
    table, restore = lacking
    table.verify()
    restore()

    table.verify()

    assert set(of_the_history(table).values()) == {"yes"}


def test_another_commit_of_the_same_number_is_not_judged_by_the_one_before(memory_root):
    filesystem, root = memory_root
    paimon = PaimonTable(filesystem, root)
    for _ in range(3):
        paimon.commit()
    paimon.remove("bucket-0/data-3.parquet")
    table = open_table(f"memory://{root}")
    table.verify()
    assert of_the_history(table)[3] == "metadata"

    paimon.rollback(2)
    paimon.commit(millis=1_800_000_000_000)
    table.update()

    assert of_the_history(table)[3] is None


@pytest.mark.parametrize("is_gone", [False, True], ids=["empty", "gone"])
@pytest.mark.parametrize(
    ("path", "versions"),
    [
        ("manifest/manifest-merged-6", (7,)),
        ("manifest/manifest-3", (3, 4, 5, 6)),
        ("manifest/manifest-list-4-0", (4,)),
        ("manifest/manifest-list-4-1", (4,)),
    ],
)
def test_all_manifests_of_a_version_are_looked_for(paimon, path, versions, is_gone):
    paimon.merge_manifests()
    paimon.commit()
    table = open_table(f"memory://{paimon.root}")
    table.lifetimes()
    if is_gone:
        paimon.remove(path)
    else:
        paimon.write(path, b"")

    found = readable(table)

    assert {version for version, (answer, _) in found.items() if answer != "yes"} == set(versions)
    for version in versions:
        assert found[version][0] == "no"
        assert path in found[version][1]
        with pytest.raises(CorruptTableError):
            open_table(f"memory://{paimon.root}").at(version).to_arrow()


def test_schemas_are_looked_for(paimon):
    table = open_table(f"memory://{paimon.root}")
    table.lifetimes()
    schema = paimon.filesystem.cat_file(f"{paimon.root}/schema/schema-0")
    paimon.write("schema/schema-1", schema.replace(b'"id": 0,', b'"id": 1,', 1))
    paimon.remove("schema/schema-0")

    assert set(readable(table).values()) == {("no", "schema/schema-0 does not exist")}


def copied(name, tmp_path):
    """Return a copy of a table that Paimon wrote."""
    return Path(shutil.copytree(DATA / name, tmp_path / name))


@pytest.mark.parametrize("is_gone", [False, True], ids=["empty", "gone"])
def test_index_files_are_looked_for(tmp_path, is_gone):
    folder = copied(WITH_VECTORS, tmp_path)
    table = open_table(str(folder))
    assert {answer for answer, _ in readable(table).values()} == {"yes"}
    newest = table.current
    path = next(one for one in newest.files()["deletion_vector"].to_pylist() if one).partition("@")[0]
    if is_gone:
        (folder / path).unlink()
    else:
        (folder / path).write_bytes(b"")

    answer, reason = readable(table)[newest.version]

    assert answer == "metadata"
    assert reason == "1 of its files with deletion vectors are missing or have another size than recorded"


def test_an_index_manifest_is_looked_for(tmp_path):
    folder = copied(WITH_VECTORS, tmp_path)
    table = open_table(str(folder))
    newest = table.current.version
    table.lifetimes()
    name = json.loads((folder / "snapshot" / f"snapshot-{newest}").read_text())["indexManifest"]
    (folder / "manifest" / name).write_bytes(b"damaged")

    answer, reason = readable(table)[newest]

    assert answer == "no"
    assert name in reason


def test_a_fallback_branch_is_not_looked_for(memory_root):
    filesystem, root = memory_root
    paimon = PaimonTable(filesystem, root, options={"scan.fallback-branch": "other"})
    paimon.commit()
    paimon.fork("other", 1)

    assert readable(open_table(f"memory://{root}")) == {1: (None, "files of its fallback branch are not looked for")}


def test_versions_that_an_unreadable_tag_may_keep_are_neither_lost_nor_in_order(tmp_path):
    shutil.copytree(DATA / "expired", tmp_path / "t")
    (tmp_path / "t" / "tag" / "tag-kept").write_bytes(b"")

    verified = open_table(tmp_path / "t").verify()

    assert not verified.is_ok
    assert "Versions that are not listed were not looked at: tag/tag-kept is not a readable" in repr(verified)
    rows = {row["version"]: row for row in verified.versions.to_dict()}
    assert {row["readable"] for row in rows.values()} == {None, "yes"}
    assert rows[1]["reason"] == "only its changelog is known, and what cannot be read may keep more"
