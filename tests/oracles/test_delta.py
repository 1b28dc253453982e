"""Delta's connector writes tables in this run, for features and at random; we read the same rows.

Scenarios that are kept in tests/data are not played again: test_delta_kept.py tests those tables. Of the others a run
plays a fifth; SNAPSHOT_EXPLORER_SEED says which, and what is random.
"""

import json

import pytest

from snapshot_explorer import open_table
from tests.support import logical_counts
from tests.support.oracles import delta_answers as answers
from tests.support.oracles.delta_chosen import NAMES, SEED
from tests.support.spark_catalogs import DescribingSession

OVERFLOWS = "deltalake 1.6.6 reads INT96 as nanoseconds, which end in 1677 and 2262"
DIFFERENT = {"types_vectors_mapped": OVERFLOWS}


@pytest.fixture(scope="session")
def written(connector_wrote):
    print(f"seed {SEED}; SNAPSHOT_EXPLORER_SEED sets another")  # noqa: T201 - shown where a test fails
    return connector_wrote("delta")


def about(written, name):
    return json.loads((written / "expected" / f"{name}.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_every_version_has_the_rows_that_delta_reads(written, name):
    table = answers.opened(written / "tables" / name)

    for expected in answers.expected_versions(written / "expected" / name):
        answers.assert_version(table, expected)


@pytest.mark.parametrize("name", NAMES)
def test_every_version_changed_what_deltas_feed_shows(written, name):
    table = answers.opened(written / "tables" / name)

    for version, expected in about(written, name)["changes"].items():
        answers.assert_changes(table, int(version), expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_rows_of_commits_are_those_that_differ(written, name):
    logical_counts.check(answers.opened(written / "tables" / name))


@pytest.mark.parametrize("name", NAMES)
def test_history_and_detail_are_deltas(written, name):
    table = answers.opened(written / "tables" / name)

    answers.assert_history(table, about(written, name)["history"])
    answers.assert_detail(table, about(written, name)["detail"])


@pytest.mark.parametrize("name", NAMES)
def test_every_version_is_found_by_its_time_and_has_the_files_of_its_commit(written, name):
    table = answers.opened(written / "tables" / name)

    answers.assert_times(table)
    answers.assert_file_changes(table, written / "tables" / name)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in DIFFERENT])
def test_where_deltalake_reads_a_version_it_reads_what_delta_reads(written, name):
    assert (written / "deltalake" / name).is_dir()
    for expected in answers.expected_versions(written / "expected" / name):
        second = json.loads((written / "deltalake" / name / f"{expected['version']}.json").read_text())
        if second["outcome"] == expected["outcome"] == "rows":
            answers.assert_same(second["rows"], expected["rows"], f"version {expected['version']} read by deltalake")


def test_a_table_is_found_by_its_name_in_the_catalog(written):
    described = json.loads((written / "described.json").read_text())

    table = open_table("default.orders", spark=DescribingSession(described))

    assert table.format == "delta"
    assert table.current.to_arrow().to_pydict() == {"id": [1]}
