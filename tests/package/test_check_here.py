"""The notebook with which a person checks a place that the tests do not run in."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "binder" / "check_here.ipynb"


def test_the_notebook_that_checks_a_place_finds_that_all_works_here():
    notebook = nbformat.read(NOTEBOOK, as_version=4)

    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()

    printed = notebook.cells[2]["outputs"][-1]["text"].splitlines()
    states = [line.split()[1] for line in printed[1:8]]
    assert states == ["yes"] * 7, printed
    assert "application/vnd.jupyter.widget-view+json" in notebook.cells[-1]["outputs"][-1]["data"]
