"""`%snapshot diff`, in a real shell, against a real table."""

import pytest
from IPython.core.completer import provisionalcompleter

from snapshot_explorer.analysis.compare import PARTS, Comparison
from snapshot_explorer.analysis.diff import RowDiff, RowDiffPlan
from snapshot_explorer.results import Frame
from tests.inner.jupyter import DIFF_PARTS
from tests.support.delta.table_builder import DeltaTable, remove
from tests.support.paimon.table_builder import PaimonTable


def test_diff_compares_two_versions(orders):
    comparison = orders.ok("%snapshot diff 1..3").result

    assert isinstance(comparison, Comparison)
    assert (comparison.a, comparison.b) == (1, 3)


@pytest.mark.parametrize(
    ("words", "pair"),
    [("", (4, 5)), ("2", (2, 5)), ("..2", (1, 2)), ("3..", (3, 5)), ("4..2", (4, 2)), ("orders@2..orders@3", (2, 3))],
)
def test_a_side_that_is_missing_is_the_nearest_that_makes_sense(orders, words, pair):
    comparison = orders.ok(f"%snapshot diff {words}").result

    assert (comparison.a, comparison.b) == pair


@pytest.mark.parametrize("flag", DIFF_PARTS)
def test_one_part_that_is_requested_is_a_frame(orders, flag):
    frame = orders.ok(f"%snapshot diff 1..3 --{flag}").result

    assert isinstance(frame, Frame)
    assert set(DIFF_PARTS.values()) == set(PARTS)


def test_several_parts_are_drawn_alone(orders):
    cell = orders.ok("%snapshot diff 1..3 --manifests --schema")

    assert isinstance(cell.result, Comparison)
    assert "carried over" in cell.shown["text/plain"]
    assert "The schema is the same." in cell.shown["text/plain"]
    assert "commits between" not in cell.shown["text/plain"]


def test_what_is_not_a_range_is_said_in_a_line(orders):
    assert orders.fails("%snapshot diff 1..99").startswith("Version 99 does not exist.")
    assert "is not a valid ref" in orders.fails("%snapshot diff nonsense")


def test_flags_of_diff_are_completed(orders):
    with provisionalcompleter():
        found = [item.text for item in orders.ip.Completer.completions("%snapshot diff 1..3 --ma", 24)]

    assert found == ["--manifests"]


def test_log_passes_its_filters_on(orders):
    assert orders.ok("%snapshot log --user tests --until @2026-01-01T00:03:00Z -n 2").result["version"].to_pylist() == [
        3,
        2,
    ]
    assert orders.ok("%snapshot log --operation MERGE").result.num_rows == 0
    shown = orders.ok("%snapshot log --no-maintenance --stat").shown["text/plain"]
    assert " 0 B " in shown


def test_rows_are_compared_after_a_line_with_what_is_read(orders):
    cell = orders.ok("%snapshot diff 1..3 --rows -n 1")

    assert isinstance(cell.result, RowDiff)
    assert (cell.result.plan.a.number, cell.result.plan.b.number) == (1, 3)
    assert any(line.startswith("Reads ") for line in cell.said)
    assert cell.result.drawn_rows == 1


def test_two_versions_may_stand_apart(orders):
    assert orders.ok("%snapshot diff 1 3 --rows").result.counts == orders.ok("%snapshot diff 1..3 --rows").result.counts
    assert "Write A..B, or A B" in orders.fails("%snapshot diff 1..2 3")


def test_a_preview_reads_no_rows(orders):
    assert isinstance(orders.ok("%snapshot diff 1..3 --rows --preview").result, RowDiffPlan)


def test_options_of_rows_need_rows(orders):
    assert orders.fails("%snapshot diff 1..3 --preview").startswith("--preview needs --rows.")
    assert "exclude each other" in orders.fails("%snapshot diff 1..3 --rows --files")
    assert orders.fails("%snapshot diff 1..3 --rows --key nope").startswith("Unknown column 'nope' in key. ")


def test_versions_of_two_tables_are_compared_by_rows(orders):
    orders.ok("from snapshot_explorer import open_table")
    orders.ok("copy = open_table(orders.path)")
    for line in ("orders@1 copy@3", "orders@1..copy@3"):
        result = orders.ok(f"%snapshot diff {line} --rows").result

        assert (result.plan.a.number, result.plan.b.number) == (1, 3)
        assert result.counts == orders.ok("%snapshot diff orders@1..orders@3 --rows").result.counts
    plan = orders.ok("%snapshot diff orders copy --rows --preview").result
    assert plan.a.number == plan.b.number == 5
    assert plan.proof.startswith("The rows are equal")
    assert "Add --rows" in orders.fails("%snapshot diff orders@1 copy@3")
    for option in ("--trim", "--pair id=order_id", "--tolerance 1"):
        assert f"{option.split()[0]} needs two tables" in orders.fails(f"%snapshot diff 1 3 --rows {option}")
    assert "No open table is called 'nope'" in orders.fails("%snapshot diff orders@1 nope@3 --rows")
    assert "must be a number" in orders.fails("%snapshot diff orders@1 copy@3 --rows --tolerance x")
    by_column = orders.ok("%snapshot diff orders@1 copy@3 --rows --preview --key name --tolerance id=1").result
    assert "tolerance={'id': Decimal('1')}" in repr(by_column)
    assert "one number for all" in orders.fails("%snapshot diff orders@1 copy@3 --rows --tolerance 1 --tolerance id=2")
    assert "--pair is a name" in orders.fails("%snapshot diff orders@1 copy@3 --rows --pair x")


def test_a_version_is_compared_with_a_data_frame(orders):
    orders.ok("frame = orders.at(4).to_pandas(); frame = frame[frame[frame.columns[0]].notna()].iloc[1:]")

    for line in ("orders@4 frame", "4 frame", "4 frame --rows", "4 frame --preview"):
        plan = getattr(orders.ok(f"%snapshot diff {line}").result, "plan", None) or orders["_"]
        assert plan.b.given == "pandas DataFrame", line
    diff = orders.ok("%snapshot diff orders@4 frame").result
    assert diff.counts["deleted"] == 1
    assert "version 4 of" in orders.ok("%snapshot diff orders@4 frame").shown["text/plain"]
    assert orders.ok("%snapshot diff frame").result.plan.a.number == 5
    assert "--stat exclude each other" in orders.fails("%snapshot diff 4 frame --stat")
    assert "Leave other columns out" in orders.fails("%snapshot diff 4 frame --columns id")


def test_a_version_is_compared_with_files(orders, tmp_path):
    orders.ok("import pyarrow.parquet as pq")
    (folder := tmp_path / "export").mkdir()
    orders.ok(f"out = {str(folder / 'x.parquet')!r}; pq.write_table(orders.at(4).to_arrow().slice(1), out)")

    for line in (f"4 {folder}/x.parquet", "4 out", f"orders@4 '{folder}'", "4 {out}"):
        assert orders.ok(f"%snapshot diff {line}").result.counts["deleted"] == 1, line
    assert "There is nothing to compare with at" in orders.fails(f"%snapshot diff 4 {tmp_path}/nothing")
    assert "is not a valid ref" in orders.fails("%snapshot diff 4 nothing")


def test_branches_are_compared_with_the_version_at_which_they_parted(shell, memory_root):
    filesystem, root = memory_root
    table = PaimonTable(filesystem, root)
    table.commit([(1, "a"), (2, "b")])
    table.fork("audit", 1).commit([(4, "d")])
    table.commit([(5, "e")])
    shell.ok(f"%snapshot open memory://{root} as orders")

    for line in ("diff3 main audit --key id", "diff main..branch:audit --three-way --key id", "diff3 2 audit --key id"):
        result = shell.ok(f"%snapshot {line}").result
        assert result.counts == {"ours": 1, "theirs": 1, "both": 0, "merged": 0, "conflict": 0}, line
    shell.ok("frame = orders.at(1).to_pandas().iloc[1:]")
    assert shell.ok("%snapshot diff3 latest frame --base 1 --key id").result.counts["theirs"] == 1
    assert "needs a key" in shell.fails("%snapshot diff3 main audit")
    assert "no common version" in shell.fails("%snapshot diff3 1 2 --key id")
    assert "--base needs --three-way" in shell.fails("%snapshot diff 1..2 --base 1")
    assert "exclude each other" in shell.fails("%snapshot diff3 main audit --stat")


def test_the_merge_of_a_branch_is_written_as_sql(shell, tmp_path):
    table = DeltaTable(None, tmp_path / "orders", fields=[("id", "long"), ("name", "string")])
    table.append([(1, "a"), (2, "b")], name="one")
    table.commit(remove("one"), table.data("two", [(1, "ours"), (2, "b")]))
    shell.ok(f"%snapshot open {table.root} as orders")
    shell.ok("import pyarrow as pa")
    shell.ok("frame = pa.table({'id': [1, 2], 'name': ['theirs', 'c']})")
    line = "%snapshot diff3 latest frame --base 1 --key id --sql"

    cell = shell.ok(f"{line} --name lake.shop.orders")

    merge, shown = cell.result, cell.shown["text/plain"]
    assert merge.counts == {"inserted": 0, "updated": 1, "deleted": 0}
    assert "MERGE INTO `lake`.`shop`.`orders` AS current" in merge.statement
    assert merge.statement in shown
    assert "1 row, left out" in shown
    assert shell.ok("%snapshot diff3 latest frame --base latest --key id --where 'id > 2' --sql").result.is_empty
    assert "--sql needs --three-way" in shell.fails("%snapshot diff 1..2 --sql")
    assert "--name needs --sql" in shell.fails("%snapshot diff3 latest frame --base 1 --key id --name orders")
