"""`%snapshot blame`: what happened to rows."""

import re

import pyarrow as pa
from IPython.core.error import UsageError

from snapshot_explorer.jupyter.command import TABLE, Argument, Command, Invocation, Option
from snapshot_explorer.jupyter.commands.shared_arguments import column_names, condition_of
from snapshot_explorer.rows import Blame
from snapshot_explorer.table import Table


def _blame(invocation: Invocation) -> Blame:
    """Return every version that inserted, updated or deleted rows of a condition."""
    arguments = invocation.arguments
    key, columns = (
        None if (text := arguments.get(name)) is None else column_names(text, f"--{name}")
        for name in ("key", "columns")
    )
    _, table = invocation.table()
    condition = condition_of(invocation, table)
    _check_condition(condition, table)
    return table.blame(condition, key=key, columns=columns, between=arguments.get("between"))


def _check_condition(text: str, table: Table) -> None:
    """Raise if a condition is a single value or column, which nearly every row passes.

    Raises:
        UsageError: The message has the condition that may be meant.
    """
    schema, keys = table.current.arrow_schema, table.current.schema.primary_keys
    is_column = text in schema.names
    if not is_column and not re.fullmatch(r"-?\d+(\.\d+)?|'[^']*'", text):
        return
    column = text if is_column else next(iter(keys or schema.names), None)
    if column is None or pa.types.is_boolean(schema.field(column).type):
        return
    dtype = schema.field(column).type
    is_number = pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype)
    value = text if not is_column else "42" if is_number else "'...'"
    what = "a column" if is_column else "a value"
    raise UsageError(f"{text} is {what}, not a condition on rows. Did you mean %snapshot blame {column} = {value}?")


BLAME = Command(
    name="blame",
    summary="The versions that changed rows, before and after",
    run=_blame,
    python='orders.blame("order_id = 42")',
    examples=(
        "%snapshot blame order_id = 42",
        '%snapshot blame "amount < 0" --between 5..latest --columns amount,buyer',
        'b = %snapshot blame "event_id = 13" --key event_id',
    ),
    arguments=(
        Argument(
            name="CONDITION",
            value_type="condition",
            meaning="SQL on the rows, with the columns of the newest version",
            required=True,
        ),
    ),
    options=(
        Option(
            flags=("--key",),
            metavar="A,B",
            value_type="columns",
            meaning="the columns that identify a row; by default the primary key",
        ),
        Option(
            flags=("--columns",), metavar="A,B", value_type="columns", meaning="the columns to compare; by default all"
        ),
        Option(flags=("--between",), metavar="A..B", value_type="range", meaning="only these versions"),
        TABLE,
    ),
    notes="Opens only files that might contain matching rows by their statistics, and only those that a version "
    "added or removed; the result says how many. Without a key an update is a delete and an insert. A restore "
    "is listed with the rows that it brings back; compactions and added columns change no rows. b.lines has "
    "the rows before and after.",
)
