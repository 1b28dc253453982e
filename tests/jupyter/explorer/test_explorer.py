"""The explorer as a widget, driven through its state and its controls, without a browser."""

import asyncio
import gc
import re
import sys
import threading
import time

import ipywidgets
import pytest

import snapshot_explorer
from builders import PaimonTable
from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import StorageError
from snapshot_explorer.jupyter.explorer import Explorer, explore
from snapshot_explorer.jupyter.explorer.stills import still_text
from snapshot_explorer.jupyter.explorer.work import THREADS
from snapshot_explorer.render import text


@pytest.fixture(scope="module")
def orders():
    return open_table(samples.path("orders"))


@pytest.fixture
def explorer(orders):
    made = Explorer(orders, name="orders", variables={}).wait()
    yield made
    made.close()


@pytest.fixture
def growing(memory_root):
    """A table that the test may write to, and its explorer."""
    table = PaimonTable(*memory_root)
    table.commit([(1, "a")])
    table.commit([(2, "b"), (3, "c")])
    made = Explorer(open_table(f"memory://{table.root}"), variables={}).wait()
    yield table, made
    made.close()


def told(explorer, place):
    """Return what a place shows, as text; its error where there is one."""
    pane = explorer._panes[place]
    return pane.error or text(pane.drawing)


def all_widgets(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from all_widgets(child)


def all_models():
    return sys.modules[ipywidgets.Widget.__module__]._instances


def pressed(explorer, label):
    """Press the button of that label, and wait."""
    (found,) = [
        one for one in all_widgets(explorer) if isinstance(one, ipywidgets.Button) and one.description == label
    ][:1]
    found.click()
    explorer.wait()


def labelled(explorer, label):
    """Return the control of that label."""
    return next(one for one in all_widgets(explorer) if getattr(one, "description", None) == label)


def test_it_is_part_of_the_package(orders):
    explorer = snapshot_explorer.explore(orders)

    assert isinstance(explorer, ipywidgets.VBox)
    assert repr(explorer.wait()) == f"Explorer(path={orders.path!r}, a=17, b=18)"
    explorer.close()


def test_the_head_tells_what_the_table_is(explorer, orders):
    assert f"orders paimon {orders.path}" in explorer._head.value
    assert "versions 1 to 18, 18 of them" in explorer._head.value
    assert "41 rows in files" in explorer._head.value
    assert "2 files, 4.9 kB" in explorer._head.value


def test_the_commit_is_told_with_what_is_stored_of_it(explorer):
    said = told(explorer, "commit")

    assert "identifier     9223372036854775807" in said
    assert "baseManifestList       manifest-list-" in said
    assert explorer.code == "orders.at(18).commit"


def test_what_an_operation_counted_stands_by_itself():
    explorer = Explorer(open_table(samples.path("payments"))).wait()
    explorer.state.b = 18
    explorer.wait()

    said = told(explorer, "commit")

    assert "What the operation counted:" in said
    assert re.search(r"numDeletedRows +11\n", said)
    explorer.close()


def test_the_source_is_cited(explorer, orders):
    explorer.state.a, explorer.state.tab = 5, "manifests"
    explorer.wait()

    footer = explorer._panes["manifests"].footer.value

    assert "orders.compare(5, 18).manifests" in footer
    assert (
        f"Source: {orders.path}, version 5 of 2026-11-04 02:00:00.261Z and version 18 of 2026-11-14 02:00:00.092Z"
        in footer
    )


def test_the_lens_shows_what_became_of_each_manifest(explorer, orders):
    explorer.state.tab, explorer.state.a = "manifests", 9
    explorer.wait()

    lines = told(explorer, "manifests").splitlines()

    assert "2 added, 2 merged away, 1 rewritten." in lines[1]
    assert lines[2].split() == ["A:", "version", "9", "B:", "version", "18"]
    assert [line.strip("- ") for line in lines if line.startswith("--")] == ["base", "delta", "changelog: no manifest"]
    left, right = lines[4][:59], lines[4][59:].strip()
    assert left.startswith("- manifest-34f17bb7")
    assert right.startswith("~ manifest-6c59a41e")


def test_the_lens_shows_a_manifest_of_both_in_one_line_of_its_lane(explorer):
    explorer.state.tab = "manifests"
    explorer.wait()

    lines = told(explorer, "manifests").splitlines()

    assert lines[4][:40] == lines[4][61:101]
    assert lines[4].startswith("= manifest-")


def test_a_cell_may_open_a_manifest_before_the_lens_offers_it(explorer, orders):
    path = orders.at(17).manifests().to_pandas()["path"].iloc[-1]

    explorer.state.a, explorer.state.b, explorer.state.tab = 16, 17, "manifests"
    explorer.state.manifest = path
    explorer.wait()

    assert explorer._controls.manifest.value == explorer.state.manifest == path
    assert told(explorer, "entries").startswith("Entries of manifest-")


def test_a_manifest_is_opened_down_to_its_entries(explorer):
    explorer.state.tab = "manifests"
    explorer.wait()
    label, path = explorer._controls.manifest.options[-1]

    explorer._controls.manifest.value = path
    explorer.wait()

    assert label.startswith(("+ ", "= "))
    assert told(explorer, "entries").startswith("Entries of manifest-")
    assert "bucket-" in told(explorer, "entries")
    assert ".entries(&#x27;manifest-" in explorer._panes["entries"].footer.value


def test_the_checkpoint_of_a_delta_table_is_its_base():
    explorer = Explorer(open_table(samples.path("payments"))).wait()
    explorer.state.tab = "manifests"
    explorer.wait()

    said = told(explorer, "manifests")

    assert "= 00000000000000000020.checkpoint.parquet" in said
    assert "+ 00000000000000000021.json" in said
    explorer.close()


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("overview", "The schema is the same"),
        ("partitions", "partitions and buckets that differ"),
        ("files", "files that differ"),
        ("commits", "versions"),
        ("properties", "The properties are the same."),
    ],
)
def test_parts_of_the_comparison_are_told(explorer, part, expected):
    explorer.state.tab, explorer.state.a, explorer.state.compared = "compare", 17, part
    explorer.wait()

    assert expected in told(explorer, "compare")
    assert explorer.code.startswith("orders.compare(17, 18)")


def test_rows_are_previewed_as_asked(explorer, orders):
    explorer.state.tab, explorer.state.columns, explorer.state.where = "data", ["order_id", "amount"], "amount > 250"
    explorer.wait()

    said = told(explorer, "data")

    assert "What all of it takes to read: 41 rows (before any merge), 2 files, 4.9 kB." in said
    assert explorer.code == "orders.at(18).to_arrow(columns=['order_id', 'amount'], where='amount > 250', limit=20)"
    assert len(said.splitlines()) == 4 + eval(explorer.code).num_rows


def test_a_condition_that_does_not_fit_is_told_in_its_place(explorer):
    explorer.state.tab, explorer.state.where = "data", "colour = 'red'"
    explorer.wait()

    assert "colour" in explorer._panes["data"].error
    assert "\n" not in explorer._panes["data"].error
    assert 'role="alert"' in explorer._panes["data"].content.value

    explorer.state.where = ""
    explorer.wait()
    assert explorer._panes["data"].error == ""


def test_rows_are_loaded_into_a_variable(orders):
    variables = {}
    explorer = Explorer(orders, name="orders", variables=variables).wait()
    explorer.state.tab, explorer.state.variable, explorer.state.b = "data", "old", 2
    explorer.wait()

    pressed(explorer, "Load as variable")

    assert variables["old"].equals(orders.at(2).to_pandas())
    assert "old holds 24 rows of version 2. Read: 38 rows (before any merge), 4 files" in explorer._loader.result.value
    assert "old = orders.at(2).to_pandas()" in explorer._loader.line.value
    explorer.close()


def test_a_variable_of_the_users_is_replaced_only_when_asked_twice(orders):
    variables = {"df": "precious"}
    explorer = Explorer(orders, variables=variables).wait()
    explorer.state.tab, explorer.state.engine = "data", "arrow"
    explorer.wait()

    pressed(explorer, "Load as variable")
    assert variables == {"df": "precious"}
    assert "The variable df holds a str already. Press again to replace it." in explorer._loader.result.value

    pressed(explorer, "Load as variable")
    assert variables["df"].num_rows == 41
    explorer.close()


def test_what_is_large_is_loaded_only_when_asked_twice(orders, monkeypatch):
    monkeypatch.setattr("snapshot_explorer.jupyter.explorer.rows.LARGE_ROWS", 40)
    variables = {}
    explorer = Explorer(orders, variables=variables).wait()
    explorer.state.tab = "data"
    explorer.wait()

    pressed(explorer, "Load as variable")
    assert variables == {}
    assert "That reads 41 rows (before any merge), 2 files, 4.9 kB." in explorer._loader.result.value

    explorer.state.load_limit = 3
    pressed(explorer, "Load as variable")
    assert len(variables["df"]) == 3
    explorer.state.load_limit = 0
    pressed(explorer, "Load as variable")
    pressed(explorer, "Load as variable")
    assert len(variables["df"]) == 41
    explorer.close()


def test_outside_of_a_notebook_nothing_is_loaded(orders):
    explorer = explore(orders).wait()

    explorer.load()

    assert "There is no notebook to load rows into." in explorer._loader.result.value
    explorer.close()


def test_files_are_filtered_and_sorted_a_page_at_a_time(memory_root):
    table = PaimonTable(*memory_root)
    for number in range(60):
        table.commit([(key, "x") for key in range(number % 7 + 1)])
    explorer = Explorer(open_table(f"memory://{table.root}")).wait()
    state, pane = explorer.state, explorer._panes["files"]
    state.tab, state.file_order, state.descending = "files", "rows", True
    explorer.wait()

    assert pane.page.value == "page 1 of 2"
    assert pane._back.disabled
    pane._on.click()
    explorer.wait()
    assert pane.page.value == "page 2 of 2"
    assert len(told(explorer, "files").splitlines()) == 3 + 10
    state.partition = "nothing"
    explorer.wait()
    assert "0 of 60 files are in partitions that hold 'nothing'." in told(explorer, "files")
    explorer.close()


@pytest.mark.parametrize("name", ["path", "partition", "bucket", "level", "rows", "size_bytes", "added_version"])
@pytest.mark.parametrize("sample", ["events", "payments"])
def test_files_are_sorted_by_any_column(sample, name):
    explorer = Explorer(open_table(samples.path(sample))).wait()
    explorer.state.tab, explorer.state.file_order, explorer.state.statistics = "files", name, True
    explorer.wait()

    assert explorer._panes["files"].error == ""
    explorer.close()


def test_files_of_a_partition_are_chosen_by_its_text():
    table = open_table(samples.path("events"))
    explorer = Explorer(table).wait()
    partition = dict(table.current.files().to_arrow()["partition"][0].as_py())
    key, value = next(iter(partition.items()))
    explorer.state.tab, explorer.state.partition = "files", f"{key}={value}"
    explorer.wait()

    expected = table.current.files(partition).num_rows
    assert f"{expected} of {table.current.files().num_rows} files are in partitions" in told(explorer, "files")
    explorer.close()


def test_health_is_told(explorer):
    explorer.state.tab = "health"
    explorer.wait()

    assert "In good order: there is nothing to be done." in told(explorer, "health")


def test_what_can_be_read_is_told_in_runs():
    explorer = Explorer(open_table(samples.path("payments"))).wait()
    explorer.state.tab, explorer.state.health = "health", "readability"
    explorer.wait()

    lines = told(explorer, "health").splitlines()

    assert lines[2].split() == ["readable", "from", "to", "versions"]
    assert lines[4].split() == ["yes", "0", "21", "22"]
    explorer.close()


def test_retention_is_told_or_that_it_is_not_there(explorer, orders):
    explorer.state.tab, explorer.state.health, explorer.state.keep = "health", "retention", "3d"
    explorer.wait()

    assert "etention" in told(explorer, "health")
    assert "retention(keep=&#x27;3d&#x27;)" in explorer._panes["health"].footer.value


@pytest.mark.parametrize(
    ("ref", "version"), [("latest~2", 16), ("tag:v1", 5), ("@2026-11-06", 7), ("earliest", 1), (12, 12), ("18", 18)]
)
def test_a_marker_takes_any_ref(explorer, ref, version):
    explorer.choose(ref, "a")
    explorer.wait()

    assert (explorer.state.a, explorer.state.note) == (version, "")
    assert explorer._controls.markers["a"].value == str(version)


def test_a_ref_is_typed_or_chosen_from_the_list(explorer):
    box = explorer._controls.markers["b"]
    assert box.options[:3] == ("latest", "earliest", "18  2026-11-14 02:00:00.092Z  compact")

    box.value = "5  2026-11-04 02:00:00.261Z  compact  tags v1"
    explorer.wait()

    assert explorer.state.b == 5


def test_what_is_no_ref_is_told_and_the_marker_stays(explorer):
    explorer._controls.markers["b"].value = "newest"
    explorer.wait()

    assert explorer.state.b == 18
    assert "newest" in explorer.state.note
    assert 'role="alert"' in explorer._controls.note.value


def test_buttons_step_and_swap(explorer):
    pressed(explorer, "Previous")
    assert explorer.state.b == 17
    pressed(explorer, "Next")
    assert explorer.state.b == 18
    pressed(explorer, "Swap A and B")
    assert (explorer.state.a, explorer.state.b) == (18, 17)


def test_the_slider_is_the_window(explorer):
    explorer._controls.window.value = (2, 9)
    explorer.wait()

    assert explorer.state.window == (3, 10)
    assert explorer._controls.window_said.value == "3 to 10"
    explorer.state.window = (1, 18)
    assert explorer._controls.window.value == (0, 17)


def test_filters_change_what_is_offered_and_drawn(explorer):
    labelled(explorer, "Kind").value = "compact"
    explorer.wait()

    offered = [one.split()[0] for one in explorer._controls.markers["b"].options]
    assert offered == ["latest", "earliest", "18", "12", "5"]
    assert [len(trace.x) for trace in explorer._strip._made.data if trace.name == "~ compact"] == [3, 3]


def test_what_a_filter_refuses_is_told_and_goes_back(explorer):
    since = labelled(explorer, "Since")

    since.value = "whenever"

    assert since.value == ""
    assert "whenever" in explorer.state.note


def test_markers_stand_in_the_figure(explorer):
    explorer.state.a = 12

    marks = explorer._strip._marks
    assert [(one["text"], one["x"]) for one in marks["annotations"]] == [("<b>A</b>", 12), ("<b>B</b>", 18)]
    shown = explorer._strip._output.outputs[0]["data"]["application/vnd.plotly.v1+json"]
    assert len(shown["layout"]["shapes"]) == 2


def test_a_figure_that_hears_clicks_sets_the_markers(explorer):
    pytest.importorskip("anywidget")
    explorer._strip.live()
    (figure,) = explorer._strip.box.children
    hover = figure.data[-1]

    message = {
        "event_type": "plotly_click",
        "points": {"trace_indexes": [len(figure.data) - 1], "point_indexes": [4], "xs": [5], "ys": [1]},
        "device_state": None,
        "selector": None,
    }
    figure._js2py_pointsCallback = message
    explorer.wait()

    assert hover.name == "commits"
    assert explorer.state.b == 5
    explorer.state.kind = "compact"
    assert explorer._strip.box.children == (figure,)


def test_only_the_tab_in_front_reads(explorer):
    assert explorer._panes["files"].told is None

    explorer._tabs.selected_index = 4
    explorer.wait()

    assert explorer.state.tab == "files"
    assert explorer._panes["files"].told is not None


def test_what_is_shown_is_not_read_twice(explorer):
    explorer.state.tab = "manifests"
    explorer.wait()
    first = explorer._panes["manifests"].told

    explorer.state.tab = "commit"
    explorer.state.tab = "manifests"
    explorer.wait()

    assert explorer._panes["manifests"].told is first


def test_a_table_without_versions_says_so(memory_root):
    table = PaimonTable(*memory_root)
    explorer = Explorer(open_table(f"memory://{table.root}")).wait()
    for tab in ("commit", "manifests", "compare", "data", "files", "health"):
        explorer.state.tab = tab
        explorer.wait()
        assert "Nothing has been committed to the table yet." in explorer._panes[tab].content.value

    table.commit([(1, "a")])
    explorer.refresh()
    explorer.wait()

    assert explorer.state.b == 1
    assert explorer._panes["health"].error == ""
    explorer.close()


def test_refresh_finds_new_commits(growing):
    table, explorer = growing

    table.commit([(4, "d")])
    pressed(explorer, "Refresh")

    assert (explorer.state.a, explorer.state.b) == (1, 3)


def test_new_commits_are_followed_until_that_is_stopped(growing):
    table, explorer = growing
    explorer.state.interval = 0.2

    async def seen(version):
        for _ in range(500):
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

    asyncio.run(main())

    assert explorer.state.b == 4
    assert explorer.state.commits["version"].to_pylist() == [4, 3, 2, 1]


def test_following_tells_what_goes_wrong_and_goes_on(growing, monkeypatch):
    table, explorer = growing

    def fail(**_):
        raise StorageError("The folder was asked for. It does not answer. Try again.")

    with monkeypatch.context() as broken:
        broken.setattr(explorer.table, "update", fail)
        explorer._look()
        explorer.wait()
        assert explorer.state.note == "The folder was asked for. It does not answer. Try again."

    table.commit([(4, "d")])
    explorer._look()
    explorer.wait()
    assert (explorer.state.note, explorer.state.b) == ("", 3)


def test_a_log_that_was_rolled_back_is_read_anew(growing):
    table, explorer = growing
    table.commit([(4, "d")])
    explorer.refresh()
    explorer.wait()
    table.rollback(2) if hasattr(table, "rollback") else table.filesystem.rm(f"{table.root}/snapshot/snapshot-3")

    explorer.refresh()
    explorer.wait()

    assert explorer.state.versions == (1, 2)
    assert explorer.state.b == 2


def test_play_moves_b_on_and_ends(growing, monkeypatch):
    _, explorer = growing
    monkeypatch.setattr("snapshot_explorer.jupyter.explorer.explorer._PLAY_SECONDS", 0.05)
    explorer.state.b = 1

    async def main():
        explorer.state.playing = True
        for _ in range(100):
            if not explorer.state.playing:
                return
            await asyncio.sleep(0.02)

    asyncio.run(main())

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

    assert "data-1" in explorer._panes["data"].error
    assert "Traceback" not in explorer._panes["data"].content.value


def test_closing_frees_threads_timers_observers_and_widgets(orders):
    gc.collect()
    before = set(all_models())

    async def main():
        explorer = Explorer(orders, variables={})
        explorer._strip.live()
        explorer.state.follow = explorer.state.playing = True
        for _ in range(1_000):
            await asyncio.sleep(0.01)
            if explorer._log is not None:
                break
        explorer._strip.live()
        explorer.state.tab = "files"
        explorer.close()
        explorer.close()
        return explorer

    explorer = asyncio.run(main())

    assert not explorer._follow.is_running
    assert not explorer._play.is_running
    assert explorer.state._trait_notifiers == {}
    until = time.monotonic() + 10
    while any(one.name.startswith(THREADS) for one in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.01)
    assert not [one for one in threading.enumerate() if one.name.startswith(THREADS)]
    assert set(all_models()) <= before


def test_a_terminal_gets_text(explorer):
    bundle = explorer._repr_mimebundle_()

    assert bundle["text/plain"] == still_text(explorer.drawing())
    assert bundle["text/plain"].startswith("Explorer of ")
    assert "18  2026-11-14 02:00:00.092Z  compact" in bundle["text/plain"]
    assert all(len(line) <= 120 for line in bundle["text/plain"].splitlines())


def test_a_page_without_widgets_gets_a_table_and_a_picture_without_script(explorer):
    page = explorer._repr_mimebundle_()["text/html"]

    assert "<svg" in page
    assert page.count("<rect") == 2 * 18
    assert ">A 17</text>" in page
    assert ">B 18</text>" in page
    assert "<table" in page
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


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
