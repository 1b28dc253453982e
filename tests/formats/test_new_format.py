"""A new format is one folder and one word in FORMATS: everything else follows from the interface."""

import pickle

import pyarrow as pa
import pytest

from snapshot_explorer import find_tables, formats, open_table
from snapshot_explorer.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from snapshot_explorer.formats import TableFormat, TableVersion
from snapshot_explorer.table import parts_of
from tests.support.toy_format import Toy, write_version


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "FORMATS", (*formats.FORMATS, Toy))
    for number, ids in enumerate(([1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]), 1):
        write_version(tmp_path / "shop" / "things", number, pa.table({"id": ids, "name": [f"n{one}" for one in ids]}))
    return tmp_path / "shop"


@pytest.fixture
def table(folder):
    return open_table(folder / "things")


def test_its_tables_are_opened_and_found(folder, table):
    assert table.format == "toy"
    assert table.current.version == 3
    assert "toy" in str(table)
    assert find_tables(folder).to_arrow().select(["name", "format", "version"]).to_pylist() == [
        {"name": "things", "format": "toy", "version": 3}
    ]
    with pytest.raises(TableNotFoundError, match="Toy tables have no branches"):
        open_table(folder / "things", branch="dev")


def test_its_history_and_rows_are_read(table):
    assert table.history().to_arrow()["version"].to_pylist() == [3, 2, 1]
    assert table.at("latest~1").to_arrow(where="id > 2").to_pylist() == [
        {"id": 3, "name": "n3"},
        {"id": 4, "name": "n4"},
    ]
    assert table.at(1).count() == 3
    assert table.sql("select count(*) as n from this version as of 1")["n"].to_list() == [3]
    assert pickle.loads(pickle.dumps(parts_of(table.at(3)).loaded.version)).number == 3


def test_no_file_is_written_into_its_tables_and_messages_name_it(folder, table):
    with pytest.raises(InvalidArgumentError, match="log.csv is in the table .*things, which is read-only"):
        table.history().to_csv(folder / "things" / "log.csv")
    (folder / "notes").mkdir()
    (folder / "notes" / "readme.txt").touch()
    with pytest.raises(
        TableNotFoundError, match="Iceberg, Hudi, DuckLake or Toy table at .*Hudi tables .hoodie/, Toy tables toy/"
    ):
        open_table(folder / "notes")


def test_its_versions_are_compared(table):
    comparison = table.compare(1, 3)

    assert comparison.files.to_arrow()["change"].to_pylist() == ["removed", "added"]
    assert "things" in str(comparison)
    counts = table.diff_rows(1, 3, key="id").counts
    assert {kind: count for kind, count in counts.items() if count} == {"inserted": 2, "deleted": 1}
    assert table.bisect("count(*) > 3").version == 2
    assert len(table.lifetimes().to_arrow()) == 3


def test_what_it_lacks_has_a_default_or_is_refused_by_name(table):
    assert table.tags().to_arrow().num_rows == 0
    assert table.branches().to_arrow().num_rows == 0
    assert table.verify().versions.to_arrow()["readable"].to_pylist() == [None, None, None]
    with pytest.raises(UnsupportedFeatureError, match="Retention of toy tables is not supported"):
        table.retention(keep="1h")
    with pytest.raises(UnsupportedFeatureError, match="Health is not supported"):
        table.health(metadata_only=True)
    with pytest.raises(InvalidArgumentError, match="toy tables have no metadata table"):
        table.inspect("files")


def test_what_it_has_to_implement_stays_small():
    members = [
        name
        for one in (TableFormat, TableVersion)
        for name in {**vars(one), **vars(one).get("__annotations__", {})}
        if not name.startswith("_")
    ]

    assert len(members) <= 60
    assert len(TableFormat.__abstractmethods__ | TableVersion.__abstractmethods__) <= 12
