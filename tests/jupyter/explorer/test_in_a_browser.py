"""The main journeys through the explorer, in a real JupyterLab, Notebook and Voila, and a real chromium."""

import re
import shutil
from itertools import pairwise
from pathlib import Path

import fsspec
import nbformat
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.jupyter.explorer import Explorer
from tests.support.contrast import cut_controls, low_contrasts
from tests.support.jupyter_server import TOKEN
from tests.support.paimon.table_builder import PaimonTable
from tests.support.waiting import SECONDS, expect, settled

pytestmark = [
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]
ORDERS = "import snapshot_explorer as sx\norders = sx.open_table(sx.samples.path('orders'))"
OPEN = f"{ORDERS}\ne = sx.explore(orders)\ne"
WHERE = "e.wait(); print(e.state.a, e.state.b)"
TIMELINE = ".sx-timeline > canvas"
DRAWN = f"{TIMELINE}[data-drawn]"
FIGURE_SIZES = """async (before) => {
  let sizes = [];
  for (let frames = 0, same = 0; frames < 3600 && same < 30; frames += 1) {
    await new Promise(requestAnimationFrame);
    const figures = [...document.querySelectorAll('.js-plotly-plot .main-svg:first-child')];
    const now = figures.map((figure) => [figure.clientWidth, figure.clientHeight]);
    const differ = now.length === 2 && now.every(([width], i) => width !== before?.[i][0]);
    same = differ && JSON.stringify(now) === JSON.stringify(sizes) ? same + 1 : 0;
    sizes = now;
  }
  return sizes;
}"""
"""The sizes of two figures once they stay, with widths other than before."""


def click_at(notebook, share):
    """Click into the timeline, so far from the left."""
    notebook.page.locator(DRAWN).first.wait_for()
    box = notebook.page.locator(TIMELINE).first.bounding_box()
    notebook.page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
    notebook.page.mouse.click(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)


def filters_are_shown_by_keyboard(page):
    page.get_by_role("button", name="Filters").focus()
    page.keyboard.press("Space")
    page.get_by_label("Kind", exact=True).wait_for()
    everything_is_legible(page)
    page.keyboard.press("Escape")
    page.get_by_label("Kind", exact=True).wait_for(state="detached")


def focused_name(page):
    """Return the name of what has the focus, which must have an outline."""
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    return page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent")


def rows_are_sorted_and_saved(page):
    page.get_by_role("button", name="amount").click()
    page.get_by_role("columnheader", name="amount").filter(has_text="▲").wait_for()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save csv").locator("visible=true").click()
    assert saved.value.suggested_filename == "orders_data_6.csv"
    assert len(Path(saved.value.path()).read_text().splitlines()) == 1 + 41


def rows_are_filtered_while_a_condition_is_typed(page):
    page.get_by_label("Where", exact=True).locator("visible=true").click()
    page.keyboard.type("amount < 30")
    page.get_by_text("5 of 41 rows match at version 6").locator("visible=true").wait_for()
    page.keyboard.type(" and")
    page.keyboard.press("Enter")
    page.locator(".sx-pane .sx-error", has_text="is not SQL").wait_for()
    expect(page.locator(".sx-stale", has_text="5 of 41 rows match")).to_have_count(1)
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.press("Enter")
    page.get_by_text("All 41 rows of version 6").locator("visible=true").wait_for()


def everything_is_legible(page, place=".sx-explorer"):
    """Check contrasts, at 800 pixels and at 150 % of a narrow page too, where no control may be cut."""
    found = low_contrasts(page, place)
    before = page.viewport_size
    for zoom, width in ((1, 800), (1.5, 1280)):
        page.set_viewport_size({"width": int(width / zoom), "height": before["height"]})
        page.wait_for_timeout(300)
        found += settled(page, lambda: cut_controls(page, place), [])  # canvases get their new width a little later
    page.set_viewport_size(before)
    assert found == []


def command_of_the_card_is_copied(notebook, index):
    notebook.run(index)
    notebook.page.get_by_role("button", name="Copy table.compare").click()
    notebook.page.get_by_role("button", name="Copied table.compare").wait_for()
    assert low_contrasts(notebook.page, ".jp-OutputArea-output .sx") == []


class Hand:
    """Clicks and fills in what is seen, and counts."""

    def __init__(self, page):
        self.page, self.clicks, self.entries = page, 0, 0

    def click(self, role, name):
        self.page.get_by_role(role, name=name, exact=True).locator("visible=true").last.click()
        self.clicks += 1

    def enter(self, label, text):
        self.page.get_by_label(label, exact=True).locator("visible=true").first.fill(text)
        self.page.keyboard.press("Tab")
        self.entries += 1

    def choose(self, label, option):
        self.page.get_by_label(label, exact=True).locator("visible=true").first.select_option(option)
        self.entries += 1


def commit_is_found_in_two_clicks(notebook):
    hand = Hand(notebook.page)
    hand.click("tab", "Data")
    hand.enter("Where", "amount < 0")
    hand.click("button", "Bisect")
    notebook.says("amount < 0 holds first at version 8 of orders")
    assert (hand.clicks, hand.entries) == (2, 1)


def rows_before_are_loaded_as_floats_in_three_clicks(notebook):
    hand = Hand(notebook.page)
    hand.click("button", "Previous")
    hand.enter("Where", "")
    hand.click("button", "load")
    hand.choose("Types", "floats, as NumPy")
    notebook.says("orders.at(7).to_pandas(types='numpy')")
    hand.click("button", "Load as variable")
    notebook.says("df holds 41 rows of version 7.")
    assert (hand.clicks, hand.entries) == (3, 2)


def what_expiring_would_free_is_shown_in_two_clicks(notebook):
    hand = Hand(notebook.page)
    hand.click("tab", "Health")
    hand.click("button", "retention")
    hand.enter("Keep last", "3")
    notebook.says("22 files, 46.4 kB")
    assert (hand.clicks, hand.entries) == (2, 1)


def front(notebook, tab):
    notebook.page.get_by_role("tab", name=tab, exact=True).click()


def rows_that_differ_are_legible(notebook, code):
    front(notebook, "Rows")
    notebook.says(code)
    everything_is_legible(notebook.page)


def rows_are_loaded(notebook):
    page = notebook.page
    page.get_by_role("button", name="load", exact=True).click()
    page.get_by_role("button", name="Load as variable").click()
    notebook.says("df holds 41 rows of version 6.")
    page.get_by_role("group", name="Show").get_by_role("button", name="rows").click()


def b_is_compared_with_another_table(notebook, files):
    page = notebook.page
    front(notebook, "Compare")
    page.get_by_role("group", name="Show").get_by_role("button", name="files").click()
    notebook.says(files)
    page.get_by_role("group", name="Show").get_by_role("button", name="another table").click()
    Hand(page).enter("Table", "orders@5")
    notebook.says("From version 6 of orders to version 5 of orders")
    everything_is_legible(page)
    notebook.shot("another-table")


def test_a_commit_is_clicked_looked_into_compared_and_loaded(notebook):
    notebook = notebook(OPEN, WHERE, "len(df), list(df.columns)[:2]", "orders", name="journey")
    page = notebook.page
    notebook.run(0)
    notebook.says("41 rows in files")
    page.locator(DRAWN).first.wait_for()
    assert not page.locator(".sx-still").is_visible()
    notebook.shot("timeline")

    click_at(notebook, 0.34)
    notebook.says("orders.at(6).commit")
    page.keyboard.down("Shift")
    click_at(notebook, 0.1)
    page.keyboard.up("Shift")
    notebook.run(1)
    notebook.puts_out(1, re.compile(r"^[123] 6\s*$"))
    a = notebook.text(1).split()[0]

    front(notebook, "Manifests")
    notebook.says(f"Manifests of version {a} and version 6")
    for index, name in enumerate(("base", "delta")):
        expect(page.locator(".sx-explorer .sx-lanes .sx-lane").nth(index)).to_have_text(name)
    expect(page.locator(".sx-sign.sx-added")).not_to_have_count(0)
    page.locator(".sx-lanes .sx-link").first.click()
    notebook.says("Entries of manifest-")
    everything_is_legible(page)
    notebook.shot("manifests")

    front(notebook, "Compare")
    notebook.says(f"orders.compare({a}, 6)")
    rows_that_differ_are_legible(notebook, f"orders.diff_rows({a}, 6)")
    b_is_compared_with_another_table(notebook, f"orders.compare({a}, 6).files")

    front(notebook, "Data")
    notebook.says("All 41 rows of version 6")
    rows_are_filtered_while_a_condition_is_typed(page)
    rows_are_sorted_and_saved(page)
    everything_is_legible(page)
    notebook.shot("data")
    rows_are_loaded(notebook)
    notebook.run(2)
    notebook.puts_out(2, "(41, ['order_id', 'customer'])")
    command_of_the_card_is_copied(notebook, 3)
    page.get_by_role("button", name="Insert cell").locator("visible=true").click()
    page.locator(".jp-Cell .cm-content", has_text="orders.at(6).to_arrow()").wait_for()


def test_it_is_used_by_keyboard_alone_in_the_dark(notebook):
    notebook = notebook(OPEN, WHERE, name="keyboard", theme="Dark")
    page, keys = notebook.page, notebook.page.keyboard
    notebook.run(0)
    notebook.says("41 rows in files")
    page.locator(DRAWN).first.wait_for()

    page.get_by_label("A", exact=True).first.focus()
    keys.press("Control+a")
    keys.type("tag:v1")
    for name in ("Previous A", "Next A", "Pin A", "Swap A and B", "B"):
        keys.press("Tab")
        assert focused_name(page) == name
    keys.press("Control+a")
    keys.type("latest~1")
    keys.press("Enter")
    notebook.says("orders.at(17).commit")
    expect(page.get_by_role("button", name="Pin A")).to_have_attribute("aria-pressed", "true")
    keys.press("Tab")
    assert focused_name(page) == "Previous"
    keys.press("Space")
    notebook.says("orders.at(16).commit")
    keys.press("Shift+Tab")
    keys.press("Shift+Tab")
    keys.press("Space")
    notebook.says("orders.at(5).commit")
    page.get_by_role("listbox").focus()
    keys.press("ArrowUp")
    notebook.says("orders.at(6).commit")
    keys.press("ArrowDown")
    notebook.says("orders.at(5).commit")

    filters_are_shown_by_keyboard(page)
    page.get_by_role("tab", name="Commit").focus()
    keys.press("ArrowRight")
    notebook.says("Manifests of version 16 and version 5")
    ink, paper = (
        page.locator(".sx-explorer").last.evaluate(f"node => getComputedStyle(node).{name}")
        for name in ("color", "backgroundColor")
    )
    assert _light(ink) > 200
    assert _light(paper) < 60
    notebook.shot("dark")
    notebook.run(1)
    notebook.puts_out(1, "16 5")


def _light(color):
    """Return how light rgb(...) or rgba(...) is, from 0 to 255."""
    parts = [float(part) for part in color.partition("(")[2].rstrip(")").split(",")[:3]]
    return sum(parts) / 3


def test_rows_that_differ_are_filtered_and_blamed_and_a_condition_is_bisected(notebook):  # noqa: PLR0915 - one walk
    notebook = notebook(OPEN, "e.state.a = 9; e.state.b = 10", WHERE, name="rows", theme="Dark")
    page, keys = notebook.page, notebook.page.keyboard
    notebook.run(0)
    notebook.says("41 rows in files")
    notebook.run(1)
    front(notebook, "Rows")
    notebook.says("orders.diff_rows(9, 10)")

    older, newer = (page.get_by_label(label, exact=True).first for label in "AB")
    older.fill("7")
    newer.evaluate(  # at once: it is typed before the kernel answers for A
        """input => {
            input.focus();
            input.value = "9";
            input.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )
    notebook.says("orders.diff_rows(7, 10)")
    assert newer.input_value() == "9"
    keys.press("Escape")
    expect(newer).to_have_value("10")
    page.get_by_role("button", name="updated", exact=True).click()
    page.get_by_label("Hide unchanged columns").check()
    notebook.says("columns that no updated row changes.")
    changed = page.locator(".sx-grid td.sx-changed", has_text="67.04 → -67.04")
    plain = page.locator(".sx-grid td:not(.sx-changed)").locator("visible=true").first
    marks = [one.evaluate("node => getComputedStyle(node).boxShadow") for one in (changed, plain)]
    assert marks[0] != marks[1] == "none"

    page.get_by_role("button", name="blame and repair").click()
    page.get_by_label("Rows where", exact=True).locator("visible=true").fill('"order_id" = 16')
    keys.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Blame rows"
    keys.press("Space")
    notebook.says("orders.blame(")
    everything_is_legible(page)
    for button, name, begin in (("Save SVG", "orders.svg", b"<svg "), ("Save PNG", "orders.png", b"\x89PNG")):
        with page.expect_download() as saved:
            page.get_by_role("button", name=button).first.click()
        assert saved.value.suggested_filename == name
        content = Path(saved.value.path()).read_bytes()
        assert content.startswith(begin)
        assert name == "orders.png" or (b" versions " in content and b">updated<" in content)
    notebook.shot("rows")

    commit_is_found_in_two_clicks(notebook)
    notebook.shot("bisect")
    notebook.run(2)
    notebook.puts_out(2, "7 8")
    rows_before_are_loaded_as_floats_in_three_clicks(notebook)
    what_expiring_would_free_is_shown_in_two_clicks(notebook)


def test_new_commits_of_a_live_table_are_followed(notebook, lab):
    served = lab.served
    table = PaimonTable(fsspec.filesystem("file", auto_mkdir=True), f"{served}/live")
    table.commit([(1, "a")])
    table.commit([(2, "b")])
    open_ = f"import snapshot_explorer as sx\nlive = sx.open_table({table.root!r})\ne = sx.explore(live)"
    notebook = notebook(f"{open_}\ne.state.interval = 0.5\ne", WHERE, name="following")
    notebook.run(0)
    notebook.says("2 versions (1 to 2)")

    live = notebook.page.locator(".sx-live")
    live.click()
    notebook.says("every 0.5 s")
    table.commit([(3, "c")])
    notebook.says("3 versions (1 to 3)")
    notebook.says("live.at(3).commit")
    live.click()
    notebook.run(1)

    notebook.puts_out(1, "2 3")
    expect(live).to_have_attribute("aria-pressed", "false")


def test_reopened_without_its_kernel_it_is_a_picture_of_where_the_user_ended(notebook):
    first = notebook(OPEN, name="saved")
    first.run(0)
    first.says("41 rows in files")
    click_at(first, 0.34)
    first.says("orders.at(6).commit")
    first.page.locator(".sx-still", has_text="orders.at(6).commit").wait_for(state="attached")
    first.page.keyboard.press("Control+s")
    first.is_saved_with("orders.at(6).commit")

    again = first.reopened()
    again.page.locator(".jp-OutputArea-output table.sx-table").first.wait_for()
    assert "Explorer of orders" in again.cell(0).inner_text()
    assert "orders.at(6).commit" in again.cell(0).inner_text()  # where the user ended
    again.page.wait_for_timeout(1_000)
    again.shot("reopened")
    assert "model not found" not in again.cell(0).inner_text()
    assert again.page.locator(".sx-explorer").count() == 0


def test_reopened_without_its_kernel_it_still_works_if_its_page_was_saved(notebook):
    # A table of few versions: its page is recorded in a fifth of the time.
    cell = "import snapshot_explorer as sx\ninvoices = sx.open_table(sx.samples.path('invoices'))"
    first = notebook(f"{cell}\nsx.explore(invoices, save_page=True)", name="paged")
    first.run(0)
    first.says("invoices.at(5).commit")
    frame = first.page.locator("iframe[srcdoc]")
    frame.wait_for(state="attached")
    assert frame.is_hidden()
    first.page.keyboard.press("Control+s")
    first.is_saved_with("srcdoc")

    again = first.reopened()
    frame = again.page.frame_locator("iframe[srcdoc]")
    frame.locator(DRAWN).wait_for()
    frame.get_by_role("tab", name="Files").click()
    expect(frame.get_by_role("tab", name="Files")).to_have_attribute("aria-selected", "true")
    frame.locator(".sx-answer", has_text="Files of version 5").wait_for()
    again.shot("paged")
    assert again.page.locator("img.sx-picture").is_hidden()


def test_a_notebook_that_is_not_trusted_shows_the_pictures(lab, chromium):
    explorer = Explorer(open_table(samples.path("invoices")), name="invoices", save_page=True).wait()
    bisection = open_table(samples.path("orders")).bisect("amount < 0")
    shown = (explorer._repr_mimebundle_(), bisection._repr_mimebundle_())
    outputs = [
        nbformat.v4.new_output("display_data", {name: data[name] for name in ("text/html", "text/plain")})
        for data in shown
    ]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("shown", outputs=outputs)])
    nbformat.write(made, lab.served / "untrusted.ipynb")
    page = chromium.new_page(viewport={"width": 1280, "height": 1400})
    page.set_default_timeout(SECONDS * 1000)
    page.goto(f"{lab.address}/doc/tree/untrusted.ipynb?token={TOKEN}")

    pictures = page.locator(".jp-OutputArea-output img.sx-picture")
    pictures.nth(1).wait_for()

    # JupyterLab has dropped what it does not trust: the recorded page too.
    assert page.locator(".jp-OutputArea-output style, .jp-OutputArea-output iframe").count() == 0
    widths = settled(page, lambda: pictures.evaluate_all("all => all.map((one) => one.naturalWidth)"), [1920, 900])
    assert widths == [1920, 900]
    explorer.close()
    page.close()
    lab.end_kernels()


def test_each_cell_shows_the_state_of_its_time(notebook):
    later = "e.state.b, e.state.tab = 6, 'data'\ne"
    notebook = notebook(OPEN, later, name="cells")
    notebook.run(0)
    notebook.says("41 rows in files")
    notebook.run(1)
    notebook.says("A later cell shows the explorer; this is what it showed here.")

    first, second = notebook.cell(0), notebook.cell(1)
    second.locator(".sx-explorer").wait_for()
    expect(first.locator(".sx-explorer")).to_have_count(0)
    expect(first).to_contain_text("orders.at(18).commit")
    assert "orders.at(6)" not in first.inner_text()
    second.get_by_text("orders.at(6)").locator("visible=true").first.wait_for()
    notebook.shot("cells")


def test_the_last_picture_stays_when_the_kernel_restarts(notebook):
    notebook = notebook(OPEN, name="restarted")
    notebook.run(0)
    notebook.says("41 rows in files")
    page = notebook.page

    page.locator(".lm-MenuBar-itemLabel", has_text="Kernel").first.click()
    page.get_by_role("menuitem", name="Restart Kernel…").first.click()
    page.locator(".jp-Dialog .jp-mod-accept").click()

    notebook.says("The kernel restarted: run this cell again.")
    assert page.locator(DRAWN).first.is_visible()
    notebook.shot("restarted")
    notebook.run(0)
    page.locator(".sx-lost").wait_for(state="detached")
    notebook.says("41 rows in files")


def test_in_notebook_a_click_on_a_commit_changes_the_view(notebook):
    notebook = notebook(OPEN, WHERE, name="in_notebook", where="Notebook")
    notebook.run(0)
    notebook.says("orders.at(18).commit")

    click_at(notebook, 0.34)
    notebook.says("orders.at(6).commit")
    notebook.shot("notebook")
    notebook.run(1)

    notebook.puts_out(1, "5 6")


def test_in_voila_a_click_on_a_commit_changes_the_view(notebook):
    notebook = notebook(OPEN, name="in_voila", where="Voila")
    notebook.says("orders.at(18).commit")
    assert not notebook.page.locator(".sx-still").is_visible()

    click_at(notebook, 0.34)
    notebook.says("orders.at(6).commit")
    notebook.page.get_by_role("button", name="Next", exact=True).click()
    notebook.says("orders.at(7).commit")
    notebook.shot("voila")


def test_figures_keep_their_height_when_the_sidebar_or_the_window_changes(notebook):
    notebook = notebook(
        f"%load_ext snapshot_explorer\n{ORDERS}",
        "%snapshot log --picture",
        "%snapshot profile amount",
        name="figures",
    )
    page = notebook.page
    for cell in range(3):
        notebook.run(cell)

    sizes = [page.evaluate(FIGURE_SIZES)]
    for change in ("sidebar", "window"):
        if change == "sidebar":
            page.keyboard.press("Escape")
            page.keyboard.press("Control+b")
        else:
            page.set_viewport_size({"width": 900, "height": 1000})
        sizes.append(page.evaluate(FIGURE_SIZES, sizes[-1]))
    notebook.shot("figures_in_a_narrow_window")

    assert [len(now) for now in sizes] == [2, 2, 2]
    for before, now in pairwise(sizes):
        assert all(width != width_before for (width, _), (width_before, _) in zip(now, before, strict=True))
        assert [height for _, height in now] == [height for _, height in before]
    assert all(height > 400 for _, height in sizes[0])
