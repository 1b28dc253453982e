"""Merge engines as records: what a primary-key table makes of rows of one key.

Made from options by `merge_rules`, carried by splits, obeyed by `merge`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """An aggregate function of one column."""

    name: str
    """As in the option `fields.<c>.aggregate-function`; `primary_key` for columns of the key."""
    ignore_retract: bool = False
    """Whether retracts leave the value as it is."""
    distinct: bool = False
    """Whether listagg and collect take each token or element once."""
    delimiter: str = ","
    """What listagg puts between values."""
    nested_key: tuple[str, ...] = ()
    """Fields of the rows in an array that make their key."""
    nested_sequence: tuple[str, ...] = ()
    """Fields of the rows in an array that tell which of one key is the newer; equal ones give way to later rows."""
    null_keys: str = "merge"
    """What becomes of rows in an array whose key has a null: merge (it is a value), ignore or error."""
    most: int | None = None
    """How many rows an array may come to have; None for no limit."""
    time_field: str | None = None
    """The field of a map's values that holds their time; None for the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceGroup:
    """Columns that are updated together, when the sequence fields of a row are not older than the present ones."""

    order: tuple[str, ...]
    """The sequence fields."""
    fields: tuple[str, ...]
    """The other columns of the group."""
    removes: bool = False
    """Whether a row of kind -D that is not older removes the whole record."""


@dataclass(frozen=True, slots=True)
class Deduplicate:
    """The newest row is left."""


@dataclass(frozen=True, slots=True)
class FirstRow:
    """The oldest row is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialUpdate:
    """Each column has its newest value that is not null, or what its sequence group says."""

    groups: tuple[SequenceGroup, ...] = ()
    """No column is in two of them."""
    functions: Mapping[str, Function] = field(default_factory=dict)
    """Aggregate functions of columns in groups."""
    remove_on_delete: bool = False
    """Whether a row of kind -D removes the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """Each column has what its function makes of the values."""

    functions: Mapping[str, Function]
    """The function of each column of the table."""
    remove_on_delete: bool = False
    """Whether a row of kind -D removes the record."""


Engine = Deduplicate | FirstRow | PartialUpdate | Aggregation
