"""Tables that Delta's connector wrote and that are kept here: read without Java as Delta read them."""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from snapshot_explorer import samples
from tests.inner.core import PYARROW_VARIANTS
from tests.support.old_libraries import refused_if
from tests.support.oracles import delta_answers as answers

DATA = Path(__file__).parent.parent / "data"
EXPECTED = DATA / "expected" / "delta"
SAMPLE = Path(samples.__file__).parent / "payments"
TABLES = {folder.name: folder for folder in [*sorted((DATA / "delta").iterdir()), SAMPLE]}
VERSIONS = sorted(EXPECTED.glob("*/*.json"))


@pytest.fixture
def timed(tmp_path):
    """A callable that gives what is expected of a table, and a copy of it whose files have the times they had."""

    def copied(name):
        about = json.loads((EXPECTED / f"{name}.json").read_text())
        shutil.copytree(TABLES[name], tmp_path / name)
        answers.restore_times(tmp_path / name, about)
        return about, answers.opened(tmp_path / name)

    return copied


@pytest.mark.parametrize("case", VERSIONS, ids=lambda case: f"{case.parent.name}-{case.stem}")
def test_a_version_has_the_rows_that_delta_reads(case):
    table = answers.opened(TABLES[case.parent.name])
    has_variants = case.parent.name == "variants" and case.stem != "0"

    with refused_if(PYARROW_VARIANTS) if has_variants else nullcontext():
        answers.assert_version(table, json.loads(case.read_text()))


@pytest.mark.parametrize("name", TABLES)
def test_every_version_changed_what_deltas_feed_shows(timed, name):
    about, table = timed(name)

    for version, expected in about["changes"].items():
        answers.assert_changes(table, int(version), expected)


@pytest.mark.parametrize("name", TABLES)
def test_history_and_detail_are_deltas(timed, name):
    about, table = timed(name)

    answers.assert_history(table, about["history"])
    answers.assert_detail(table, about["detail"])


@pytest.mark.parametrize("name", TABLES)
def test_every_version_is_found_by_its_time_and_has_the_files_of_its_commit(timed, name):
    _, table = timed(name)

    answers.assert_times(table)
    answers.assert_file_changes(table, TABLES[name])


@pytest.mark.parametrize("name", TABLES)
def test_every_kept_table_has_expected_rows_at_each_version(name):
    rows = EXPECTED.parent / "samples" / name if TABLES[name] == SAMPLE else EXPECTED / name
    expected = {int(case.stem) for case in rows.glob("*.json")}

    assert set(answers.opened(TABLES[name]).versions()) <= expected
