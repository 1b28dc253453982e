"""What faults once got past: answers with less than the truth, and wrong answers that were kept."""

import dataclasses
import re
from contextlib import suppress

import pyarrow as pa
import pytest

from snapshot_explorer import errors
from snapshot_explorer.arrow import compute as pc
from tests.support.fault_search import tables
from tests.support.faults import Fault, Request, Store, registered
from tests.support.public_calls import opened


@pytest.fixture
def stored():
    with registered():
        yield lambda name: Store(tables()[name], name.replace("/", "-"))


def _plant(store, kind, pattern, call, *, lasts=False, nth=0):
    """Let the first request of a call whose operation and path match, or the nth after it, meet a fault."""
    table = opened(store)
    fresh = opened(store)
    store.heed(None)
    call(fresh)
    asked = [one for one in store.requests() if re.search(pattern, f"{one.operation} {one.path}")]
    store.heed(Fault(kind, asked[nth], lasts=lasts))
    return table


def test_versions_with_an_empty_index_manifest_are_named_and_no_others(stored):
    store = stored("paimon/dv_append")
    table = _plant(store, "emptied", "read .*/index-manifest-", lambda one: one.lifetimes(), lasts=True)

    known = table.lifetimes()

    assert list(known.unread) == [2, 3]
    assert known.versions == (1, 4, 5)
    assert "index-manifest-" in known.notes[1]
    with pytest.raises(errors.CorruptTableError, match="index-manifest-"):
        table.at(2).files()


def test_lifetimes_know_a_version_that_was_not_found_when_it_was_read_first(stored):
    store = stored("paimon/dv_append")
    table = _plant(store, "missing", "read .*/snapshot-1$", lambda one: one.lifetimes())

    assert table.lifetimes().versions == table.versions()


@pytest.mark.parametrize("kind", ["missing", "halved", "emptied", "page", "denied"])
def test_lifetimes_know_a_commit_that_was_answered_wrongly_once(stored, tmp_path, kind):
    store = stored("samples/payments")
    expected = opened(store).lifetimes().totals()
    table = _plant(store, kind, "read .*/0{20}.json$", lambda one: one.lifetimes())

    known = table.lifetimes(cache_dir=tmp_path)

    assert known.is_complete
    assert known.totals().equals(expected)
    assert opened(store).lifetimes(cache_dir=tmp_path).totals().equals(expected)


@pytest.mark.parametrize("kind", ["halved", "emptied", "blank", "denied"])
def test_lifetimes_are_whole_again_when_a_commit_is_answered_rightly(stored, tmp_path, kind):
    store = stored("samples/payments")
    expected = opened(store).lifetimes().totals()
    table = _plant(store, kind, "read .*/0{20}.json$", lambda one: one.lifetimes(), lasts=True)

    lacking = table.lifetimes(cache_dir=tmp_path)
    store.heed(None)

    assert 0 in lacking.unread
    assert "00000000000000000000.json" in " ".join(lacking.notes)
    assert not any(tmp_path.iterdir())
    assert table.lifetimes(cache_dir=tmp_path).totals().equals(expected)
    assert opened(store).lifetimes(cache_dir=tmp_path).totals().equals(expected)


def test_a_commit_is_counted_that_could_not_be_when_it_was_first_requested(stored):
    store = stored("paimon/dv_append")
    pattern = "read .*/manifest/manifest-list-"
    snapshot = _plant(store, "missing", pattern, lambda one: one.current.commit, lasts=True).current
    assert snapshot.commit.added_files is None
    store.heed(None)

    assert snapshot.commit.added_files is not None


@pytest.mark.parametrize("file", ["manifest/manifest-list-", "manifest/manifest-[^l]", "manifest/index-manifest-"])
def test_a_manifest_that_was_not_found_once_is_requested_again(stored, file):
    store = stored("paimon/dv_append")
    expected = opened(store).history().to_arrow()
    table = _plant(store, "missing", f"read .*/{file}", lambda one: one.history())

    assert table.history().to_arrow().equals(expected)


@pytest.mark.parametrize("kind", ["list emptied", "list halved", "list without its newest"])
@pytest.mark.parametrize("name", ["paimon/dv_append", "delta/dv_partitioned"])
def test_a_listing_that_lacks_files_which_are_there_is_refused(stored, name, kind):
    store = stored(name)
    table = _plant(store, kind, "list .*/(manifest|part=0|bucket-0)$", lambda one: one.verify().versions)

    with pytest.raises(errors.StorageError, match="which exists: the storage returned an incomplete listing"):
        table.verify()


def test_a_checkpoint_that_was_answered_wrongly_is_read_again(stored):
    store = stored("delta/cleaned_log")
    first = opened(store).versions()[0]
    expected = opened(store).at(first).to_arrow()
    table = _plant(store, "halved", "read .*checkpoint.parquet$", lambda one: one.at(first).to_arrow())
    with suppress(errors.CorruptTableError):  # where no other way leads to the version
        assert table.at(first).to_arrow().equals(expected)

    assert table.at(first).to_arrow().equals(expected)


def test_history_counts_rows_though_a_checkpoint_was_answered_wrongly_once(stored):
    store = stored("delta/cleaned_log")
    expected = opened(store).history().to_arrow()
    table = _plant(store, "halved", "read .*checkpoint.parquet$", lambda one: one.history())

    assert table.history().to_arrow().equals(expected)


def test_branches_say_that_the_storage_failed(stored):
    store = stored("samples/orders")
    table = _plant(store, "timeout", "list .*/branch-[^/]*/snapshot$", lambda one: one.branches(), lasts=True)

    with pytest.raises(errors.StorageError, match="TimeoutError"):
        table.branches()


@pytest.mark.parametrize("lasts", [False, True])
def test_a_commit_that_ends_between_two_lines_too_soon_is_not_taken_for_whole(stored, lasts):
    store = stored("delta/mapping_vectors_feed")
    path = next(name for name in store.files if name.endswith("0007.json"))
    head = store.files[path][: len(store.files[path]) // 2]
    assert head.endswith((b"}", b"}\n")), "half of this commit reads as a commit"
    expected = opened(store).at("latest").file_changes(since="earliest").to_arrow()
    table = _plant(
        store, "halved", "read .*0007.json$", lambda one: one.at("latest").file_changes(since="earliest"), lasts=lasts
    )

    changes = table.at("latest").file_changes(since="earliest")

    # Version 7 may have changed the columns under which version 8 wrote.
    lost = pa.array([7, 8] if lasts else [], pa.int64())
    assert changes.to_arrow().equals(expected.filter(pc.invert(pc.is_in(expected["version"], lost))))
    cut = r"The changes of versions 7 and 8 cannot be read: .*0007\.json has \d+ bytes, but \d+ by the .* cut short"
    assert [bool(re.match(cut, note)) for note in changes.notes] == [True] * lasts


def test_a_search_by_time_does_not_take_a_version_for_expired_that_it_did_not_find(stored):
    store = stored("paimon/evolution_append")
    time = opened(store).history().to_arrow()["committed_at"][1].as_py()
    table = _plant(store, "missing", "read .*/snapshot-2$", lambda one: one.history(since=time))

    with pytest.raises(errors.SnapshotNotFoundError, match="No version matches @"):
        table.history(since=time)


def test_a_table_with_a_hint_that_cannot_be_read_is_not_empty_because_a_listing_is(stored):
    store = stored("paimon/dv_append")
    snapshots = [name for name in store.files if "/snapshot/snapshot-" in name]
    store.files[f"{store.root}/snapshot/LATEST"] = b"?"

    with store.without(snapshots), pytest.raises(errors.StorageError, match="its hint snapshot/LATEST cannot be read"):
        opened(store)


@pytest.mark.parametrize("kind", ["list emptied", "list halved", "list without its newest"])
def test_the_system_table_of_snapshots_lacks_none(stored, kind):
    store = stored("paimon/dv_append")
    table = _plant(store, kind, "list .*/snapshot$", lambda one: one.inspect("snapshots"))

    with pytest.raises(errors.StorageError, match="lacks snapshot 5"):
        table.inspect("snapshots")


def test_a_listing_of_schemas_that_lacks_one_which_was_read_is_refused(stored):
    store = stored("paimon/fallback_unpartitioned")
    table = _plant(store, "list halved", "list .*[^-/]/schema$", lambda one: one.current.plan())

    with pytest.raises(errors.StorageError, match="the listing is incomplete"):
        table.current.plan()


def _refused(table):
    with pytest.raises(errors.UnsupportedFeatureError, match="primary branch"):
        table.inspect("audit_log")


def test_a_listing_of_schemas_that_lacks_the_snapshots_own_is_refused_before_rows(stored):
    store = stored("paimon/primary_branch")
    table = _plant(store, "list halved", "list .*[^-/]/schema$", _refused, lasts=True)

    with pytest.raises(errors.StorageError, match="ends at schema 0, but schema 1 exists: the listing is incomplete"):
        table.inspect("audit_log")


def test_schemas_are_listed_again_after_a_listing_that_lacked_the_snapshots_own(stored):
    store = stored("paimon/primary_branch")

    _refused(_plant(store, "list halved", "list .*[^-/]/schema$", _refused))


def test_the_system_table_of_snapshots_does_not_end_before_the_newest(stored):
    store = stored("paimon/first_row_ignore_delete")
    table = _plant(store, "missing", "read .*/snapshot-6$", lambda one: one.inspect("snapshots"), lasts=True, nth=-1)

    with pytest.raises(errors.StorageError, match="snapshot-6 .* vanished while it was read"):
        table.inspect("snapshots")


@pytest.mark.parametrize("kind", ["list emptied", "list halved", "list without its newest"])
def test_retention_lacks_no_snapshot_whichever_listing_is_incomplete(stored, kind):
    store = stored("paimon/dv_append")
    expected = opened(store).retention(keep="1000d").versions.to_dict()
    _plant(store, kind, "list .*/snapshot$", lambda one: one.retention(keep="1000d"))
    first = store.fault.request
    listings = range(first.occurrence, first.occurrence + 5)

    found = []
    for occurrence in listings:
        store.heed(None)
        table = opened(store)
        store.heed(Fault(kind, dataclasses.replace(first, occurrence=occurrence)))
        try:
            found.append(table.retention(keep="1000d").versions.to_dict())
        except errors.SnapshotExplorerError as error:
            assert re.search("fewer versions|shows no snapshot|no version any more", str(error))  # noqa: PT017 - or right

    assert all(one == expected for one in found)


def test_a_comparison_says_which_commit_a_file_is_from_though_a_commit_was_not_found_once(stored):
    store = stored("delta/mapping_vectors_feed")
    expected = opened(store).compare(5, 9).files.to_arrow()
    table = _plant(store, "missing", "read .*0007.json$", lambda one: one.compare(5, 9).files)

    assert table.compare(5, 9).files.to_arrow().equals(expected)


def test_a_comparison_is_refused_while_the_storage_lists_a_commit_and_does_not_return_it(stored):
    store = stored("delta/mapping_vectors_feed")
    comparison = opened(store).compare(5, 9)
    assert len(comparison.partitions)
    commit = next(name for name in store.files if name.endswith("0007.json"))
    store.heed(Fault("missing", Request("read", commit, 0), lasts=True))

    with pytest.raises(errors.StorageError, match=r"lists a commit that it then does not return: .*0007\.json"):
        _ = comparison.files


@pytest.mark.parametrize("kind", ["halved", "emptied"])
def test_a_metadata_file_that_is_being_written_is_read_again(stored, kind):
    store = stored("iceberg/v2_cow")
    expected = opened(store).versions()
    path = next(name for name in store.files if name.endswith(".metadata.json"))
    store.heed(Fault(kind, Request("read", path, 0)))

    table = opened(store)

    assert store.struck
    assert table.versions() == expected


def test_a_metadata_file_that_stays_cut_short_is_refused_with_advice(stored):
    store = stored("iceberg/v2_cow")
    path = next(name for name in store.files if name.endswith(".metadata.json"))
    store.heed(Fault("halved", Request("read", path, 0), lasts=True))

    with pytest.raises(errors.CorruptTableError, match="cut short or damaged. If a writer is active, try again"):
        opened(store)
