"""The sample tables: real, small, and read as their writers read them."""

import json
from pathlib import Path

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import TableNotFoundError
from tests.support.canonical import canonical_rows

EXPECTED = Path(__file__).parent.parent / "data" / "expected" / "samples"
CASES = sorted(EXPECTED.glob("*/*.json"))


@pytest.fixture(scope="module")
def paths():
    return {name: samples.path(name) for name in samples.names()}


def snapshot_of(path, case):
    """Return the snapshot that a file of expected rows is about: `5`, `tag-v1` or `branch-dev-6`."""
    kind, _, rest = case.stem.partition("-")
    if kind == "branch":
        branch, _, version = rest.rpartition("-")
        return open_table(path, branch=branch).at(int(version))
    return open_table(path).at(f"tag:{rest}" if kind == "tag" else int(case.stem))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.stem}")
def test_rows_are_what_the_writer_reads(paths, case):
    expected = json.loads(case.read_text())

    rows = snapshot_of(paths[case.parent.name], case).to_arrow()

    assert rows.column_names == expected["columns"]
    assert canonical_rows(rows) == expected["rows"]


def test_every_version_tag_and_branch_has_expected_rows(paths):
    for name, path in paths.items():
        versions = {str(version) for version in open_table(path).versions()}
        assert versions <= {case.stem for case in CASES if case.parent.name == name}


def test_a_path_is_a_fresh_copy_each_time():
    first, second = samples.path("orders"), samples.path("orders")

    assert first != second
    assert Path(first).name == "orders"


def test_a_lake_is_the_path_of_its_catalog():
    catalog = Path(samples.path("festival"))

    assert catalog.is_file()
    assert open_table(catalog, table="refunds").name == "main.refunds"


def test_an_unknown_sample_names_the_nearest():
    with pytest.raises(
        TableNotFoundError,
        match=r"Sample 'order' does not exist. Available: events, invoices, orders, .*, festival. Did you mean orders",
    ):
        samples.path("order")


def test_the_samples_are_small():
    folder = Path(samples.__file__).parent
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.parent != folder)

    assert size < 1_250_000
