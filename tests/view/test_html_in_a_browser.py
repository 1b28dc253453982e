"""The HTML of cards and frames in a real chromium: buttons that copy, and contrasts, in light and dark."""

import shutil

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.table import read_overview
from snapshot_explorer.view import Code, Drawing, Pairs, mimebundle_of
from tests.support.contrast import cut_controls, low_contrasts

pytestmark = [
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]
EVIL = "a<img src=x onerror=window.hit=1>&amp;\"'</code>"
PAPER = {"light": "#ffffff", "dark": "#1e1e1e"}


@pytest.fixture
def page(blank_page):
    blank_page.set_viewport_size({"width": 800, "height": 900})
    yield blank_page
    assert blank_page.requests == []


def shown(page, *things, theme="light"):
    bundles = [mimebundle_of(one) if isinstance(one, Drawing) else one._repr_mimebundle_() for one in things]
    body = "".join(bundle["text/html"] for bundle in bundles)
    start = f'<html theme="{theme}"><body data-theme="{theme}" style="background:{PAPER[theme]}">'
    page.set_content(f"{start}{body}<input></body></html>")


def pasted(page):
    """Return what is in the clipboard, which a page from nowhere can only paste."""
    page.locator("input").focus()
    page.keyboard.press("Control+A")
    page.keyboard.press("Control+V")
    return page.locator("input").input_value()


def test_paths_commands_and_code_are_copied_by_mouse_and_keyboard(page):
    table = open_table(samples.path("orders"))
    read_overview(table)
    long_path = "bucket-0/" + "a" * 120 + ".parquet"
    shown(page, table, Drawing(title="t", parts=(Code(EVIL), Pairs((("p", Code(long_path)),)))), table.current.files())

    assert page.locator("button").count() == 1 + 3 + 2 + 2
    page.get_by_role("button", name=f"Copy {table.path}", exact=True).click()
    assert pasted(page) == table.path
    page.get_by_role("button", name="Copy table.compare('latest^')", exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Copied table.compare('latest^')").wait_for()
    assert pasted(page) == "table.compare('latest^')"
    page.get_by_role("button", name="Copy a<img").click()
    assert pasted(page) == EVIL
    assert page.evaluate("window.hit") is None
    of_a_file = page.locator(".sx-cell + button").first
    of_a_file.focus()
    assert page.evaluate("getComputedStyle(document.activeElement).opacity") == "1"
    page.keyboard.press("Space")
    assert pasted(page) == table.current.files()["path"][0].as_py()


def test_without_its_script_there_is_no_button_and_the_text_is_there(page):
    card = open_table(samples.path("orders"))._repr_mimebundle_()["text/html"]
    page.set_content(card.replace("<script>", "<!--").replace("</script>", "-->"))

    assert page.locator("button").count() == 0
    assert "table.compare(" in page.inner_text("body")


def test_the_log_is_not_wider_than_a_notebook(page):
    page.set_viewport_size({"width": 1600, "height": 900})
    for name in samples.names():
        shown(page, open_table(samples.path(name)).history(anomalies=True))

        assert page.evaluate("document.querySelector('table').scrollWidth") <= 1000, name


def everything():
    orders, shipments = (open_table(samples.path(name)) for name in ("orders", "shipments"))
    for table in (orders, shipments):
        read_overview(table)
    return [
        orders,
        shipments,
        orders.history(),
        shipments.history(),
        orders.compare(7, 15),
        orders.diff_rows(7, 8),
        orders.bisect("amount < 0", good=5, bad=8),
        orders.retention(keep_last=3),
        orders.health(),
        orders.verify().versions,
        orders.at(8).files(),
    ]


@pytest.mark.filterwarnings("ignore")
def test_text_and_outlines_have_contrast_in_both_themes_and_nothing_is_cut_at_800_pixels(page):
    things = everything()
    for theme in PAPER:
        shown(page, *things, theme=theme)

        assert low_contrasts(page, ".sx") == [], theme
        page.evaluate("document.querySelectorAll('.sx-button').forEach((one) => { one.style.opacity = 1; })")
        assert low_contrasts(page, ".sx") == [], theme
        assert cut_controls(page, ".sx") == [], theme
