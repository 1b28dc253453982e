"""Tables that Iceberg wrote, at every version of every branch: the rows that Iceberg's own readers read."""

import json
from pathlib import Path

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.history import history_of
from tests.support.canonical import canonical_rows

DATA = Path(__file__).parents[2] / "data"
EXPECTED = sorted((DATA / "expected" / "iceberg").glob("*/*.json"))
TABLES = sorted((DATA / "iceberg").iterdir())
LINEAGE = ("_row_id", "_last_updated_sequence_number")


def opened(path, expected):
    branch = expected.get("branch")
    if "branch" in expected and branch is None:
        branch = str(expected["snapshot_id"])
    return open_table(DATA / "iceberg" / path.parent.name, branch=branch)


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_rows_are_those_that_iceberg_reads(path):
    expected = json.loads(path.read_text(encoding="utf-8"))
    snapshot = opened(path, expected).at(expected["version"])

    rows = snapshot.to_arrow()

    assert rows.column_names == expected["columns"]
    assert canonical_rows(rows) == expected["rows"]
    assert snapshot.count() == len(expected["rows"])
    assert snapshot.files().num_rows == expected["files"]
    assert snapshot.commit.identifier == str(expected["snapshot_id"])
    if "lineage" in expected:
        assert canonical_rows(snapshot.to_arrow(columns=[*expected["columns"], *LINEAGE])) == expected["lineage"]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_lifetimes_and_entries_lead_to_the_files_of_every_version(path):
    table = open_table(path)
    lifetimes = table.lifetimes()

    assert lifetimes.versions == table.versions()
    for version in table.versions():
        snapshot = table.at(version)
        files = sorted(snapshot.files()["path"].to_pylist())
        manifests = [
            one["path"] for one in snapshot.manifests().to_arrow().to_pylist() if one["list"] in ("base", "delta")
        ]
        entries = [row for one in manifests for row in snapshot.entries(one).to_arrow().to_pylist()]
        assert sorted(lifetimes.files_at(version)["path"].to_pylist()) == files
        assert sorted(row["path"] for row in entries if row["change"] != "remove") == files


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_every_metadata_table_is_of_every_version(path):
    table = open_table(path)

    for one in history_of(table).table_format.inspections:
        for ref in table.versions() if one.at_version else (None,):
            found = table.inspect(one.name, ref)
            found.to_arrow().validate(full=True)
            assert len(json.loads(found.to_json())) == found.num_rows
    assert table.inspect("data_files").num_rows == table.current.files().num_rows


def test_readable_metrics_have_typed_bounds_by_dotted_name():
    files = open_table(DATA / "iceberg" / "v2_cow").inspect("files").to_arrow()

    metrics = files["readable_metrics"].to_pylist()

    assert list(metrics[0]) == sorted(metrics[0])
    for counted, raw, found in zip(
        metrics, files["value_counts"].to_pylist(), files["record_count"].to_pylist(), strict=True
    ):
        assert counted["id"]["value_count"] == dict(raw)[1] == found
        assert isinstance(counted["id"]["lower_bound"], int)
        assert counted["id"]["lower_bound"] <= counted["id"]["upper_bound"]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_metadata_tables_of_all_snapshots_contain_those_of_each(path):
    table = open_table(path)
    every = {name: table.inspect(f"all_{name}").to_arrow() for name in ("files", "data_files", "manifests")}

    for version in table.versions():
        for name, column in (("files", "file_path"), ("data_files", "file_path"), ("manifests", "path")):
            assert set(table.inspect(name, version)[column].to_pylist()) <= set(every[name][column].to_pylist())
    entries, deletes = table.inspect("all_entries"), table.inspect("all_delete_files")
    assert every["files"].num_rows == sum(status < 2 for status in entries["status"].to_pylist())
    assert every["files"].num_rows == every["data_files"].num_rows + deletes.num_rows
    assert set(every["manifests"]["reference_snapshot_id"].to_pylist()) <= set(
        table.inspect("snapshots")["snapshot_id"].to_pylist()
    )


def test_deletions_of_a_file_are_shown_with_its_deletion_vector_or_the_delete_files():
    vectors = open_table(DATA / "iceberg" / "v3_dv").current.files().to_arrow()
    deletes = open_table(DATA / "iceberg" / "v2_equality_deletes").at(3).files().to_arrow()

    assert all("-deletes.puffin@" in one for one in vectors["deletion_vector"].to_pylist())
    assert sum(vectors["deleted_rows"].to_pylist()) == 6
    assert deletes["deleted_rows"].null_count == len(deletes)
    assert any(one is not None and one.endswith(".parquet") for one in deletes["deletion_vector"].to_pylist())


def test_statistics_of_files_are_bounds_by_column():
    files = open_table(DATA / "iceberg" / "v3_dv").at(1).files(statistics=True).to_arrow().to_pylist()

    assert files[0]["lower"]["id"] == 1
    assert files[0]["null_count"]["id"] == 0


def test_a_condition_on_the_partition_restricts_the_files():
    table = open_table(DATA / "iceberg" / "v2_mor_partitioned")
    kinds = {one["kind"] for one in table.current.files().to_arrow().to_pandas()["partition"].map(dict)}

    (chosen,) = {
        one["kind"] for one in table.current.files({"kind": "x"}).to_arrow().to_pandas()["partition"].map(dict)
    }

    assert chosen == "x"
    assert len(kinds) > 1
