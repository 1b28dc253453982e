"""Measure the figure of a long history: what it takes to make, its size, and how soon a browser has drawn it.

    python tests/benchmarks/timeline.py [commits]

Makes COMMITS of so many commits of several kinds (10,000), and has chromium draw each figure of them several times, on
the processor alone. Beside it stands the plainest figure of the same bars: lists of numbers and a bar for each. Prints
bytes of JSON, and the best of the runs in seconds of the clock and of the page's thread, for which the machine may be
busy. Asserts nothing. Aims: 10,000 commits below 500,000 bytes, and 3,000 drawn within 1 s.
"""

# ruff: noqa: T201 - it prints what it measured
import shutil
import sys
import time
from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import plotly.offline
import pyarrow as pa
from playwright.sync_api import CDPSession, Page, sync_playwright

from snapshot_explorer.frames import COMMITS
from snapshot_explorer.render.timeline import timeline

ROUNDS = 5
KINDS = ("append", "append", "append", "merge", "delete", "compact")
FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
DRAW = """async (json) => {
  const began = performance.now();
  const figure = JSON.parse(json);
  await Plotly.newPlot('here', figure.data, figure.layout);
  await new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)));
  return (performance.now() - began) / 1000;
}"""


def commits(count: int) -> pa.Table:
    """Return COMMITS of so many commits."""
    random = np.random.default_rng(0)
    added, removed = random.integers(0, 1_000_000, count), random.integers(0, 900_000, count)
    facts = {
        "version": np.arange(count),
        "committed_at": 1_767_225_600_000 + 60_000 * np.arange(count),
        "readable": ["yes"] * count,
        "kind": [KINDS[at % len(KINDS)] for at in range(count)],
        "added_rows": added,
        "removed_rows": removed,
        "total_rows": np.cumsum(added - removed),
        "tags": [[f"day-{at}"] if at % 100 == 0 else [] for at in range(count)],
        "details": ["{}"] * count,
    }
    columns = [
        pa.array(facts[field.name]).cast(field.type) if field.name in facts else pa.nulls(count, field.type)
        for field in COMMITS
    ]
    return pa.table(columns, schema=COMMITS)


def plainest(rows: pa.Table) -> go.Figure:
    """Return a bar up and a bar down for each commit, from lists."""
    x, up, down = (rows[name].to_pylist() for name in ("version", "added_rows", "removed_rows"))
    made = go.Figure([go.Bar(x=x, y=up), go.Bar(x=x, y=[-one for one in down])])
    return made.update_layout(barmode="relative", xaxis={"rangeslider": {"visible": True}})


def thread_seconds(session: CDPSession) -> float:
    """Return the seconds that the page's thread has used."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def measure(name: str, make: Callable[[], go.Figure], page: Page, session: CDPSession) -> None:
    """Print what a figure costs."""
    began = time.process_time()
    content = make().to_json()
    making = time.process_time() - began
    drawing, used = [], []
    for _ in range(ROUNDS):
        before = thread_seconds(session)
        drawing.append(page.evaluate(DRAW, content))
        used.append(thread_seconds(session) - before)
    print(
        f"{name:20} {len(content):>10,} bytes  made in {making:.2f} s  drawn in {min(drawing):.2f} s, "
        f"of which {min(used):.2f} s on the page's thread"
    )


def main() -> None:
    """Measure both."""
    rows = commits(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 700})
        page.set_content("<div id=here></div>")
        page.add_script_tag(content=plotly.offline.get_plotlyjs())
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        measure("timeline", lambda: timeline(rows, y="rows", title="History").figure, page, session)
        measure("bars from lists", lambda: plainest(rows), page, session)
        browser.close()


if __name__ == "__main__":
    main()
