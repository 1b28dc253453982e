"""What a line that does not work suggests instead: a command that does."""

import pytest

from snapshot_explorer import samples


@pytest.fixture
def sales(shell):
    """The shell, with the sample orders opened as sales."""
    shell.ok(f"%snapshot open {samples.path('orders')} as sales")
    return shell


@pytest.mark.parametrize(
    ("line", "suggestion"),
    [
        ("blame 42", "Did you mean order_id = 42?"),
        ("blame order_id", "Did you mean order_id = 42?"),
        ("blame buyer", "Did you mean buyer = '...'?"),
        ("bisect order_id", "order_id is a column, not a condition on rows. Did you mean order_id = 42?"),
        ("load --where amount", "Did you mean amount = 42?"),
        ("load 3 --where amount < 0", 'A condition with blanks needs quotes: %snapshot load 3 --where "amount < 0"'),
        ("load --where amount < 0 -n 3", 'needs quotes: %snapshot load --where "amount < 0" -n 3'),
        ("load 3 --where buyer = 'Ada'", "needs quotes: %snapshot load 3 --where \"buyer = 'Ada'\""),
        ("diff 5-8", "'5-8' is not a valid ref. Did you mean the range 5..8?"),
        ("log 5-8", "it has no `..`. Did you mean 5..8?"),
        ("retention --keep 7", "--keep 7 is not a duration. Did you mean 7d?"),
    ],
)
def test_a_line_suggests_the_command_that_is_meant(sales, line, suggestion):
    assert suggestion in sales.fails(f"%snapshot {line}")


def test_conditions_and_values_that_work_are_not_corrected(sales):
    assert sales.ok("%snapshot blame order_id = 42").result is not None
    assert len(sales.ok("%snapshot load 8 --where amount<0").result)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("orders", "CALL sys.rollback(table => 'orders', version => '3')"),
        ("payments", "RESTORE TABLE payments TO VERSION AS OF 3"),
        ("shipments", "CALL system.rollback_to_snapshot('shipments', {identifier})"),
    ],
)
def test_writing_commands_name_the_one_of_the_engine(shell, name, command):
    shell.ok(f"%snapshot open {samples.path(name)} as opened")
    command = command.format(identifier=shell["opened"].at(3).commit.identifier)

    for word in ("restore", "delete", "rollback"):
        assert shell.fails(f"%snapshot {word} 3") == (
            f"%snapshot is read-only and cannot {word}. Run {command}"
            " in your engine to restore a version; %snapshot repair writes the statement."
        )


def test_writing_commands_without_a_table_or_a_version(shell):
    assert shell.fails("%snapshot undo").endswith("cannot undo. Do it in the engine that writes the table.")
    shell.ok(f"%snapshot open {samples.path('payments')}")
    assert shell.fails("%snapshot optimize").endswith(
        "Run RESTORE TABLE payments TO VERSION AS OF VERSION"
        " in your engine to restore a version; %snapshot repair writes the statement."
    )


def test_messages_suggest_commands_in_place_of_calls(shell, tmp_path):
    (tmp_path / "a lake" / "orders" / "_delta_log").mkdir(parents=True)
    (tmp_path / "a lake" / "orders" / "_delta_log" / f"{0:020}.json").write_text("{}")
    orders = samples.path("orders")

    assert shell.fails(f"%snapshot open {orders}/snapshot").endswith(f"Open the table: %snapshot open {orders}.")
    lake = tmp_path / "a lake"
    assert shell.fails(f'%snapshot open "{lake}"').endswith(f'Tables are below it: %snapshot lake "{lake}" --list.')


def test_the_name_of_the_line_heads_card_and_health(sales):
    assert repr(sales["sales"]).startswith("Table(")
    assert sales.ok("%snapshot status").shown["text/plain"].splitlines()[0] == "sales"
    assert sales.ok("%snapshot health").shown["text/plain"].startswith("sales: At version 17")
