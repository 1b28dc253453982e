"""Which versions there are, by hints and by listing."""

import json

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError, SnapshotNotFoundError
from snapshot_explorer.formats.paimon import Paimon
from snapshot_explorer.storage import Storage
from tests.support.paimon.table_builder import PaimonTable


@pytest.fixture
def table(memory_root):
    filesystem, root = memory_root
    return PaimonTable(filesystem, root)


def opened(table, protocol="memory"):
    return Paimon(Storage(f"{protocol}:/{table.root}"))


def hint(table, content):
    table.write("snapshot/LATEST", content)


def snapshot(table, number):
    return json.loads(table.filesystem.cat_file(f"{table.root}/snapshot/snapshot-{number}"))


def commits(table, number):
    for _ in range(number):
        table.commit()


def test_the_hint_leads_to_the_newest_version(table):
    commits(table, 3)

    found = opened(table).listing()

    assert (found.versions, found.notes) == ((3,), ())


@pytest.mark.parametrize("content", [b"2", b"9", b"", b"garbage", b"-1", b"99999999999999999999", None])
def test_a_hint_that_is_wrong_or_missing_is_seen_through(table, content):
    commits(table, 4)
    table.remove("snapshot/LATEST") if content is None else hint(table, content)

    newest, everything = opened(table).listing(), opened(table).listing(0)

    assert newest.versions == (4,)
    assert everything.versions == (1, 2, 3, 4)
    assert len(newest.notes) == len(everything.notes) == 1
    assert "snapshot/LATEST" in newest.notes[0]
    assert newest.identity == everything.identity


def test_a_note_says_how_the_hint_disagrees(table):
    commits(table, 4)
    hint(table, b"2")

    assert opened(table).listing().notes == ("The hint snapshot/LATEST contains 2, but the newest snapshot is 4.",)


def test_a_hint_to_an_expired_snapshot_is_not_believed(table):
    commits(table, 4)
    table.expire(3)
    hint(table, b"1")

    assert opened(table).listing().versions == (4,)


def test_gaps_and_foreign_files_are_tolerated(table):
    commits(table, 6)
    table.expire(2)
    table.remove("snapshot/snapshot-4")
    table.write("snapshot/.snapshot-9.tmp", b"x")
    table.write("snapshot/snapshot-10.crc", b"x")

    found = opened(table).listing(0)

    assert found.versions == (2, 3, 5, 6)
    assert found.notes == ("1 snapshots between 2 and 6 are missing; Paimon's own time travel fails on such gaps.",)


def test_versions_begin_where_asked(table):
    commits(table, 5)

    assert opened(table).listing(4).versions == (4, 5)


def test_a_table_without_snapshots_has_no_version(table):
    paimon = opened(table)

    assert paimon.listing().versions == paimon.listing(0).versions == ()
    assert paimon.listing() == paimon.listing()
    assert paimon.version(None).schema.columns[0].name == "id"


def test_versions_that_only_a_tag_or_a_changelog_holds_count(table):
    commits(table, 6)
    table.tag("v2", 2)
    table.write("changelog/changelog-3", json.dumps(snapshot(table, 3)).encode())
    table.expire(5)

    found = opened(table).listing(0)
    frame = opened(table).commits(found.versions)

    assert found.versions == (2, 3, 5, 6)
    assert frame["readable"].to_pylist() == [None, "metadata", None, None]
    assert frame["tags"].to_pylist() == [["v2"], [], [], []]


def test_a_tag_that_cannot_be_read_is_noted_and_the_others_are_there(table):
    commits(table, 2)
    table.tag("good", 1)
    table.write("tag/tag-bad", b"{")

    found = opened(table).listing(0)

    assert found.versions == (1, 2)
    assert "tag/tag-bad is not a readable Paimon tag" in found.notes[0]
    assert opened(table).commits([1, 2])["tags"].to_pylist() == [["good"], None]
    with pytest.raises(CorruptTableError, match="tag/tag-bad"):
        opened(table).tags()


def test_a_tag_that_was_read_again_in_vain_is_read_once_by_later_calls_and_again_when_it_is_another(table, counted):
    commits(table, 2)
    table.write("tag/tag-bad", b"{")
    paimon = opened(table, "counted")

    def reads():
        counted.requests.clear()
        paimon.listing(0)
        return sum(request.path.endswith("tag-bad") for request in counted.requests)

    assert [reads(), reads(), reads()] == [3, 1, 1]
    table.write("tag/tag-bad", b"{{")
    assert reads() == 3


def test_equal_listings_mean_that_nothing_happened(table):
    commits(table, 3)
    paimon = opened(table)
    before = paimon.listing()

    assert paimon.listing() == before
    table.commit()
    assert paimon.listing() != before


def test_a_snapshot_made_again_under_its_number_is_another(table):
    commits(table, 3)
    paimon = opened(table)
    before = paimon.listing()
    assert paimon.commits([3])["user"].to_pylist() == ["tests"]

    table.write("snapshot/snapshot-3", json.dumps(snapshot(table, 3) | {"commitUser": "another"}).encode())

    assert paimon.listing() != before
    assert paimon.commits([3])["user"].to_pylist() == ["another"]


def test_a_rollback_drops_what_was_kept(table):
    commits(table, 5)
    paimon = opened(table)
    paimon.listing()
    paimon.commits([4, 5])

    for number in (4, 5):
        table.remove(f"snapshot/snapshot-{number}")
    hint(table, b"3")

    assert paimon.listing().versions == (3,)
    with pytest.raises(SnapshotNotFoundError, match="Version 5 does not exist. Available versions: 1 to 3."):
        paimon.commits([5])


def test_a_rollback_and_more_commits_than_before_drop_what_was_kept(table):
    commits(table, 5)
    paimon = opened(table)
    paimon.listing()
    assert paimon.commits([4])["user"].to_pylist() == ["tests"]

    for number in (4, 5, 6):
        table.write(
            f"snapshot/snapshot-{number}", json.dumps(snapshot(table, 3) | {"id": number, "commitUser": "new"}).encode()
        )
    hint(table, b"6")

    assert paimon.listing().versions == (6,)
    assert paimon.commits([4])["user"].to_pylist() == ["new"]


def test_commits_that_only_add_keep_what_was_read(table, counted):
    commits(table, 5)
    paimon = opened(table, "counted")
    paimon.listing()
    paimon.committed_at([1, 2, 3, 4, 5])
    table.commit()
    paimon.listing()
    counted.requests.clear()

    paimon.committed_at([1, 2, 3, 4, 5, 6])

    assert counted.requests == []


def test_an_expired_version_is_forgotten_once_a_listing_lacks_it(table):
    commits(table, 4)
    paimon = opened(table)
    paimon.commits([1, 2, 3, 4])
    table.filesystem.rm_file(f"{table.root}/snapshot/snapshot-1")

    paimon.listing(0)

    with pytest.raises(SnapshotNotFoundError, match="Version 1 has expired. Available versions: 2 to 4"):
        paimon.committed_at([1])


@pytest.mark.parametrize("number", [3, 60])
def test_the_newest_version_costs_the_same_however_long_the_history(table, counted, number):
    commits(table, number)
    paimon = opened(table, "counted")
    counted.requests.clear()

    paimon.listing()

    assert sorted(request.path.rpartition("/")[2] for request in counted.requests) == [
        "LATEST",
        "schema",
        f"snapshot-{number}",
        f"snapshot-{number + 1}",
    ]


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (99, "Version 99 does not exist. Available versions: 3 to 5. Try 5, latest or @2h."),
        (1, "Version 1 has expired. Available versions: 3 to 5. Try 3, latest or @2h."),
        (-4, "Version -4 does not exist. Available versions: 3 to 5. Try 3, latest or @2h."),
        (10**30, "does not exist. Available versions: 3 to 5. Try 5, latest"),
    ],
)
def test_an_unknown_version_says_which_exist(table, version, message):
    commits(table, 5)
    table.expire(3)
    paimon = opened(table)

    for ask in (paimon.version, lambda one: paimon.commits([one])):
        with pytest.raises(SnapshotNotFoundError, match=message.replace(".", r"\.")):
            ask(version)


def test_a_version_of_an_empty_table_says_so(table):
    with pytest.raises(SnapshotNotFoundError, match="Version 1 does not exist. memory:.* has no version yet"):
        opened(table).version(1).files()


def test_a_snapshot_under_the_name_of_another_is_broken(table):
    commits(table, 3)
    table.write("snapshot/snapshot-2", json.dumps(snapshot(table, 1)).encode())

    with pytest.raises(CorruptTableError, match="snapshot/snapshot-2 contains snapshot 1"):
        opened(table).commits([2])


def test_times_come_as_asked(table):
    commits(table, 3)

    times = opened(table).committed_at([3, 1])

    assert [time.isoformat() for time in times] == ["2026-01-01T00:03:00+00:00", "2026-01-01T00:01:00+00:00"]


def test_card_and_history_name_a_lost_newest_snapshot(table):
    table.commit()
    table.commit()
    table.remove("snapshot/snapshot-2")

    shown = open_table(f"memory:/{table.root}")

    assert shown.current.version == 1
    assert "Version 2 is missing: snapshot/LATEST names it" in shown._repr_mimebundle_()["text/plain"]
    assert "Version 2 is missing: snapshot/LATEST names it" in repr(shown.history())
    assert shown.history().notes
