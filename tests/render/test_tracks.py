"""Tracks over versions: strips of a bisection, lives of rows and of files; as data, and as figures of the same data."""

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.render.tracks import MOST_TRACKS, Mark, Span, Track, Tracks, tracks_content, tracks_figure

EVIL = "<b>$x$</b>"


@pytest.fixture(scope="module")
def orders():
    return open_table(samples.path("orders"))


def groups_of(track):
    return [(mark.place, mark.group) for mark in track.marks]


def test_a_bisection_is_a_strip_with_the_first_version_ringed(orders):
    found = orders.bisect("amount < 0", bad=8)

    (strip,) = found.tracks().tracks

    assert [(span.first, span.last, span.group) for span in strip.spans] == [(0, 6, "does not hold"), (7, 7, "holds")]
    assert groups_of(strip)[-1] == (7, "first")
    assert strip.marks[-1].text == "8 append by 3389c2bd"
    assert len(strip.marks) == 1 + len(found.evaluated)
    names = [trace.name for trace in found.figure().data]
    assert names == ["does not hold", "does not hold", "holds", "holds", "first"]


def test_a_condition_that_never_holds_has_no_ring(orders):
    (strip,) = orders.bisect("amount < -1000000").tracks().tracks

    assert {span.group for span in strip.spans} <= {"does not hold", "between"}
    assert "first" not in {mark.group for mark in strip.marks}


def test_the_life_of_a_row_is_a_track(orders):
    found = orders.blame("order_id in (3, 27)").tracks()

    assert [track.label for track in found.tracks] == ["order_id 3", "order_id 27"]
    (life,) = found.tracks[1].spans
    assert (found.versions[life.first], found.versions[life.last]) == (3, 17)
    assert groups_of(found.tracks[1]) == [(2, "inserted"), (16, "deleted")]
    assert [mark.text for mark in found.tracks[0].marks if mark.text] == ["placed", "shipped", "delivered"]
    assert orders.blame("order_id < 0").tracks().tracks == ()


def test_the_life_of_a_file_is_a_track(orders):
    lifetimes = orders.lifetimes()

    found = lifetimes.tracks()

    ends = lifetimes.to_arrow()["removed_version"]
    assert [track.spans[0].group for track in found.tracks].count("live") == ends.null_count
    assert (found.total, found.note) == (len(lifetimes), "")
    assert lifetimes.picture("files").figure.layout.yaxis.ticktext[0] == found.tracks[0].label


def test_what_changed_in_partitions_is_a_heat_map():
    events = open_table(samples.path("events")).lifetimes()

    (heat,) = events.figure("partitions").data

    rows = events.to_arrow().filter(events.to_arrow()["removed_version"].is_valid())
    changed = sum(events.to_arrow()["rows"].to_pylist()) + sum(rows["rows"].to_pylist())
    assert heat.customdata.sum() == changed
    assert heat.y[0] == "day=2026-11-01"
    with pytest.raises(InvalidArgumentError, match="totals, files or partitions, not 'cows'"):
        events.picture("cows")


def test_figures_and_pages_get_the_same_tracks_as_text():
    mark = Mark(place=1, group="updated", text=EVIL, hover=EVIL)
    span = Span(first=0, last=1, group="present")
    track = Track(label=EVIL, spans=(span,), marks=(mark,))
    found = Tracks(title=EVIL, versions=(2**62, 2**62 + 1), tracks=(track,), total=MOST_TRACKS + 1, noun="rows")

    content, figure = tracks_content(found), tracks_figure(found).to_json()

    assert content["ticks"] == [[1, str(2**62 + 1)]]
    assert content["tracks"][0]["marks"] == [[1, "updated", EVIL, EVIL]]
    assert content["note"] == "1 of 61 rows"
    assert EVIL not in figure
    assert "&lt;b&gt;&#36;x&#36;" in figure
