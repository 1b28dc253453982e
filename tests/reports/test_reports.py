"""Reports: one HTML file to hand over, without scripts and requests, below 500 kB, with hostile text escaped."""

import re
import shutil

import pyarrow as pa
import pytest

import snapshot_explorer as sx
from snapshot_explorer import check, report
from snapshot_explorer.analysis.repair import count_deleted_among
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.results import Frame
from tests.inner.terminal import main
from tests.support.delta.table_builder import DeltaTable, add, remove

INCIDENT = "7..8"


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    return sx.open_table(shutil.copytree(sx.samples.path("orders"), tmp_path_factory.mktemp("lake") / "orders"))


def references(page):
    """Return what a page could load or run: everything but its own style and an SVG's namespace."""
    page = page.replace('xmlns="http://www.w3.org/2000/svg"', "").replace('<img class="sx-picture" src="data:', "")
    return re.findall(r"https?://|<script|<link|<img|<iframe|@import|url\(|\bon\w+=", page)


def test_a_table_is_reported_with_the_incident_the_code_and_what_was_not_read(orders, tmp_path):
    file = report(tmp_path / "night.html", orders, between=INCIDENT, where="order_id = 42")
    page = file.read_text("utf-8")

    assert references(page) == []
    assert file.stat().st_size < 100_000
    headings = re.findall(r'aria-level="2">([^<]+)<', page)
    assert headings == [
        "Row diff of orders: version 7 to 8",
        "What happened to rows of orders where order_id = 42",
        "History of orders",
        "orders: version 7 to 8",
        "orders",
        "What was run",
        "What was not read",
    ]
    assert page.count("<img") == 1
    assert 'alt="rows inserted and deleted by versions 1 to 18, A at 7, B at 8"' in page
    assert ".compare(&#x27;7&#x27;, &#x27;8&#x27;)" in page
    assert "Whether data files exist was not checked" in page
    assert "default-src 'none'" in page
    assert "%snapshot" not in page.partition("History of orders")[0]


def test_results_of_any_sort_are_put_together(orders, tmp_path):
    bisection = orders.bisect("amount < 0", good=5, bad=8)
    lake = sx.open_lake(orders.path.rpartition("/")[0])

    results = (bisection, orders.compare(5, 8), orders.diff_rows(5, 8), lake, check(orders, "late"))

    page = sx.report(tmp_path / "r.html", *results).read_text("utf-8")

    assert "<h1>amount &lt; 0 holds first at version 8 of orders</h1>" in page
    assert "orders.compare(5, 8)" in page
    assert ".diff_rows(5, 8)" in page.partition("What was run")[2]
    assert "open_lake(" in page
    assert page.count("<svg") == 1
    assert references(page) == []


def test_a_part_that_cannot_be_read_says_so_and_the_rest_is_reported(tmp_path):
    payments = shutil.copytree(sx.samples.path("payments"), tmp_path / "payments")
    table = sx.open_table(str(payments))
    for file in payments.glob("**/*.parquet"):
        if "_delta_log" not in str(file):
            file.unlink()

    page = report(tmp_path / "r.html", table, between="20..21").read_text("utf-8")

    assert re.search(r'Rows that differ</div><img class="sx-picture"[^>]*><div>Not read: ', page)
    assert "payments: version 20 to 21" in page


def test_hostile_text_is_text_and_large_results_stay_small(tmp_path):
    hostile = "<script>alert(1)</script><img src=http://evil>"
    table = DeltaTable(None, tmp_path / "t", fields=((hostile, "string"),))
    for number in range(150):
        table.commit(add(f"f{number}", rows=number), operation=hostile)
    wide = {f"{hostile}{number}": [hostile * 10] * 2_000 for number in range(90)}

    file = sx.report(
        tmp_path / "r.html",
        sx.open_table(str(tmp_path / "t"), name=hostile),
        Frame(pa.table(wide), title=hostile, limit=2_000),
        title=hostile,
    )
    page = file.read_text("utf-8")

    assert re.findall(r"<(?:script|img)[^>]{,40}", page) == ['<img class="sx-picture" src="data:image/png;']
    assert hostile.replace("<", "&lt;").replace(">", "&gt;") in page
    assert file.stat().st_size < 500_000


def test_a_report_replaces_nothing_unasked_and_is_not_written_into_a_table(orders, tmp_path):
    file = tmp_path / "r.html"
    file.write_text("mine")

    for path, message in (
        (file, "exists. Choose another file, or replace it with overwrite=True."),
        (f"{orders.path}/r.html", "which is read-only"),
        (tmp_path / "no" / "r.html", "does not exist. Create it first."),
        ("s3://lake/r.html", "is a URL"),
    ):
        with pytest.raises(InvalidArgumentError, match=re.escape(message)):
            report(path, orders)
    assert file.read_text() == "mine"
    with pytest.raises(InvalidArgumentError, match="not int"):
        sx.report(tmp_path / "x.html", 7)
    with pytest.raises(InvalidArgumentError, match="A report needs results"):
        sx.report(tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()
    assert report(file, orders, overwrite=True).read_text("utf-8").startswith("<!DOCTYPE html>")


def test_the_terminal_writes_a_report(orders, tmp_path, capsys):
    file = tmp_path / "r.html"

    assert main(["report", orders.path, str(file), INCIDENT, "--title", "The night"]) == 0
    assert capsys.readouterr().out == f"Wrote {file}, {file.stat().st_size / 1000:,.0f} kB.\n"
    assert "<h1>The night</h1>" in file.read_text("utf-8")
    assert main(["report", orders.path, str(file)]) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_the_terminal_reports_on_all_tables_below_a_folder(orders, tmp_path, capsys):
    folder = orders.path.rpartition("/")[0]

    assert main(["report", folder, str(tmp_path / "r.html")]) == 0
    assert f"<h1>Lake {folder}" in (tmp_path / "r.html").read_text("utf-8")
    capsys.readouterr()
    assert main(["report", folder, str(tmp_path / "s.html"), INCIDENT]) == 2
    assert capsys.readouterr().err == "A..B is for a report on one table. Leave it out.\n"
    assert main(["log", folder]) == 2
    assert capsys.readouterr().err.endswith(f"Tables are below it: snapshot-explorer lake {folder} --list.\n")


def heading(table, between, folder, **options):
    page = report(folder / "h.html", table, between=between, overwrite=True, **options).read_text("utf-8")
    return re.search("<h1>(.*?)</h1>", page)[1]


def test_the_heading_of_a_report_on_two_versions_is_what_happened(orders, tmp_path):
    payments = sx.open_table(sx.samples.path("payments"))

    deleted = heading(payments, "17..18", tmp_path)
    several = heading(payments, "1..3", tmp_path)
    nothing = heading(payments, "8..9", tmp_path)

    assert deleted == "DELETE deleted 11 rows at version 18, 2026-11-09 10:00 UTC; not repaired"
    assert several == "2 commits inserted 19 rows and deleted 1 row from version 1 to 3, 2026-11-04 07:00 UTC"
    assert nothing == "payments: version 8 to 9"
    assert heading(orders, INCIDENT, tmp_path) == "3389c2bd updated 16 rows at version 8, 2026-11-06 03:00 UTC"
    assert heading(orders, "14..15", tmp_path).endswith(
        "deleted 13 rows at version 15, 2026-11-11 02:00 UTC; not repaired"
    )
    assert "where order_id = 42" in heading(orders, INCIDENT, tmp_path, where="order_id = 42")
    assert heading(payments, "17..18", tmp_path, title="mine") == "mine"


@pytest.mark.parametrize(
    ("later", "fate"),
    [([], "; not repaired"), ([3], "; 1 are back"), ([3, 4], "; repaired since"), ([9], "; not repaired")],
)
def test_whether_deleted_rows_are_there_again_is_looked_up_in_the_newest_version(tmp_path, later, fate):
    table = DeltaTable(None, tmp_path / "t", fields=[("id", "long")])
    table.append([(1,), (2,)])
    file = table.data("gone.parquet", [(3,), (4,)])
    table.commit(file)
    table.commit(remove("gone.parquet"), operation="DELETE")
    for number in later:
        table.append([(number,)])

    answer = heading(sx.open_table(tmp_path / "t"), "2..3", tmp_path)

    assert answer.startswith("DELETE deleted 2 rows at version 3")
    assert answer.endswith(f" UTC{fate}")


def test_deleted_rows_that_are_back_with_other_values_are_counted_apart(tmp_path):
    table = DeltaTable(None, tmp_path / "t", fields=[("id", "long"), ("name", "string")])
    table.append([(1, "Ada")])
    table.commit(table.data("gone.parquet", [(3, "Goro"), (4, "Elif"), (5, "Iris")]))
    table.commit(remove("gone.parquet"))
    table.append([(3, "Goro"), (4, "another")])
    opened = sx.open_table(tmp_path / "t")
    deleted, overall = (opened.diff_rows(2, b, key="id") for b in (3, 4))

    assert count_deleted_among(deleted, overall.deleted) == 1
    assert count_deleted_among(deleted, overall.before) == 2
