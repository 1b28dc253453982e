"""Answers that count the rows in data files say so where readers return others."""

from pathlib import Path

import pytest

from snapshot_explorer import open_table, samples
from tests.support.iceberg.table_builder import IcebergTable

DATA = Path(__file__).parents[1] / "data"
OF_DELETES = "Rows and nulls are counted in data files, before readers remove those that delete files delete."


@pytest.fixture
def iceberg(memory_root):
    filesystem, root = memory_root
    table = IcebergTable(filesystem, root)
    for number in range(1, 6):
        table.commit([(number, "a"), (number, "b")])
    return table


def test_bisect_and_anomalies_over_delete_files_say_that_they_count_rows_in_files(iceberg):
    iceberg.delete("data-1.parquet", [0])
    table = open_table(f"memory://{iceberg.root}")

    assert OF_DELETES in table.bisect("rows < 10").notes
    assert OF_DELETES in repr(table.bisect("null_rate.name > 0"))
    assert OF_DELETES in repr(table.anomalies())


def test_without_deletes_they_say_nothing(iceberg):
    table = open_table(f"memory://{iceberg.root}")

    assert table.bisect("rows > 4").notes == ()
    assert "counted in data files" not in repr(table.anomalies())


def test_conditions_that_count_no_rows_say_nothing(iceberg):
    iceberg.delete("data-1.parquet", [0])
    table = open_table(f"memory://{iceberg.root}")

    assert table.bisect("files > 2").notes == ()
    assert table.bisect("id > 3").notes == ()


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        (samples.path("orders"), "merge them by key"),
        (DATA / "paimon" / "dv", "merge them by key and remove those in deletion vectors"),
        (DATA / "paimon" / "dv_append", "remove those in deletion vectors"),
        (DATA / "paimon" / "data_evolution", "join those that are spread over files"),
    ],
    ids=["merged", "keyed vectors", "vectors", "data evolution"],
)
def test_what_readers_of_paimon_do_is_named(path, steps):
    note = f"Rows and nulls are counted in data files, before readers {steps}."

    assert note in open_table(str(path)).bisect("rows >= 0").notes


def test_delta_counts_the_rows_of_the_table():
    assert open_table(samples.path("payments")).bisect("rows > 60").notes == ()
