"""Rows that deletion vectors remove, in the commits of Paimon tables."""

import shutil
from pathlib import Path

import fsspec
import pytest

from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.formats.paimon import Paimon
from snapshot_explorer.storage import Storage
from tests.support import filesystems
from tests.support.paimon.table_builder import PaimonTable

TABLES = Path(__file__).parents[2] / "data" / "paimon"
COUNTS = ("added_rows", "removed_rows", "total_rows")
DV = {"deletion-vectors.enabled": "true"}


@pytest.fixture
def counted():
    found = filesystems.counting("counted")
    fsspec.register_implementation("counted", found, clobber=True)
    return found


def counts(paimon, versions):
    return [tuple(row[name] for name in COUNTS) for row in paimon.commits(versions).to_pylist()]


def table(root="t", options=DV):
    filesystem = fsspec.filesystem("memory")
    return PaimonTable(filesystem, f"/{root}", options=options)


def opened(written, protocol="memory"):
    return Paimon(Storage(f"{protocol}:/{written.root}"))


ROWS = [(number, "a") for number in range(10)]


@pytest.fixture
def deletes():
    """Two files of 10 rows; 3 of the first are deleted, then 2 more, which come back; then the first is rewritten."""
    filesystem = fsspec.filesystem("memory")
    if filesystem.exists("/dv"):
        filesystem.rm("/dv", recursive=True)
    written = table("dv")
    written.commit(ROWS)
    written.commit(ROWS)
    written.commit((), kind="COMPACT", **written.index("index-a", {"data-1.parquet": 3}))
    written.commit((), kind="COMPACT", **written.index("index-b", {"data-1.parquet": 5}, file="index-1"))
    written.commit(ROWS[:1], indexManifest="index-b")
    written.commit((), kind="COMPACT", **written.index("index-c", {"data-1.parquet": 3}, file="index-2"))
    written.commit(ROWS[:7], removed=["data-1.parquet"], kind="COMPACT", **written.index("index-d", {}))
    yield written
    filesystem.rm("/dv", recursive=True)


def test_a_commit_counts_the_rows_that_it_deletes_by_vectors_and_those_that_come_back(deletes):
    assert counts(opened(deletes), range(1, 8)) == [
        (10, 0, 10),
        (10, 0, 20),
        (0, 3, 17),
        (0, 2, 15),
        (1, 0, 16),
        (2, 0, 18),
        (7, 7, 18),
    ]


def test_commits_in_any_order_and_choice_have_the_same_counts(deletes):
    every = counts(opened(deletes), range(1, 8))

    assert counts(opened(deletes), [7, 4, 6, 1]) == [every[at - 1] for at in (7, 4, 6, 1)]


@pytest.mark.parametrize("name", ["dv_1_4", "dv_bitmap64"])
def test_totals_are_the_rows_of_a_real_table_where_nothing_is_left_to_compact(name):
    paimon = Paimon(Storage(str(TABLES / name)))

    assert counts(paimon, range(1, 9)) == [
        (40, 0, 40),
        (40, 40, 40),
        (10, 0, 50),
        (10, 20, 40),
        (3, 0, 43),
        (0, 6, 37),
        (2, 0, 39),
        (2, 3, 38),
    ]
    for version, total in ((2, 40), (4, 40), (6, 37), (8, 38)):
        found = paimon.version(version)
        read = sum(batch.num_rows for split in found.plan().splits for batch in found.read(split, ["k"]))
        assert read == total


def test_rows_that_a_writer_did_not_count_are_unknown():
    paimon = Paimon(Storage(str(TABLES / "dv_append")))

    assert counts(paimon, range(1, 6)) == [(4, 0, 4), (0, None, None), (1, 0, None), (0, None, None), (1, 0, None)]


def test_what_the_oldest_version_deleted_is_unknown(deletes):
    deletes.expire(4)

    assert counts(opened(deletes), [4, 5]) == [(0, None, 15), (1, 0, 16)]


def test_an_index_manifest_that_is_gone_leaves_what_it_counts_unknown(deletes):
    deletes.remove("manifest/index-b")

    assert counts(opened(deletes), range(3, 8)) == [
        (0, 3, 17),
        (None, None, None),
        (None, 0, None),
        (0, None, 18),
        (7, 7, 18),
    ]


def test_changes_are_refused_where_an_index_manifest_is_gone(deletes):
    deletes.remove("manifest/index-b")
    paimon = opened(deletes)

    with pytest.raises(CorruptTableError, match="Version 4 cannot be read: .*index-b"):
        paimon.changes(range(3, 6))
    assert paimon.changes([6, 7]).num_rows


def test_more_deleted_rows_than_rows_are_no_count():
    written = table("contradiction")
    written.commit(ROWS[:2], **written.index("index-a", {"data-1.parquet": 3}))

    assert counts(opened(written), [1]) == [(None, 0, None)]


def test_index_manifests_cost_a_request_each_and_only_where_there_may_be_vectors(counted, deletes):
    plain, dynamic = table("plain", {}), table("dynamic", {})
    for number in range(1, 6):
        plain.commit(ROWS)
        dynamic.commit(ROWS, **dynamic.index(f"index-{number}", {"x": 1}, kind="HASH"))

    def requests(written, versions):
        paimon = opened(written, "counted")
        counted.requests.clear()
        paimon.commits(versions)
        return [one.path.rpartition("/")[2] for one in counted.requests]

    assert len(requests(plain, range(1, 6))) == 3 * 5 + 1  # snapshots, delta lists and their manifests; tags
    assert not [name for name in requests(dynamic, range(1, 6)) if name.startswith("index-")]
    assert sorted(name for name in requests(deletes, range(3, 8)) if name.startswith("index-")) == [
        f"index-{one}" for one in "abcd"
    ]
    assert requests(deletes, [5, 6, 7]).count("snapshot-4") == 1


def test_a_damaged_predecessor_leaves_what_a_commit_deleted_unknown(deletes, caplog):
    deletes.write("snapshot/snapshot-3", b"{")

    assert counts(opened(deletes), [4]) == [(0, None, 15)]
    assert "snapshot/snapshot-3" in caplog.text


def test_a_history_needs_no_schema(tmp_path):
    shutil.copytree(TABLES / "dv_1_4", tmp_path / "t")
    for path in (tmp_path / "t" / "schema").iterdir():
        path.unlink()

    assert counts(Paimon(Storage(str(tmp_path / "t"))), [4]) == [(10, 20, 40)]
