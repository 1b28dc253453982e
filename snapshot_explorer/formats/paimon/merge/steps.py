"""What each row of a key does to each column: the common ground of the engines that make rows out of several."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from snapshot_explorer.formats.paimon.merge.engines import Function
from snapshot_explorer.formats.paimon.merge.key_codes import Codes

RETRACTS = (1, 3)
"""Row kinds -U and -D."""
DELETE = 3
"""Row kind -D."""

SKIP, SET, CLEAR, ADD, ADD_EARLIER, RETRACT = range(6)
"""What a row does to a column's value: nothing, replace it (also by null), make it null, be aggregated, be aggregated
as if it had come before, be taken back."""

Actions = npt.NDArray[np.int8]


@dataclass(frozen=True, kw_only=True)
class KeyGroups:
    """The rows whose keys have others: by key, and oldest first within a key."""

    places: Codes
    """Their row numbers."""
    groups: Codes
    """The number of each one's key, ascending from 0 without gaps."""
    kinds: npt.NDArray[np.int8]
    """Their row kinds."""

    @cached_property
    def adds(self) -> npt.NDArray[np.bool_]:
        """Whether each row is one of kind +I or +U."""
        added: npt.NDArray[np.bool_] = ~np.isin(self.kinds, RETRACTS)
        return added

    @cached_property
    def starts(self) -> Codes:
        """Where each key's rows begin."""
        return group_starts(self.groups)

    @cached_property
    def ends(self) -> Codes:
        """Where each key's last row is."""
        return np.append(self.starts[1:], len(self.groups))[: len(self.starts)] - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSteps:
    """What the rows do to one column."""

    actions: Actions
    """SKIP, SET, ... for each row of the crowd."""
    function: Function | None = None
    """The aggregate function that ADD, ADD_EARLIER and RETRACT ask."""
    begins: npt.NDArray[np.bool_] | None = None
    """For each key, whether the value begins as that of the first row, before that row acts; None for never."""
    nullable: bool = True
    """Whether rows may hold nulls; they are checked where `checked` says so."""
    checked: npt.NDArray[np.bool_] | None = None
    """For each row, whether a null of it is refused in a column that allows none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What the rows do to all columns, and which keys are left."""

    columns: Mapping[str, ColumnSteps]
    """By the columns' names."""
    left: npt.NDArray[np.bool_]
    """For each key, whether it has a row in the end."""


def group_starts(codes: Codes) -> Codes:
    """Return where each run of equal codes begins."""
    if not len(codes):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
