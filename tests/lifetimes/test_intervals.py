"""When files were added and removed, from changes: against a plain model that goes through them one by one."""

import datetime as dt
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.core import frames
from snapshot_explorer.errors import SnapshotNotFoundError
from snapshot_explorer.history.lifetimes import FileLifetimes

EPOCH = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def at(version):
    return EPOCH + dt.timedelta(minutes=version)


def file(name, **facts):
    """Return a file as a format without levels tells of it."""
    plain = {"partition": [("day", name[:1])], "rows": 10, "size_bytes": 100, "schema_id": 0, "data_change": True}
    return {"path": f"day={name[:1]}/{name}"} | plain | facts


def files(*rows):
    return pa.Table.from_pylist(list(rows), frames.FILES)


def changes(*rows):
    """Return CHANGES from (version, change, file)."""
    return pa.Table.from_pylist(
        [one | {"version": version, "change": change, "list": "delta"} for version, change, one in rows], frames.CHANGES
    )


def reported(first, state, rows, last):
    """Return the lifetimes of versions `first` to `last`."""
    begun = FileLifetimes().with_state(first, at(first), files(*state))
    versions = range(first + 1, last + 1)
    return begun.extended(versions, [at(version) for version in versions], changes(*rows))


def paths_at(lifetimes, version):
    return sorted(lifetimes.files_at(version)["path"].to_pylist())


def test_a_file_lives_from_the_version_that_adds_it_to_the_one_that_removes_it():
    lifetimes = reported(3, [file("a")], [(5, "add", file("b")), (6, "remove", file("a")), (8, "remove", file("b"))], 9)

    rows = lifetimes.to_arrow().select(
        ["path", "added_version", "added_at", "first_version", "removed_version", "removed_at"]
    )

    assert rows.to_pylist() == [
        {
            "path": "day=a/a",
            "added_version": None,
            "added_at": None,
            "first_version": 3,
            "removed_version": 6,
            "removed_at": at(6),
        },
        {
            "path": "day=b/b",
            "added_version": 5,
            "added_at": at(5),
            "first_version": 5,
            "removed_version": 8,
            "removed_at": at(8),
        },
    ]
    assert [paths_at(lifetimes, version) for version in (3, 5, 6, 7, 8)] == [
        ["day=a/a"],
        ["day=a/a", "day=b/b"],
        ["day=b/b"],
        ["day=b/b"],
        [],
    ]


def test_a_file_that_is_restored_lives_twice():
    lifetimes = reported(0, [file("a")], [(1, "remove", file("a")), (3, "add", file("a"))], 4)

    assert [bool(paths_at(lifetimes, version)) for version in range(5)] == [True, False, False, True, True]
    assert lifetimes.to_arrow().select(["first_version", "removed_version"]).to_pylist() == [
        {"first_version": 0, "removed_version": 1},
        {"first_version": 3, "removed_version": None},
    ]


def test_a_file_that_came_back_between_two_versions_is_not_a_difference_of_theirs():
    lifetimes = reported(0, [file("a"), file("b")], [(1, "remove", file("a")), (2, "add", file("a"))], 2)

    assert lifetimes.difference(0, 2).num_rows == 0
    assert lifetimes.difference(1, 2)["path"].to_pylist() == ["day=a/a"]


def test_adding_a_file_that_is_there_with_the_same_facts_changes_nothing():
    lifetimes = reported(0, [], [(1, "add", file("a")), (2, "add", file("a", data_change=False))], 3)

    assert lifetimes.to_arrow()["added_version"].to_pylist() == [1]


def test_adding_a_file_that_is_there_with_other_facts_begins_a_new_life():
    lifetimes = reported(0, [], [(1, "add", file("a", rows=None)), (2, "add", file("a", rows=7))], 3)

    assert [lifetimes.files_at(version)["rows"].to_pylist() for version in (1, 2, 3)] == [[None], [7], [7]]


def test_removing_a_file_that_is_not_there_changes_nothing():
    lifetimes = reported(
        0, [file("a")], [(1, "remove", file("b")), (2, "remove", file("a")), (3, "remove", file("a"))], 3
    )

    assert lifetimes.to_arrow().select(["path", "removed_version"]).to_pylist() == [
        {"path": "day=a/a", "removed_version": 2}
    ]


def test_a_file_that_one_commit_adds_and_removes_was_never_there():
    lifetimes = reported(0, [], [(1, "add", file("a")), (1, "remove", file("a"))], 2)

    assert len(lifetimes) == 0


def test_without_levels_a_new_deletion_vector_begins_a_new_life():
    first, second = file("a", deletion_vector="v1", deleted_rows=1), file("a", deletion_vector="v2", deleted_rows=3)

    lifetimes = reported(
        0, [file("a")], [(1, "add", first), (1, "remove", file("a")), (2, "remove", first), (2, "add", second)], 2
    )

    assert [paths_at(lifetimes, version) for version in range(3)] == [["day=a/a"]] * 3
    assert lifetimes.to_arrow().select(["deletion_vector", "first_version", "removed_version"]).to_pylist() == [
        {"deletion_vector": None, "first_version": 0, "removed_version": 1},
        {"deletion_vector": "v1", "first_version": 1, "removed_version": 2},
        {"deletion_vector": "v2", "first_version": 2, "removed_version": None},
    ]


def test_with_levels_a_file_keeps_its_life_whatever_its_deletion_vector_is():
    young = file("a", level=0)

    lifetimes = reported(
        0, [], [(1, "add", young), (2, "remove", young | {"deletion_vector": "v1", "deleted_rows": 1})], 2
    )

    assert lifetimes.to_arrow()["removed_version"].to_pylist() == [2]


def test_a_file_that_moves_to_another_level_lives_on_there():
    young, old = file("a", level=0), file("a", level=5)

    lifetimes = reported(0, [], [(1, "add", young), (2, "add", old), (2, "remove", young)], 2)

    assert [lifetimes.files_at(version)["level"].to_pylist() for version in range(3)] == [[], [0], [5]]
    assert lifetimes.difference(1, 2).select(["change", "path", "level"]).to_pylist() == [
        {"change": "remove", "path": "day=a/a", "level": 0},
        {"change": "add", "path": "day=a/a", "level": 5},
    ]


def test_behind_a_gap_what_is_still_there_has_stayed_and_the_rest_is_reported_from_when_it_is_known():
    before = reported(1, [file("a"), file("b")], [], 2)

    lifetimes = before.with_state(7, at(7), files(file("b"), file("c")))

    assert lifetimes.versions == (1, 2, 7)
    rows = lifetimes.to_arrow().select(["path", "added_version", "first_version", "removed_version"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("day=a/a", None, 1, 7),
        ("day=b/b", None, 1, None),
        ("day=c/c", None, 7, None),
    ]


def test_a_version_that_is_not_known_is_refused_with_those_that_are():
    with pytest.raises(SnapshotNotFoundError, match="files of version 3 are not known.* Known: 2 versions from 1 to 7"):
        reported(1, [], [], 1).with_state(7, at(7), files()).files_at(3)
    with pytest.raises(SnapshotNotFoundError, match="No version is known: read the lifetimes again"):
        FileLifetimes().files_at(1)


def test_a_path_without_folder_and_one_from_the_root_keep_their_spelling():
    odd = [file("a") | {"path": path} for path in ("a", "/a", "s3://b/k/a", "x//a", "k=v%2F/a")]

    lifetimes = FileLifetimes().with_state(0, at(0), files(*odd))

    assert lifetimes.files_at(0)["path"].to_pylist() == [one["path"] for one in odd]


def test_partitions_that_differ_in_null_and_text_are_distinguished():
    values = [[("p", None)], [("p", "")], [("p", "null")], [], [("q", None)]]
    rows = [file(f"{number}") | {"partition": value} for number, value in enumerate(values)]

    lifetimes = FileLifetimes().with_state(0, at(0), files(*rows))

    assert lifetimes.files_at(0)["partition"].to_pylist() == values


def test_of_a_table_without_partitions_no_empty_partitions_are_drawn():
    rows = [file(f"{number}") | {"partition": []} for number in range(3)]

    lifetimes = FileLifetimes().with_state(0, at(0), files(*rows))

    assert repr(lifetimes).splitlines()[1].split() == ["path", "rows", "size"]
    assert "partition" in repr(FileLifetimes().with_state(0, at(0), files(file("a"))))


def test_rows_that_are_not_known_make_the_total_unknown_as_long_as_they_are_there():
    lifetimes = reported(0, [file("a")], [(1, "add", file("b", rows=None)), (2, "remove", file("b"))], 2)

    assert lifetimes.totals()["rows"].to_pylist() == [10, None, 10]
    assert lifetimes.totals()["size_bytes"].to_pylist() == [100, 200, 100]


NAMES = st.sampled_from(["a1", "a2", "b1", "b2", "c1"])
VECTORS = st.sampled_from([None, "v1", "v2"])
COMMITS = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["add", "remove"]), NAMES, VECTORS, st.sampled_from([5, 6])),
        max_size=5,
    ),
    max_size=12,
)


def model(commits):
    """Return what is there after each commit: {(name, vector): rows}."""
    alive, states = {}, []
    for commit in commits:
        for change, name, vector, rows in commit:
            if change == "add":
                alive[name, vector] = rows
            else:
                alive.pop((name, vector), None)
        states.append(dict(alive))
    return states


def as_changes(commits):
    return [
        (version, change, file(name, deletion_vector=vector, rows=rows))
        for version, commit in enumerate(commits)
        for change, name, vector, rows in commit
    ]


@given(COMMITS, st.lists(st.integers(0, 12)))
def test_any_history_cut_into_any_pieces_gives_the_state_of_every_version(commits, cuts):
    lifetimes = FileLifetimes()
    bounds = sorted({0, len(commits), *(cut for cut in cuts if cut < len(commits))})
    for begin, end in pairwise(bounds):
        some = [row for row in as_changes(commits) if begin <= row[0] < end]
        lifetimes = lifetimes.extended(
            range(begin, end), [at(version) for version in range(begin, end)], changes(*some)
        )

    assert lifetimes.versions == tuple(range(len(commits)))
    rows = lifetimes.to_arrow()
    for version, state in enumerate(model(commits)):
        known = rows.filter(
            pc.and_(
                pc.less_equal(rows["first_version"], version),
                pc.fill_null(pc.greater(rows["removed_version"], version), fill_value=True),
            )
        )
        names = [path[-2:] for path in known["path"].to_pylist()]
        assert (
            dict(
                zip(
                    zip(names, known["deletion_vector"].to_pylist(), strict=True),
                    known["rows"].to_pylist(),
                    strict=True,
                )
            )
            == state
        )
        assert len(known) == len(state) == len(lifetimes.files_at(version))


@given(COMMITS)
def test_totals_are_those_of_the_files_of_each_version(commits):
    versions = range(len(commits))
    lifetimes = FileLifetimes().extended(versions, [at(version) for version in versions], changes(*as_changes(commits)))

    states = model(commits)
    assert lifetimes.totals()["files"].to_pylist() == [len(state) for state in states]
    assert lifetimes.totals()["rows"].to_pylist() == [sum(state.values()) for state in states]


@given(COMMITS, st.data())
def test_a_difference_turned_round_is_the_difference_the_other_way(commits, data):
    versions = range(len(commits))
    lifetimes = FileLifetimes().extended(versions, [at(version) for version in versions], changes(*as_changes(commits)))
    if not commits:
        return
    a, b = data.draw(st.sampled_from(versions)), data.draw(st.sampled_from(versions))

    there, back = (
        {tuple(map(str, row.values())) for row in lifetimes.difference(*pair).to_pylist()} for pair in ((a, b), (b, a))
    )

    turned = {"add": "remove", "remove": "add"}
    assert there == {(turned[row[0]], *row[1:]) for row in back}
    assert lifetimes.difference(a, a).num_rows == 0
    before, after = (set(model(commits)[version]) for version in (a, b))
    assert lifetimes.difference(a, b).num_rows == len(before ^ after)
