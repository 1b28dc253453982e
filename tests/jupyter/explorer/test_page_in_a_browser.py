"""An explorer as one file, opened by a real chromium without network: what is clicked in it shows what was recorded."""

import os
import shutil
from pathlib import Path

import nbformat
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.jupyter.explorer import Explorer
from tests.support.contrast import cut_controls, low_contrasts
from tests.support.kernels import ON_SOCKETS
from tests.support.paimon.table_builder import PaimonTable
from tests.support.waiting import expect

pytestmark = [
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]
EVIL = "</script><script>window.hit=1</script><img src=x onerror=window.hit=2>"


TYPED = """(text) => new Promise((done) => {
  const input = document.querySelector('input[aria-label=B]');
  new MutationObserver((_, watch) => {
    watch.disconnect();
    input.value = text;
    input.dispatchEvent(new Event('input', {bubbles: true}));
    setTimeout(() => done(input.value), 300);
  }).observe(document.querySelector('.sx-list'), {subtree: true, childList: true, attributes: true});
  input.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));
})"""
"""Presses Enter in the field of B, and types a text as soon as the page has changed: before the next frame is drawn."""


def written(table, folder, pin=None, **arguments):
    """Write the page of a table, and return its address."""
    explorer = Explorer(table, name="orders").wait()
    if pin is not None:
        explorer.choose(pin, "a")
    address = explorer.to_html(folder / "orders.html", **arguments).as_uri()
    explorer.close()
    return address


@pytest.fixture(scope="module")
def orders_page(tmp_path_factory):
    return written(open_table(samples.path("orders")), tmp_path_factory.mktemp("pages"), versions=4, pin=5)


@pytest.fixture
def opened(chromium):
    """Open a page without network; an error or a refused request in it fails the test."""
    pages = []

    def open_(address, width=1280, theme="light"):
        context = chromium.new_context(offline=True, viewport={"width": width, "height": 1000}, color_scheme=theme)
        page = context.new_page()
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(error.stack))
        page.on("console", lambda message: page.problems.append(message.text))
        page.on(
            "request", lambda request: request.url == address.partition("#")[0] or page.problems.append(request.url)
        )
        page.goto(address)
        page.locator(".sx-timeline canvas[data-drawn]").wait_for()
        pages.append(page)
        return page

    yield open_
    for page in pages:
        assert page.problems == []
        page.context.close()


def answer(page, text):
    """Wait until the tab in front answers so."""
    page.locator(".sx-answer", has_text=text).wait_for()


def front(tab):
    """Click on a tab, and wait until it is in front."""
    tab.click()
    expect(tab).to_have_attribute("aria-selected", "true")


def test_versions_are_chosen_by_mouse_keyboard_and_text(opened, orders_page):
    page = opened(orders_page)
    a, b = (page.get_by_label(marker, exact=True) for marker in "AB")
    expect(a).to_have_value("5")  # pinned

    page.get_by_role("option").nth(2).click()
    answer(page, "append by 5b38cf03")
    expect(b).to_have_value("16")
    page.get_by_role("listbox").press("ArrowUp")
    answer(page, "append by bec2748a")
    page.get_by_role("button", name="Pin A").click()
    expect(a).to_have_value("16")
    page.get_by_role("button", name="Next", exact=True).click()
    page.get_by_role("button", name="Next", exact=True).click()
    page.get_by_text("No version listed is newer than 18.").wait_for()
    b.fill("earliest")
    page.keyboard.press("Enter")
    page.get_by_text("Not recorded. Recorded: 18 of 18 commits; the views of 4 versions").first.wait_for()
    b.fill("99")
    page.keyboard.press("Enter")
    page.get_by_text("99 is not one of its versions, which are 1 to 18.").wait_for()
    page.locator(".sx-timeline > canvas").press("End")
    page.locator(".sx-timeline > canvas").press("Enter")
    answer(page, "compact by 1b6ea574")


def test_what_is_typed_as_an_answer_comes_is_kept(opened, orders_page):
    page = opened(orders_page)

    page.get_by_label("B", exact=True).fill("7")

    assert page.evaluate(TYPED, "latest") == "latest"
    page.keyboard.press("Enter")
    expect(page.get_by_label("B", exact=True)).to_have_value("18")


def test_neighbors_and_the_pinned_pair_are_compared(opened, orders_page):
    page = opened(orders_page)

    page.get_by_role("tab", name="Compare").click()
    page.get_by_text("Forward from version 5 (A) to version 18 (B)").wait_for()
    page.get_by_role("button", name="schema").click()
    page.get_by_text("orders.compare(5, 18).schema").wait_for()
    assert page.get_by_role("button", name="another table").count() == 0
    page.get_by_role("button", name="Pin A").click()
    page.get_by_text("orders.compare(17, 18).schema").wait_for()
    page.get_by_role("button", name="Previous", exact=True).click()
    page.get_by_text("orders.compare(16, 17).schema").wait_for()


def test_manifests_open(opened, orders_page):
    page = opened(orders_page)

    page.get_by_role("tab", name="Manifests").click()
    page.get_by_role("button", name="manifest-").last.click()
    page.get_by_role("heading", name="Entries").wait_for()
    expect(page.locator(".sx-section tbody tr")).not_to_have_count(0)


def test_rows_are_sorted_filtered_and_read_in_full(opened, orders_page):
    page = opened(orders_page)

    page.get_by_role("tab", name="Data").click()
    answer(page, "All 41 rows of version 18")
    for way in ("ascending", "descending"):
        page.get_by_role("columnheader").first.get_by_role("button").click()
        page.locator(f"th[aria-sort={way}]").wait_for()
    ids = [int(text) for text in page.locator("td[aria-colindex='1']").all_inner_texts()]
    assert ids == sorted(ids, reverse=True)
    cells = page.locator(".sx-grid td").locator("visible=true")
    assert cells.evaluate_all("cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth).length") == 0
    page.get_by_label("Filter rows").fill("> 3")
    page.keyboard.press("Enter")
    page.get_by_text("rows are filtered by text").wait_for()
    page.get_by_label("Column to filter").select_option("0")
    page.get_by_label("Filter rows").fill(str(ids[0]))
    page.keyboard.press("Enter")
    page.get_by_text("1 of 41 rows.").wait_for()
    page.locator("td[aria-colindex='1']").click()
    page.locator(".sx-inspected pre", has_text=str(ids[0])).wait_for()


def test_commits_are_searched_filtered_and_brushed(opened, orders_page):
    page = opened(orders_page)
    drawn = page.locator(".sx-timeline canvas")

    page.get_by_label("Search commits").fill("Compact")
    page.get_by_text("3 of 18", exact=True).wait_for()
    page.locator(".sx-timeline canvas[data-drawn='3']").wait_for()
    page.get_by_role("button", name="text: Compact").click()
    page.get_by_text("18 of 18", exact=True).wait_for()
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Kind").select_option("overwrite")
    page.locator(".sx-timeline canvas[data-drawn='1']").wait_for()
    page.get_by_role("button", name="Show all").click()
    expect(drawn).to_have_attribute("data-drawn", "18")
    page.get_by_role("slider").press("+")
    page.get_by_text("10 of 18 versions", exact=True).wait_for()
    expect(drawn).to_have_attribute("data-drawn", "10")
    page.get_by_role("group", name="Bars count").get_by_role("button", name="bytes").click()
    page.locator("button[aria-pressed=true]", has_text="bytes").wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_tab_is_legible_and_nothing_is_cut_on_a_phone(opened, orders_page, theme):
    page = opened(orders_page, 400, theme)

    for tab in page.get_by_role("tab").all():
        front(tab)
        assert low_contrasts(page, ".sx-explorer") + cut_controls(page, ".sx-explorer") == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_what_a_table_says_runs_nothing(opened, memory_root, tmp_path):
    table = PaimonTable(*memory_root)
    table.commit([(1, EVIL)], commitUser=EVIL)
    table.commit([(2, EVIL)], properties={EVIL: EVIL})
    table.tag(EVIL.replace("/", ""), 1)
    page = opened(written(open_table(f"memory://{table.root}"), tmp_path))

    for tab in page.get_by_role("tab").all():
        front(tab)
    front(page.get_by_role("tab", name="Data"))

    expect(page.locator("td", has_text=EVIL)).to_have_count(2)
    assert page.locator("main img").count() == 0
    assert page.evaluate("window.hit") is None


def test_the_end_of_its_address_says_what_it_shows(orders_page, opened):
    page = opened(f"{orders_page}#a=15&b=17&tab=rows&measure=files&tab=nowhere&unknown=1")

    answer(page, "5 rows deleted, 4 inserted")
    expect(page.locator("[role=tab][aria-selected=true]")).to_contain_text("Rows")
    for marker, version in (("A", "15"), ("B", "17")):
        expect(page.get_by_label(marker, exact=True)).to_have_value(version)


def test_a_version_that_was_not_recorded_is_named_if_the_address_asks_for_it(orders_page, opened):
    page = opened(f"{orders_page}#b=99")

    page.get_by_text("99 is not one of its versions").wait_for()


@pytest.fixture(scope="module")
def saved_notebook(tmp_path_factory):
    """A notebook that was saved with the page of its explorer, as JupyterLab saves it: without the widgets."""
    nbclient = pytest.importorskip("nbclient")
    cell = (
        "import snapshot_explorer as sx\norders = sx.open_table(sx.samples.path('orders'))\n"
        "sx.explore(orders, save_page=True)"
    )
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    folder = tmp_path_factory.mktemp("saved")
    client = nbclient.NotebookClient(made, **ON_SOCKETS, resources={"metadata": {"path": folder}})
    client.execute(env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])})
    made.metadata.pop("widgets")
    nbformat.write(made, folder / "saved.ipynb")
    return folder / "saved.ipynb"


def as_html(notebook, **options):
    """Convert a notebook by nbconvert, and return the address of the page."""
    nbconvert = pytest.importorskip("nbconvert")
    exporter = nbconvert.HTMLExporter(template_name="classic", **options)
    page = notebook.with_suffix(".html")
    page.write_text(exporter.from_filename(notebook)[0], "utf-8")
    return page.as_uri()


def test_the_page_of_a_saved_notebook_works_without_a_kernel(chromium, saved_notebook):
    context = chromium.new_context(offline=True, viewport={"width": 1280, "height": 1600})
    page = context.new_page()

    page.goto(as_html(saved_notebook))
    frame = page.frame_locator("iframe[srcdoc]")
    frame.locator(".sx-timeline canvas[data-drawn]").wait_for()
    frame.locator(".sx-tabs [role=tab]", has_text="Manifests").click()

    frame.locator(".sx-answer", has_text="Manifests of version 17 and version 18").wait_for()
    assert page.locator("img.sx-picture").is_hidden()
    assert saved_notebook.stat().st_size < 800_000
    context.close()


def test_where_frames_are_removed_a_saved_notebook_shows_the_picture(chromium, saved_notebook):
    context = chromium.new_context(offline=True)
    page = context.new_page()

    page.goto(as_html(saved_notebook, sanitize_html=True))

    assert page.locator("iframe").count() == 0
    assert page.get_by_text("Explorer of orders").first.is_visible()
    assert page.locator("table.sx-table").first.is_visible()
    context.close()
