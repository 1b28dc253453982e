"""Lifetimes and comparisons, as users get them from a table."""

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.analysis.compare import Comparison
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError
from tests.support.paimon.table_builder import PaimonTable


@pytest.fixture
def written(memory_root):
    return PaimonTable(*memory_root)


@pytest.fixture
def orders(written):
    for _ in range(4):
        written.commit()
    written.tag("v1", 2)
    return open_table(f"memory:/{written.root}")


def test_versions_are_compared_by_refs(orders):
    comparison = orders.compare("tag:v1", "latest^")

    assert isinstance(comparison, Comparison)
    assert (comparison.a, comparison.b) == (2, 3)
    assert comparison.files["path"].to_pylist() == ["bucket-0/data-3.parquet"]


def test_a_version_is_compared_with_the_latest_one(orders, written):
    written.commit()

    assert (orders.compare(1).a, orders.compare(1).b) == (1, 5)


def test_a_version_that_does_not_exist_is_not_compared(orders):
    with pytest.raises(SnapshotNotFoundError, match="9"):
        orders.compare(1, 9)
    with pytest.raises(InvalidArgumentError, match="'nonsense' is not a valid ref"):
        orders.compare("nonsense")


def test_lifetimes_grow_as_the_table_does(orders, written):
    first = orders.lifetimes()
    written.commit(removed=["data-1.parquet"])

    again = orders.lifetimes()

    assert first.versions == (1, 2, 3, 4)
    assert again.versions == (1, 2, 3, 4, 5)
    assert again.to_arrow()["removed_version"].to_pylist() == [5, None, None, None, None]
    assert orders.lifetimes() is again


def test_lifetimes_are_kept_in_a_folder_of_the_users(orders, tmp_path):
    made = orders.lifetimes(cache_dir=tmp_path)

    again = open_table(orders.path).lifetimes(cache_dir=str(tmp_path))

    assert len(list(tmp_path.iterdir())) == 1
    assert again.to_arrow().equals(made.to_arrow())


def test_lifetimes_draw_themselves_and_are_data(orders):
    import duckdb

    lifetimes = orders.lifetimes()

    drawn = lifetimes._repr_mimebundle_()
    assert f"File lifetimes of {orders.name}" in drawn["text/plain"]
    assert "data-4.parquet" in drawn["text/html"]
    assert duckdb.sql("select count(*) from lifetimes where removed_version is null").fetchall() == [(4,)]
    assert lifetimes.to_pandas()["added_version"].to_list() == [1, 2, 3, 4]


def test_lifetimes_and_comparisons_of_the_samples_agree():
    for name in samples.names():
        table = open_table(samples.path(name))
        lifetimes = table.lifetimes()
        first, last = lifetimes.versions[0], lifetimes.versions[-1]

        reported = table.compare(first, last).summary.to_dict()

        assert [row["files"] for row in reported if row["part"].startswith("in ")] == [
            lifetimes.files_at(first).num_rows,
            lifetimes.files_at(last).num_rows,
        ]


def versions(frame):
    return frame["version"].to_pylist()


@pytest.fixture
def busy(written):
    """A table with commits of several users, kinds and operations, a minute apart."""
    written.commit(commitUser="Etl-1", operation="WRITE")
    written.commit(commitUser="etl-2", operation="MERGE", kind="OVERWRITE")
    written.commit(commitUser="compactor", kind="COMPACT")
    written.commit(commitUser="ann", operation="Write")
    written.commit(commitUser="ann", kind="ANALYZE", rows=())
    return open_table(f"memory:/{written.root}")


def test_history_is_filtered_by_user_and_operation(busy):
    assert versions(busy.history(user="ETL")) == [2, 1]
    assert versions(busy.history(operation="write")) == [4, 1]
    assert versions(busy.history(operation="write", user="ann", limit=1)) == [4]
    assert "0 of 5 versions" in str(busy.history(user="bob"))


def test_history_is_filtered_by_when_it_ended(busy):
    assert versions(busy.history(until="@2026-01-01T00:03:00Z")) == [3, 2, 1]
    assert versions(busy.history(since="@2026-01-01T00:02:00Z", until="@2026-01-01T00:03:59Z")) == [3, 2]
    assert versions(busy.history(until="@2025-01-01")) == []
    assert "0 of 5 versions" in str(busy.history(until="@2025-01-01"))
    with pytest.raises(InvalidArgumentError, match="until='3' is not a time"):
        busy.history(until="3")


def test_maintenance_is_hidden_on_demand(busy):
    assert versions(busy.history(maintenance=False)) == [4, 2, 1]
    with pytest.raises(
        InvalidArgumentError, match="Commits of kind compact are maintenance. Leave out maintenance=False"
    ):
        busy.history(kind="compact", maintenance=False)


def test_stat_draws_what_was_added_and_removed(busy):
    plain, stat = busy.history(), busy.history(stat=True)

    assert "added_bytes" not in repr(plain).replace("_\n", "_")
    assert plain.to_arrow().equals(stat.to_arrow())
    assert " 0 B " in repr(stat)
    assert " 0 B " not in repr(plain)
