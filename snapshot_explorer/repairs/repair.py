"""`Repair`: the statement that puts rows back, and what it would do. Draws itself; nothing is run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapshot_explorer.render import Code, Drawable, Drawing, Line, Pairs, Part
from snapshot_explorer.render.cells import counted
from snapshot_explorer.render.text import WIDTH
from snapshot_explorer.visible import visible

if TYPE_CHECKING:
    from snapshot_explorer.repairs.selection import RowCounts
    from snapshot_explorer.results import Frame

_WITH_BLANK = re.compile(r"'[^']* [^']*'|`[^`]* [^`]*`")
"""A text or a name with a blank, at which text is wrapped."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Repair(Drawable):
    """A statement for the user's engine that puts back rows of an earlier version. Draws itself; nothing is run."""

    path: str
    """The table's location."""
    name: str
    """The table's name."""
    format: str
    to: int
    """The version whose rows are put back."""
    version: int
    """The version that the plan was made at, the newest then. The numbers hold only for this one."""
    where: str | None
    """Which rows are put back; None for the table as a whole."""
    key: tuple[str, ...]
    """The columns by which rows are put back; empty if whole rows are replaced."""
    statements: tuple[str, ...]
    """The statements in Spark SQL, to be run in this order; empty if nothing differs."""
    flink: str | None
    """The same in Flink SQL; None where it is not written."""
    rows: RowCounts
    """The rows that the table then gets, loses and has with other values."""
    later: Frame
    """COMMITS after `to` that changed data, newest first. Only what they did to these rows is undone."""
    notes: tuple[str, ...]
    """What to know before the statement is run, a sentence or two each."""
    check: str
    """The Python call that shows afterwards whether the rows are those of `to`: no row differs."""
    call: str
    """The Python call that returns this plan."""

    @property
    def statement(self) -> str:
        """The statements as one text, separated by semicolons; empty if nothing differs."""
        return ";\n\n".join(self.statements)

    @property
    def is_empty(self) -> bool:
        """Whether the rows are those of `to` already."""
        return not self.statements

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows that the statement inserts, deletes and updates."""
        return {"inserted": self.rows.inserted, "deleted": self.rows.deleted, "updated": self.rows.updated}

    def drawing(self) -> Drawing:
        """Return the plan as a drawing: the statement, the rows to expect, and what to do afterwards."""
        which = "all rows" if self.where is None else f"the rows where {self.where}"
        title = f"Repair of {self.name}, not run: {which} as at version {self.to}"
        commits = counted(len(self.later), "commit")
        facts: list[tuple[str, object]] = [
            ("format", self.format),
            ("planned at version", self.version),
            ("key", ", ".join(self.key) if self.key else None),
            ("rows to expect", ", ".join(f"{count:,} {word}" for word, count in self.counts.items())),
            ("undone", None if self.is_empty else f"what {commits} since version {self.to} did to these rows"),
            ("check afterwards", Code(self.check)),
            ("call", Code(self.call)),
        ]
        known = Pairs(tuple(fact for fact in facts if fact[1] is not None))
        if self.is_empty:
            return Drawing(title=title, parts=(Line("Nothing to do: no row differs."), known))
        parts: list[Part] = [Line("Spark SQL:"), *self._drawn_statement()]
        parts += [] if self.flink is None else [Line("Flink SQL:"), Code(self.flink)]
        later = self.later.drawing().parts if len(self.later) else ()
        return Drawing(title=title, parts=(*parts, known, *map(Line, self.notes), *later))

    def _drawn_statement(self) -> tuple[Part, ...]:
        """Return the whole statement, to be copied, or where to get it."""
        lines = self.statement.split("\n")
        # A break in a text or a name, where a terminal wraps the line, would be another text.
        is_broken = any(len(line) > WIDTH and _WITH_BLANK.search(line) for line in lines)
        if is_broken or any(visible(line) != line for line in lines):
            return (Line("The statement has long texts or invisible characters. Copy it from .statement."),)
        return (Code(self.statement, is_whole=True),)
