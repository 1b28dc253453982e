"""The module that draws an explorer's grid, in a real chromium without Jupyter, with the kernel's side behind it."""

import base64
import json
import re
import shutil

import pyarrow as pa
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.jupyter.explorer import Explorer
from tests.inner.jupyter import GridView, grid_rows, script, text_of
from tests.support.explorer_page import show
from tests.support.waiting import expect

EVIL = "<img src=x onerror=window.hit=1><b>bold</b>"
OPEN = """async ([module, css, grid]) => {
  const {Grid, draw, html} = await import('data:text/javascript;base64,' + module);
  const here = document.getElementById('here'), root = document.createElement('div');
  const style = document.createElement('style');
  style.textContent = css;
  here.append(style, root);
  let listener;
  const show = (grid) => draw(html`<${Grid} app=${app} place="rows" grid=${grid} />`, root);
  const app = {
    id: 'sx',
    listen: (name, heard) => { listener = heard; },
    send: async ({grid}) => {
      const answer = JSON.parse(await window.kernel(JSON.stringify(grid)));
      if (answer.page) listener({grid: 'rows', ...answer.page});
      if (answer.grid) show(answer.grid);
    },
  };
  show(JSON.parse(grid));
}"""
SLOW = """() => {
  const answer = window.kernel;
  window.kernel = async (message) => { await new Promise((done) => setTimeout(done, 1000)); return answer(message); };
}"""
"""Has the kernel's side answer a second later."""

pytestmark = [
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]


@pytest.fixture
def grid(chromium):
    """A page with a grid of 1,000 rows, and what is opened."""
    opened = []
    view = GridView(lambda *choice: opened.append(choice))
    rows = pa.table({"id": pa.array(range(2**62, 2**62 + 1_000)), "change": [f"+ {EVIL}", "- x"] * 500})
    choices = [str(at) for at in range(1_000)]
    view.show(grid_rows(rows, noun="rows", sample="5,000 rows in 2 files", opens="version", choices=choices))

    def kernel(content):
        before, rows = view.content, view.receive(json.loads(content))
        return json.dumps({"page": rows, "grid": None if view.content is before else view.content})

    page = chromium.new_page(viewport={"width": 800, "height": 600})
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.expose_function("kernel", kernel)
    page.set_content("<div id=here></div>")
    module = f"{script()}\nexport {{ Grid, draw, html }};"
    page.evaluate(OPEN, [base64.b64encode(module.encode()).decode(), text_of("page.css"), json.dumps(view.content)])
    yield page, opened
    assert problems == []
    page.close()


def cells(page, row):
    return page.locator(f"tr[aria-rowindex='{row + 2}'] td")


def type_filter(page, text):
    """Type a filter and press Enter. `fill` would fire the event by which a field is left."""
    page.get_by_label("Filter rows").click()
    page.keyboard.press("Control+a")
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def test_a_grid_scrolls_by_keyboard_sorts_filters_and_opens(grid):
    page, opened = grid
    box = page.get_by_role("grid")
    expect(cells(page, 0)).to_have_text([str(2**62), f"+ {EVIL}"])
    assert page.locator("#here img, #here b").count() == 0
    assert page.evaluate("window.hit") is None
    assert page.locator("tbody tr").count() < 60
    assert page.get_by_text("Sorts, filters and counts only these 1,000 of 5,000 rows in 2 files.").is_visible()
    assert box.get_attribute("aria-rowcount") == "1001"

    box.focus()
    page.keyboard.press("Control+End")
    expect(cells(page, 999)).to_have_text([str(2**62 + 999), "- x"])
    expect(page.locator(".sx-here")).to_have_text("- x")
    page.keyboard.press("Enter")

    page.get_by_role("button", name="id").click()
    page.get_by_role("button", name="id ▲").click()
    page.get_by_role("button", name="id ▼").wait_for()
    expect(page.get_by_role("columnheader").first).to_have_attribute("aria-sort", "descending")
    expect(cells(page, 0).first).to_have_text(str(2**62 + 999))

    page.get_by_label("Column to filter").select_option("id")
    type_filter(page, f"< {2**62 + 3}")
    page.get_by_text("3 of 1,000 rows.").wait_for()
    for row, at in enumerate((2, 1, 0)):
        expect(cells(page, row).first).to_have_text(str(2**62 + at))
    cells(page, 2).first.click()
    page.locator(".sx-inspected pre", has_text=str(2**62)).wait_for()
    type_filter(page, "= x")
    page.get_by_text("'x' is not a value of id").wait_for()

    assert opened == [("version", "999"), ("version", "0")]


def test_a_filter_that_is_typed_while_rows_are_sorted_is_kept(grid):
    page, _ = grid
    page.evaluate(SLOW)

    page.get_by_role("button", name="id").click()
    page.get_by_label("Filter rows").click()
    page.keyboard.type(str(2**62 + 7))
    page.get_by_role("button", name="id ▲").wait_for()
    expect(page.get_by_label("Filter rows")).to_have_value(str(2**62 + 7))
    page.keyboard.press("Enter")

    page.get_by_text("1 of 1,000 rows.").wait_for()
    expect(page.get_by_label("Filter rows")).to_have_value(str(2**62 + 7))


def test_bars_are_dragged_over_and_frequent_texts_are_clicked(chromium):
    explorer = Explorer(open_table(samples.path("payments")), name="payments", variables={}).wait()
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    show(page, explorer)

    page.get_by_role("tab", name="Data").click()
    page.locator(".sx-top").first.click()
    page.wait_for_function("document.querySelector('.sx-answer').textContent.includes(' match ')")
    bars = page.locator("th", has_text="amount").locator(".sx-bins i")
    first, last = bars.nth(2).bounding_box(), bars.nth(9).bounding_box()
    page.mouse.move(first["x"] + 2, first["y"])
    page.mouse.down()
    page.mouse.move(last["x"] + 2, last["y"], steps=3)
    expect(page.locator(".sx-bins .sx-on")).to_have_count(8)
    page.mouse.up()
    page.wait_for_function("document.querySelector('[aria-label=Where]').value.includes('amount')")

    assert re.fullmatch(r""""\w+" = '.+' and "amount" >= [\d.]+ and "amount" < [\d.]+""", explorer.state.where)
    assert page.locator(".sx-error").count() == 0
    page.close()
    explorer.close()
