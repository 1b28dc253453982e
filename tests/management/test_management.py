"""SnapshotManagement: which snapshot is current, and when the log is listed again."""

import logging
import threading
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from snapshot_explorer.errors import StorageError, TableNotFoundError
from snapshot_explorer.history import SnapshotManagement
from tests.inner.core import Listing, Validation


@dataclass
class Log:
    """A table's log in memory, with a clock that only moves when advanced."""

    versions: tuple[int, ...] = ()
    checkpoint: int | None = None
    listed: int = 0
    now: int = 1_000
    broken: bool = False
    wait_for: threading.Event = field(default_factory=threading.Event)
    entered: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self):
        self.wait_for.set()

    def list_log(self, start=None):
        self.entered.set()
        assert self.wait_for.wait(60)
        self.listed += 1
        if self.broken:
            raise StorageError("the storage does not answer")
        return Listing(versions=self.versions, identity=(self.versions[-1:],), checkpoint=self.checkpoint)

    def clock(self):
        return self.now


class Snap:
    def __init__(self, listing):
        self.listing = listing
        self.version = listing.latest
        self.cached = True

    def uncache(self):
        self.cached = False

    def __str__(self):
        return f"Snap({self.version})"


def manage(log, **options):
    return SnapshotManagement(log.list_log, Snap, clock=log.clock, **options)


def test_the_newest_snapshot_is_current_from_the_start(caplog):
    log = Log(versions=(1, 2, 3))

    with caplog.at_level(logging.INFO):
        management = manage(log)

    assert management.current_snapshot.version == 3
    assert management.last_update_timestamp == 1_000
    assert caplog.messages == [
        "Loading version 3.",
        "Created snapshot Snap(3)",
        "Returning initial snapshot Snap(3)",
    ]


def test_a_checkpoint_is_named_in_the_log_line(caplog):
    with caplog.at_level(logging.INFO):
        manage(Log(versions=(10, 11, 12, 13), checkpoint=10))

    assert caplog.messages[0] == "Loading version 13 starting from checkpoint version 10."


def test_a_table_without_versions_has_a_snapshot_without_a_version(caplog):
    with caplog.at_level(logging.INFO):
        management = manage(Log())

    assert management.current_snapshot.version is None
    assert management.last_update_timestamp == -1
    assert caplog.messages[0] == "Creating initial snapshot without metadata, because the directory is empty"


def test_an_update_that_finds_nothing_new_returns_the_same_object_and_moves_the_timestamp():
    log = Log(versions=(1,))
    management = manage(log)
    first = management.current_snapshot
    log.now = 2_000

    second = management.update()

    assert second is first
    assert first.cached
    assert management.last_update_timestamp == 2_000


def test_an_update_that_finds_a_commit_replaces_the_snapshot_and_uncaches_the_old_one(caplog):
    log = Log(versions=(1,))
    management = manage(log)
    old = management.current_snapshot
    log.versions = (1, 2)

    with caplog.at_level(logging.INFO):
        new = management.update()

    assert (old.version, new.version) == (1, 2)
    assert management.current_snapshot is new
    assert not old.cached
    assert caplog.messages == ["Loading version 2.", "Created snapshot Snap(2)", "Updated snapshot to Snap(2)"]


def test_a_failed_update_leaves_snapshot_and_timestamp_alone():
    log = Log(versions=(1,))
    management = manage(log)
    old, log.broken, log.now = management.current_snapshot, True, 5_000

    with pytest.raises(StorageError):
        management.update()

    assert management.current_snapshot is old
    assert management.last_update_timestamp == 1_000


def test_without_a_staleness_limit_every_snapshot_is_stale():
    log = Log(versions=(1,))
    management = manage(log)
    log.versions = (1, 2)

    assert management.is_snapshot_stale
    assert management.update(staleness_acceptable=True).version == 2


def test_a_snapshot_is_stale_once_the_last_update_is_as_old_as_the_limit():
    log = Log(versions=(1,), now=1_000)
    management = manage(log, staleness_limit=timedelta(seconds=1))

    log.now = 1_999
    assert not management.is_snapshot_stale

    log.now = 2_000
    assert management.is_snapshot_stale


def test_a_snapshot_is_stale_before_the_first_update():
    assert manage(Log(), staleness_limit=timedelta(hours=1)).is_snapshot_stale


def test_a_fresh_snapshot_is_returned_at_once_and_refreshed_in_the_background():
    log = Log(versions=(1,))
    management = manage(log, staleness_limit=timedelta(hours=1))
    log.versions = (1, 2)
    log.wait_for.clear()

    at_once = management.update(staleness_acceptable=True)
    again = management.update(staleness_acceptable=True)
    log.wait_for.set()
    management.background_update.result(60)

    assert (at_once.version, again.version) == (1, 1)
    assert management.current_snapshot.version == 2
    assert log.listed == 2


def test_an_error_in_the_background_is_kept_and_logged(caplog):
    log = Log(versions=(1,))
    management = manage(log, staleness_limit=timedelta(hours=1))
    log.broken = True

    management.update(staleness_acceptable=True)
    management.background_update.exception(60)

    assert isinstance(management.last_background_error, StorageError)
    assert "could not be refreshed in the background: the storage does not answer" in caplog.text


def test_try_update_returns_the_current_snapshot_while_another_thread_updates():
    log = Log(versions=(1,))
    management = manage(log)
    log.versions = (1, 2)
    log.wait_for.clear()
    log.entered.clear()
    updating = threading.Thread(target=management.update)
    updating.start()
    assert log.entered.wait(60)

    seen = management.try_update()
    log.wait_for.set()
    updating.join(60)

    assert seen.version == 1
    assert management.current_snapshot.version == 2


def test_a_table_whose_log_vanished_keeps_its_snapshot():
    log = Log(versions=(1,))
    management = manage(log)
    first, log.versions, log.now = management.current_snapshot, (), 5_000

    with pytest.raises(TableNotFoundError, match="any more. Version 1 was the newest and remains current."):
        management.update()
    assert management.current_snapshot is first
    assert first.cached
    assert management.last_update_timestamp == 1_000

    log.versions = (1, 2)
    assert management.update().version == 2


def test_a_table_that_never_had_a_version_stays_empty():
    management = manage(Log())

    assert management.update().version is None


def test_a_vanished_log_is_named_by_its_place(caplog):
    log = Log(versions=(1,))
    management = manage(log, log_name="delta log found for the Delta table at /data/t")
    log.versions = ()

    with caplog.at_level(logging.INFO), pytest.raises(TableNotFoundError, match="at /data/t any more"):
        management.update()

    assert caplog.messages[0] == "No delta log found for the Delta table at /data/t"


def test_the_start_of_the_last_listing_is_handed_back_and_none_at_the_beginning():
    starts = []

    def list_log(start):
        starts.append(start)
        return Listing(versions=(10, 11), identity=(11, len(starts)), checkpoint=10, start=10)

    management = SnapshotManagement(list_log, Snap)
    management.update()

    assert starts == [None, 10]


def test_listings_of_the_same_commit_are_equal_whatever_checkpoint_they_begin_with(caplog):
    found = [Listing(versions=(10, 11), identity=(11,), checkpoint=10), Listing(versions=(11,), identity=(11,))]
    management = SnapshotManagement(lambda start: found.pop(0), Snap)
    first = management.current_snapshot

    assert management.update() is first


def test_what_contradicts_itself_is_a_warning_and_what_can_not_be_shown_an_error(caplog):
    log = Log(versions=(1,))

    def validate(version):
        if version == 2:
            raise StorageError("the version is damaged")
        return Validation(table_id="a", notes=("7.crc contradicts the log",))

    management = manage(log, validate=validate)
    first, log.versions = management.current_snapshot, (1, 2)

    assert "Snap(1): 7.crc contradicts the log" in caplog.messages
    with pytest.raises(StorageError, match="damaged"):
        management.update()
    assert management.current_snapshot is first


def test_another_table_at_the_same_place_is_reported(caplog):
    log = Log(versions=(1,))
    management = manage(log, validate=lambda version: Validation(table_id=f"t{version}", notes=()))
    log.versions = (1, 2)

    management.update()

    reported = "Change in the table id detected while updating snapshot. "
    assert f"{reported}\nPrevious snapshot = Snap(1)\nNew snapshot = Snap(2)." in caplog.messages


def test_many_threads_see_versions_only_grow():
    log = Log(versions=(1,))
    management = manage(log)
    seen = [[] for _ in range(8)]

    def poll(mine):
        for _ in range(50):
            mine.append(management.update().version)

    threads = [threading.Thread(target=poll, args=(mine,)) for mine in seen]
    for thread in threads:
        thread.start()
    for version in range(2, 60):
        log.versions = (*log.versions, version)
    for thread in threads:
        thread.join(60)

    assert all(mine == sorted(mine) for mine in seen)
