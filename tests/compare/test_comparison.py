"""Two versions of a table, against reading both and taking them apart plainly."""

import re
import uuid
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.analysis.compare import Comparison, find_manifest
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.formats.delta import Delta
from snapshot_explorer.formats.paimon import Paimon
from snapshot_explorer.history.lifetimes import read_lifetimes
from snapshot_explorer.storage import Storage
from tests.support.delta.table_builder import DeltaTable, add, remove
from tests.support.paimon.table_builder import PaimonTable

TABLES = Path(__file__).parents[1] / "data" / "paimon"
DELTA_TABLES = TABLES.parent / "delta"
TURNED = {"added": "removed", "removed": "added", "moved": "moved", "deletions": "deletions"}
SIDES = {"carried over": "=", "added": "+", "rewritten": "+", None: "+"} | dict.fromkeys(
    ("removed", "merged away", "left behind"), "-"
)
OTHER_SIDES = {"=": "=", "+": "-", "-": "+"}
OTHER_PARTS = {
    "in A": "in B",
    "shared": "shared",
    "removed": "added",
    "removed, rearranged": "added, rearranged",
} | {"in B": "in A", "added": "removed", "added, rearranged": "removed, rearranged"}
OTHER_SCHEMA_CHANGES = {
    "added": "dropped",
    "dropped": "added",
    "widened": "narrowed",
    "narrowed": "widened",
    "nullable": "not null",
    "not null": "nullable",
}


def compared(table_format, a, b):
    return Comparison("table", table_format, table_format.version(a), table_format.version(b), table_format.listing(0))


def files_of(comparison):
    names = ["change", "path", "data_change", "version", "rows", "size_bytes"]
    return Counter(tuple(row.values()) for row in comparison.files.to_arrow().select(names).to_pylist())


def _without_sides(proof):
    """Return a proof without the versions of the row diff that it suggests, and without which files are of which."""
    return proof and re.sub(r"diff_rows\(.*?\)|\d+ (file |files )?(added|removed),? ?", "", proof)


def assert_mirrored(there, back):
    """Check that a comparison and the one turned round tell the same."""
    assert files_of(there) == Counter({(TURNED[row[0]], *row[1:]): count for row, count in files_of(back).items()})
    ours, theirs = ({row["path"]: row for row in one.manifests.to_dict()} for one in (there, back))
    assert ours.keys() == theirs.keys()
    for path, row in ours.items():
        other = theirs[path]
        assert (row["list_a"], row["list_b"]) == (other["list_b"], other["list_a"])
        side = "=" if row["list_a"] and row["list_b"] else "-" if row["list_a"] else "+"
        assert (SIDES[row["status"]], SIDES[other["status"]]) == (side, OTHER_SIDES[side])
    for path in [*ours][:3]:
        if "index" not in (ours[path]["list_a"], ours[path]["list_b"]):
            entries = [one.entries(path) for one in (there, back)]
            assert entries[0].to_arrow().drop("partition").equals(entries[1].to_arrow().drop("partition"))
            assert entries[0].title == entries[1].title
    parts = [{row.pop("part"): row for row in one.summary.to_dict()} for one in (there, back)]
    deleted = [part.pop("shared, rows deleted", None) for part in parts]
    assert (deleted[0] is None) == (deleted[1] is None)
    if deleted[0] is not None:
        assert deleted[0]["files"] == deleted[1]["files"]
        assert deleted[0]["rows"] == (None if deleted[1]["rows"] is None else -deleted[1]["rows"])
    assert parts[0] == {OTHER_PARTS[part]: row for part, row in parts[1].items()}
    for name in ("net_rows", "net_bytes", "deleted_rows"):
        sums = [
            {(*row["partition"].values(), row["bucket"]): row[name] for row in one.partitions.to_dict()}
            for one in (there, back)
        ]
        assert sums[0] == {key: None if value is None else -value for key, value in sums[1].items()}
    assert there.commits.to_arrow().equals(back.commits.to_arrow())
    assert _without_sides(there.proof) == _without_sides(back.proof)
    changes = [
        sorted(
            (turned.get(row["change"], row["change"]), row["id"] or 0, str(row[first]), str(row[last]))
            for row in one.schema.to_dict()
        )
        for one, turned, first, last in (
            (there, {}, "before", "after"),
            (back, OTHER_SCHEMA_CHANGES, "after", "before"),
        )
    ]
    assert changes[0] == changes[1]
    assert {tuple(row.values()) for row in there.properties.to_dict()} == {
        (TURNED.get(row["change"], "changed"), row["property"], row["after"], row["before"])
        for row in back.properties.to_dict()
    }


def assert_figures_mirrored(there, back):
    """Check that what a figure draws as removed, the figure of the comparison turned round draws as added."""
    bar = '<rect [^>]*width="([0-9.]+)%"[^>]*/>'
    pattern = re.compile(f"<title>([^\n]*).*?</title>{bar}{bar}", re.DOTALL)
    bars = [{name: sides for name, *sides in pattern.findall(one.picture().svg)} for one in (there, back)]
    assert any(float(width) for sides in bars[0].values() for width in sides)
    assert bars[0] == {name: sides[::-1] for name, sides in bars[1].items()}


def plain_reading(table_format):
    """Return a function that reads a version once: level and rows of each file, and the list of each manifest."""

    @cache
    def read(version):
        resolved = table_format.version(version)
        files, manifests = resolved.files(), resolved.manifests()
        path, level, rows = (files[name].to_pylist() for name in ("path", "level", "rows"))
        lists = dict(zip(manifests["path"].to_pylist(), manifests["list"].to_pylist(), strict=True))
        return dict(zip(path, zip(level, rows, strict=True), strict=True)), lists

    return read


def assert_as_read(read, comparison):
    """Check files and manifests against the two versions, taken apart plainly."""
    older, newer = sorted((comparison.a, comparison.b))
    live = [read(version)[0] for version in (comparison.a, comparison.b)]
    reported = comparison.files.to_dict()
    assert {row["path"] for row in reported if row["change"] == "removed"} == live[0].keys() - live[1].keys()
    assert {row["path"] for row in reported if row["change"] == "added"} == live[1].keys() - live[0].keys()
    moved = {path for path in live[0].keys() & live[1].keys() if live[0][path][0] != live[1][path][0]}
    assert {row["path"] for row in reported if row["level_before"] not in (None, row["level"])} == moved
    summary = {row["part"]: row for row in comparison.summary.to_dict()}
    assert summary["in A"]["rows"] == sum(rows for _, rows in live[0].values())
    assert summary["in A"]["files"] - summary["removed"]["files"] == summary["shared"]["files"]
    assert summary["shared"]["files"] + summary["added"]["files"] == summary["in B"]["files"] == len(live[1])
    partitions = comparison.partitions.to_dict()
    assert sum(row["added_files"] for row in partitions) == summary["added"]["files"]
    assert sum(row["net_rows"] for row in partitions) == summary["in B"]["rows"] - summary["in A"]["rows"]
    assert sum(row["net_bytes"] for row in partitions) == summary["in B"]["size_bytes"] - summary["in A"]["size_bytes"]
    before, after = (read(version)[1] for version in (older, newer))
    for row in comparison.manifests.to_dict():
        is_both = row["path"] in before and row["path"] in after
        assert (row["status"] == "carried over") == is_both
        gone = row["list_b"] is None
        assert row["status"] is None or (row["status"] in ("removed", "merged away", "left behind")) == gone


def states(table_format):
    listing = table_format.listing(0)
    return [version for version in listing.versions if version not in listing.without_files]


@pytest.mark.parametrize("name", sorted(folder.name for folder in TABLES.iterdir()))
def test_versions_of_tables_that_paimon_wrote_differ_as_plain_reading_says(name):
    table_format = Paimon(Storage(str(TABLES / name)))
    versions = states(table_format)
    read = plain_reading(table_format)
    lifetimes = read_lifetimes(table_format, title="")
    pairs = {*pairwise(versions[-3:]), (versions[0], versions[-1])} if versions else set()

    for a, b in pairs:
        there, back = compared(table_format, a, b), compared(table_format, b, a)
        assert_as_read(read, there)
        assert_as_read(read, back)
        assert_mirrored(there, back)
        difference = lifetimes.difference(a, b)
        moved = sum(row["level_before"] not in (None, row["level"]) for row in there.files.to_dict())
        plain = [row["change"] for row in there.files.to_dict() if row["change"] in ("added", "removed")]
        assert len(difference) == len(plain) + 2 * moved
        there._repr_mimebundle_(), back.showing("manifests", "properties")._repr_mimebundle_()


@pytest.mark.parametrize("name", sorted(folder.name for folder in DELTA_TABLES.iterdir()))
def test_versions_of_tables_that_delta_wrote_differ_as_lifetimes_say(name):
    table_format = Delta(Storage(str(DELTA_TABLES / name)))
    versions = states(table_format)
    lifetimes = read_lifetimes(table_format, title="")

    for a, b in {*pairwise(versions[-3:]), (versions[0], versions[-1]), (versions[1 % len(versions)], versions[-1])}:
        there, back = compared(table_format, a, b), compared(table_format, b, a)
        assert_mirrored(there, back)
        changed = Counter(lifetimes.difference(a, b)["path"].to_pylist())
        reported = {row["path"] for row in there.files.to_dict() if row["change"] in ("added", "removed")}
        assert reported == {path for path, count in changed.items() if count == 1}


@pytest.mark.parametrize("name", ["dv", "manifests_parquet"])
def test_the_figure_turned_round_draws_what_was_added_as_removed(name):
    table_format = Paimon(Storage(str(TABLES / name)))
    versions = states(table_format)

    assert_figures_mirrored(
        compared(table_format, versions[0], versions[-1]), compared(table_format, versions[-1], versions[0])
    )


def test_partitions_are_called_as_in_b_where_a_commit_between_renamed_the_column():
    table_format = Delta(Storage(str(DELTA_TABLES / "mapping_vectors_feed")))

    there, back = compared(table_format, 2, 4), compared(table_format, 4, 2)

    assert [(row["partition"], row["net_rows"], row["deleted_rows"]) for row in there.partitions.to_dict()] == [
        ({"third": value}, 1, 1) for value in "012"
    ]
    assert [(row["partition"], row["net_rows"], row["deleted_rows"]) for row in back.partitions.to_dict()] == [
        ({"part": value}, -1, -1) for value in "012"
    ]


def test_a_version_compared_with_itself_differs_in_nothing():
    table_format = Paimon(Storage(str(TABLES / "evolution_pk")))

    comparison = compared(table_format, 2, 2)

    for part in (comparison.files, comparison.partitions, comparison.schema, comparison.properties, comparison.commits):
        assert len(part) == 0
    assert set(comparison.manifests["status"].to_pylist()) == {"carried over"}
    assert comparison.proof == "A version is the same as itself."
    assert "commits between  none" in repr(comparison)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(0, 3), st.sampled_from(["APPEND", "COMPACT", "OVERWRITE"])),
        st.tuples(st.just("merge"), st.just(0), st.just("")),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=25)
@given(STEPS, st.data())
def test_versions_of_any_history_differ_as_plain_reading_says(steps, data):
    table = PaimonTable(fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}")
    for step, number, kind in [("commit", 0, "APPEND"), *steps]:
        if step == "merge":
            table.merge_manifests()
        else:
            table.commit([(1, "x")] * (number + 1), removed=list(table.live)[:number], kind=kind)
    a, b = (data.draw(st.integers(1, table.snapshots)) for _ in range(2))

    there, back = (compared(opened(table), *pair) for pair in ((a, b), (b, a)))

    assert_as_read(plain_reading(opened(table)), there)
    assert_mirrored(there, back)
    assert (a == b) == (not len(there.commits))
    if a == b:
        assert not len(there.files)
    older, newer = sorted((a, b))
    born = {path for version in range(older + 1, newer + 1) for path in deltas(opened(table), version)}
    for row in there.manifests.to_dict():
        if row["status"] in ("added", "rewritten") and a < b:
            assert (row["status"] == "added") == (row["path"] in born)


def deltas(table_format, version):
    rows = table_format.version(version).manifests()
    return [
        path
        for path, kind in zip(*(rows[name].to_pylist() for name in ("path", "list")), strict=True)
        if kind == "delta"
    ]


@pytest.fixture
def table(memory_root):
    return PaimonTable(*memory_root)


def opened(table):
    return Paimon(Storage(f"memory:/{table.root}"))


def manifests(comparison):
    rows = comparison.manifests.to_dict()
    return {row["path"].removeprefix("manifest/"): (row["status"], row["list_a"], row["list_b"]) for row in rows}


def test_manifests_are_carried_over_from_delta_to_base_and_added_by_commits_between(table):
    for _ in range(4):
        table.commit()

    assert manifests(compared(opened(table), 2, 4)) == {
        "manifest-1": ("carried over", "base", "base"),
        "manifest-2": ("carried over", "delta", "base"),
        "manifest-3": ("added", None, "base"),
        "manifest-4": ("added", None, "delta"),
    }


def test_manifests_that_were_merged_are_reported_with_what_they_were_merged_into(table):
    for _ in range(3):
        table.commit()
    table.merge_manifests()
    table.commit()

    assert manifests(compared(opened(table), 2, 4)) == {
        "manifest-merged-3": ("rewritten", None, "base"),
        "manifest-4": ("added", None, "delta"),
        "manifest-1": ("merged away", "base", None),
        "manifest-2": ("merged away", "delta", None),
    }


def test_from_a_newer_version_to_an_older_one_manifests_are_removed_and_added(table):
    for _ in range(3):
        table.commit()
    table.merge_manifests()
    table.commit()

    assert manifests(compared(opened(table), 4, 2)) == {
        "manifest-1": ("added", None, "base"),
        "manifest-2": ("added", None, "delta"),
        "manifest-merged-3": ("removed", "base", None),
        "manifest-4": ("removed", "delta", None),
    }


def test_from_a_newer_version_to_an_older_one_every_part_has_the_same_direction(table):
    table.commit()
    table.commit()
    comparison = compared(opened(table), 2, 1)

    assert comparison.files["change"].to_pylist() == ["removed"]
    assert [row["status"] for row in comparison.manifests.to_dict() if row["list_b"] is None] == ["removed"]
    assert comparison.entries("manifest-2").title == "Entries of manifest/manifest-2, which only version 2 names"
    assert comparison.commits.title == "Commits missing from B: version 2 to 1"
    assert "commits between  1 append; B does not include them" in repr(comparison)


def test_where_commits_between_have_expired_a_new_manifest_of_the_base_has_no_status(table):
    for _ in range(5):
        table.commit()
    table.tag("kept", 1)
    table.expire(4)

    found = manifests(compared(opened(table), 1, 5))

    assert found["manifest-1"] == ("carried over", "delta", "base")
    assert found["manifest-4"] == (None, None, "base")
    assert found["manifest-5"] == ("added", None, "delta")


def test_entries_of_a_manifest_are_read_when_they_are_requested(table):
    table.commit()
    table.commit()
    table.commit([(1, "x")] * 3, removed=["data-1.parquet"], kind="OVERWRITE")
    comparison = compared(opened(table), 2, 3)

    names = ["change", "path", "rows"]
    assert comparison.entries("manifest/manifest-3").to_arrow().select(names).to_pylist() == [
        {"change": "remove", "path": "bucket-0/data-1.parquet", "rows": 1},
        {"change": "add", "path": "bucket-0/data-3.parquet", "rows": 3},
    ]
    assert comparison.entries("manifest-2")["path"].to_pylist() == ["bucket-0/data-2.parquet"]


def test_a_manifest_that_neither_version_names_is_refused(table):
    for _ in range(3):
        table.commit()

    with pytest.raises(
        InvalidArgumentError,
        match=r".manifest-3. is not a manifest of version 1 or 2\. The nearest is manifest-2\. See",
    ):
        compared(opened(table), 1, 2).entries("manifest-3")
    with pytest.raises(InvalidArgumentError, match="Version 1 has no manifest 'schema/schema-0'"):
        opened(table).version(1).entries("schema/schema-0")


def test_an_index_manifest_has_no_entries_of_data_files():
    table_format = Paimon(Storage(str(TABLES / "dv")))
    comparison = compared(table_format, *states(table_format)[-2:])
    index = next(row["path"] for row in comparison.manifests.to_dict() if "index" in (row["list_a"], row["list_b"]))

    with pytest.raises(InvalidArgumentError, match="is the index manifest of version"):
        comparison.entries(index)


def test_files_say_which_commit_came_between_and_whether_it_changed_data(table):
    table.commit()
    table.commit([(1, "x")] * 2)
    table.commit([(1, "x")] * 3, removed=["data-1.parquet", "data-2.parquet"], kind="COMPACT")
    table.commit([(1, "x")] * 5)

    reported = (
        compared(opened(table), 2, 4).files.to_arrow().select(["change", "path", "version", "data_change"]).to_pylist()
    )

    assert [tuple(row.values()) for row in reported] == [
        ("removed", "bucket-0/data-1.parquet", 3, False),
        ("removed", "bucket-0/data-2.parquet", 3, False),
        ("added", "bucket-0/data-3.parquet", 3, False),
        ("added", "bucket-0/data-4.parquet", 4, True),
    ]


def test_what_a_deletion_vector_deletes_is_reported_but_not_which_commit_wrote_it():
    table_format = Paimon(Storage(str(TABLES / "dv_bitmap64")))
    versions = states(table_format)
    pairs = [compared(table_format, a, b).files.to_dict() for a in versions for b in versions if a < b]

    reported = [row for rows in pairs for row in rows if row["change"] == "deletions"]

    assert reported
    assert {(row["version"], row["data_change"]) for row in reported} == {(None, None)}
    assert all(row["deleted_rows"] != row["deleted_rows_before"] for row in reported)


def test_where_commits_between_have_expired_it_is_not_reported_what_they_were(table):
    for _ in range(5):
        table.commit()
    table.tag("kept", 1)
    table.expire(4)
    comparison = compared(opened(table), 1, 5)

    assert comparison.files["version"].to_pylist() == [None] * 4
    assert comparison.files["data_change"].to_pylist() == [None] * 4
    assert "commits between  2 append; versions 2 and 3 are missing" in repr(comparison)
    assert comparison.proof == "At most 4 rows changed: 4 files added; 1 of 5 files is shared."
    parts = {row.pop("part"): row for row in comparison.summary.to_dict()}
    assert set(parts["added, rearranged"].values()) == {None}
    assert parts["removed, rearranged"]["files"] == 0  # none was removed


@pytest.mark.parametrize("lost", ["manifest/manifest-list-3-1", "manifest/manifest-3"])
def test_a_listed_commit_between_that_has_lost_a_file_is_named_and_files_are_compared_by_versions(table, lost):
    for _ in range(3):
        table.commit()
    table.merge_manifests()
    table.commit()
    whole = compared(opened(table), 1, 4).files
    table.remove(lost)

    comparison = compared(opened(table), 1, 4)

    assert any(note.startswith("The changes of version 3 cannot be read") for note in comparison.files.notes)
    assert comparison.files["path"].to_pylist() == whole["path"].to_pylist()
    assert comparison.files["change"].to_pylist() == whole["change"].to_pylist()
    assert "changes of version 3 cannot be read" in repr(comparison)


def test_manifests_are_not_compared_by_a_delta_list_that_a_listed_commit_has_lost(table):
    for _ in range(3):
        table.commit()
    table.merge_manifests()
    table.commit()
    table.remove("manifest/manifest-list-3-1")

    manifests = compared(opened(table), 1, 4).manifests

    assert any("The delta manifest list of one of versions 2 to 4 is gone" in note for note in manifests.notes)


def test_of_a_version_whose_files_have_expired_the_rest_is_still_reported():
    table_format = Paimon(Storage(str(TABLES / "expired")))

    comparison = compared(table_format, 3, 9)

    assert "Version 3 has expired. Only its changelog is left" in repr(comparison)
    assert set(comparison.manifests["status"].to_pylist()) >= {"left behind"}
    assert len(comparison.schema) == 0
    with pytest.raises(SnapshotNotFoundError, match="Version 3 has expired"):
        _ = comparison.files


def test_parts_are_drawn_as_they_are_requested(table):
    table.commit()
    table.commit()
    comparison = compared(opened(table), 1, 2)

    drawn = repr(comparison.showing("manifests", "schema"))

    assert "manifest/manifest-2" in drawn
    assert "The schema is the same." in drawn
    assert "data-2" not in drawn
    with pytest.raises(InvalidArgumentError, match="'rows' is not a part. Parts: summary, commits"):
        comparison.showing("rows")


def test_what_a_table_is_called_cannot_break_the_page(table):
    table.commit([(1, "x")])
    table_format = opened(table)

    page = Comparison(
        "<script>alert(1)</script>",
        table_format,
        table_format.version(1),
        table_format.version(1),
        table_format.listing(0),
    )._repr_mimebundle_()

    assert "<script>" not in page["text/html"]


def reads(work, caplog):
    caplog.clear()
    with caplog.at_level("DEBUG", logger="snapshot_explorer.storage"):
        work()
    return [record.getMessage().split()[1] for record in caplog.records if record.getMessage().startswith("read ")]


def test_parts_are_read_only_when_they_are_requested(table, caplog):
    for _ in range(6):
        table.commit()
    comparison = compared(opened(table), 1, 6)

    schema = reads(lambda: comparison.schema, caplog)
    lists = reads(lambda: comparison.manifests, caplog)

    # The lists of a version come with its schema; its manifests do not.
    assert not any(path.startswith("manifest/manifest-") and "list" not in path for path in (*schema, *lists))


def delta_compared(root, a, b):
    return compared(Delta(Storage(str(root))), a, b)


def test_entries_of_delta_commits_and_checkpoints_are_reported(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.commit(add("a", rows=1))
    table.commit(add("b", rows=2), remove("a", size=500))
    (checkpoint,) = table.checkpoint()
    table.commit(add("c", rows=3))
    comparison = delta_compared(tmp_path, 1, 3)
    names = ["change", "path", "rows"]

    assert [tuple(row.values()) for row in comparison.entries(checkpoint).to_arrow().select(names).to_pylist()] == [
        ("add", "b", 2),
        ("remove", "a", None),
    ]
    assert comparison.entries(f"{1:020d}.json")["path"].to_pylist() == ["a"]  # which only A is made of
    assert comparison.entries("3.json")["path"].to_pylist() == ["c"]
    assert repr(comparison.entries("3.json")).splitlines()[1].split() == [
        "change",
        "path",
        "rows",
        "size",
        "data",
        "change",
    ]


def test_the_end_of_a_name_is_enough_if_no_other_manifest_has_it():
    paths = ["manifest/manifest-a-0", "manifest/manifest-b-0", "manifest/manifest-b-1", "other/manifest-b-1"]

    assert find_manifest("b-0", paths, owner="it") == "manifest/manifest-b-0"
    assert find_manifest("other/manifest-b-1", paths, owner="it") == "other/manifest-b-1"
    assert find_manifest("manifest-a-0", paths, owner="it") == "manifest/manifest-a-0"
    with pytest.raises(
        InvalidArgumentError,
        match="^2 manifests of it end with '-0': manifest/manifest-a-0, manifest/manifest-b-0. Use a longer part.*$",
    ):
        find_manifest("-0", paths, owner="it")
    with pytest.raises(InvalidArgumentError, match="2 manifests of it end with 'manifest-b-1'"):
        find_manifest("manifest-b-1", paths, owner="it")
    with pytest.raises(
        InvalidArgumentError, match=r"'manifest-c-1' is not a manifest of it\. The nearest is manifest-"
    ):
        find_manifest("manifest-c-1", paths, owner="it")
    with pytest.raises(InvalidArgumentError, match="'' is not a manifest of it"):
        find_manifest("", paths, owner="it")
    with pytest.raises(InvalidArgumentError, match=r"'x' is not a manifest of it\. There are none\."):
        find_manifest("x", [], owner="it")


def test_of_a_table_without_partitions_no_empty_partitions_are_drawn(table):
    table.commit()
    table.commit()
    comparison = compared(opened(table), 1, 2)

    for drawn in (comparison.entries("manifest-2"), comparison.files, comparison.partitions):
        assert "partition" not in repr(drawn).splitlines()[1]
