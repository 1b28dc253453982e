"""The totals of a log: the rows of each version, or named rows in files."""

import shutil

import pytest

from snapshot_explorer import open_lake, open_table
from snapshot_explorer.view import drawing_of
from tests.support.fault_search import IN_CATALOGS, tables

TABLES = {name: f"{path}{IN_CATALOGS.get(name, '')}" for name, path in tables().items()}
EXACT = (
    "delta/dv_partitioned",
    "ducklake/shop",
    "iceberg/branches_tags",
    "iceberg/v3_dv",
    "paimon/dv_append",
    "samples/events",
    "samples/invoices",
    "samples/rides",
    "samples/shipments",
)
IN_FILES = (
    "iceberg/v2_equality_deletes",
    "paimon/expired",
    "paimon/data_evolution",
    "paimon/fallback_branch",
    "paimon/first_row",
)


@pytest.mark.parametrize("name", [*EXACT, *IN_FILES])
def test_the_total_is_what_reading_returns_unless_it_is_called_rows_in_files(name):
    table = open_table(TABLES[name])
    rows = table.history().to_arrow()
    heading = rows.schema.field("total_rows").metadata.get(b"heading", b"total rows").decode()

    assert heading == ("rows in files" if name in IN_FILES else "total rows")
    for row in rows.to_pylist() if name in EXACT else ():
        if row["total_rows"] is not None:
            assert len(table.at(row["version"]).to_arrow()) == row["total_rows"]


def test_the_name_of_the_total_is_the_same_in_the_log_the_figure_and_the_card():
    table = open_table(TABLES["samples/orders"])
    figure = table.history(limit=5).picture()
    hovered = [text for trace in figure.data for text in trace.hovertext or ()]

    assert "rows in files" in str(table.history(limit=5))
    assert "rows in files" in [trace.name for trace in figure.data]
    assert any("rows in files 41" in text for text in hovered)
    assert "rows in files" in str(drawing_of(table))


def test_the_log_of_a_lake_counts_rows_in_files_if_one_of_its_tables_does(tmp_path):
    def heading():
        field = open_lake(tmp_path).changes(since="2026-11-01").to_arrow().schema.field("total_rows")
        return field.metadata.get(b"heading")

    shutil.copytree(TABLES["samples/payments"], tmp_path / "payments")
    assert heading() is None
    shutil.copytree(TABLES["samples/orders"], tmp_path / "orders")
    assert heading() == b"rows in files"
