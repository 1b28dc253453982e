"""Merge engines as records: how a primary-key table merges the rows of a key.

`merge_rules` creates them from options, splits contain them, `merge` applies them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """An aggregate function of one column."""

    name: str
    """As in the option `fields.<c>.aggregate-function`; `primary_key` for columns of the key."""
    ignore_retract: bool = False
    distinct: bool = False
    """Whether listagg and collect include each token or element once."""
    delimiter: str = ","
    nested_key: tuple[str, ...] = ()
    nested_sequence: tuple[str, ...] = ()
    """The sequence fields of the rows in an array. The later row wins a tie."""
    null_keys: str = "merge"
    """How to handle rows in an array whose key contains null: merge (null is a value), ignore or error."""
    count_limit: int | None = None
    """The maximum number of rows of an array; None for no limit."""
    time_field: str | None = None
    """The field of a map's values that contains their time; None for the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceGroup:
    """Columns that are updated together, if the sequence fields of a row are not older than the current ones."""

    order: tuple[str, ...]
    fields: tuple[str, ...]
    removes: bool = False
    """Whether a -D row that is not older removes the whole record."""


@dataclass(frozen=True, slots=True)
class Deduplicate:
    """Keeps the newest row."""


@dataclass(frozen=True, slots=True)
class FirstRow:
    """Keeps the oldest row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialUpdate:
    """Keeps the newest value of each column that is not null, or follows its sequence group."""

    groups: tuple[SequenceGroup, ...] = ()
    """The sequence groups. No column is in two of them."""
    functions: Mapping[str, Function] = field(default_factory=dict)
    """The aggregate functions of columns in groups."""
    remove_on_delete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """Aggregates the values of each column with its function."""

    functions: Mapping[str, Function]
    remove_on_delete: bool = False


Engine = Deduplicate | FirstRow | PartialUpdate | Aggregation
