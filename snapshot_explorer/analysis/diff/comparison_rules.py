"""`ComparisonRules`: which values count as equal although they differ: texts in case or blanks, numbers by a little."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.analysis.diff.row_matching import HashedRows, Indices, take_rows
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.data_types import is_number
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.engines.conditions import unknown_column

_DIGITS = 100
"""Digits with which decimals and integers are subtracted: more than any has."""

Tolerance = float | Decimal | Mapping[str, float | Decimal] | None
"""A tolerance of all numbers, or of some columns by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRules:
    """Which values count as equal. Picklable. By default only equal ones."""

    absolute: Mapping[str, float | Decimal] = field(default_factory=dict)
    """By column, the maximum difference of two numbers."""
    relative: Mapping[str, float | Decimal] = field(default_factory=dict)
    """By column, the maximum difference, as a share of the number that is further from 0."""
    ignore_case: bool = False
    trim: bool = False
    """Whether blanks, tabs and line breaks around texts do not matter."""

    @property
    def changes_texts(self) -> bool:
        """Whether different texts may count as equal."""
        return self.ignore_case or self.trim

    def normalized(self, values: Any) -> Any:
        """Return a column, an array or a chunked one, with one text for texts that count as equal."""
        if not self.changes_texts or not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            return values
        texts = pc.utf8_trim_whitespace(values) if self.trim else values
        return pc.utf8_lower(texts) if self.ignore_case else texts

    def normalized_rows(self, rows: HashedRows) -> HashedRows:
        """Return rows in which texts that count as equal are equal."""
        if not self.changes_texts:
            return rows
        columns = [self.normalized(column) for column in rows.rows.columns]
        return replace(rows, rows=pa.Table.from_arrays(columns, schema=rows.rows.schema))

    def keep_beyond(
        self,
        cells: npt.NDArray[np.bool_],
        before: pa.Table,
        after: pa.Table,
        pairs: tuple[Indices, Indices],
        names: Sequence[str],
    ) -> None:
        """Set the cells to False whose numbers differ by no more than the tolerance.

        Args:
            cells: For each pair of rows and each column whether the values differ.
            pairs: The places of the rows in `before` and `after`.
            names: The columns of the cells.
        """
        for index, name in enumerate(names):
            if name not in self.absolute and name not in self.relative:
                continue
            differing = np.flatnonzero(cells[:, index])
            old, new = (take_rows(side[name], at[differing]) for side, at in zip((before, after), pairs, strict=True))
            cells[differing, index] = ~self._within(old, new, name)

    def _within(self, old: pa.Array, new: pa.Array, name: str) -> npt.NDArray[np.bool_]:
        both = np.asarray(pc.and_(old.is_valid(), new.is_valid()))
        indices = pa.array(np.flatnonzero(both))
        left, right = old.take(indices), new.take(indices)
        if pa.types.is_floating(old.type):
            lefts, rights = (np.asarray(values).astype(np.float64) for values in (left, right))
            number: Any = float
        else:
            # As objects: neither a difference of 64-bit integers nor one of decimals may overflow or be rounded.
            lefts, rights = (
                np.array([Decimal(item) for item in values.to_pylist()], object) for values in (left, right)
            )
            number = _decimal
        absolute, relative = number(self.absolute.get(name, 0)), number(self.relative.get(name, 0))
        result = np.zeros(len(old), bool)
        with localcontext(prec=_DIGITS), np.errstate(invalid="ignore", over="ignore"):
            sizes = np.maximum(np.abs(lefts), np.abs(rights)) if len(lefts) else lefts
            # An infinity is within no tolerance of another number.
            allowed = np.maximum(relative * sizes, absolute) if len(lefts) else lefts
            difference = np.abs(lefts - rights)
            close = np.asarray(difference <= allowed, bool)
            if number is float:
                close &= np.isfinite(difference)
        result[both] = close
        return result

    @property
    def facts(self) -> list[tuple[str, object]]:
        """The rules as names and values for a drawing."""
        facts: list[tuple[str, object]] = []
        for word, tolerances in (("tolerance", self.absolute), ("relative tolerance", self.relative)):
            if tolerances:
                facts.append((word, ", ".join(f"{name}: {value}" for name, value in tolerances.items())))
        texts = [word for word, is_set in (("case", self.ignore_case), ("blanks around", self.trim)) if is_set]
        return [*facts, ("not compared in texts", ", ".join(texts))] if texts else facts


EXACT = ComparisonRules()
"""Only equal values are equal."""


def _decimal(value: float | Decimal) -> Decimal:
    """Return the number that was written: 0.1 as one tenth, not as the float next to it."""
    return value if isinstance(value, Decimal) else Decimal(repr(value))


def comparison_rules(
    schema: pa.Schema,
    key: Sequence[str],
    *,
    tolerance: Tolerance = None,
    relative_tolerance: Tolerance = None,
    ignore_case: bool = False,
    trim: bool = False,
) -> ComparisonRules:
    """Return the rules for columns."""
    absolute, relative = (
        _by_column(value, argument, schema, key)
        for value, argument in ((tolerance, "tolerance"), (relative_tolerance, "relative_tolerance"))
    )
    return ComparisonRules(absolute=absolute, relative=relative, ignore_case=bool(ignore_case), trim=bool(trim))


def _by_column(
    tolerance: Tolerance, argument: str, schema: pa.Schema, key: Sequence[str]
) -> Mapping[str, float | Decimal]:
    if tolerance is None:
        return {}
    if not key:
        raise InvalidArgumentError(
            Message(
                f"{argument} needs a key: without one, rows are only equal or not. Name the columns that identify a "
                "row: ",
                Hint("", {"key": [...]}),
                ".",
            )
        )
    numbers = [column.name for column in schema if column.name not in key and is_number(column.type)]
    if not isinstance(tolerance, Mapping):
        return dict.fromkeys(numbers, _check_tolerance(tolerance, argument))
    for name in tolerance:
        if name not in schema.names:
            raise unknown_column(str(name), schema.names, where=f" in {argument}")
        if name not in numbers:
            fault = "is part of the key" if name in key else f"is {schema.field(name).type}"
            raise InvalidArgumentError(f"{argument} names the column {name!r}, which {fault}. Name columns of numbers.")
    return {name: _check_tolerance(value, argument) for name, value in tolerance.items()}


def _check_tolerance(value: object, argument: str) -> float | Decimal:
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise InvalidArgumentError(f"{argument} must be a number, 0 or more, got {value!r}.")
    return value
