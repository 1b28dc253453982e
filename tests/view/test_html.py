import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.core.frames import COMMITS, FOUND_TABLES, UTC_MILLIS
from snapshot_explorer.results import Frame
from snapshot_explorer.view import (
    Code,
    Drawing,
    Grid,
    Item,
    Lane,
    LaneDiagram,
    Line,
    Pairs,
    mimebundle_of,
    render_html,
)
from tests.inner.view import COPY_SCRIPT

VOID = {"wbr"}
EVIL = "<script>alert(1)</script>"
LANES = Drawing(title="t", parts=(LaneDiagram(heads=("A", "B"), lanes=(), noun="files"),))


class Page(HTMLParser):
    """Reads HTML, insisting that every tag is closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def without_style(source: str) -> str:
    return re.sub(r"<style>.*?</style>", "", source)


def test_a_grid_is_a_table_with_column_headers_and_tooltips() -> None:
    rows = pa.table(
        [[17], [1_234_567]],
        schema=pa.schema(
            [
                pa.field("version", pa.int64()),
                pa.field("added_bytes", pa.int64(), metadata={"unit": "bytes", "meaning": "size of the added files"}),
            ]
        ),
    )

    drawn = render_html(Drawing(title="History", parts=(Grid(rows, total=3, noun="versions"),)))

    assert without_style(drawn) == (
        '<div class="sx"><div class="sx-title" role="heading" aria-level="3">History</div>'
        '<div class="sx-box" role="group" tabindex="0" aria-label="History">'
        '<table class="sx-table" aria-label="History"><thead><tr>'
        '<th scope="col" class="sx-n" align="right">version</th>'
        '<th scope="col" class="sx-n" align="right" title="added_bytes: size of the added files">+&nbsp;bytes</th>'
        "</tr></thead>"
        '<tbody><tr><td class="sx-n" align="right">17</td>'
        '<td class="sx-n" align="right" title="1,234,567 bytes">1.2 MB</td></tr></tbody>'
        '</table></div><div class="sx-said">1 of 3 versions</div></div>'
    )


def test_kinds_have_their_color_and_what_was_added_or_removed_a_bar() -> None:
    rows = pa.table(
        {"kind": ["append", "<b>"], "added_rows": [50, 0], "removed_rows": [None, 3], "added_version": [1, 2]}
    )

    drawn = render_html(Drawing(title="History", parts=(Grid(rows),)))

    assert re.findall("<td.*?</td>", without_style(drawn)) == [
        '<td class="sx-kind" style="--sx-kind:#009E73">append</td>',
        '<td class="sx-n sx-plus" style="--sx-part:100%" align="right">50</td>',
        '<td class="sx-n sx-0" align="right">-</td>',
        '<td class="sx-n" align="right">1</td>',
        '<td class="sx-kind">&lt;b&gt;</td>',
        '<td class="sx-n" align="right">0</td>',
        '<td class="sx-n sx-minus" style="--sx-part:100%" align="right">3</td>',
        '<td class="sx-n" align="right">2</td>',
    ]


def test_pairs_are_a_table_with_row_headers() -> None:
    drawn = render_html(Drawing(title="version 1", parts=(Pairs((("user", None), ("kind", "append"))),)))

    assert (
        '<tr><th scope="row" align="left">user</th><td class="sx-0">-</td></tr>'
        '<tr><th scope="row" align="left">kind</th><td>append</td></tr>'
    ) in drawn


def test_a_script_in_names_values_titles_and_meanings_is_text() -> None:
    schema = pa.schema([pa.field(EVIL, pa.string(), metadata={"meaning": f'">{EVIL}'})])
    grid = Grid(pa.table([[EVIL]], schema=schema), noun=EVIL, total=7)
    drawing = Drawing(title=EVIL, parts=(grid, Pairs(((EVIL, EVIL), ("m", {EVIL: EVIL}))), Line(EVIL)))

    page = Page(render_html(drawing))

    assert page.attributes("script") == []
    assert "".join(page.texts).count(EVIL) == 9
    assert page.attributes("th")[0]["title"] == f'">{EVIL}'


def test_a_script_in_the_items_of_lanes_is_text() -> None:
    item = Item(sign="+", name=EVIL, description=EVIL)
    lane = Lane(name=EVIL, rows=((item, None),), total=1)
    drawing = Drawing(title="t", parts=(LaneDiagram(heads=(EVIL, EVIL), lanes=(lane,), noun=EVIL),))

    page = Page(render_html(drawing))

    assert page.attributes("script") == []
    assert "".join(page.texts).count(EVIL) >= 4


def test_invisible_characters_are_made_visible() -> None:
    drawn = render_html(
        Drawing(title="\u202eevil", parts=(Line("zero\u200bwidth"), Grid(pa.table({"a\u2066": ["\n"]}))))
    )

    assert "\\u202eevil" in drawn
    assert "zero\\u200bwidth" in drawn
    assert ">a\\u2066<" in drawn
    assert "<td>\\n</td>" in drawn


def test_a_cut_cell_has_its_full_text_as_tooltip() -> None:
    path = "bucket-0/" + "a" * 120 + ".parquet"

    drawn = render_html(Drawing(title="t", parts=(Grid(pa.table({"path": [path]})),)))

    assert f'title="{path}"' in drawn
    assert "aaaa.parquet</td>" in drawn


def test_the_same_drawing_gives_the_same_bytes() -> None:
    drawing = Drawing(title="t", parts=(Grid(pa.table({"n": [1]})),))

    assert render_html(drawing) == render_html(drawing)


def test_there_is_no_script_but_the_one_that_copies_and_no_outside_resource() -> None:
    parts = (Grid(pa.table({"path": [EVIL]})), Line("x"), Code(EVIL), Pairs((("p", (Code("a"), Code("b"))),)))
    drawing = Drawing(title="t", parts=parts)

    drawn = mimebundle_of(drawing)["text/html"]
    assert drawn.count(COPY_SCRIPT) == 1
    assert Page(drawn).texts.count(EVIL) == 2
    drawn = drawn.replace(COPY_SCRIPT, "")

    assert drawn.count('<code class="sx-copy') == 4
    assert "<script" not in render_html(drawing)
    assert "<script" not in mimebundle_of(LANES)["text/html"]

    assert not re.search(r"<script|url\(|@import|https?:|src=|href=|\bon\w+=", drawn)


def test_every_style_rule_is_scoped_to_our_class() -> None:
    style = "".join(re.findall(r"<style>(.*?)</style>", render_html(LANES)))

    selectors = [part for block in re.findall(r"([^{}]+)\{", style) for part in block.split(",")]

    assert all(re.search(r"(^|\s)\.sx( |$)", selector) for selector in selectors)
    for theme in ("html[theme=dark]", "body[data-theme=dark]", ".vscode-dark", "[data-jp-theme-light=false]"):
        assert f"{theme} .sx" in selectors
    assert "var(--jp-layout-color0,var(--vscode-editor-background,#fff))" in style


def test_lanes_bring_their_style_and_other_drawings_do_not() -> None:
    lanes = render_html(LANES)

    assert ".sx-lanes" in "".join(re.findall(r"<style>(.*?)</style>", lanes))
    assert "lane" not in render_html(Drawing(title="t", parts=(Grid(pa.table({"n": [1]})), Line("x"))))


def test_twenty_commits_stay_small() -> None:
    row = {
        "version": 1234,
        "committed_at": 1793534400123,
        "readable": "yes",
        "kind": "append",
        "operation": "APPEND",
        "added_files": 12,
        "removed_files": 3,
        "added_rows": 1_234_567,
        "removed_rows": 1_234_567,
        "total_rows": 123_456_789,
        "tags": ["monthly"],
    }
    frame = Frame(pa.Table.from_pylist([row] * 30, COMMITS).select(list(row)), title="History", noun="versions")

    assert len(mimebundle_of(frame)["text/html"]) < 15_000


@given(st.text(max_size=100), st.text(max_size=100), st.text(max_size=300) | st.none())
def test_any_content_stays_content(title: str, name: str, value: str | None) -> None:
    grid = Grid(pa.table([pa.array([value], pa.string())], names=[name]))

    page = Page(render_html(Drawing(title=title, parts=(grid, Pairs(((name, value),)), Line(title)))))

    assert {tag for tag, _ in page.tags} - {"wbr", "span", "bdi"} == {
        "div",
        "style",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }


def test_text_that_fades_is_there_in_full() -> None:
    value = "a value that nobody can take in at a glance" * 4

    drawn = render_html(Drawing(title="t", parts=(Grid(pa.table({"note": [value]})),)))

    assert f'<td><span class="sx-fade" tabindex="0" title="{value}">{value}</span></td>' in drawn


def test_times_have_the_exact_value_as_a_tooltip() -> None:
    time = datetime(2026, 11, 6, 3, 0, 0, 444_000, tzinfo=UTC)
    rows = pa.table([pa.array([time], UTC_MILLIS)], pa.schema([COMMITS.field("committed_at")]))

    drawn = render_html(Drawing(title="t", parts=(Grid(rows),)))

    assert '<td title="2026-11-06 03:00:00.444Z">2026-11-06 03:00:00</td>' in drawn


def test_bars_of_equal_length_are_not_drawn() -> None:
    drawn = render_html(Drawing(title="t", parts=(Grid(pa.table({"added_rows": [7, 7]})),)))

    assert "--sx-part" not in without_style(drawn)


def test_the_bundle_holds_text_and_html() -> None:
    drawing = Drawing(title="t", parts=(Grid(pa.table({"n": list(range(9))})),))

    bundle = mimebundle_of(drawing, limit=2)

    assert list(bundle) == ["text/plain", "text/html"]
    assert all("2 of 9 rows" in said for said in bundle.values())


def test_names_that_are_there_to_be_copied_are_whole():
    name = f"shop.db/{'deep/' * 20}orders"
    rows = pa.table({"name": [name]}, pa.schema([FOUND_TABLES.field("name")]))

    assert f">{name}</td>" in render_html(Drawing(title="t", parts=(Grid(rows, total=1, noun="tables"),)))


def test_a_name_from_right_to_left_is_isolated():
    drawing = Drawing(title="Files of שלום 3 of 17", parts=(Line("مرحبا بك & <b> at version 3"),))

    shown = render_html(drawing)

    assert "Files of <bdi>שלום</bdi> 3 of 17" in shown
    assert "<bdi>مرحبا بك</bdi> &amp; &lt;b&gt; at version 3" in shown
