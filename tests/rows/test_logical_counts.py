"""The rows that commits inserted, updated and deleted, as their metadata counts them and as the rows differ."""

from pathlib import Path

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import UnsupportedFeatureError
from tests.support.logical_counts import check

DATA = Path(__file__).parents[1] / "data"
TABLES = sorted(
    str(folder.relative_to(DATA))
    for parent in ("delta", "hudi", "hudi_change_data", "iceberg", "paimon")
    for folder in (DATA / parent).iterdir()
    if folder.is_dir()
)
NOT_OPENED = ("hudi/foreign_table_format", "hudi/table_version_10")


@pytest.mark.parametrize("name", TABLES)
def test_counts_of_commits_are_those_of_the_rows_that_differ(name):
    try:
        table = open_table(DATA / name)
    except UnsupportedFeatureError:
        assert name in NOT_OPENED
        return

    check(table)
