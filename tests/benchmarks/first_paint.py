"""How soon, how often and with how many bytes an explorer shows its bars in JupyterLab; on a busy machine too.

    python tests/benchmarks/first_paint.py [--runs 50] [--busy 2] [--commits 10000] [--package FOLDER]

`small` and `large` run a cell that loads the extension, opens a table and shows the explorer, in a new kernel each
time: the sample `orders`, and a Delta table of so many commits on disk. They print the seconds from the beginning and
from the end of the cell to the bars, those that a click on a bar takes to move B, and what the kernel has sent until
then. Such a cell runs once before, so that bytecode is there, as in an installed package.

`notebook` runs all cells of `notebooks/05_time_travel.ipynb`, beside processes that use all of a processor each, and
counts the pixels of bars in all views of the explorer. `--package` measures another checkout. Ends with 1 where a
timeline stayed blank.
"""

# ruff: noqa: T201 - it prints what it measured

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

import nbformat
import orjson
from playwright.sync_api import sync_playwright

sys.path.append(str(Path(__file__).parents[2]))

from tests.support.delta.table_builder import commit_name, metadata, protocol
from tests.support.first_paint import Page, busy_processes, chromium, copy_notebook
from tests.support.jupyter_server import jupyter_server

ROOT = Path(__file__).parents[2]

CELLS = (5, 12, 14)
"""Those of the notebook that show the explorer."""
PARTS = ("small", "large", "notebook")
OPEN = """%load_ext snapshot_explorer
import snapshot_explorer as sx
table = sx.open_table({path})
e = sx.explore(table)
e"""


def write_table(folder, commits):
    """Write the log of a Delta table of so many commits, each of which adds two files."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    for version in range(commits):
        at = 1_767_225_600_000 + version * 60_000 + version * version % 50_000
        rows = 10 + version * 7919 % 1_000
        add = {"partitionValues": {}, "size": 1_000 + rows, "modificationTime": at, "dataChange": True}
        adds = [
            {"add": add | {"path": f"part-{version:06d}-{one}.parquet", "stats": f'{{"numRecords":{rows}}}'}}
            for one in range(2)
        ]
        operation = {"operation": "WRITE", "operationParameters": {"mode": "Append"}}
        info = {"commitInfo": {"timestamp": at, "operationMetrics": {"numFiles": "2"}} | operation}
        first = [protocol(), metadata()] if version == 0 else []
        (log / Path(commit_name(version)).name).write_bytes(
            b"\n".join(orjson.dumps(one) for one in [info, *first, *adds])
        )


def write_notebook(path, code):
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("A"), nbformat.v4.new_code_cell(code)])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(made, path)


def show_one(browser, server, name, runs):
    """Print what one explorer takes, in new kernels; return what was seen."""
    paints, clicks = [], []
    for run in range(runs + 1):
        page = Page(browser, server, name)
        paint = page.run_all((1,), patience=60)
        click = page.click(0.3)
        page.close()
        server.end_kernels()
        if run:
            paints.append(paint)
            clicks.append(click)
            print(
                f"{name} {run:3}: bars {paint.seconds_in_all:5.2f} s after the cell began, {paint.seconds:5.2f} s "
                f"after it ended; a click {click:5.2f} s; received {paint.received:,} B in {paint.messages} messages",
                flush=True,
            )
    print(
        f"{name}: {statistics.median(one.seconds_in_all for one in paints):.2f} s after the cell began, "
        f"{statistics.median(one.seconds for one in paints):.2f} s after it ended, a click "
        f"{statistics.median(clicks):.2f} s, at most {max(one.received for one in paints):,} B"
    )
    return paints


def run_notebook(browser, server, runs):
    """Print what the views of a notebook show; return it."""
    paints = []
    for run in range(runs):
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
    seconds = sorted(paint.seconds for paint in paints)
    print(f"notebook: bars after {statistics.median(seconds):.2f} s, at most {seconds[-1]:.2f} s")
    return paints


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--busy", type=int, default=2)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--package", type=Path, default=ROOT)
    given = parser.parse_args()
    parts, paints = given.part or PARTS, []
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
        with (
            jupyter_server(Path(folder), given.package.resolve()) as server,
            sync_playwright() as playwright,
            busy_processes(given.busy),
        ):
            browser = chromium(playwright)
            if "small" in parts:
                write_notebook(server.served / "small.ipynb", OPEN.format(path="sx.samples.path('orders')"))
                paints += show_one(browser, server, "small", given.runs)
            if "large" in parts:
                write_table(server.served / "table", given.commits)
                write_notebook(server.served / "large.ipynb", OPEN.format(path="'table'"))
                paints += show_one(browser, server, "large", given.runs)
            if "notebook" in parts:
                copy_notebook(ROOT / "notebooks" / "05_time_travel.ipynb", server.served)
                paints += run_notebook(browser, server, given.runs)
            browser.close()
    blank = sum(paint.is_blank for paint in paints)
    print(f"blank {blank} of {len(paints)}")
    return int(blank > 0)


if __name__ == "__main__":
    sys.exit(main())
