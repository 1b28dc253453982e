"""Which files make a version: checkpoint, commits, gaps."""

import pytest

from snapshot_explorer.errors import CorruptTableError, SnapshotNotFoundError
from snapshot_explorer.storage import Entry, Storage
from tests.inner.delta import LogListing, earliest, for_version, list_log, log_files, staged_versions
from tests.support.delta.table_builder import BASE_MILLIS, DeltaTable, add


def listing(*names, sizes=()):
    entries = [Entry(name=name, is_folder=False, size_bytes=dict(sizes).get(name, 9), modified=None) for name in names]
    return LogListing("/data/t", tuple(log_files(entries)), staged=(), is_empty=not entries)


def commits(*versions):
    return [f"{version:020d}.json" for version in versions]


def classic(version):
    return f"{version:020d}.checkpoint.parquet"


def part(version, number, count):
    return f"{version:020d}.checkpoint.{number:010d}.{count:010d}.parquet"


def shown(segment):
    return segment.version, segment.checkpoint_version, [commit.version for commit in segment.commits]


GOLDEN = [*commits(*range(14)), classic(10)]


@pytest.mark.parametrize(
    ("start", "version", "segment"),
    [
        (10, None, (13, 10, [11, 12, 13])),
        (None, None, (13, 10, [11, 12, 13])),
        (None, 12, (12, 10, [11, 12])),
        (10, 10, (10, 10, [])),
        (None, 7, (7, None, list(range(8)))),
        (10, 7, (7, None, list(range(8)))),
        (0, None, (13, 10, [11, 12, 13])),
    ],
)
def test_a_version_is_its_best_checkpoint_and_the_commits_after_it(start, version, segment):
    found = for_version(listing(*GOLDEN), start, version)

    assert shown(found) == segment
    assert found.last_commit.version == found.version
    assert not found.notes


def test_a_version_that_does_not_exist_is_reported_with_those_that_do():
    with pytest.raises(SnapshotNotFoundError, match=r"^Version 14 does not exist. Available versions: 0 to 13\."):
        for_version(listing(*GOLDEN), None, 14)


def test_a_hint_that_points_nowhere_is_passed_over():
    found = for_version(listing(*commits(*range(5))), 3)

    assert shown(found) == (4, None, [0, 1, 2, 3, 4])
    assert found.notes[0].startswith("The checkpoint of version 3 to start from does not exist")


def test_a_hint_beyond_the_log_is_passed_over():
    assert shown(for_version(listing(*GOLDEN), 99)) == (13, 10, [11, 12, 13])


def test_a_checkpoint_without_bytes_is_none():
    found = for_version(listing(*GOLDEN, sizes=[(classic(10), 0)]), 10)

    assert shown(found) == (13, None, list(range(14)))


def test_a_newer_checkpoint_than_the_hint_is_found():
    assert shown(for_version(listing(*GOLDEN, classic(12)), 10)) == (13, 12, [13])


def test_a_checkpoint_of_parts_needs_them_all():
    whole = listing(*commits(0, 1, 2), part(1, 1, 2), part(1, 2, 2))
    cut = listing(*commits(0, 1, 2), part(1, 1, 2), part(1, 3, 2))

    assert shown(for_version(whole)) == (2, 1, [2])
    assert [file.part for file in for_version(whole).checkpoint] == [1, 2]
    assert shown(for_version(cut)) == (2, None, [0, 1, 2])
    without_the_middle = listing(*commits(0, 1, 2), part(1, 1, 3), part(1, 3, 3))
    assert shown(for_version(without_the_middle)) == (2, None, [0, 1, 2])


def test_of_two_sets_of_parts_the_whole_one_is_used():
    names = [*(part(1, number, 5) for number in range(1, 5)), part(1, 1, 2), part(1, 2, 2)]

    assert len(for_version(listing(*commits(0, 1), *names)).checkpoint) == 2


def test_of_two_forms_of_one_version_the_newer_form_is_used_and_of_two_uuids_the_greater():
    names = [classic(1), part(1, 1, 1), f"{1:020d}.checkpoint.aaa.json", f"{1:020d}.checkpoint.bbb.parquet"]
    kept = [for_version(listing(*commits(0, 1), *names[: count + 1])).checkpoint[0].name for count in range(4)]

    assert kept == names


def test_damaged_checkpoints_are_left_out():
    found = for_version(listing(*GOLDEN, classic(5)), None, unusable={classic(10)})

    assert shown(found) == (13, 5, list(range(6, 14)))


def test_a_gap_is_refused_and_the_missing_file_is_named():
    with pytest.raises(CorruptTableError, match=r"Versions \(0, 2\) are not contiguous: .* needs 0{19}1\.json"):
        for_version(listing(*commits(0, 2)))


def test_a_gap_before_the_checkpoint_does_not_affect_newer_versions():
    found = listing(*commits(0, 2, 3, 10, 11), classic(10))

    assert shown(for_version(found)) == (11, 10, [11])
    with pytest.raises(CorruptTableError, match="not contiguous"):
        for_version(found, None, 3)


def test_a_log_that_begins_too_late_is_refused_with_the_first_version_that_is_there():
    with pytest.raises(CorruptTableError, match=r"0{20}\.json: Unable to reconstruct state at version 7 .* version 6"):
        for_version(listing(*commits(6, 7)))


def test_a_version_that_was_cleaned_is_reported_with_those_that_are_left():
    log = listing(*commits(6, 7, 8, 9, 10, 11), classic(10))

    assert earliest(log) == 10
    with pytest.raises(SnapshotNotFoundError, match=r"^Version 7 has expired. Available versions: 10 to 11\."):
        for_version(log, None, 7)


def test_a_checkpoint_whose_commit_is_gone_is_a_version_still():
    found = for_version(listing(classic(108)))

    assert shown(found) == (108, 108, [])
    assert found.last_commit is None


@pytest.mark.parametrize(
    ("names", "answer"),
    [
        ([*commits(0, 1)], 0),
        ([*commits(2, 3, 4), classic(2)], 2),
        ([*commits(1, 2), classic(2)], 2),
        ([*commits(4, 5, 6), classic(2), classic(5)], 5),
        ([*commits(3, 4), classic(2)], 2),
        ([*commits(3, 4)], None),
        ([], None),
    ],
)
def test_the_earliest_version_that_can_be_reconstructed(names, answer):
    assert earliest(listing(*names)) == answer


def test_of_two_spellings_of_a_version_the_usual_one_counts():
    found = for_version(listing("0.json", *commits(0), "1.json"))

    assert [commit.name for commit in found.commits] == [*commits(0), "1.json"]


def test_the_listing_knows_an_empty_log_and_staged_commits(tmp_path):
    assert list_log(Storage(str(tmp_path))).is_empty
    table = DeltaTable(None, tmp_path)
    table.write(f"_delta_log/_staged_commits/{1:020d}.3a0d.json", b"{}")

    found = list_log(Storage(str(tmp_path)))

    assert found.staged == ("_staged_commits",)
    assert not found.is_empty
    assert staged_versions(Storage(str(tmp_path)).list("_delta_log/_staged_commits")) == [1]
    assert [file.version for file in found.commits_between(0, None)] == [0]


def test_two_listings_go_on_unless_a_file_became_another(tmp_path):
    table = DeltaTable(None, tmp_path)
    before = list_log(Storage(str(tmp_path)))
    table.append([(1, "a")])
    longer = list_log(Storage(str(tmp_path)))
    table.write(f"_delta_log/{0:020d}.json", b"{}\n")

    assert before.goes_on_in(longer)
    assert not before.goes_on_in(list_log(Storage(str(tmp_path))))


def test_a_log_in_which_nothing_happened_is_the_same_listing(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.commit(add("a"))
    table.checkpoint()
    storage = Storage(str(tmp_path))
    before = list_log(storage)

    assert list_log(storage, before) is before

    table.commit(add("b"))
    longer = list_log(storage, before)
    assert longer == list_log(storage)
    assert set(before.files) < set(longer.files)
    assert before.goes_on_in(longer)


@pytest.mark.parametrize(("more", "millis"), [(b"\n", 0), (b"", 1), (b"\n", 1)])
def test_a_commit_that_is_another_one_now_is_listed_anew(tmp_path, more, millis):
    table = DeltaTable(None, tmp_path)
    table.commit(add("a"))
    storage = Storage(str(tmp_path))
    before = list_log(storage)
    name = f"_delta_log/{1:020d}.json"

    table.write(name, table.read(name) + more, millis=BASE_MILLIS + 60_000 + millis)

    found = list_log(storage, before)
    assert found == list_log(storage) != before
    assert not before.goes_on_in(found)


def test_a_checkpoint_that_lost_its_bytes_is_left_out_of_a_later_listing_too(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.commit(add("a"))
    (path,) = table.checkpoint(hint=False)
    storage = Storage(str(tmp_path))
    before = list_log(storage)
    table.write(path, b"")

    assert len(before.checkpoints) == 1
    assert list_log(storage, before).checkpoints == []
