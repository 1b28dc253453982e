"""Versions of several branches: what a format with branches offers, and two versions that no history has both of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snapshot_explorer.formats import TableFormat


@runtime_checkable
class SupportsBranches(Protocol):
    """A format whose tables have branches."""

    def branch_names(self) -> Sequence[str]:
        """Return the names of all branches, main included, sorted. At most one listing."""
        ...

    # The type is that of the format, which `TableFormat` and this protocol both describe.
    def on_branch(self, name: str) -> Any:
        """Return the same table, bound to another branch that exists."""
        ...

    def shared_versions(self, other: Any) -> Mapping[int, int]:
        """Return the versions of this history that another branch of the table also has, each with its number there."""
        ...

    def check_comparable(self, other: Any, versions: tuple[int, int]) -> None:
        """Raise if columns of a version of this branch and of one of another cannot be matched by their field ids.

        Raises:
            UnsupportedFeatureError: The message names the columns.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PartedBranches:
    """The branches of versions A and B, each of which the other branch lacks."""

    name_a: str
    """The branch of A."""
    name_b: str
    """The branch of B."""
    format_a: TableFormat
    """The history of A."""
    shared_a: int | None
    """The number in the history of A of the newest version that both have; None if they have none in common."""
    shared_b: int | None
    """Its number in the history of B."""

    @property
    def since(self) -> str:
        """Return where the branches part, for people."""
        if self.shared_a is None or self.shared_b is None:
            return "which share no version"
        same = f"version {self.shared_a}"
        return f"since {same}" if self.shared_a == self.shared_b else f"since {same}, which is {self.shared_b} in B"
