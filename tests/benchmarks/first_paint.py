"""How often, and how soon, an explorer's timeline shows its bars in JupyterLab while the machine is busy.

    python tests/benchmarks/first_paint.py [--runs 50] [--busy 2] [--package FOLDER]

Runs all cells of `notebooks/05_time_travel.ipynb` in a new kernel, in a real JupyterLab and a real chromium, beside
processes that use all of a processor each, and counts the pixels of bars in all views of the explorer. `--package`
measures another checkout. Ends with 1 where a timeline stayed blank.
"""

# ruff: noqa: T201 - it prints what it measured

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.append(str(Path(__file__).parents[2]))

from tests.support.first_paint import Page, busy_processes, chromium, copy_notebook
from tests.support.jupyter_server import jupyter_server

ROOT = Path(__file__).parents[2]

CELLS = (5, 12, 14)
"""Those that show the explorer."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--busy", type=int, default=2)
    parser.add_argument("--package", type=Path, default=ROOT)
    given = parser.parse_args()
    paints = []
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyter_server(Path(folder), given.package.resolve()) as server,
        sync_playwright() as playwright,
    ):
        copy_notebook(ROOT / "notebooks" / "05_time_travel.ipynb", server.served)
        browser = chromium(playwright)
        with busy_processes(given.busy):
            for run in range(given.runs):
                page = Page(browser, server, "05_time_travel")
                paint = page.run_all(CELLS)
                paints.append(paint)
                print(
                    f"run {run + 1:3}: {'BLANK' if paint.is_blank else 'bars '} pixels {paint.pixels}, after "
                    f"{paint.seconds:5.2f} s, widths {paint.widths}, received {paint.received:,} B",
                    flush=True,
                )
                page.close()
                server.end_kernels()
        browser.close()
    blank = sum(paint.is_blank for paint in paints)
    seconds = sorted(paint.seconds for paint in paints)
    print(f"blank {blank} of {len(paints)}; bars after {statistics.median(seconds):.2f} s, at most {seconds[-1]:.2f} s")
    return int(blank > 0)


if __name__ == "__main__":
    sys.exit(main())
