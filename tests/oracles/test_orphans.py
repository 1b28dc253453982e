"""What `orphans` says that clean-ups delete, against what dry runs of the engines list; and twins by the engine."""

import json

import pytest

from snapshot_explorer import open_table, twins

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(("name", "engine"), [("paimon", "paimon"), ("delta", "spark"), ("iceberg", "spark")])
def test_clean_up_deletes_what_a_dry_run_of_the_engine_lists(oracle, name, engine):
    folder = oracle("orphan_tables.py", engine)
    listed = json.loads((folder / "deleted" / f"{name}.json").read_text())
    orphans = open_table(folder / "tables" / name).orphans()

    rows = orphans.files.to_arrow().to_pylist()
    assert sorted(row["path"] for row in rows if row["clean_up"] == "deleted") == listed
    assert {row["clean_up"] for row in rows} == {"deleted", "ignored"}
    assert orphans.is_complete


def test_iceberg_metadata_that_paimon_writes_names_the_files_of_its_snapshots(oracle):
    folder = oracle("paimon_twins.py") / "tables"

    assert (twins(folder / "appended").matched, twins(folder / "appended").ahead) == ((3, 3), (2, 0))
    assert twins(folder / "keyed").ahead == (1, 0)
