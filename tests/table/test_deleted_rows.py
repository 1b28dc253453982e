"""Rows that deletion vectors remove, in what is returned about versions; and rows that nothing counts."""

import pytest

from snapshot_explorer import open_table, samples
from tests.inner.table import Cost, ReadLimits, cost_of
from tests.support.delta.table_builder import DeltaTable, add, inline_vector, remove


@pytest.fixture
def table(tmp_path):
    """250 rows, of which one is deleted, then two more; then the first comes back."""
    vectors = [inline_vector(rows) for rows in ([0], [0, 1, 2], [1, 2])]
    written = DeltaTable(None, tmp_path, features=["deletionVectors"])
    written.commit(add("a", rows=250), add("b", rows=5))
    for before, after in zip([None, *vectors], vectors, strict=False):
        written.commit(remove("a", size=500, vector=before), add("a", rows=250, vector=after), operation="DELETE")
    return open_table(tmp_path)


def summary(table, a, b):
    return {row["part"]: (row["files"], row["rows"]) for row in table.compare(a, b).summary.to_dict()}


def test_a_comparison_counts_the_rows_that_vectors_of_shared_files_remove(table):
    reported = summary(table, 1, 3)

    assert reported["shared"] == (2, 255)
    assert reported["removed"] == reported["added"] == (0, 0)
    assert reported["shared, rows deleted"] == (1, 3)
    assert summary(table, 3, 1)["shared, rows deleted"] == (1, -3)
    assert summary(table, 3, 4)["shared, rows deleted"] == (1, -1)
    assert "shared, rows deleted" not in summary(table, 1, 1)
    assert "shared, rows deleted" in table.compare(1, 3).showing("summary")._repr_mimebundle_()["text/plain"]


def test_a_history_counts_the_rows_that_vectors_remove(table):
    rows = table.history().to_dict()[::-1]

    assert [(row["added_rows"], row["removed_rows"], row["total_rows"]) for row in rows] == [
        (0, 0, 0),
        (255, 0, 255),
        (0, 1, 254),
        (0, 2, 252),
        (1, 0, 253),
    ]


def test_the_deletes_of_the_sample_are_reported():
    payments = open_table(samples.path("payments"))

    assert "shared, rows deleted" in summary(payments, 17, 18)


def test_rows_that_nothing_counts_are_reported_as_unknown(tmp_path):
    written = DeltaTable(None, tmp_path)
    written.commit(add("a", rows=2), add("b"))
    snapshot = open_table(tmp_path).current

    cost = cost_of(snapshot, None)

    assert cost.rows is None
    assert str(cost).startswith("an unknown number of rows in 2 files")
    assert (cost + Cost(rows=1, files=1, size_bytes=1)).rows is None
    assert snapshot.plan("id = 0").to_arrow()["rows"].to_pylist()


def test_a_cost_may_be_as_much_as_the_limits():
    limits = ReadLimits(rows=10, size_bytes=100)

    assert not Cost(rows=10, files=1, size_bytes=100).exceeds(limits)
    assert Cost(rows=11, files=1, size_bytes=100).exceeds(limits)
    assert Cost(rows=10, files=1, size_bytes=101).exceeds(limits)
    assert not Cost(rows=None, files=1, size_bytes=100).exceeds(limits)
