"""Rows in an explorer: those that differ between A and B, blame, and bisecting a condition."""

import re
import shutil
import threading
import time

import pyarrow as pa
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.jupyter.explorer import Explorer
from snapshot_explorer.view import Grid, drawing_of
from tests.inner.core import step
from tests.inner.jupyter import version_rows, view_requests
from tests.inner.table import ReadLimits
from tests.inner.view import shown_columns
from tests.support.delta.table_builder import DeltaTable, remove
from tests.support.explorers import grid_of, outcome, pressed, shown_text, typed
from tests.support.paimon.table_builder import PaimonTable


@pytest.fixture
def compared(explorer):
    """An explorer that shows the rows that differ between versions 7 and 8: eight amounts are negated."""
    state = explorer.state
    state.a, state.b, state.tab = 7, 8, "rows"
    return explorer.wait()


@pytest.fixture
def payments():
    made = Explorer(open_table(samples.path("payments")), name="payments").wait()
    yield made
    made.close()


def changes(explorer, place="rows"):
    """Return the lines of the rows that are shown."""
    return [line for line in shown_text(explorer, place).splitlines() if line[:2] in ("~ ", "+ ", "- ")]


def blamed(explorer):
    return explorer.views["blame"].text


def bisected(explorer):
    return outcome(explorer, "bisect")


def test_few_rows_are_compared_at_once_with_changed_cells_marked(compared, orders):
    said, diff = shown_text(compared, "rows"), orders.diff_rows(7, 8)

    assert said.startswith("Row diff of orders: version 7 to 8: 16 rows updated\n")
    assert " key order_id " in said
    assert len(changes(compared)) == sum(diff.counts.values())
    assert "67.04 → -67.04" in said
    names, rows = grid_of(compared, "rows")
    assert names[:2] == ["change", "order_id"]
    marked = compared.views["rows"].grid.content["page"]["marked"]
    assert [" → " in rows[row][column] for row, column in marked] == [True] * said.count(" → ")
    assert not compared.view["isAnnouncement"]
    assert [tile["name"] for tile in compared.view["tiles"] if tile["moved"]] == ["updated_at", "amount"]


def test_the_line_of_code_gives_the_rows_that_are_shown_and_the_source_is_cited(compared, orders):
    found = eval(compared.code, {"orders": orders})

    assert compared.code == "orders.diff_rows(7, 8)"
    assert sum(found.counts.values()) == len(changes(compared))
    assert compared.view["source"].startswith(f"{orders.path}, version 7 of ")


@pytest.mark.parametrize(("kind", "sign"), [("inserted", "+"), ("deleted", "-"), ("updated", "~")])
def test_changed_rows_are_filtered_by_kind(compared, orders, kind, sign):
    compared.state.a, compared.state.b = 5, 18
    typed(compared, row_kind=kind)

    shown = changes(compared)

    assert len(shown) == orders.diff_rows(5, 18).counts[kind]
    assert {line[0] for line in shown} == {sign}


def test_columns_that_no_updated_row_changes_are_hidden(compared):
    typed(compared, hide_unchanged=True)

    said = shown_text(compared, "rows")

    assert "columns that no updated row changes." in said
    head = next(line for line in said.splitlines() if line.startswith("change "))
    assert head.split() == ["change", "order_id", "amount", "updated_at"]


def test_inserted_rows_have_no_column_to_hide(compared):
    compared.state.a, compared.state.b = 5, 18
    compared.state.hide_unchanged, compared.state.row_kind = True, "inserted"
    compared.wait()

    said = shown_text(compared, "rows")

    assert "No column is hidden: inserted and deleted rows have no unchanged columns." in said
    assert "channel" in said


def test_without_a_primary_key_columns_may_be_named_as_the_key(payments):
    payments.state.a, payments.state.tab = 5, "rows"
    payments.wait()
    assert "There is no primary key." in shown_text(payments, "rows")
    assert payments.view["suggestedKey"] == "payment_id"
    assert payments.code == "payments.diff_rows(5, 21)"
    assert payments.state.rows_where == ""

    typed(payments, key=["payment_id"])

    assert "pending → settled" in shown_text(payments, "rows")
    assert payments.code == "payments.diff_rows(5, 21, key=['payment_id'])"
    assert payments.state.rows_where == '"payment_id" = 4'


def test_a_key_that_does_not_fit_is_reported_in_a_line(compared):
    compared.state.key = ["color"]
    compared.wait()

    error = compared.views["rows"].error
    assert error.startswith("Unknown column 'color' in key.")
    assert "\n" not in error


def test_versions_with_the_same_rows_are_reported_as_such(compared):
    compared.state.a = 8
    compared.wait()

    assert shown_text(compared, "rows").startswith("Row diff of orders: version 8 to 8: No row differs\n")


def test_what_is_large_by_the_settings_is_announced_and_read_by_a_button(orders, shell):
    shell.ok("%config SnapshotMagics.load_row_limit = 10")
    explorer = Explorer(orders, name="orders").wait()
    explorer.state.a, explorer.state.tab = 5, "rows"
    explorer.wait()

    said = shown_text(explorer, "rows")
    assert said.startswith("Row diff of orders: version 5 to 18, not read\n")
    assert orders.diff_rows(5, 18, preview=True).announcement in " ".join(said.split())
    assert explorer.view["isAnnouncement"]

    pressed(explorer, "Compare rows")
    assert "24 rows inserted, 16 deleted, 8 updated" in shown_text(explorer, "rows")
    assert not explorer.view["isAnnouncement"]

    explorer.state.b = 17
    explorer.wait()
    assert ", not read" in shown_text(explorer, "rows")
    explorer.state.tab = "commit"
    explorer.close()


def test_comparing_rows_is_cancelled_and_can_be_requested_again(orders, shell, monkeypatch):
    shell.ok("%config SnapshotMagics.load_row_limit = 10")
    compare, is_slow = view_requests.row_diff, [True]

    def slowly(plan):
        with step("Reading splits", total=1_000) as reading:
            for _ in range(200 * is_slow.pop()):
                time.sleep(0.05)
                reading.advance()
        return compare(plan)

    monkeypatch.setattr(view_requests, "row_diff", slowly)
    explorer = Explorer(orders).wait()
    explorer.state.a, explorer.state.tab = 5, "rows"
    explorer.wait()

    explorer.receive({"act": "compare rows"})
    assert ", not read" in shown_text(explorer, "rows")
    explorer.receive({"cancel": "rows"})
    explorer.wait()

    assert explorer.state.rows_read is None
    assert ", not read" in shown_text(explorer, "rows")
    assert explorer.view["isAnnouncement"]
    is_slow.append(False)
    pressed(explorer, "Compare rows")
    assert "24 rows inserted" in shown_text(explorer, "rows")
    explorer.close()


def heads(explorer):
    return explorer._cache.known_row_diff(1, 2, ()).changed.heads


def test_many_changed_rows_come_in_pages_and_what_is_left_out_is_said(memory_root):
    table = PaimonTable(*memory_root)
    table.commit([(1, "a")])
    table.commit([(key, "b") for key in range(1_200)])
    explorer = Explorer(open_table(f"memory://{table.root}")).wait()
    explorer.state.tab = "rows"
    explorer.wait()
    grid = explorer.views["rows"].grid

    assert grid.content["count"] == sum(len(rows) for rows in heads(explorer).values())
    assert "The first 1,000 of 1,2" in shown_text(explorer, "rows")
    assert re.fullmatch(
        r"Sorts, filters and counts only these 1,\d{3} of 1,2\d\d changed rows\.", grid.content["sample"]
    )
    assert len(changes(explorer)) == 50
    sent = []
    explorer.send = sent.append
    explorer.receive({"grid": {"place": "rows", "need": 960}})
    assert sent[0]["grid"] == "rows"
    assert sent[0]["page"]["cells"][1][:2] == ["960", "961"]
    explorer.close()


@pytest.fixture
def many(tmp_path, monkeypatch):
    """An explorer of 3,000 rows in three files, more than are held: it reads parts of 960."""
    monkeypatch.setattr(version_rows, "HELD_VALUES", 1_000)
    table = DeltaTable(None, tmp_path, fields=[("id", "long"), ("name", "string"), ("amount", "double")])
    for file in range(3):
        values = [(at, [None, "-", "b", "c"][at % 4], at / 2) for at in range(file * 1_000, file * 1_000 + 1_000)]
        table.commit(table.data(f"{file}.parquet", values))
    made = Explorer(open_table(str(tmp_path)), name="many").wait()
    made.answers = []
    made.send = lambda content, _=None: made.answers.append(content)
    made.state.tab = "data"
    yield made.wait()
    made.close()


def scrolled(explorer, start, column=0):
    """Return the first two texts of a column, at a place to which the page scrolls."""
    explorer.receive({"grid": {"place": "data", "need": start}})
    explorer.wait()
    page = explorer.answers[-1]["page"]
    assert page["start"] == start
    return page["cells"][column][:2]


def test_a_page_scrolls_through_all_rows_of_a_version(many):
    grid = many.view["grid"]

    assert many.view["title"] == "All 3,000 rows of version 3"
    assert (grid["total"], grid["count"]) == (3_000, 3_000)
    assert grid["sample"] == "The ranges, the bars and saved files cover the first 960 of 3,000 rows."
    assert scrolled(many, 60) == ["60", "61"]
    assert scrolled(many, 2_940) == ["2940", "2941"]
    assert many.code == "many.at(3).to_arrow()"


def test_scrolling_does_not_end_a_comparison_of_rows_that_still_reads(many, monkeypatch):
    goes_on, compare = threading.Event(), view_requests.row_diff

    def slow(plan):
        assert goes_on.wait(60)
        return compare(plan)

    monkeypatch.setattr(view_requests, "row_diff", slow)
    many.state.tab = "rows"
    many.state.tab = "data"
    many._work.wait(60, but_for=("rows",))
    many.receive({"grid": {"place": "data", "need": 960}})
    many._work.wait(60, but_for=("rows",))
    goes_on.set()
    many.wait()
    many.state.tab = "rows"
    many.wait()

    assert many.busy == {}
    assert "1,000 rows inserted" in shown_text(many, "rows")


def test_rows_are_sorted_and_filtered_over_all_of_them(many):
    many.receive({"grid": {"place": "data", "arrange": {"sort": 2, "descending": True}}})
    many.wait()

    assert many.view["grid"]["how"]["sort"] == 2
    assert grid_of(many, "data")[1][0][0] == "2999"
    assert scrolled(many, 1_980) == ["1019", "1018"]
    assert many.code == "many.at(3).to_arrow().sort_by([('amount', 'descending')])"

    typed(many, where="name = 'b'")
    assert many.view["title"] == "750 of 3,000 rows match at version 3"
    assert grid_of(many, "data")[1][0][0] == "2998"

    many.receive({"grid": {"place": "data", "arrange": {"sort": None}}})
    many.wait()
    assert many.state.sort == ""
    assert grid_of(many, "data")[1][0][0] == "2"


def test_equal_values_and_nulls_are_read_in_parts_in_the_order_of_the_scan(many):
    for descending, starts in ((False, ["1", "5"]), (True, ["3", "7"])):
        many.receive({"grid": {"place": "data", "arrange": {"sort": 1, "descending": descending}}})
        many.wait()

        assert [row[0] for row in grid_of(many, "data")[1][:2]] == starts
        assert scrolled(many, 2_280) == ["120", "124"]  # nulls are last: the first is place 2,250


def test_columns_are_chosen_by_their_places(many):
    many.receive({"columns": [2, 0]})
    many.wait()

    assert grid_of(many, "data")[0] == ["amount", "id"]
    assert [is_shown for _, _, is_shown in many.view["columns"]] == [True, False, True]
    for places in ([7], [True], "id", [-1]):
        many.receive({"columns": places})
    assert many.state.columns == ["amount", "id"]
    many.receive({"columns": []})
    assert many.state.columns == []


def test_what_is_too_large_is_neither_counted_nor_sorted(many, monkeypatch):
    monkeypatch.setattr(version_rows, "COUNTED", ReadLimits(rows=100, size_bytes=10))

    typed(many, where="amount >= 0")
    assert many.view["title"] == "The first 960 rows that match at version 3"
    assert many.view["grid"]["sample"].endswith("cover the first 960 of more rows.")

    typed(many, sort="amount")
    assert many.state.sort == ""  # a page sorts by a place
    many.state.sort = "amount"
    many.wait()
    assert many.view["error"].startswith("Sorting by amount reads the column in 3,000 rows in 3 files, ")
    assert many.view["grid"]["count"] == 960  # the rows before, which the page dims


def test_of_many_updated_rows_those_that_decide_what_is_hidden_are_named(tmp_path):
    table = DeltaTable(None, tmp_path, fields=[("id", "long"), ("name", "string"), ("amount", "double")])
    table.commit(table.data("a.parquet", [(key, "a", 1.0) for key in range(1_200)]))
    table.commit(remove("a.parquet"), table.data("b.parquet", [(key, "a", 2.0) for key in range(1_200)]))
    explorer = Explorer(open_table(str(tmp_path))).wait()
    state = explorer.state
    state.a, state.b, state.tab, state.row_kind = 1, 2, "rows", "updated"
    state.key, state.hide_unchanged = ["id"], True
    explorer.wait()

    said = shown_text(explorer, "rows")

    assert "The first 1,000 of 1,200 updated rows are shown" in said
    assert "Hidden: 1 column that none of the first 1,000 updated rows changes." in said
    assert explorer.views["rows"].grid.content["count"] == 1_000
    explorer.close()


def test_a_saved_notebook_shows_the_rows_that_differ(compared):
    said = str(compared)

    assert "Row diff of orders: version 7 to 8" in said
    assert "67.04 → -67.04" in said
    assert "orders.diff_rows(7, 8)" in said


def test_a_row_is_blamed_by_its_key(compared, orders):
    assert compared.page["state"]["rows_where"] == compared.state.rows_where == compared.view["conditions"][0]
    typed(compared, rows_where='"order_id" = 16')

    pressed(compared, "Blame rows")

    assert "67.04 → -67.04" in blamed(compared)
    assert compared.view["blamed"]["code"] == "orders.blame('\"order_id\" = 16')"
    assert compared.view["blamed"]["source"].startswith(f"{orders.path}, version 1 of ")


def test_rows_of_data_are_offered_to_be_blamed_unless_a_condition_was_typed(explorer):
    explorer.state.tab, explorer.state.where = "data", "amount > 250"
    explorer.wait()
    first = explorer.view["conditions"][0]
    assert explorer.state.rows_where == first
    assert first.startswith('"order_id" = ')

    explorer.state.rows_where = "amount < 0"
    explorer.state.where = "amount > 200"
    explorer.wait()

    assert explorer.page["state"]["rows_where"] == "amount < 0"
    assert len(explorer.view["conditions"]) > 2


def test_rows_are_traced_and_a_repair_is_planned_to_a(payments):
    typed(payments, rows_where="payment_id = 4", tab="data")
    pressed(payments, "Trace")
    assert "return matching rows." in blamed(payments)
    assert payments.view["blamed"]["code"] == "payments.trace('payment_id = 4')"

    payments.state.b = 18
    typed(payments, key=["payment_id"], rows_where="amount < 0 or payment_id < 30")
    assert payments.page["markers"] == ["17", "18"]
    pressed(payments, "Plan repair")
    code = payments.view["blamed"]["code"]
    assert code == "payments.repair(to=17, where='amount < 0 or payment_id < 30', key=['payment_id'])"
    shown = next(part["code"] for part in payments.view["blamed"]["parts"] if "code" in part)
    assert shown == eval(code, {"payments": payments.table}).statement
    assert "\n" in shown

    typed(payments, tab="rows")
    payments.state.b = 17
    payments.wait()  # else the condition of the first row is suggested after this one is typed
    typed(payments, rows_where="", repair_name="shop.payments")
    pressed(payments, "Plan repair")
    assert "RESTORE TABLE `shop`.`payments`" in blamed(payments)
    assert payments.view["blamed"]["code"] == "payments.repair(to=16, name='shop.payments')"
    pressed(payments, "Trace")
    assert blamed(payments) == "There is no condition to trace rows by. Write one, such as order_id = 42."


def test_the_commit_of_b_is_undone_alone(payments):
    payments.state.b = 17
    typed(payments, tab="data", key=["payment_id"], rows_where="payment_id < 300")
    assert payments.page["markers"][1] == "17"

    pressed(payments, "Plan to undo")
    code = payments.view["blamed"]["code"]
    assert code == "payments.repair(undo=17, where='payment_id < 300', key=['payment_id'])"
    plan = eval(code, {"payments": payments.table})
    assert "undo version 17 alone" in blamed(payments)
    assert plan.is_empty or plan.statement in [part.get("code") for part in payments.view["blamed"]["parts"]]

    typed(payments, rows_where="", repair_name="shop.payments")
    pressed(payments, "Plan to undo")
    assert payments.view["blamed"]["code"] == "payments.repair(undo=17, key=['payment_id'], name='shop.payments')"

    pressed(payments, "Plan repair")
    assert "This undoes " in blamed(payments)
    assert "repair(undo=" in blamed(payments)


def test_a_condition_that_does_not_fit_is_blamed_in_a_line(explorer):
    explorer.state.rows_where = "color = 'red'"

    pressed(explorer, "Blame rows")

    assert "color" in blamed(explorer)
    assert "\n" not in blamed(explorer)


def test_without_a_condition_nothing_is_blamed(explorer):
    pressed(explorer, "Blame rows")

    assert blamed(explorer) == "There is no condition to blame rows by. Write one, such as order_id = 42."


def test_a_condition_is_bisected_and_the_result_is_b(explorer, orders):
    explorer.state.tab, explorer.state.where, explorer.state.b = "data", "amount < 0", 10
    explorer.wait()

    pressed(explorer, "Bisect")

    assert explorer.state.b == orders.bisect("amount < 0", bad=10).version == 8
    assert "amount < 0 holds first at version 8 of orders" in bisected(explorer)
    assert re.search("last version before\\s+7", bisected(explorer))
    assert explorer.view["bisected"]["code"] == "orders.bisect('amount < 0', bad=10)"
    assert explorer.view["bisected"]["source"].startswith(f"{orders.path}, version 1 of ")
    assert explorer.code.startswith("orders.at(8)")


def test_a_condition_on_metadata_is_bisected(explorer, orders):
    explorer.state.tab, explorer.state.where = "data", "rows > 30"
    explorer.wait()

    pressed(explorer, "Bisect")

    assert explorer.state.b == orders.bisect("rows > 30").version
    assert "rows > 30 holds first at version" in bisected(explorer)


def test_an_answer_that_assumes_something_says_so_and_the_button_then_evaluates_every_version(tmp_path, shell):
    table = DeltaTable(None, tmp_path / "big")
    table.append([(1, "bob")], name="bob.parquet")
    for number in range(300):
        if number == 20:
            table.commit(remove("bob.parquet"))
        elif number == 200:
            table.append([(1, "bob")], name="again.parquet")
        else:
            table.commit(operation=f"NOTHING {number}")
    explorer = Explorer(open_table(tmp_path / "big"), name="big").wait()
    explorer.state.tab, explorer.state.where = "data", "name = 'bob'"
    explorer.wait()

    pressed(explorer, "Bisect")
    assert "name = 'bob' holds first at version 202 of big" in bisected(explorer)
    assert "at most 302 loads of name" in bisected(explorer)
    assert "Press Bisect again to evaluate every version." in bisected(explorer)
    assert all(f">{group}</text>" in explorer.view["bisected"]["picture"] for group in ("not evaluated", "holds"))

    pressed(explorer, "Bisect")
    assert "name = 'bob' holds first at version 1 of big" in bisected(explorer)
    assert "evaluated 302 of 302 versions" in bisected(explorer)
    assert "The condition changes 3 times: it holds at versions 1 to 21 and 202 to 301." in bisected(explorer)
    assert "Press Bisect again" not in bisected(explorer)
    assert explorer.view["bisected"]["code"] == "big.bisect(\"name = 'bob'\", every=True)"
    explorer.close()


def test_a_condition_that_holds_nowhere_leaves_b(explorer):
    explorer.state.tab, explorer.state.where = "data", "amount > 1000000"
    explorer.wait()

    pressed(explorer, "Bisect")

    assert "amount > 1000000 holds at no version of orders" in bisected(explorer)
    assert "evaluated 18 of 18 versions" in bisected(explorer)
    assert explorer.state.b == 18


@pytest.mark.parametrize(("where", "said"), [("", "There is no condition to bisect."), ("color = 1", "color")])
def test_what_cannot_be_bisected_is_reported_in_a_line(explorer, where, said):
    explorer.state.tab, explorer.state.where = "data", where
    explorer.wait()

    pressed(explorer, "Bisect")

    assert said in bisected(explorer)
    assert explorer.view["bisected"]["error"] == bisected(explorer)
    assert explorer.state.b == 18


def test_a_bisection_that_reads_much_is_announced_and_requested_again(orders, shell):
    shell.ok("%config SnapshotMagics.load_size_limit = 1000")
    explorer = Explorer(orders, name="orders").wait()
    explorer.state.tab, explorer.state.where, explorer.state.b = "data", "amount < 0", 10
    explorer.wait()

    pressed(explorer, "Bisect")
    assert "Evaluating 10 versions: at most 10 loads of amount" in bisected(explorer)
    assert "Press Bisect again to read that much." in bisected(explorer)
    assert explorer.state.b == 10

    pressed(explorer, "Bisect")
    assert explorer.state.b == 8
    explorer.close()


def test_a_bisection_announces_what_it_reads_and_is_cancelled(explorer, monkeypatch):
    gate, shown = threading.Event(), []
    bisect = type(explorer.table).bisect
    explorer.observe(lambda change: shown.append(change.new.get("bisect", "")), "busy")
    explorer.state.tab, explorer.state.where, explorer.state.b = "data", "amount < 0", 10
    explorer.wait()
    pressed(explorer, "Bisect")
    assert any(what.startswith("Evaluating 10 versions: at most 10 loads of amount") for what in shown)

    monkeypatch.setattr(
        type(explorer.table), "bisect", lambda *given, **named: gate.wait(30) and bisect(*given, **named)
    )
    explorer.state.b = 10
    explorer.receive({"act": "bisect"})
    explorer.receive({"cancel": "bisect"})
    gate.set()
    explorer.wait()

    assert explorer.state.b == 10
    assert "Nothing was bisected: that was cancelled." in bisected(explorer)


TAGS = {"type": "array", "elementType": "string", "containsNull": True}
VALUES = [(1, "", []), (2, "-", ["-"]), (3, None, None), (4, " x", ["a", "b"]), (5, "y", [])]
DRAWN = [('""', ""), ('"-"', '"-"'), ("-", "-"), ('" x"', "a, b"), ("y", "")]
"""The texts of these values."""


@pytest.fixture
def ambiguous(tmp_path):
    """A table whose second version has values that could be taken for others."""
    table = DeltaTable(None, tmp_path, fields=[("id", "long"), ("name", "string"), ("tags", TAGS)])
    types = pa.schema([("id", pa.int64()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])
    table.commit(table.data("a.parquet", [(0, "a", ["a"])], schema=types))
    table.commit(table.data("b.parquet", VALUES, schema=types))
    return open_table(str(tmp_path))


def test_values_that_look_alike_are_drawn_apart_and_in_one_way_everywhere(ambiguous):
    explorer = Explorer(ambiguous, variables={}).wait()
    state = explorer.state
    state.a, state.b, state.tab = 1, 2, "data"
    explorer.wait()
    shown = [rows[1:] for rows in sorted(grid_of(explorer, "data")[1])[1:]]
    state.tab = "rows"
    explorer.wait()
    changed = [rows[2:] for rows in sorted(grid_of(explorer, "rows")[1])]
    explorer.close()
    blame = next(part for part in drawing_of(ambiguous.blame("id > 0")).parts if isinstance(part, Grid))
    blamed = sorted(
        zip(*([cell.text for cell in column.cells] for column in shown_columns(blame, 10)[-3:]), strict=True)
    )

    assert changed == [list(row[1:]) for row in blamed] == [list(texts) for texts in DRAWN]
    json = ["[]", '["-"]', "-", '["a","b"]', "[]"]
    assert shown == [[name, tags] for (name, _), tags in zip(DRAWN, json, strict=True)]


def test_the_grid_has_the_types_of_the_schema(ambiguous):
    explorer = Explorer(ambiguous, variables={}).wait()
    state = explorer.state
    state.a, state.b, state.tab = 1, 2, "data"
    explorer.wait()
    types = [[column["type"] for column in explorer.views["data"].grid.content["columns"]]]
    state.tab = "rows"
    explorer.wait()
    types.append([column["type"] for column in explorer.views["rows"].grid.content["columns"][1:]])
    explorer.close()

    assert types == [[column.type for column in ambiguous.current.schema.columns]] * 2
    assert types[0][0] == "long"


@pytest.fixture
def copy_of_orders(explorer, tmp_path):
    """The path of a copy of the table of the explorer, which shows version 8 beside another table."""
    path = shutil.copytree(samples.path("orders"), tmp_path / "copy")
    explorer.state.b, explorer.state.tab, explorer.state.compared = 8, "compare", "another table"
    explorer.wait()
    return str(path)


def test_b_is_compared_with_another_table(explorer, copy_of_orders, orders):
    assert shown_text(explorer, "compare").startswith("Compare B with another table")
    typed(explorer, other=f"{copy_of_orders}@7")
    diff = orders.diff_rows(8, 7)

    said = shown_text(explorer, "compare")
    assert said.startswith("Row diff: version 8 of orders to 7 of copy: 16 rows updated\n")
    assert len(changes(explorer, "compare")) == sum(diff.counts.values())
    assert explorer.code.startswith("diff(open_table(")
    assert f"and {copy_of_orders}, version 7 of copy, of " in explorer.view["source"]


def test_the_twin_of_a_table_is_shown(explorer, copy_of_orders, orders):
    typed(explorer, compared="twins")
    assert shown_text(explorer, "compare").startswith("Is another table in step?")
    typed(explorer, other=copy_of_orders)

    assert "The newest versions of orders and copy name the same" in shown_text(explorer, "compare")
    assert explorer.code == f"twins(orders, {copy_of_orders!r})"
    assert explorer.views["compare"].grid.content["count"] == len(orders.versions())


def test_another_table_may_be_a_variable_and_is_the_newest_version(orders, copy_of_orders):
    made = Explorer(orders, name="orders", variables={"copy": open_table(copy_of_orders)}).wait()
    made.state.tab, made.state.compared, made.state.other = "compare", "another table", "copy"

    assert shown_text(made.wait(), "compare").startswith(f"Row diff: version {orders.current.version} of orders to")
    assert "No row differs" in shown_text(made, "compare")
    typed(made, other="nowhere@3")
    assert "nowhere" in made.view["error"]
    made.close()
