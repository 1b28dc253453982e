"""`%snapshot log --picture`, and progress, in a real shell, against a real table."""

import nbformat
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.displaypub import CapturingDisplayPublisher

from snapshot_explorer import samples
from snapshot_explorer.core import progress
from tests.inner.core import Progress, step
from tests.inner.jupyter import CellProgress
from tests.inner.view import PLOTLY, FigureWithTable
from tests.support.kernels import ON_SOCKETS


def test_log_with_picture_is_a_figure_with_a_table_beside_it(orders):
    cell = orders.ok("%snapshot log --picture")

    assert isinstance(cell.result, FigureWithTable)
    assert set(cell.shown) == {PLOTLY, "text/html", "text/plain"}
    assert [trace["name"] for trace in cell.shown[PLOTLY]["data"]][:2] == ["+ append", "~ overwrite"]
    assert "v1" in cell.shown["text/plain"]
    assert "+++" in cell.shown["text/html"]


def test_a_profile_is_its_figure_and_spells_its_hints_as_options(shell):
    shell.ok(f"%snapshot open {samples.path('rides')} as rides")

    shown = shell.ok("%snapshot profile").shown

    assert set(shown) == {PLOTLY, "text/html", "text/plain"}
    assert "updated_at and 1 more: --exact reads the rows." in shown["text/plain"]
    assert "--exact reads the rows." in shown["text/html"]


def test_metadata_tables_that_have_a_picture_are_drawn(shell):
    shell.ok(f"%snapshot open {samples.path('rides')} as rides")
    cell = shell.ok("%snapshot inspect timeline --picture")
    listed = shell.ok("%snapshot inspect").result.to_dict()

    assert set(cell.shown) == {"text/html", "text/plain"}
    assert cell.result.svg in cell.shown["text/html"]
    assert "1 requested and not begun: compaction 20261112020000257." in cell.shown["text/plain"]
    assert [row["name"] for row in listed if row["has_picture"]] == ["timeline", "file_groups"]
    assert "There is no figure of" in shell.fails("%snapshot inspect cleans --picture")


def test_a_picture_passes_range_filters_and_measure_on(orders):
    made = orders.ok("%snapshot log 2..4 --picture --kind append --measure files").result

    assert list(made.data[0].x) == [2, 3]
    assert made.layout.yaxis.title.text == "files added, removed"
    assert list(orders.ok("%snapshot log --picture -n 1").result.data[0].x) == [5]


def test_the_table_beside_a_figure_is_as_long_as_the_setting_says(orders):
    orders.ok("%config SnapshotMagics.display_limit = 2")

    assert orders.ok("%snapshot log --picture -n all").shown["text/plain"].endswith("2 of 5 versions")


def test_what_cannot_be_counted_is_said_in_a_line(orders):
    assert (
        orders.fails("%snapshot log --picture --measure cows")
        == "--measure must be one of rows, files, bytes, got 'cows'. Example: --picture --measure files."
    )
    assert orders.fails("%snapshot log --picture -n few").startswith(
        "-n must be a whole number, 0 or more, or all, got 'few'."
    )


def test_measures_are_completed(orders):
    with provisionalcompleter():
        found = [item.text for item in orders.ip.Completer.completions("%snapshot log --picture --measure f", 35)]

    assert found == ["files"]


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.0)


def test_progress_is_an_output_that_is_moved_on_and_taken_away(shell):
    published = shell.ip.display_pub = CapturingDisplayPublisher()
    shown = CellProgress(shell.ip)

    shown.show(Progress(title="Counting <sheep>", done=1, total=3, seconds=2))
    shown.show(Progress(title="Counting <sheep>", done=5, total=3, seconds=3))
    shown.clear()

    first, bar, moved, gone = published.outputs
    assert [one["update"] for one in published.outputs] == [False, True, True, True]
    assert len({one["transient"]["display_id"] for one in published.outputs}) == 1
    assert first["data"] == gone["data"] == {}
    assert bar["data"]["text/plain"] == "Counting <sheep>: 1 of 3, 2 s"
    assert '<progress max="3" value="1" aria-label="Counting &lt;sheep&gt;"' in bar["data"]["text/html"]
    assert 'value="3"' in moved["data"]["text/html"]


def test_work_of_unknown_length_has_a_bar_without_an_end(shell):
    published = shell.ip.display_pub = CapturingDisplayPublisher()

    CellProgress(shell.ip).show(Progress(title="Counting", done=1, total=None, seconds=2))

    assert "<progress aria-label" in published.outputs[1]["data"]["text/html"]


def test_without_a_notebook_or_a_terminal_nothing_is_shown(orders, impatient):
    cell = orders.ok("%snapshot log")

    assert (cell.said, cell.stdout, cell.stderr) == ([], "", "")


def test_in_a_notebook_progress_leaves_nothing_behind(path_of_sample, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    cells = [
        "%load_ext snapshot_explorer",
        "from snapshot_explorer.core import progress\nprogress.PATIENCE = progress.EVERY = 0.0",
        f"%snapshot open {path_of_sample} as orders\nNone",
    ]
    for wanted in (True, False):
        cells += [
            f"%config SnapshotMagics.progress = {wanted}",
            "print(len(orders.history(kind='compact')))",
            "progress._LISTENER.get() is None",
            "with progress.step('Failing') as failing:\n    failing.advance()\n    raise KeyboardInterrupt",
        ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])

    nbclient.NotebookClient(notebook, **ON_SOCKETS, allow_errors=True).execute(cwd=str(tmp_path))

    outputs = [cell.outputs for cell in notebook.cells]
    for wanted, (history, listening, failing) in ((True, outputs[4:7]), (False, outputs[8:11])):
        shown = [output.data for output in [*history, *failing] if output.output_type == "display_data"]
        assert shown == ([{}, {}] if wanted else [])
        assert history[-1].text == "3\n"
        assert listening[0].data["text/plain"] == str(not wanted)
        assert failing[-1].ename == "KeyboardInterrupt"


@pytest.fixture
def path_of_sample():
    from snapshot_explorer import samples

    return samples.path("orders")


def test_after_unloading_nobody_listens(shell):
    heard = []

    class Heard:
        def show(self, said):
            heard.append(said)

        def clear(self):
            heard.append("cleared")

    progress.listen(Heard())
    shell.ok("%unload_ext snapshot_explorer")
    with step("Counting") as counting:
        counting.advance()

    assert heard == []
    for event in ("pre_run_cell", "post_run_cell"):
        assert not [one for one in shell.ip.events.callbacks[event] if "ShellProgress" in repr(one)]
