"""Real tables that Paimon wrote, and what happens to tables that are damaged or change while they are read."""

import json
import pickle
import shutil
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import samples
from snapshot_explorer.core import frames
from snapshot_explorer.errors import (
    CorruptTableError,
    SnapshotNotFoundError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.formats.paimon import Paimon
from snapshot_explorer.storage import Storage
from tests.support.paimon.table_builder import PaimonTable

HERE = Path(samples.__file__).parent
DATA = Path(__file__).parents[2] / "data"
TABLES = sorted(
    folder.parent for root in (HERE, DATA) for folder in root.rglob("schema") if folder.parent.parent.name != "branch"
)
STORY = {
    "orders": (
        "append append append append compact append append append append analyze append compact "
        "append append overwrite append append compact"
    ),
    "events": (
        "append append append append append append append compact overwrite append analyze append append compact append"
    ),
}


def opened(path, branch=None):
    return Paimon(Storage(str(path)), branch=branch)


@pytest.fixture(params=TABLES, ids=lambda path: path.name)
def real(request):
    return request.param


@pytest.fixture
def table(memory_root):
    filesystem, root = memory_root
    return PaimonTable(filesystem, root)


def in_memory(table):
    return Paimon(Storage(f"memory:/{table.root}"))


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(HERE / "orders", tmp_path / "orders")
    return tmp_path / "orders"


@dataclass(frozen=True)
class History:
    """A branch of a table, read once for all tests."""

    paimon: Paimon
    commits: pa.Table
    """Those of the versions that can be loaded: of others only a changelog is left."""

    @cached_property
    def versions(self):
        return self.commits["version"].to_pylist()

    @cached_property
    def files(self):
        """The live files of each version."""
        return {version: self.paimon.version(version).files() for version in self.versions}

    @cached_property
    def changes(self):
        """The changes of each version."""
        return {version: self.paimon.changes([version]) for version in self.versions}


@cache
def histories(path):
    """Return every branch of a table that has versions."""
    found = []
    for branch in (None, *(one.name for one in opened(path).branches.others())):
        paimon = opened(path, branch)
        commits = paimon.commits(paimon.listing(0).versions)
        found.append(History(paimon, commits.filter(commits["readable"].is_null())))
    return [history for history in found if history.versions]


def test_the_tables_are_there():
    assert {"orders", "events", "expired", "manifests_orc", "written_by_0_7"} <= {path.name for path in TABLES}


def test_a_table_without_snapshots_has_no_version():
    empty = opened(DATA / "paimon" / "empty")

    assert empty.listing().versions == empty.listing(0).versions == ()
    assert empty.version(None).schema.columns != ()


def test_expired_versions_are_known_by_their_changelogs():
    expired = opened(DATA / "paimon" / "expired")
    listing = expired.listing(0)
    commits = expired.commits(listing.versions).to_pylist()

    assert listing.versions == tuple(range(1, 12))
    assert {row["version"]: row["readable"] for row in commits} == {
        1: None,
        **dict.fromkeys(range(2, 8), "metadata"),
        **dict.fromkeys(range(8, 12)),
    }
    assert commits[0]["tags"] == ["kept"]
    changes = expired.changes(listing.versions)
    assert set(changes.filter(pc.equal(changes["version"], 4))["list"].to_pylist()) <= {"changelog"}
    with pytest.raises(SnapshotNotFoundError, match="Version 4 has expired. Only its changelog is left"):
        expired.version(4).files()


def test_deletion_vectors_are_found_by_file():
    dv = opened(DATA / "paimon" / "dv")
    newest = dv.listing().latest
    files = dv.version(newest).files().to_pylist()

    with_vector = [row for row in files if row["deletion_vector"]]
    assert with_vector
    for row in with_vector:
        path, _, offset = row["deletion_vector"].partition("@")
        content = (DATA / "paimon" / "dv" / path).read_bytes()
        assert content[int(offset) + 4 : int(offset) + 8] == bytes.fromhex("5e43f2d0")


@pytest.mark.parametrize("name", ["written_by_0_7", "written_by_0_8", "written_by_0_9", "written_by_1_4"])
def test_every_writer_since_0_7_is_read(name):
    paimon = opened(DATA / "paimon" / name)

    assert paimon.commits([1, 2, 3, 4])["kind"].to_pylist() == ["append", "append", "append", "compact"]


def test_old_partition_values_name_the_folders_that_are_there():
    for name in ("odd_names", "partition_names"):
        paimon = opened(DATA / "paimon" / name)
        for path in paimon.version(paimon.listing().latest).files()["path"].to_pylist():
            assert (DATA / "paimon" / name / path).is_file()


def test_the_hint_and_the_folder_agree(real):
    for history in histories(real):
        assert history.paimon.listing().latest == history.versions[-1]
        assert history.paimon.listing().notes == ()


def test_live_rows_add_up_to_what_the_writer_counted(real):
    for history in histories(real):
        for row in history.commits.to_pylist():
            rows = history.files[row["version"]]["rows"]
            assert (pc.sum(rows).as_py() or 0) == json.loads(row["details"])["totalRecordCount"]


def test_added_less_removed_rows_are_what_the_total_grows_by(real):
    for history in histories(real):
        rows = {row["version"]: row for row in history.commits.to_pylist()}
        for version, row in rows.items():
            before = rows.get(version - 1, {"total_rows": None})["total_rows"]
            if None not in (before, row["total_rows"], row["added_rows"]):
                assert row["added_rows"] - row["removed_rows"] == row["total_rows"] - before


def test_added_less_removed_rows_are_what_the_writer_counted_where_no_vector_deletes_any(real):
    for history in histories(real):
        for row in history.commits.to_pylist():
            if not any(history.files[row["version"]]["deletion_vector"].is_valid().to_pylist()):
                assert row["added_rows"] - row["removed_rows"] == json.loads(row["details"])["deltaRecordCount"]


def test_a_version_is_the_one_before_with_its_changes(real):
    for history in histories(real):
        live = set()
        for version, files in history.files.items():
            if version - 1 in history.files:
                changes = history.changes[version]
                delta = changes.filter(pc.equal(changes["list"], "delta")).to_pylist()
                live -= {(row["path"], row["level"]) for row in delta if row["change"] == "remove"}
                live |= {(row["path"], row["level"]) for row in delta if row["change"] == "add"}
                assert {(row["path"], row["level"]) for row in files.to_pylist()} == live
            live = {(row["path"], row["level"]) for row in files.to_pylist()}


def test_changes_of_all_versions_are_those_of_each(real):
    for history in histories(real):
        together = history.paimon.changes(history.versions)

        assert together.equals(pa.concat_tables(history.changes.values()))
        backwards = history.paimon.changes(history.versions[::-1])
        assert backwards["version"].to_pylist() == together["version"].to_pylist()[::-1]


def test_frames_have_their_schema(real):
    for history in histories(real):
        newest = history.paimon.version(history.versions[-1])
        assert history.commits.schema == frames.COMMITS
        assert newest.manifests().schema == frames.MANIFESTS
        assert history.changes[history.versions[-1]].schema == frames.CHANGES
        assert history.files[history.versions[-1]].schema == frames.FILES
        assert history.paimon.commits([]).schema == frames.COMMITS
        assert history.paimon.changes([]).schema == frames.CHANGES


def test_files_are_on_the_disk_with_their_size_and_rows(real):
    for history in histories(real):
        for row in history.files[history.versions[-1]].to_pylist():
            path = real / row["path"]
            assert path.stat().st_size == row["size_bytes"]
            if path.suffix == ".parquet":
                assert pq.read_metadata(path).num_rows == row["rows"]


def test_statistics_hold_for_the_values_in_the_files(real):
    for history in histories(real):
        newest = history.paimon.version(history.versions[-1])
        for row in newest.files(statistics=True).to_pylist():
            if row["path"].endswith(".parquet"):
                check_statistics(real, newest.schema, row)


def check_statistics(real, schema, row):
    raw = json.loads((real / "schema" / f"schema-{row['schema_id']}").read_text())
    written_as = {field["id"]: field["name"] for field in raw["fields"]}
    values = pq.ParquetFile(real / row["path"]).read()
    for column in schema.columns:
        if written_as.get(column.id) not in values.column_names:
            spread = "row-tracking.enabled" in raw["options"]  # then another file may have the column
            assert row["null_count"][column.name] == (None if spread else row["rows"])
            continue
        stored = values[written_as[column.id]]
        assert row["null_count"][column.name] in (stored.null_count, None)
        least, greatest = row["lower"][column.name], row["upper"][column.name]
        if least is not None:
            assert least <= pc.min(stored).as_py()
            assert greatest >= pc.max(stored).as_py()
    for key in row.get("min_key", {}):
        stored = values[written_as[next(column.id for column in schema.columns if column.name == key)]]
        assert row["min_key"][key] <= pc.min(stored).as_py()
        assert row["max_key"][key] >= pc.max(stored).as_py()


def test_manifests_count_their_entries(real):
    for history in histories(real):
        for commit in history.commits.to_pylist():
            manifests = history.paimon.version(commit["version"]).manifests()
            delta = manifests.filter(pc.equal(manifests["list"], "delta"))
            assert (pc.sum(delta["added_files"]).as_py() or 0) == commit["added_files"]
            assert (pc.sum(delta["removed_files"]).as_py() or 0) == commit["removed_files"]
            for row in manifests.to_pylist():
                assert (real / row["path"]).exists()
                assert row["list"] == "index" or (real / row["path"]).stat().st_size == row["size_bytes"]


@pytest.mark.parametrize("name", STORY)
def test_the_kinds_of_the_commits_are_those_of_the_story(name):
    paimon = opened(HERE / name)

    assert " ".join(paimon.commits(paimon.listing(0).versions)["kind"].to_pylist()) == STORY[name]


def test_whether_an_expired_version_can_be_loaded_is_unknown_where_a_tag_cannot_be_read(tmp_path):
    shutil.copytree(DATA / "paimon" / "expired", tmp_path / "t")
    before = opened(tmp_path / "t").commits(opened(tmp_path / "t").listing(0).versions).to_pylist()
    tagged = next(row["version"] for row in before if row["tags"])
    (tmp_path / "t" / "tag" / "tag-kept").write_bytes(b"")

    after = opened(tmp_path / "t")
    rows = {row["version"]: row for row in after.commits(after.listing(0).versions).to_pylist()}

    assert (rows[tagged]["readable"], rows[tagged]["tags"]) == (None, None)
    assert {row["readable"] for row in rows.values()} == {None}
    assert "metadata" in {row["readable"] for row in before}


def test_tags_and_branches_are_those_of_the_story():
    orders = opened(HERE / "orders")

    assert orders.tags() == {"opening": 1, "v1": 5}
    assert [one.name for one in orders.branches.others()] == ["dev"]
    assert opened(HERE / "events").tags() == {"week-45": 14}
    assert orders.commits([5, 6])["tags"].to_pylist() == [["v1"], []]


def test_a_branch_has_a_history_of_its_own():
    dev = opened(HERE / "orders", "dev")

    assert dev.listing(0).versions == (5, 6)
    assert dev.commits([6])["identifier"].to_pylist() != opened(HERE / "orders").commits([6])["user"].to_pylist()
    assert opened(HERE / "orders", "main").listing() == opened(HERE / "orders").listing()


def test_an_unknown_branch_names_those_that_are_there():
    with pytest.raises(TableNotFoundError, match="orders has no branch 'prod'. Branches: main, dev."):
        opened(HERE / "orders", "prod")
    with pytest.raises(TableNotFoundError, match=r"Branches: main, dev\. Did you mean main\?"):
        opened(HERE / "orders", "mian")


def test_a_version_has_its_own_schema_and_the_newest_options():
    orders = opened(HERE / "orders")

    assert [column.name for column in orders.version(1).schema.columns][1] == "customer"
    assert [column.name for column in orders.version(None).schema.columns][1] == "buyer"
    assert orders.version(18).schema.primary_keys == ("order_id",)
    assert orders.version(1).properties == orders.version(None).properties
    assert orders.version(1).arrow_schema.names == [column.name for column in orders.version(1).schema.columns]


def test_partitions_are_text_and_least_and_greatest_per_manifest():
    events = opened(HERE / "events")

    assert set(map(tuple, events.version(1).files()["partition"].to_pylist())) == {(("day", "2026-11-01"),)}
    manifests = events.version(3).manifests().to_pylist()
    assert (manifests[-1]["partition_min"], manifests[-1]["partition_max"]) == (
        [("day", "2026-11-01")],
        [("day", "2026-11-02")],
    )


def test_files_know_the_version_that_added_them_where_it_is_this_one():
    orders = opened(HERE / "orders")

    added = orders.version(6).files()["added_version"].to_pylist()

    assert added.count(6) == orders.commits([6])["added_files"][0].as_py() > 0
    assert set(added) == {6, None}


def test_compactions_change_no_data():
    changes = opened(HERE / "orders").changes([4, 5])

    kinds = {(row["version"], row["data_change"]) for row in changes.to_pylist()}
    assert kinds == {(4, True), (5, False)}


class Day:
    """A condition on the day, as the layers above make them."""

    columns = frozenset({"day", "event_id"})

    def __init__(self, day):
        self.day = day
        self.asked = []

    def on(self, columns):
        self.asked.append(columns)
        return self if columns == {"day"} else None

    def mask(self, rows):
        return pc.fill_null(pc.equal(rows["day"], self.day), fill_value=False).combine_chunks()

    def ruled_out(self, bounds):
        return pa.nulls(len(bounds.rows), pa.string())

    def points(self, schema):
        return None


def test_only_partitions_that_may_match_are_returned():
    events, day = opened(HERE / "events"), Day("2026-11-02")
    every = events.version(15).files()

    some = events.version(15).files(day)
    splits = events.version(15).plan(day).splits

    assert some.equals(every.filter(pc.equal(pc.map_lookup(every["partition"], "day", "first"), "2026-11-02")))
    assert 0 < len(some) < len(every)
    assert sorted(path for split in splits for path in split.files) == sorted(some["path"].to_pylist())
    assert day.asked == [{"day"}] * 4  # for manifests and for files, each time


def test_splits_cover_the_live_files_and_travel():
    orders = opened(HERE / "orders")

    splits = pickle.loads(pickle.dumps(orders.version(9).plan().splits))

    assert sorted(path for split in splits for path in split.files) == sorted(
        orders.version(9).files()["path"].to_pylist()
    )
    rows = pa.Table.from_batches([batch for split in splits for batch in orders.version(9).read(split, ["order_id"])])
    assert len(rows) == 47


@pytest.mark.parametrize(
    ("folders", "recognized"),
    [
        (["schema/schema-0", "snapshot/LATEST"], True),
        (["schema/schema-0"], True),
        (["snapshot/snapshot-1"], True),
        (["schema/other.json"], False),
        (["schema/schema-0", "_delta_log/0.json"], False),
        (["data/x.parquet"], False),
        ([], False),
    ],
)
def test_a_folder_is_recognized_by_its_schema_and_snapshots(tmp_path, folders, recognized):
    for path in folders:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("{}")

    storage = Storage(str(tmp_path))
    assert Paimon.recognizes(storage, storage.folders("")) is recognized


def test_a_table_of_another_kind_is_refused_by_name(memory_root):
    filesystem, root = memory_root
    other = PaimonTable(filesystem, root, options={"type": "format-table"})

    with pytest.raises(UnsupportedFeatureError, match="is a format-table, which is not supported"):
        in_memory(other).listing()


def test_a_table_without_schema_files_says_so(table):
    table.commit()
    table.remove("schema/schema-0")

    with pytest.raises(TableNotFoundError, match="has no schema file in schema/.*copy it whole"):
        _ = in_memory(table).version(None).schema


def test_a_missing_schema_file_is_named(copy):
    (copy / "schema" / "schema-0").unlink()

    with pytest.raises(CorruptTableError, match="schema/schema-0, which is missing.*restore it"):
        opened(copy).version(1).files()


def test_a_schema_file_under_the_name_of_another_is_named(copy):
    shutil.copy(copy / "schema" / "schema-1", copy / "schema" / "schema-0")

    with pytest.raises(CorruptTableError, match="schema/schema-0 contains schema 1"):
        _ = opened(copy).version(1).schema


def delta_manifest(copy):
    manifests = opened(copy).version(3).manifests()
    return copy / manifests.filter(pc.equal(manifests["list"], "delta"))["path"][0].as_py()


def test_a_missing_manifest_is_named_and_explained(copy):
    lost = delta_manifest(copy)
    lost.unlink()

    with pytest.raises(
        CorruptTableError,
        match=f"Version 3 cannot be read.*snapshot/snapshot-3.*{lost.name}.*probably expired.*snapshot.time-retained",
    ):
        opened(copy).version(3).files()
    with pytest.raises(SnapshotNotFoundError, match="The changes of version 3 cannot be read.*snapshot.time-retained"):
        opened(copy).changes([2, 3])


def test_a_version_that_expires_while_it_is_read_says_so(copy):
    paimon = opened(copy)
    paimon.commits([3])
    delta_manifest(copy).unlink()
    (copy / "snapshot" / "snapshot-3").unlink()

    with pytest.raises(SnapshotNotFoundError, match="Version 3 expired during the read.*snapshot.time-retained"):
        paimon.version(3).files()


def test_a_commit_whose_changes_are_gone_has_no_counts(copy):
    paimon = opened(copy)
    before = paimon.commits([3, 4]).to_pylist()
    delta_manifest(copy).unlink()

    after = paimon.commits([3, 4]).to_pylist()

    assert after[1] == before[1]
    assert after[0]["readable"] == "no"
    counts = [name for name in after[0] if name.startswith(("added_", "removed_"))]
    assert [after[0][name] for name in counts] == [None] * 6
    assert after[0]["total_rows"] == before[0]["total_rows"]


def test_of_a_changelog_only_the_commit_is_left(copy):
    (copy / "changelog").mkdir()
    snapshot = copy / "snapshot" / "snapshot-1"
    raw = json.loads(snapshot.read_text())
    snapshot.rename(copy / "changelog" / "changelog-1")
    (copy / "tag" / "tag-opening").unlink()
    for name in ("baseManifestList", "deltaManifestList"):
        (copy / "manifest" / raw[name]).unlink()
    paimon = opened(copy)

    assert paimon.listing(0).versions[0] == 1
    assert paimon.commits([1])["added_files"].to_pylist() == [None]
    assert len(paimon.version(1).manifests()) == len(paimon.changes([1])) == 0
    with pytest.raises(SnapshotNotFoundError, match="Version 1 has expired. Only its changelog is left, in changelog/"):
        paimon.version(1).files()


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_a_damaged_manifest_is_named(copy, damage):
    manifest = delta_manifest(copy)
    manifest.write_bytes(manifest.read_bytes()[:-20] if damage is None else damage)

    with pytest.raises(
        CorruptTableError,
        match=f"manifest/{manifest.name} has .* bytes, but the table's metadata records .*: it was cut short",
    ):
        opened(copy).version(3).files()


def test_a_damaged_manifest_list_is_named(copy):
    path = copy / opened(copy).version(3).manifests()["list_path"][0].as_py()
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(CorruptTableError, match=f"manifest/{path.name} cannot be read as an Avro file"):
        opened(copy).version(3).files()


def test_a_manifest_list_that_leads_out_of_the_table_is_refused(copy):
    snapshot = copy / "snapshot" / "snapshot-3"
    snapshot.write_text(json.dumps(json.loads(snapshot.read_text()) | {"deltaManifestList": "../../../etc/passwd"}))

    with pytest.raises(CorruptTableError, match="snapshot/snapshot-3 names the file '../../../etc/passwd'"):
        opened(copy).version(3).files()


@pytest.mark.parametrize("version", [1, 4])
def test_a_snapshot_of_a_format_that_is_not_known_is_refused(table, version):
    table.commit(version=version)

    with pytest.raises(UnsupportedFeatureError, match=f"snapshot/snapshot-1 has format version {version}"):
        in_memory(table).version(1).files()


def test_operations_tell_what_an_overwrite_was(table):
    for operation in ("WRITE", "DELETE", "TRUNCATE", "UPDATE", "MERGE", "OVERWRITE", None):
        table.commit(kind="OVERWRITE", **({"operation": operation} if operation else {}))
    table.commit(kind="APPEND", operation="MERGE")
    table.commit(kind="SOMETHING")

    frame = in_memory(table).commits(range(1, 10))

    assert frame["kind"].to_pylist() == [
        *("overwrite", "delete", "delete", "update", "merge", "overwrite", "overwrite"),
        "append",
        "other",
    ]
    assert frame["operation"].to_pylist()[:2] == ["WRITE", "DELETE"]


@pytest.mark.parametrize(
    ("watermark", "shown"),
    [(None, None), (-(2**63), None), (2**63 - 1, None), (1_767_225_600_000, "2026-01-01 00:00:00+00:00")],
)
def test_a_watermark_that_means_none_is_null(table, watermark, shown):
    table.commit(watermark=watermark)

    found = in_memory(table).commits([1])["watermark"][0].as_py()

    assert (found and str(found)) == shown
