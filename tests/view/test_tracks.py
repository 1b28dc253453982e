"""Tracks over versions: strips of a bisection, lives of rows and of files; as data, and as figures of the same data."""

import base64
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.history import history_of
from snapshot_explorer.view import picture_of
from tests.inner.view import (
    MOST_TRACKS,
    Mark,
    Span,
    Track,
    Tracks,
    branch_graph,
    brief_html,
    file_tracks,
    heat_svg,
    partition_heat,
    tracks_svg,
)

DATA = Path(__file__).parents[1] / "data"
EVIL = "<b>$x$</b>"
SVG = "{http://www.w3.org/2000/svg}"
TITLE, TEXT = f"{SVG}title", f"{SVG}text"


@pytest.fixture(scope="module")
def orders():
    return open_table(samples.path("orders"))


def texts_of(svg):
    """Return the texts of a picture: labels, keys, the caption, then those of the plot."""
    return [text.text for text in ET.fromstring(svg).iter(TEXT)]


def lines_of(svg):
    """Return the lines with tooltips, and the elements that have these."""
    groups = ET.fromstring(svg).iter(f"{SVG}g")
    return [(group, line) for group in groups for line in group.findall(f"{SVG}line")]


def groups_of(track):
    return [(mark.place, mark.group) for mark in track.marks]


def test_a_bisection_is_a_strip_with_the_first_version_ringed(orders):
    found = orders.bisect("amount < 0", bad=8)
    by_halving = orders.bisect("amount < 0", bad=8, single_pass=False)

    (strip,) = picture_of(found).tracks.tracks

    assert [(span.first, span.last, span.group) for span in strip.spans] == [(0, 6, "does not hold"), (7, 7, "holds")]
    assert groups_of(strip)[-1] == (7, "first")
    assert strip.marks[-1].text == "8 append by 3389c2bd"
    assert [mark.place for mark in strip.marks] == [0, 7, 7]
    assert texts_of(found.picture().svg) == [
        None,
        "does not hold",
        "holds",
        picture_of(found).tracks.caption,
        "8 append by 3389c2bd",
        "1",
        "8",
    ]
    (strip,) = picture_of(by_halving).tracks.tracks
    assert len(strip.marks) == 1 + len(by_halving.evaluated)


def test_a_condition_that_never_holds_has_no_ring(orders):
    found = orders.bisect("amount < -1000000", single_pass=False)
    (strip,) = picture_of(found).tracks.tracks

    assert [span.group for span in strip.spans] == ["not evaluated", "does not hold"]
    assert "first" not in {mark.group for mark in strip.marks}


def test_versions_that_were_not_evaluated_are_hatched_and_never_drawn_as_if_they_were(orders):
    """Amounts were negative from 8 to 10 alone, and many ships sail later: halving looks at few versions."""
    for condition, bad in (
        ("amount < 0", 10),
        ("order_id > 40", "latest"),
        (lambda snapshot: snapshot.version > 5, 18),
    ):
        found = orders.bisect(condition, bad=bad, single_pass=False)
        evaluated = dict(zip(found.evaluated["version"].to_pylist(), found.evaluated["holds"].to_pylist(), strict=True))

        (strip,) = picture_of(found).tracks.tracks

        drawn = {place: span.group for span in strip.spans for place in range(span.first, span.last + 1)}
        words = {True: "holds", False: "does not hold", None: "not evaluated"}
        assert [drawn[place] for place in range(len(found.versions))] == [
            words[evaluated.get(version)] for version in found.versions
        ]
        lines = {group.find(TITLE).text.split(": ")[-1]: line for group, line in lines_of(found.picture().svg)}
        assert lines.pop("not evaluated").get("stroke-dasharray") == "3 4"
        assert {line.get("stroke-dasharray") for line in lines.values()} == {None}
        assert found.assumes_one_change
        assert ", if it changes only once \N{MIDDLE DOT} versions " in found.picture().svg


def test_the_life_of_a_row_is_a_track(orders):
    found = picture_of(orders.blame("order_id in (3, 27)")).tracks

    assert [track.label for track in found.tracks] == ["order_id 3", "order_id 27"]
    (life,) = found.tracks[1].spans
    assert (found.versions[life.first], found.versions[life.last]) == (3, 17)
    assert groups_of(found.tracks[1]) == [(2, "inserted"), (16, "deleted")]
    assert [mark.text for mark in found.tracks[0].marks if mark.text] == ["placed", "shipped", "delivered"]
    assert picture_of(orders.blame("order_id < 0")).tracks.tracks == ()


def test_the_life_of_a_file_is_a_track(orders):
    lifetimes = orders.lifetimes()

    found = file_tracks(lifetimes)

    ends = lifetimes.to_arrow()["removed_version"]
    assert [track.spans[0].group for track in found.tracks].count("live") == ends.null_count
    assert (found.total, found.note) == (len(lifetimes), "")
    assert texts_of(lifetimes.picture("files").svg)[0] == found.tracks[0].label


def test_compactions_and_missing_files_are_marked_once_files_were_looked_for(tmp_path):
    shutil.copytree(samples.path("payments"), tmp_path / "payments")
    payments = open_table(tmp_path / "payments")
    (tmp_path / "payments" / payments.current.files()["path"][0].as_py()).unlink()
    lifetimes = payments.lifetimes()

    before = file_tracks(lifetimes)
    payments.verify()
    after = file_tracks(lifetimes)

    assert before.notes == ("Whether the files exist was not checked",)
    assert [(before.versions[stripe.first], stripe.group) for stripe in before.stripes] == [
        (9, "compaction"),
        (19, "compaction"),
    ]
    assert after.notes[0].startswith("Missing: 1 live and ")
    assert "live, missing" in {span.group for track in after.tracks for span in track.spans}
    assert after.stripes[-1].group == "only metadata is left"


def test_branches_are_lanes_that_begin_where_they_were_created(orders):
    graph = branch_graph(history_of(orders))

    main, dev = graph.tracks
    assert (main.label, dev.label) == ("main", "dev")
    assert [graph.versions[mark.place] for mark in main.marks] == list(range(1, 19))
    assert [graph.versions[mark.place] for mark in dev.marks] == [6]
    (link,) = graph.links
    assert (graph.versions[link.begin[0]], link.begin[1], link.end[1]) == (5, 0, 1)
    assert {mark.text: mark.opens for mark in main.marks if mark.text} == {"opening": 1, "v1": 5}
    assert dev.marks[0].opens is None
    svg = orders.branches().picture().svg
    assert texts_of(svg)[:2] == ["main", "dev"]
    assert re.findall('data-opens="([0-9]+)"', svg) == [str(version) for version in range(1, 19)]


def test_a_branch_without_commits_of_its_own_is_a_text_at_its_newest_one():
    graph = branch_graph(history_of(open_table(DATA / "iceberg" / "branches_tags", branch="dev")))

    texts = {graph.versions[mark.place]: (mark.text, mark.opens) for mark in graph.tracks[0].marks}
    assert texts == {1: ("branch old state", 1), 2: ("v1", 2), 4: ("release/2", None), 6: ("", None)}
    assert [mark.opens for mark in graph.tracks[1].marks] == [3, 5, 7]


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("payments", "Delta tables have no branches; this one has no tags"),
        ("rides", "Hudi tables have no branches"),
        ("events", "The table has no other branch"),
    ],
)
def test_a_table_without_branches_is_one_lane_that_says_so(name, note):
    table = open_table(samples.path(name))
    graph = branch_graph(history_of(table))

    assert graph.notes == (note,)
    assert [len(track.marks) for track in graph.tracks] == [len(table.history())]


def test_what_changed_in_partitions_is_a_heat_map():
    events = open_table(samples.path("events")).lifetimes()

    svg = events.picture("partitions").svg

    rows = events.to_arrow().filter(events.to_arrow()["removed_version"].is_valid())
    changed = sum(events.to_arrow()["rows"].to_pylist()) + sum(rows["rows"].to_pylist())
    assert partition_heat(events).numbers.sum() == changed
    assert texts_of(svg)[0] == "day=2026-11-01"
    assert "<title>day=2026-11-01, version 1: 12 rows in files added or removed</title>" in svg
    of_bytes = heat_svg(partition_heat(events, "bytes"))
    assert of_bytes.count("kB in files added or removed</title>") == svg.count("<title>")
    with pytest.raises(InvalidArgumentError, match="totals, files or partitions, not 'cows'"):
        events.picture("cows")
    with pytest.raises(InvalidArgumentError, match="counts rows, files, bytes, not 'cows'"):
        events.picture("partitions", y="cows")


def test_versions_that_no_browser_counts_and_tracks_that_are_not_drawn_are_named():
    mark = Mark(place=1, group="updated", text=EVIL, hover=f"{EVIL}\nagain")
    track = Track(label=EVIL, spans=(Span(first=0, last=1, group="present"),), marks=(mark,))
    found = Tracks(title=EVIL, versions=(2**62, 2**62 + 1), tracks=(track,), total=MOST_TRACKS + 1, noun="rows")

    svg = tracks_svg(found)

    assert str(2**62 + 1) in texts_of(svg)
    assert texts_of(svg)[3].endswith("1 of 61 rows")
    assert EVIL not in svg
    assert texts_of(svg).count(EVIL) == 2
    assert f"{EVIL}\nagain" in [title.text for title in ET.fromstring(svg).iter(TITLE)]


def test_a_text_that_would_cover_the_one_before_stands_below_the_line():
    marks = tuple(
        Mark(place=place, group="updated", text=text) for place, text in ((0, "a long text"), (1, "x"), (9, "y"))
    )
    tracks = Tracks(title="", versions=tuple(range(10)), tracks=(Track(label="", marks=marks),), total=1, noun="rows")

    drawn = {text.text: text for text in ET.fromstring(tracks_svg(tracks)).iter(TEXT)}

    assert [(drawn[text].get("y"), drawn[text].get("text-anchor")) for text in ("a long text", "x", "y")] == [
        ("-11", "start"),
        ("19", "start"),
        ("-11", "end"),
    ]


def svg_in(html):
    return base64.b64decode(html.partition("svg+xml;base64,")[2].partition('"')[0]).decode()


def test_a_bisection_and_a_blame_show_their_picture_above_their_table():
    table = open_table(samples.path("orders"))
    for record in (table.bisect("amount < 0"), table.blame("order_id = 16")):
        page = record._repr_mimebundle_()["text/html"]
        above, _, below = page.partition("<img ")

        assert "<table" not in above
        assert "<table" in below
        assert ET.fromstring(svg_in(page)).get("viewBox").startswith("0 0 900 ")
    assert "<img" not in table.history()._repr_mimebundle_()["text/html"]


def test_hostile_texts_of_a_picture_are_escaped():
    evil = "<script>alert(1)</script>"
    mark = Mark(place=0, group=evil, text=evil)
    track = Track(label=evil, spans=(Span(first=0, last=0, group="holds"),), marks=(mark,))
    tracks = Tracks(title=evil, versions=(1,), tracks=(track,) * 20, total=30, noun=evil)

    html = brief_html(tracks)

    assert "<script" not in html + svg_in(html) + tracks_svg(tracks)
    assert len(ET.fromstring(svg_in(html))) > 12
    assert "12 of 30" in html
    assert brief_html(Tracks(title="t", versions=(1,), tracks=(), total=0, noun="rows")) == ""


def test_lifetimes_show_a_line_for_each_of_the_newest_files_by_themselves():
    lifetimes = open_table(samples.path("orders")).lifetimes()

    page = lifetimes._repr_mimebundle_()["text/html"]
    svg = base64.b64decode(re.search('svg.xml;base64,([^"]+)', page)[1]).decode()

    assert 0 < page.find("<img") < page.find("<table")
    assert "12 of 34 files, those added last" in svg
    newest = lifetimes.frame.to_arrow().sort_by("first_version")["path"][-1].as_py()
    assert newest.rpartition("/")[2][:8] in svg
    assert ">removed<" in svg
    assert ">live<" in svg
