"""The explorer as a widget, driven through its state and its controls, without a browser."""

import asyncio
import gc
import re
import shutil
import sys
import threading
import time

import ipywidgets
import numpy as np
import pyarrow as pa
import pytest

import snapshot_explorer
from snapshot_explorer import open_table, samples
from snapshot_explorer.core.frames import COMMITS
from snapshot_explorer.errors import StorageError
from snapshot_explorer.history import History
from snapshot_explorer.jupyter.explorer import Explorer
from snapshot_explorer.table import read_overview
from tests.inner.jupyter import TABS, THREADS
from tests.inner.view import TableFacts, timeline_columns
from tests.support.delta.table_builder import DeltaTable, add
from tests.support.explorers import all_texts, head_of, messages_to_the_page, pressed, shown_text, typed, unpacked
from tests.support.fault_search import tables
from tests.support.faults import Fault, Store, registered
from tests.support.loops import on_a_loop
from tests.support.paimon.table_builder import PaimonTable
from tests.support.png import picture_points


def drawn(explorer):
    """Return the versions that the timeline draws."""
    return unpacked(explorer.commits["version"])


def all_models():
    module = sys.modules[ipywidgets.Widget.__module__]
    return module._instances if hasattr(module, "_instances") else ipywidgets.Widget.widgets  # before ipywidgets 8


def test_it_is_part_of_the_package(tmp_path):
    (tmp_path / "my orders").symlink_to(samples.path("orders"))
    table = snapshot_explorer.open_table(tmp_path / "my orders")

    explorer = snapshot_explorer.explore(table)

    assert isinstance(explorer, ipywidgets.DOMWidget)
    assert repr(explorer.wait()) == f"Explorer(path={table.path!r}, a=17, b=18)"
    assert f"my orders paimon {table.path}" in head_of(explorer)
    explorer.close()


def test_the_head_tells_what_the_table_is(explorer, orders):
    assert f"orders paimon {orders.path}" in head_of(explorer)
    assert "18 versions (1 to 18)" in head_of(explorer)
    assert "41 rows in files" in head_of(explorer)
    assert "2 files, 4.9 kB" in head_of(explorer)


@pytest.mark.parametrize("sample", ["orders", "payments"])
def test_head_and_card_count_the_same_rows_in_the_same_words(sample):
    table = open_table(samples.path(sample))
    read_overview(table)
    name, count = re.search(
        r"(?m)^ *(rows(?: in files)?) +([0-9,]+)$", table._repr_mimebundle_()["text/plain"]
    ).groups()

    made = Explorer(table, variables={}).wait()

    counts = re.findall(r"([0-9,]+) (rows(?: in files)?)(?= \N{MIDDLE DOT})", head_of(made))
    assert counts == [(count, name)]
    made.close()


def test_a_long_history_opens_on_a_window_and_says_so(memory_root):
    written = DeltaTable(*memory_root)
    for number in range(310):
        written.commit(add(str(number), rows=1))
    made = Explorer(open_table(written.url), variables={}).wait()

    assert made.state.window == (11, 310)
    assert (made.strip["window"], made.strip["count"]) == ([11, 310], 311)
    made.close()


def test_the_whole_history_is_listed_and_searched_and_a_hit_moves_the_window(memory_root):
    written = DeltaTable(*memory_root)
    for number in range(310):
        written.commit(add(str(number), rows=1), info={"userName": "mallory" if number == 3 else "etl"})
    made = Explorer(open_table(written.url), variables={}).wait()
    whole = made.listed["count"]
    made.receive({"commits": 300})

    typed(made, text="mallory")
    found = [row["version"] for row in made.listed["rows"]]

    assert (whole, made.listed["read"], made.page["count"]) == (311, 311, 311)
    assert (found, made.listed["count"]) == (["4"], 1)
    assert (made.state.window, drawn(made)) == ((0, 299), [4])
    typed(made, text="")
    made.receive({"window": [11, 310]})
    made.receive({"click": "7", "other": False})
    made.wait()
    assert (made.state.b, made.state.window, made.page["at"]) == (7, (0, 299), 303)
    made.close()


def test_times_stand_beside_utc_in_a_zone_that_is_set(explorer, shell):
    typed(explorer, zone="Asia/Kolkata")
    explorer.wait()
    assert "local time     2026-11-14 07:30:00 Asia/Kolkata" in shown_text(explorer, "commit")
    assert explorer.zone == "Asia/Kolkata"
    typed(explorer, zone="Mars")
    assert "'Mars' is not a time zone." in explorer.state.note
    assert explorer.state.zone == "Asia/Kolkata"

    shell.ok("%config SnapshotMagics.time_zone = 'local'")
    again = Explorer(explorer.table).wait()
    assert (again.state.zone, again.zone) == ("local", "")
    again.close()


def test_the_page_gets_the_filters_that_are_set(explorer):
    def filters():
        page = explorer.page
        return {name: page["state"][name] for name, value in page["defaults"].items() if page["state"][name] != value}

    assert filters() == {}
    explorer.state.kind, explorer.state.maintenance = "compact", False
    assert filters() == {"kind": "compact", "maintenance": False}
    explorer.receive({"act": "reset filters"})
    assert filters() == {}


def test_opening_lists_the_log_once():
    with registered():
        store = Store(tables()["samples/payments"], "payments")
        table = open_table(store.url, storage_options={"store": store})
        store.heed(None)

        snapshot_explorer.explore(table).wait().close()

        assert [one.operation for one in store.requests() if one.path.endswith("_delta_log")] == ["list"]


@pytest.mark.parametrize(
    ("path", "said"),
    [("/_delta_log", "Could not read _delta_log"), ("00021.json", "0021.json"), (".parquet", "OSError")],
)
def test_the_picture_says_what_could_not_be_read(path, said):
    with registered():
        store = Store(tables()["samples/payments"], "payments")
        table = open_table(store.url, storage_options={"store": store})
        store.heed(None)
        snapshot_explorer.explore(table).wait().close()
        request = next(one for one in store.requests() if one.path.endswith(path))
        store.heed(Fault("fails", request, lasts=True))

        explorer = snapshot_explorer.explore(table).wait()

        assert said in str(explorer)
        explorer.close()


def test_reading_the_log_is_cancelled_and_begun_again(growing, monkeypatch):
    table, explorer = growing
    gate = threading.Event()
    update = explorer.table.update
    table.commit([(4, "d")])
    with monkeypatch.context() as slow:
        slow.setattr(explorer.table, "update", lambda **named: gate.wait(30) and update(**named))
        explorer.refresh()
        explorer.receive({"cancel": "log"})
        gate.set()
        explorer.wait()

    assert explorer.state.versions == (1, 2)
    assert explorer.state.note == "The log was not read: that was cancelled. Refresh reads it."
    explorer.refresh()
    explorer.wait()
    assert explorer.state.versions == (1, 2, 3)


@pytest.mark.parametrize(
    ("ref", "version"), [("latest~2", 16), ("tag:v1", 5), ("@2026-11-06", 7), ("earliest", 1), (12, 12), ("18", 18)]
)
def test_a_marker_takes_any_ref(explorer, ref, version):
    explorer.choose(ref, "a")
    explorer.wait()

    assert (explorer.state.a, explorer.state.note) == (version, "")
    assert explorer.page["markers"][0] == str(version)


def test_a_ref_is_typed(explorer):
    explorer.receive({"choose": ["b", " tag:v1 "]})
    explorer.wait()

    assert explorer.state.b == 5


def test_what_is_not_a_ref_is_reported_and_the_marker_stays(explorer):
    explorer.receive({"choose": ["b", "newest"]})
    explorer.wait()

    assert explorer.state.b == 18
    assert "newest" in explorer.state.note
    assert explorer.page["note"] == explorer.state.note


def test_buttons_step_and_swap(explorer):
    pressed(explorer, "Previous")
    assert explorer.state.b == 17
    pressed(explorer, "Next")
    assert explorer.state.b == 18
    pressed(explorer, "Swap A and B")
    assert (explorer.state.a, explorer.state.b) == (18, 17)


def test_the_line_of_code_below_the_timeline_gives_its_commits(explorer, orders):
    explorer.state.maintenance, explorer.state.window, explorer.state.since = False, (3, 15), "2026-11-04"
    explorer.wait()

    call = "orders.history('3..15', since='@2026-11-04', maintenance=False)"
    assert explorer.page["code"] == f"{call}.picture(y='rows')"
    assert eval(call).to_arrow()["version"].equals(explorer.state.shown["version"])


def test_the_head_names_branches(explorer):
    assert "branches dev from 5" in head_of(explorer)


def test_a_branch_is_a_flag_on_the_version_that_it_begins_with(explorer):
    tags, branches = explorer.commits["flags"]

    assert (tags["noun"], branches["noun"]) == ("tags", "branches")
    assert ([drawn(explorer)[at] for at in branches["at"]], branches["labels"]) == ([5], ["branch dev"])
    explorer.state.window = (7, 18)
    explorer.wait()
    assert explorer.commits["flags"] == []


def test_the_brush_is_the_window(explorer):
    explorer.receive({"window": [2, 9]})
    explorer.wait()

    assert explorer.state.window == (3, 10)
    assert (explorer.strip["window"], len(drawn(explorer)), explorer.listed["count"]) == ([2, 9], 8, 18)
    explorer.state.window = (1, 18)
    assert explorer.strip["window"] == [0, 17]
    explorer.receive({"window": ["10", "3"]})
    assert explorer.state.window == (3, 10)
    explorer.state.window = (1, 18)
    for places in ([9, 2], [-1, 3], [0, 18], [0], "01", None, ["0", "1"]):
        explorer.receive({"window": places})
    assert explorer.state.window == (1, 18)


def test_a_window_without_a_version_moves_to_the_newest_one(explorer):
    explorer.state.window = (1_000, 2_000)
    explorer.wait()

    assert explorer.state.window == (18, 18)
    assert drawn(explorer) == [18]


def test_a_number_of_thousands_of_digits_is_no_version(explorer):
    explorer.receive({"choose": ["b", "9" * 5_000]})
    explorer.wait()

    assert "is not a valid ref: it has 5,000 characters" in explorer.state.note
    assert explorer.state.b == 18


def test_filters_change_what_is_offered_and_drawn(explorer):
    typed(explorer, kind="compact")
    explorer.wait()

    assert [one["version"] for one in explorer.listed["rows"]] == ["18", "12", "5"]
    assert drawn(explorer) == [5, 12, 18]
    assert [kind["name"] for kind in explorer.commits["kinds"]] == ["compact"]


def test_the_list_says_which_commits_changed_no_row_and_which_are_not_counted(explorer):
    remarks = {one["version"]: one["remark"] for one in explorer.listed["rows"]}

    assert (remarks["18"], remarks["10"], remarks["8"]) == ("rewrites", "no change", "16 written")

    explorer.state.measure = "files"
    explorer.wait()

    assert {one["remark"] for one in explorer.listed["rows"]} == {""}


def test_what_a_filter_refuses_is_reported_and_goes_back(explorer):
    before = explorer.page["answers"]

    typed(explorer, since="whenever")

    assert explorer.page["state"]["since"] == ""
    assert explorer.page["answers"] > before  # the field shows the state again
    assert "whenever" in explorer.state.note


def test_markers_stay_when_their_versions_are_no_longer_drawn(explorer):
    explorer.state.a = 12

    explorer.state.window = (13, 18)

    assert explorer.page["markers"] == ["12", "18"]
    assert unpacked(explorer.commits["version"])[0] == 13


def test_a_click_on_the_timeline_sets_the_markers(explorer):
    def click(version, *, other):
        explorer.receive({"click": version, "other": other})
        explorer.wait()

    click("5", other=False)
    click("3", other=True)

    assert (explorer.state.a, explorer.state.b) == (3, 5)
    for version in ("99", "x", 5, None, "9" * 5_000):
        click(version, other=False)
    assert (explorer.state.a, explorer.state.b, explorer.state.note) == (3, 5, "")


def test_all_that_the_timeline_shows_is_state_that_a_page_gets_with_the_widget(explorer):
    before = explorer.get_state()

    explorer.state.kind, explorer.state.b = "compact", 12

    state = explorer.get_state()
    assert state["page"]["markers"] == ["11", "12"]
    assert state["commits"] != before["commits"]
    assert unpacked(state["commits"]["version"]) == [5, 12, 18]
    assert len(state["_esm"]) + len(state["_css"]) < 80_000


def test_the_line_is_the_size_of_the_table_at_each_version_where_commits_do_not_record_it():
    table = open_table(samples.path("payments"))
    explorer = Explorer(table).wait()
    totals = table.lifetimes().totals()
    for measure, name in (("rows", "rows"), ("files", "files"), ("bytes", "size_bytes")):
        explorer.state.measure = measure
        explorer.wait()
        drawn = explorer.facts

        assert drawn["line"] == f"total {measure}"
        found = unpacked(drawn["total"])
        assert len(found) == 22
        if name != "rows":  # of which deletion vectors remove some
            assert found == totals[name].to_pylist()
    assert found[0] == totals["size_bytes"][0].as_py()
    explorer.close()


def test_versions_where_a_number_jumps_are_marked_on_request(explorer, orders):
    assert explorer.facts["jumps"] == []

    typed(explorer, anomalies=True)
    explorer.wait()

    jumps = explorer.facts["jumps"]
    expected = orders.anomalies().to_arrow()
    assert {one["at"] + 1 for one in jumps} == set(expected["version"].to_pylist()) != set()
    assert expected["rule"][0].as_py() in jumps[-1]["text"]
    typed(explorer, anomalies=False)
    explorer.wait()
    assert explorer.facts["jumps"] == []


def test_only_the_tab_in_front_reads(explorer):
    assert explorer.views["files"].result is None

    typed(explorer, tab="files")

    assert explorer.state.tab == "files"
    assert explorer.views["files"].result is not None


def test_what_is_shown_is_not_read_twice(explorer):
    explorer.state.tab = "manifests"
    explorer.wait()
    first = explorer.views["manifests"].result

    explorer.state.tab = "commit"
    explorer.state.tab = "manifests"
    explorer.wait()

    assert explorer.views["manifests"].result is first


def test_a_table_without_versions_says_so(memory_root):
    table = PaimonTable(*memory_root)
    explorer = Explorer(open_table(f"memory://{table.root}")).wait()
    for tab in ("commit", "manifests", "compare", "data", "files", "branches", "health"):
        explorer.state.tab = tab
        explorer.wait()
        assert "Nothing has been committed to the table yet." in all_texts(explorer.view)

    table.commit([(1, "a")])
    explorer.refresh()
    explorer.wait()

    assert explorer.state.b == 1
    assert explorer.views["health"].error == ""
    assert re.search("1 version \\(1\\) · 1 row · 1 file, [0-9]", head_of(explorer))
    explorer.close()


def test_refresh_finds_new_commits(growing):
    table, explorer = growing

    table.commit([(4, "d")])
    pressed(explorer, "Refresh")

    assert (explorer.state.a, explorer.state.b) == (2, 3)


def test_new_commits_are_followed_until_that_is_stopped(growing):
    table, explorer = growing
    explorer.state.interval = 0.2

    async def seen(version):
        for _ in range(6_000):  # a minute, which only ends a hang
            if explorer.state.versions[-1] == version and not explorer._work._jobs:
                return True
            await asyncio.sleep(0.01)
        return False

    async def main():
        explorer.state.follow = True
        table.commit([(4, "d")])
        assert await seen(3)
        table.commit([(5, "e")])
        assert await seen(4)
        explorer.state.follow = False
        table.commit([(6, "f")])
        await asyncio.sleep(0.6)
        assert explorer.state.versions[-1] == 4
        assert not explorer._follow.is_running

    on_a_loop(main())

    assert explorer.state.b == 4
    assert explorer.state.commits["version"].to_pylist() == [4, 3, 2, 1]


def test_the_newest_commits_are_shown_before_the_others_are_read(growing, monkeypatch):
    table, before = growing
    for row in range(3, 7):
        table.commit([(row, "d")])
    monkeypatch.setattr("snapshot_explorer.jupyter.explorer.explorer.FIRST_COMMITS", 2)
    gate, opened = threading.Event(), open_table(before.table.path)
    commits = History.commits_frame
    monkeypatch.setattr(
        History,
        "commits_frame",
        lambda self, versions: (len(versions) <= 2 or gate.wait(30)) and commits(self, versions),
    )

    explorer = Explorer(opened, variables={})
    assert explorer._work.wait(30, but_for=["older"])
    assert drawn(explorer) == [5, 6]
    assert "6 versions (1 to 6)" in head_of(explorer)
    assert "the newest 2 are shown" in head_of(explorer)
    table.commit([(9, "e")])
    explorer.poll()
    assert explorer._work.wait(30, but_for=["older"])
    assert (drawn(explorer), explorer.state.b) == ([5, 6, 7], 7)
    gate.set()
    explorer.wait()

    assert drawn(explorer) == [1, 2, 3, 4, 5, 6, 7]
    assert "are shown" not in head_of(explorer)
    assert (explorer.state.a, explorer.state.b) == (6, 7)
    explorer.close()


def test_following_tells_what_goes_wrong_and_goes_on(growing, monkeypatch):
    table, explorer = growing

    def fail(**_):
        raise StorageError("The folder was asked for. It does not answer. Try again.")

    with monkeypatch.context() as broken:
        broken.setattr(explorer.table, "update", fail)
        explorer.poll()
        explorer.wait()
        assert explorer.state.note == "The folder was asked for. It does not answer. Try again."

    table.commit([(4, "d")])
    explorer.poll()
    explorer.wait()
    assert (explorer.state.note, explorer.state.b) == ("", 3)


@pytest.mark.parametrize("how", ["follow", "refresh"])
def test_a_log_that_was_rolled_back_is_read_anew_and_that_is_said(growing, how):
    table, explorer = growing
    table.commit([(4, "d")])
    explorer.refresh()
    explorer.wait()
    table.rollback(2)

    explorer.refresh() if how == "refresh" else explorer.poll()
    explorer.wait()

    assert explorer.state.versions == (1, 2)
    assert explorer.state.b == 2
    assert explorer.state.note.startswith(
        "Version 3, up to which changes were read, does not exist any more: the table was rolled back or created again."
    )


@pytest.mark.parametrize("longer", [0, 2])
def test_what_was_committed_again_under_the_newest_number_is_followed_and_that_is_said(growing, longer):
    table, explorer = growing
    table.rollback(1)
    for number in range(1 + longer):
        table.commit([(9 + number, "z")], millis=1_800_000_000_000 + number)

    explorer.poll()
    explorer.wait()

    assert explorer.state.versions == tuple(range(1, 3 + longer))
    assert explorer.state.commits["added_rows"].to_pylist() == [1] * (2 + longer)
    assert explorer.state.note.startswith("Version 2 is not the one up to which changes were read")


@pytest.mark.parametrize("how", ["follow", "refresh"])
def test_a_folder_that_disappears_is_reported_and_what_is_known_stays_until_it_comes_back(growing, how):
    table, explorer = growing
    act = explorer.refresh if how == "refresh" else explorer.poll
    before, markers = explorer.state.commits, (explorer.state.a, explorer.state.b)
    shown = shown_text(explorer, "commit")
    table.filesystem.mv(table.root, f"{table.root}-away", recursive=True)

    for _ in range(2):
        act()
        explorer.wait()

    said = explorer.state.note if how == "follow" else head_of(explorer)
    assert "shows no version any more" in said
    assert (explorer.state.versions, explorer.state.commits) == ((1, 2), before)
    assert (explorer.state.a, explorer.state.b) == markers
    assert shown_text(explorer, "commit") == shown
    assert "Nothing has been committed" not in " ".join(all_texts(explorer.view))

    table.filesystem.mv(f"{table.root}-away", table.root, recursive=True)
    table.commit([(4, "d")])
    act()
    explorer.wait()

    assert (explorer.state.versions, explorer.state.b, explorer.state.note) == ((1, 2, 3), 3, "")
    assert "shows no version" not in " ".join(all_texts(explorer.page))


def test_what_another_action_could_not_do_stays_while_the_table_is_followed(growing):
    _, explorer = growing
    explorer.state.next()
    said = explorer.state.note
    assert said

    explorer.poll()
    explorer.wait()

    assert explorer.state.note == said


def test_play_moves_b_on_and_ends(growing, monkeypatch):
    _, explorer = growing
    monkeypatch.setattr("snapshot_explorer.jupyter.explorer.explorer.PLAY_SECONDS", 0.05)
    explorer.state.b = 1

    async def main():
        explorer.state.playing = True
        for _ in range(3_000):  # a minute, which only ends a hang
            if not explorer.state.playing:
                return
            await asyncio.sleep(0.02)

    on_a_loop(main())

    assert explorer.state.b == 2
    assert not explorer._play.is_running


def test_a_version_whose_files_are_gone_tells_so_in_its_place(growing):
    table, explorer = growing
    explorer.state.tab, explorer.state.b = "data", 1
    explorer.wait()
    for file in table.filesystem.find(table.root):
        if file.endswith(".parquet"):
            table.filesystem.rm(file)

    explorer.refresh()
    explorer.wait()

    assert "data-1" in explorer.views["data"].error
    assert "Traceback" not in "".join(all_texts(explorer.view))


def test_closing_frees_threads_timers_observers_and_widgets(orders):
    gc.collect()
    before = set(all_models())

    async def main():
        explorer = Explorer(orders, variables={})
        explorer.state.follow = explorer.state.playing = True
        for _ in range(1_000):
            await asyncio.sleep(0.01)
            if explorer._log is not None:
                break
        explorer.state.tab = "files"
        explorer.close()
        explorer.close()
        return explorer

    explorer = on_a_loop(main())

    assert not explorer._follow.is_running
    assert not explorer._play.is_running
    assert explorer.state._trait_notifiers == {}
    until = time.monotonic() + 60
    while any(one.name.startswith(THREADS) for one in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.01)
    assert not [one for one in threading.enumerate() if one.name.startswith(THREADS)]
    assert set(all_models()) <= before


@pytest.mark.skipif(ipywidgets.__version__.startswith("7."), reason="its messages go another way")
def test_a_page_gets_only_what_is_shown_and_each_widget_once(orders):
    with messages_to_the_page() as sent:
        explorer = Explorer(orders, variables={}).wait()
        assert sent == []
        assert explorer.model_id
        first = list(sent)
        assert explorer._repr_mimebundle_()
        assert sent == first  # a further display sends nothing again
        for tab in TABS:
            explorer.state.tab = tab
            explorer.wait()
        explorer.close()

    assert {kind for kind, *_ in first} == {"comm_open"}
    assert len(first) == 2  # the widget and its layout
    assert sum(size for *_, size in first) < 150_000
    opened, closed = ([model for kind, model, _ in sent if kind == name] for name in ("comm_open", "comm_close"))
    assert len(opened) == 2
    assert len(opened) == len({*opened})
    assert {*opened} <= {*closed}


def test_the_page_gets_ten_thousand_irregular_commits_in_few_bytes():
    random = np.random.default_rng(0)
    added, removed = random.integers(0, 1_000_000, (2, 10_000))
    known = {
        "version": np.arange(10_000),
        "committed_at": 1_767_225_600_000 + np.cumsum(random.integers(0, 100_000, 10_000)),
        "added_rows": added,
        "removed_rows": removed,
        "total_rows": np.cumsum(added - removed),
        "kind": random.choice(["append", "merge", "delete"], 10_000),
        "readable": ["yes"] * 10_000,
        "details": ["{}"] * 10_000,
    }
    columns = [
        pa.array(known[one.name]).cast(one.type) if one.name in known else pa.nulls(10_000, one.type) for one in COMMITS
    ]
    commits = pa.table(columns, schema=COMMITS)
    with messages_to_the_page() as sent:
        explorer = Explorer(open_table(samples.path("orders"))).wait()
        assert explorer.model_id
        before = sum(size for *_, size in sent)
        explorer.commits = timeline_columns(commits, y="rows", facts=TableFacts())

    explorer.close()
    assert sum(size for *_, size in sent) - before < 210_000


def test_a_terminal_gets_text(explorer, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    bundle = explorer._repr_mimebundle_()

    assert str(explorer).startswith(bundle["text/plain"])
    assert bundle["text/plain"].startswith("Explorer of ")
    assert "18  2026-11-14 02:00:00  compact" in bundle["text/plain"]
    assert all(len(line) <= 120 for line in bundle["text/plain"].splitlines())


def test_a_page_without_widgets_gets_a_table_and_a_picture_without_script(explorer):
    page = explorer._repr_mimebundle_()["text/html"]

    assert 'alt="rows inserted and deleted by versions 1 to 18, A at 17, B at 18"' in page
    assert picture_points(page).shape == (440, 1920)
    assert "<table" in page
    assert "<script" not in page
    assert "http" not in page


def test_the_magic_gives_the_explorer_under_the_tables_name(shell, path):
    shell.ok(f"%snapshot open {path} as shop")

    cell = shell.ok("e = %snapshot explore\ne")

    assert cell.result is shell["e"]
    (said,) = cell.said
    assert "shop.at(5).commit" in said
    shell["e"].state.tab = "data"
    pressed(shell["e"].wait(), "Load as variable")
    assert len(shell["df"]) == 4
    shell["e"].close()


def test_the_variable_that_holds_a_table_is_found(shell, path):
    cell = shell.ok(f"import snapshot_explorer as sx\nmine = sx.open_table({path!r})\nsx.explore(mine).wait()")

    assert cell.result.code == "mine.at(5).commit"
    cell.result.close()


@pytest.mark.parametrize("text", ["nonsense", "99", "tag:none", "latest~99"])
def test_a_wrong_ref_leaves_the_box_and_the_view_together(explorer, text):
    explorer.receive({"choose": ["b", text]})
    explorer.wait()

    assert explorer.page["note"]
    assert explorer.page["markers"][1] == "18"
    assert explorer.state.b == 18


def test_a_ref_of_the_version_that_is_shown_becomes_its_number(explorer):
    for text in ("latest", "HEAD", "v18", "-1", "tag:none"):
        explorer.receive({"choose": ["b", text]})
        explorer.wait()
        assert explorer.page["markers"][1] == "18"
    explorer.receive({"choose": ["b", "HEAD~1"]})
    explorer.wait()

    assert (explorer.page["markers"][1], explorer.state.b, explorer.state.note) == ("17", 17, "")


def test_commits_that_cannot_be_read_are_named_above_the_others(tmp_path):
    path = tmp_path / "orders"
    shutil.copytree(samples.path("orders"), path)
    (path / "snapshot" / "snapshot-16").write_bytes(b"damaged")
    explorer = snapshot_explorer.explore(open_table(path)).wait(30)

    said = "The commit of version 16 cannot be read: snapshot/snapshot-16 is not a readable Paimon snapshot"
    assert said in " ".join(explorer._repr_mimebundle_()["text/plain"].split())
    assert said in explorer._repr_mimebundle_()["text/html"]
    assert any(said in note for note in explorer.commits["notes"])


def test_the_head_says_since_when_a_table_with_a_rhythm_has_received_nothing(tmp_path):
    table = DeltaTable(None, tmp_path / "late")
    for _ in range(8):
        table.append([(1, "Ada")])
    late = Explorer(snapshot_explorer.open_table(tmp_path / "late"), variables={}).wait()
    few = Explorer(snapshot_explorer.open_table(samples.path("payments")), variables={})

    assert re.fullmatch(r"late: no commit for \d+ d( \d+ h)?, usually every 1 min", late.page["late"])
    assert few.page["late"] == ""
    late.close()
    few.close()


def test_doubled_rows_are_marked_on_the_chart_like_numbers_that_jump(tmp_path):
    table = DeltaTable(None, tmp_path / "visits", fields=[("visit_id", "long")])
    for numbers in (range(10), range(10)):
        ends = {"minValues": {"visit_id": 0}, "maxValues": {"visit_id": 9}}
        table.append([(at,) for at in numbers], stats={"numRecords": 10, "nullCount": {"visit_id": 0}, **ends})
    explorer = Explorer(snapshot_explorer.open_table(tmp_path / "visits"), variables={}).wait()

    explorer.receive({"set": {"tab": "health", "health": "problems", "anomalies": True}})
    explorer.wait()

    assert [jump["at"] for jump in explorer.facts["jumps"]] == [2]
    assert "rows are doubled" in explorer.facts["jumps"][0]["text"]
    explorer.close()


def test_bars_that_are_brushed_and_top_values_that_are_clicked_filter_the_rows(explorer):
    typed(explorer, tab="data")
    explorer.wait()
    columns = explorer.view["grid"]["columns"]
    at = next(at for at, column in enumerate(columns) if column["bins"] and column["type"] == "BIGINT")
    bars = columns[at]["bins"]

    explorer.receive({"grid": {"place": "data", "brush": [at, 3, 8]}})
    explorer.wait()

    assert explorer.view["grid"]["total"] == sum(bars[3:9])
    first = explorer.state.where
    top = next(at for at, column in enumerate(explorer.view["grid"]["columns"]) if column["top"])
    value, count = explorer.view["grid"]["columns"][top]["top"][0]
    explorer.receive({"grid": {"place": "data", "brush": [top, 0, 0]}})
    explorer.wait()
    assert explorer.state.where == f"{first} and \"{columns[top]['name']}\" = '{value}'"
    assert explorer.view["grid"]["total"] == count
    for wrong in ([99, 0, 0], [at, 5, 3], [at, 0, 99], [at, -1, 3], [at, 0], "x"):
        explorer.receive({"grid": {"place": "data", "brush": wrong}})
    assert explorer.view["grid"]["total"] == count


def test_a_brushed_condition_holds_beside_all_of_another_one(explorer):
    typed(explorer, tab="data")
    explorer.wait()
    explorer.state.where = "order_id > 10\nor order_id = 2"
    explorer.wait()
    top = next(at for at, column in enumerate(explorer.view["grid"]["columns"]) if column["top"])

    explorer.receive({"grid": {"place": "data", "brush": [top, 0, 0]}})

    assert explorer.state.where.startswith("(order_id > 10\nor order_id = 2) and ")
