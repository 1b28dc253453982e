"""Figures, drawn by a real chromium: what is seen of them, in light and dark, and of hostile text."""

import shutil

import plotly.offline
import pyarrow as pa
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.core.frames import COMMITS
from tests.inner.view import GRAY, timeline

EVIL = "<img src=x onerror=window.hit=1><b>bold</b> $x$ &amp;"
DRAW = """async (json) => {
  const figure = JSON.parse(json);
  await Plotly.newPlot('here', figure.data, figure.layout);
}"""

pytestmark = [
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]


@pytest.fixture
def page(blank_page):
    blank_page.set_viewport_size({"width": 1000, "height": 600})
    blank_page.set_content("<div id=here></div>")
    blank_page.add_script_tag(content=plotly.offline.get_plotlyjs())
    yield blank_page
    assert blank_page.requests == []


def commits(count, **facts):
    row = {"readable": "yes", "kind": "append", "tags": [], "details": "{}", "schema_id": 0, "removed_rows": 3}
    rows = [row | {"version": at, "added_rows": at % 100, "total_rows": at} | facts for at in range(count)]
    return pa.Table.from_pylist(rows, COMMITS)


def test_the_timeline_of_a_sample_is_drawn(page):
    table = open_table(samples.path("orders"))

    page.evaluate(DRAW, table.history().picture().to_json())

    assert page.locator(".cartesianlayer .bars .point path").count() > table.history().num_rows
    assert page.locator(".rangeslider-container").count() == 1
    names = page.locator(".legendtext").all_text_contents()
    kinds = ["+ append", "~ overwrite", "~ compact", "analyze"]
    assert names == [*kinds, "? rows not counted", "rows in files", "schema changed", "tags"]


def test_text_is_gray_on_white_paper_so_that_it_reads_in_both_themes(page):
    page.evaluate(DRAW, open_table(samples.path("orders")).lifetimes().picture().to_json())

    colors = page.evaluate("() => [...document.querySelectorAll('.xtick text, .ytick text')].map(e => e.style.fill)")
    red, green, blue = (int(GRAY[at : at + 2], 16) for at in (1, 3, 5))
    assert set(colors) == {f"rgb({red}, {green}, {blue})"}
    assert page.evaluate("() => document.querySelector('.main-svg').style.background") == "rgb(255, 255, 255)"


def test_hostile_text_is_shown_as_it_is(page):
    figure = timeline(commits(2, tags=[EVIL], operation=EVIL, user=EVIL), y="rows", title=EVIL).figure

    page.evaluate(DRAW, figure.to_json())
    page.mouse.move(300, 200)
    page.wait_for_selector(".hovertext")

    assert page.locator(".gtitle").text_content() == EVIL
    hover = page.locator(".hovertext").first.text_content()
    assert f"+ append {EVIL} by {EVIL[:39]}…" in hover
    assert f"tags {EVIL}" in hover
    assert page.evaluate("() => window.hit") is None
    assert page.locator("#here img, svg a").count() == 0


def test_ten_thousand_commits_are_drawn_and_described_one_by_one(page):
    page.evaluate(DRAW, timeline(commits(10_000, removed_rows=80), y="rows", title="History").figure.to_json())
    assert page.evaluate("() => document.querySelector('#here')._fullLayout.yaxis.range[0]") <= -80
    page.evaluate("() => Plotly.relayout('here', {'xaxis.range': [4999.5, 5000.5], 'yaxis.range': [-50, 50]})")
    box = page.locator(".nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    page.wait_for_selector(".hovertext")

    assert "version 5000" in page.locator(".hovertext").first.text_content()
    assert "rows +0 -80" in page.locator(".hovertext").first.text_content()
