"""Tables whose names and values are hostile: harmless and legible in the explorer."""

import json
import re

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.jupyter.explorer import Explorer
from snapshot_explorer.view import Line, Pairs
from tests.inner.view import stored_details
from tests.support.delta.table_builder import DeltaTable
from tests.support.explorers import all_texts, grid_of
from tests.support.paimon.table_builder import PaimonTable

EVIL = "<img src=x onerror=alert(1)>\"'&<script>alert(2)</script>"
TURNED = "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe"
LONG = "n" * 300
LARGE = 2**63 - 1
OWN = '<img class="sx-picture" src="data:image/png;base64,'
"""The start of the picture of commits."""


@pytest.fixture
def explorer(memory_root):
    fields = [("id", "long"), *((name, "string") for name in (EVIL, TURNED, LONG))]
    table = DeltaTable(*memory_root, fields=fields, configuration={EVIL: EVIL})
    table.append([(LARGE, EVIL, TURNED, LONG)], operation=EVIL)
    info = {
        "userName": EVIL,
        "operationParameters": {EVIL: EVIL},
        "operationMetrics": {EVIL: TURNED},
        "engineInfo": EVIL,
    }
    table.commit(table.data("b.parquet", [(1, "a", "b", "c")]), operation=EVIL, info=info)
    made = Explorer(open_table(table.url), name="t", variables={}).wait()
    yield made
    made.close()


@pytest.mark.parametrize("tab", ["commit", "manifests", "compare", "data", "files", "branches", "health"])
def test_no_view_holds_markup_of_the_tables(explorer, tab):
    explorer.state.tab, explorer.state.statistics = tab, True
    explorer.choose(f"no{EVIL}{TURNED}")
    explorer.wait()

    bundle = explorer._repr_mimebundle_()
    page = bundle["text/html"]

    assert explorer.views[tab].error == ""
    assert not re.search(r"<(img|script)", page.replace(OWN, ""))
    # The page sets texts as texts: what it receives must only be legible.
    texts = [*all_texts(explorer.page), *all_texts(explorer.view), *all_texts(explorer.listed)]
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in "".join([page, bundle["text/plain"], *texts])
    assert "no<img" in explorer.page["note"]


def test_hostile_rows_are_legible_and_numbers_exact(explorer):
    explorer.state.tab = "data"
    explorer.wait()

    names, rows = grid_of(explorer, "data")

    assert names[:3] == ["id", EVIL, "\\u202egnp.exe"]  # set as text
    assert max(rows) == [str(LARGE), EVIL, "\\u202egnp.exe", "n" * 79 + "…"]
    grid = explorer.views["data"].grid.content
    assert (grid["columns"][0]["min"], grid["columns"][0]["max"]) == ("1", str(LARGE))
    assert [text for _, _, text in grid["page"]["full"]] == [LONG]


def test_hostile_names_do_not_leave_the_code_that_is_shown(explorer):
    explorer.state.columns, explorer.state.where = [EVIL, TURNED], f"id = 1 -- {EVIL}"
    explorer.wait()

    explorer.state.tab = "data"
    explorer.wait()

    line = explorer.view["load"]["line"]

    assert line.startswith("df = ")
    assert "\\u202e" in line


def test_tags_are_flags_without_markup(memory_root):
    table = PaimonTable(*memory_root)
    table.commit([(1, EVIL)])
    table.tag("<b>tag", 1)
    explorer = Explorer(open_table(f"memory://{table.root}"), variables={}).wait()

    (flags,) = explorer.commits["flags"]

    assert flags["labels"] == ["<b>tag"]  # drawn as text
    assert "<b>tag" not in explorer._repr_mimebundle_()["text/html"]
    explorer.close()


def test_five_hundred_columns_are_cut_and_that_is_said(memory_root):
    table = DeltaTable(*memory_root, fields=[(f"c{number}", "long") for number in range(500)])
    table.append([tuple(range(500))])
    explorer = Explorer(open_table(table.url), variables={}).wait()

    explorer.state.tab = "data"
    explorer.wait()
    assert len(grid_of(explorer, "data")[0]) == 50
    assert "50 of 500 columns are shown. Choose others under Columns." in all_texts(explorer.view)
    assert len(str(explorer.view)) < 100_000

    explorer.state.tab, explorer.state.statistics = "files", True
    explorer.wait()
    assert explorer.views["files"].error == ""
    assert len(str(explorer.view)) < 100_000
    explorer.close()


@pytest.mark.parametrize(
    "details",
    [None, "", "no JSON", "[" * 100_000, '{"a":' * 5_000, "3", json.dumps({"x" * 500: "y" * 5_000}), '{"a": NaN}'],
)
def test_details_of_any_shape_are_reported_shortly(details):
    for pairs in stored_details(details)[1::2]:
        for name, value in pairs.rows:
            assert len(name) <= 400
            assert value is None or len(str(value)) <= 400


def test_large_numbers_in_details_stay_as_they_are():
    assert stored_details('{"id": 9223372036854775807, "b": {"c": 1e400}}') == (
        Line("As it is stored:"),
        Pairs((("id", "9223372036854775807"), ("b.c", "1e400"))),
    )
