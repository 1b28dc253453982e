"""Draw tables and the explorer in marimo, and click in a browser.

    python -m tests.environments.in_marimo PYTHON [PICTURE]

PYTHON is that of an environment with marimo and this package; Playwright and chromium are those of this one.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

NOTEBOOK = """
import marimo

app = marimo.App()


@app.cell
def _():
    from snapshot_explorer import explore, open_table, samples

    orders = open_table(samples.path("orders"))
    orders.history("5..12")
    return explore, orders


@app.cell
def _(explore, orders):
    explore(orders)
    return


if __name__ == "__main__":
    app.run()
"""
SECONDS = 120


def main() -> int:
    """Start marimo, and click on a commit; return 0 when the explorer shows it."""
    python, *picture = sys.argv[1:]
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
        free.close()
        path = Path(folder) / "notebook.py"
        path.write_text(NOTEBOOK, "utf-8")
        options = ["--headless", "--no-token", "--host", "127.0.0.1", "--port", port]
        server = subprocess.Popen([python, "-m", "marimo", "run", str(path), *options], stdout=subprocess.PIPE)
        try:
            while b"URL" not in server.stdout.readline():
                if server.poll() is not None:
                    return 1
            look(f"http://127.0.0.1:{port}", picture)
        finally:
            server.terminate()
            server.wait()
    print("the explorer works in marimo")  # noqa: T201
    return 0


def look(url: str, picture: list[str]) -> None:
    """Click on the commit of version 17, and wait until the explorer shows it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 2000})
        page.set_default_timeout(SECONDS * 1000)
        page.goto(url, wait_until="domcontentloaded")
        page.get_by_text("bec2748a").first.click()
        page.get_by_text("append by bec2748a").first.wait_for()
        if picture:
            page.screenshot(path=picture[0], full_page=True)
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
