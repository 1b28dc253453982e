"""`find_tables`: the tables below a folder, in a bounded number of listings."""

import json
import shutil
from pathlib import Path

import pytest

from snapshot_explorer import find_tables, open_table, samples
from snapshot_explorer.core import frames
from snapshot_explorer.errors import InvalidArgumentError, StorageError, TableNotFoundError
from tests.support import filesystems

DATA = Path(__file__).parents[1] / "data"
ICEBERG = "v2_mor_partitioned"


@pytest.fixture
def lake(tmp_path):
    """A lake with a table of each format, and folders that are no tables."""
    shutil.copytree(samples.path("orders"), tmp_path / "shop.db" / "orders")
    shutil.copytree(samples.path("payments"), tmp_path / "bank" / "eu" / "payments")
    shutil.copytree(DATA / "iceberg" / ICEBERG, tmp_path / "logistics" / ICEBERG)
    (tmp_path / "raw" / "day=2026-11-01" / "hour=1").mkdir(parents=True)
    (tmp_path / "documents" / "schema").mkdir(parents=True)
    (tmp_path / "_temporary" / "0").mkdir(parents=True)
    return tmp_path


def test_tables_of_all_formats_are_found_with_their_newest_version_time_and_size(lake):
    found = find_tables(lake)

    assert found.schema.equals(frames.FOUND_TABLES)
    assert found["name"].to_pylist() == ["bank/eu/payments", f"logistics/{ICEBERG}", "shop.db/orders"]
    assert found["format"].to_pylist() == ["delta", "iceberg", "paimon"]
    for row in found.to_dict():
        newest = open_table(row["path"]).current
        files = newest.files()
        assert row["version"] == newest.version
        assert row["committed_at"] == newest.commit.committed_at
        assert row["files"] == files.num_rows
        assert row["size_bytes"] == sum(files["size_bytes"].to_pylist())
        assert row["problem"] is None


def test_folders_inside_of_tables_partitions_and_hidden_folders_are_not_listed(counted, memory_root):
    filesystem, root = memory_root
    for folder in ("lake/db/orders/schema", "lake/db/orders/bucket-0", "lake/raw/day=1", "lake/_temporary/0"):
        filesystem.pipe(f"{root}/{folder}/x", b"")
    filesystem.pipe(f"{root}/lake/db/orders/schema/schema-0", b"{}")
    counted.requests.clear()

    find_tables(f"counted://{root}/lake", sizes=False)

    listed = [request.path for request in counted.requests if request.kind == "list"]
    asked = {str(request) for request in counted.requests}
    assert len([path for path in listed if path.endswith("/lake")]) == 1
    assert asked
    assert not [one for one in asked if "bucket-0" in one or "day=1" in one or "_temporary" in one]


def test_a_link_is_followed_once_and_a_link_to_a_folder_that_it_is_in_not_at_all(lake):
    (lake / "bank" / "round").symlink_to(lake, target_is_directory=True)
    (lake / "newest").symlink_to(lake / "shop.db", target_is_directory=True)
    (lake / "gone").symlink_to(lake / "nowhere", target_is_directory=True)

    found = find_tables(lake, depth=9, sizes=False)["name"].to_pylist()

    assert found == ["bank/eu/payments", f"logistics/{ICEBERG}", "newest/orders", "shop.db/orders"]


def test_a_search_stops_at_its_depth_and_at_its_listings_and_says_so(lake):
    assert find_tables(lake, depth=1).num_rows == 0
    assert find_tables(lake, depth=2)["name"].to_pylist() == [f"logistics/{ICEBERG}", "shop.db/orders"]

    stopped = find_tables(lake, max_listings=2)

    assert "2 folders listed, 5 more not listed: raise max_listings" in stopped.title
    assert stopped.num_rows == 0


def test_a_table_is_its_own_only_table_and_a_folder_without_tables_gives_none(lake):
    assert find_tables(lake / "shop.db" / "orders")["name"].to_pylist() == ["orders"]
    assert (
        "(1 folder listed, 1 folder below not searched: raise depth)" in find_tables(lake / "documents", depth=0).title
    )
    assert "(2 folders listed)" in find_tables(lake / "documents").title
    assert "no tables" in str(find_tables(lake / "raw"))


def test_a_table_that_cannot_be_opened_is_named_with_its_problem(lake):
    shutil.copytree(lake / "bank" / "eu" / "payments", lake / "bank" / "broken")
    newest = max((lake / "bank" / "broken" / "_delta_log").glob("*.json"))
    newest.write_text("<html>")
    log = json.dumps({"protocol": {"minReaderVersion": 99, "minWriterVersion": 99}})
    (lake / "bank" / "future" / "_delta_log").mkdir(parents=True)
    (lake / "bank" / "future" / "_delta_log" / f"{0:020}.json").write_text(log)

    found = {row["name"]: row for row in find_tables(lake / "bank").to_dict()}

    assert newest.name in found["broken"]["problem"]
    assert found["future"]["problem"]
    assert found["eu/payments"]["version"] == 21


def test_names_are_whole_in_plain_text(lake):
    folder = (
        lake / "a folder with a rather long name for the tables of a shop" / "and another one in it, as long as that"
    )
    names = [f"{'orders of the year two thousand and '}{number}" for number in ("twenty-five", "twenty-six")]
    for name in names:
        shutil.copytree(lake / "shop.db" / "orders", folder / name)

    text = repr(find_tables(lake))

    for name in names:
        assert f"{folder.relative_to(lake)}/{name}" in text
    assert str(lake) in text.splitlines()[0]


def test_sizes_that_are_unknown_are_not_checked(lake):
    (lake / "shop.db" / "broken" / "_delta_log").mkdir(parents=True)
    (lake / "shop.db" / "broken" / "_delta_log" / f"{0:020}.json").write_text("<html>")

    found = find_tables(lake / "shop.db")

    assert found["files"].to_pylist()[0] is found["size_bytes"].to_pylist()[0] is None
    assert repr(found).count("not checked") == 2


def test_without_sizes_no_manifest_is_read(lake):
    found = find_tables(lake, sizes=False)

    assert found["version"].null_count == 0
    assert found["files"].null_count == found["size_bytes"].null_count == 3


@pytest.mark.parametrize("wrong", [{"depth": -1}, {"max_listings": 0}])
def test_impossible_bounds_are_refused(lake, wrong):
    with pytest.raises(InvalidArgumentError, match="or more"):
        find_tables(lake, **wrong)


def test_a_missing_folder_names_the_nearest_one(lake):
    with pytest.raises(TableNotFoundError, match=r"Did you mean shop\.db\?"):
        find_tables(lake / "shp.db")
    (lake / "empty").mkdir()
    with pytest.raises(TableNotFoundError, match=r"empty is missing or empty\. Check the path and the options\.$"):
        find_tables(lake / "empty")


def test_an_unreadable_root_is_an_error_and_an_unreadable_folder_a_row(register, memory_root):
    counting = filesystems.counting("guarded")

    class Guarded(counting):
        def ls(self, path, **options):
            if "/secret" in path:
                raise PermissionError("password=hunter2")
            return super().ls(path, **options)

    register(Guarded)
    filesystem, root = memory_root
    filesystem.pipe(f"{root}/lake/secret/x/y", b"")
    filesystem.pipe(f"{root}/secret/x", b"")

    found = find_tables(f"guarded://{root}/lake", storage_options={"password": "hunter2"})

    (row,) = found.to_dict()
    assert "PermissionError: password=***. Check" in str(found)
    assert (row["name"], row["format"]) == ("secret", None)
    assert "secret" in row["problem"]
    assert "hunter2" not in row["problem"]
    with pytest.raises(StorageError):
        find_tables(f"guarded://{root}/secret")
