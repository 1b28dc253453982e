"""An explorer in a saved notebook: small, and readable where no kernel runs."""

import os
import re
import shutil
from pathlib import Path

import nbformat
import pytest

from snapshot_explorer import explore, open_lake, samples
from snapshot_explorer.errors import InvalidArgumentError
from tests.support.kernels import ON_SOCKETS

VIEW = "application/vnd.jupyter.widget-view+json"
OPEN = "import snapshot_explorer as sx\norders = sx.open_table(sx.samples.path('orders'))"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A notebook with an explorer in it, as nbclient saves it: with the state of all widgets."""
    nbclient = pytest.importorskip("nbclient")
    cells = (
        OPEN,
        "e = sx.explore(orders)\ne.state.a = 5\ne.state.tab = 'manifests'\ne",
        "for e.state.tab in ('commit', 'compare', 'data', 'files', 'health'):\n    e.wait()\nprint(e.code)",
    )
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    folder = tmp_path_factory.mktemp("saved")
    client = nbclient.NotebookClient(made, **ON_SOCKETS, resources={"metadata": {"path": folder}})
    client.execute(env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])})
    nbformat.write(made, folder / "saved.ipynb")
    return folder / "saved.ipynb"


def outputs(saved):
    made = nbformat.read(saved, as_version=4)
    return [one["data"] for one in made.cells[1].outputs]


def test_it_stays_small_with_the_state_of_all_widgets(saved):
    made = nbformat.read(saved, as_version=4)

    assert made.metadata.widgets  # nbclient keeps them
    assert saved.stat().st_size < 320_000


def test_its_output_reads_without_a_kernel(saved):
    picture, widget = outputs(saved)

    assert set(picture) == {"text/plain", "text/html"}
    assert len(picture["text/html"]) < 60_000
    assert "Manifests of version 5 and version 18" in picture["text/plain"]
    assert "orders.compare(5, 18).manifests" in picture["text/plain"]
    assert picture["text/html"].count('<img class="sx-picture" src="data:image/png;base64,') == 1
    assert "Manifests of version 5 and version 18" in picture["text/html"]
    assert set(widget) == {VIEW, "text/plain"}
    assert widget["text/plain"].startswith("Explorer(path=")


def test_what_a_cell_sets_is_what_the_next_sees(saved):
    made = nbformat.read(saved, as_version=4)

    assert made.cells[2].outputs[0]["text"] == "orders.health(18, metadata_only=True)\n"


def test_as_a_page_it_reads_without_script(saved):
    nbconvert = pytest.importorskip("nbconvert")
    made = nbformat.read(saved, as_version=4)
    made.metadata.pop("widgets")  # as JupyterLab saves it

    page, _ = nbconvert.HTMLExporter(template_name="classic").from_notebook_node(made)

    assert "Manifests of version 5 and version 18" in page
    assert 'src="data:image/png;base64,' in page
    assert re.search(r"<td[^>]*>.*manifest-", page)


def test_lines_of_code_have_the_name_of_the_variable_in_a_kernel(tmp_path):
    cells = [
        "from snapshot_explorer import explore, open_table, samples",
        "orders = open_table(samples.path('orders')); explorer = explore(orders).wait(60); print(explorer.code)",
        "print(explore(open_table('orders')).wait(60).code)",
    ]
    nbclient = pytest.importorskip("nbclient")
    shutil.copytree(samples.path("orders"), tmp_path / "orders")
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(made, **ON_SOCKETS, resources={"metadata": {"path": tmp_path}})
    client.execute(env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])})
    printed = [[output.text for output in cell.outputs if output.output_type == "stream"] for cell in made.cells]

    assert printed[1] == ["orders.at(18).commit\n"]
    assert printed[2] == [f"open_table({str(tmp_path / 'orders')!r}).at(18).commit\n"]


def test_the_page_of_a_lake_cannot_be_saved(tmp_path):
    shutil.copytree(samples.path("orders"), tmp_path / "orders")

    with pytest.raises(InvalidArgumentError, match="save_page records the explorer of one table, not of a lake."):
        explore(open_lake(tmp_path), save_page=True)
