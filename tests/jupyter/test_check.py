"""`%snapshot check` and `%snapshot report`: the open table, a path, or results in variables."""

from tests.support.delta.table_builder import DeltaTable, add


def test_the_open_table_is_checked_by_rules_with_quotes(orders):
    cell = orders.ok('r = %snapshot check --fail-on late,"rows < 0.5 * previous",unreadable --since 9000d')

    assert cell.result is None
    assert [line.rule for line in orders["r"].lines] == ["late", "rows < 0.5 * previous", "unreadable"]
    assert orders["r"].lines[0].table == "orders"
    assert orders.fails("%snapshot lake orders").startswith("orders is one table.")
    assert orders.fails("%snapshot check --fail-on lat").startswith("There is no rule 'lat'. Did you mean late?")


def test_a_path_or_a_variable_with_a_lake_is_checked(shell, tmp_path):
    for name in ("a", "b"):
        DeltaTable(None, tmp_path / "lake" / name).commit(add("f", rows=1))
    shell["folder"] = str(tmp_path / "lake")
    shell.ok("import snapshot_explorer as sx\nlake = sx.open_lake(folder)")

    by_path = shell.ok("%snapshot check {folder} --fail-on 'commits > 0' --since 9000d").result
    by_variable = shell.ok("%snapshot check lake --fail-on 'commits > 0' --since 9000d").result

    assert [line.table for line in by_path.failed] == ["a", "b"]
    assert by_variable.lines == by_path.lines


def test_results_in_variables_are_reported(orders, tmp_path):
    file = tmp_path / "r.html"
    orders.ok("d = %snapshot diff 1..2")

    assert repr(orders.ok(f"%snapshot report {file} --of d,orders").result).startswith(f"Wrote {file}, ")
    page = file.read_text("utf-8")
    assert "orders: version 1 to 2" in page
    assert "History of orders" in page
    assert orders.fails(f"%snapshot report {file} --of d --overwrite 1..2").startswith(
        "A..B is for a report on one table"
    )
    assert "replace it with --overwrite" in orders.fails(f"%snapshot report {file}")
    assert orders.fails("%snapshot report x.html --of nothing").startswith("--of takes names of variables with results")
