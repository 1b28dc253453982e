"""`%%snapshot sql`: a query in a cell, or in a line."""

import pytest

from tests.support.paimon.table_builder import PaimonTable


def rows(cell):
    """Return the rows of the DataFrame that a cell gave."""
    return sorted(tuple(row) for row in cell.result.itertuples(index=False))


def test_a_cell_is_a_query_over_the_open_tables(orders):
    cell = orders.ok("%%snapshot sql\nselect id, name from orders version as of 3\nwhere id <> 2")

    assert rows(cell) == [(1, "a"), (3, "c"), (4, "d")]
    assert str(cell.result.dtypes["id"]) == "int64[pyarrow]"


def test_a_line_is_a_query_too(orders):
    assert rows(orders.ok("%snapshot sql \"select count(*) from orders version as of 'v1'\"")) == [(3,)]
    assert rows(orders.ok("%snap sql 'select name from orders where id = 1'")) == [("A",)]


@pytest.mark.parametrize(
    "cell",
    [
        "%snapshot sql select name from orders where id = {one}",
        "%snapshot sql select name from orders where id = 1;",
        "%snapshot sql --engine duckdb select name from orders where id=1 --yes",
        "%snapshot sql select name from orders where id = 1 --engine duckdb --yes",
        "%snapshot sql select name from 'orders' where name = 'A'".replace("'orders'", '"orders"'),
        "%snapshot select name from orders where id = 1",
        "%snapshot from orders select name where id = 1",
        "%%snapshot\nselect name\nfrom orders\nwhere id = 1",
        "%%snapshot sql select name\nfrom orders\nwhere id = 1",
        "%%snapshot select name\nfrom orders\nwhere id = 1",
        "%%snap --yes\nselect name from orders where id = 1",
    ],
)
def test_a_query_needs_neither_quotes_nor_the_word_sql(orders, cell):
    orders["one"] = 1

    assert rows(orders.ok(cell)) == [("A",)]


def test_the_result_of_a_bare_query_goes_into_a_variable(orders):
    for line in (
        "found = %snapshot sql select id from orders where id = 1",
        "%snapshot found << sql select id from orders where id = 1",
        "%snapshot sql select id from orders where id = 1 --out found",
        "%%snapshot -o found\nselect id from orders where id = 1",
    ):
        orders.ok(line)
        assert list(orders["found"]["id"]) == [1]
        del orders.ip.user_ns["found"]


def test_a_short_flag_behind_a_bare_query_is_a_part_of_it(orders):
    assert rows(orders.ok("%snapshot sql select 3 -y from (select 1 as y)")) == [(2,)]
    assert rows(orders.ok("%snapshot sql select 3 -y as o from (select 1 as y)")) == [(2,)]


def test_tables_and_versions_are_joined(orders, memory_root):
    other = PaimonTable(*memory_root[:-1], f"{memory_root[-1]}_other")
    other.commit([(1, "x"), (9, "y")])
    orders.ok(f"%snapshot open memory://{other.root} as others")

    cell = orders.ok(
        "%%snapshot sql\nselect a.name, b.name, others.name\n"
        "from orders@1 a join orders b using (id) join others using (id)"
    )

    assert rows(cell) == [("a", "A", "x")]


def test_the_result_goes_into_a_variable(orders):
    cell = orders.ok("%%snapshot sql -o found\nselect 1 as one")
    assert cell.result is None
    assert list(orders["found"]["one"]) == [1]

    orders.ok("%%snapshot two << sql\nselect 2 as two")
    assert list(orders["two"]["two"]) == [2]


def test_nothing_is_expanded_in_a_cell(orders):
    orders["x"] = "WRONG"

    cell = orders.ok("%%snapshot sql\nselect '{x}' as a, '$x' as b, {'k': 1}.k as c, '{{x}}' as d;\n")

    assert rows(cell) == [("{x}", "$x", 1, "{{x}}")]


def test_a_line_is_expanded_as_those_of_other_commands(orders):
    orders["low"] = 3

    assert rows(orders.ok('%snapshot sql "select count(*) from orders where id > {low}"')) == [(1,)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("select name from orders", "4 rows in 2 files, 1.4 kB, of orders version 5"),
        (
            "select * from orders@2 a join orders b using (id) where a.id < 9",
            "7 rows in 4 files, 2.9 kB, of orders version 2, orders version 5",
        ),
    ],
)
def test_a_query_that_reads_more_than_the_settings_asks_and_reads_nothing(orders, query, found, written):
    orders.ok("%config SnapshotMagics.load_row_limit = 3")
    for name in written.live:
        written.remove(f"bucket-0/{name}")

    assert orders.fails(f"%%snapshot sql\n{query}") == (
        f"The query would read {found}: more than 3 rows or 1.0 GB is read only when asked for. Narrow it with "
        "conditions or a LIMIT, or add --yes for all."
    )


@pytest.mark.parametrize(
    "line",
    [
        "%%snapshot sql --yes\nselect id from orders",
        "%%snapshot sql -y\nselect id from orders",
        "%%snapshot sql\nselect id from orders limit 3",
        "%%snapshot sql\nselect count(*) from orders",
        "%%snapshot sql\nexplain select id from orders",
    ],
)
def test_a_query_reads_much_when_requested_and_little_without(orders, line):
    orders.ok("%config SnapshotMagics.load_row_limit = 3")

    assert len(orders.ok(line).result) in (1, 3, 4)


def test_a_semicolon_of_sql_silences_nothing(orders):
    assert rows(orders.ok("%%snapshot sql\nselect 1;")) == [(1,)]


def test_engines_are_named(orders):
    assert rows(orders.ok("%%snapshot sql --engine duckdb\nselect 1")) == [(1,)]
    assert orders.fails("%%snapshot sql --engine duck\nselect 1") == (
        "'duck' is not an engine for SQL. Did you mean duckdb? Engines: duckdb, spark."
    )


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (
            "%%snapshot sql\nselect *\nfrom ordres",
            "Unknown table ordres at line 2, column 6. Did you mean orders? Tables: orders.",
        ),
        (
            "%%snapshot sql\nselect nam\nfrom orders version as of 2",
            'The query fails at line 1, column 8 (nam): Referenced column "nam" not found in FROM clause! ',
        ),
        ("%%snapshot sql\nselect * from orders version as of 9", "Version 9 does not exist."),
        ("%%snapshot sql\ndelete from orders", "delete at line 1, column 1 is refused: queries are read-only."),
        ("%%snapshot sql\n  \n", "sql needs a query."),
        ("%snapshot sql", "sql needs a query."),
        ("%%snapshot sql 'select 1'\nselect 2", "There is a query in the line and another one below it."),
        ("%%snapshot log\nselect 2", "%snapshot log is a line of its own: write it with one %."),
    ],
)
def test_what_is_wrong_is_reported_in_one_line(orders, cell, message):
    assert orders.fails(cell).startswith(message)


def test_without_an_open_table_the_message_shows_how_to_open_one(shell):
    assert shell.fails("%%snapshot sql\nselect * from orders") == (
        "No table is open. Open one: %snapshot open PATH as NAME."
    )


def test_help_tells_how_to_write_a_query(orders):
    text = repr(orders.ok("%snapshot sql --help").result)

    assert text.startswith("%snapshot sql [QUERY] [--engine ENGINE]")
    assert "%%snapshot sql -o gone" in text
    assert "version as of 'latest~2'" in " ".join(text.split())
    assert repr(orders.ok("%%snapshot sql --help\nselect 1").result) == text


def test_unloading_takes_the_cell_magic_away(orders):
    orders.ok("%unload_ext snapshot_explorer")

    assert not {"snapshot", "snap"} & set(orders.ip.magics_manager.magics["cell"])
