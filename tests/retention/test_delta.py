"""What VACUUM would take from Delta tables: by time, by the number of versions, and what is refused."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.analysis.retention import retention_of
from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.history import history_of
from tests.support.delta.table_builder import BASE_MILLIS, DeltaTable, cdc, remove

NOW = datetime.fromtimestamp(BASE_MILLIS / 1000, UTC) + timedelta(days=2)
"""Two days after the first commit; commit V is made V hours after it, and replaces the file of the one before."""
HOUR = 3_600_000


@pytest.fixture
def written(tmp_path):
    """A callable: a table of versions 0 to 10, of which each but 0 has one file."""

    def made(versions=10, **configuration):
        table = DeltaTable(None, tmp_path / "shop" / "orders", configuration=configuration)
        for version in range(1, versions + 1):
            millis = BASE_MILLIS + version * HOUR
            gone = [remove(f"data-{version - 1}.parquet", millis=millis - 500)] if version > 1 else []
            table.commit(table.data(f"data-{version}.parquet", [(version, "a")]), *gone, millis=millis)
            age(table, f"data-{version}.parquet", millis - 1000)
        return table

    return made


def age(table, path, millis):
    os.utime(f"{table.root}/{path}", ns=(millis * 1_000_000,) * 2)


def retention(written, *, keep=None, keep_last=None, now=NOW):
    table = open_table(written.url)
    return retention_of(
        history_of(table).table_format, table.lifetimes(), keep=keep, keep_last=keep_last, name=table.name, now=now
    )


def lost(result):
    return sorted(result.unloadable["version"].to_pylist())


def freed(result):
    return {row["path"]: row["what"] for row in result.freed.to_dict()}


def reasons(result):
    return {row["version"]: (row["outcome"], row["because"]) for row in result.versions.to_dict()}


def test_files_removed_before_the_time_go_and_their_versions_with_them(written):
    result = retention(written(), keep="42h")

    assert freed(result) == {f"data-{version}.parquet": "data" for version in range(1, 6)}
    assert lost(result) == [1, 2, 3, 4, 5]
    assert reasons(result)[5] == ("lost", "1 of its files would be deleted")
    assert reasons(result)[0] == ("kept", "no file that it needs would be deleted")
    assert reasons(result)[10] == ("kept", "the newest")
    assert result.freed["removed_version"].to_pylist() == [2, 3, 4, 5, 6]


def test_a_file_removed_at_the_time_itself_stays(written):
    removed = timedelta(milliseconds=500)  # before the commit that says so

    assert freed(retention(written(), keep="42h", now=NOW - removed)) == {
        f"data-{version}.parquet": "data" for version in range(1, 5)
    }


def test_a_file_goes_by_the_time_that_its_removal_says_not_by_its_commits(written):
    table = written(2)
    table.commit(remove("data-2.parquet", millis=BASE_MILLIS + 3 * HOUR), millis=BASE_MILLIS + 40 * HOUR)

    assert freed(retention(table, keep="46h")) == {"data-1.parquet": "data"}
    assert "data-2.parquet" in freed(retention(table, keep="44h"))


def test_a_removal_without_a_time_keeps_nothing(written):
    table = written(2)
    table.commit(remove("data-2.parquet", millis=None), millis=BASE_MILLIS + 47 * HOUR)

    assert "data-2.parquet" in freed(retention(table, keep="20h"))


def test_the_sizes_are_those_of_the_files_that_are_there(written):
    table = written()
    sizes = {f"data-{version}.parquet": len(table.read(f"data-{version}.parquet")) for version in range(1, 10)}

    result = retention(table, keep="0d")

    assert dict(zip(result.freed["path"].to_pylist(), result.freed["size_bytes"].to_pylist(), strict=True)) == sizes
    assert result.freed_bytes == sum(sizes.values())


def test_files_that_went_before_are_not_counted_again(written):
    table = written()
    table.remove_file("data-2.parquet")

    result = retention(table, keep="42h")

    assert "data-2.parquet" not in freed(result)
    assert reasons(result)[2] == ("gone", "1 of its files do not exist")
    assert lost(result) == [1, 3, 4, 5]
    kept = sum(outcome == "kept" for outcome, _ in reasons(result).values())
    assert f"kept versions  {kept} of {kept + 5}\ngone versions  1, which cannot be loaded now\n" in str(result)


def test_files_that_the_log_does_not_know_go_if_they_are_old(written):
    table = written()
    for path in (
        "stray.parquet",
        "new.parquet",
        "sub/stray.parquet",
        "_change_data/c-1.parquet",
        "_mine",
        ".x",
        "_m/y",
    ):
        table.write(path, b"1234")
        age(table, path, BASE_MILLIS)
    age(table, "new.parquet", BASE_MILLIS + 47 * HOUR)
    table.commit(cdc("_change_data/c-1.parquet"), millis=BASE_MILLIS + 11 * HOUR)

    result = retention(table, keep="40h")

    assert {path: what for path, what in freed(result).items() if what != "data"} == {
        "stray.parquet": "untracked",
        "sub/stray.parquet": "untracked",
        "_change_data/c-1.parquet": "change data",
    }


def test_the_folder_of_a_partition_is_looked_into_whatever_it_is_called(tmp_path):
    table = DeltaTable(None, tmp_path / "t", fields=(("_day", "string"), ("id", "long")), partition_by=["_day"])
    table.write("_day=1/stray.parquet", b"1234")
    table.write("_other=1/stray.parquet", b"1234")
    for path in ("_day=1/stray.parquet", "_other=1/stray.parquet"):
        age(table, path, BASE_MILLIS)

    assert freed(retention(table, keep="1h")) == {"_day=1/stray.parquet": "untracked"}


def test_a_deletion_vector_goes_when_it_was_replaced_and_takes_its_versions(written):
    table = written(1, **{"delta.enableDeletionVectors": "true"})
    added = table.data("big.parquet", [(number, "x") for number in range(9)])
    first, second = table.vector([1]), table.vector([1, 2])
    for number, (before, after) in enumerate([(None, first), (first, second)], 2):
        gone = [] if before is None else [remove("big.parquet", vector=before, millis=BASE_MILLIS + number * HOUR)]
        entry = {"add": added["add"] | {"deletionVector": after}}
        table.commit(*gone, entry, millis=BASE_MILLIS + number * HOUR)
    for path in ("big.parquet", *(file.name for file in Path(table.root).glob("*.bin"))):
        age(table, path, BASE_MILLIS)

    result = retention(table, keep="1h")

    assert list(freed(result).values()) == ["deletion vector"]
    assert lost(result) == [2]


def test_without_a_rule_the_tables_own_setting_or_deltas_default_counts(written):
    defaults = retention(written(), now=NOW + timedelta(days=6, hours=-19))

    assert lost(defaults) == [1, 2, 3, 4]
    assert "7 days (Delta's default of delta.deletedFileRetentionDuration)" in str(defaults)
    assert defaults.commands == (("Spark SQL", f"VACUUM delta.`{open_table(written(0).url).path}`"),)


def test_the_tables_own_setting_counts(written):
    result = retention(written(**{"delta.deletedFileRetentionDuration": "interval 40 hours"}))

    assert lost(result) == [1, 2, 3, 4, 5, 6, 7]
    assert "1 day 16 hours (the table's delta.deletedFileRetentionDuration)" in str(result)


def test_a_number_of_versions_becomes_hours(written):
    result = retention(written(), keep_last=4)

    assert lost(result) == [1, 2, 3, 4, 5, 6]
    assert "so that the newest 4 versions keep their files" in str(result)
    assert dict(result.commands)["Spark SQL, Delta before 4.1"].endswith("RETAIN 41 HOURS")


@pytest.mark.parametrize("keep_last", [11, 100])
def test_a_number_beyond_the_history_keeps_all(written, keep_last):
    assert lost(retention(written(), keep_last=keep_last)) == []


@pytest.mark.parametrize(("keep", "keep_last"), [("30d", None), ("0d", 2)])
def test_more_than_the_tables_own_setting_is_refused(written, keep, keep_last):
    table = written(**{"delta.deletedFileRetentionDuration": "interval 10 hours"})

    with pytest.raises(
        InvalidArgumentError, match="more than the table's delta.deletedFileRetentionDuration, 10 hours"
    ):
        retention(table, keep=keep, keep_last=keep_last)


def test_the_commands_say_what_each_delta_uses(written):
    result = retention(written(), keep="41h")

    path = open_table(written(0).url).path
    setting = "SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 41 hours')"
    assert result.commands == (
        ("Spark SQL, Delta before 4.1", f"VACUUM delta.`{path}` RETAIN 41 HOURS"),
        ("Spark SQL, any Delta", f"ALTER TABLE delta.`{path}` {setting}; VACUUM delta.`{path}`"),
    )
    said = " ".join(str(result).split())
    assert "Delta refuses RETAIN below 7 days (168 hours)" in said
    assert "Since Delta 4.1, VACUUM ignores RETAIN except for 0 hours" in said
    assert retention(written(0), keep="0d").commands == (("Spark SQL", f"VACUUM delta.`{path}` RETAIN 0 HOURS"),)


def test_a_part_of_an_hour_needs_the_property(written):
    assert [whom for whom, _ in retention(written(), keep="90m").commands] == ["Spark SQL, any Delta"]


def test_what_a_log_that_begins_after_the_time_does_not_record_is_not_listed(written):
    table = written()
    table.checkpoint(5)
    table.clean(5)

    result = retention(table, keep="47h")

    assert any("the log begins with version 5, not 1 day 23 hours ago or earlier" in note for note in result.notes)
    assert result.freed_bytes is None
    assert len(result.holders) == 0


def test_versions_whose_log_was_cleaned_are_gone_already(written):
    table = written()
    table.checkpoint(5)
    table.clean(3)

    result = retention(table, keep="3h")

    assert reasons(result)[3] == ("gone", "a part of its log is missing, or was cleaned away")
    assert lost(result) == [5, 6, 7, 8, 9]


def test_a_table_of_one_version_loses_nothing(written):
    result = retention(written(0), keep="0d")

    assert (lost(result), freed(result), len(result.versions)) == ([], {}, 1)


def test_an_invalid_interval_is_named(written):
    table = written(**{"delta.deletedFileRetentionDuration": "interval 1 month"})

    with pytest.raises(CorruptTableError, match="RetentionDuration is 'interval 1 month', not an interval such as"):
        retention(table)


def test_a_storage_that_does_not_say_when_files_were_written_is_refused(memory_root, monkeypatch):
    filesystem, root = memory_root
    table = DeltaTable(filesystem, root)
    table.append([(1, "a")])
    for path in filesystem.find(root):
        filesystem.store[path].modified = None

    with pytest.raises(UnsupportedFeatureError, match="the storage reports no modification time for"):
        retention(table)
