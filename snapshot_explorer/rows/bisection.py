"""The first version where a condition holds: from metadata, from one pass over the rows, or by halving."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer import frames
from snapshot_explorer.engines import local, sql
from snapshot_explorer.engines.aggregates import Aggregate, aggregate
from snapshot_explorer.engines.conditions import condition as row_condition
from snapshot_explorer.engines.partial_aggregates import partial_condition
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.errors import (
    InvalidArgumentError,
    SnapshotExplorerError,
)
from snapshot_explorer.frames import Frame
from snapshot_explorer.progress import step
from snapshot_explorer.render import Code, Drawing, Grid, Line, Pairs, mimebundle, text
from snapshot_explorer.render.cells import counted, size
from snapshot_explorer.rows.frame_exports import FrameExports
from snapshot_explorer.rows.single_pass import single_pass as single_pass_of
from snapshot_explorer.rows.source import UNREADABLE, names_before
from snapshot_explorer.rows.version_metadata import MetadataCondition, is_on_metadata, metadata_condition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from snapshot_explorer.engines.partial_aggregates import PartialCondition
    from snapshot_explorer.formats import TableVersion
    from snapshot_explorer.model import Commit, Predicate
    from snapshot_explorer.rows.single_pass import SinglePass
    from snapshot_explorer.rows.source import Source

Test: TypeAlias = "str | Callable[..., object]"
"""A condition in SQL, or a function of a snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a bisection will read."""

    versions: int
    """The versions among which the first is searched."""
    loads: int
    """The most versions whose rows are read."""
    columns: tuple[str, ...] | None
    """The columns to read of each version; None if a function decides."""
    files: int
    """The data files of a load: those that might match at the last version. For a single pass, all that it reads."""
    size_bytes: int
    """The size of these files."""
    single_pass: bool = False
    """Whether each file is read once for all versions, instead of loading some versions."""

    def __str__(self) -> str:
        """Return it as a sentence."""
        what = "what the function reads" if self.columns is None else ", ".join(self.columns) or "no column"
        files = f"{counted(self.files, 'file')} ({size(self.size_bytes)} in all columns)"
        versions = counted(self.versions, "version")
        if self.single_pass:
            return (
                f"Evaluating {versions} in a single pass: {what} of {files}, each read once, which is "
                f"less than {counted(self.loads, 'load')}."
            )
        loads = f"{counted(self.loads, 'load')} of {what}" + (", each" if self.loads > 1 else ",")
        return f"Bisecting {versions}: at most {loads} of about {files}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection(FrameExports):
    """The first version where a condition holds, and how it was found. Draws itself."""

    path: str
    """The table's location."""
    name: str
    """The table's name."""
    format: str
    """Its format."""
    condition: str
    """The condition as SQL, or the name of the function."""
    version: int | None
    """The first version where the condition holds; None if it holds at none of the evaluated versions."""
    commit: Commit | None
    """The commit of that version."""
    last_good: int | None
    """The last evaluated version before it, where the condition does not hold; None if there is none."""
    versions: tuple[int, ...]
    """The versions that were searched, ascending."""
    span: str
    """The first and the last of them with their times."""
    evaluated: Frame
    """The versions that were evaluated, ascending, with their values: BISECTED. `holds` is null for skipped ones."""
    notes: tuple[str, ...]
    """Further notes, such as that the condition is not monotone; a sentence each."""
    call: str
    """The Python call that returns this result."""
    opened: str
    """The part of it that opens the table."""
    is_on_each_row: bool
    """Whether the condition is one on each row, not on all rows together or on metadata."""

    @property
    def skipped(self) -> tuple[int, ...]:
        """Return the versions that could not be read, ascending. They are never the result."""
        rows = self.evaluated.to_arrow()
        skipped: list[int] = rows.filter(pc.is_null(rows["holds"]))["version"].to_pylist()
        return tuple(skipped)

    @property
    def frame(self) -> Frame:
        """Return the evaluated versions as a frame."""
        return self.evaluated

    def drawing(self) -> Drawing:
        """Return the result as a drawing: the version, how it was found, and the versions around it."""
        if self.version is None:
            title = f"{self.condition} {self._where_not()} of {self.name}"
        else:
            title = f"{self.condition} holds first at version {self.version} of {self.name}"
        rows = self._neighbours()
        grid = Grid(rows, total=len(self.evaluated), noun="evaluated versions", limit=max(1, len(rows)))
        notes = [Line(note) for note in self.notes]
        return Drawing(title=title, parts=(Pairs(tuple(self._facts())), *notes, grid, Code(self.call)))

    def _where_not(self) -> str:
        rows = self.evaluated.to_arrow()
        answered = rows.filter(pc.is_valid(rows["holds"]))["version"].to_pylist()
        if not answered:
            return "could be evaluated at no version"
        return (
            "holds at no version" if len(answered) == len(self.versions) else f"does not hold at version {answered[-1]}"
        )

    def _facts(self) -> list[tuple[str, object]]:
        commit = self.commit
        facts: list[tuple[str, object]] = [("format", self.format), ("versions", self.span)]
        if commit is not None:
            done = [commit.kind, commit.operation, f"by {commit.user}" if commit.user else None]
            facts += [
                ("first version", self.version),
                ("committed at", commit.committed_at),
                ("commit", ", ".join(dict.fromkeys(word for word in done if word))),
                ("last version before", self.last_good),
            ]
        answered = len(self.evaluated) - len(self.skipped)
        facts.append(("evaluated", f"{answered:,} of {counted(len(self.versions), 'version')}"))
        return [*facts, ("next", tuple(map(Code, self._next_commands())))] if self._next_commands() else facts

    def _next_commands(self) -> list[str]:
        """Return commands that show the rows that the version changed; without a version, all changes of such rows."""
        if self.version is None:
            return [f"%snapshot blame {self.condition}"] if self.is_on_each_row else []
        if self.last_good is None:
            return []
        before = f"%snapshot load {self.last_good} as before --types numpy"
        return [f"%snapshot diff {self.last_good} {self.version} --rows", before]

    def _neighbours(self) -> pa.Table:
        """Return the evaluated versions; if there are many, those around the result."""
        rows = self.evaluated.to_arrow()
        if len(rows) > _DRAWN:
            found = 0 if self.version is None else int(np.searchsorted(rows["version"].to_numpy(), self.version))
            begin = min(max(0, found - _DRAWN // 2), len(rows) - _DRAWN)
            rows = rows.slice(begin, _DRAWN)
        return rows.drop_columns(["note"]) if rows["note"].null_count == len(rows) else rows

    def __repr__(self) -> str:
        return text(self.drawing())

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return mimebundle(self.drawing())


_DRAWN = 14
"""Evaluated versions that are drawn."""


def bisect(
    source: Source,
    condition: Test,
    good: int | None = None,
    bad: int | None = None,
    *,
    announce: Callable[[Reading], object] | None = None,
    single_pass: bool | None = None,
) -> Bisection:
    """Return the first version where a condition holds; see `Table.bisect`.

    Args:
        source: The table.
        condition: SQL, or a function of a snapshot.
        good: A version where it does not hold; by default the search begins at the earliest version.
        bad: A later version where it holds; by default the newest version.
        announce: Called with what will be read, before any row is read. It may raise.
        single_pass: Whether to read rows in a single pass. By default, if that reads less.
    """
    _check_order(good, bad)
    if announce is not None and not callable(announce):
        raise InvalidArgumentError(f"announce must be a function of what will be read, got {announce!r}.")
    versions = source.versions(good, bad)
    newest = source.format.version(versions[-1])
    call = source.opened + _call(condition, good, bad)
    is_on_each_row = False
    if isinstance(condition, str) and is_on_metadata(condition, newest.arrow_schema.names):
        on_metadata = metadata_condition(condition, newest.arrow_schema)
        found = _by_metadata(source, on_metadata, versions)
    else:
        test = _test(source, condition, newest)
        is_on_each_row = isinstance(condition, str) and aggregate(condition, newest.arrow_schema) is None
        reading = _reading(versions, test, newest)
        once = None if single_pass is False else _pass_over(source, test, versions, reading, is_asked=single_pass)
        if once is not None:
            reading = replace(reading, files=once.files, size_bytes=once.size_bytes, single_pass=True)
        if announce is not None:
            announce(reading)
        passed = None
        if once is not None:
            passed = _by_pass(once, test, versions, is_asked=single_pass, is_bad_given=bad is not None)
        found = _by_halving(test, versions, is_bad_given=bad is not None) if passed is None else passed
    result = _result(source, condition, versions, found, good=good, call=call)
    return replace(result, is_on_each_row=is_on_each_row)


def _check_order(good: int | None, bad: int | None) -> None:
    if good is not None and bad is not None and good >= bad:
        raise InvalidArgumentError(
            f"good is version {good} and bad is version {bad}. bisect searches for the first version where the "
            "condition holds: good, where it does not hold, must come before bad, where it does."
        )


@dataclass(slots=True)
class _Found:
    """The results at the evaluated versions."""

    answers: dict[int, bool | None]
    """Whether the condition holds at each; None if the version cannot be read."""
    notes: dict[int, str]
    """Notes on some of them."""
    first: int | None = None
    """The first version where it holds."""

    def last_good(self) -> int | None:
        """Return the last version before the first one where it does not hold."""
        return max(
            (one for one, holds in self.answers.items() if holds is False and (self.first is None or one < self.first)),
            default=None,
        )


def _by_metadata(source: Source, condition: MetadataCondition, versions: Sequence[int]) -> _Found:
    holds = condition.holds(source, versions)
    found = _Found(dict(zip(versions, holds, strict=True)), {})
    found.notes = {
        version: "its files, or statistics of them, are not known"
        for version, value in found.answers.items()
        if value is None
    }
    found.first = next((version for version, value in found.answers.items() if value), None)
    return found


class _Rows:
    """A condition in SQL on the rows of a version, on each of them or on all together."""

    def __init__(self, condition: str, reference: TableVersion) -> None:
        self._text = condition
        self._reference = reference
        self._aggregate = aggregate(condition, reference.arrow_schema)
        self.predicate: Predicate | None = None if self._aggregate else row_condition(condition, reference.arrow_schema)
        chosen = self._aggregate or row_condition(condition, reference.arrow_schema)
        self.columns: tuple[str, ...] | None = tuple(
            name for name in reference.arrow_schema.names if name in chosen.columns
        )

    @cached_property
    def partial(self) -> PartialCondition | None:
        """Return the condition in terms of aggregates that add up over files; None if it has no such form."""
        return partial_condition(self._text, self._reference.arrow_schema, is_on_all=self._aggregate is not None)

    def holds(self, version: TableVersion) -> tuple[bool, str | None]:
        """Return whether it holds at a version, and a note if there is one."""
        names = names_before(version, self._reference, self.columns or ())
        lacking = [name for name, there in names.items() if there is None]
        if lacking:
            return False, f"has no column {', '.join(lacking)}"
        known = {name: there for name, there in names.items() if there is not None}
        if self._aggregate is None and all(name == there for name, there in known.items()):
            scan = scan_of(version.arrow_schema, [], self._text, limit=1)
            rows = local.to_arrow(version, version.plan(scan.condition).splits, scan)
            return rows.num_rows > 0, None
        whole = self._aggregate or Aggregate(text=f"bool_or((\n{self._text}\n))", columns=frozenset(known))
        return whole.holds(_relation(version, known)), None


def _relation(version: TableVersion, names: dict[str, str]) -> sql.Relation:
    """Return the rows of a version under the names that columns have in another version."""
    own = version.arrow_schema
    schema = pa.schema([own.field(there).with_name(name) for name, there in names.items()])
    is_renamed = any(name != there for name, there in names.items())

    def read(columns: Sequence[str], where: str | None, limit: int | None) -> pa.Table:
        # The condition uses the other version's names. Without it more rows are read, and DuckDB filters them.
        where, limit = (None, None) if is_renamed else (where, limit)
        scan = scan_of(own, [names[name] for name in columns], where, limit)
        rows = local.to_arrow(version, version.plan(scan.condition).splits, scan)
        return rows.rename_columns(list(columns))

    def count() -> int:
        return local.count(version, version.plan(None).splits, scan_of(own, []))

    if not names:
        # DuckDB needs a column, although none is read.
        schema = pa.schema([own.field(0)]) if len(own) else schema
        names = {schema.names[0]: schema.names[0]} if len(own) else names
    return sql.Relation(what=f"version {version.number}", schema=schema, read=read, count=count)


class _Function:
    """A user's function of a snapshot."""

    columns: tuple[str, ...] | None = None
    predicate: Predicate | None = None

    def __init__(self, function: Callable[..., object], snapshot: Callable[[int | None], object]) -> None:
        self._function = function
        self._snapshot = snapshot

    def holds(self, version: TableVersion) -> tuple[bool, str | None]:
        """Return what the function returns for a version."""
        number = version.number
        try:
            answer = self._function(self._snapshot(number))
        except UNREADABLE:
            raise
        except Exception as error:
            raise InvalidArgumentError(
                f"The function {_name(self._function)} raised at version {number}: {type(error).__name__}: {error}"
            ) from error
        if isinstance(answer, pa.BooleanScalar):
            answer = answer.as_py()
        if not isinstance(answer, bool | np.bool_):
            raise InvalidArgumentError(
                f"The function {_name(self._function)} returned {type(answer).__name__} at version {number}. "
                "Return True or False."
            )
        return bool(answer), None


class _Test:
    """A condition, evaluated on versions."""

    def __init__(self, source: Source, condition: _Rows | _Function) -> None:
        self.source = source
        self.condition = condition

    def evaluate(self, version: int, found: _Found) -> bool | None:
        """Return whether it holds at a version, None if that cannot be read. Records the result and a note."""
        try:
            found.answers[version], note = self.condition.holds(self.source.format.version(version))
        except UNREADABLE as error:
            found.answers[version], note = None, f"cannot be read: {error}"
        if note is not None:
            found.notes[version] = note
        return found.answers[version]


def _test(source: Source, condition: Test, newest: TableVersion) -> _Test:
    if isinstance(condition, str):
        return _Test(source, _Rows(condition, newest))
    if not callable(condition):
        raise InvalidArgumentError(
            f"The condition is of type {type(condition).__name__}. Give SQL, such as 'max(amount) > 100', or a "
            "function of a snapshot that returns True or False."
        )
    return _Test(source, _Function(condition, source.snapshot))


def _reading(versions: Sequence[int], test: _Test, newest: TableVersion) -> Reading:
    splits = newest.plan(test.condition.predicate).splits
    return Reading(
        versions=len(versions),
        loads=1 + (len(versions) - 1).bit_length(),
        columns=test.condition.columns,
        files=sum(len(split.files) for split in splits),
        size_bytes=sum(split.size_bytes for split in splits),
    )


_COMMIT_BYTES = 64 * 2**10
"""The cost of reading the commit of a version, in bytes of data files."""


def _pass_over(
    source: Source, test: _Test, versions: Sequence[int], reading: Reading, *, is_asked: bool | None
) -> SinglePass | None:
    """Return the pass that evaluates the condition at every version; None if loads read less, or it is not exact.

    Raises:
        InvalidArgumentError: The user requires a single pass, and it is not exact.
    """
    bytes_of_loads = reading.loads * reading.size_bytes
    if not is_asked and bytes_of_loads < len(versions) * _COMMIT_BYTES:
        return None
    condition = test.condition
    found: SinglePass | str = "counts, exact sums, min, max, bool_or and bool_and add up over files, and nothing else"
    if isinstance(condition, _Rows) and condition.partial is not None:
        most = len(versions) if is_asked else reading.loads
        found = single_pass_of(source, versions, condition.columns or (), condition.predicate, most_plans=most)
    if isinstance(found, str):
        if is_asked:
            raise InvalidArgumentError(f"A single pass may not be exact here: {found}. Leave single_pass out.")
        return None
    cost = found.size_bytes + len(versions) * _COMMIT_BYTES
    return found if is_asked or cost < bytes_of_loads else None


def _by_pass(
    once: SinglePass, test: _Test, versions: Sequence[int], *, is_asked: bool | None, is_bad_given: bool
) -> _Found | None:
    """Return the result at every version; None to use loads instead, which skip versions that cannot be read."""
    condition = test.condition
    if not isinstance(condition, _Rows) or condition.partial is None:
        return None
    try:
        holds = once.holds(condition.partial, condition.columns or ())
    except (*UNREADABLE, InvalidArgumentError):
        if is_asked:
            raise
        return None
    if is_bad_given and not holds[-1]:
        raise _not_bad(versions[-1], None)
    found = _Found(dict(zip(versions, holds, strict=True)), {})
    found.first = next((version for version, value in found.answers.items() if value), None)
    return found


def _not_bad(version: int, why: str | None) -> InvalidArgumentError:
    why = why or "the condition does not hold there"
    return InvalidArgumentError(f"bad is version {version}, but {why}. Give a version where the condition holds.")


def _by_halving(test: _Test, versions: Sequence[int], *, is_bad_given: bool) -> _Found:
    """Return the results of evaluating the last version, then of halving the versions before it."""
    found = _Found({}, {})
    with step("Evaluating versions", total=1 + (len(versions) - 1).bit_length()) as evaluating:
        end = len(versions) - 1
        while end >= 0 and test.evaluate(versions[end], found) is None and not is_bad_given:
            end -= 1
        evaluating.advance()
        if end < 0 or not found.answers[versions[end]]:
            if is_bad_given:
                raise _not_bad(versions[end], found.notes.get(versions[end]))
            return found
        begin, failures = 0, 0
        while candidates := [one for one in range(begin, end) if versions[one] not in found.answers]:
            chosen = candidates[int(len(candidates) * _fraction(failures))]
            holds = test.evaluate(versions[chosen], found)
            evaluating.advance()
            failures = failures + 1 if holds is None else 0
            if holds:
                end = chosen
            elif holds is not None:
                begin = chosen + 1
        found.first = versions[end]
    return found


def _fraction(failures: int) -> float:
    """Return the share of the candidates before the next one: a half; spread after failures, which may be adjacent."""
    fraction, share, number = 0.0, 0.5, failures + 1
    while number:
        fraction += share * (number % 2)
        number, share = number // 2, share / 2
    return fraction


def _result(
    source: Source, condition: Test, versions: Sequence[int], found: _Found, *, good: int | None, call: str
) -> Bisection:
    first, last_good = found.first, found.last_good()
    return Bisection(
        path=source.path,
        name=source.name,
        format=source.format.name,
        condition=condition if isinstance(condition, str) else _name(condition),
        version=first,
        commit=None if first is None else source.commit(first),
        last_good=last_good,
        versions=tuple(versions),
        span=source.span(versions),
        evaluated=_evaluated(source, found),
        notes=tuple(_notes(versions, found, good)),
        call=call,
        opened=source.opened,
        is_on_each_row=False,
    )


def _notes(versions: Sequence[int], found: _Found, good: int | None) -> list[str]:
    values = dict(sorted(found.answers.items()))
    first, last_good = found.first, found.last_good()
    notes = []
    if first is None:
        if len(values) < len(versions):
            notes.append(
                "Earlier versions were not evaluated. If the condition held at one of them, search up to it: "
                "bad=VERSION."
            )
        return notes
    if first == good:
        notes.append(f"It holds at version {good} already, which was given as good: it may have held before.")
    elif first == versions[0]:
        notes.append(f"Version {first} is the earliest one that can be read: it may have held before.")
    between = [one for one, holds in values.items() if holds is None and (last_good or -1) < one < first]
    if between:
        listed = ", ".join(map(str, between[:10])) + (f" and {len(between) - 10} more" if len(between) > 10 else "")  # noqa: PLR2004 - a line
        notes.append(f"Between the two, what cannot be read is skipped: {listed}. The first one may be among them.")
    known = [one for one, holds in values.items() if holds is not None]
    ends = [late for early, late in itertools.pairwise(known) if values[early] and not values[late]]
    if ends:
        times = "" if len(ends) == 1 else f", and {len(ends) - 1:,} times after that"
        notes.append(f"The condition is not monotone: it ceases to hold at version {ends[0]}{times}.")
    return notes


def _evaluated(source: Source, found: _Found) -> Frame:
    versions = sorted(found.answers)
    columns = [
        pa.array(versions, pa.int64()),
        pa.array(_times(source, versions), frames.UTC_MILLIS),
        pa.array([found.answers[version] for version in versions], pa.bool_()),
        pa.array([found.notes.get(version) for version in versions], pa.string()),
    ]
    rows = pa.table(columns, schema=frames.BISECTED)
    return Frame(rows, title=f"Versions of {source.name} that were evaluated", noun="versions")


def _times(source: Source, versions: Sequence[int]) -> Sequence[datetime | None]:
    try:
        return source.format.committed_at(versions)
    except SnapshotExplorerError:
        return [None] * len(versions)


def _call(condition: Test, good: int | None, bad: int | None) -> str:
    shown = repr(condition) if isinstance(condition, str) else _name(condition)
    given = [f", {name}={value}" for name, value in (("good", good), ("bad", bad)) if value is not None]
    return f".bisect({shown}{''.join(given)})"


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
