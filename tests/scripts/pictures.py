"""Take the pictures of README in JupyterLab, light and dark: the log, the manifest lens and the explorer.

    python -m tests.scripts.pictures

Needs JupyterLab, Playwright and chromium.
"""

import re
import shutil
import tempfile
from pathlib import Path

import nbformat
from playwright.sync_api import sync_playwright

from tests.support.jupyter_server import TOKEN, jupyter_server

FOLDER = Path(__file__).parents[2] / "notebooks" / "pictures"
CELLS = (
    """%load_ext snapshot_explorer
import fsspec
from snapshot_explorer import samples
fsspec.filesystem("memory").put(samples.path("orders"), "/lake/shop.db/orders", recursive=True)
path = "memory://lake/shop.db/orders"
%snapshot open {path} as orders""",
    "%snapshot log 5..12 --exact",
    """e = %snapshot explore
e.state.b, e.state.tab = 8, "manifests"
found = e.wait().views["manifests"].result.choices
e.state.manifest = next(path for label, path in found if label.startswith("+"))
e.wait()""",
    """e = %snapshot explore
e.state.b, e.state.tab, e.state.where = 8, "data", "amount < 0"
e.wait()""",
)
SHOTS = (("log", 1, ".jp-OutputArea-output .sx"), ("lens", 2, ".sx-panel"), ("explorer", 3, ".sx-explorer"))
"""The name of a picture, its cell, and what is seen of its output."""
HEIGHT = "620px"
"""The height of the panel of the lens, which has all of its entries then."""


def run(page, index):
    """Run a cell, and return it when it has ended."""
    cell = page.locator(f'.jp-Cell[data-windowed-list-index="{index}"]')
    prompt = cell.locator(".jp-InputPrompt").first
    for _ in range(10):
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        page.wait_for_timeout(1_000)
        if re.search(r"\[[*\d]", prompt.inner_text()):
            break
    cell.locator(".jp-InputPrompt", has_text=re.compile(r"\[\d+\]")).first.wait_for()
    return cell


def take(lab, chromium, theme):
    """Take the pictures of a theme."""
    lab.set_theme(theme)
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(made, lab.served / "pictures.ipynb")
    page = chromium.new_page(viewport={"width": 1280, "height": 3600}, device_scale_factor=1.25)
    page.set_default_timeout(60_000)
    page.goto(f"{lab.address}/doc/tree/pictures.ipynb?reset&token={TOKEN}")
    page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]')
    cells = [run(page, index) for index in range(len(CELLS))]
    page.locator(".sx-body").first.evaluate("(body, height) => { body.style.height = height; }", HEIGHT)
    page.wait_for_timeout(2_000)
    for name, index, what in SHOTS:
        cells[index].locator(what).first.screenshot(path=FOLDER / f"{name}-{theme.lower()}.png")
    page.close()
    lab.end_kernels()


def main():
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as root, jupyter_server(Path(root)) as lab, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for theme in ("Light", "Dark"):
            take(lab, chromium, theme)
        chromium.close()


if __name__ == "__main__":
    main()
