"""The explorer's picture as PNG, and the contrasts of the palette."""

import re

import numpy as np
import pyarrow as pa
import pytest

from snapshot_explorer import open_table, samples
from tests.inner.jupyter import text_of
from tests.inner.view import GRAY, KIND_COLORS, STATE_COLORS, Canvas, commit_bars, page_color
from tests.support.png import picture_points

DARK_PAPERS = ("#111111", "#1e1e1e", "#111317")


def contrast(color, paper):
    """Return the contrast of two colors by WCAG 2.2, 1.4.3."""

    def luminance(text):
        text = text if len(text) == 7 else "#" + "".join(2 * digit for digit in text[1:])
        parts = [int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted(map(luminance, (color, paper)))
    return (high + 0.05) / (low + 0.05)


def test_grays_of_plots_stand_out_in_both_themes_and_other_colors_from_white_and_black():
    css = text_of("page.css")
    light, dark = (re.search(r"--s-faint:[^;]*(#\w{6})", part)[1] for part in css.split(".sx-explorer.sx-dark", 1))

    assert page_color(GRAY) == "currentColor"  # of faint text, where pages draw
    assert contrast(light, "#ffffff") >= 4.5
    assert min(contrast(dark, paper) for paper in DARK_PAPERS) >= 4.5
    assert contrast(GRAY, "#ffffff") >= 4.5  # of figures, whose paper is white
    for color in {*KIND_COLORS.values(), *STATE_COLORS.values()} - {GRAY}:
        assert page_color(color) == color
        assert min(contrast(color, paper) for paper in ("#ffffff", *DARK_PAPERS)) >= 3


def test_the_picture_of_the_newest_commits_has_their_kinds_and_the_markers_and_is_small():
    table = open_table(samples.path("payments"))

    html = commit_bars(table.history().to_arrow(), "rows", 20, 21)

    points = picture_points(html)
    assert points.shape == (440, 1920)
    colors = {f"#{color:06X}" for color in np.unique(points).tolist()}
    assert colors > {KIND_COLORS[kind] for kind in ("append", "delete", "update", "merge", "restore")} | {GRAY}
    assert 'alt="rows inserted and deleted by versions 0 to 21, A at 20, B at 21"' in html
    assert len(html) < 20_000
    assert commit_bars(table.history().to_arrow(), "rows", 20, 21) == html


def test_a_bar_far_above_the_others_is_cut_with_a_mark_before_its_end():
    commits = open_table(samples.path("payments")).history().to_arrow().slice(0, 12)
    at = commits.schema.get_field_index("rows_inserted")
    inserted = pa.array([10] * 11 + [100_000], pa.int64())
    commits = commits.set_column(at, commits.schema.field(at), inserted)

    points = picture_points(commit_bars(commits, "rows", None, None))

    bar = points[36:250, 110:260]  # the oldest, on the left
    white = (bar == 0xFFFFFF).all(axis=1)
    assert white[17:21].all()
    assert not white[:15].any()


@pytest.mark.parametrize("count", [1, 2, 120, 400])
def test_any_number_of_commits_is_drawn(count):
    commits = pa.concat_tables([open_table(samples.path("orders")).history().to_arrow()] * (1 + count // 18))
    index = commits.schema.get_field_index("version")
    versions = pa.array(range(len(commits), 0, -1), pa.int64())
    commits = commits.set_column(index, commits.schema.field(index), versions).slice(0, count)

    html = commit_bars(commits, "rows", None, len(versions))

    assert len(html) < 60_000
    assert f"to {len(versions)}, B at {len(versions)}" in html


def test_text_of_any_kind_is_drawn_and_what_has_no_letter_is_skipped():
    canvas = Canvas(60, 30)

    width = canvas.write(0, 0, "1 \u00e9", GRAY, size=1)

    points = picture_points(canvas.html('"><script>'))
    assert width == 17
    assert (points[:, :5] == int(GRAY[1:], 16)).any()
    assert "<script" not in canvas.html('"><script>')
