"""A real Jupyter server on the loopback interface, a chromium that opens notebooks in it; explorers without them."""

import re
from pathlib import Path

import nbformat
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.jupyter.explorer import Explorer
from tests.support.jupyter_server import TOKEN, jupyter_server
from tests.support.paimon.table_builder import PaimonTable
from tests.support.waiting import SECONDS, expect

ROOT = Path(__file__).parents[3]
SHOTS = ROOT / "tests" / "screenshots"
BEGUN = re.compile(r"\[[*\d]")
ANSWERED = re.compile(r"\[\d+\]")
READY = '.jp-Notebook-ExecutionIndicator[data-status="idle"]'
PLACES = {
    "JupyterLab": ("doc/tree/{}.ipynb?reset&", READY),
    "Notebook": ("notebooks/{}.ipynb?", READY),
    "Voila": ("voila/render/{}.ipynb?", ".sx-timeline canvas[data-drawn]"),
}
"""Where each application shows a notebook, and what is there when it does. One server has them all."""
VOILAS = ("/@fortawesome/", "/mathjax/")
"""What Voila's own page asks the internet for; it is refused."""
OWN = re.compile("(?s)(?!.*blob:).*/static/notebook/")
"""Notebook's own errors, in whose stacks is no widget: releases have some, also with an empty notebook."""


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A server with JupyterLab, Notebook and Voila."""
    for name in ("jupyterlab", "notebook", "voila"):
        pytest.importorskip(name)
    with jupyter_server(tmp_path_factory.mktemp("lab")) as server:
        yield server


class Notebook:
    """A notebook, opened in a browser."""

    def __init__(self, page, path, reopen):
        self.page = page
        self._path = path
        self._reopen = reopen

    def run(self, index):
        """Run a cell, and return it when the kernel has answered."""
        cell = self._in_sight(index)
        prompt = cell.locator(".jp-InputPrompt")
        before = prompt.inner_text()  # a number, if the cell has run already
        for _ in range(10):
            # What is typed before the page has its kernel is lost, or the page asks which kernel to take.
            if self.page.locator(".jp-Dialog", has_text="Select Kernel").is_visible():
                self.page.keyboard.press("Escape")
            cell.locator(".cm-content").click()
            self.page.keyboard.press("Control+Enter")
            if self._has_begun(prompt, before):
                break
        cell.locator(".jp-InputPrompt", has_text=ANSWERED).wait_for()
        return cell

    def _in_sight(self, index):
        """Return a cell, scrolled to: a page may leave out those that are out of sight."""
        cell = self.cell(index)
        if not cell.locator(".cm-content").count():
            self.page.locator(".jp-WindowedPanel-outer").evaluate("panel => panel.scrollTo(0, panel.scrollHeight)")
        return cell

    def _has_begun(self, prompt, before):
        """Return whether a cell begins to run within two seconds."""
        for _ in range(40):
            self.page.wait_for_timeout(50)
            if (now := prompt.inner_text()) != before and BEGUN.search(now):
                return True
        return False

    def cell(self, index):
        return self.page.locator(f'.jp-Cell[data-windowed-list-index="{index}"]')

    def puts_out(self, index, text):
        """Wait until a cell shows a text as its only output."""
        expect(self.cell(index).locator(".jp-OutputArea-output")).to_have_text([text])

    def text(self, index):
        """Return the text of the first output of a cell."""
        return self.cell(index).locator(".jp-OutputArea-output").first.inner_text()

    def says(self, text):
        """Wait until the page shows a text."""
        self.page.get_by_text(text).locator("visible=true").first.wait_for()

    def is_saved_with(self, text):
        """Wait until the notebook's file contains a text."""
        for _ in range(SECONDS * 20):
            if text in self._path.read_text("utf-8"):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"{text!r} was not saved")

    def reopened(self):
        """Return the notebook in a page of its own, after its kernel has ended."""
        return self._reopen()

    def shot(self, name):
        """Write a picture of the page."""
        SHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png")


@pytest.fixture
def notebook(lab, chromium):
    """Open a notebook of these cells; requests to the outside are refused and fail the test, as errors do."""
    opened = []

    def open_(*cells, name="explorer", theme="Light", where="JupyterLab"):
        lab.set_theme(theme)
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(made, lab.served / f"{name}.ipynb")
        return show(name, where)

    def show(name, where):
        page = chromium.new_page(viewport={"width": 1280, "height": 1400})
        page.set_default_timeout(SECONDS * 1000)
        opened.append(page)
        page.problems = []
        page.on("pageerror", lambda error: OWN.match(error.stack) or page.problems.append(error.stack))
        page.on("websocket", lambda socket: lab.contains(socket.url) or page.problems.append(socket.url))
        page.route(lambda url: not lab.contains(url), refuse)
        path, ready = PLACES[where]
        page.goto(f"{lab.address}/{path.format(name)}token={TOKEN}")
        page.wait_for_selector(ready)
        return Notebook(page, lab.served / f"{name}.ipynb", lambda: reopen(name, where))

    def refuse(route):
        if not any(part in route.request.url for part in VOILAS):
            route.request.frame.page.problems.append(route.request.url)
        route.abort()

    def reopen(name, where):
        opened[-1].close()
        lab.end_kernels()
        return show(name, where)

    yield open_
    for page in opened:
        assert page.problems == []
        page.close()
    lab.end_kernels()


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
