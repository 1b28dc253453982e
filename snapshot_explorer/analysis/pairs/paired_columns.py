"""The columns in which rows of two tables are compared: paired by name, under the names of B, in a type that has both.

Types count as equivalent, at any depth, if they have the same values:

- integers of any width, and integers with decimals
- decimals of any precision and scale
- float and double, and integers of up to 32 bits with floats that have all their values
- timestamps of any unit, with any zone or without one, which is compared as UTC; a date with a timestamp without zone
- times of day of any unit
- text and binary of any kind, compared by their bytes in UTF-8
- places as WKB with the same coordinate reference system and edges, or with binary, compared by their bytes
- variants, compared by their values, however they are encoded
- lists and maps of equivalent types; structs with fields of the same names, in any order, and of equivalent types

All others are refused by name before rows are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import (
    AlignedColumns,
    check_names,
    differing_references,
    wider_type,
)
from snapshot_explorer.core.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import FieldIds
from snapshot_explorer.core.text import list_names
from snapshot_explorer.engines.conditions import unknown_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snapshot_explorer.formats import TableVersion

_TEXTS = {pa.string(), pa.large_string()}
LEAVE_OUT = Hint("", {"exclude": [...]})
"""The argument that leaves columns out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedColumns:
    """The compared columns of two tables, and the other columns."""

    aligned: AlignedColumns
    only_b: tuple[str, ...]
    """The columns of B that A lacks."""
    conversions: tuple[str, ...]
    """The columns with different types, each with both types and the one in which it is compared."""


def paired_columns(
    a: TableVersion, b: TableVersion, renames: Mapping[str, str] | None, exclude: Sequence[str] | None
) -> PairedColumns:
    """Return the columns of two tables, paired. Reads only the schemas.

    Names match exactly, otherwise without regard to case if that is unambiguous.

    Args:
        renames: Names in A, and the names of these columns in B.
        exclude: Columns that are not compared, by their names in either table.

    Raises:
        InvalidArgumentError: A name is unknown or occurs twice, or the tables have no column in common.
        UnsupportedFeatureError: Columns have types that are not equivalent; the message names all of them.
    """
    schema_a, schema_b = a.arrow_schema, b.arrow_schema
    known = list(dict.fromkeys([*schema_b.names, *schema_a.names]))
    excluded = frozenset(check_names(exclude, known, "exclude") or ())
    names_a = _pairs(schema_a.names, schema_b.names, renames)
    names_a = {name: own for name, own in names_a.items() if not excluded.intersection((name, own))}
    if not names_a:
        raise InvalidArgumentError(
            Message(
                f"No column of A is compared with one of B. Columns of A: {list_names(schema_a.names)}. Columns of B: "
                f"{list_names(schema_b.names)}. ",
                Hint("", {"columns": {"NAME_IN_A": "NAME_IN_B"}}),
                " pairs a name in A with one in B.",
            )
        )
    fields, conversions, wrong = [], [], []
    for name in (name for name in schema_b.names if name in names_a):
        kinds = schema_a.field(names_a[name]).type, schema_b.field(name).type
        dtype = wider_type(*kinds, across_tables=True)
        if dtype is None:
            wrong.append(f"{name!r} ({kinds[0]} in A, {kinds[1]} in B)")
            continue
        if other := differing_references(schema_a.field(names_a[name]), schema_b.field(name)):
            wrong.append(f"{name!r} (places with {other[0]} in A, {other[1]} in B)")
            continue
        fields.append(pa.field(name, dtype))
        if kinds[0] != kinds[1] and not set(kinds) <= _TEXTS:
            conversions.append(f"{name}: {kinds[0]} and {kinds[1]}, compared as {dtype}")
    if wrong:
        raise UnsupportedFeatureError(
            Message(
                f"Columns have types whose values cannot be compared: {list_names(wrong)}. Leave them out: ",
                LEAVE_OUT,
                ".",
            )
        )
    paired_a = frozenset(names_a.values())
    aligned = AlignedColumns(
        schema=pa.schema(fields),
        names_a=names_a,
        only_a=tuple(name for name in schema_a.names if name not in paired_a | excluded),
        # Fields of structs are paired by name: ids of two tables have nothing in common.
        ids_a={name: FieldIds(id=None) for name in schema_a.names},
        ids_b={name: FieldIds(id=None) for name in schema_b.names},
        primary_key=(),
        leave_out=LEAVE_OUT,
    )
    only_b = tuple(name for name in schema_b.names if name not in names_a and name not in excluded)
    return PairedColumns(aligned=aligned, only_b=only_b, conversions=tuple(conversions))


def _pairs(names_a: Sequence[str], names_b: Sequence[str], renames: Mapping[str, str] | None) -> dict[str, str]:
    """Return the name in A of each column of B that has a partner."""
    result = {new: old for old, new in _check_renames(names_a, names_b, renames).items()}
    left = [name for name in names_a if name not in result.values()]
    result |= {name: name for name in names_b if name in left and name not in result}
    by_case = [_fold_names(names) for names in (names_a, names_b)]
    used = frozenset(result.values())
    for folded, named in by_case[1].items():
        owns = by_case[0].get(folded, [])
        if len(named) == len(owns) == 1 and named[0] not in result and owns[0] not in used:
            result[named[0]] = owns[0]
    return result


def _fold_names(names: Sequence[str]) -> dict[str, list[str]]:
    result = defaultdict(list)
    for name in names:
        result[name.casefold()].append(name)
    return result


def _check_renames(
    names_a: Sequence[str], names_b: Sequence[str], renames: Mapping[str, str] | None
) -> Mapping[str, str]:
    if renames is None:
        return {}
    if not isinstance(renames, Mapping):
        raise InvalidArgumentError(
            Message(
                f"columns must be a dict of names in A and in B, got {renames!r}. Example: ",
                Hint("", {"columns": {"id": "order_id"}}),
                ".",
            )
        )
    for names, side, known in ((renames, "A", names_a), (renames.values(), "B", names_b)):
        for name in names:
            if name not in known:
                raise unknown_column(str(name), known, where=f" of {side} in columns")
    again = [name for name in renames.values() if list(renames.values()).count(name) > 1]
    if again:
        raise InvalidArgumentError(f"columns names the column {again[0]!r} of B twice. Pair each column once.")
    return renames
