"""Delta's and Iceberg's connectors run the statements of repairs: the rows afterwards are those to expect."""

import json
import sys

import pytest

from tests.support.oracles.delta_chosen import SEED

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="session", params=["delta", "iceberg"])
def outcomes(request, oracle):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLANNER", sys.executable)
        folder = oracle("repair_tables.py", request.param, SEED)
    return json.loads((folder / "outcomes.json").read_text())


@pytest.fixture
def done(outcomes):
    return [outcome for outcome in outcomes if outcome.get("statements")]


def test_the_rows_afterwards_are_those_to_expect(done):
    assert len(done) >= 10
    for outcome in done:
        assert outcome["rows"] == outcome["expected"], outcome["statements"]


def test_the_numbers_of_rows_are_those_that_changed(done):
    for outcome in done:
        counts = outcome["counts"]
        gained, lost = counts["inserted"] + counts["updated"], counts["deleted"] + counts["updated"]
        assert [gained, lost] == outcome["changes"], outcome["statements"]


def test_the_check_finds_no_difference_afterwards(done):
    assert all(outcome["is_checked"] for outcome in done)


def test_nothing_is_refused(outcomes):
    assert [outcome["refused"] for outcome in outcomes if "refused" in outcome] == []


def test_statements_of_every_form_are_run(outcomes):
    words = {statement.split()[0] for outcome in outcomes for statement in outcome["statements"]}
    merges = [text for outcome in outcomes for text in outcome["statements"] if text.startswith("MERGE")]

    assert words & {"RESTORE", "CALL"}
    assert {"INSERT", "MERGE"} <= words
    assert any("WHEN MATCHED AND" in text for text in merges)  # by the condition
    assert any("WHEN MATCHED THEN" in text for text in merges)  # by a list of keys
