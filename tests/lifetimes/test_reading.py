"""Lifetimes of tables: against reading each version, and as a table goes on."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError, StorageError
from snapshot_explorer.formats.delta import Delta
from snapshot_explorer.formats.paimon import Paimon
from snapshot_explorer.history.lifetimes import keep_lifetimes, read_lifetimes
from snapshot_explorer.storage import Storage
from tests.support.delta.table_builder import DeltaTable, add, metadata, remove
from tests.support.paimon.table_builder import PaimonTable

TABLES = Path(__file__).parents[1] / "data" / "paimon"


def lifetimes_of(table_format, known=None):
    return read_lifetimes(table_format, known, title="File lifetimes")


def spelled(rows, names):
    return sorted(map(repr, rows.select(names).to_pylist()))


def assert_as_read(table_format, lifetimes, *, but=("added_version", "data_change")):
    """Compare the files of every version, and the differences of all pairs, with reading the versions.

    Reading a version tells of fewer files which commit added them, and why.
    """
    direct = {version: table_format.version(version).files() for version in lifetimes.versions}
    for version, read in direct.items():
        reported = lifetimes.files_at(version)
        names = [name for name in reported.column_names if name not in but]
        assert spelled(reported, names) == spelled(read, names)
    live = {
        version: set(zip(*(read[name].to_pylist() for name in ("path", "level")), strict=True))
        for version, read in direct.items()
    }
    for a in direct:
        for b in direct:
            difference = lifetimes.difference(a, b).select(["change", "path", "level"]).to_pylist()
            expected = {("remove", *one) for one in live[a] - live[b]} | {("add", *one) for one in live[b] - live[a]}
            assert {tuple(row.values()) for row in difference} == expected
            assert len(difference) == len(expected)


@pytest.mark.parametrize("name", sorted(folder.name for folder in TABLES.iterdir()))
def test_lifetimes_agree_with_reading_every_version_of_tables_that_paimon_wrote(name):
    table_format = Paimon(Storage(str(TABLES / name)))
    listing = table_format.listing(0)

    lifetimes = lifetimes_of(table_format)

    assert set(lifetimes.versions) == set(listing.versions).difference(listing.without_files)
    assert_as_read(table_format, lifetimes)


def test_lifetimes_need_no_changelogs(tmp_path):
    shutil.copytree(TABLES / "aggregates_lookup", tmp_path / "t")
    table_format = Paimon(Storage(str(tmp_path / "t")))
    before = lifetimes_of(table_format).to_arrow()
    for snapshot in (tmp_path / "t" / "snapshot").glob("snapshot-*"):
        if name := json.loads(snapshot.read_text()).get("changelogManifestList"):
            (tmp_path / "t" / "manifest" / name).unlink()

    after = lifetimes_of(table_format).to_arrow()

    assert after.equals(before)
    with pytest.raises(SnapshotNotFoundError, match="the files of the changelog manifest list"):
        table_format.changes(before["added_version"].unique().to_pylist())


def test_versions_of_which_only_the_changelog_is_left_are_passed_over():
    table_format = Paimon(Storage(str(TABLES / "expired")))

    lifetimes = lifetimes_of(table_format)

    assert lifetimes.versions == (1, 8, 9, 10, 11)
    assert table_format.listing(0).without_files == (2, 3, 4, 5, 6, 7)


def test_a_version_whose_commit_is_gone_is_taken_from_its_checkpoint(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.commit(add("a", rows=1), add("b", rows=1))
    table.commit(remove("a"), add("c", rows=1))
    table.checkpoint(2)
    table.commit(add("d", rows=1), remove("b"))
    table.remove_file("_delta_log/00000000000000000002.json")
    table_format = Delta(Storage(str(tmp_path)))

    lifetimes = lifetimes_of(table_format)

    assert lifetimes.versions == (0, 1, 2, 3)
    assert_as_read(table_format, lifetimes)
    stays = lifetimes.to_arrow().select(["path", "first_version", "added_version", "removed_version"]).to_pylist()
    assert sorted(tuple(stay.values()) for stay in stays) == [
        ("a", 1, 1, 2),
        ("b", 1, 1, 3),
        ("c", 2, None, None),
        ("d", 3, 3, None),
    ]


@pytest.fixture
def table(memory_root):
    return PaimonTable(*memory_root)


def opened(table):
    return Paimon(Storage(f"memory:/{table.root}"))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(0, 3), st.sampled_from(["APPEND", "COMPACT", "OVERWRITE"])),
        st.tuples(st.sampled_from(["merge", "tag", "look"]), st.just(0), st.just("")),
        st.tuples(st.just("expire"), st.integers(1, 3), st.just("")),
    ),
    max_size=14,
)


@settings(max_examples=40)
@given(STEPS)
def test_lifetimes_that_grow_with_a_table_agree_with_reading_it(steps):
    import uuid

    import fsspec

    table = PaimonTable(fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}")
    lifetimes = None
    for step, number, kind in [("commit", 0, "APPEND"), *steps]:
        if step == "look":
            lifetimes = lifetimes_of(opened(table), lifetimes)
        else:
            table.take(step, number, kind)

    anew, grown = lifetimes_of(opened(table)), lifetimes_of(opened(table), lifetimes)

    assert_as_read(opened(table), anew)
    assert set(anew.versions) <= set(grown.versions)
    for version in anew.versions:
        names = [name for name in anew.files_at(version).column_names if name not in ("added_version", "data_change")]
        assert spelled(grown.files_at(version), names) == spelled(anew.files_at(version), names)


def test_a_table_without_versions_has_no_lifetimes(table):
    lifetimes = lifetimes_of(opened(table))

    assert (len(lifetimes), lifetimes.versions) == (0, ())
    assert "no lifetimes" in repr(lifetimes)


def reads(table_format, work, caplog):
    """Return how many files the work reads."""
    caplog.clear()
    with caplog.at_level("DEBUG", logger="snapshot_explorer.storage"):
        work()
    return sum(record.getMessage().startswith("read ") for record in caplog.records)


def test_only_what_is_new_is_read_again(table, caplog):
    for _ in range(30):
        table.commit()
    first = lifetimes_of(opened(table))
    table.commit()

    table_format = opened(table)
    all_of_it = reads(table_format, lambda: lifetimes_of(opened(table)), caplog)
    more = reads(table_format, lambda: lifetimes_of(table_format, first), caplog)

    assert all_of_it > 90
    assert more < 25


def delta_of(folder, commits=30):
    """Return a Delta table in which each third commit removes a file and one renames the partition column."""
    written = DeltaTable(None, folder, partition_by=["name"])
    for number in range(commits):
        name = "id" if number >= 20 else "name"
        more = [metadata(partition_by=["id"])] if number == 20 else []
        if number % 3 == 2:
            more.append(remove(f"{number - 1}", size=500, partition={"name": "x"}))
        written.commit(add(f"{number}", partition={name: "7"}, rows=1), *more)
    return written


def test_an_open_delta_table_tells_its_lifetimes_without_reading_a_commit_twice(tmp_path, caplog):
    delta_of(tmp_path)
    tables = []

    opening = reads(None, lambda: tables.append(open_table(tmp_path)), caplog)
    more = reads(None, tables[0].lifetimes, caplog)

    assert opening >= 31
    assert more <= 2  # the newest commit, to know it again
    assert_as_read(Delta(Storage(str(tmp_path))), tables[0].lifetimes(), but=["partition"])


@pytest.mark.parametrize("at_once", [1, 2, 7, 100])
def test_however_many_versions_are_read_at_once_lifetimes_are_the_same(tmp_path, at_once, monkeypatch):
    delta_of(tmp_path)
    monkeypatch.setattr("snapshot_explorer.history.lifetimes.reading.FIRST_COMMITS", at_once)
    monkeypatch.setattr("snapshot_explorer.history.lifetimes.reading.COMMITS_AT_ONCE", at_once)

    lifetimes = lifetimes_of(Delta(Storage(str(tmp_path))))

    assert lifetimes.versions == tuple(range(31))
    assert_as_read(Delta(Storage(str(tmp_path))), lifetimes, but=["partition"])
    for row in lifetimes.to_arrow().to_pylist():
        assert row["partition"] == [("id" if int(row["path"]) >= 20 else "name", "7")]


def test_lifetimes_of_which_nothing_is_new_are_the_same_object(table):
    table.commit()
    table_format = opened(table)
    lifetimes = lifetimes_of(table_format)

    assert lifetimes_of(table_format, lifetimes) is lifetimes


def test_what_expired_since_stays_known(table):
    for _ in range(4):
        table.commit()
    lifetimes = lifetimes_of(opened(table))
    table.commit(removed=["data-1.parquet"])
    table.expire(4)

    grown = lifetimes_of(opened(table), lifetimes)

    assert grown.versions == (1, 2, 3, 4, 5)
    assert grown.difference(1, 5)["change"].to_pylist() == ["remove", "add", "add", "add", "add"]


def test_a_history_of_which_no_known_version_is_left_is_read_anew(table):
    for _ in range(4):
        table.commit()
    lifetimes = lifetimes_of(opened(table))
    table.commit()
    table.expire(5)

    assert lifetimes_of(opened(table), lifetimes).versions == (5,)


def roll_back_to_2(table):
    for number in range(3, table.snapshots + 1):
        table.remove(f"snapshot/snapshot-{number}")
    table.write("snapshot/LATEST", b"2")
    table.snapshots = 2


def test_a_history_that_was_rolled_back_is_read_anew(table):
    for _ in range(4):
        table.commit()
    lifetimes = lifetimes_of(opened(table))
    roll_back_to_2(table)
    table.live = {"data-1.parquet": 1, "data-2.parquet": 1}
    table.base = table.base[:2]

    assert lifetimes_of(opened(table), lifetimes).versions == (1, 2)

    for _ in range(3):
        table.commit([(9, "z"), (8, "y")], millis=1_800_000_000_000)
    grown = lifetimes_of(opened(table), lifetimes)

    assert_as_read(opened(table), grown)
    assert grown.totals()["rows"].to_pylist() == [1, 2, 4, 6, 8]


def test_a_version_that_expires_while_it_is_read_is_passed_over(table, counted):
    for _ in range(4):
        table.commit()
    table_format = Paimon(Storage(f"counted:/{table.root}"))
    removed = []

    def expire(path):
        if "manifest-list-1-1" in path and not removed:
            removed.append(path)
            for number in (1, 2):
                table.remove(f"snapshot/snapshot-{number}")
                table.remove(f"manifest/manifest-list-{number}-1")

    with watching(counted, expire):
        lifetimes = lifetimes_of(table_format)

    assert removed
    assert lifetimes.versions == (3, 4)


class watching:  # noqa: N801 - reads as a sentence
    """Calls a function with the path of each file before it is read."""

    def __init__(self, filesystem, function):
        self.filesystem, self.function = filesystem, function

    def __enter__(self):
        self.plain = self.filesystem.cat_file

        def cat_file(itself, path, *args, **kwargs):
            self.function(path)
            return self.plain(itself, path, *args, **kwargs)

        self.filesystem.cat_file = cat_file

    def __exit__(self, *_):
        self.filesystem.cat_file = self.plain


def test_a_damaged_manifest_is_named(table):
    table.commit()
    table.commit()
    table.write("manifest/manifest-2", b"Obj\x01 cut")

    known = lifetimes_of(opened(table))

    assert (known.versions, list(known.unread)) == ((1,), [2])
    assert any(
        note.startswith("Version 2 cannot be read: manifest/manifest-2 has 8 bytes, but") for note in known.notes
    )


@pytest.fixture
def kept(table, tmp_path):
    """Return a function that reads the lifetimes of the table with a cache in a folder of this test's own."""

    def keep():
        return keep_lifetimes(opened(table), None, cache_dir=tmp_path / "cache", table=(table.root, None), title="kept")

    return keep


def test_kept_lifetimes_are_read_from_disk_and_only_what_is_new_from_the_table(table, kept, tmp_path, caplog):
    for _ in range(30):
        table.commit()
    first = kept()
    table.commit()

    cost = reads(None, kept, caplog)

    assert cost < 25
    again = kept()
    assert again.to_arrow().equals(lifetimes_of(opened(table)).to_arrow())
    assert (first.versions[-1], again.versions[-1]) == (30, 31)
    assert [file.suffix for file in (tmp_path / "cache").iterdir()] == [".lifetimes"]


def test_kept_lifetimes_of_which_nothing_is_new_are_not_written_again(table, kept, tmp_path):
    table.commit()
    kept()
    (file,) = (tmp_path / "cache").iterdir()
    file.chmod(0o444)
    before = file.stat().st_mtime_ns

    kept()

    assert file.stat().st_mtime_ns == before


def test_kept_lifetimes_of_a_history_that_was_rolled_back_are_read_anew(table, kept):
    for _ in range(4):
        table.commit()
    kept()
    roll_back_to_2(table)
    table.live = {"data-1.parquet": 1, "data-2.parquet": 1}
    table.base = table.base[:2]

    assert kept().versions == (1, 2)

    for _ in range(3):
        table.commit([(9, "z"), (8, "y")], millis=1_800_000_000_000)

    assert kept().to_arrow().equals(lifetimes_of(opened(table)).to_arrow())
    assert_as_read(opened(table), kept())


def test_what_was_committed_again_under_the_numbers_of_kept_lifetimes_counts(table, kept):
    for _ in range(4):
        table.commit()
    kept()
    roll_back_to_2(table)
    table.live = {"data-1.parquet": 1, "data-2.parquet": 1}
    table.base = table.base[:2]
    for _ in range(2):  # as many versions as before, and one more
        table.commit([(9, "z"), (8, "y")], millis=1_800_000_000_000)
    assert_as_read(opened(table), kept())

    table.commit()

    assert_as_read(opened(table), kept())
    assert kept().totals()["rows"].to_pylist() == [1, 2, 4, 6, 7]


def test_kept_lifetimes_know_what_has_expired_since(table, kept):
    for _ in range(4):
        table.commit()
    kept()
    table.commit(removed=["data-1.parquet"])
    table.expire(4)

    grown = kept()

    assert grown.versions == (1, 2, 3, 4, 5)
    assert grown.totals()["files"].to_pylist() == [1, 2, 3, 4, 4]

    table.commit()
    table.expire(6)  # the newest that is known is gone too

    assert kept().versions == (6,)
    assert_as_read(opened(table), kept())


DAMAGES = {
    "empty": lambda content: b"",
    "cut short": lambda content: content[:-100],
    "of another kind": lambda content: b"PAR1" + content,
    "of another table's bytes": lambda content: content.replace(b"data-", b"tada-"),
    "with a flipped bit": lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_is_damaged_is_passed_over_and_written_anew(table, kept, tmp_path, damage):
    table.commit()
    expected = kept().to_arrow()
    (file,) = (tmp_path / "cache").iterdir()
    whole = file.read_bytes()
    file.write_bytes(DAMAGES[damage](whole))

    found = kept()

    assert found.to_arrow().equals(expected)
    assert file.read_bytes() == whole


def test_a_table_that_was_made_anew_under_the_same_path_is_read_anew(table, kept):
    table.commit()
    table.commit()
    kept()
    table.filesystem.rm(table.root, recursive=True)
    other = PaimonTable(table.filesystem, table.root)
    other.commit([(7, "x"), (8, "y"), (9, "z")], millis=1_900_000_000_000)
    other.commit(millis=1_900_000_000_001)

    assert kept().totals()["rows"].to_pylist() == [3, 4]


def test_nothing_is_ever_kept_in_the_table(tmp_path):
    import fsspec

    table = PaimonTable(fsspec.filesystem("file", auto_mkdir=True), str(tmp_path / "t"))
    table.commit()
    inside = tmp_path / "t" / "cache"

    with pytest.raises(InvalidArgumentError, match="cache is in the table .*t, which is read-only"):
        keep_lifetimes(
            Paimon(Storage(table.root)), None, cache_dir=inside, table=(Storage(table.root).root, None), title=""
        )

    assert not inside.exists()


def test_a_folder_that_cannot_be_written_is_named(table, tmp_path):
    table.commit()
    (tmp_path / "cache").write_text("a file where a folder should be")

    with pytest.raises(StorageError, match="could not be written to .*cache: .* Choose a writable cache_dir"):
        keep_lifetimes(opened(table), None, cache_dir=tmp_path / "cache", table=(table.root, None), title="")


def test_a_commit_whose_files_are_gone_for_good_is_named(table):
    for _ in range(3):
        table.commit()
    table.remove("manifest/manifest-list-2-1")

    known = lifetimes_of(opened(table))

    assert (known.versions, list(known.unread)) == ((1, 3), [2])
    assert known.notes[0].startswith("Version 2 cannot be read: files that were added or removed there count as")
    assert "manifest-list-2-1" in known.notes[1]


def test_lifetimes_without_a_version_are_read_again_when_it_can_be_read(table):
    for _ in range(3):
        table.commit()
    table_format, path = opened(table), "manifest/manifest-list-2-1"
    content = table.filesystem.cat_file(f"{table.root}/{path}")
    table.remove(path)
    lacking = lifetimes_of(table_format)
    table.write(path, content)

    known = read_lifetimes(table_format, lacking, title="")

    assert not lacking.is_complete
    assert (known.versions, known.is_complete) == ((1, 2, 3), True)
    assert known.to_arrow().equals(lifetimes_of(opened(table)).to_arrow())


def test_lifetimes_that_lack_a_version_are_not_kept_in_a_folder(table, kept, tmp_path):
    for _ in range(3):
        table.commit()
    table.remove("manifest/manifest-list-2-1")

    assert list(kept().unread) == [2]
    assert not list(tmp_path.glob("cache/*"))


def test_a_time_of_removal_is_unknown_after_a_version_that_cannot_be_read(memory_root):
    table = DeltaTable(*memory_root)
    table.commit(add("a"), add("b"), add("c"))
    table.commit(remove("a"))
    table.commit(remove("b"))
    table.commit(add("d"))
    table.checkpoint(4)
    table.commit(remove("c"))
    table.filesystem.pipe_file(f"{table.root}/_delta_log/{2:020}.json", b"{")

    known = lifetimes_of(Delta(Storage(table.url)))

    rows = {row["path"]: row for row in known.to_arrow().to_pylist()}
    assert (known.versions, list(known.unread)) == ((0, 1, 4, 5), [2, 3])
    assert [rows[name]["removed_version"] for name in "abc"] == [4, 4, 5]
    assert [rows[name]["removed_at"] is None for name in "abc"] == [True, True, False]
    assert [rows[name]["added_version"] for name in "ad"] == [1, None]


def test_what_cannot_be_read_beside_the_first_state_is_read_a_few_times(table, counted):
    for _ in range(3):
        table.commit()
    damaged = f"{table.root}/manifest/manifest-list-3-1"
    table.filesystem.pipe_file(damaged, b"no list")

    known = lifetimes_of(Paimon(Storage(f"counted:/{table.root}")))

    assert (known.versions, list(known.unread)) == ((1, 2), [3])
    # With version 2, alone, once more, and as a part of the files of version 3, twice.
    assert [one.kind for one in counted.requests if one.path == damaged.strip("/")].count("get") <= 5
