"""Conditions on all rows together, such as `count(*) filter (where amount < 0) > 0`, evaluated by DuckDB."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapshot_explorer.engines import sql
from snapshot_explorer.engines.conditions import columns_of, condition, parsed
from snapshot_explorer.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A condition on all rows together; made by `aggregate`."""

    text: str
    """The condition as SQL."""
    columns: frozenset[str]
    """The columns that it reads, as the table names them."""

    def holds(self, rows: sql.Relation) -> bool:
        """Return whether it holds; a condition that is null does not. Reads only the columns that it needs."""
        return bool(_evaluated(self.text, rows).column(0)[0].as_py())


def _evaluated(text: str, rows: sql.Relation) -> pa.Table:
    query = f"SELECT coalesce(CAST((\n{text}\n) AS BOOLEAN), false) FROM this"  # noqa: S608 - one expression
    return sql.run(
        query,
        {"this": rows},
        lambda sentence, _: f"The condition {text!r} cannot be evaluated on {rows.what}: {sentence.rstrip('.')}.",
    )


def aggregate(text: str, schema: pa.Schema) -> Aggregate | None:
    """Return the condition that SQL text states on all rows together; None where it is a condition on each row.

    Reads nothing.

    Args:
        text: One expression, such as `max(amount) > 100 AND count(DISTINCT name) < 5`.
    """
    columns = columns_of(parsed(text), schema, text)
    with suppress(InvalidArgumentError):
        condition(text, schema)
        return None
    empty = sql.Relation(
        what="the table",
        schema=schema,
        read=lambda names, _where, _limit: schema.empty_table().select(list(names)),
        count=lambda: 0,
    )
    # Over no rows, an aggregate returns one value and any other expression none.
    if len(_evaluated(text, empty)) != 1:
        condition(text, schema)  # raises
    return Aggregate(text=text, columns=columns)
