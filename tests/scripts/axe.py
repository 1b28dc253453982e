"""Check the explorer's page with axe-core: every tab and part of it, light and dark, in a chromium without Jupyter.

The file that works without Python too, as wide as a phone.

    npm install --prefix /tmp/axe axe-core
    python -m tests.scripts.axe /tmp/axe/node_modules/axe-core/axe.min.js

Prints what axe finds, a line for each element, and exits with status 1 if there is any. What axe cannot decide is not
printed. Needs Playwright and chromium.
"""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from snapshot_explorer import open_table, samples
from snapshot_explorer.jupyter.explorer import Explorer
from tests.inner.jupyter import COMPARED, FILE_VIEWS, HEALTH, PARTS
from tests.support.explorer_page import show, use_theme

RUN = """async () => (await axe.run(document, {resultTypes: ['violations']})).violations.flatMap(
  (one) => one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 120)}`))"""
VIEWS = (
    {"tab": "commit"},
    {"tab": "manifests", "carried": True},
    *({"tab": "compare", "compared": part} for part in COMPARED),
    {"tab": "compare", "compared": "another table", "other": "copy@3"},
    *({"tab": "rows", "part": part} for part in ("blame", "rows")),
    {"tab": "data"},
    *({"tab": "data", "part": part} for part in PARTS),
    {"tab": "data", "part": "rows", "where": "no condition"},
    {"tab": "data", "where": ""},
    *({"tab": "files", "file_view": part} for part in FILE_VIEWS),
    {"tab": "files", "file_view": "list", "statistics": True},
    {"tab": "branches"},
    *({"tab": "health", "health": part} for part in HEALTH),
)
"""What is set, one after the other."""
PRESSED = {
    "data": ("Columns", "Bisect", "Blame rows", "Trace", "Plan repair"),
    "health": ("Expected", "Verify files", "Find orphans"),
}
"""The buttons that are pressed in a tab, where they are."""


def findings(page, explorer, axe):
    """Yield where something was found, and what."""
    page.evaluate(axe)
    page.get_by_role("button", name="Filters").click()
    for values in VIEWS:
        page.evaluate("(values) => window.model.send({set: values})", values)
        yield from _found(page, values)
        if values == {"tab": "data"}:  # before Bisect, which shows its outcome in place of the rows
            page.locator(".sx-grid tbody td").first.click()
            yield from _found(page, {**values, "opened": "cell"})
        for button in PRESSED.get(values["tab"], ()):
            if page.get_by_role("button", name=button).count():
                page.get_by_role("button", name=button).first.click()
                page.wait_for_function("!document.querySelector('.sx-busy')")
                yield from _found(page, {**values, "pressed": button})
        if values["tab"] == "manifests":
            page.locator(".sx-link").first.click()
            page.locator(".sx-section").wait_for()
            yield from _found(page, {**values, "opened": "manifest"})


def findings_of_file(chromium, file, axe):
    """Yield where something was found in the file that works without Python, and what."""
    for theme in ("light", "dark"):
        # axe is not the script that the page's policy allows.
        context = chromium.new_context(viewport={"width": 400, "height": 1000}, color_scheme=theme, bypass_csp=True)
        page = context.new_page()
        page.goto(file.as_uri())
        page.locator(".sx-timeline canvas[data-drawn]").wait_for()
        page.evaluate(axe)
        for tab in page.get_by_role("tab").all():
            tab.click()
            page.wait_for_timeout(200)
            yield from ((theme, "a file", finding) for finding in page.evaluate(RUN))
        context.close()


def _found(page, what):
    page.wait_for_timeout(200)
    for theme in ("light", "dark"):
        use_theme(page, theme)
        yield from ((theme, what, finding) for finding in page.evaluate(RUN))


def main():
    """Check samples of two formats."""
    axe, found = Path(sys.argv[1]).read_text("utf-8"), 0
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in ("orders", "payments"):
            table = open_table(samples.path(name))
            explorer = Explorer(table, name=name, variables={"copy": table}).wait()
            page = chromium.new_page(viewport={"width": 1280, "height": 1000})
            show(page, explorer)
            with TemporaryDirectory() as folder:
                file = explorer.to_html(Path(folder) / "explorer.html", versions=2)
                of_file = list(findings_of_file(chromium, file, axe))
            for theme, what, finding in (*findings(page, explorer, axe), *of_file):
                found += 1
                print(name, theme, what, finding)
            page.close()
            explorer.close()
        chromium.close()
    print(f"{found} findings")
    raise SystemExit(found > 0)


if __name__ == "__main__":
    main()
