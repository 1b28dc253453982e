"""Inspection frames: what may be asked for, and what damaged files give."""

from pathlib import Path

import pyarrow as pa
import pytest

from builders import PaimonTable
from snapshot_explorer import errors, open_table
from snapshot_explorer.formats.paimon.system_types import schema_of

DATA = Path(__file__).parents[1] / "data" / "paimon"
NAMES = (
    "snapshots, schemas, options, manifests, files, file_key_ranges, partitions, buckets, tags, branches, consumers, "
    "statistics, aggregation_fields, table_indexes"
)


@pytest.fixture
def written(memory_root):
    table = PaimonTable(*memory_root)
    table.commit([(1, "a")])
    table.commit([(2, "b")])
    return table


@pytest.fixture
def table(written):
    return open_table(f"memory://{written.root}")


def put(written, path, content):
    filesystem, root = written.filesystem, written.root
    filesystem.makedirs(f"{root}/{path}".rpartition("/")[0], exist_ok=True)
    filesystem.pipe_file(f"{root}/{path}", content)


def test_the_names_are_those_that_paimon_users_know(table):
    assert ", ".join(one.name for one in table.inspections) == NAMES


def test_every_frame_has_its_columns_and_types_whatever_it_holds(table):
    empty = open_table(str(DATA / "empty"))

    for one in table.inspections:
        for opened in (table, empty):
            frame = opened.inspect(one.name)
            assert frame.schema == schema_of(one.name)
            frame.to_arrow().validate(full=True)


def test_a_timestamp_is_the_clock_in_utc_without_a_zone(table):
    frame = table.inspect("snapshots")

    assert frame.schema.field("commit_time").type == pa.timestamp("ms")
    aware = table.history()["committed_at"].to_pylist()[::-1]
    assert frame["commit_time"].to_pylist() == [moment.replace(tzinfo=None) for moment in aware]


def test_a_frame_of_a_version_is_that_versions(table):
    assert table.inspect("files", 1).num_rows == 1
    assert table.inspect("files").num_rows == table.inspect("files", "latest").num_rows == 2
    assert table.inspect("files", 1).title.endswith("at version 1")
    assert table.inspect("buckets", "latest~1")["file_count"].to_pylist() == [1]


def test_a_misspelled_name_is_told_the_nearest(table):
    with pytest.raises(errors.BadReferenceError) as caught:
        table.inspect("snapshot")

    assert str(caught.value) == f"No system table is called 'snapshot'. Did you mean snapshots? There are: {NAMES}."


def test_an_unknown_name_is_told_what_there_is(table):
    with pytest.raises(errors.BadReferenceError, match=f"No system table is called 'xyz'. There are: {NAMES}."):
        table.inspect("xyz")


def test_a_system_table_that_is_not_offered_names_the_way_out(table):
    with pytest.raises(errors.BadReferenceError, match=r"audit_log is not among .*use changes_between\(a, b\)"):
        table.inspect("audit_log")


def test_a_ref_is_refused_where_a_frame_tells_of_no_version(table):
    message = "snapshots tells of the table as it is now, not of a version. Leave 1 out."

    with pytest.raises(errors.BadReferenceError, match=message):
        table.inspect("snapshots", "earliest")


def test_an_unknown_version_is_told_as_everywhere(table):
    with pytest.raises(errors.SnapshotNotFoundError, match="99"):
        table.inspect("files", 99)


def test_a_version_of_which_only_the_changelog_is_left_has_no_files():
    with pytest.raises(errors.SnapshotNotFoundError, match="Version 5 has expired: only its changelog is left"):
        open_table(str(DATA / "expired")).inspect("partitions", 5)


def test_a_branch_is_listed_with_a_time_where_the_storage_knows_one():
    frame = open_table(str(DATA / "written_by_1_4")).inspect("branches")

    assert frame["branch_name"].to_pylist() == ["dev"]
    assert frame["create_time"].type == pa.timestamp("ms")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'{"nextSnapshot": "6"}', b'{"nextSnapshot": true}', b"{}"]
)
def test_a_broken_consumer_file_is_named(written, table, content):
    put(written, "consumer/consumer-reader", content)

    with pytest.raises(errors.BrokenTableError, match="consumer/consumer-reader can not be read"):
        table.inspect("consumers")


def test_consumers_are_sorted_and_other_files_passed_over(written, table):
    put(written, "consumer/consumer-b", b'{"nextSnapshot": 2}')
    put(written, "consumer/consumer-a", b'{"nextSnapshot": 1, "more": 3}')
    put(written, "consumer/.consumer-c.tmp", b"{")

    assert table.inspect("consumers").to_dict() == [
        {"consumer_id": "a", "next_snapshot_id": 1},
        {"consumer_id": "b", "next_snapshot_id": 2},
    ]


@pytest.mark.parametrize("content", [b"", b'{"snapshotId": 1}', b"[1]", b'{"snapshotId": "x", "schemaId": 0}', b"\xff"])
def test_a_broken_statistics_file_is_named(tmp_path, content):
    import shutil

    shutil.copytree(DATA / "inspected", tmp_path / "t")
    file = next((tmp_path / "t" / "statistics").iterdir())
    file.write_bytes(content)

    with pytest.raises(errors.BrokenTableError, match=f"statistics/{file.name} can not be read"):
        open_table(str(tmp_path / "t")).inspect("statistics")


def test_a_missing_statistics_file_is_named(tmp_path):
    import shutil

    shutil.copytree(DATA / "inspected", tmp_path / "t")
    file = next((tmp_path / "t" / "statistics").iterdir())
    file.unlink()

    with pytest.raises(errors.BrokenTableError, match=file.name):
        open_table(str(tmp_path / "t")).inspect("statistics")


def test_a_schema_with_an_impossible_time_is_named(tmp_path):
    import shutil

    shutil.copytree(DATA / "empty", tmp_path / "t")
    file = tmp_path / "t" / "schema" / "schema-0"
    text = file.read_text()
    file.write_text(text.replace('"timeMillis" : ', '"timeMillis" : 99999999999'))

    with pytest.raises(errors.BrokenTableError, match="schema/schema-0 has no readable time"):
        open_table(str(tmp_path / "t")).inspect("schemas")
