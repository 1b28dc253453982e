"""Conditions on all rows together, such as `count(*) filter (where amount < 0) > 0`, evaluated by DuckDB."""

import copy
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.engines import sql
from snapshot_explorer.engines.conditions import columns_of, names_of, parse_condition, parse_expression
from snapshot_explorer.engines.duckdb_ast import children, quote_identifier, to_sql
from snapshot_explorer.engines.duckdb_sessions import locked_cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A condition on all rows together; made by `aggregate`."""

    text: str
    """The condition as SQL."""
    columns: frozenset[str]
    """The columns that the condition reads, as the table names them."""

    def holds(self, rows: sql.Relation) -> bool:
        """Return whether the condition holds; null counts as false. Reads only the columns that it needs."""
        return bool(_evaluate(self.text, rows).column(0)[0].as_py())


def _evaluate(text: str, rows: sql.Relation) -> pa.Table:
    query = f"SELECT coalesce(CAST((\n{text}\n) AS BOOLEAN), false) FROM this"  # noqa: S608 - one expression
    return sql.run(
        query,
        {"this": rows},
        lambda sentence, _: f"The condition {text!r} cannot be evaluated on {rows.what}: {sentence.rstrip('.')}.",
    )


def aggregate(text: str, schema: pa.Schema) -> Aggregate | None:
    """Return the condition that SQL text states on all rows together; None for a condition on each row.

    Reads nothing.
    """
    columns = columns_of(parse_expression(text), schema, text)
    with suppress(InvalidArgumentError):
        parse_condition(text, schema)
        return None
    empty = sql.Relation(
        what="the table",
        schema=schema,
        read=lambda names, _where, _limit: schema.empty_table().select(list(names)),
        count=lambda: 0,
    )
    # Over no rows, an aggregate returns one value and any other expression none.
    if len(_evaluate(text, empty)) != 1:
        parse_condition(text, schema)  # raises
    return Aggregate(text=text, columns=columns)


_COUNTS = frozenset(("count_star", "count", "count_if"))
_MERGED = dict.fromkeys(_COUNTS, "sum") | {name: name for name in ("sum", "min", "max", "bool_or", "bool_and")}
"""The aggregate that merges the results of another one over parts of the rows."""
_FLOATS = ("FLOAT", "DOUBLE")
"""Types whose sums depend on the order of the values."""
_PART = "part"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialCondition:
    """A condition on all rows that is evaluated from parts of them; made by `partial_condition`."""

    text: str
    whole: str
    """The condition over the merged aggregates, which are named p0, p1, ..."""
    aggregates: tuple[str, ...]
    """The aggregates as SQL over the rows of a part."""
    merges: tuple[str, ...]
    types: tuple[str, ...]
    """The DuckDB type of each."""
    is_count: tuple[bool, ...]
    """Whether each is a count, which is 0 over no rows; the others are null."""

    def of_parts(self, rows: pa.Table, part: str) -> pa.Table:
        """Return the aggregates of the rows of each part: `part`, p0, p1, ...

        Args:
            rows: The columns of the condition, and the part of each row.
        """
        expressions = ", ".join(f"{item} AS p{index}" for index, item in enumerate(self.aggregates))
        query = f"SELECT {quote_identifier(part)} AS {_PART}, {expressions} FROM this GROUP BY 1"  # noqa: S608 - expressions that were parsed
        return sql.run(query, {"this": _relation(rows)}, self._failure, whole=True)

    def over(
        self, parts: pa.Table, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64], count: int
    ) -> list[bool]:
        """Return whether the condition holds at each of `count` versions.

        Args:
            parts: The result of `of_parts`. A part may occur several times.
            first: For each part, the position of the first version that has its rows.
            last: For each part, the position of the first version after that without them.
            count: The number of versions.
        """
        chosen = parts[_PART].to_numpy()
        ranges = parts.append_column("begins", pa.array(first[chosen])).append_column("ends", pa.array(last[chosen]))
        names = [f"p{index}" for index in range(len(self.aggregates))]
        merged = ", ".join(f"{how}({name}) AS {name}" for how, name in zip(self.merges, names, strict=True))
        typed = ", ".join(
            f"CAST({f'coalesce({how}({name}), 0)' if is_count else f'{how}({name})'} AS {type_name}) AS {name}"
            for how, name, type_name, is_count in zip(self.merges, names, self.types, self.is_count, strict=True)
        )
        query = (
            f"WITH runs AS (SELECT begins, ends, {merged} FROM ranges GROUP BY begins, ends), "  # noqa: S608 - likewise
            f"states AS (SELECT position, {typed} FROM positions "
            "LEFT JOIN runs ON begins <= position AND position < ends GROUP BY position) "
            f"SELECT position, coalesce(CAST((\n{self.whole}\n) AS BOOLEAN), false) AS holds FROM states"
        )
        positions = pa.table({"position": pa.array(range(count), pa.int64())})
        relations = {"ranges": _relation(ranges), "positions": _relation(positions)}
        results = sql.run(query, relations, self._failure, whole=True)
        holds: list[bool] = results.sort_by("position")["holds"].to_pylist()
        return holds

    def _failure(self, sentence: str, _: int | None) -> str:
        return f"The condition {self.text!r} cannot be evaluated: {sentence.rstrip('.')}."


def partial_condition(text: str, schema: pa.Schema, *, is_on_all: bool) -> PartialCondition | None:
    """Return a condition that holds where another one does, evaluated from parts; None if it does not add up.

    Counts, `min`, `max`, `bool_or` and `bool_and` add up, and sums of exact numbers; sums of floats depend on the order
    of the values. Reads nothing.
    """
    tree: Any = copy.deepcopy(parse_expression(text if is_on_all else f"bool_or(CAST((\n{text}\n) AS BOOLEAN))"))
    calls: list[dict[str, Any]] = []
    tree = _replace_aggregates(tree, calls)
    if not calls or any(not (len(name) == 1 and name[0].startswith("p")) for name in names_of(tree)):
        return None
    with locked_cursor() as cursor:
        texts = to_sql(cursor, [tree, *calls])
    if texts is None:
        return None
    whole, *aggregates = texts
    named = [str(item["function_name"]) for item in calls]
    types_query = ", ".join(f"typeof({aggregate})" for aggregate in aggregates)
    query = f"SELECT {types_query} FROM this"  # noqa: S608 - expressions that were parsed
    typed_row = sql.run(query, {"this": _relation(schema.empty_table())}, lambda result, _: result, whole=True)
    types = [str(column[0].as_py()) for column in typed_row.columns]
    if any(name == "sum" and type_name in _FLOATS for name, type_name in zip(named, types, strict=True)):
        return None
    if _is_aggregate(whole, types):
        return None
    return PartialCondition(
        text=text,
        whole=whole,
        aggregates=tuple(aggregates),
        merges=tuple(_MERGED[name] for name in named),
        types=tuple(types),
        is_count=tuple(name in _COUNTS for name in named),
    )


def _replace_aggregates(tree: Any, aggregates: list[dict[str, Any]]) -> Any:
    """Return a parse tree with names in place of the aggregates that add up, which are added to `aggregates`."""
    if isinstance(tree, list):
        return [_replace_aggregates(item, aggregates) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if tree.get("class") == "FUNCTION" and _adds_up(tree):
        name = {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": [f"p{len(aggregates)}"]}
        aggregates.append(tree)
        return name | {key: tree[key] for key in ("query_location", "query_location_length") if key in tree}
    return {key: _replace_aggregates(value, aggregates) for key, value in tree.items()}


def _adds_up(tree: dict[str, Any]) -> bool:
    has_order = bool((tree.get("order_bys") or {}).get("orders"))
    count = 0 if tree["function_name"] == "count_star" else 1
    return (
        tree["function_name"] in _MERGED and not tree.get("distinct") and not has_order and len(children(tree)) == count
    )


def _is_aggregate(whole: str, types: Sequence[str]) -> bool:
    """Return whether an aggregate remains, such as `string_agg('a', '')`, which is one value over no rows."""
    columns = ", ".join(f"CAST(NULL AS {type_name}) AS p{index}" for index, type_name in enumerate(types))
    query = f"SELECT {whole} FROM (SELECT {columns}) WHERE false"  # noqa: S608 - expressions that were parsed
    try:
        return len(sql.run(query, {}, lambda result, _: result, whole=True)) > 0
    except InvalidArgumentError:  # beside a column it is refused
        return True


def _relation(rows: pa.Table) -> sql.Relation:
    return sql.Relation(
        what="the rows",
        schema=rows.schema,
        read=lambda names, _where, _limit: rows.select(list(names)),
        count=lambda: len(rows),
    )
