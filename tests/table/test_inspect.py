"""Inspection frames: what may be asked for, and what damaged files give."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import errors, open_table
from snapshot_explorer.history import history_of
from tests.inner.paimon import schema_of
from tests.support.paimon.table_builder import PaimonTable

DATA = Path(__file__).parents[1] / "data" / "paimon"
NAMES = (
    "snapshots, schemas, options, manifests, files, file_key_ranges, partitions, buckets, tags, branches, consumers, "
    "statistics, aggregation_fields, table_indexes, file_indexes, audit_log, binlog, ro, row_tracking"
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
    assert ", ".join(one.name for one in history_of(table).table_format.inspections) == NAMES


def test_every_frame_has_its_columns_and_types_whatever_it_holds(table):
    empty = open_table(str(DATA / "empty"))

    for one in (one for one in history_of(table).table_format.inspections if not one.of_rows):
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


def test_the_partition_of_a_table_without_partitions_is_not_drawn(table):
    frame = table.inspect("partitions")

    assert frame["partition"].to_pylist() == [""]
    assert repr(frame).splitlines()[1].split()[:2] == ["record_", "file_"]
    assert "day=2026-11-01" in repr(open_table(str(DATA / "inspected")).inspect("partitions"))


def test_an_error_for_a_misspelled_name_suggests_the_nearest(table):
    with pytest.raises(errors.InvalidArgumentError) as caught:
        table.inspect("snapshot")

    assert str(caught.value) == f"No system table is called 'snapshot'. Did you mean snapshots? System tables: {NAMES}."


def test_an_error_for_an_unknown_name_lists_the_names(table):
    with pytest.raises(errors.InvalidArgumentError, match=f"No system table is called 'xyz'. System tables: {NAMES}."):
        table.inspect("xyz")


@pytest.mark.parametrize("name", ["audit_log", "binlog", "ro"])
def test_a_table_without_versions_has_the_columns_of_its_system_tables_of_rows(name):
    empty = open_table(str(DATA / "empty"))

    frame = empty.inspect(name)

    names = [column.name for column in empty.current.schema.columns]
    assert frame.column_names == (names if name == "ro" else ["rowkind", *names])
    assert frame.num_rows == 0
    frame.to_arrow().validate(full=True)


def test_row_ids_are_refused_where_the_table_keeps_none(table):
    with pytest.raises(
        errors.InvalidArgumentError, match="row_tracking has the ids of rows, but the table does not track its rows"
    ):
        table.inspect("row_tracking")


def altered(tmp_path, name, options, **more):
    """Return a copy of a test table with other options, and more, in every schema."""
    import shutil

    shutil.copytree(DATA / name, tmp_path / name)
    for file in (tmp_path / name / "schema").iterdir():
        schema = json.loads(file.read_text())
        schema |= more | {"options": schema["options"] | options}
        file.write_text(json.dumps(schema))
    return open_table(str(tmp_path / name))


def test_a_column_called_rowkind_keeps_audit_log_from_being_read(tmp_path):
    fields = json.loads((DATA / "append_bucketed" / "schema" / "schema-0").read_text())["fields"]
    opened = altered(tmp_path, "append_bucketed", {}, fields=[fields[0] | {"name": "rowkind"}, *fields[1:]])

    with pytest.raises(errors.UnsupportedFeatureError, match="its own column 'rowkind'"):
        opened.inspect("audit_log")


def test_sequence_numbers_stand_behind_the_kind_where_the_table_asks_for_them(tmp_path):
    opened = altered(tmp_path, "written_by_1_4", {"table-read.sequence-number.enabled": "true"})

    frame = opened.inspect("audit_log", 3)

    assert frame.column_names[:3] == ["rowkind", "_SEQUENCE_NUMBER", "k"]
    # As Paimon 1.4.2 shows them.
    rows = sorted(zip(*(frame[name].to_pylist() for name in ("_SEQUENCE_NUMBER", "k", "rowkind")), strict=True))
    assert rows == [(0, 3, "+I"), (2, 2, "+I"), (3, 4, "+I"), (4, 1, "-D")]
    assert opened.inspect("binlog", 3)["_SEQUENCE_NUMBER"].type == pa.int64()


def test_merged_rows_have_the_sequence_number_of_their_newest_event(tmp_path):
    opened = altered(tmp_path, "partial_remove", {"table-read.sequence-number.enabled": "true"})

    rows = opened.inspect("audit_log", 3).to_dict()

    # As Paimon 1.4.2 shows them: merged, alone, removed, and a retract that is alone.
    numbers = {row["k"]: (row["rowkind"], row["_SEQUENCE_NUMBER"]) for row in rows}
    expected = {28: ("+I", 100), 8: ("+I", 8), 23: ("+U", 54), 21: ("-D", 15), 39: ("-D", 70), 25: ("-U", 18)}
    assert {key: numbers[key] for key in expected} == expected


def test_sequence_numbers_of_rows_without_a_key_are_refused(tmp_path):
    opened = altered(tmp_path, "append_bucketed", {"table-read.sequence-number.enabled": "true"})

    with pytest.raises(
        errors.UnsupportedFeatureError, match="sequence numbers to audit_log, which rows without a prim"
    ):
        opened.inspect("audit_log")


def test_the_levels_of_a_table_say_which_files_are_read_without_a_merge(tmp_path):
    assert altered(tmp_path / "a", "written_by_1_4", {"num-levels": "6"}).inspect("ro", 4).num_rows == 3
    assert altered(tmp_path / "b", "written_by_1_4", {"num-levels": "7"}).inspect("ro", 4).num_rows == 0
    trigger = {"num-sorted-run.compaction-trigger": "4"}
    assert altered(tmp_path / "c", "written_by_1_4", trigger).inspect("ro", 4).num_rows == 0
    with pytest.raises(errors.CorruptTableError, match="option num-levels must be an integer, got 'many'"):
        altered(tmp_path / "d", "written_by_1_4", {"num-levels": "many"}).inspect("ro", 4)


def test_a_ref_is_refused_where_a_frame_tells_of_no_version(table):
    message = "snapshots describes the table as a whole, not one version. Leave earliest out."

    with pytest.raises(errors.InvalidArgumentError, match=message):
        table.inspect("snapshots", "earliest")


def test_an_unknown_version_raises_as_everywhere(table):
    with pytest.raises(errors.SnapshotNotFoundError, match="99"):
        table.inspect("files", 99)


def test_a_version_of_which_only_the_changelog_is_left_has_no_files():
    with pytest.raises(errors.SnapshotNotFoundError, match="Version 5 has expired. Only its changelog is left"):
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

    with pytest.raises(errors.CorruptTableError, match="consumer/consumer-reader cannot be read"):
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

    with pytest.raises(errors.CorruptTableError, match=f"statistics/{file.name} cannot be read"):
        open_table(str(tmp_path / "t")).inspect("statistics")


def test_a_missing_statistics_file_is_named(tmp_path):
    import shutil

    shutil.copytree(DATA / "inspected", tmp_path / "t")
    file = next((tmp_path / "t" / "statistics").iterdir())
    file.unlink()

    with pytest.raises(errors.CorruptTableError, match=file.name):
        open_table(str(tmp_path / "t")).inspect("statistics")


def test_a_schema_with_an_impossible_time_is_named(tmp_path):
    import shutil

    shutil.copytree(DATA / "empty", tmp_path / "t")
    file = tmp_path / "t" / "schema" / "schema-0"
    text = file.read_text()
    file.write_text(text.replace('"timeMillis" : ', '"timeMillis" : 99999999999'))

    with pytest.raises(errors.CorruptTableError, match="schema/schema-0 has no readable time"):
        open_table(str(tmp_path / "t")).inspect("schemas")
