"""DuckDB's own extension writes DuckLake histories at random in this run; we read the same rows at every snapshot.

SNAPSHOT_EXPLORER_SEED says what is random.
"""

import json
import os
from itertools import pairwise

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotNotFoundError
from tests.oracles.ducklake_tables import CATALOGS, TABLES
from tests.support import logical_counts
from tests.support.ducklake.write_lakes import plain

SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "1"))
CASES = [(catalog, table) for catalog in CATALOGS for table in TABLES]


@pytest.fixture
def written(oracle):
    """Return a table of a random lake, and what DuckDB read: rows by snapshot, once or twice, and expired snapshots."""
    print(f"seed {SEED}; SNAPSHOT_EXPLORER_SEED sets another")  # noqa: T201 - shown where a test fails

    def opened(catalog, table):
        folder = oracle("ducklake_tables.py", SEED, inner="ducklake") / catalog
        answers = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
        rows = {int(number): [found] for number, found in answers["rows"][table].items()}
        for number, found in answers["later"][table].items():
            rows[int(number)].append(found)
        return open_table(folder / CATALOGS[catalog].rpartition(":")[2], table=table), rows, answers["expired"]

    return opened


def rows_at(table, version, columns):
    read = table.at(version).to_arrow(columns=columns).sort_by("_row_id")
    return [
        [plain(value) for value in row] for row in zip(*(column.to_pylist() for column in read.columns), strict=True)
    ]


@pytest.mark.parametrize(("catalog", "name"), CASES)
def test_every_snapshot_has_the_rows_that_duckdb_read(written, catalog, name):
    table, rows, expired = written(catalog, name)

    for number, found in rows.items():
        if number in expired:
            with pytest.raises(SnapshotNotFoundError, match="has expired"):
                table.at(number)
        else:
            columns = found[0]["columns"]
            assert {"columns": columns, "rows": rows_at(table, number, columns)} in found, number
            assert table.at(number).count() == len(found[0]["rows"])


@pytest.mark.parametrize(("catalog", "name"), CASES)
def test_changed_rows_lead_from_each_version_to_the_next(written, catalog, name):
    table, _, _ = written(catalog, name)

    for before, after in pairwise(table.versions()):
        ids = dict.fromkeys(table.at(before).to_arrow(columns=["_row_id"])["_row_id"].to_pylist())
        changed = table.row_changes(before, after, columns=["_row_id"]).to_pylist()
        for row in changed:
            if row["rowkind"] in ("-D", "-U"):
                del ids[row["_row_id"]]
        ids |= dict.fromkeys(row["_row_id"] for row in changed if row["rowkind"] in ("+I", "+U"))
        assert ids.keys() == set(table.at(after).to_arrow(columns=["_row_id"])["_row_id"].to_pylist()), after


@pytest.mark.parametrize(("catalog", "name"), CASES)
def test_the_rows_of_commits_are_those_that_differ(written, catalog, name):
    logical_counts.check(written(catalog, name)[0])


@pytest.mark.parametrize(("catalog", "name"), CASES)
def test_the_history_of_rows_is_the_states_of_all_versions(written, catalog, name):
    table, _, _ = written(catalog, name)
    history = table.row_history().to_arrow().select(["id", "_from_version", "_to_version"]).to_pylist()

    for version in table.versions():
        live = [
            row["id"]
            for row in history
            if row["_from_version"] <= version and (row["_to_version"] is None or version < row["_to_version"])
        ]
        assert sorted(live) == sorted(table.at(version).to_arrow(columns=["id"])["id"].to_pylist()), version


@pytest.mark.parametrize(("catalog", "name"), CASES)
def test_every_file_is_there_and_none_is_an_orphan(written, catalog, name):
    table, _, _ = written(catalog, name)

    assert not [row for row in table.orphans().files.to_dict() if row["is_orphan"]]
    assert {row["readable"] for row in table.verify().versions.to_dict()} == {"yes"}
