"""Changelog rows and incremental rows: what may be asked for, what is refused, and what damaged files give."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import errors, open_table
from snapshot_explorer.history import history_of
from tests.inner.engines import parse_condition
from tests.support.paimon.table_builder import PaimonTable

DATA = Path(__file__).parents[1] / "data" / "paimon"


@pytest.fixture
def expired():
    return open_table(str(DATA / "expired"))


@pytest.fixture
def inspected():
    return open_table(str(DATA / "inspected"))


@pytest.fixture
def plain(memory_root):
    """A table without keys: three appends and a compaction of the first two."""
    table = PaimonTable(*memory_root)
    for number in (1, 2, 3):
        table.commit([(number, "v")])
    table.commit([(1, "v"), (2, "v")], removed=["data-1.parquet", "data-2.parquet"], kind="COMPACT")
    return open_table(f"memory://{table.root}")


@pytest.fixture
def copied(tmp_path):
    """Copy a test table, to be damaged."""

    def copy(name):
        shutil.copytree(DATA / name, tmp_path / name)
        return tmp_path / name

    return copy


def test_a_changelog_has_the_kinds_first_and_its_rows_in_order(inspected):
    rows = inspected.at(4).changelog(["name", "v"])

    assert rows.schema.field(0) == pa.field("rowkind", pa.string(), nullable=False)
    assert sorted(map(tuple, zip(*rows.to_pydict().values(), strict=True))) == [
        ("+I", "c", "three"),
        ("+U", "a", "ONE"),
        ("-U", "a", "one"),
    ]
    kinds = rows.filter(pa.compute.equal(rows["name"], "a"))["rowkind"].to_pylist()
    assert kinds == ["-U", "+U"]


def test_a_condition_may_read_the_kind_and_a_limit_cuts(inspected):
    snapshot = inspected.at(4)

    assert snapshot.changelog(["n"], "rowkind = '-U'").to_pydict() == {"rowkind": ["-U"], "n": [1]}
    assert snapshot.changelog([], limit=2).column_names == ["rowkind"]
    assert snapshot.changelog([], limit=2).num_rows == 2


def test_a_long_lived_changelog_of_an_expired_version_is_read(expired):
    assert expired.at(5).changelog().to_pylist() == [
        {"rowkind": "+I", "k": 1, "v": "a6", "n": 6},
        {"rowkind": "+I", "k": 6, "v": "v6", "n": 6},
    ]
    assert expired.row_changes(1, 7, mode="changelog").num_rows > 0


def test_a_changelog_that_nobody_wrote_is_refused_with_the_way_out(plain):
    message = (
        r"Version 2 \(APPEND\) has no changelog. The table has changelog-producer=none: its commits write none. "
        r"table.row_changes\(..., 2\) returns the rows that commits wrote"
    )

    with pytest.raises(errors.InvalidArgumentError, match=message):
        plain.at(2).changelog()


def test_a_commit_without_a_changelog_in_a_table_with_a_producer_says_so(inspected):
    with pytest.raises(errors.InvalidArgumentError, match=r"Version 1 \(APPEND\) has no .*changelog-producer=lookup"):
        inspected.at(1).changelog()


def test_an_expired_changelog_is_said_to_be(copied):
    folder = copied("inspected")
    snapshot = json.loads((folder / "snapshot" / "snapshot-4").read_text())
    (folder / "manifest" / snapshot["changelogManifestList"]).unlink()

    with pytest.raises(
        errors.SnapshotNotFoundError, match="changes of version 4 cannot be read.* changelog .* expired"
    ):
        open_table(str(folder)).at(4).changelog()


def test_a_truncated_changelog_file_is_named(copied):
    folder = copied("inspected")
    files = sorted(folder.rglob("changelog-*.parquet"))
    for file in files:
        file.write_bytes(file.read_bytes()[:-20])

    with pytest.raises(errors.CorruptTableError, match=r"changelog-.*\.parquet has \d+ bytes, but its manifest"):
        open_table(str(folder)).at(4).changelog()


def test_a_missing_delta_file_is_named(copied):
    folder = copied("written_by_1_4")
    for file in folder.rglob("data-*.parquet"):
        file.unlink()

    with pytest.raises(errors.CorruptTableError, match=r"data-.*\.parquet"):
        open_table(str(folder)).row_changes(0, 2)


def test_events_come_by_version(plain):
    assert plain.row_changes(0, 4).to_pydict() == {"rowkind": ["+I"] * 3, "id": [1, 2, 3], "name": ["v"] * 3}
    assert plain.row_changes("earliest", "latest", ["id"], "id > 2").to_pydict() == {"rowkind": ["+I"], "id": [3]}


def test_the_first_version_may_be_one_before_the_earliest_and_no_less(expired):
    assert expired.row_changes(0, 11, mode="changelog").num_rows > expired.row_changes(8, 11).num_rows

    with pytest.raises(errors.SnapshotNotFoundError):
        expired.row_changes(0, 11, mode="diff")


def test_what_lies_between_must_exist(copied):
    folder = copied("written_by_1_4")
    (folder / "snapshot" / "snapshot-2").unlink()
    table = open_table(str(folder))

    with pytest.raises(errors.SnapshotNotFoundError, match="Version 2 of 1..5 .* in this range: 3, 4, 5."):
        table.row_changes(1, 5)
    assert table.row_changes(1, 5, mode="diff").num_rows > 0


def test_the_delta_of_a_version_that_expired_is_refused(expired):
    with pytest.raises(errors.SnapshotNotFoundError, match="its delta manifest list have expired"):
        expired.row_changes(4, 6, mode="delta")


def test_without_a_version_there_is_no_change(plain):
    assert plain.row_changes(2, 2).num_rows == 0
    assert plain.row_changes(2, 2).column_names == ["rowkind", "id", "name"]


def test_the_order_of_versions_matters(plain):
    with pytest.raises(errors.InvalidArgumentError, match="Version 1 comes before 3. Put the earlier version first."):
        plain.row_changes(3, 1)


def test_an_error_for_an_unknown_mode_lists_the_modes(plain):
    with pytest.raises(errors.InvalidArgumentError, match="'all' is not a mode. Modes: auto, delta, changelog, diff."):
        plain.row_changes(1, 2, mode="all")


def test_an_error_names_an_unknown_column(plain):
    with pytest.raises(errors.InvalidArgumentError, match="'nope'"):
        plain.row_changes(1, 2, ["nope"])
    with pytest.raises(errors.InvalidArgumentError, match="must be a list of names"):
        plain.row_changes(1, 2, "id")


def test_two_tags_are_distinguished_by_their_states(inspected):
    by_tags = inspected.row_changes("tag:kept", "tag:passing")

    assert by_tags.equals(inspected.row_changes(2, 4, mode="diff"))
    assert not by_tags.equals(inspected.row_changes("tag:kept", 4))


def test_states_without_keys_are_compared_only_where_files_were_only_added(plain):
    assert plain.row_changes(1, 3, mode="diff")["id"].to_pylist() == [2, 3]

    with pytest.raises(errors.UnsupportedFeatureError, match="no primary key to match rows by"):
        plain.row_changes(1, 4, mode="diff")


def test_a_difference_says_where_deletion_vectors_hide_rows_from_it(caplog):
    table = open_table(str(DATA / "dv_1_4"))

    rows = table.row_changes(4, 6, mode="diff")

    # Paimon's own: three rows of files that both versions have went by their deletion vectors alone.
    assert rows.num_rows == 0
    assert table.at(4).count() - table.at(6).count() == 3
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "between versions 4 and 6 deletion vectors deleted rows of 2 files that both versions have" in caplog.text


def test_a_difference_of_the_same_vectors_is_silent(caplog):
    table = open_table(str(DATA / "dv_1_4"))

    assert table.row_changes(2, 3, mode="diff").num_rows == 0
    assert not caplog.records


def test_the_difference_of_postponed_buckets_is_refused():
    with pytest.raises(errors.UnsupportedFeatureError, match="the mode diff of postponed buckets"):
        open_table(str(DATA / "postponed")).row_changes(1, 2, mode="diff")


def test_a_column_called_rowkind_is_refused(memory_root):
    table = PaimonTable(*memory_root)
    table.commit([(1, "a")])
    filesystem, root = memory_root
    path = f"{root}/schema/schema-0"
    filesystem.pipe_file(path, filesystem.cat_file(path).replace(b'"name": "name"', b'"name": "rowkind"'))

    assert b"rowkind" in filesystem.cat_file(path)
    with pytest.raises(errors.UnsupportedFeatureError, match="its own column 'rowkind'"):
        open_table(f"memory://{root}").row_changes(0, 1)


def test_an_append_that_removes_files_is_refused_as_paimon_refuses_it():
    from snapshot_explorer import samples

    with pytest.raises(errors.UnsupportedFeatureError, match="Version 5 is an APPEND that removes files"):
        open_table(samples.path("events")).row_changes(4, 5)


def conditions_on(rows):
    """Yield conditions on the first columns that have an order, around a value from their middle, and on the kind."""
    for name, column in zip(rows.column_names[:4], rows.columns[:4], strict=True):
        values = sorted({value for value in column.to_pylist() if isinstance(value, str | int)})
        if pa.types.is_nested(column.type) or not values:
            continue
        quoted, value = '"' + name.replace('"', '""') + '"', str(values[len(values) // 2]).replace("'", "''")
        yield from (f"{quoted} > '{value}' and rowkind <> '-D'", f"rowkind = '-D' or {quoted} < '{value}'")


RANGES = {
    (file.stem, case["mode"]): case["between"]
    for file in sorted((DATA.parent / "expected" / "incremental").glob("*.json"))
    for case in json.loads(file.read_text())
    if case.get("rows") and case.get("mode", "auto") != "auto" and case["between"][0].isdigit()
    if (file.stem, case["between"]) != ("aggregates_descending", ["2", "4"])  # which is refused
}
"""Of each table and mode the last range in which something changed."""


@pytest.mark.parametrize(("name", "mode"), RANGES)
def test_a_condition_gives_the_rows_that_it_gives_after_reading_all(name, mode):
    table = open_table(str(DATA / name))
    first, last = map(int, RANGES[name, mode])
    every = table.row_changes(first, last, mode=mode)

    for where in conditions_on(every):
        wanted = every.filter(parse_condition(where, every.schema).mask(every))

        found = table.row_changes(first, last, where=where, mode=mode)
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist())), where


def test_a_condition_on_a_changelog_gives_the_same_rows_too(inspected):
    for version in (3, 4, 5, 6, 7):
        try:
            every = inspected.at(version).changelog()
        except errors.InvalidArgumentError:
            continue
        for where in conditions_on(every):
            wanted = every.filter(parse_condition(where, every.schema).mask(every))

            assert inspected.at(version).changelog(where=where).to_pylist() == wanted.to_pylist()


def files_of(table, first, last, mode, where):
    """Return how many files changes are read from, without a condition and with it."""
    changes = history_of(table).table_format.row_changes(first, last, mode)
    one = parse_condition(where, pa.schema([pa.field("rowkind", pa.string()), *changes.schema]))
    every, some = changes.splits(None), changes.splits(one)
    return sum(len(split.files) for split in every), sum(len(split.files) for split in some)


@pytest.fixture
def many_files(memory_root):
    table = PaimonTable(*memory_root, statistics=True)
    for number in range(10):
        table.commit([(number * 10 + digit, f"v{number}") for digit in range(3)])
    return open_table(f"memory://{table.root}")


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("id = 42", 1),
        ("id > 75", 2),
        ("name = 'v3' and rowkind = '+I'", 1),
        ("rowkind = '-D'", 10),
        ("rowkind = '-D' or id = 42", 10),
        ("id = 45", 0),
    ],
)
def test_files_in_which_no_row_can_pass_are_not_read_for_changes(many_files, where, left):
    assert files_of(many_files, 0, 10, "delta", where) == (10, left)
    assert files_of(many_files, 1, 10, "diff", where) == (9, 9)


def test_keys_spare_files_of_a_difference_and_values_do_not():
    table = open_table(str(DATA / "written_by_1_4"))

    assert files_of(table, 1, 4, "diff", "k = 2") < files_of(table, 1, 4, "diff", "true")
    assert files_of(table, 1, 4, "diff", "n = 77") == files_of(table, 1, 4, "diff", "v is null or true")
    assert files_of(table, 1, 4, "delta", "n = 77")[1] == 0


def test_partitions_spare_files_of_changelogs_and_differences(inspected):
    every, some = files_of(inspected, 2, 7, "changelog", "day = '1999-01-01'")

    assert (every > 0, some) == (True, 0)
    assert files_of(inspected, 2, 7, "diff", "day = '1999-01-01'")[1] == 0
