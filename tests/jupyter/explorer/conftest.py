"""A real JupyterLab on the loopback interface, and a chromium that opens notebooks in it."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[3]
SHOTS = ROOT / "tests" / "screenshots"
BEGUN = re.compile(r"\[[*\d]")
ANSWERED = re.compile(r"\[\d+\]")
SECONDS = 60_000
"""How long, in milliseconds, something may take to appear on a loaded machine."""
TOKEN = "of-this-test"
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """The address of a JupyterLab, and the folder that it serves."""
    pytest.importorskip("jupyterlab")
    root = tmp_path_factory.mktemp("lab")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, values in SETTINGS.items():
        folder, _, plugin = name.partition("/")
        home = root / "config" / "lab" / "user-settings" / "@jupyterlab" / folder
        home.mkdir(parents=True, exist_ok=True)
        (home / f"{plugin}.jupyterlab-settings").write_text(json.dumps(values))
    served = root / "served"
    served.mkdir()
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_DATA_DIR": str(root / "data"),
        "IPYTHONDIR": str(root / "ipython"),
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={served}"]
    with (root / "log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=served)
    address = f"http://127.0.0.1:{port}"
    try:
        _until_it_answers(address, server, root / "log")
        yield address, served, root
    finally:
        server.terminate()
        server.wait(30)


def _until_it_answers(address, server, log):
    for _ in range(240):
        assert server.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(f"{address}/api", timeout=2).close()
        except OSError:
            time.sleep(0.25)
        else:
            return
    raise AssertionError(log.read_text())


class Notebook:
    """A notebook, opened in JupyterLab."""

    def __init__(self, page, reopen):
        self.page = page
        self._reopen = reopen

    def run(self, index):
        """Run a cell, and return it when the kernel has answered."""
        cell = self.cell(index)
        prompt = cell.locator(".jp-InputPrompt")
        for _ in range(10):
            # What is typed before the page has its kernel is lost.
            cell.locator(".cm-content").click()
            self.page.keyboard.press("Control+Enter")
            self.page.wait_for_timeout(500)
            if BEGUN.search(prompt.inner_text()):
                break
            self.page.wait_for_timeout(1_500)
        cell.locator(".jp-InputPrompt", has_text=ANSWERED).wait_for()
        return cell

    def cell(self, index):
        return self.page.locator(f'.jp-Cell[data-windowed-list-index="{index}"]')

    def text(self, index):
        """Return the text that a cell put out."""
        return self.cell(index).locator(".jp-OutputArea-output").all_inner_texts()

    def says(self, text):
        """Wait until the page shows a text."""
        self.page.get_by_text(text).locator("visible=true").first.wait_for()

    def reopened(self):
        """Return the notebook in a page of its own, after its kernel has ended."""
        return self._reopen()

    def shot(self, name):
        """Write a picture of the page."""
        SHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png")


@pytest.fixture
def notebook(lab, chromium):
    """Open a notebook of these cells; requests to the outside fail the test, as errors of the page do."""
    address, served, root = lab
    opened = []

    def open_(*cells, name="explorer", theme="Light"):
        themes = root / "config" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
        (themes / "themes.jupyterlab-settings").write_text(json.dumps({"theme": f"JupyterLab {theme}"}))
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(made, served / f"{name}.ipynb")
        return show(name)

    def show(name):
        page = chromium.new_page(viewport={"width": 1280, "height": 1400})
        page.set_default_timeout(SECONDS)
        opened.append(page)
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("request", lambda request: _is_inside(request.url, address) or page.problems.append(request.url))
        page.goto(f"{address}/doc/tree/{name}.ipynb?reset&token={TOKEN}")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]')
        return Notebook(page, lambda: reopen(name))

    def reopen(name):
        opened[-1].close()
        _end_kernels(address)
        return show(name)

    yield open_
    for page in opened:
        assert page.problems == []
        page.close()
    _end_kernels(address)


def _is_inside(url, address):
    return url.startswith((address, "data:", "blob:", "ws:"))


def _end_kernels(address):
    for session in _asked(f"{address}/api/sessions", "GET"):
        _asked(f"{address}/api/sessions/{session['id']}", "DELETE")


def _asked(url, method):
    request = urllib.request.Request(url, method=method, headers={"Authorization": f"token {TOKEN}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read() or "null")
