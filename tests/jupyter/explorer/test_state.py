"""The state of an explorer, driven without a browser and without a table."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from traitlets import TraitError

from snapshot_explorer.core.frames import COMMITS
from snapshot_explorer.jupyter.explorer import ExplorerState
from tests.inner.jupyter import FILTERS


def commits(*versions, **facts):
    """COMMITS, newest first: version N was committed on the Nth of January."""
    rows = [
        {"version": at, "kind": "append", "readable": "yes", "tags": [], "details": "{}", "user": "ada"}
        | {"committed_at": datetime(2026, 1, min(at, 28) or 1, tzinfo=UTC)}
        | {name: values.get(at) for name, values in facts.items() if at in values}
        for at in sorted(versions, reverse=True)
    ]
    return pa.Table.from_pylist(rows, COMMITS)


def knowing(*versions, readable=None, **facts):
    state = ExplorerState()
    state.set_versions(versions, versions if readable is None else readable, commits(*versions, **facts))
    return state


def shown(state):
    return state.shown["version"].to_pylist()


def test_at_first_b_is_the_newest_version_and_a_the_one_before():
    state = knowing(3, 4, 7)

    assert (state.a, state.b, state.window) == (4, 7, (3, 7))


def test_the_only_version_is_both():
    state = knowing(3)

    assert (state.a, state.b) == (3, 3)


def test_a_table_without_versions_has_no_markers():
    state = knowing()

    assert (state.a, state.b, state.window) == (None, None, None)
    assert shown(state) == []


def test_the_version_before_one_may_be_zero():
    assert (knowing(0, 1).a, knowing(0).a) == (0, 0)


def test_a_is_the_version_before_b_until_it_is_set():
    state = knowing(1, 2, 5, 7)

    state.b = 5
    assert (state.a, state.pinned) == (2, False)
    state.mark("b", 1)
    assert (state.a, state.b) == (1, 1)
    state.mark("a", 2)
    state.mark("b", 7)
    assert (state.a, state.b, state.pinned) == (2, 7, True)
    state.pinned = False
    assert (state.a, state.b) == (5, 7)
    state.mark("a", 5)
    state.previous()
    assert (state.a, state.b) == (5, 5)


def test_an_a_that_is_set_stays_with_new_commits():
    state = knowing(1, 2, 3)
    state.a = 1

    state.set_versions((1, 2, 3, 4), (1, 2, 3, 4), commits(1, 2, 3, 4))

    assert (state.a, state.b) == (1, 4)


def test_b_is_the_newest_version_that_can_be_loaded():
    assert knowing(1, 2, 3, readable=(1, 2)).b == 2


def test_b_moves_on_with_new_commits_if_it_was_the_newest():
    state = knowing(1, 2, 3)

    state.set_versions((1, 2, 3, 4), (1, 2, 3, 4), commits(1, 2, 3, 4))

    assert (state.a, state.b, state.window) == (3, 4, (1, 4))


def test_b_stays_with_new_commits_if_it_was_set_to_an_older_version():
    state = knowing(1, 2, 3)
    state.b = 2

    state.set_versions((1, 2, 3, 4), (1, 2, 3, 4), commits(1, 2, 3, 4))

    assert state.b == 2


def test_markers_on_versions_that_expired_move_to_some_that_are_there():
    state = knowing(1, 2, 3, 4)
    state.a, state.b = 1, 2

    state.set_versions((3, 4), (3, 4), commits(3, 4))

    assert (state.a, state.b, state.window) == (3, 4, (3, 4))


def test_a_table_that_lost_all_versions_has_no_markers():
    state = knowing(1, 2)
    state.playing = True

    state.set_versions((), (), commits())

    assert (state.a, state.b, state.playing) == (None, None, False)


def test_markers_take_no_version_that_is_not_there():
    state = knowing(1, 2, 4)

    with pytest.raises(TraitError, match="Version 3 does not exist. Available: 1 to 4. Choose one of these."):
        state.b = 3

    assert state.b == 4


def test_previous_and_next_go_through_what_is_shown():
    state = knowing(1, 2, 3, 4, kind={3: "compact"})
    state.maintenance = False

    state.previous()
    assert state.b == 2
    state.next()
    assert state.b == 4


def test_next_at_the_newest_version_says_so_and_ends_play():
    state = knowing(1, 2)
    state.playing = True

    state.next()

    assert (state.b, state.playing, state.note) == (2, False, "No version listed is newer than 2.")


def test_previous_at_the_oldest_version_says_so():
    state = knowing(1, 2)
    state.b = 1

    state.previous()

    assert (state.b, state.note) == (1, "No version listed is older than 1.")


def test_swap_tells_of_both_at_once():
    state, heard = knowing(1, 2, 3), []
    state.observe(lambda change: heard.append((state.a, state.b)), ("a", "b"))

    state.swap()

    assert set(heard) == {(3, 2)}


def test_the_window_moves_to_a_version_at_its_width():
    state = knowing(*range(100))
    state.window = (50, 69)

    state.reveal(60)
    inside = state.window
    state.reveal(30)
    before = state.window
    state.reveal(99)

    assert (inside, before, state.window) == ((50, 69), (20, 39), (80, 99))


def test_either_marker_moves_by_steps():
    state = knowing(1, 2, 3)

    state.step("a", -1)
    assert (state.a, state.b, state.pinned) == (1, 3, True)
    state.step("b", -1)
    assert (state.a, state.b) == (1, 2)
    state.step("a", -1)
    assert (state.a, state.note) == (1, "No version listed is older than 1.")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("kind", "compact", [3]),
        ("operation", "merge", [2]),
        ("user", "BOB", [4]),
        ("text", "nightly", [1]),
        ("since", "@2026-01-03", [4, 3]),
        ("since", "2026-01-04", [4]),
        ("until", "@2026-01-02", [2, 1]),
        ("maintenance", False, [4, 2, 1]),
        ("window", (2, 3), [3, 2]),
    ],
)
def test_filters_choose_the_commits_that_are_shown(name, value, expected):
    state = knowing(
        *(1, 2, 3, 4), kind={3: "compact"}, operation={2: "MERGE"}, user={4: "bob"}, details={1: '{"job":"Nightly"}'}
    )

    state.set_trait(name, value)

    assert shown(state) == expected


@pytest.mark.parametrize(
    ("values", "call"),
    [
        ({}, "history()"),
        ({"window": (2, 3)}, "history('2..3')"),
        ({"kind": "compact", "maintenance": False}, "history(kind='compact')"),
        ({"user": "o'b", "maintenance": False}, 'history(user="o\'b", maintenance=False)'),
        ({"since": "3d", "until": "@2026-01-02"}, "history(since='@3d', until='@2026-01-02')"),
    ],
)
def test_the_call_that_gives_what_is_shown_is_reported(values, call):
    state = knowing(1, 2, 3)

    for name, value in values.items():
        state.set_trait(name, value)

    assert state.history_call == call


def test_a_kind_of_maintenance_is_shown_though_maintenance_is_hidden():
    state = knowing(1, 2, kind={2: "compact"})

    state.maintenance, state.kind = False, "compact"

    assert shown(state) == [2]


def test_all_is_shown_again():
    state = knowing(1, 2)
    before = state.values(*FILTERS)
    state.kind, state.user, state.since, state.maintenance = "merge", "x", "@2026-01-05", False

    state.reset_filters()

    assert state.values(*FILTERS) == before
    assert shown(state) == [2, 1]


def test_what_is_not_a_time_is_refused():
    state = knowing(1)

    with pytest.raises(TraitError):
        state.since = "last tuesday"

    assert state.since == ""


@pytest.mark.parametrize("name", ["1df", "a b", "", "class", "df.x", "__import__('os')"])
def test_what_is_not_a_name_is_not_a_variable(name):
    with pytest.raises(TraitError, match="cannot be the name of a variable. Use letters, digits and _."):
        ExplorerState().variable = name


def test_a_window_that_ends_before_it_begins_is_refused():
    state = knowing(1, 2, 3)

    with pytest.raises(TraitError, match="A window from version 3 to 1 is empty."):
        state.window = (3, 1)
    for window in (3, "x", (1,)):
        with pytest.raises(TraitError, match="window must be two versions, such as"):
            state.window = window


def test_of_many_versions_the_newest_are_in_the_window():
    state = knowing(*range(2_000))

    assert state.window == (1_700, 1_999)


def test_a_window_on_the_past_stays_there():
    state = knowing(*range(1, 11))
    state.window = (2, 5)

    state.set_versions(range(3, 12), range(3, 12), commits(*range(3, 12)))

    assert state.window == (3, 5)


def test_versions_past_what_a_browser_counts_stay_exact():
    large = 2**62
    state = knowing(large, large + 1)

    state.previous()

    assert (state.b, state.versions) == (large, (large, large + 1))


def test_what_is_agreed_to_be_read_is_one_comparison_of_rows():
    state = knowing(1, 2, 3)
    state.key = ["id"]

    state.read_rows()
    assert state.rows_read == (2, 3, ("id",), "")
    state.b = 1

    assert state.rows_read != state.values("a", "b", "key")
