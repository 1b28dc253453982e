"""The module that draws the explorer's timeline, in a real chromium without Jupyter: what is shown and sent."""

import base64
import json
import shutil

import numpy as np
import pyarrow as pa
import pytest

from snapshot_explorer.core.frames import ANOMALIES, COMMITS
from tests.inner.jupyter import script, text_of
from tests.inner.view import TableFacts, pack_numbers, timeline_columns

EVIL = "<img src=x onerror=window.hit=1><b>bold</b>"
OPEN = """async ([module, state, background]) => {
  const {Timeline} = await import('data:text/javascript;base64,' + module);
  const view = (text) => new DataView(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer);
  const received = (state) => JSON.parse(state, (_, one) => one?.bytes !== undefined ? view(one.bytes) : one);
  const handlers = {}, sent = [];
  let traits = received(state);
  const model = {
    get: (name) => traits[name], send: (content) => sent.push(content),
    on: (name, handler) => { handlers[name] = handler; }, off: (name) => { delete handlers[name]; },
  };
  document.body.style.background = background;
  const root = document.createElement('div'), style = document.createElement('style');
  style.textContent = window.css;
  document.getElementById('here').append(style, root);
  const timeline = new Timeline(model, root), end = () => timeline.end();
  const set = (state) => {
    const before = traits;
    traits = received(state);
    for (const name of ['commits', 'facts', 'page']) if (name in traits) handlers[`change:${name}`]();
  };
  window.timeline = {sent, set, end, handlers};
}"""
COLOUR = """(color) => {
  const canvas = document.querySelector('.sx-timeline > canvas');
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4)
    if (color.every((part, i) => Math.abs(data[at + i] - part) < 12) && data[at + 3] > 250) found += 1;
  return found;
}"""
RECORD = """() => {
  const kept = window.drawn = {texts: [], marks: 0, end: 0}, {prototype} = CanvasRenderingContext2D;
  const keep = {fillText: (text) => kept.texts.push(text), lineTo: (x) => { kept.end = Math.max(kept.end, x); }};
  for (const [name, take] of Object.entries(keep)) {
    const draw = prototype[name];
    prototype[name] = function (...given) { take(...given); return draw.apply(this, given); };
  }
  window.Path2D = class extends Path2D {
    constructor(path) { super(path); kept.marks += path.includes('a4,4 0 1'); }
  };
}"""
"""Keeps the texts, the marks of what is not known and the right end of lines that are drawn."""
GREEN, BROWN, BLUE = ([0, 158, 115], [184, 80, 0], [0, 114, 178])
CANVAS = ".sx-timeline > canvas"
MODULE = base64.b64encode(f"{script()}\nexport {{ Timeline, numbers }};".encode()).decode()

pytestmark = [
    pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium"),
]


DECODE = """async ([module, columns]) => {
  const {numbers} = await import('data:text/javascript;base64,' + module);
  return columns.map((one) => {
    const data = new DataView(Uint8Array.from(atob(one.data), (one) => one.charCodeAt(0)).buffer);
    return [...numbers({...one, data})].map(String);
  });
}"""
COLUMNS = (
    np.arange(7, 1_000),
    np.array([], np.int64),
    np.array([2**62, 2**62 + 1, -(2**63)]),
    np.array([3, 2**50, -(2**50), 0]),
    np.array([5, 300, 70_000, 5]),
    np.array([0, 1, 1, 0], np.uint8),
    np.array([np.nan, 1, 2] + [3.0] * 90 + [np.nan] * 4 + [9.0] * 30 + [np.nan]),
    np.array([np.nan, np.nan]),
    np.array([0.5, 2.0**63]),
)
"""Numbers that take no bytes, few, and eight; with gaps."""


def commits(count, first=0, **facts):
    row = {"readable": "yes", "kind": "append", "tags": [], "details": "{}", "schema_id": 0, "removed_rows": 0}
    rows = [row | {"version": first + at, "added_rows": 50 + at % 50, "total_rows": at} | facts for at in range(count)]
    return pa.Table.from_pylist([row | counted(row["added_rows"], row["removed_rows"]) for row in rows], COMMITS)


def counted(added, removed):
    """Return the logical counts of commits that insert what they add and delete what they remove."""
    return {} if added is None else {"rows_inserted": added, "rows_updated": 0, "rows_deleted": removed}


def state(rows, a, b, **more):
    columns = timeline_columns(rows, y="rows", facts=TableFacts(**more))
    facts = {name: columns.pop(name) for name in ("total", "line", "jumps")}
    found = {"commits": columns, "facts": facts, "zone": "UTC", "page": {"markers": [str(a), str(b)]}}
    return json.dumps(found, default=lambda one: {"bytes": base64.b64encode(one).decode()})


@pytest.fixture
def page(blank_page):
    blank_page.set_viewport_size({"width": 1000, "height": 600})
    blank_page.set_content("<body style='margin:0'><div id=here></div>")
    blank_page.evaluate("css => { window.css = css; }", text_of("page.css"))
    yield blank_page
    assert [one for one in blank_page.requests if not one.startswith("data:")] == []


def show(page, rows, a=-1, b=-1, background="#ffffff", **more):
    page.evaluate(OPEN, [MODULE, state(rows, a, b, **more), background])
    page.locator(f"{CANVAS}[data-drawn='{len(rows)}']").wait_for()


def at(page, share):
    box = page.locator(CANVAS).bounding_box()
    return box["x"] + box["width"] * share, box["y"] + 100


def shown_text(page):
    return page.locator(".sx-tooltip").inner_text()


def test_the_page_has_the_numbers_that_were_packed(page):
    sent = [pack_numbers(one) for one in COLUMNS]
    sizes = [len(one["data"]) for one in sent]
    columns = [one | {"data": base64.b64encode(one["data"]).decode()} for one in sent]

    found = page.evaluate(DECODE, [MODULE, columns])

    for given, got in zip(COLUMNS, found, strict=True):
        assert np.array_equal(np.array(got, object).astype(given.dtype), given, equal_nan=given.dtype.kind == "f")
    assert sizes == [0, 0, 24, 24, 12, 3, 127, 16, 16]


def test_bars_and_markers_are_seen_on_light_and_dark(page):
    for background in ("#ffffff", "#111111"):
        page.evaluate("document.getElementById('here').replaceChildren()")
        show(page, commits(20), a=3, b=12, background=background)

        assert page.evaluate(COLOUR, GREEN) > 50_000
        assert page.evaluate(COLOUR, BROWN) > 200
        assert page.evaluate(COLOUR, BLUE) > 200
    assert page.locator(".sx-legend").inner_text().split("\n")[0].strip() == "+ append"


def test_what_changes_is_drawn_again_at_the_width_that_there_is(page):
    show(page, commits(20), a=3, b=12)
    page.evaluate("state => window.timeline.set(state)", state(commits(5, removed_rows=7, kind="delete"), -1, 2))
    page.locator(f"{CANVAS}[data-drawn='5']").wait_for()
    assert page.evaluate(COLOUR, GREEN) == 0
    assert page.locator(".sx-legend button").first.inner_text() == "- delete"

    page.set_viewport_size({"width": 700, "height": 600})
    page.wait_for_function(f"document.querySelector('{CANVAS}').width === 700")
    page.evaluate("window.timeline.end()")
    assert page.evaluate("Object.keys(window.timeline.handlers).length") == 0


def test_what_had_no_place_is_drawn_once_it_has_one(page):
    page.evaluate("document.getElementById('here').style.display = 'none'")
    page.evaluate(OPEN, [MODULE, state(commits(20), 1, 2), "#ffffff"])

    page.evaluate("document.getElementById('here').style.display = ''")

    page.locator(f"{CANVAS}[data-drawn='20']").wait_for()
    assert page.evaluate(COLOUR, GREEN) > 50_000


def test_a_click_and_a_click_with_shift_name_the_nearest_commit(page):
    first = 2**62
    show(page, commits(20, first), a=first, b=first)

    page.mouse.click(*at(page, 0.99))
    page.keyboard.down("Shift")
    page.mouse.click(*at(page, 0.01))
    page.keyboard.up("Shift")

    assert page.evaluate("window.timeline.sent") == [
        {"click": str(first + 19), "other": False},
        {"click": str(first), "other": True},
    ]


def test_keys_move_along_commits_and_choose(page):
    show(page, commits(300), b=100)
    page.locator(CANVAS).focus()

    for key in ("ArrowRight", "Enter", "End", "ArrowLeft", "Shift+Enter"):
        page.keyboard.press(key)

    assert [one["click"] for one in page.evaluate("window.timeline.sent")] == ["101", "298"]
    assert shown_text(page).startswith("version 298\n")


def test_dragging_chooses_the_versions_that_are_shown(page):
    show(page, commits(300))
    page.mouse.move(*at(page, 0.5))
    page.mouse.down()
    page.mouse.move(*at(page, 0.4))
    page.mouse.up()

    ((first, last),) = [map(int, one["window"]) for one in page.evaluate("window.timeline.sent")]
    assert 100 < last < first < 160


def test_dragging_a_marker_moves_it(page):
    show(page, commits(300), a=100, b=200)
    box = page.locator(CANVAS).bounding_box()
    for marker, to in ((200, 250), (100, 50)):
        from_x, to_x = (box["x"] + 62 + (922 * (version + 2.99) / (299 + 2 * 2.99)) for version in (marker, to))
        page.mouse.move(from_x, box["y"] + 8)
        assert page.evaluate("document.querySelector('.sx-timeline > canvas').style.cursor") == "ew-resize"
        page.mouse.down()
        page.mouse.move(to_x, box["y"] + 60)
        page.mouse.up()

    sent = page.evaluate("window.timeline.sent")
    assert sent == [{"click": "250", "other": False}, {"click": "50", "other": True}]


def test_few_commits_are_no_areas(page):
    show(page, commits(1))

    assert 0 < page.evaluate(COLOUR, GREEN) < 60 * 200


def test_a_kind_is_hidden_by_its_button(page):
    show(page, commits(20))

    page.get_by_role("button", name="+ append").click()
    assert page.evaluate(COLOUR, GREEN) == 0
    page.get_by_role("button", name="+ append").press("Enter")
    assert page.evaluate(COLOUR, GREEN) > 50_000


def test_hostile_text_is_shown_as_it_is(page):
    show(page, commits(2, tags=[EVIL], operation=EVIL, user=EVIL), branches={1: [EVIL]})

    page.mouse.move(*at(page, 0.9))

    assert f"+ append {EVIL} by {EVIL[:39]}" in shown_text(page)
    assert f"tags {EVIL}" in shown_text(page)
    assert f"branches {EVIL}" in shown_text(page)
    assert page.locator("#here img, #here b").count() == 0
    assert page.evaluate("window.hit") is None


def test_ten_thousand_commits_are_drawn_together_and_described_one_by_one(page):
    rows = commits(10_000, removed_rows=80)
    show(page, rows, b=5_000)
    assert page.evaluate(COLOUR, GREEN) > 50_000
    assert len(state(rows, -1, -1)) < 40_000
    assert "a bar is 50 versions" in page.locator(".sx-legend").inner_text()

    page.locator(CANVAS).focus()
    page.keyboard.press("ArrowLeft")

    assert shown_text(page).split("\n") == [
        *("50 commits of 50 versions: versions 4950 to 4999", "rows +3,725 -4,000", "", "The nearest:"),
        *("version 4999", "+ append", "+99 \N{MINUS SIGN}80 rows", "total rows 4,999"),
    ]


def test_a_commit_far_larger_than_all_others_is_cut_and_marked(page):
    at_one = pa.Table.from_pylist([{"version": 100, "measure": "rows", "rule": "rows changed by 6,000,000"}], ANOMALIES)
    minutes = pa.array(range(0, 12_000_000, 60_000), pa.timestamp("ms", "UTC"))
    rows = commits(200)
    added = [6_000_000 if at == 100 else value for at, value in enumerate(rows["added_rows"].to_pylist())]
    # There is no other bar downwards that it could be compared with.
    removed = [6_000_000 if at == 100 else 0 for at in range(200)]
    rows = with_columns(rows, rows_inserted=added, rows_deleted=removed, committed_at=minutes)
    totals = pa.table({"version": range(200), "files": range(200), "rows": range(900, 1_100), "size_bytes": [1] * 200})
    show(page, rows, b=99, totals=totals, anomalies=at_one)
    words = page.locator(".sx-legend").inner_text()
    assert ("2 cut: draw in full" in words, "anomalies" in words, "a bar is" in words) == (True, True, False)
    cut = page.evaluate(COLOUR, GREEN)

    page.locator(CANVAS).focus()
    page.keyboard.press("ArrowRight")
    assert shown_text(page).split("\n")[-1] == "anomaly: rows changed by 6,000,000"
    page.get_by_role("button", name="2 cut: draw in full").click()

    assert page.evaluate(COLOUR, GREEN) * 5 < cut
    page.get_by_role("button", name="Cut the highest bars").click()
    assert page.evaluate(COLOUR, GREEN) > cut * 0.9


def with_columns(rows, **columns):
    for name, values in columns.items():
        rows = rows.set_column(rows.schema.names.index(name), name, pa.array(values, COMMITS.field(name).type))
    return rows


def redrawn(page, rows, totals):
    """Send other rows; return the texts, the marks and the end of lines that are drawn at the next key."""
    page.evaluate("state => window.timeline.set(state)", state(rows, -1, 4_990, totals=totals))
    page.evaluate("Object.assign(window.drawn, {texts: [], marks: 0, end: 0})")
    page.locator(CANVAS).press("Home")
    return page.evaluate("[window.drawn.texts, window.drawn.marks, window.drawn.end]")


def test_the_scales_of_a_long_history_are_those_of_what_is_shown(page):
    added = [6_000_000 if at == 5_000 else None if at % 3 == 0 else 1_000 for at in range(10_000)]
    times = np.datetime64("2026-01-01", "us") + np.timedelta64(10, "m") * np.arange(10_000)
    rows = with_columns(commits(10_000, total_rows=None), added_rows=added, rows_inserted=added, committed_at=times)
    size = np.cumsum([one or 0 for one in added])
    totals = pa.table({"version": range(10_000), "files": size, "rows": size, "size_bytes": size})
    page.evaluate(RECORD)
    show(page, rows, b=4_990, totals=totals)

    texts, marks, end = redrawn(page, rows, totals)
    words = page.locator(".sx-legend").inner_text()
    assert ("a bar is a day" in words, "1 cut: draw in full" in words) == (True, True)
    assert {"6.095M", "6000", "2026-02-11"} <= {*texts}
    assert "200k" not in texts  # the scale is that of all other days
    assert 10 < marks < 40
    assert end > 960  # the line reaches the last version

    texts, _, _ = redrawn(page, rows.slice(4_912, 156), totals)
    assert {"6M", "1k", "5M", "02-04 17:20"} <= {*texts}  # the highest bar, a bar, the line, the time

    texts, _, _ = redrawn(page, rows.slice(9_950), totals)
    assert "9990" in texts
    assert "10000" not in texts
    assert "0" not in texts[texts.index("total rows") + 1 :]  # the line does not begin at 0 where that would flatten it


def test_what_is_not_known_or_cannot_be_loaded_is_listed(page):
    show(page, commits(4, added_rows=None, readable="no", total_rows=None))

    words = page.locator(".sx-legend").inner_text()
    assert "? rows not counted" in words
    assert "cannot be loaded" in words


def test_no_commit_is_said_so(page):

    page.evaluate(OPEN, [MODULE, state(commits(0), -1, -1), "#ffffff"])

    page.wait_for_function(f"document.querySelector('{CANVAS}').width === 1000")
    assert page.evaluate(COLOUR, [123, 123, 123]) > 5
