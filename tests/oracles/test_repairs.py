"""The connectors of all formats run the statements of repairs: the rows afterwards are those to expect."""

import json

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


def test_only_a_key_is_refused_that_an_earlier_repair_by_another_one_made_ambiguous(outcomes):
    refused = [outcome["refused"] for outcome in outcomes if "refused" in outcome]

    assert all("is the same in several rows of version" in message for message in refused)
    assert len(refused) < len(outcomes) / 3


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
