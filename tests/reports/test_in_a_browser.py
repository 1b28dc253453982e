"""A report in a real chromium: light, dark and on paper, without a request."""

import shutil

import pyarrow as pa
import pytest

from snapshot_explorer import open_table, report, samples
from snapshot_explorer.results import Frame
from tests.support.contrast import low_contrasts

pytestmark = [
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]

CUT = """[...document.querySelectorAll('.sx-box, .sx-fade')].filter(
  (box) => box.scrollWidth > box.clientWidth + 1).length"""
"""How many boxes would have to be scrolled sideways."""


@pytest.fixture
def page(blank_page):
    """A page whose emulated media are those of other tests again afterwards, with what its console shows."""
    blank_page.problems = []

    def note(message):
        blank_page.problems.append(message.text)

    blank_page.on("console", note)
    yield blank_page
    blank_page.remove_listener("console", note)
    blank_page.emulate_media(media="null", color_scheme="null")


def test_a_report_reads_in_light_dark_and_print_and_requests_nothing(page, tmp_path):
    orders = open_table(samples.path("orders"))
    content = report(tmp_path / "r.html", orders, between="7..8", where="order_id = 42").read_text("utf-8")

    for scheme, background in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(30, 30, 30)")):
        page.emulate_media(color_scheme=scheme)
        page.set_content(content)

        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
        assert low_contrasts(page, "body") == []
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF-")
    assert page.requests == []
    assert page.problems == []


def test_nothing_is_cut_at_1200_pixels_on_a_phone_or_on_paper(page, tmp_path):
    payments = open_table(samples.path("payments"))
    wide = Frame(pa.table({f"column_{number}": [f"some text {number}"] * 3 for number in range(40)}), title="Wide")
    content = report(tmp_path / "r.html", payments, wide, between="17..18").read_text("utf-8")

    for width, media in ((1200, "screen"), (390, "screen"), (703, "print")):  # A4 without margins
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media=media)
        page.set_content(content)

        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT) == 0, (width, media)
    page.set_viewport_size({"width": 1280, "height": 900})
    assert page.locator(".sx-picture").first.evaluate("e => e.naturalWidth") == 1920
    assert page.problems == []
