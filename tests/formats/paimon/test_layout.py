"""Where files are."""

import pyarrow as pa
import pytest

from snapshot_explorer.errors import CorruptTableError
from tests.inner.paimon import (
    Layout,
    bucket_folders,
    check_names,
    escape,
    index_path,
    manifest_path,
    number_of,
    parse_hint,
)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("snapshot-7", 7),
        ("snapshot-", None),
        ("snapshot-7.tmp", None),
        ("snapshot--7", None),
        ("snapshot-٣", None),
        (".snapshot-7.crc", None),
        ("schema-7", None),
        ("LATEST", None),
        (f"snapshot-{10**30}", None),
    ],
)
def test_only_numbered_files_are_versions(name, number):
    assert number_of(name, "snapshot") == number


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (b"12", 12),
        (b"12\n", 12),
        (None, None),
        (b"", None),
        (b"0", None),
        (b"-3", None),
        (b"1e3", None),
        (b"\xff", None),
    ],
)
def test_a_hint_is_a_positive_number_or_none(content, hint):
    assert parse_hint(content) == hint


def test_a_branch_has_its_own_metadata():
    assert Layout(None).numbered("snapshot", 7) == "snapshot/snapshot-7"
    assert Layout("main").numbered("schema", 0) == "schema/schema-0"
    assert Layout("dev").numbered("snapshot", 7) == "branch/branch-dev/snapshot/snapshot-7"
    assert Layout("dev").tag("v1") == "branch/branch-dev/tag/tag-v1"


@pytest.mark.parametrize(
    ("partition", "bucket", "options", "folder"),
    [
        ([], 0, {}, "bucket-0"),
        ([], -2, {}, "bucket-postpone"),
        ([("dt", "2026-01-01"), ("h", "7")], 3, {}, "dt=2026-01-01/h=7/bucket-3"),
        ([("f", None)], 0, {}, "f=__DEFAULT_PARTITION__/bucket-0"),
        ([("f", "  ")], 0, {}, "f=__DEFAULT_PARTITION__/bucket-0"),
        ([("f", "")], 0, {"partition.default-name": "none/such"}, "f=none%2Fsuch/bucket-0"),
        ([("f", "a/b=c d")], 0, {"data-file.path-directory": "/data/"}, "data/f=a%2Fb%3Dc d/bucket-0"),
    ],
)
def test_the_folder_of_a_bucket(partition, bucket, options, folder):
    columns = [(name, [value]) for name, value in partition]

    assert bucket_folders(columns, [bucket], options) == [folder]


def test_escaping_touches_what_paths_cannot_hold_and_nothing_else():
    assert escape("\x00\x1f\x7f\"#%'*/:=?\\{}[]^") == "%00%1F%7F%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%7D%5B%5D%5E"
    assert escape("a b.ä-_~!@$&()+,;<>|`") == "a b.ä-_~!@$&()+,;<>|`"


def test_a_directory_of_data_files_stays_in_the_table():
    with pytest.raises(CorruptTableError, match="data-file.path-directory is '../other', which leads out"):
        bucket_folders([], [0], {"data-file.path-directory": "../other"})


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "..", "a\\b", "", "a\0b"])
def test_a_name_that_could_lead_out_of_the_table_is_refused(name):
    with pytest.raises(CorruptTableError, match="could lead out of the table's folder"):
        manifest_path(name, "snapshot/snapshot-1")
    with pytest.raises(CorruptTableError, match="a manifest names the file"):
        check_names(pa.chunked_array([["data-1.orc", name]]), "a manifest")


def test_index_files_are_where_their_entries_say():
    beside = {"index-file-in-data-file-dir": "TRUE"}

    assert index_path("f=1/bucket-0", "index-1", None, {}) == "index/index-1"
    assert index_path("f=1/bucket-0", "index-1", None, beside) == "f=1/bucket-0/index-1"
    assert index_path("f=1/bucket-0", "index-1", "s3://x/index-1", beside) == "s3://x/index-1"
