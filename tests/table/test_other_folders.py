"""Paths that are no table: what they are, and which table may be meant."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import TableNotFoundError

PARQUET = pa.table({"a": [1]})
OTHERS = {
    "things.lance/_versions/1.manifest": "things.lance",
    "things.lance/data/0.lance": "things.lance",
    "ducks/ducklake-0198.parquet": "ducks",
    "numbers.csv": "numbers.csv",
    "lake.ducklake": "lake.ducklake",
    "readme": "readme",
}


@pytest.fixture
def lake(tmp_path):
    """A folder of many kinds of folders and files, one of them with two tables."""
    for path in OTHERS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    for folder in ("files", "parts/day=1"):
        (tmp_path / folder).mkdir(parents=True)
        pq.write_table(PARQUET, tmp_path / folder / "part-0.parquet")
    for name in ("orders", "payments"):
        shutil.copytree(samples.path(name), tmp_path / "shop.db" / name)
    return tmp_path


def message(path, **options):
    with pytest.raises(TableNotFoundError) as caught:
        open_table(path, **options)
    return str(caught.value)


READ = "Formats that are read: Paimon, Delta Lake, Iceberg, Hudi and DuckLake."


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("things.lance", f"is a Lance table, which is not read yet. {READ}"),
        (
            "ducks",
            "has data files of a DuckLake table. Open the table by its catalog: open_table('CATALOG::SCHEMA.TABLE').",
        ),
        ("lake.ducklake", "is no DuckLake catalog: it is neither a DuckDB file nor a SQLite file."),
        (
            "files",
            "is a folder of parquet files: it has no log, so it has no past versions. Read it with pandas or DuckDB.",
        ),
        (
            "parts",
            "is a folder of parquet files: it has no log, so it has no past versions. Read it with pandas or DuckDB.",
        ),
        (
            "numbers.csv",
            "is not a table: a CSV file has no versions. Read it with pandas or DuckDB, or give a table's folder.",
        ),
        ("readme", "is a file, not a table. Give the folder of a table."),
        ("shop.db", "is not a table. Tables are below it: find_tables('{path}')."),
        ("", "is not a table. Tables are below it: find_tables('{path}')."),
    ],
)
def test_a_path_of_another_kind_is_named(lake, name, sentence):
    path = str(lake / name)

    assert message(path) == f"{path} {sentence}".replace("{path}", path)


def test_tables_are_found_as_deep_below_as_a_search_looks(lake):
    (lake / "shop.db").rename(lake / "moved")
    (lake / "eu" / "north").mkdir(parents=True)
    (lake / "moved").rename(lake / "eu" / "north" / "shop.db")

    assert message(lake / "eu").endswith(f"Tables are below it: find_tables('{lake / 'eu'}').")


def test_a_path_inside_of_a_table_names_the_table(lake):
    payments, orders = lake / "shop.db" / "payments", lake / "shop.db" / "orders"
    paths = {
        payments / "_delta_log": payments,
        min((payments / "_delta_log").glob("*.json")): payments,
        next(payments.rglob("part-*.parquet")): payments,
        next(payments.rglob("part-*.parquet")).parent: payments,
        orders / "snapshot" / "snapshot-1": orders,
        orders / "manifest": orders,
    }
    for path, table in paths.items():
        if path != table:
            assert message(path) == f"{path} is inside of the table {table}. Open the table: open_table('{table}')."


def test_only_tables_are_suggested_for_a_missing_folder(lake):
    shop = lake / "shop.db"

    assert message(shop / "paymens").endswith(f" Did you mean payments? {shop} has 1 folder more.")
    assert f" Did you mean shop.db? {lake} has " in message(lake / "shp.db" / "payments")
    assert "Did you mean" not in message(lake / "things.lanc")
    assert "Did you mean" not in message(lake / "hudy")
    assert message(shop / "zzz").endswith(f" {shop} has 2 folders, among them the tables orders, payments.")


def test_a_table_of_another_format_is_still_named(lake):
    path = lake / "shop.db" / "payments"

    assert message(path, format="paimon").endswith(
        "is not a paimon table but a delta table. Leave the format out, or write delta."
    )


def test_other_folders_are_named_in_memory_too(memory_root):
    filesystem, root = memory_root
    filesystem.pipe_file(f"{root}/sales/part-0.parquet", b"x")
    filesystem.pipe_file(f"{root}/numbers.csv", b"x")

    assert "is a folder of parquet files" in message(f"memory://{root}/sales")
    assert "a CSV file has no versions" in message(f"memory://{root}/numbers.csv")
