"""The explorer's timeline is never blank: after "Run All" in a real JupyterLab that is slow, by its pixels."""

import shutil

import nbformat
import pytest

from tests.support.first_paint import FEWEST, Page

pytestmark = [
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]
CELLS = (
    "import snapshot_explorer as sx\norders = sx.open_table(sx.samples.path('orders'))",
    "e = sx.explore(orders)\ne.state.since = '@2026-11-09'\ne",
    "e.wait().state.measure = 'files'\ne.state.b = 15",
    "e.wait().state.measure = 'rows'\ne.state.since = ''",
)
"""The timeline is drawn again while the page has only just heard of the widget."""
RUNS, SLOWER = 2, 2
"""How often all cells are run, the second time with another kernel, in a page that runs at a fraction of its speed."""


def test_a_timeline_shows_its_bars_each_time_all_cells_run_in_a_slow_page(lab, chromium):
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(made, lab.served / "run_all.ipynb")
    page = Page(chromium, lab, "run_all")
    page.slow_down(SLOWER)

    paints = [page.run_all((1,), patience=60) for _ in range(RUNS)]

    page.close()
    lab.end_kernels()
    assert [paint.pixels for paint in paints if min(paint.pixels) < FEWEST] == []
    assert len({width for paint in paints for width in paint.widths}) == 1
    assert max(paint.received for paint in paints) < 400_000
