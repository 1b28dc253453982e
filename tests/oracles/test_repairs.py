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
    assert len(done) >= 8
    for outcome in done:
        assert outcome["rows"] == outcome["expected"], outcome["statements"]


def test_the_numbers_of_rows_are_those_that_changed(done):
    for outcome in done:
        counts = outcome["counts"]
        gained, lost = counts["inserted"] + counts["updated"], counts["deleted"] + counts["updated"]
        assert [gained, lost] == outcome["changes"], outcome["statements"]


def test_the_check_finds_no_difference_afterwards(done):
    assert all(outcome["is_checked"] for outcome in done)


def test_only_a_key_is_refused_that_an_earlier_repair_by_another_one_made_ambiguous(outcomes):
    refused = [outcome["refused"] for outcome in outcomes if "refused" in outcome]

    assert all("is the same in several rows of version" in message for message in refused)
    assert len(refused) < len(outcomes) / 3


def test_many_keys_are_merged_by_the_condition(done):
    merges = [text for outcome in done for text in outcome["statements"] if text.startswith("MERGE")]

    assert any("WHEN MATCHED AND" in text for text in merges)
