"""Figures: what they are made of, what they cost, and that nothing of a table is markup in them."""

from xml.etree import ElementTree as ET

import orjson
import pyarrow as pa
import pytest

from snapshot_explorer.core.frames import ANOMALIES, COMMITS, COMPARED, COMPARED_PARTITIONS
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.view import render_text
from tests.inner.view import MINUS, PLOTLY, difference_svg, plotly_text, timeline, totals_figure

EVIL = "<b>$x$</b> & <a href='javascript:alert(1)'>"


def commits(*rows):
    """Return COMMITS of some facts; everything else is plain."""
    plain_facts = {
        "committed_at": 1_767_225_600_000,
        "readable": "yes",
        "kind": "append",
        "added_rows": 10,
        "removed_rows": 0,
        "added_files": 1,
        "removed_files": 0,
        "added_bytes": 1_000,
        "removed_bytes": 0,
        "total_rows": 10,
        "schema_id": 0,
        "tags": [],
        "details": "{}",
    }
    facts = [plain_facts | {"version": at} | row for at, row in enumerate(rows)]
    return pa.Table.from_pylist([counted(row) | row for row in facts], COMMITS)


def counted(row):
    """Return the logical counts of a commit whose added rows are inserted and whose removed rows are deleted."""
    inserted, deleted = row["added_rows"], row["removed_rows"]
    if inserted is None or row["kind"] == "overwrite":
        return {"rows_source": None if inserted is None else "net"}
    return {"rows_inserted": inserted, "rows_updated": 0, "rows_deleted": deleted, "rows_source": "metadata"}


def many(count, **facts):
    return commits(*({"added_rows": at % 5_000, "total_rows": at} | facts for at in range(count)))


def figure(rows, y="rows", **more):
    return timeline(rows, y=y, title="History", **more).figure


def traces(made):
    return {trace.name: trace for trace in made.data if trace.showlegend is not False}


def test_what_was_added_goes_up_and_what_was_removed_goes_down():
    made = figure(commits({}, {"kind": "merge", "added_rows": 3, "removed_rows": 7}))

    bars = [(bar.name, list(bar.x), list(bar.y)) for bar in made.data if bar.type == "bar"]
    assert bars == [("+ append", [0], [10]), ("~ merge", [1], [3]), ("~ merge", [1], [-7])]


def test_kinds_differ_by_color_and_by_pattern():
    kinds = ("append", "overwrite", "compact", "delete", "update", "merge", "restore", "maintenance", "other")
    made = figure(commits(*({"kind": kind} for kind in kinds)))

    looks = {(bar.marker.color, bar.marker.pattern.shape) for bar in made.data if bar.type == "bar"}
    assert len(looks) == len(kinds)


@pytest.mark.parametrize(("y", "up"), [("rows", 10), ("files", 1), ("bytes", 1_000)])
def test_bars_count_what_is_requested(y, up):
    made = figure(commits({}), y)

    assert list(traces(made)["+ append"].y) == [up]
    assert made.layout.yaxis.title.text == ("rows inserted, deleted" if y == "rows" else f"{y} added, removed")


def test_what_is_not_counted_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"counts rows, files, bytes, not 'cows'."):
        timeline(commits({}), y="cows", title="History")


def test_the_line_is_the_total_that_is_stored():
    made = figure(commits({"total_rows": 10}, {"total_rows": 25}))

    assert list(traces(made)["total rows"].y) == [10, 25]


def test_without_totals_the_line_is_what_the_commits_come_to():
    made = figure(commits({"total_rows": None}, {"removed_rows": 4, "total_rows": None}))

    assert list(traces(made)["net rows of these commits"].y) == [10, 16]
    assert list(traces(figure(commits({}, {}), "files"))["net files of these commits"].y) == [1, 2]


def test_unknown_is_not_zero():
    made = figure(commits({}, {"added_files": None}, {}), "files")

    assert list(traces(made)["? files not known"].x) == [1]
    first, *others = traces(made)["net files of these commits"].y
    assert first == 1
    assert [str(one) for one in others] == ["nan", "nan"]
    reported = next(trace for trace in made.data if trace.name == "commits").hovertext
    assert "files +? -0" in reported[1]


def test_a_total_that_is_unknown_is_a_gap():
    made = figure(commits({"added_rows": None}, {"total_rows": None}))

    assert str(list(map(float, traces(made)["total rows"].y))) == "[10.0, nan]"


def test_versions_that_cannot_be_loaded_stand_on_grey():
    made = figure(commits({"readable": "no"}, {"readable": "no"}, {}, {"readable": "metadata"}))

    assert list(traces(made)["cannot be loaded"].x) == [-0.5, -0.5, 1.5, 1.5]
    assert list(traces(made)["only metadata is left"].x) == [2.5, 2.5, 3.5, 3.5]


def test_schema_changes_are_marked():
    made = figure(commits({"schema_id": None}, {"schema_id": 0}, {"schema_id": 1}, {"schema_id": 1, "kind": "schema"}))

    assert list(traces(made)["schema changed"].x[::3]) == [2, 3]


def test_tags_are_flags_with_their_names():
    made = figure(commits({"tags": ["v1", "best"]}, {}, {"tags": ["a" * 500]}))

    flags = traces(made)["tags"]
    assert list(flags.x) == [0, 2]
    assert flags.text == ("v1 +1", "a" * 15 + "…")
    assert len(flags.customdata[1]) < 100


def test_names_of_many_tags_are_reported_where_the_pointer_is():
    made = figure(commits(*({"tags": [f"nightly-{at}-{place}" for place in range(20)]} for at in range(300))))

    flags = traces(made)["tags"]
    assert flags.mode == "markers"
    assert len(flags.x) == 300
    assert flags.customdata[7].endswith("nightly-7-7 and 12 more")
    assert len(made.to_json()) < 300_000


def test_branches_are_flags_of_another_shape():
    rows = commits({}, {"tags": ["v1"]}, {})
    made = figure(rows, branches={1: ["dev", "exp"], 2: ["a" * 500], 99: ["of a version that is not drawn"]})

    tags, branches = traces(made)["tags"], traces(made)["branches"]
    assert list(branches.x) == [1, 2]
    assert branches.text == ("branch dev +1", "branch " + "a" * 15 + "…")
    assert branches.marker.symbol != tags.marker.symbol
    assert ([round(y, 2) for y in tags.y], [round(y, 2) for y in branches.y]) == ([0.97], [0.89, 0.81])
    reported = next(trace for trace in made.data if trace.name == "commits").hovertext
    assert reported[1].endswith("tags v1<br>branches dev, exp")
    assert "branches" not in reported[0]
    assert "branches" not in traces(figure(rows))


def test_bars_leave_room_for_the_names_of_tags_and_branches():
    counts = {"added_rows": 100, "removed_rows": 40}
    assert figure(commits(counts)).layout.yaxis.range is None
    rows = commits(counts, {"tags": ["v1"]})

    for branches, share in ({}, 0.93), ({1: ["dev"]}, 0.85):
        bottom, top = figure(rows, branches=branches).layout.yaxis.range
        assert bottom < -40
        assert (100 - bottom) / (top - bottom) == pytest.approx(share)
    assert figure(commits({"added_rows": 0}), branches={0: ["dev"]}).layout.yaxis.range is None


def test_a_branch_has_its_name_below_many_tags():
    made = figure(commits(*({"tags": ["nightly"]} for _ in range(40))), branches={7: ["dev"], 8: ["exp"]})

    tags, branches = traces(made)["tags"], traces(made)["branches"]
    assert (tags.mode, set(tags.y)) == ("markers", {0.97})
    assert (branches.text, [round(y, 2) for y in branches.y]) == (("branch dev", "branch exp"), [0.89, 0.81])


def test_names_of_many_branches_are_reported_where_the_pointer_is():
    made = figure(many(2_000), branches={at: [f"b-{at}-{place}" for place in range(20)] for at in range(100)})

    flags = traces(made)["branches"]
    assert (flags.mode, len(flags.x), set(flags.y)) == ("markers", 100, {0.97})
    assert flags.customdata[7].endswith("b-7-7 and 12 more")
    assert flags.hovertemplate == "version %{x}<br>%{customdata}<extra></extra>"


def test_branches_stand_in_the_table_beside_the_figure():
    rows = commits({}, {})

    assert "branches" not in render_text(timeline(rows, y="rows", title="History").drawing)
    drawn = render_text(timeline(rows, y="rows", title="History", branches={1: ["dev"]}).drawing).splitlines()
    assert drawn[1].split()[-1] == "branches"
    assert drawn[3].split()[-1] == "dev"


def test_nothing_of_a_table_is_markup():
    rows = commits({"operation": EVIL, "user": EVIL, "tags": [EVIL]})
    made = timeline(rows, y="rows", title=EVIL, branches={0: [EVIL]}).figure

    shown = made.to_json()
    assert plotly_text(EVIL) == "&lt;b&gt;&#36;x&#36;&lt;/b&gt; &amp; &lt;a href='javascript:alert(1)'&gt;"
    assert "<a" not in shown
    assert "\\u003ca" not in shown
    assert "$x$" not in shown
    assert made.layout.title.text == plotly_text(EVIL)


def test_the_pointer_tells_all_of_a_commit():
    rows = commits(
        {"operation": "MERGE", "user": "ann", "tags": ["v1"], "kind": "merge", "removed_rows": 4, "readable": "no"},
        {"schema_id": 1, "added_bytes": 1_234_567},
    )

    first, second = next(trace for trace in figure(rows).data if trace.name == "commits").hovertext

    assert first.split("<br>") == [
        "<b>version 0</b> 2026-01-01 00:00:00.000Z",
        "~ merge MERGE by ann",
        f"+10 {MINUS}4 rows",
        "files +1 -0",
        "bytes +1.0 kB -0 B",
        "total rows 10",
        "tags v1",
        "cannot be loaded",
    ]
    assert second.split("<br>")[-1] == "schema 1 since this version"
    assert "bytes +1.2 MB -0 B" in second


def test_versions_that_are_times_are_counted():
    days = [20261102220004, 20261103060001, 20261103220000]
    rows = commits(*({"version": day} for day in days))

    made = figure(rows)

    assert list(traces(made)["+ append"].x) == [0, 1, 2]
    assert made.layout.xaxis.ticktext == tuple(map(str, days))


def test_versions_beyond_what_a_browser_counts_stay_exact():
    start = 2**53 + 1
    rows = commits({"version": start}, {"version": start + 2})

    made = figure(rows)

    assert list(traces(made)["+ append"].x) == [0, 1]
    assert made.layout.xaxis.ticktext == (str(start), str(start + 2))
    reported = next(trace for trace in made.data if trace.name == "commits").hovertext
    assert reported[1].startswith(f"<b>version {start + 2}</b>")


@pytest.mark.parametrize("count", [1, 5, 1_001])
def test_a_figure_of_so_many_commits_has_them_all(count):
    rows = many(count, kind="merge", removed_rows=2)

    made = figure(rows)

    assert len({*traces(made)["~ merge"].x.tolist()}) == count
    assert orjson.loads(made.to_json())["layout"]["xaxis2"]["rangeslider"]["visible"] is True


def test_no_commits_make_an_empty_figure():
    made = figure(COMMITS.empty_table())

    assert made.data == ()
    assert made.layout.annotations[0].text == "no commits"
    assert "no versions" in repr(timeline(COMMITS.empty_table(), y="rows", title="History").figure)


def test_the_order_of_the_rows_does_not_matter():
    rows = many(7, kind="update")

    assert figure(rows).to_json() == figure(rows.take(pa.array(range(7)[::-1]))).to_json()


def test_ten_thousand_commits_are_small_and_the_same_each_time():
    rows = many(10_000, removed_rows=12_345, added_rows=1_000_000)

    made = figure(rows).to_json()

    assert len(made) < 700_000
    assert made == figure(rows).to_json()
    assert "bdata" in made


def test_of_many_commits_those_that_tell_nothing_are_marked():
    rows = pa.concat_tables([many(1_000), commits({"version": 5_000, "added_rows": None, "committed_at": None})])

    made = figure(rows)

    assert len({*traces(made)["+ append"].x.tolist()}) == 1_000
    assert list(traces(made)["? rows not counted"].x) == [5_000]


def test_a_picture_is_a_figure_with_a_table_beside_it():
    rows = commits(
        {}, {"kind": "overwrite", "added_rows": 5, "removed_rows": 5}, {"added_rows": 0}, {"added_rows": None}
    )
    picture = timeline(rows, y="rows", title="History of orders", total=9)

    shown = picture.figure._repr_mimebundle_()

    assert set(shown) == {PLOTLY, "text/html", "text/plain"}
    assert set(shown[PLOTLY]) == {"data", "layout", "config"}
    lines = shown["text/plain"].splitlines()
    assert lines[0] == "History of orders"
    assert [line.split()[4] for line in lines[3:7]] == ["?", "0", "?", "+" * 24]
    assert lines[-1] == "4 of 9 versions"
    assert "4 of 9 versions" in picture.figure.layout.title.text
    assert "<table" in shown["text/html"]
    assert repr(picture.figure) == shown["text/plain"]


def compared(**files):
    words = ("in A", "shared", "removed", "removed, rearranged", "added", "added, rearranged", "in B")
    counts = dict.fromkeys(words, 0) | {word.replace("_", ", "): count for word, count in files.items()}
    return pa.table([list(words), *[pa.array([counts[word] for word in words], pa.int64())] * 3], schema=COMPARED)


def partition(name, **facts):
    return {"partition": [("dt", name)], "bucket": None, "removed_files": 0, "added_files": 0} | facts


def partitions(*rows):
    return pa.Table.from_pylist(list(rows), COMPARED_PARTITIONS)


def texts_of(svg):
    return [text.text for text in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_what_is_rewritten_stands_apart():
    svg = difference_svg(
        compared(shared=4, removed=5, removed_rearranged=3, added=2, added_rearranged=1), partitions(), title="A to B"
    )

    names = ["removed", "added", "rewritten: removed", "rewritten: added", "shared"]
    assert [text for text in texts_of(svg) if text in names] == names
    begin = texts_of(svg).index("files")
    assert texts_of(svg)[begin:] == [
        *("files", "2", "1", "3", "1", "4"),
        *("bytes", "2 B", "1 B", "3 B", "1 B", "4 B"),
        "no partition differs",
    ]


def test_an_unknown_size_is_shown_as_unknown():
    summary = compared(shared=1).set_column(3, COMPARED.field(3), pa.nulls(7, pa.int64()))

    assert texts_of(difference_svg(summary, partitions(), title="A to B")).count("?") == 5


def test_partitions_that_differ_most_are_drawn_and_the_rest_is_said():
    rows = [partition(f"day {at}", added_files=at, removed_files=1) for at in range(300)]

    svg = difference_svg(compared(added=1), partitions(*rows), title="A to B")

    days = [text for text in texts_of(svg) if text and text.startswith("dt=day")]
    assert (days[:2], len(days)) == (["dt=day 299", "dt=day 298"], 20)
    assert "the 20 of 300 partitions and buckets that differ most" in svg
    assert "dt=day 299\nremoved files: 1\nadded files: 299\n" in svg


def test_names_of_partitions_are_text():
    rows = [partition(EVIL * 50 + str(at), added_files=1) for at in range(3)]

    svg = difference_svg(compared(added=3), partitions(*rows), title=EVIL)

    assert len([*ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")]) == 3
    assert "<a" not in svg


def test_totals_are_stepped_lines_with_gaps():
    totals = pa.table(
        {"version": [1, 2], "files": [3, 4], "rows": pa.array([5, None], pa.int64()), "size_bytes": [7, 8]}
    )

    made = totals_figure(totals, title="Lifetimes")

    assert [trace.name for trace in made.data] == ["files", "rows", "bytes"]
    assert [str(one) for one in made.data[1].y] == ["5.0", "nan"]
    assert {trace.line.shape for trace in made.data} == {"hv"}
    assert len(totals_figure(totals.slice(0, 0), title="Nothing").data) == 3


def test_marks_have_their_rule_on_hover_in_a_long_history_too():
    marks = [{"version": 5, "measure": one, "column": "<b>", "rule": f"{one} of <b> changed"} for one in ("min", "max")]
    marks += [{"version": at, "measure": "rows", "rule": "rows changed"} for at in range(100, 130)]

    found = timeline(many(1_001), y="rows", title="History", anomalies=pa.Table.from_pylist(marks, ANOMALIES))

    (mark,) = [trace for trace in found.figure.data if trace.name == "jump"]
    assert list(mark.x) == [5, *range(100, 130)]
    assert mark.customdata[0] == "jump: min of &lt;b&gt; changed<br>jump: max of &lt;b&gt; changed"
    assert "11 more versions are marked; table.anomalies() has the rules of all." in repr(found.figure)


def test_bars_far_above_all_others_are_cut_and_say_how_high_they_are():
    rows = commits(*({"added_rows": 90_000 if at == 20 else 100 + at, "removed_rows": at} for at in range(40)))

    layout = figure(rows).layout

    assert 200 < layout.yaxis.range[1] < 300
    assert [(mark.x, mark.text) for mark in layout.annotations] == [(20, "90k")]
    assert not figure(many(7)).layout.annotations


def test_dates_are_below_the_totals():
    days = [1_767_225_600_000 + at * 6 * 3_600_000 for at in range(40)]

    dates = figure(commits(*({"committed_at": day} for day in days))).layout.xaxis2
    unknown = figure(commits({"committed_at": None})).layout.xaxis2

    assert (dates.ticktext[0], dates.ticktext[-1], len(dates.tickvals)) == ("2026-01-01", "2026-01-10", 7)
    assert figure(commits({}, {})).layout.xaxis2.ticktext == ("00:00:00", "")
    assert unknown.ticktext is None


def test_tooltips_name_versions_that_are_counted():
    days = [20261102220004033, 20261103060001914]
    values = pa.array([1, 2], pa.int64())
    columns = {"version": pa.array(days, pa.int64()), "files": values, "rows": values, "size_bytes": values}

    made = totals_figure(pa.table(columns), title="t")

    assert {trace.hovertext for trace in made.data} == {tuple(map(str, days))}
    assert all(trace.hovertemplate.startswith("version %{hovertext}<br>") for trace in made.data)
