"""Hudi's connector for Spark writes tables at random in this run; we read the same rows, and so does hudi-rs.

SNAPSHOT_EXPLORER_SEED says what is random.
"""

import os

import pytest

from snapshot_explorer import open_table
from tests.support import logical_counts
from tests.support.hudi.histories import KINDS
from tests.support.oracles import hudi_answers as answers
from tests.support.oracles.lakes import JARS

SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "1"))


@pytest.fixture(scope="session")
def written(oracle, connector_wrote):
    """Return the folder of a random table, as its writer left it."""
    print(f"seed {SEED}; SNAPSHOT_EXPLORER_SEED sets another")  # noqa: T201 - shown where a test fails

    def folder(name):
        jar = KINDS[name][0]
        return connector_wrote("hudi") if jar == JARS["hudi"] else oracle("hudi_tables.py", jar, SEED, inner="hudi")

    return folder


@pytest.mark.parametrize("name", KINDS)
def test_every_version_has_the_rows_that_hudi_read(written, name):
    answers.assert_versions(written(name), name)


@pytest.mark.parametrize("name", KINDS)
def test_changed_rows_lead_from_each_version_to_the_next(written, name):
    answers.assert_changes(written(name), name)


@pytest.mark.parametrize("name", [name for name, (jar, *_) in KINDS.items() if jar == JARS["hudi"]])
def test_the_rows_of_commits_are_those_that_differ(written, name):
    # Hudi 0.15 multiplies the decimals of clustered files by 100 where it rewrites them.
    logical_counts.check(open_table(written(name) / "tables" / name))


@pytest.mark.parametrize("name", KINDS)
def test_hudi_rs_reads_the_same_rows_of_the_newest_version(written, name):
    answers.assert_newest(written(name), name)


@pytest.mark.parametrize("name", KINDS)
def test_retention_predicts_what_hudis_cleaner_deletes(written, name, tmp_path):
    answers.assert_cleaned(written(name), name, tmp_path / name)


@pytest.mark.parametrize("name", KINDS)
def test_retention_predicts_what_hudis_archiver_moves(written, name, tmp_path):
    answers.assert_archived(written(name), name, tmp_path / name)
