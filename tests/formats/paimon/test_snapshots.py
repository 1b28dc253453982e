"""Snapshot and tag files."""

import contextlib
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.storage import Storage
from tests.inner.paimon import parse_snapshot, read_snapshots

OLDEST = {
    "id": 7,
    "schemaId": 1,
    "baseManifestList": "manifest-list-3f0a-0",
    "deltaManifestList": "manifest-list-3f0a-1",
    "commitUser": "5d1c",
    "commitIdentifier": 12,
    "commitKind": "COMPACT",
    "timeMillis": 1_767_225_600_123,
}
NEWEST = OLDEST | {
    "version": 3,
    "uuid": "u",
    "baseManifestListSize": 1042,
    "deltaManifestListSize": 931,
    "changelogManifestList": "manifest-list-3f0a-2",
    "changelogManifestListSize": 930,
    "indexManifest": "index-manifest-88c1-0",
    "writerVersion": "java-2.1",
    "logOffsets": {},
    "totalRecordCount": 51,
    "deltaRecordCount": -1,
    "changelogRecordCount": 2,
    "watermark": -9_223_372_036_854_775_808,
    "statistics": "stat-1",
    "properties": {"a": "b"},
    "nextRowId": 0,
    "operation": "MERGE",
    "somethingNew": {"x": [1]},
}


def parse(raw, path="snapshot/snapshot-7"):
    return parse_snapshot(json.dumps(raw).encode(), path)


def test_every_field_is_kept():
    snapshot = parse(NEWEST)

    assert (snapshot.id, snapshot.format_version, snapshot.schema_id, snapshot.kind) == (7, 3, 1, "COMPACT")
    assert (snapshot.base_manifest_list, snapshot.base_manifest_list_bytes) == ("manifest-list-3f0a-0", 1042)
    assert (snapshot.delta_manifest_list, snapshot.delta_manifest_list_bytes) == ("manifest-list-3f0a-1", 931)
    assert (snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_bytes) == ("manifest-list-3f0a-2", 930)
    assert (snapshot.index_manifest, snapshot.statistics) == ("index-manifest-88c1-0", "stat-1")
    assert (snapshot.user, snapshot.identifier, snapshot.operation) == ("5d1c", 12, "MERGE")
    assert snapshot.committed_at == datetime(2026, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)
    assert (snapshot.total_rows, snapshot.delta_rows, snapshot.changelog_rows) == (51, -1, 2)
    assert snapshot.watermark is None
    assert (snapshot.properties, snapshot.next_row_id) == ({"a": "b"}, 0)
    assert (snapshot.uuid, snapshot.writer_version) == ("u", "java-2.1")


def test_unknown_fields_stay_in_what_is_stored():
    assert json.loads(parse(NEWEST).stored)["somethingNew"] == {"x": [1]}


def test_a_snapshot_of_the_oldest_writer_has_nulls():
    snapshot = parse(OLDEST)

    assert snapshot.format_version == 1
    assert (snapshot.total_rows, snapshot.watermark, snapshot.changelog_manifest_list) == (None, None, None)


def test_a_tag_says_when_it_was_made_and_how_long_it_is_kept():
    tag = parse(NEWEST | {"tagCreateTime": [2026, 3, 1, 12, 30], "tagTimeRetained": 129_600.0}, "tag/tag-v1")

    assert tag.tag_created_at.isoformat() == "2026-03-01T12:30:00"
    assert tag.tag_retained == timedelta(hours=36)


@pytest.mark.parametrize("moment", [[2026], [2026, 13, 1], "yesterday", [2026, 1, 1, 0, 0, 0, "x"], [10**30, 1, 1]])
def test_a_tag_made_at_no_time_is_read_all_the_same(moment):
    assert parse(NEWEST | {"tagCreateTime": moment, "tagTimeRetained": "x"}).tag_created_at is None


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"id": None}, "it has no field 'id'"),
        ({"commitKind": None}, "it has no field 'commitKind'"),
        ({"id": "7"}, "its field 'id' is not a 64-bit number"),
        ({"id": True}, "its field 'id' is not a 64-bit number"),
        ({"totalRecordCount": 2**63}, "its field 'totalRecordCount' is not a 64-bit number"),
        ({"deltaManifestList": 5}, "its field 'deltaManifestList' is not text"),
        ({"timeMillis": 2**62}, "snapshot/snapshot-7 is not a readable Paimon snapshot"),
        ({"properties": [1]}, "snapshot/snapshot-7 is not a readable Paimon snapshot"),
    ],
)
def test_an_invalid_field_is_broken(change, found):
    with pytest.raises(CorruptTableError, match=found):
        parse(NEWEST | change)


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{}", b"\xff", b"7"])
def test_what_is_not_a_snapshot_is_named(content):
    with pytest.raises(CorruptTableError, match="snapshot/snapshot-7 is not a readable Paimon snapshot"):
        parse_snapshot(content, "snapshot/snapshot-7")


def test_a_file_cut_anywhere_is_broken():
    content = json.dumps(NEWEST).encode()

    for size in range(len(content)):
        with pytest.raises(CorruptTableError, match="cut short or damaged. Choose another version"):
            parse_snapshot(content[:size], "snapshot/snapshot-7")


@given(
    st.dictionaries(
        st.sampled_from(sorted(NEWEST)), st.none() | st.integers() | st.text() | st.floats() | st.booleans()
    )
)
def test_any_values_give_our_error_or_a_snapshot(changes):
    with contextlib.suppress(CorruptTableError):
        parse_snapshot(json.dumps(NEWEST | changes).encode(), "snapshot/snapshot-7")


def test_equal_files_have_one_digest_and_others_another():
    assert parse(NEWEST).digest == parse(NEWEST).digest != parse(OLDEST).digest


def test_files_that_are_not_there_are_none(memory_root):
    filesystem, root = memory_root
    filesystem.pipe_file(f"{root}/snapshot/snapshot-7", json.dumps(NEWEST).encode())

    found = read_snapshots(Storage(f"memory:/{root}"), ["snapshot/snapshot-6", "snapshot/snapshot-7"])

    assert [one and one.id for one in found] == [None, 7]


def test_a_file_that_stays_half_written_is_broken(memory_root):
    filesystem, root = memory_root
    filesystem.pipe_file(f"{root}/snapshot/snapshot-7", json.dumps(NEWEST).encode()[:99])

    with pytest.raises(CorruptTableError, match="snapshot/snapshot-7.*cut short.*if a writer is at work, try again"):
        read_snapshots(Storage(f"memory:/{root}"), ["snapshot/snapshot-7"])


def test_a_file_that_was_half_written_is_read_again(memory_root):
    whole = json.dumps(NEWEST).encode()

    class Late(Storage):
        """Shows half of a file the first time, as an object store may."""

        reads = 0

        def read(self, path):
            self.reads += 1
            return whole[:50] if self.reads == 1 else whole

        def read_present(self, paths):
            return [self.read(path) for path in paths]

    late = Late(f"memory:/{memory_root[1]}")
    found = read_snapshots(late, ["snapshot/snapshot-7"])

    assert [one.id for one in found] == [7]
    assert late.reads == 2
