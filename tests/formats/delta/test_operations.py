"""What sort of commit an operation is."""

from typing import get_args

import pytest

from tests.inner.core import Kind
from tests.inner.delta import Effect, kind_of, operations


def effect(added=0, removed=0, *, rearranged=False, redefined=False):
    return Effect(added_files=added, removed_files=removed, rearranged=rearranged, redefined=redefined)


@pytest.mark.parametrize(
    ("operation", "parameters", "kind"),
    [
        ("WRITE", {"mode": "Append"}, "append"),
        ("WRITE", {"mode": "ErrorIfExists"}, "append"),
        ("WRITE", {"mode": "Overwrite"}, "overwrite"),
        ("WRITE", {"mode": 7}, "append"),
        ("STREAMING UPDATE", {"outputMode": "Append"}, "append"),
        ("STREAMING UPDATE", {"outputMode": "Complete"}, "overwrite"),
        ("DELETE", {}, "delete"),
        ("TRUNCATE", {}, "delete"),
        ("UPDATE", {}, "update"),
        ("MERGE", {}, "merge"),
        ("OPTIMIZE", {}, "compact"),
        ("REORG", {}, "compact"),
        ("RESTORE", {}, "restore"),
        ("VACUUM START", {}, "maintenance"),
        ("VACUUM END", {}, "maintenance"),
        ("ADD COLUMNS", {}, "schema"),
        ("SET TBLPROPERTIES", {}, "schema"),
        ("CREATE TABLE", {}, "schema"),
        ("CREATE TABLE AS SELECT", {}, "append"),
        ("REPLACE TABLE AS SELECT", {}, "overwrite"),
        ("COMPUTE STATS", {}, "analyze"),
        ("SOMETHING NEW", {}, "other"),
    ],
)
def test_an_operation_has_a_kind(operation, parameters, kind):
    assert kind_of(operation, parameters, effect(1)) == kind


def test_every_kind_that_is_given_is_one_of_the_known():
    assert set(operations.KINDS.values()) <= set(get_args(Kind))


@pytest.mark.parametrize("operation", ["CREATE OR REPLACE TABLE", "CREATE OR REPLACE TABLE AS SELECT", "CLONE"])
def test_what_replaces_a_table_overwrites_it_if_there_is_something(operation):
    assert kind_of(operation, {}, effect(1, 2)) == "overwrite"
    assert kind_of(operation, {}, effect(1)) != "overwrite"


def test_a_write_that_changes_no_row_is_a_compaction():
    assert kind_of("WRITE", {"mode": "Overwrite"}, effect(2, 3, rearranged=True)) == "compact"


@pytest.mark.parametrize("operation", [None, "Manual Update", "Empty Commit"])
@pytest.mark.parametrize(
    ("did", "kind"),
    [
        (effect(1), "append"),
        (effect(0, 1), "delete"),
        (effect(1, 1), "overwrite"),
        (effect(1, 1, rearranged=True), "compact"),
        (effect(1, rearranged=True), "maintenance"),
        (effect(redefined=True), "schema"),
        (effect(1, redefined=True), "append"),
        (effect(), "other"),
    ],
)
def test_where_no_operation_is_named_the_actions_tell(operation, did, kind):
    assert kind_of(operation, {}, did) == kind
