"""`Bisection`: the first version where a condition holds, and how it was found. Draws itself and exports."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.hints import Hint
from snapshot_explorer.core.records import Commit, Gap, alternatives_text, gaps_text
from snapshot_explorer.core.text import format_size, pluralize
from snapshot_explorer.results import Frame
from snapshot_explorer.results.frame_result import FrameResult


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectionReading:
    """The size of a bisection's reads."""

    versions: int
    """The versions among which the first is searched."""
    loads: int
    """The maximum number of versions whose rows are read."""
    columns: tuple[str, ...] | None
    """The columns to read of each version; None if a function decides."""
    files: int
    """The data files of a load: the files that might match at the last version, or all of its files if every version is
    evaluated. For a single pass, all files that it reads."""
    size_bytes: int
    single_pass: bool = False
    """Whether each file is read once for all versions, instead of loading some versions."""

    def __str__(self) -> str:
        versions = pluralize(self.versions, "version")
        if self.single_pass:
            return f"Evaluating {versions} in a single pass: {self._values} of {self._files}, each read once."
        verb = "Evaluating" if self.loads == self.versions else "Bisecting"
        return f"{verb} {versions}: {self.cost}."

    @property
    def cost(self) -> str:
        """Return the loads in words: `at most 5 loads of amount, each of about 12 files (4 MB in all columns)`."""
        each = ", each" if self.loads > 1 else ","
        return f"at most {pluralize(self.loads, 'load')} of {self._values}{each} of about {self._files}"

    @property
    def _values(self) -> str:
        return "what the function reads" if self.columns is None else ", ".join(self.columns) or "no column"

    @property
    def _files(self) -> str:
        return f"{pluralize(self.files, 'file')} ({format_size(self.size_bytes)} in all columns)"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Bisection(FrameResult):
    """The first version where a condition holds, and how it was found. Draws itself."""

    condition: str
    """The condition as SQL, or the name of the function."""
    version: int | None
    """The first readable version at which the condition holds; None if it holds at none of the
    evaluated versions, or already at the one passed as good."""
    commit: Commit | None
    last_good: int | None
    """The last evaluated version before it, where the condition does not hold, or None."""
    good: int | None
    """The version that the caller passed as good."""
    gap: Gap | None
    """The versions right before `version` that are missing or cannot be read: it may hold first at one of them."""
    gaps: tuple[Gap, ...]
    """All gaps between the versions that were searched."""
    evaluated: Frame
    """The versions that were evaluated, ascending, with their values: BISECTED. `holds` is null for skipped ones."""
    notes: tuple[str, ...]
    """Further notes, such as how often the condition changes; a sentence or two each."""
    call: str
    """The Python call that returns this result."""
    open_expression: str
    """The part of `call` that opens the table."""
    is_on_each_row: bool
    """Whether the condition is one on each row, not on all rows together or on metadata."""
    next_calls: tuple[Hint, ...]
    """Calls that show more, of versions that can be read."""

    @property
    def skipped(self) -> tuple[int, ...]:
        """Return the versions that could not be read, ascending. They are never the result."""
        rows = self.evaluated.to_arrow()
        skipped: list[int] = rows.filter(pc.is_null(rows["holds"]))["version"].to_pylist()
        return tuple(skipped)

    @property
    def frame(self) -> Frame:
        return self.evaluated

    @property
    def changes(self) -> Frame:
        """Return the evaluated versions where the condition begins or ceases to hold, ascending; the first one too.

        These are all such versions if every version was evaluated: `Table.bisect(..., every=True)`. Versions that
        could not be read are passed over.
        """
        rows = self.evaluated.to_arrow()
        known = rows.filter(pc.is_valid(rows["holds"]))
        holds = known["holds"].to_numpy()
        differs = np.concatenate([np.ones(min(1, len(holds)), np.bool_), holds[1:] != holds[:-1]])
        changed = known.filter(pa.array(differs))
        missed = len(self.versions) - len(known)
        notes = (f"{pluralize(missed, 'version')} of {len(self.versions):,} could not be, or were not, evaluated.",)
        times = ("at least " if missed else "") + pluralize(max(0, len(changed) - 1), "time")
        return Frame(
            changed,
            title=f"{self.condition} changes {times} from version {self.versions[0]} to {self.versions[-1]}",
            noun="versions",
            drawn=tuple(name for name in changed.column_names if name != "note"),
            notes=notes if missed else (),
        )

    @property
    def assumes_one_change(self) -> bool:
        """Return whether `version` is the first one only if the condition changes once.

        That is so where versions before it were not evaluated.
        """
        if self.version is None:
            return False
        before = np.asarray(self.evaluated["version"].to_numpy()) < self.version
        return int(before.sum()) < int((np.asarray(self.versions, np.int64) < self.version).sum())

    @property
    def holds_at_good(self) -> bool:
        """Return whether the condition holds at the version that was passed as good, so that there is no answer."""
        rows = self.evaluated.to_arrow()
        at_good = rows.filter(pc.equal(rows["version"], pa.scalar(self.good, pa.int64())))["holds"].to_pylist()
        return bool(at_good == [True])

    @property
    def first(self) -> str:
        """Return the version where the condition holds first; several where versions before it cannot be read."""
        return "" if self.version is None else alternatives_text([self.gap] if self.gap else [], [self.version])

    @property
    def answer(self) -> str:
        """Return the answer in a line, without a period, such as `amount < 0 holds first at version 8 of orders`."""
        if self.holds_at_good:
            return f"{self.condition} holds already at {self.good}, which was given as good: no answer"
        if self.version is None:
            missing = f": {gaps_text(self.gaps)}" if self.gaps else ""
            return f"{self.condition} {self._where_not()} of {self.name}{missing}"
        if self.last_good is None and self.good is None:
            where = f"version {self.version} of {self.name}, the earliest that can be read"
            return f"{self.condition} holds already at {where}{self._how_often}"
        missing = "" if self.gap is None else f": {self.gap}"
        where = f"{'one of the versions' if ' to ' in self.first else 'version'} {self.first}"
        unless = ""
        if self.last_good is None and self.good in self.skipped:
            unless = f", unless at {self.good}, which was given as good and cannot be read"
        return f"{self.condition} holds first at {where} of {self.name}{missing}{unless}{self._how_often}"

    @property
    def _how_often(self) -> str:
        """Return how often the condition changes, as the end of a sentence; empty for once, or if it is unknown."""
        if self.assumes_one_change:
            return ", if it changes only once"
        times = len(self.changes) - 1
        if len(self.evaluated) < len(self.versions) or times < 2:  # noqa: PLR2004 - once is what is expected
            return ""
        return f", and changes {'at least ' if self.gaps or self.skipped else ''}{times:,} times"

    def _where_not(self) -> str:
        rows = self.evaluated.to_arrow()
        answered = rows.filter(pc.is_valid(rows["holds"]))["version"].to_pylist()
        if not answered:
            return "could be evaluated at no version"
        return (
            "holds at no version" if len(answered) == len(self.versions) else f"does not hold at version {answered[-1]}"
        )
