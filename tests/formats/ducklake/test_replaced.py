"""A catalog that is replaced, restored or lost while its table is open: no answer mixes two catalogs."""

import shutil
from pathlib import Path

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError, TableNotFoundError
from snapshot_explorer.table import parts_of
from tests.inner.engines import check_files

SHOP = Path(__file__).parents[2] / "data" / "ducklake" / "shop"
REPLACED = (
    r"catalog .*lake\.sqlite was replaced: it is not the one in which main.rows was opened\..*open the table again"
)


def opened(catalog):
    return open_table(f"memory://{catalog.root}/{catalog.name}")


REPLACEMENTS = {
    "another table with the number": "UPDATE ducklake_table SET table_uuid = 'another'",
    "other commits with the numbers": "UPDATE ducklake_snapshot SET snapshot_time = '2027-01-01 00:00:00+00'",
}


@pytest.mark.parametrize("statement", REPLACEMENTS.values(), ids=REPLACEMENTS)
def test_a_replaced_catalog_is_recognized_by_all_that_read_it(catalog, statement):
    table = opened(catalog)
    before, rows = table.current, table.current.to_arrow()
    catalog.commit_rows([(4, "d")])
    catalog.execute(statement)

    for call in (
        table.update,
        table.versions,
        table.history,
        table.orphans,
        lambda: table.at(3),
        lambda: table.compare(1, 3),
        lambda: table.diff_rows(2, 3),
        lambda: table.row_changes(1, 3),
        lambda: table.inspect("options"),
    ):
        with pytest.raises(TableNotFoundError, match=REPLACED):
            call()
    assert before.to_arrow().equals(rows)
    assert before.to_arrow(where="id >= 1").equals(rows)
    assert opened(catalog).current.count() == 4


def test_an_older_copy_of_the_catalog_is_the_same_lake(catalog):
    table = opened(catalog)
    older = catalog.filesystem.cat_file(f"{catalog.root}/{catalog.name}")
    catalog.commit_rows([(4, "d")])
    assert table.versions() == (1, 2, 3)

    catalog.filesystem.pipe_file(f"{catalog.root}/{catalog.name}", older)

    assert table.versions() == (1, 2)
    assert table.at("latest").count() == 3


def test_a_catalog_that_is_gone_is_said_so_and_loaded_versions_remain(catalog):
    table = opened(catalog)
    before = table.current
    catalog.filesystem.rm_file(f"{catalog.root}/{catalog.name}")

    with pytest.raises(TableNotFoundError, match="There is no catalog at .*: the file does not exist"):
        table.update()
    assert before.count() == 3


def test_a_data_file_that_is_gone_or_cut_short_is_named(catalog):
    table = opened(catalog)
    path = f"{catalog.root}/main/rows/data-2.parquet"
    content = catalog.filesystem.cat_file(path)

    catalog.filesystem.pipe_file(path, content[:-9])
    with pytest.raises(
        CorruptTableError, match=rf"data-2\.parquet has {len(content) - 9} bytes, but the catalog records"
    ):
        table.current.to_arrow()
    catalog.filesystem.rm_file(path)
    with pytest.raises(CorruptTableError, match=r"data-2\.parquet does not exist"):
        table.current.to_arrow()
    assert table.at(1).count() == 2
    assert [row["version"] for row in table.verify().versions.to_dict() if row["readable"] == "yes"] == [1]


def test_a_missing_delete_file_is_named_before_executors_read(tmp_path):
    lake = shutil.copytree(SHOP, tmp_path / "lake")
    version = parts_of(open_table(lake / "shop.ducklake", table="main.orders").current).loaded.version
    splits = version.plan(None).splits
    check_files(version, splits)
    gone = next(path for split in splits for path in split.delete_files)
    (lake / "data" / gone).unlink()

    with pytest.raises(CorruptTableError, match=f"The delete file {gone} does not exist"):
        check_files(version, splits)
