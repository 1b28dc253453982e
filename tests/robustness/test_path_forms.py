"""A seeded sample of what `path_search` does whole: a table whose files are named by other paths, and its answers."""

import os
import random

import pytest

from tests.support import fault_search, path_search

CASES = 8
"""Calls of each table."""
SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "13"))
"""`python -m tests.support.path_search --seed N` looks for more."""


def _tables():
    """Return a table of each format whose metadata is in files, by chance."""
    names = [name for name in fault_search.tables() if not name.endswith("/empty")]
    names = [name for name in names if name not in fault_search.IN_CATALOGS]
    chance = random.Random(SEED)
    kinds = [[name for name in names if name.startswith(f"{kind}/")] for kind in fault_search.FORMATS]
    return [chance.choice(kind) for kind in kinds if kind]


@pytest.mark.parametrize("table", _tables())
def test_files_named_by_other_paths_give_the_answers_of_the_plain_table(table):
    counts, findings = path_search.run([table], sample=CASES, seed=SEED)

    assert not [str(finding) for finding in findings]
    assert counts["right"] == CASES


def test_orphans_of_a_table_named_by_other_paths_are_those_of_the_plain_table():
    counts, findings = path_search.run(["samples/payments"], call="orphans$", sample=CASES, seed=SEED)

    assert not [str(finding) for finding in findings]
    assert counts["right"] == CASES
