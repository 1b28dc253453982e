"""Versions that are marked because a number jumps."""

import statistics
from itertools import pairwise
from uuid import uuid4

import fsspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer import open_table, samples
from snapshot_explorer.analysis.profile import AnomalyRules
from snapshot_explorer.core import frames
from snapshot_explorer.errors import InvalidArgumentError
from tests.inner.analysis import jumps
from tests.support.delta.table_builder import DeltaTable
from tests.support.row_histories import KINDS, STEPS, play


def totals(values):
    count = len(values)
    return {
        "rows": pa.table(
            {
                "version": pa.array(range(10, 10 + count), pa.int64()),
                "committed_at": pa.nulls(count, frames.UTC_MILLIS),
                "value": pa.array(values, pa.int64()),
            }
        )
    }


def marked(values, **rules):
    return jumps(totals(values), {}, AnomalyRules(**rules)).to_pylist()


def test_a_drop_is_marked_once_with_the_rule_and_its_numbers():
    (found,) = marked([100, 110, 120, 130, 140, 70, 80, 90])

    assert (found["version"], found["before"], found["value"]) == (15, "140", "70")
    assert found["rule"] == "rows fell by 70 (usual change: 10)"


def test_steady_growth_and_unknown_values_are_not_marked():
    assert marked(list(range(0, 1000, 10))) == []
    assert marked([100, None, 100, None, 900, None, 100]) == []
    assert marked([100, 900]) == []


def test_what_has_only_grown_is_compared_with_its_growth_and_what_never_changed_is_marked():
    assert marked([10, 10, 20, 20, 20, 30]) == []
    assert [row["version"] for row in marked([10, 10, 20, 20, 20, 90])] == [15]
    assert [row["version"] for row in marked([10, 20, 10, 10, 10, 10, 10, 20])] == [17]
    (never,) = marked([10, 10, 10, 10, 10, 90])
    assert never["rule"] == "rows rose by 80 (it usually does not change)"


def test_a_number_that_moves_every_other_version_is_compared_with_the_versions_that_moved_it():
    assert marked([0, 18, 18, 36, 36, 54, 54, 72, 72, 90, 90]) == []
    assert [row["version"] for row in marked([0, 18, 18, 36, 36, 54, 54, 254])] == [17]


def test_thresholds_are_settings():
    values = [100, 110, 120, 130, 140, 190]

    assert marked(values) == []
    assert [row["version"] for row in marked(values, factor=4)] == [15]
    assert marked(values, factor=4, share=0.5) == []
    with pytest.raises(InvalidArgumentError, match="min_changes must be from 1 to window"):
        AnomalyRules(window=2, min_changes=3)
    with pytest.raises(InvalidArgumentError, match="factor must be 0 or more"):
        AnomalyRules(factor=-1)
    with pytest.raises(InvalidArgumentError, match="share must be 0 or more, got nan"):
        AnomalyRules(share=float("nan"))
    with pytest.raises(InvalidArgumentError, match="window must be 1 to 1,000, got 1001"):
        AnomalyRules(window=1_001)
    with pytest.raises(InvalidArgumentError, match="min_changes must be a whole number, got 2.5"):
        AnomalyRules(min_changes=2.5)
    with pytest.raises(InvalidArgumentError, match="factor must be a number, got '4'"):
        AnomalyRules(factor="4")


@given(st.lists(st.none() | st.integers(0, 50), max_size=30))
def test_marks_are_those_of_the_rule_applied_by_hand(values):
    rules = AnomalyRules(window=4, min_changes=2, factor=3.0, share=0.1)
    changes = [None if before is None or after is None else after - before for before, after in pairwise(values)]
    expected = []
    for place, change in enumerate(changes):
        known = [abs(one) for one in changes[max(0, place - 4) : place] if one is not None]
        if change is None or len(known) < rules.min_changes:
            continue
        moved = [one for one in known if one]
        signs = {one > 0 for one in [change, *changes[max(0, place - 4) : place]] if one}
        is_of_moved = len(moved) >= rules.min_changes or (moved and len(signs) == 1)
        usual = statistics.median(moved if is_of_moved else known)
        if change and abs(change) > 3 * usual and abs(change) >= 0.1 * values[place]:
            expected.append(10 + place + 1)

    assert [row["version"] for row in jumps(totals(values), {}, rules).to_pylist()] == expected


def test_the_anomalies_of_a_table_name_the_commits_behind_them():
    found = open_table(samples.path("payments")).anomalies("amount")

    rows = [(row["version"], row["measure"], row["operation"]) for row in found.to_dict()]
    assert (11, "max", "MERGE") in rows
    assert (13, "max", "RESTORE") in rows
    assert found["version"].to_pylist() == sorted(found["version"].to_pylist(), reverse=True)
    assert found.to_dict()[0]["rule"] == "max of amount fell by 7,126.93 (it usually does not change)"


def test_compactions_are_not_marked_for_fewer_files():
    found = open_table(samples.path("orders")).anomalies(
        [], rules=AnomalyRules(factor=1, share=0, window=3, min_changes=1)
    )

    assert "compact" not in found["kind"].to_pylist()
    assert set(found["measure"].to_pylist()) <= {"rows", "files", "size_bytes"}
    assert len(found) > 0


def test_only_versions_of_a_range_are_marked():
    table = open_table(samples.path("payments"))

    assert table.anomalies("amount", "11..11")["version"].to_pylist() == [11]


def test_the_history_names_what_jumps():
    found = open_table(samples.path("payments")).history("9..12", anomalies=True)

    assert dict(zip(found["version"].to_pylist(), found["anomalies"].to_pylist(), strict=True)) == {
        12: None,
        11: "max of amount",
        10: None,
        9: None,
    }
    assert "max of amount" in repr(found)


def test_the_timeline_marks_what_jumps_with_its_rule():
    found = open_table(samples.path("payments")).history(anomalies=True).picture()

    (rule,) = open_table(samples.path("payments")).anomalies("amount", "11..11")["rule"].to_pylist()
    (mark,) = [trace for trace in found.data if trace.name == "jump"]
    (hover,) = [trace for trace in found.data if trace.name == "commits"]
    assert list(mark.x) == [11, 13]
    assert f"jump: {rule}" in hover.hovertext[11].replace("<br>", " ")
    assert f"Version 11: {rule}." in " ".join(repr(found).split())


def test_each_jump_of_a_column_states_its_own_numbers():
    found = open_table(samples.path("payments")).anomalies("amount").to_dict()

    assert [(row["version"], row["rule"].partition(",")[0]) for row in found] == [
        (13, "max of amount fell by 7"),
        (11, "max of amount rose by 7"),
    ]


def test_infinite_values_and_the_largest_ones_print_no_warning():
    largest = 1.7976931348623157e308
    values = [1.0, -largest, largest, float("inf"), float("-inf"), float("inf"), largest, -largest] * 3
    column = pa.table(
        {
            "version": pa.array(range(len(values)), pa.int64()),
            "committed_at": pa.nulls(len(values), frames.UTC_MILLIS),
            "null_rate": pa.array([0.0] * len(values), pa.float64()),
            "min": pa.array(values, pa.float64()),
            "max": pa.array(values[::-1], pa.float64()),
        }
    )

    # Warnings are errors in these tests.
    assert jumps({}, {"amount": column}).schema == frames.ANOMALIES


def test_versions_where_rows_begin_to_have_the_same_key_are_marked(tmp_path):
    table = DeltaTable(None, tmp_path, fields=[("id", "long"), ("name", "string")])
    for number in (1, 2, 2, 3):
        table.append([(number, "Ada")])
    opened = open_table(tmp_path)

    found = opened.anomalies([], key="id")
    before = opened.anomalies([], "1..2", key=["id", "name"])

    marks = [row for row in found.to_dict() if row["measure"] == "duplicates"]
    first = opened.bisect("count(id) > count(distinct id)").version
    assert [(row["version"], row["column"], row["rule"]) for row in marks] == [
        (first, "id", "several rows have the same id")
    ]
    assert "several rows have the same id" in repr(found)
    assert "duplicates" not in before["measure"].to_pylist()
    with pytest.raises(InvalidArgumentError, match=r"^Unknown column 'ids' in key. Did you mean id\?"):
        opened.anomalies([], key="ids")


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=12, deadline=None)
@given(steps=STEPS)
def test_keys_begin_to_repeat_where_the_rows_of_a_version_do(kind, steps):
    model = play(kind, fsspec.filesystem("memory"), f"/{uuid4().hex}", steps)

    found = open_table(model.url).anomalies([], key="name")

    marks = [row["version"] for row in found.to_dict() if row["measure"] == "duplicates"]
    names = [[row[1] for row in rows.values() if row[1] is not None] for rows in model.rows]
    repeats = [len(values) > len(set(values)) for values in names]
    begins = [is_new and not before for before, is_new in zip([False, *repeats], repeats, strict=False)]
    assert sorted(marks) == [version for version, is_first in zip(model.versions, begins, strict=True) if is_first]
