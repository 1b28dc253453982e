"""The logical counts of commits: what metadata proves, what writers record, and what contradicts itself."""

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.history import history_of
from tests.support.delta.table_builder import DeltaTable, add, metadata, remove

NAMES = ("rows_inserted", "rows_updated", "rows_deleted", "rows_rewritten", "rows_source")
NOT_COUNTED = (None, None, None, None, None)
NET = (None, None, None, None, "net")
CONTRADICTED = (None, None, None, None, "contradicted")
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 40}


@pytest.fixture
def table(memory_root):
    """A Delta table whose version 1 has a file `a` with 700 rows and version 2 one with rows that are not known."""
    result = DeltaTable(*memory_root)
    result.commit(add("a", rows=700))
    return result


def counts(written, version=None):
    opened = open_table(written.url)
    row = history_of(opened).table_format.commits([version or written.version]).to_pylist()[0]
    return tuple(row[name] for name in NAMES)


def replaced(table, rows, operation, **metrics):
    """Replace the 700 rows by others."""
    table.commit(remove("a"), add("b", rows=rows), operation=operation, info={"operationMetrics": metrics})
    return counts(table)


def test_a_delete_counts_its_rows_and_not_those_of_its_files(table):
    assert replaced(table, 690, "DELETE", numDeletedRows="10", numCopiedRows="690") == (0, 0, 10, 690, "writer")


def test_files_prove_the_rows_of_a_delete_without_metrics(table):
    assert replaced(table, 690, "DELETE") == (0, 0, 10, 690, "metadata")


def test_files_prove_the_rows_of_a_delete_whose_metrics_are_wrong(table):
    """delta-rs records 0 rows for deletes of whole partitions, delta-rs issue 4379."""
    table.commit(remove("a"), operation="DELETE", info={"operationMetrics": {"num_deleted_rows": 0}})

    assert counts(table) == (0, 0, 700, 0, "metadata")


def test_an_update_is_counted_by_its_writer(table):
    assert replaced(table, 700, "UPDATE", numUpdatedRows="5", numCopiedRows="695") == (0, 5, 0, 695, "writer")


def test_an_update_by_delta_rs_is_counted_too(table):
    assert replaced(table, 700, "UPDATE", num_updated_rows=5) == (0, 5, 0, 695, "writer")


def test_a_merge_is_counted_by_its_writer(table):
    metrics = {"numTargetRowsInserted": "7", "numTargetRowsUpdated": "3", "numTargetRowsDeleted": "2"}

    assert replaced(table, 705, "MERGE", **metrics) == (7, 3, 2, 695, "writer")


@pytest.mark.parametrize("inserted", ["8", "-1", "x", None, True, "9" * 30])
def test_metrics_that_contradict_the_files_or_are_no_counts_are_not_counted(table, inserted):
    metrics = {"numTargetRowsInserted": inserted, "numTargetRowsUpdated": "3", "numTargetRowsDeleted": "2"}

    assert replaced(table, 705, "MERGE", **metrics) == (CONTRADICTED if inserted == "8" else NET)


def test_more_updated_rows_than_the_added_files_have_are_not_counted(table):
    assert replaced(table, 700, "UPDATE", numUpdatedRows="701") == CONTRADICTED


def test_metrics_count_where_the_rows_of_files_are_not_known(table):
    table.commit(remove("a"), add("b"), operation="DELETE", info={"operationMetrics": {"numDeletedRows": "10"}})

    assert counts(table) == (0, 0, 10, None, "writer")


def test_a_removed_file_without_a_counted_row_contradicts_its_metrics(memory_root):
    table = DeltaTable(*memory_root)
    table.commit(add("a"))
    table.commit(remove("a"), operation="DELETE", info={"operationMetrics": {"num_deleted_rows": 0}})

    assert counts(table) == CONTRADICTED


def test_an_append_inserts_the_rows_of_its_files(table):
    assert counts(table) == (700, 0, 0, 0, "metadata")


def test_an_append_to_files_without_statistics_is_counted_by_its_writer(table):
    info = {"operationParameters": {"mode": "Append"}, "operationMetrics": {"numOutputRows": "9"}}
    table.commit(add("b"), info=info)

    assert counts(table) == (9, 0, 0, None, "writer")


def test_an_overwrite_is_not_counted(table):
    info = {"operationParameters": {"mode": "Overwrite"}, "operationMetrics": {"numOutputRows": "700"}}
    table.commit(remove("a"), add("b", rows=700), info=info)

    assert counts(table) == NET


def test_a_compaction_changes_no_row(table):
    table.commit(remove("a", data_change=False), add("b", rows=700, data_change=False), operation="OPTIMIZE")

    assert counts(table) == (0, 0, 0, 700, "metadata")


def test_a_compaction_that_loses_rows_contradicts_itself(table):
    table.commit(remove("a", data_change=False), add("b", rows=699, data_change=False), operation="OPTIMIZE")

    assert counts(table) == CONTRADICTED


def test_statistics_that_are_added_later_insert_nothing(table):
    table.commit(add("a", rows=700, data_change=False), operation="COMPUTE STATS")

    assert counts(table) == (0, 0, 0, 0, "metadata")


def test_a_file_that_is_added_again_inserts_nothing_that_is_counted(table):
    table.commit(add("a", rows=700))

    assert counts(table) == NOT_COUNTED


def test_a_deletion_vector_counts_the_rows_that_it_adds(table):
    vectors = [VECTOR | {"pathOrInlineDv": name, "cardinality": rows} for name, rows in (("one", 10), ("two", 15))]
    table.commit(remove("a"), add("a", rows=700, vector=vectors[0]), operation="DELETE")
    table.commit(remove("a", vector=vectors[0]), add("a", rows=700, vector=vectors[1]), operation="DELETE")

    assert [counts(table, version) for version in (2, 3)] == [(0, 0, rows, 0, "metadata") for rows in (10, 5)]


def test_another_vector_of_a_restore_is_not_counted(table):
    """It may delete other rows: both versions have the same rows only if the vector of one contains the other's."""
    vectors = [VECTOR | {"pathOrInlineDv": name, "cardinality": rows} for name, rows in (("one", 10), ("two", 8))]
    table.commit(remove("a"), add("a", rows=700, vector=vectors[0]), operation="DELETE")
    table.commit(remove("a", vector=vectors[0]), add("a", rows=700, vector=vectors[1]), operation="RESTORE")

    assert counts(table) == NOT_COUNTED


def test_a_new_schema_changes_no_row(table):
    table.commit(metadata(configuration={"x": "y"}), operation="SET TBLPROPERTIES")

    assert counts(table) == (0, 0, 0, 0, "metadata")
