"""The bytes that the tables of a lake hold: each table as by itself, sums, and tables that cannot be read."""

import shutil
from pathlib import Path

import pytest

from snapshot_explorer import errors, open_lake, open_table, samples

TOTALS = ("files", "size_bytes", "live_files", "live_bytes", "held_files", "held_bytes")


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """Three tables, one of which has lost its only checkpoint and commit."""
    root = tmp_path_factory.mktemp("lake")
    for name in ("orders", "payments"):
        shutil.copytree(samples.path(name), root / name)
    broken = root / "broken" / "_delta_log"
    broken.mkdir(parents=True)
    (broken / "00000000000000000000.json").write_text("no JSON")
    return open_lake(root)


def test_a_row_has_the_sums_of_the_table_s_own_usage(lake):
    rows = {row["name"]: row for row in lake.usage().to_arrow().to_pylist()}

    assert set(rows) == {"orders", "payments", "broken"}
    for name in ("orders", "payments"):
        table = open_table(Path(lake.name) / name)
        summary = table.usage().summary.to_arrow()
        assert rows[name]["version"] == table.current.version
        assert {total: rows[name][total] for total in TOTALS} == {
            total: sum(summary[total].to_pylist()) for total in TOTALS
        }


def test_the_largest_is_first_and_what_cannot_be_read_last(lake):
    usage = lake.usage()
    sizes = usage.to_arrow()["size_bytes"].to_pylist()

    assert sizes[:2] == sorted(sizes[:2], reverse=True)
    assert sizes[2] is None
    assert "00000000000000000000.json" in usage.to_arrow()["problem"][2].as_py()
    assert "1 table could not be read, and may hold more." in usage.notes


def test_a_price_adds_costs(lake):
    rows = lake.usage(price=0.02).to_arrow()

    assert rows["cost_per_month"][0].as_py() == pytest.approx(rows["size_bytes"][0].as_py() / 1e9 * 0.02)
    assert rows["cost_per_month"][2].as_py() is None


def test_usage_is_of_now(lake):
    with pytest.raises(errors.InvalidArgumentError, match="Open the lake without a time"):
        open_lake(lake.name, at="2026-01-01").usage()


@pytest.mark.parametrize("price", [-1, float("nan"), "0.02", True])
def test_a_price_is_a_number(lake, price):
    with pytest.raises(errors.InvalidArgumentError, match="price must be a number of 0 or more"):
        lake.usage(price=price)
