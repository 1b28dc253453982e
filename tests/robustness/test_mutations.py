"""Damaged tables: every public call answers or refuses. A sample of what `mutate` does for as long as it is told."""

from tests.support import mutations

TABLES = 18


def test_calls_on_mutated_tables_answer_or_refuse(tmp_path):
    results = mutations.run(range(TABLES), folder=tmp_path)

    assert mutations.failures(results) == []
    assert len(results) == TABLES
