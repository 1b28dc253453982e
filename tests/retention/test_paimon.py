"""What expiry would take from Paimon tables: by settings, tags, consumers and branches, and what is refused."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.analysis.retention import retention_of
from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError
from snapshot_explorer.history import history_of
from tests.inner.view import COPY_SCRIPT
from tests.support.paimon.table_builder import PaimonTable

TABLES = Path(__file__).parents[1] / "data" / "paimon"
BASE = datetime(2026, 1, 1, tzinfo=UTC)
"""The commit of version N of a built table is N minutes later."""


@pytest.fixture
def written(memory_root):
    """A callable: a table of ten versions, of which each replaces the file of the one before."""
    filesystem, root = memory_root

    def made(versions=10, name="shop.db/orders", **options):
        table = PaimonTable(filesystem, f"{root}/{name}", options=options)
        for number in range(1, versions + 1):
            removed = [f"data-{number - 1}.parquet"] if number > 1 else []
            table.commit([(number, "a")], removed=removed, kind="OVERWRITE")
        return table

    return made


@pytest.fixture
def size(written):
    """Return the size of a data file of one row."""
    return written(1, name="shop.db/one").sizes["data-1.parquet"]


def retention(written, *, keep=None, keep_last=None, minutes=100):
    table = open_table(f"memory://{written.root}")
    now = BASE + timedelta(minutes=minutes)
    return retention_of(
        history_of(table).table_format, table.lifetimes(), keep=keep, keep_last=keep_last, name=table.name, now=now
    )


def consumer(written, name, version):
    written.write(f"consumer/consumer-{name}", json.dumps({"nextSnapshot": version}).encode())


def lost(result):
    return sorted(result.unloadable["version"].to_pylist())


def freed(result):
    return [path.removeprefix("bucket-0/data-").removesuffix(".parquet") for path in result.freed["path"].to_pylist()]


def reasons(result):
    return {row["version"]: row["because"] for row in result.versions.to_dict()}


def holders(result):
    names = ("files", "size_bytes", "exclusive_files", "exclusive_bytes")
    return {row["name"] or row["holder"]: tuple(row[name] for name in names) for row in result.holders.to_dict()}


def test_versions_beyond_the_number_and_the_age_are_lost_with_the_files_only_they_have(written, size):
    result = retention(written(), keep="10m", keep_last=3)

    assert lost(result) == [1, 2, 3, 4, 5, 6, 7]
    assert freed(result) == ["1", "2", "3", "4", "5", "6", "7"]
    assert (result.freed_files, result.freed_bytes) == (7, 7 * size)
    assert result.freed["removed_version"].to_pylist() == [2, 3, 4, 5, 6, 7, 8]
    assert holders(result) == {"kept versions": (2, 2 * size, 2, 2 * size)}


def test_young_versions_are_kept_however_many_there_are(written):
    result = retention(written(), keep="5m", keep_last=1, minutes=11)

    assert lost(result) == [1, 2, 3, 4, 5]
    assert reasons(result)[6] == "younger than 5 minutes"
    assert reasons(result)[10] == "the newest"


def test_what_is_not_given_is_the_tables_own_setting_or_paimons_default(written):
    own = {"snapshot.num-retained.min": "2", "snapshot.time-retained": "1 d"}

    defaults = retention(written(12), minutes=1000)
    result = retention(written(12, "other", **own), minutes=2000)

    assert lost(defaults) == [1, 2]
    assert "1 hour (Paimon's default of snapshot.time-retained)" in str(defaults)
    assert "10 versions (Paimon's default of snapshot.num-retained.min)" in str(defaults)
    assert lost(result) == list(range(1, 11))
    assert "1 day (the table's snapshot.time-retained)" in str(result)
    assert "2 versions (the table's snapshot.num-retained.min)" in str(result)


def test_versions_beyond_the_greatest_number_are_lost_however_young(written):
    table = written(**{"snapshot.num-retained.max": "4", "snapshot.num-retained.min": "1"})

    assert lost(retention(table, keep="30d")) == [1, 2, 3, 4, 5, 6]
    more = retention(table, keep="30d", keep_last=6)
    assert lost(more) == [1, 2, 3, 4]
    assert "retain_max => 6" in dict(more.commands)["Spark SQL"]


def test_a_tag_keeps_its_version_and_its_files(written, size):
    table = written()
    table.tag("month", 3)
    table.tag("again", 3)
    table.tag("new", 9)

    result = retention(table, keep="0d", keep_last=2)

    assert lost(result) == [1, 2, 4, 5, 6, 7, 8]
    assert reasons(result)[3] == "tag again, month; its snapshot expires"
    assert freed(result) == ["1", "2", "4", "5", "6", "7", "8"]
    assert holders(result) == {
        "kept versions": (1, size, 0, 0),
        "month": (1, size, 0, 0),  # the other tag holds the same
        "again": (1, size, 0, 0),
        "new": (1, size, 0, 0),
    }


def test_a_tag_alone_holds_what_no_kept_version_has(written, size):
    table = written()
    table.tag("month", 3)

    assert holders(retention(table, keep="0d", keep_last=2))["month"] == (1, size, 1, size)
    assert holders(retention(table, keep="0d", keep_last=9))["month"] == (1, size, 0, 0)


def test_a_tag_whose_snapshot_has_expired_holds_its_files_still(written, size):
    table = written()
    table.tag("month", 2)
    table.expire(5)

    result = retention(table, keep="0d", keep_last=1)

    assert reasons(result)[2] == "tag month; its snapshot has expired"
    assert lost(result) == [5, 6, 7, 8, 9]
    assert freed(result) == ["5", "6", "7", "8", "9"]
    assert holders(result)["month"] == (1, size, 1, size)


def test_a_consumer_keeps_the_versions_from_the_one_it_reads_next(written, size):
    table = written()
    consumer(table, "etl", 4)
    consumer(table, "later", 9)

    result = retention(table, keep="0d", keep_last=1)

    assert lost(result) == [1, 2, 3]
    assert reasons(result)[4] == "consumer etl reads on from version 4"
    assert holders(result)["etl"] == (6, 6 * size, 5, 5 * size)
    assert holders(result)["later"] == (1, size, 0, 0)


@pytest.mark.parametrize("name", ["dv", "first_row", "aggregates_lookup", "written_by_0_7"])
def test_a_file_that_moved_to_another_level_is_freed_once_and_only_when_it_is_gone(name):
    table = open_table(TABLES / name)
    paths = table.lifetimes().to_arrow()["path"].to_pylist()
    live = set(table.current.files()["path"].to_pylist())

    result = table.retention("0d", keep_last=1)

    gone = [row["path"] for row in result.freed.to_dict() if row["what"] == "data"]
    tagged = {
        path for version in history_of(table).tags().values() for path in table.at(version).files()["path"].to_pylist()
    }
    assert len(paths) > len(set(paths))
    assert sorted(gone) == sorted(set(paths) - live - tagged)


def test_a_branch_holds_nothing_and_is_said_to_lose_what_it_shares(tmp_path):
    folder = tmp_path / "orders"
    shutil.copytree(samples.path("orders"), folder)
    held = open_table(folder).retention("0d", keep_last=1)
    assert branch_note(held) == "expiry ignores branches; it would delete none of its files"

    for tag in folder.glob("tag/tag-*"):
        tag.unlink()
    alone = open_table(folder).retention("0d", keep_last=1)
    assert branch_note(alone).startswith("expiry ignores branches: it would delete ")
    assert "Branch dev: expiry ignores branches" in str(alone)


def branch_note(result):
    return next(row["note"] for row in result.holders.to_dict() if row["holder"] == "branch")


def test_a_branch_that_cannot_be_read_is_said_so(tmp_path):
    folder = tmp_path / "orders"
    shutil.copytree(samples.path("orders"), folder)
    for snapshot in Path(folder).glob("branch/branch-dev/snapshot/snapshot-*"):
        snapshot.write_bytes(b"{")

    note = branch_note(open_table(folder).retention("0d", keep_last=1))

    assert "the files of this one are unknown: " in note
    assert "branch/branch-dev/snapshot/snapshot-" in note


def test_a_branch_expires_by_its_own_tags_and_snapshots():
    table = open_table(samples.path("orders"), branch="dev")

    result = table.retention("0d", keep_last=1)

    assert max(table.versions()) not in lost(result)
    assert "orders$branch_dev" in dict(result.commands)["Spark SQL"]
    assert {row["name"] for row in result.holders.to_dict() if row["holder"] == "branch"} == {"main"}


def test_where_nothing_would_go_no_command_is_shown():
    result = open_table(samples.path("orders")).retention("100000d")

    assert not len(result.unloadable)
    assert "Nothing would be lost and no file would go, so no command is shown." in str(result)
    assert not any(word in str(result) for word in ("max_deletes", "The command reads", "DATABASE"))


def test_the_commands_are_those_that_would_do_it(written):
    result = retention(written(), keep="1d", keep_last=3, minutes=2000)

    rest = "retain_min => 3, older_than => '2026-01-01 09:20:00.000', max_deletes => 7)"
    assert result.commands == (
        ("Spark SQL", f"CALL sys.expire_snapshots(table => 'shop.orders', {rest}"),
        ("Flink SQL", f"CALL sys.expire_snapshots(`table` => 'shop.orders', {rest}"),
    )


def test_a_version_is_as_old_as_the_one_after_it_where_paimon_2_wrote(written):
    older = written()
    newer = written(9, "newer")
    newer.commit([(10, "a")], removed=["data-9.parquet"], kind="OVERWRITE", operation="WRITE")

    one, two = (retention(table, keep="5m", keep_last=1, minutes=11) for table in (older, newer))

    assert (lost(one), lost(two)) == ([1, 2, 3, 4, 5], [1, 2, 3, 4])
    assert "By the rule of Paimon 1.x, which wrote the newest version. 2.0 would keep all from version 5 on." in str(
        one
    )
    assert "By the rule of Paimon 2.0, which wrote the newest version. 1.x would keep all from version 6 on." in str(
        two
    )


def test_a_path_that_does_not_tell_the_database_is_said_so(written):
    result = retention(written(3, "lake/my-orders"), keep="0d", keep_last=1)

    assert "'DATABASE.`my-orders`'" in dict(result.commands)["Spark SQL"]
    assert "The path does not contain the database: replace DATABASE with its name." in str(result)


@pytest.mark.parametrize(("keep", "keep_last"), [("0d", 100), ("9w", None), ("0d", 10), ("0d", 2**31 - 1)])
def test_a_rule_that_keeps_all_frees_nothing(written, keep, keep_last):
    result = retention(written(), keep=keep, keep_last=keep_last)

    assert lost(result) == freed(result) == []
    assert "lost versions  none" in str(result)
    assert "0 files, 0 B" in str(result)


def test_a_commit_that_lands_meanwhile_is_ignored(written):
    more = written()
    table = open_table(f"memory://{more.root}")
    known = table.lifetimes()
    more.commit([(11, "a")], removed=["data-10.parquet"], kind="OVERWRITE")

    now = BASE + timedelta(minutes=100)
    result = retention_of(history_of(table).table_format, known, keep="0d", keep_last=1, name="t", now=now)

    assert lost(result) == list(range(1, 10))
    assert freed(result) == [str(number) for number in range(1, 10)]


def test_the_only_version_is_kept(written):
    result = retention(written(1), keep="0d", keep_last=1)

    assert lost(result) == freed(result) == []
    assert reasons(result) == {1: "the newest"}


def test_a_table_without_snapshots_loses_nothing(memory_root):
    filesystem, root = memory_root
    table = PaimonTable(filesystem, root)

    result = retention(table, keep="0d")

    assert (len(result.versions), result.freed_files, result.commands) == (0, 0, ())
    assert "The table has no snapshots: nothing expires." in str(result)


def test_what_expiry_over_a_gap_deletes_is_unknown(written):
    table = written()
    table.remove("snapshot/snapshot-4")

    result = retention(table, keep="0d", keep_last=2)

    unknown = "versions 1 to 8 would delete is unknown: snapshot 4 is missing"
    assert any(unknown in note for note in result.notes)
    assert (len(result.freed), len(result.metadata_files), result.freed_bytes) == (0, 0, None)
    assert lost(result) == []
    assert lost(retention(table, keep="0d", keep_last=8)) == [1, 2]


def test_a_version_that_is_missing_is_noted_where_nothing_expires(written):
    table = written()
    table.remove("snapshot/snapshot-4")

    assert any(note.startswith("Version 4 is missing") for note in retention(table, keep="1000d").notes)


def test_expiry_begins_where_the_hint_says(written):
    table = written()
    table.write("snapshot/EARLIEST", b"4")

    result = retention(table, keep="0d", keep_last=3)

    assert lost(result) == [4, 5, 6, 7]
    assert reasons(result)[3] == "is before the hint EARLIEST, where expiry begins"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"snapshot.num-retained.min": "many"}, "option snapshot.num-retained.min must be 1 or more, got 'many'"),
        ({"snapshot.num-retained.max": "0"}, "option snapshot.num-retained.max must be 1 or more, got '0'"),
        ({"snapshot.time-retained": "long"}, "option snapshot.time-retained must be a duration, got 'long'"),
    ],
)
def test_an_invalid_setting_is_named(written, options, message):
    with pytest.raises(CorruptTableError, match=message):
        retention(written(**options))


@pytest.mark.parametrize("keep", ["7", "", "d", "-1d", "1x", "7d!", "1.5d", timedelta(days=-1), "9" * 16 + "d"])
def test_a_keep_that_is_not_a_duration_is_refused_with_examples(written, keep):
    with pytest.raises(
        InvalidArgumentError,
        match=r"is not a duration\.( Did you mean 7d\?)? Use a whole number with a unit: 0d, 36h, 7d, 2w",
    ):
        retention(written(1), keep=keep)


def test_a_keep_beyond_the_calendar_is_refused(written):
    with pytest.raises(InvalidArgumentError, match="reaches back before the year 1. Use a shorter time"):
        retention(written(1), keep="999999d")


@pytest.mark.parametrize("keep_last", [0, -1, 2**31])
def test_a_keep_last_below_one_is_refused(written, keep_last):
    with pytest.raises(
        InvalidArgumentError, match=f"keep_last must be 1 to .*, got {keep_last}. The newest version is always kept"
    ):
        retention(written(1), keep_last=keep_last)


@pytest.mark.parametrize("keep", ["1d12h", "1 day 12 hours", "36 h", timedelta(hours=36)])
def test_a_keep_may_be_written_in_several_ways(written, keep):
    assert "keep           1 day 12 hours (as requested)" in str(retention(written(1), keep=keep))


def test_settings_that_only_apply_to_writers_are_noted(written):
    longer = {"changelog.time-retained": "30 d", "consumer.changelog-only": "true"}

    said = " ".join(str(retention(written(3, **longer))).split())

    assert "writers apply them when they expire snapshots, the command does not" in said
    assert "consumer.changelog-only: writers apply it, the command does not" in said


def test_a_consumer_file_that_is_damaged_is_named(written):
    table = written()
    table.write("consumer/consumer-etl", b"{")

    with pytest.raises(CorruptTableError, match="consumer/consumer-etl"):
        retention(table)


def test_html_escapes_what_the_table_says(written):
    table = written()
    table.tag("<script>", 3)

    html = retention(table, keep="0d", keep_last=1)._repr_mimebundle_()["text/html"]

    assert "<script>" not in html.replace(COPY_SCRIPT, "")
    assert "&lt;script&gt;" in html
