"""Two versions on different branches, neither of whose histories has both."""

from dataclasses import dataclass

from snapshot_explorer.formats import TableFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class PartedBranches:
    """The branches of versions A and B, where A is not on the branch of B, nor B on the branch of A."""

    name_a: str
    name_b: str
    format_a: TableFormat
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
