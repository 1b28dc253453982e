"""Tab completion of queries, conditions, partitions and paths, asked as frontends ask."""

import pytest

from snapshot_explorer import samples
from tests.jupyter.test_completion import completed, texts


@pytest.fixture
def orders(orders):
    orders.ok("%snapshot log")
    orders.ok("%snapshot tags")
    return orders


def offered(shell, source):
    return [text.rpartition("\n")[2] for text, _ in completed(shell, source)]


def test_tables_are_offered_where_a_table_stands(orders):
    assert completed(orders, "%%snapshot sql\nselect *\nfrom ord") == [
        ("%%snapshot sql\nselect *\nfrom orders", "paimon table")
    ]
    assert texts(orders, "%%snapshot\nselect * from orders a join or") == ["ders"]
    assert texts(orders, "%snapshot sql select * from or") == ["ders"]
    assert texts(orders, '%snapshot sql "select * from or') == ["ders"]
    assert texts(orders, "df = %snapshot select * from or") == ["ders"]


def test_columns_are_offered_of_the_tables_that_the_query_names(orders):
    assert texts(orders, "%%snapshot sql\nselect * from orders where na") == ["me"]
    assert texts(orders, "%%snapshot sql\nselect * from orders@3 as o where o.") == ["id", "name"]
    assert texts(orders, "%%snapshot sql\nselect * from orders version as of 3 o where o.n") == ["ame"]
    assert texts(orders, "%%snapshot sql\nselect * from orders where nothing.") == []


def test_refs_and_times_are_offered_behind_a_clause(orders):
    assert "5" in texts(orders, "%%snapshot sql\nselect * from orders version as of ")
    assert "'tag:v1'" in texts(orders, "%%snapshot sql\nselect * from orders version as of ")
    assert texts(orders, "%%snapshot sql\nselect * from orders version as of 'tag:") == ["v1"]
    assert texts(orders, "%%snapshot sql\nselect * from orders@la") == ["test", "test~1"]
    assert completed(orders, "%%snapshot sql\nfrom orders timestamp as of '2026-01-01T00:03")[0][1] == "3 append"


def test_keywords_follow_the_case_that_is_typed(orders):
    assert "where" in offered(orders, "%%snapshot sql\nwhe")
    assert texts(orders, "%%snapshot sql\nSELECT * FROM orders WHE") == ["RE", "N"]
    assert texts(orders, "%%snapshot sql\nselect * from orders where name = 'or") == []


def test_cells_of_others_are_left_alone(orders):
    assert "orders" not in [text[-6:] for text in texts(orders, "%%sql\nselect * from ord")]


@pytest.fixture
def events(shell):
    shell.ok(f"%snapshot open {samples.path('events')} as events")
    shell.ok("%snapshot files")
    return shell


def test_partition_columns_and_their_values_are_offered(events):
    assert texts(events, "%snapshot files --partition ") == ["day="]
    assert texts(events, "%snapshot files --partition day=2026-11-0")[:2] == ["1", "2"]
    assert texts(events, "%snapshot files -p day=2026-11-07") == [""]
    assert "'2026-11-07'" in texts(events, '%snapshot load --where "day = ')
    assert "da" not in texts(events, '%snapshot load --where "d')
    assert "ay" in texts(events, '%snapshot load --where "d')


def test_paths_are_offered_behind_open(shell, tmp_path):
    tmp_path = tmp_path / "lake"
    (tmp_path / "orders" / "_delta_log").mkdir(parents=True)
    (tmp_path / "events" / "schema").mkdir(parents=True)
    (tmp_path / "events" / "schema" / "schema-0").write_text("{}")
    (tmp_path / "metrics" / "metadata").mkdir(parents=True)
    (tmp_path / "metrics" / "metadata" / "v1.metadata.json").write_text("{}")
    (tmp_path / "other").mkdir()
    (tmp_path / "file").write_text("")

    assert completed(shell, f"%snapshot open {tmp_path}/") == [
        (f"%snapshot open {tmp_path}/events", "paimon table"),
        (f"%snapshot open {tmp_path}/metrics", "iceberg table"),
        (f"%snapshot open {tmp_path}/orders", "delta table"),
        (f"%snapshot open {tmp_path}/other/", "folder"),
    ]
    assert texts(shell, f"%snapshot open {tmp_path}/o") == ["rders", "ther/"]


def test_other_names_of_commands_are_completed(orders):
    assert texts(orders, "%snapshot his") == ["tory"]
    assert "--kind" in texts(orders, "%snapshot history ")
    assert texts(orders, "%snapshot load --types n") == ["umpy", "ullable"]
    assert texts(orders, "%snapshot log --since 2026-01-01T00:05") == [":00Z"]
