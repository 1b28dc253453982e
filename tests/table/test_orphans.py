"""`Table.orphans`: files that no metadata names, and what must not be called so."""

import os
import shutil
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.analysis.retention import find_orphans
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.history import history_of
from snapshot_explorer.storage import Storage
from tests.support.delta.table_builder import DeltaTable
from tests.support.filesystems import counting
from tests.support.toy_format import Toy

DATA = Path(__file__).parents[1] / "data"
OLD = timedelta(days=10).total_seconds()
README = "README"
"""It tells what a table in `tests/data` is, and is none of its files."""
UNUSED_VECTORS = {
    "delta/mapping_vectors_feed": {"deletion_vector_252fe3e7-9e0e-4614-b391-dfd3997535e8.bin"},
    "delta/row_tracking": {"deletion_vector_5824e0d5-299c-4bcc-ba17-0adfc0e488a5.bin"},
    "delta/widened_nested": {"deletion_vector_f928c384-740b-43a5-9499-aafb8abfd6a2.bin"},
}
"""Files that Delta on Spark wrote and then did not name."""
REFUSED = {"hudi/foreign_table_format", "hudi/table_version_10"}
PLANTED = {
    "delta/checkpoint_parts": {
        "part-00000-lost.snappy.parquet": ("data", "deleted"),
        "deletion_vector_11111111-1111-4111-8111-111111111111.bin": ("deletion vector", "deleted"),
        "_delta_log/.00000000000000000007.json.1f.tmp": ("temporary", "ignored"),
        "_change_data/cdc-00000-lost.snappy.parquet": ("change data", "deleted"),
    },
    "iceberg/branches_tags": {
        "data/00000-0-lost-00001.parquet": ("data", "deleted"),
        "data/00000-0-lost-00001-deletes.parquet": ("deletes", "deleted"),
        "metadata/lost-m0.avro": ("manifest", "deleted"),
        "data/_lost.parquet": ("data", "ignored"),
        "metadata/lost.stats": ("statistics", "deleted"),
    },
    "paimon/dv": {
        "bucket-0/data-lost-0.parquet": ("data", "deleted"),
        "bucket-0/changelog-lost-0.parquet": ("change data", "deleted"),
        "manifest/manifest-lost-0": ("manifest", "deleted"),
        "index/index-lost-0": ("index", "deleted"),
        "snapshot/.snapshot-7.lost.tmp": ("temporary", "deleted"),
        "notes.txt": ("other", "ignored"),
    },
    "hudi/v9_cow_basic": {
        "p=x/aaaaaaaa-0000-4000-8000-000000000000-0_0-1-2_20261123033830000.parquet": ("data", "ignored"),
        ".hoodie/.temp/20261123033830000/p=x/a_0-1-2_20261123033830000.parquet.marker.CREATE": (
            "temporary",
            "ignored",
        ),
    },
}


def copied(name, folder):
    """Return a table of `tests/data` whose files are old."""
    root = folder / "table"
    shutil.copytree(DATA / name, root, ignore=shutil.ignore_patterns(README))
    age(root)
    return root


def age(root, seconds=OLD):
    then = time.time() - seconds
    for path in root.rglob("*"):
        os.utime(path, (then, then))


def plant(root, *names, seconds=OLD):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"lost")
        then = time.time() - seconds
        os.utime(root / name, (then, then))


def rows_of(orphans):
    return {row["path"]: row for row in orphans.files.to_arrow().to_pylist()}


TABLES = [
    f"{folder}/{path.name}"
    for folder in ("delta", "hudi", "iceberg", "paimon")
    for path in sorted((DATA / folder).iterdir())
    if path.is_dir()
]


def test_tables_of_the_real_engines_have_no_orphans_but_those_that_engines_left():
    found = {name: rows_of(open_table(str(DATA / name)).orphans("0d")) for name in TABLES if name not in REFUSED}
    lost = {name: {path for path, row in rows.items() if row["is_orphan"]} - {README} for name, rows in found.items()}

    assert len(found) > 90
    assert {name: paths for name, paths in lost.items() if paths} == UNUSED_VECTORS


@pytest.mark.parametrize("name", PLANTED)
def test_planted_files_are_orphans_with_their_kind_and_what_clean_up_does(tmp_path, name):
    root = copied(name, tmp_path)
    plant(root, *PLANTED[name])
    orphans = open_table(str(root)).orphans()

    found = {path: (row["kind"], row["clean_up"]) for path, row in rows_of(orphans).items()}
    assert found == PLANTED[name]
    assert all(row["is_orphan"] and row["size_bytes"] == 4 for row in rows_of(orphans).values())
    assert orphans.is_complete
    count = len(PLANTED[name])
    assert orphans.verdict == f"{count} files older than 3 days are orphaned, {4 * count} B."


@pytest.mark.parametrize("name", PLANTED)
def test_young_files_are_left_out_and_counted(tmp_path, name):
    root = copied(name, tmp_path)
    plant(root, *PLANTED[name], seconds=3600)
    orphans = open_table(str(root)).orphans()

    assert not len(orphans.files)
    assert orphans.verdict == "No file older than 3 days is orphaned."
    assert f"{len(PLANTED[name])} files without a name in the metadata, left out" in repr(orphans)
    assert len(open_table(str(root)).orphans("30m").files) == len(PLANTED[name])


DAMAGED = {
    "delta/checkpoint_parts": "_delta_log/00000000000000000001.json",
    "iceberg/branches_tags": "metadata/*-m0.avro",
    "paimon/dv": "manifest/manifest-[0-9a-f]*-0",
    "hudi/v9_cow_basic": ".hoodie/timeline/*33829855_*.commit",
}


@pytest.mark.parametrize(
    ("name", "what"),
    # A completed instant of Hudi that is gone is a write that is running.
    [
        *(
            (name, what)
            for name in PLANTED
            for what in ("damaged", "gone")
            if (name, what) != ("hudi/v9_cow_basic", "gone")
        ),
        *((name, "another in its place") for name in ("iceberg/branches_tags", "paimon/dv")),
    ],
)
def test_no_file_is_an_orphan_where_metadata_that_may_name_it_was_not_read(tmp_path, name, what):
    root = copied(name, tmp_path)
    plant(root, *PLANTED[name])
    metadata, *others = sorted(root.glob(DAMAGED[name]))
    if what == "gone":
        metadata.unlink()
    else:
        metadata.write_bytes(b"{" if what == "damaged" else others[0].read_bytes())
    orphans = open_table(str(root)).orphans()

    assert orphans.unread
    assert not orphans.is_complete
    assert {row["is_orphan"] for row in rows_of(orphans).values()} == {None}
    assert set(PLANTED[name]) <= set(rows_of(orphans))
    assert orphans.verdict.startswith("Which files are orphaned is unknown, because not everything could be read.")
    assert "not checked" in repr(orphans)


def test_no_log_file_is_an_orphan_where_the_rollback_that_may_name_it_is_blank(tmp_path):
    root = copied("hudi/mor_v6_nonpartitioned_rollback", tmp_path)
    (root / ".hoodie" / "20250126040936578.rollback").write_bytes(b" \n")
    orphans = open_table(str(root)).orphans("0d")

    assert "rollback is empty" in orphans.unread[0]
    assert not any(row["is_orphan"] for row in rows_of(orphans).values())


def test_files_of_a_write_that_is_running_are_left_out_whatever_their_age(tmp_path):
    root = copied("hudi/v9_mor_failed_write", tmp_path)
    plant(root, ".hoodie/.temp/20261123034834027/p=x/a_0-1-2_20261123034834027.parquet.marker.CREATE")
    orphans = open_table(str(root)).orphans()

    assert not len(orphans.files)
    assert "of commits under way, left out" in repr(orphans)


def test_files_whose_commit_lands_after_the_folder_was_listed_are_named_by_it(memory_root, register):
    filesystem, root = memory_root
    table = DeltaTable(filesystem, root)
    table.commit(table.data("a.parquet", [(1, "a")]))
    waiting = [table.data("b.parquet", [(2, "b")])]
    assert list(rows_of(open_table(f"memory://{root}").orphans("0d"))) == ["b.parquet"]

    class WithWriter(counting()):
        def ls(self, path, **options):
            listed = super().ls(path, **options)
            if waiting and not path.endswith("_delta_log"):
                table.commit(waiting.pop())
            return listed

    register(WithWriter)
    assert not len(open_table(f"counted://{root}").orphans("0d").files)
    assert not waiting


def test_a_checksum_file_is_as_the_file_that_it_is_of(tmp_path):
    root = copied("delta/dv_partitioned", tmp_path)
    plant(root, "_delta_log/.00000000000000000000.json.crc", ".lost.parquet.crc")

    assert list(rows_of(open_table(str(root)).orphans())) == [".lost.parquet.crc"]


def test_a_staged_commit_that_may_count_leaves_it_unknown_and_a_published_one_does_not(tmp_path):
    root = copied("delta/checkpoint_parts", tmp_path)
    plant(root, "lost.parquet", "_delta_log/_staged_commits/00000000000000000008.aa.json")
    assert rows_of(open_table(str(root)).orphans())["lost.parquet"]["is_orphan"]

    plant(root, "_delta_log/_staged_commits/00000000000000000009.bb.json")
    orphans = open_table(str(root)).orphans()
    assert rows_of(orphans)["lost.parquet"]["is_orphan"] is None
    assert "is a staged commit of version 9: a catalog decides whether it counts." in orphans.unread[0]


def test_files_of_all_branches_and_tags_are_named(tmp_path):
    root = copied("iceberg/branches_tags", tmp_path)

    for branch in history_of(open_table(str(root))).branch_names():
        assert not len(open_table(str(root), branch=branch).orphans().files)


def test_files_that_may_belong_to_a_table_inside_are_not_called_orphans(tmp_path):
    root = copied("delta/dv_partitioned", tmp_path)
    shutil.copytree(DATA / "delta/types", root / "old/types")
    age(root)
    rows = rows_of(open_table(str(root)).orphans())

    assert rows
    assert all(row["is_orphan"] is None and path.startswith("old/types/") for path, row in rows.items())
    assert {row["reason"] for row in rows.values()} == {
        "its folder has metadata of its own: it may belong to another table"
    }


def test_a_newer_metadata_file_than_the_one_that_was_opened_leaves_it_unknown(tmp_path):
    root = copied("iceberg/registered_again", tmp_path)
    plant(root, "data/lost.parquet")
    orphans = open_table(str(next((root / "metadata").glob("00002-*.metadata.json")))).orphans()

    assert any("a catalog decides which one is current" in reason for reason in orphans.unread)
    assert rows_of(orphans)["data/lost.parquet"]["is_orphan"] is None


def test_each_folder_is_listed_once_beside_what_the_metadata_needs(memory_root, register):
    filesystem, root = memory_root
    filesystem.put(str(DATA / "delta/dv_partitioned"), root, recursive=True)
    system = register(counting())
    table = open_table(f"counted://{root}")
    system.requests.clear()
    table.orphans()
    listed = Counter(request.path for request in system.requests if request.kind == "list")

    log = [path for path in listed if path.endswith("_delta_log")]
    assert all(count == 1 for path, count in listed.items() if path not in log)
    assert not any(request.path.endswith(".parquet") for request in system.requests if request.kind == "get")


@pytest.mark.parametrize("older_than", ["soon", 3, timedelta(days=-1)])
def test_an_age_that_is_not_one_is_refused(older_than):
    with pytest.raises(InvalidArgumentError, match="is not a duration. Use a whole number with a unit"):
        open_table(str(DATA / "delta/types")).orphans(older_than)


def test_a_format_that_does_not_list_what_it_names_is_refused_by_name(tmp_path):
    storage = Storage(str(tmp_path))
    with pytest.raises(UnsupportedFeatureError, match="Orphaned files of toy tables are not searched"):
        find_orphans(Toy(storage), storage, older_than="0d", name="toy", now=datetime.now(UTC))
