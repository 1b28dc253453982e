"""Lifetimes of Delta tables: those that its engines wrote, and random histories, against replaying their logs."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.formats.delta import Delta
from snapshot_explorer.history.lifetimes import keep_lifetimes, read_lifetimes
from snapshot_explorer.storage import Storage
from tests.support.delta.table_builder import BASE_MILLIS, DeltaTable, add, commit_name, inline_vector, remove

TABLES = Path(__file__).parents[1] / "data" / "delta"
RENAMED = {"mapping_id", "mapping_name", "mapping_vectors_feed"}
"""Tables whose partition column was renamed: lifetimes call it as it was when the file was added."""
REPARTITIONED = {"schema_changes"}
"""Tables whose files had other partition columns when they were added."""


def opened(root):
    return Delta(Storage(str(root)))


def lifetimes_of(root, known=None):
    return read_lifetimes(opened(root), known, title="File lifetimes")


def assert_differences(lifetimes, live):
    """Compare the differences of all pairs of versions with those of their live files, (path, vector) each."""
    for a in live:
        for b in live:
            reported = lifetimes.difference(a, b).select(["change", "path"]).to_pylist()
            expected = Counter(("remove", path) for path, _ in live[a] - live[b])
            expected += Counter(("add", path) for path, _ in live[b] - live[a])
            assert Counter(tuple(row.values()) for row in reported) == expected


@pytest.mark.parametrize("name", sorted(folder.name for folder in TABLES.iterdir()))
def test_lifetimes_agree_with_reading_every_version_of_tables_that_delta_wrote(name):
    table_format = opened(TABLES / name)
    but = {"added_version", "data_change"} | ({"partition"} if name in REPARTITIONED else set())

    def spelled(files):
        rows = files.select([one for one in files.column_names if one in names]).to_pylist()
        if name in RENAMED:
            rows = [row | {"partition": [value for _, value in row["partition"]]} for row in rows]
        return sorted(map(repr, rows))

    lifetimes = lifetimes_of(TABLES / name)

    assert set(lifetimes.versions) == set(table_format.listing(0).reachable)
    live = {}
    for version in lifetimes.versions:
        reported, read = lifetimes.files_at(version), table_format.version(version).files()
        names = [one for one in reported.column_names if one not in but]
        assert spelled(reported) == spelled(read)
        live[version] = set(zip(read["path"].to_pylist(), read["deletion_vector"].to_pylist(), strict=True))
    assert_differences(lifetimes, live)


def test_a_restore_that_delta_wrote_begins_second_lives():
    lives = lifetimes_of(TABLES / "change_feed").to_arrow()
    restored = 10

    again = [path for path, count in Counter(lives["path"].to_pylist()).items() if count > 1]
    begun = [row["path"] for row in lives.to_pylist() if row["first_version"] == restored]

    assert set(begun) & set(again)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(0, 3), st.integers(0, 2)),
        st.tuples(st.just("delete rows"), st.integers(1, 5), st.just(0)),
        st.tuples(st.just("restore"), st.integers(1, 4), st.just(0)),
        st.tuples(st.sampled_from(["add again", "checkpoint", "look"]), st.just(0), st.just(0)),
        st.tuples(st.just("clean"), st.just(0), st.just(0)),
    ),
    max_size=16,
)


class History:
    """A table that grows, and what a dict says is live at each version."""

    def __init__(self, root):
        self.table = DeltaTable(None, root)
        self.live, self.at, self.names = {}, {0: {}}, 0
        self.first, self.checkpoint = 0, None

    def commit(self, added, removed):
        """Commit adds and removes; both are (path, positions of deleted rows)."""
        actions = [remove(path, size=500, vector=self._vector(rows)) for path, rows in removed]
        actions += [add(path, rows=9, vector=self._vector(rows)) for path, rows in added]
        self.table.commit(*actions)
        for path, _ in removed:
            self.live.pop(path)
        self.live |= dict(added)
        self.at[self.table.version] = dict(self.live)

    @staticmethod
    def _vector(rows):
        return inline_vector(rows) if rows else None

    def step(self, step, one, two):
        some = list(self.live.items())
        match step:
            case "commit":
                self.names += two
                self.commit([(f"f{self.names - number}", ()) for number in range(two)], some[:one])
            case "delete rows":
                changed = [(path, (*rows, len(rows))) for path, rows in some[:one] if len(rows) < 8]
                self.commit(changed, [(path, self.live[path]) for path, _ in changed])
            case "restore":
                before = self.at.get(self.table.version - one, self.live)
                gone = [item for item in some if before.get(item[0]) != item[1]]
                self.commit([item for item in before.items() if self.live.get(item[0]) != item[1]], gone)
            case "add again":
                self.commit(some[:2], [])
            case "checkpoint":
                self.table.checkpoint()
                self.checkpoint = self.table.version
            case "clean":
                if self.checkpoint is not None:
                    for version in range(self.first, self.checkpoint):
                        self.table.remove_file(commit_name(version))
                        self.at.pop(version)
                    self.first = self.checkpoint


@settings(max_examples=50, deadline=None)
@given(STEPS)
def test_lifetimes_of_any_history_agree_with_a_plain_replay(tmp_path_factory, steps):
    root = tmp_path_factory.mktemp("table")
    history = History(root)
    known = None
    for step in steps:
        history.step(*step)
        if step[0] == "look":
            known = lifetimes_of(root, known)

    anew, grown = lifetimes_of(root), lifetimes_of(root, known)

    assert set(history.at) <= set(grown.versions)
    # Older versions of which a checkpoint is left are returned too.
    assert set(history.at) <= set(anew.versions)
    for lifetimes in (anew, grown):
        for version, live in history.at.items():
            assert sorted(lifetimes.files_at(version)["path"].to_pylist()) == sorted(live)
        assert_differences(lifetimes, {version: set(live.items()) for version, live in history.at.items()})


@pytest.mark.parametrize(
    ("lost", "checkpoints", "left"),
    [
        ([3], [5], {0, 1, 2, 5, 6, 7, 8}),
        ([3], [2, 5], {0, 1, 2, 5, 6, 7, 8}),
        ([3], [3], {*range(9)}),
        ([3, 4], [3, 5], {*range(4), 5, 6, 7, 8}),
        ([2, 6], [4, 7], {0, 1, 4, 5, 7, 8}),
        ([8], [8], {*range(9)}),
        ([0, 1], [4], {4, 5, 6, 7, 8}),
    ],
)
def test_around_commits_that_are_lost_lifetimes_know_each_version_that_can_be_loaded(tmp_path, lost, checkpoints, left):
    table = DeltaTable(None, tmp_path)
    for number in range(1, 9):
        table.commit(add(f"{number}", rows=1), *([remove(f"{number - 2}")] if number > 2 else []))
        if number in checkpoints:
            table.checkpoint()
    for version in lost:
        table.remove_file(commit_name(version))

    lifetimes = lifetimes_of(tmp_path)

    assert set(lifetimes.versions) == left == set(opened(tmp_path).listing(0).reachable)
    live = {version: {one["add"]["path"] for one in table.state(version) if "add" in one} for version in left}
    assert {version: set(lifetimes.files_at(version)["path"].to_pylist()) for version in left} == live
    assert_differences(lifetimes, {version: {(path, None) for path in paths} for version, paths in live.items()})


@pytest.fixture
def kept(tmp_path):
    """Return a table, and a function that reads its lifetimes with a cache."""
    table = DeltaTable(None, tmp_path / "table")

    def keep():
        return keep_lifetimes(
            opened(tmp_path / "table"), None, cache_dir=tmp_path / "cache", table=("table", None), title="kept"
        )

    return table, keep


def test_kept_lifetimes_know_what_a_cleaned_log_tells_no_more(kept):
    table, keep = kept
    for number in range(4):
        table.commit(add(f"{number}"), *([remove(f"{number - 1}")] if number else []))
    before = keep()
    table.checkpoint()
    table.commit(add("4"), remove("3"))
    table.clean(4)

    after = keep()

    assert after.versions == (*before.versions, 5)
    assert [after.files_at(version)["path"].to_pylist() for version in (1, 2, 3, 4, 5)] == [[str(n)] for n in range(5)]
    assert {row["path"]: row["added_version"] for row in after.to_arrow().to_pylist()} == {
        str(number): number + 1 for number in range(5)
    }


def test_kept_lifetimes_of_a_table_that_was_made_anew_are_read_anew(kept):
    table, keep = kept
    for number in range(3):
        table.commit(add(f"{number}"))
    keep()
    for version in range(4):
        table.remove_file(commit_name(version))
    other = DeltaTable(None, table.root, first=None)
    for number in range(5):
        first = list(table.log[0][1:]) if number == 0 else []
        other.commit(*first, add(f"x{number}"), millis=BASE_MILLIS + 3_600_000 * (number + 1))

    assert sorted(keep().files_at(4)["path"].to_pylist()) == [f"x{number}" for number in range(5)]
