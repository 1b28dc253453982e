"""Facts about the writer of a commit, read from the details that it stored."""

import json

import pytest

from tests.inner.view import writer_facts

DELTA = {"engineInfo": "Apache-Spark/4.1.2 Delta-Lake/4.3.1", "operationMetrics": {"executionTimeMs": "2555"}}
FACTS_OF_DELTA = {"took": "2.6 s", "engine": "Apache-Spark/4.1.2 Delta-Lake/4.3.1"}


@pytest.mark.parametrize(
    ("details", "facts"),
    [
        (DELTA | {"job": {"jobId": "7", "jobName": "nightly"}}, FACTS_OF_DELTA | {"job": "nightly"}),
        (DELTA | {"job": {"jobId": "7"}}, FACTS_OF_DELTA | {"job": "7"}),
        (
            {"clientVersion": "delta-rs.0.9.0", "operationMetrics": {"execution_time_ms": 0}},
            {"took": "0.0 s", "engine": "delta-rs.0.9.0"},
        ),
        ({"summary": {"engine-name": "trino"}}, {"engine": "trino"}),
        (
            {"summary": {"engine-name": "spark", "engine-version": "4.0.1", "app-id": "local-1", "app-name": "load"}},
            {"engine": "spark 4.0.1", "job": "load"},
        ),
        ({"operationMetrics": {"executionTimeMs": "soon"}, "engineInfo": {"of": "another form"}}, {}),
        ({}, {}),
    ],
)
def test_facts_of_the_writer_are_found_among_the_details(details, facts):
    assert writer_facts(json.dumps(details)) == facts


@pytest.mark.parametrize("text", [None, "", "no JSON", "[1]", '"text"'])
def test_details_without_facts_of_the_writer(text):
    assert writer_facts(text) == {}
