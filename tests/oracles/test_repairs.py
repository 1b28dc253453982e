"""The connectors of all formats run the statements of repairs: the rows afterwards are those to expect."""

import json
import re

import pytest


@pytest.fixture(scope="session", params=["delta", "iceberg", "paimon"])
def outcomes(request, connector_wrote):
    return json.loads((connector_wrote(request.param) / "outcomes.json").read_text())


def test_the_engine_runs_every_statement(outcomes):
    assert [(outcome["statements"], outcome["failed"]) for outcome in outcomes if "failed" in outcome] == []


@pytest.fixture
def done(outcomes):
    return [outcome for outcome in outcomes if outcome.get("statements")]


def test_the_rows_afterwards_are_those_to_expect(done):
    assert len(done) >= 6
    for outcome in done:
        assert outcome["rows"] == outcome["expected"], outcome["statements"]


def test_the_numbers_of_rows_are_those_that_changed(done):
    for outcome in done:
        counts = outcome["counts"]
        gained, lost = counts["inserted"] + counts["updated"], counts["deleted"] + counts["updated"]
        assert [gained, lost] == outcome["changes"], outcome["statements"]


def test_the_check_finds_no_difference_afterwards(done):
    assert all(outcome["is_checked"] for outcome in done)


def test_only_ambiguous_rows_are_refused(outcomes):
    """A key that an earlier repair by another one made ambiguous, and updates without a key."""
    refused = [outcome["refused"] for outcome in outcomes if "refused" in outcome]

    reasons = "is the same in several rows of version|Without a key, which belong together is unknown|is not unique"
    assert [message for message in refused if not re.search(reasons, message)] == []
    assert len(refused) < len(outcomes) / 2


def test_single_commits_are_undone_and_rows_of_later_ones_left(done):
    undone = [outcome for outcome in done if outcome["undone"] is not None]

    assert len(undone) >= 2
    assert any(outcome["left"] for outcome in undone)
    assert any("VERSION AS OF" in text and " AS later" in text for outcome in undone for text in outcome["statements"])


def test_many_keys_are_merged_by_the_condition(done):
    merges = [text for outcome in done for text in outcome["statements"] if text.startswith("MERGE")]

    assert any("WHEN MATCHED AND" in text for text in merges)


def test_hudi_restores_a_savepoint_and_nothing_else_is_written_for_it(connector_wrote):
    outcomes = json.loads((connector_wrote("hudi") / "outcomes.json").read_text())
    refused = [outcome["refused"] for outcome in outcomes if "refused" in outcome]
    done = [outcome for outcome in outcomes if "refused" not in outcome]

    assert {text.split(".")[0].split(" has ")[-1] for text in refused} == {
        "No statements on rows are written for Hudi tables",
        "no savepoint, and Hudi restores only to savepoints",
    }
    assert len(done) == len(refused) / 2
    for outcome in done:
        counts = outcome["counts"]
        assert outcome["rows"] == outcome["expected"], outcome["statements"]
        assert outcome["changes"] == [counts["inserted"] + counts["updated"], counts["deleted"] + counts["updated"]]
