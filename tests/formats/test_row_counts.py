"""The logical counts of commits: what metadata proves, what writers record, and what contradicts itself."""

import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.history import history_of
from tests.support import logical_counts
from tests.support.delta.table_builder import DeltaTable, add, metadata, remove
from tests.support.iceberg.table_builder import IcebergTable

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


@pytest.fixture
def iceberg(memory_root):
    """An Iceberg table with two files of 10 rows, and no delete files."""
    result = IcebergTable(*memory_root, version=3)
    for _ in range(2):
        commit_iceberg(result)
    return result


def commit_iceberg(table, rows=10, removed=(), operation="append", positions=0, equalities=0, **summary):
    totals = {"total-position-deletes": str(positions), "total-equality-deletes": str(equalities)}
    rows = None if rows is None else [(number, "a") for number in range(rows)]
    names = {name.replace("_", "-"): str(count) for name, count in summary.items()}
    table.commit(rows, removed=removed, operation=operation, **totals | names)
    opened = open_table(f"memory://{table.root}")
    row = history_of(opened).table_format.commits([table.sequence]).to_pylist()[0]
    return tuple(row[name] for name in NAMES)


def test_an_iceberg_append_inserts_its_records(iceberg):
    assert commit_iceberg(iceberg, 4) == (4, 0, 0, 0, "metadata")


def test_whole_files_of_an_iceberg_table_without_deletes_are_deleted_rows(iceberg):
    assert commit_iceberg(iceberg, None, ["data-1.parquet"], "delete") == (0, 0, 10, 0, "metadata")


def test_an_iceberg_overwrite_has_a_net_change(iceberg):
    assert commit_iceberg(iceberg, 9, ["data-1.parquet"], "overwrite") == NET


def test_an_iceberg_replacement_changes_no_row(iceberg):
    assert commit_iceberg(iceberg, 10, ["data-1.parquet"], "replace") == (0, 0, 0, 10, "metadata")
    assert commit_iceberg(iceberg, 9, ["data-2.parquet"], "replace") == CONTRADICTED


def test_position_deletes_are_deleted_rows(iceberg):
    deletes = {"operation": "delete", "added_delete_files": 1, "added_position_deletes": 3}

    assert commit_iceberg(iceberg, None, positions=3, **deletes) == (0, 0, 3, 0, "metadata")


def test_a_vector_counts_what_it_adds_to_the_one_that_it_replaces(iceberg):
    vector = {"operation": "delete", "added_delete_files": 1, "added_dvs": 1}
    replaced = {"removed_delete_files": 1, "removed_dvs": 1, "removed_position_deletes": 3}

    first = commit_iceberg(iceberg, None, positions=3, **vector, added_position_deletes=3)
    second = commit_iceberg(iceberg, None, positions=5, **vector, added_position_deletes=5, **replaced)

    assert [first, second] == [(0, 0, 3, 0, "metadata"), (0, 0, 2, 0, "metadata")]


def test_a_vector_after_position_delete_files_is_not_counted(iceberg):
    """It contains the positions of those files, which may stay."""
    files = {"added_delete_files": 1, "added_position_delete_files": 1, "added_position_deletes": 3}
    vector = {"added_delete_files": 1, "added_dvs": 1, "added_position_deletes": 5}

    commit_iceberg(iceberg, None, operation="delete", positions=3, **files)

    assert commit_iceberg(iceberg, None, operation="delete", positions=8, **vector) == NOT_COUNTED


@pytest.mark.parametrize(
    "summary",
    [
        {"added_delete_files": 1},
        {"added_delete_files": 1, "added_equality_deletes": 2, "equalities": 2},
        {"added_dvs": 1},
        {"removed_delete_files": 1},
    ],
)
def test_deletes_of_an_unknown_number_of_rows_are_not_counted(iceberg, summary):
    assert commit_iceberg(iceberg, None, operation="delete", **summary) == NOT_COUNTED


def test_files_that_position_deletes_may_apply_to_are_not_counted(iceberg):
    commit_iceberg(iceberg, None, operation="delete", positions=3, added_delete_files=1, added_position_deletes=3)

    assert commit_iceberg(iceberg, None, ["data-1.parquet"], "delete", positions=3) == (None,) * 5


def test_position_deletes_of_a_moved_table_are_not_counted(memory_root):
    table = IcebergTable(*memory_root, location="s3://lake/t")
    commit_iceberg(table)
    deletes = {"operation": "delete", "added_delete_files": 1, "added_position_deletes": 3}

    assert commit_iceberg(table, None, positions=3, **deletes) == NOT_COUNTED


def test_a_catalog_proves_the_rows_of_inserts_deletes_and_rewrites():
    catalog = samples.path("festival")
    refunds, tickets = (open_table(catalog, table=f"main.{name}") for name in ("refunds", "tickets"))

    assert [logical_counts.check(table) for table in (refunds, tickets)] == [2, 7]
    rows = {row["version"]: row for row in tickets.history().to_dict()}
    assert (rows[13]["operation"], rows[13]["rows_deleted"], rows[13]["rows_rewritten"]) == ("rewrite_delete", 0, 63)
    inserts = [row["rows_rewritten"] for row in rows.values() if row["rows_inserted"]]
    assert inserts == [0] * len(inserts)
    assert (rows[6]["operation"], rows[6]["rows_updated"]) == ("altered_table", None)  # a new column has a default
