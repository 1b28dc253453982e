"""The notebooks as they are saved: small, readable without a kernel, a network or a script."""

import json
import re
from pathlib import Path

import pytest

from tests.inner.view import COPY_SCRIPT

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
WIDGETS = re.compile("application/vnd.jupyter.widget-(view|state)")
ADDRESS = re.compile(r"https?://(?!www\.w3\.org/2000/svg)")


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return request.param


def outputs(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [output for cell in cells if cell["cell_type"] == "code" for output in cell["outputs"]]


def test_a_notebook_is_small(notebook):
    assert notebook.stat().st_size < 300_000


def test_it_was_run_once_from_top_to_bottom(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    counts = [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"]

    assert counts == list(range(1, len(counts) + 1))


def test_nothing_in_it_failed_or_complained(notebook):
    assert [one for one in outputs(notebook) if one["output_type"] == "error" or one.get("name") == "stderr"] == []


def test_all_that_it_shows_is_there_as_text_too(notebook):
    shown = [one["data"] for one in outputs(notebook) if "data" in one]

    assert [sorted(data) for data in shown if "text/plain" not in data] == []


def test_it_shows_no_script_but_the_one_that_copies_no_widget_and_no_address(notebook):
    text = json.dumps(outputs(notebook)).replace(json.dumps(COPY_SCRIPT)[1:-1], "")

    assert "<script" not in text
    assert not WIDGETS.search(text)
    assert not ADDRESS.search(text)
    assert "widgets" not in json.loads(notebook.read_text(encoding="utf-8"))["metadata"]
