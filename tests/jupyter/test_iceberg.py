"""The magics over an Iceberg table, and what is Iceberg's own."""

import shutil
from pathlib import Path

import pytest

from snapshot_explorer import samples


@pytest.fixture(scope="module")
def path():
    return Path(samples.path("shipments"))


def test_a_table_that_was_moved_is_opened_listed_and_loaded(shell, path):
    shell.ok(f"%snapshot open {path} as shipments")

    assert shell.ok("%snapshot tables").result["format"].to_pylist() == ["iceberg"]
    assert shell.ok("%snapshot log -n 3").result["version"].to_pylist() == [16, 15, 14]
    assert shell.ok("%snapshot branches").result["branch"].to_pylist() == ["reweigh"]
    assert len(shell.ok("%snapshot load tag:first-days").result) == 46
    assert "by a rollback. Open it with branch='" in str(shell.fails("%snapshot show @2026-11-07T12:00:00Z"))


def test_a_metadata_file_opens_the_table_as_it_was_then(shell, path):
    file = min(path.glob("metadata/*.json"))

    shell.ok(f"%snapshot open {file} as before")

    assert shell["before"].current.version < 16


def test_folders_that_lie_elsewhere_are_named_by_a_variable(shell, path, tmp_path):
    shutil.copytree(path, tmp_path / "shipments")
    (tmp_path / "shipments" / "data").rename(tmp_path / "elsewhere")
    shell.ip.user_ns["moved"] = {"s3a://lake/shop/shipments/data": str(tmp_path / "elsewhere")}

    shell.ok(f"%snapshot open {tmp_path / 'shipments'} as shipments --relocate moved")

    assert len(shell.ok("%snapshot load").result) == 118
    assert "--relocate must be a variable" in str(shell.fails(f"%snapshot open {path} as other --relocate nothing"))
