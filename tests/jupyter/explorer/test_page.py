"""An explorer as one file: what is recorded, within its bound, harmless and without secrets."""

import json
import re

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.jupyter.explorer import Explorer
from tests.inner.jupyter import changed_rows, recording
from tests.inner.table import ReadLimits
from tests.support.delta.table_builder import DeltaTable
from tests.support.explorers import recorded
from tests.support.paimon.table_builder import PaimonTable

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&]]><!--"
TURNED = "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe"


@pytest.fixture
def to_page(tmp_path):
    """Write the page of a table, and return it as text."""

    def write(table, versions=3, **state):
        explorer = Explorer(table, name="t").wait()
        for name, value in state.items():
            setattr(explorer.state, name, value)
        target = explorer.wait().to_html(tmp_path / "page.html", versions=versions, overwrite=True)
        explorer.close()
        return target.read_text("utf-8")

    return write


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    explorer = Explorer(open_table(samples.path("orders")), name="orders").wait()
    explorer.choose(5, "a")
    target = explorer.to_html(tmp_path_factory.mktemp("page") / "orders.html", versions=2)
    assert (explorer.state.a, explorer.state.b, explorer.state.tab) == (5, 18, "commit")
    explorer.close()
    return target.read_text("utf-8")


def test_a_page_has_the_newest_versions_their_neighbors_and_the_pinned_pair(page):
    contents = recorded(page)

    assert len(page.encode()) < 400_000
    assert len(contents["commits"]["versions"]) == len(contents["measure bytes"]["rows"]) == 18
    assert [name for name in contents if name.startswith("data ")] == ["data 18", "data 17"]
    assert [name for name in contents if name.startswith("rows ")] == [
        "rows 17 18",
        "rows 16 17",
        "rows 5 18",
        "rows 5 17",
    ]
    assert contents["compare 16 17 overview"]["code"] == "orders.compare(16, 17)"
    assert any(name.startswith("entries ") for name in contents)
    assert len(contents["data 18"]["grid"]["page"]["cells"][0]) == 41
    assert {"branches", "files lifetimes", "health retention", "health health 17"} <= contents.keys()
    assert "the views of 2 versions" in contents["explorer"]["page"]["recorded"]
    assert contents["explorer"]["a"] == "5"


def test_a_page_counts_the_rows_that_its_newest_versions_changed(page, to_page, monkeypatch):
    changes = {row["version"]: row["change"] for row in recorded(page)["measure rows"]["rows"]}

    assert (changes["18"], changes["17"]) == ("no row changed", "\N{MINUS SIGN}6 rows")
    assert changes["16"] == "rows not counted (5 written)"  # the page has the views of two versions

    monkeypatch.setattr(changed_rows, "_SMALL", ReadLimits(rows=90, size_bytes=10**6))
    large = recorded(to_page(open_table(samples.path("orders")), versions=2))

    assert large["measure rows"]["rows"][0]["change"] == "rows not counted (41 written)"


def test_a_page_loads_nothing_and_runs_only_its_own_script(page):
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)

    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert re.findall(r"https?:[^\s'\"]+", policy) == []
    assert "unsafe" not in policy
    assert re.findall(r"<(?:link|iframe|img|object|embed)\b", page.partition("<script")[0]) == []


def test_ranks_sort_a_grid_as_the_explorer_does(to_page, memory_root):
    table = DeltaTable(*memory_root, fields=[("id", "long"), ("name", "string")])
    table.append([(10, "b"), (9, None), (None, "a"), (9, "c")])

    grid = recorded(to_page(open_table(table.url)))["data 1"]["grid"]

    assert grid["ranks"] == [[2, 1, None, 1], [2, None, 1, 3]]


def test_what_a_table_says_is_text(to_page, memory_root):
    fields = [("id", "long"), (EVIL, "string"), (TURNED, "string")]
    table = DeltaTable(*memory_root, fields=fields, configuration={EVIL: EVIL})
    table.append([(1, EVIL, TURNED)], operation=EVIL)
    info = {"userName": EVIL, "operationParameters": {EVIL: EVIL}, "userMetadata": EVIL}
    table.commit(table.data("b.parquet", [(2, "a", "b")]), operation=EVIL, info=info)

    page = to_page(open_table(table.url))

    assert page.count("<script") == page.count("</script") == 2
    assert "onerror" not in page
    assert TURNED[0] not in json.dumps(recorded(page), ensure_ascii=False)
    assert EVIL in json.dumps(recorded(page), ensure_ascii=False).replace('\\"', '"')


def test_a_name_of_a_table_is_text(to_page, memory_root):
    filesystem, root = memory_root
    table = PaimonTable(filesystem, f"{root}/<b>t&")
    table.commit([(1, "a")])

    page = to_page(open_table(f"memory://{table.root}"))

    assert "<title>&lt;b&gt;t&amp;: explorer</title>" in page


def test_recording_stops_at_the_bound_and_says_what_is_there(to_page, memory_root, monkeypatch):
    table = DeltaTable(*memory_root)
    for number in range(3):
        table.append([(number, "a")])
    bound = len(to_page(open_table(table.url), versions=1)) + 13_000  # of which the head has most
    monkeypatch.setattr(recording, "MOST_BYTES", bound)

    page = to_page(open_table(table.url), versions=4)
    contents = recorded(page)

    views = [name for name in contents if name.startswith("commit ")]
    assert len(page.encode()) <= bound
    assert 0 < len(views) < 4
    assert views[0] == "commit 3"
    assert f"4 of 4 commits; the views of {len(views)} version" in contents["explorer"]["page"]["recorded"]


def test_a_version_that_cannot_be_read_is_recorded_with_its_reason(to_page, memory_root):
    table = DeltaTable(*memory_root)
    table.append([(1, "a")])
    table.append([(2, "b")])
    opened = open_table(table.url)
    for path in memory_root[0].glob(f"{memory_root[1]}/**/*.parquet"):
        memory_root[0].rm(path)

    contents = recorded(to_page(opened))

    assert "does not exist" in contents["data 1"]["error"]
    assert contents["commit 1"]["error"] == ""


def test_a_table_without_a_version_and_a_file_that_exists_are_refused(memory_root, tmp_path):
    empty = Explorer(open_table(f"memory://{PaimonTable(*memory_root).root}")).wait()
    with pytest.raises(InvalidArgumentError, match="Nothing has been committed"):
        empty.to_html(tmp_path / "empty.html")
    with pytest.raises(InvalidArgumentError, match="versions must be 1 or more, got 0"):
        empty.to_html(tmp_path / "empty.html", versions=0)
    empty.close()
    assert list(tmp_path.iterdir()) == []

    (tmp_path / "there.html").write_text("mine")
    with pytest.raises(InvalidArgumentError, match="exists"):
        empty.to_html(tmp_path / "there.html")


def test_the_state_is_what_the_page_begins_with(to_page):
    page = recorded(to_page(open_table(samples.path("invoices")), versions=1, tab="health", health="orphans", text="x"))

    head = page["explorer"]["page"]
    assert {name: head["state"][name] for name in ("tab", "health", "text")} == {
        "tab": "health",
        "health": "health",
        "text": "x",
    }
    assert "orphans" not in head["choices"]["health"]
    assert len(page["commits"]["versions"]) == len(page["measure rows"]["rows"]) == 5
