"""`Repair`: the statement that puts rows back, and its effect. Draws itself; nothing is run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.view import Code, Drawable, Drawing, Line, Pairs, Part
from snapshot_explorer.view.text import WIDTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snapshot_explorer.repairs.selection import RowCounts
    from snapshot_explorer.results import Frame

_WITH_BLANK = re.compile(r"'[^']* [^']*'|`[^`]* [^`]*`")
"""A text or a name with a blank, at which text is wrapped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterRows:
    """The changes that a repair undoes in addition to the first of several commits."""

    first: int
    """The version of the first commit."""
    rows: RowCounts | None
    """The rows of the repair that later commits changed; None if unknown."""
    alone: str | None
    """The Python call that undoes the first commit alone; None if no such statement is written."""
    command: str | None
    """The call as a command."""

    @property
    def is_harmless(self) -> bool:
        """Whether no later commit changed any of the rows."""
        return self.rows is not None and not self.rows.total


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Repair(Drawable):
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

    def drawing(self) -> Drawing:
        """Return the plan as a drawing: the statement, the rows to expect, and the next steps."""
        commits = pluralize(len(self.later), "commit")
        facts: list[tuple[str, object]] = [
            ("format", self.format),
            ("planned at version", self.version),
            ("key", ", ".join(self.key) if self.key else None),
            ("rows to expect", ", ".join(f"{count:,} {word}" for word, count in self.counts.items())),
            self._scope(commits),
            ("check afterwards", Code(self.check)),
            ("call", Code(self.call)),
            ("next", None if self._command is None else Code(self._command)),
        ]
        known = Pairs(tuple(fact for fact in facts if fact[1] is not None))
        notes = tuple(map(Line, self.notes))
        left = (
            () if self.left is None or not len(self.left) else (Line(f"{self.left.title}:"), *self.left.drawing().parts)
        )
        if self.is_empty:
            return Drawing(title=self._title, parts=(Line(self._nothing), known, *notes, *left))
        parts: list[Part] = [*map(Line, self.warnings), Line("Spark SQL:"), *self._drawn_statement()]
        parts += [] if self.flink is None else [Line("Flink SQL:"), Code(self.flink)]
        later = self.later.drawing().parts if len(self.later) and self.undone is None else ()
        return Drawing(title=self._title, parts=(*parts, known, *notes, *left, *later))

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
        call = later.alone.rpartition(".repair(")[2]
        return first, of_later, f"To undo version {later.first} alone and touch no later row: repair({call}."

    @property
    def _command(self) -> str | None:
        return self.later_rows.command if self.later_rows is not None and self.warnings else None

    @property
    def _title(self) -> str:
        which = "all rows" if self.where is None else f"the rows where {self.where}"
        if self.undone is not None:
            where = "" if self.where is None else f" where {self.where}"
            return f"Repair of {self.name}, not run: undo version {self.undone} alone{where}"
        beyond = f", which undoes {len(self.later):,} commits" if self.warnings else ""
        return f"Repair of {self.name}, not run: {which} as at version {self.to}{beyond}"

    @property
    def _nothing(self) -> str:
        if self.undone is None:
            return "Nothing to do: no row differs."
        if self.notes:
            return "Nothing to do: no row is as this commit left it."
        return f"Nothing to do: version {self.undone} changed no such row."

    def _scope(self, commits: str) -> tuple[str, object]:
        if self.undone is not None:
            return "not undone", f"what {commits} since version {self.undone} did"
        return "undone", None if self.is_empty else f"what {commits} since version {self.to} did to these rows"

    def _drawn_statement(self) -> tuple[Part, ...]:
        """Return the whole statement, to be copied, or a line that names the attribute with it."""
        lines = self.statement.split("\n")
        # A break in a text or a name, where a terminal wraps the line, would be another text.
        is_broken = any(len(line) > WIDTH and _WITH_BLANK.search(line) for line in lines)
        if is_broken or any(sanitize(line) != line for line in lines):
            return (Line("The statement has long texts or invisible characters. Copy it from .statement."),)
        return (Code(self.statement, is_whole=True),)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
