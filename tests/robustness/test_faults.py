"""A seeded sample of what `fault_search` does whole: a fault in a request of a public call, and what comes of it."""

import os
import random

import pytest

from tests.support import fault_search
from tests.support.faults import KINDS, registered

CASES = 20
"""Faults in each table: about a second of processor; `python -m tests.support.fault_search` tries all."""
SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "13"))
"""`python -m tests.support.fault_search --seed N` looks for more."""


def _tables():
    """Return two tables of each format, by chance."""
    names = [name for name in fault_search.tables() if not name.endswith("/empty")]
    chance = random.Random(SEED)
    kinds = [[name for name in names if name.startswith(f"{kind}/")] for kind in fault_search.FORMATS]
    return [name for kind in kinds for name in chance.sample(kind, min(2, len(kind)))]


@pytest.mark.parametrize("table", _tables())
def test_a_fault_in_a_request_gives_the_right_answer_or_our_error(table):
    with registered():
        bench = fault_search.Bench(table, fault_search.tables()[table])
        cases = fault_search.Choice(sample=CASES, seed=SEED).of(bench)
        findings = [finding for case in cases if (finding := bench.find(case))]

    assert not [f"{finding.outcome}: {finding.case}: {finding.detail}" for finding in findings]


def test_every_kind_of_fault_is_planted():
    with registered():
        bench = fault_search.Bench("samples/payments", fault_search.tables()["samples/payments"])

        kinds = {case.fault.kind for case in bench.cases(fault_search.Choice(call="open|history$|to_arrow$"))}

    assert kinds == set(KINDS)


def test_anomalies_name_what_vanished_between_two_reads_of_it():
    """A manifest list that was read for the statistics, and is gone when the files are counted."""
    name = "paimon/dv_1_4"
    with registered():
        bench = fault_search.Bench(name, fault_search.tables()[name])
        cases = [
            case
            for case in bench.cases(fault_search.Choice(call="^anomalies$", kinds=("missing",)))
            if case.fault.lasts and "/manifest-list-" in case.fault.request.path
        ]

        assert len(cases) > 10
        assert not [str(case) for case in cases if bench.find(case)]


def test_orphans_of_a_folder_that_shows_no_file_of_a_table_that_was_read_are_unknown():
    name = "iceberg/registered_again"
    with registered():
        bench = fault_search.Bench(name, fault_search.tables()[name])
        choice = fault_search.Choice(call="^orphans$", kinds=("missing",))
        cases = [case for case in bench.cases(choice) if case.fault.request.operation == "list"]

        assert len(cases) > 2
        assert not [str(case) for case in cases if bench.find(case)]
