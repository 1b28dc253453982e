"""A report in a real chromium: light, dark and on paper, without a request."""

import shutil

import pytest

from snapshot_explorer import open_table, report, samples
from tests.support.contrast import low_contrasts

pytestmark = [
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]


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
