"""What is proven of rows by metadata: against the rows themselves."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.analysis.compare import Comparison
from snapshot_explorer.core import frames
from snapshot_explorer.formats.paimon import Paimon
from snapshot_explorer.storage import Storage
from tests.inner.analysis import compare_files, difference_proof, files_frame
from tests.support.paimon.table_builder import PaimonTable

TABLES = Path(__file__).parents[1] / "data" / "paimon"


def changed_rows(before, after, keys):
    """Return how many rows differ, an updated one counted once where rows have keys."""
    counts = Counter(map(repr, before)), Counter(map(repr, after))
    differing = (counts[0] - counts[1]) + (counts[1] - counts[0])
    if not keys:
        return sum(differing.values())
    return len({tuple(repr(row[key]) for key in keys) for row in (*before, *after) if repr(row) in differing})


def bound_of(sentence):
    """Return how many rows a sentence says have changed at most."""
    if sentence.startswith("The rows are the same") or "Neither" in sentence:
        return 0
    return int(sentence.partition("At most ")[2].split()[0].replace(",", ""))


@pytest.mark.parametrize("name", ["dv", "dv_append", "aggregation", "append_bucketed", "first_row", "many_levels"])
def test_no_more_rows_differ_than_the_proof_states(name):
    table = open_table(str(TABLES / name))
    versions = table.versions()
    rows = {version: table.at(version).to_arrow().to_pylist() for version in versions}

    for a, b in {*pairwise(versions), (versions[0], versions[-1]), (versions[-1], versions[0])}:
        comparison = table.compare(a, b)
        if not len(comparison.schema):
            keys = table.at(b).schema.primary_keys
            assert changed_rows(rows[a], rows[b], keys) <= bound_of(comparison.proof), (a, b, comparison.proof)


def test_nothing_is_proven_of_a_table_with_rows_of_another_branch():
    table = open_table(str(TABLES / "fallback_branch"))

    assert table.diff_rows(2, 3, key=[]).counts == {"inserted": 2, "deleted": 2, "updated": 0}
    assert table.compare(2, 3).proof == (
        "Files alone do not determine the rows of a version here: table.diff_rows(2, 3) finds the rows that changed."
    )


@pytest.fixture
def table(memory_root):
    return PaimonTable(*memory_root)


def said(table, a, b):
    table_format = Paimon(Storage(f"memory:/{table.root}"))
    return Comparison(
        "t", table_format, table_format.version(a), table_format.version(b), table_format.listing(0)
    ).proof


def test_shared_files_and_the_rows_of_the_others_are_counted(table):
    for rows in (2, 3, 4):
        table.commit([(1, "x")] * rows)
    table.commit([(1, "x")] * 5, removed=["data-1.parquet"], kind="OVERWRITE")

    assert said(table, 2, 4) == "At most 11 rows changed: 1 file removed, 2 added; 1 of 4 files is shared."
    assert said(table, 4, 2) == "At most 11 rows changed: 2 files removed, 1 added; 1 of 4 files is shared."


def test_one_row_is_reported_as_one(table):
    table.commit([(1, "x")])
    table.commit([(1, "x")])

    assert said(table, 1, 2) == "At most 1 row changed: 1 file added; 1 of 2 files is shared."


def test_what_only_compactions_did_leaves_the_rows_the_same(table):
    table.commit()
    table.commit()
    table.commit([(1, "a")] * 2, removed=["data-1.parquet", "data-2.parquet"], kind="COMPACT")

    assert said(table, 2, 3) == (
        "The rows are the same, only compactions lie between: 2 files removed, 1 added; 0 of 3 files are shared."
    )


def test_a_compaction_that_lost_rows_proves_nothing(table):
    table.commit()
    table.commit([(1, "x")] * 3)
    table.commit([(1, "a")] * 2, removed=["data-1.parquet", "data-2.parquet"], kind="COMPACT")

    assert said(table, 2, 3) == "At most 6 rows changed: 2 files removed, 1 added; 0 of 3 files are shared."


def test_a_compaction_of_what_a_commit_between_brought_proves_nothing(table):
    table.commit()
    table.commit()
    table.commit([(1, "a")] * 2, removed=["data-1.parquet", "data-2.parquet"], kind="COMPACT")

    assert said(table, 1, 3) == "At most 3 rows changed: 1 file removed, 1 added; 0 of 2 files are shared."


def test_versions_with_the_same_files_have_the_same_rows(table):
    table.commit()
    table.commit(rows=())

    assert said(table, 1, 2) == "The rows are the same: the only file is shared."


def test_versions_without_files_are_reported(table):
    table.commit(rows=())
    table.commit(rows=())

    assert said(table, 1, 2) == "Neither version has a file."


def files(*rows):
    plain = {"partition": [], "rows": 10, "size_bytes": 100, "schema_id": 0, "data_change": True}
    return pa.Table.from_pylist([plain | row for row in rows], frames.FILES)


def changes(*rows):
    plain = {"version": 2, "list": "delta", "partition": [], "rows": 10, "size_bytes": 100, "data_change": True}
    return pa.Table.from_pylist([plain | row for row in rows], frames.CHANGES)


def without_levels(a, b, *between, keyed=False):
    """Return what is said of two versions of a format without levels, as Delta is."""
    difference = compare_files(files(*a), files(*b))
    reported = files_frame(difference, changes(*between), backwards=False)
    return difference_proof(difference, reported, changes(*between), {"other"}, keyed=keyed)


def test_without_levels_a_new_deletion_vector_counts_the_rows_that_it_deletes_more():
    before = {"path": "a", "deletion_vector": "v1", "deleted_rows": 1}
    after = {"path": "a", "deletion_vector": "v2", "deleted_rows": 4}
    between = [before | {"change": "remove"}, after | {"change": "add"}]

    assert without_levels([before], [after], *between) == (
        "At most 3 rows changed: 1 file with other deleted rows; the only file is shared."
    )


def test_without_levels_a_commit_that_says_that_it_changes_no_data_is_believed():
    between = [
        {"path": "a", "change": "remove", "data_change": False},
        {"path": "b", "change": "add", "data_change": False},
    ]

    assert without_levels([{"path": "a"}], [{"path": "b"}], *between) == (
        "The rows are the same: 1 file removed, 1 added; 0 of 2 files are shared."
    )


def test_without_levels_what_commits_between_brought_counts_though_it_was_rearranged_since():
    between = [
        {"path": "b", "change": "add", "rows": 3},
        {"path": "a", "change": "remove", "data_change": False},
        {"path": "b", "change": "remove", "rows": 3, "data_change": False},
        {"path": "c", "change": "add", "rows": 13, "data_change": False},
    ]

    reported = without_levels([{"path": "a"}], [{"path": "c", "rows": 13}], *between)

    assert reported == "At most 3 rows changed: 1 file removed, 1 added; 0 of 2 files are shared."


def test_where_the_rows_of_a_file_are_not_known_nothing_is_said_of_them():
    one = {"path": "a", "rows": None}

    assert without_levels([], [one], one | {"change": "add"}) == (
        "The metadata does not contain the number of changed rows: 1 file added; 0 of 1 file are shared."
    )
