"""`for system_time all`, `from A to B` and `between A and B`: the states of rows in SQL."""

from uuid import uuid4

import fsspec
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError
from tests.support.delta.table_builder import DeltaTable, remove


@pytest.fixture
def table():
    """A row that is there from version 1 on, one at 2 and 3, and one from 4 on."""
    written = DeltaTable(fsspec.filesystem("memory"), f"/{uuid4()}")
    written.append([(1, "a")])
    written.append([(2, "b")], name="two")
    written.commit()
    written.commit(remove("two"), written.data("three", [(3, "c")]))
    return open_table(written.url)


def ids(table, period):
    return table.sql(f"select id from this {period} order by id")["id"].tolist()


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ("for system_time all", [1, 2, 3]),
        ("for version all", [1, 2, 3]),
        ("for version from 0 to 1", []),
        ("for version between 0 and 1", [1]),
        ("for version from 1 to 4", [1, 2]),
        ("for version between 1 and 4", [1, 2, 3]),
        ("for version between 4 and 4", [1, 3]),
        ("for version from '3' to 'latest'", [1, 2]),
        ("for system_time from 'earliest' to 'latest'", [1, 2]),
        ("for system_time between 'latest~1' and 'latest'", [1, 2, 3]),
        ("FOR SYSTEM_TIME FROM '2026-01-01 00:01' TO '2026-01-01 00:02'", [1]),
    ],
)
def test_a_period_has_the_states_at_its_versions(table, period, expected):
    times = [time.strftime("%Y-%m-%d %H:%M") for time in table.history().column("committed_at").to_pylist()[::-1]]
    period = period.replace("2026-01-01 00:01", times[1]).replace("2026-01-01 00:02", times[2])

    assert ids(table, period) == expected


def test_the_end_of_a_time_range_is_exclusive_and_that_of_between_is_not(table):
    times = [time.isoformat() for time in table.history().column("committed_at").to_pylist()[::-1]]

    assert ids(table, f"for system_time from '{times[1]}' to '{times[4]}'") == [1, 2]
    assert ids(table, f"for system_time between '{times[1]}' and '{times[4]}'") == [1, 2, 3]
    assert ids(table, f"for system_time from timestamp '{times[4]}' to timestamp '2100-01-01'") == [1, 3]


def test_states_have_the_columns_of_a_row_history_and_real_bounds(table):
    rows = table.sql("from this for version between 3 and 3 s where s.id = 2")

    assert rows[["id", "name", "_from_version", "_to_version"]].to_numpy().tolist() == [[2, "b", 2, 4]]
    assert list(rows.columns) == table.row_history().schema.names


def test_a_state_is_one_of_all_columns_whichever_are_selected(table):
    assert table.sql("select count(*) n from this for system_time all")["n"].tolist() == [3]
    rows = table.sql("select _to_version v from this for system_time all where name = 'b' and _from_version > 1")
    assert rows["v"].tolist() == [4]


def test_states_join_with_versions(table):
    rows = table.sql(
        "select s.id from this for system_time all s join this version as of 2 o using (id) where s._to_version is null"
    )

    assert rows["id"].tolist() == [1]


@pytest.mark.parametrize(
    ("period", "message"),
    [
        ("for version from 4", r"FROM needs a second version after TO .*: FROM A TO B\."),
        ("for version between 4 to 6", r"BETWEEN needs a second version after AND at line 1, column 43"),
        ("for system_time from now to 5", "A version or a time is missing at line 1, column 42"),
        ("for version from 99 to 100", "99"),
        ("for system_time", r"FOR system_time needs a version or a period.*: as of '2026-11-01', all, from A to B, or"),
        ("for version since 4", "FOR version needs a version or a period at line 1, column 33"),
    ],
)
def test_a_period_that_is_not_complete_is_refused(table, period, message):
    with pytest.raises((InvalidArgumentError, LookupError), match=message):
        table.sql(f"select id from this {period}")


def test_spark_does_not_read_periods(table):
    with pytest.raises(UnsupportedFeatureError, match="Spark does not read the states of rows"):
        table.sql("from this for system_time all", engine="spark")
