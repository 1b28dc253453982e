"""What `orphans` says that clean-ups delete, against what dry runs of the engines list; and twins by the engine."""

import json

import pytest

from snapshot_explorer import open_table, twins


@pytest.mark.parametrize("name", ["paimon", "delta", "iceberg"])
def test_clean_up_deletes_what_a_dry_run_of_the_engine_lists(oracle, connector_wrote, name):
    folder = oracle("orphan_tables.py") if name == "paimon" else connector_wrote("iceberg")
    listed = json.loads((folder / "deleted" / f"{name}.json").read_text())
    orphans = open_table(folder / "planted" / name).orphans()

    rows = orphans.files.to_arrow().to_pylist()
    assert sorted(row["path"] for row in rows if row["clean_up"] == "deleted") == listed
    assert {row["clean_up"] for row in rows} == {"deleted", "ignored"}
    assert orphans.is_complete


def test_iceberg_metadata_that_paimon_writes_names_the_files_of_its_snapshots(oracle):
    folder = oracle("paimon_twins.py") / "tables"

    assert (twins(folder / "appended").matched, twins(folder / "appended").ahead) == ((3, 3), (2, 0))
    assert twins(folder / "keyed").ahead == (1, 0)
