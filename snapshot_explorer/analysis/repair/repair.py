"""`Repair`: the statement that puts rows back, and its effect. Draws itself; nothing is run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.shown import Shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snapshot_explorer.analysis.repair.selection import RowCounts
    from snapshot_explorer.results import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterRows:
    """The changes that a repair undoes in addition to the first of several commits."""

    first: int
    """The version of the first commit."""
    rows: RowCounts | None
    """The rows of the repair that later commits changed; None if unknown."""
    alone: Hint | None
    """The call that undoes the first commit alone; None if no such statement is written."""

    @property
    def is_harmless(self) -> bool:
        """Whether no later commit changed any of the rows."""
        return self.rows is not None and not self.rows.total


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Repair(Shown):
    """A statement for the user's engine that puts back rows of an earlier version. Draws itself; nothing is run."""

    path: str
    """The table's location."""
    name: str
    """The table's name."""
    format: str
    to: int
    """The version whose rows are put back; with `undone`, the version before it."""
    undone: int | None = None
    """The version whose commit alone is undone; None if all changes since `to` are undone."""
    version: int
    """The newest version when the plan was made. The numbers hold only for this version."""
    where: str | None
    """Which rows are put back; None for the table as a whole."""
    key: tuple[str, ...]
    """The columns by which rows are put back; empty if whole rows are replaced."""
    statements: tuple[str, ...]
    """The statements in Spark SQL, to be run in this order; empty if nothing differs."""
    flink: str | None
    """The statements in Flink SQL; None if they are not written."""
    rows: RowCounts
    """The rows that the table then gets, loses and has with other values."""
    later: Frame
    """COMMITS after `to` that changed data, newest first: their changes of these rows are undone. With `undone`, the
    commits after it, which are not undone."""
    later_rows: LaterRows | None = None
    """The changes that are undone in addition to the first of `later`; None if there is one, or nothing differs."""
    left: Frame | None = None
    """With `undone`: the rows that are left unchanged because later commits changed them too, with the later changes;
    if there are many, the first ones."""
    left_counts: Mapping[str, int] = field(default_factory=dict)
    """The number of rows that are left, by the effect of later commits."""
    notes: tuple[str, ...]
    """Notes to read before the statement is run, a sentence or two each."""
    check: str
    """The Python call that verifies the repair: afterwards no row differs from the rows of `to`."""
    call: str
    """The Python call that returns this plan."""

    @property
    def statement(self) -> str:
        """The statements as one text, separated by semicolons; empty if nothing differs."""
        return ";\n\n".join(self.statements)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to put back: the rows equal the rows of `to`, or later commits changed them too."""
        return not self.statements

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows that the statement inserts, deletes and updates."""
        return {"inserted": self.rows.inserted, "deleted": self.rows.deleted, "updated": self.rows.updated}

    @property
    def warnings(self) -> tuple[str, ...]:
        """The changes that the repair undoes in addition to one commit, with numbers of rows; empty without any."""
        later = self.later_rows
        if later is None or later.is_harmless:
            return ()
        rows = self.rows
        first = (
            f"This undoes {len(self.later):,} commits, all since version {self.to}: {_rows(rows.deleted)} that they "
            f"inserted would be deleted, {_rows(rows.updated)} that they changed would be set back, and "
            f"{_rows(rows.inserted)} that they deleted would come back."
        )
        if later.rows is None:
            of_later = f"How many of these rows commits after version {later.first} changed is not known."
        else:
            of_later = (
                f"{_rows(later.rows.total)} of them are of commits after version {later.first}, the first one: "
                f"{later.rows.deleted:,} inserted, {later.rows.updated:,} changed, {later.rows.inserted:,} deleted."
            )
        if later.alone is None:
            return first, of_later
        return (
            first,
            of_later,
            Message(f"To undo version {later.first} alone and touch no later row: ", later.alone, "."),
        )


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
