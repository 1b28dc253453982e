"""The first version where a condition holds: from metadata, from one pass over the rows, or by halving."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.engines import local, sql
from snapshot_explorer.engines.aggregates import Aggregate, PartialCondition, aggregate, partial_condition
from snapshot_explorer.engines.conditions import condition as row_condition
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.errors import (
    InvalidArgumentError,
    SnapshotExplorerError,
)
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.frames import Frame
from snapshot_explorer.model import Commit, Gap, Predicate, alternatives_text, gaps_note, gaps_text, runs_of, runs_text
from snapshot_explorer.progress import step
from snapshot_explorer.render import Code, Drawing, Grid, Line, Pairs
from snapshot_explorer.render.cells import counted, fact_line, size
from snapshot_explorer.render.commits import short_user
from snapshot_explorer.render.figures import Picture
from snapshot_explorer.render.tracks import Mark, Span, Track, Tracks, tracks_figure
from snapshot_explorer.rows.diffs.changed_splits import can_diff, can_load
from snapshot_explorer.rows.frame_result import FrameResult
from snapshot_explorer.rows.single_pass import SinglePass
from snapshot_explorer.rows.single_pass import single_pass as single_pass_of
from snapshot_explorer.rows.source import UNREADABLE, Source, names_before
from snapshot_explorer.rows.version_metadata import MetadataCondition, is_on_metadata, metadata_condition

Test: TypeAlias = "str | Callable[..., object]"
"""A condition in SQL, or a function of a snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a bisection will read."""

    versions: int
    """The versions among which the first is searched."""
    loads: int
    """The maximum number of versions whose rows are read."""
    columns: tuple[str, ...] | None
    """The columns to read of each version; None if a function decides."""
    files: int
    """The data files of a load: those that might match at the last version. For a single pass, all that it reads."""
    size_bytes: int
    single_pass: bool = False
    """Whether each file is read once for all versions, instead of loading some versions."""

    def __str__(self) -> str:
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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Bisection(FrameResult):
    """The first version where a condition holds, and how it was found. Draws itself."""

    condition: str
    """The condition as SQL, or the name of the function."""
    version: int | None
    """The first version where the condition holds, of those that can be read; None if it holds at none of the
    evaluated versions, or already at the one that was given as good."""
    commit: Commit | None
    last_good: int | None
    """The last evaluated version before it, where the condition does not hold, or None."""
    good: int | None
    """The version that the caller gave as good."""
    gap: Gap | None
    """The versions right before `version` that are missing or cannot be read: it may hold first at one of them."""
    gaps: tuple[Gap, ...]
    """All gaps between the versions that were searched."""
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
    next_commands: tuple[str, ...]
    """Commands that show more, of versions that can be read."""

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
        notes = (f"{counted(missed, 'version')} of {len(self.versions):,} could not be, or were not, evaluated.",)
        times = counted(max(0, len(changed) - 1), "time")
        return Frame(
            changed,
            title=f"{self.condition} changes {times} from version {self.versions[0]} to {self.versions[-1]}",
            noun="versions",
            drawn=tuple(name for name in changed.column_names if name != "note"),
            notes=notes if missed else (),
        )

    @property
    def holds_at_good(self) -> bool:
        """Return whether the condition holds at the version that was given as good, so that there is no answer."""
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
            return f"{self.condition} holds already at {where}"
        missing = "" if self.gap is None else f": {self.gap}"
        where = f"{'one of the versions' if ' to ' in self.first else 'version'} {self.first}"
        unless = ""
        if self.last_good is None and self.good in self.skipped:
            unless = f", unless at {self.good}, which was given as good and cannot be read"
        return f"{self.condition} holds first at {where} of {self.name}{missing}{unless}"

    def drawing(self) -> Drawing:
        """Return the result as a drawing: the version, the versions around it, and how it was found."""
        rows = self._neighbours()
        grid = Grid(rows, total=len(self.evaluated), noun="evaluated versions", limit=max(1, len(rows)))
        notes = [Line(note) for note in self.notes]
        facts = self._facts()
        pairs = (Pairs(tuple(facts)),) if facts else ()
        answered = len(self.evaluated) - len(self.skipped)
        evaluated = f"{answered:,} of {counted(len(self.versions), 'version')}"
        background = fact_line((("format", self.format), ("versions", self.span), ("evaluated", evaluated)))
        return Drawing(title=self.answer, parts=(*pairs, *notes, grid, background, Code(self.call)))

    def tracks(self) -> Tracks:
        """Return the versions as a strip: where the condition was evaluated, and the first version where it holds."""
        known = np.asarray(self.versions, np.int64)
        rows = [row for row in self.evaluated.to_arrow().to_pylist() if row["version"] in {*self.versions}]
        words = {True: "holds", False: "does not hold", None: "could not be read"}
        marks = [
            Mark(
                place=int(np.searchsorted(known, row["version"])),
                group=words[row["holds"]],
                hover=f"version {row['version']}: {words[row['holds']]}",
            )
            for row in rows
        ]
        last, spans = len(known) - 1, []
        good = -1 if self.last_good is None else int(np.searchsorted(known, self.last_good))
        first = last + 1 if self.version is None else int(np.searchsorted(known, self.version))
        if good >= 0:
            spans.append(Span(first=0, last=good, group="does not hold", hover=_ONLY_MARKED))
        if first - good > 1:
            spans.append(Span(first=good + 1, last=first - 1, group="between", hover=_ONLY_MARKED))
        if self.version is not None:
            spans.append(Span(first=first, last=last, group="holds", hover=_ONLY_MARKED))
            commit = self.commit
            user = f" by {short_user(commit.user)}" if commit is not None and commit.user else ""
            done = "" if commit is None else f" {commit.operation or commit.kind}{user}"
            marks.append(Mark(place=first, group="first", text=f"{self.first}{done}", hover=self.answer))
        track = Track(label="", spans=tuple(spans), marks=tuple(marks))
        return Tracks(title=self.answer, versions=self.versions, tracks=(track,), total=1, noun="conditions")

    def picture(self) -> Picture:
        """Return the versions as a strip, those that were evaluated marked and the first where it holds ringed."""
        return Picture(self.drawing(), lambda: tracks_figure(self.tracks()))

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
        facts: list[tuple[str, object]] = []
        if commit is not None:
            done = [commit.kind, commit.operation, f"by {commit.user}" if commit.user else None]
            of_version = "" if self.gap is None else f" of {self.version}"
            facts += [
                ("first version", self.first),
                (f"commit time{of_version}" if of_version else "committed at", commit.committed_at),
                (f"commit{of_version}", ", ".join(dict.fromkeys(word for word in done if word))),
                ("last version before", self.last_good),
            ]
        return [*facts, ("next", tuple(map(Code, self.next_commands)))] if self.next_commands else facts

    def _neighbours(self) -> pa.Table:
        """Return the evaluated versions; if there are many, those around the result."""
        rows = self.evaluated.to_arrow()
        if len(rows) > _DRAWN:
            index = 0 if self.version is None else int(np.searchsorted(rows["version"].to_numpy(), self.version))
            begin = min(max(0, index - _DRAWN // 2), len(rows) - _DRAWN)
            rows = rows.slice(begin, _DRAWN)
        return rows.drop_columns(["note"]) if rows["note"].null_count == len(rows) else rows


_ONLY_MARKED = "Only versions with a mark were evaluated."
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
    every: bool = False,
) -> Bisection:
    """Return the first version where a condition holds; see `Table.bisect`."""
    _check_order(good, bad)
    if announce is not None and not callable(announce):
        raise InvalidArgumentError(f"announce must be a function of what will be read, got {announce!r}.")
    versions = source.versions(good, bad)
    newest = source.format.version(versions[-1])
    call = source.opened + _call(condition, good, bad)
    is_on_each_row = False
    if isinstance(condition, str) and is_on_metadata(condition, newest.arrow_schema.names):
        on_metadata = metadata_condition(condition, newest.arrow_schema)
        evaluations = _by_metadata(source, on_metadata, versions)
    else:
        test = _test(source, condition, newest)
        is_on_each_row = isinstance(condition, str) and aggregate(condition, newest.arrow_schema) is None
        reading = _reading(versions, test, newest)
        if every:
            reading = replace(reading, loads=len(versions))
        once = None if single_pass is False else _pass_over(source, test, versions, reading, is_required=single_pass)
        if once is not None:
            reading = replace(reading, files=once.files, size_bytes=once.size_bytes, single_pass=True)
        if announce is not None:
            announce(reading)
        passed = None
        if once is not None:
            passed = _by_pass(once, test, versions, is_required=single_pass, is_bad_given=bad is not None)
        search = _by_all if every else _by_halving
        evaluations = search(source, test, versions, is_bad_given=bad is not None) if passed is None else passed
    return _result(source, condition, versions, evaluations, good=good, call=call, is_on_each_row=is_on_each_row)


def _check_order(good: int | None, bad: int | None) -> None:
    if good is not None and bad is not None and good >= bad:
        raise InvalidArgumentError(
            f"good is version {good} and bad is version {bad}. bisect searches for the first version where the "
            "condition holds: good, where it does not hold, must come before bad, where it does."
        )


@dataclass(slots=True)
class _Evaluations:
    """The results at the evaluated versions."""

    answers: dict[int, bool | None] = field(default_factory=dict)
    """Whether the condition holds at each; None if the version cannot be read."""
    notes: dict[int, str] = field(default_factory=dict)
    """Notes on some of them."""
    on_numbers: tuple[str, ...] = ()
    """Notes on the numbers in the condition."""

    @property
    def first(self) -> int | None:
        """Return the first version where it holds."""
        return min((version for version, holds in self.answers.items() if holds), default=None)

    def last_good(self) -> int | None:
        """Return the last version before the first one where it does not hold."""
        return max(
            (
                item
                for item, holds in self.answers.items()
                if holds is False and (self.first is None or item < self.first)
            ),
            default=None,
        )


def _by_metadata(source: Source, condition: MetadataCondition, versions: Sequence[int]) -> _Evaluations:
    holds = condition.holds(source, versions)
    answers = dict(zip(versions, holds, strict=True))
    unknown = "its files, or statistics of them, are not known"
    notes = {version: unknown for version, value in answers.items() if value is None}
    return _Evaluations(answers, notes, condition.notes(source, versions))


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
        names = names_before(version, self._reference, self.columns or ())
        lacking = [name for name, own_name in names.items() if own_name is None]
        if lacking:
            return False, f"has no column {', '.join(lacking)}"
        known = {name: own_name for name, own_name in names.items() if own_name is not None}
        if self._aggregate is None and all(name == own_name for name, own_name in known.items()):
            scan = scan_of(version.arrow_schema, [], self._text, limit=1)
            rows = local.to_arrow(version, version.plan(scan.condition).splits, scan)
            return rows.num_rows > 0, None
        whole = self._aggregate or Aggregate(text=f"bool_or((\n{self._text}\n))", columns=frozenset(known))
        return whole.holds(_relation(version, known)), None


def _relation(version: TableVersion, names: dict[str, str]) -> sql.Relation:
    own = version.arrow_schema
    schema = pa.schema([own.field(own_name).with_name(name) for name, own_name in names.items()])
    is_renamed = any(name != own_name for name, own_name in names.items())

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


_Test = _Rows | _Function


def _evaluate(source: Source, test: _Test, version: int, evaluations: _Evaluations) -> bool | None:
    """Return whether a condition holds at a version, None if that cannot be read. Records the result and a note."""
    try:
        evaluations.answers[version], note = test.holds(source.format.version(version))
    except UNREADABLE as error:
        evaluations.answers[version], note = None, f"cannot be read: {error}"
    if note is not None:
        evaluations.notes[version] = note
    return evaluations.answers[version]


def _test(source: Source, condition: Test, newest: TableVersion) -> _Test:
    if isinstance(condition, str):
        return _Rows(condition, newest)
    if not callable(condition):
        raise InvalidArgumentError(
            f"The condition is of type {type(condition).__name__}. Give SQL, such as 'max(amount) > 100', or a "
            "function of a snapshot that returns True or False."
        )
    return _Function(condition, source.snapshot)


def _reading(versions: Sequence[int], test: _Test, newest: TableVersion) -> Reading:
    splits = newest.plan(test.predicate).splits
    return Reading(
        versions=len(versions),
        loads=1 + (len(versions) - 1).bit_length(),
        columns=test.columns,
        files=sum(len(split.files) for split in splits),
        size_bytes=sum(split.size_bytes for split in splits),
    )


_COMMIT_BYTES = 64 * 2**10
"""The cost of reading the commit of a version, in bytes of data files."""


def _pass_over(
    source: Source, test: _Test, versions: Sequence[int], reading: Reading, *, is_required: bool | None
) -> SinglePass | None:
    """Return the pass that evaluates the condition at every version; None if loads read less, or it is not exact."""
    bytes_of_loads = reading.loads * reading.size_bytes
    if not is_required and bytes_of_loads < len(versions) * _COMMIT_BYTES:
        return None
    result: SinglePass | str = "counts, exact sums, min, max, bool_or and bool_and add up over files, and nothing else"
    if isinstance(test, _Rows) and test.partial is not None:
        max_plans = len(versions) if is_required else reading.loads
        result = single_pass_of(source, versions, test.columns or (), test.predicate, max_plans=max_plans)
    if isinstance(result, str):
        if is_required:
            raise InvalidArgumentError(f"A single pass may not be exact here: {result}. Leave single_pass out.")
        return None
    cost = result.size_bytes + len(versions) * _COMMIT_BYTES
    return result if is_required or cost < bytes_of_loads else None


def _by_pass(
    once: SinglePass, test: _Test, versions: Sequence[int], *, is_required: bool | None, is_bad_given: bool
) -> _Evaluations | None:
    """Return the result at every version; None to use loads instead, which skip versions that cannot be read."""
    if not isinstance(test, _Rows) or test.partial is None:
        return None
    try:
        holds = once.holds(test.partial, test.columns or ())
    except (*UNREADABLE, InvalidArgumentError):
        if is_required:
            raise
        return None
    if is_bad_given and not holds[-1]:
        raise _not_bad(versions[-1], None)
    return _Evaluations(dict(zip(versions, holds, strict=True)))


def _not_bad(version: int, why: str | None) -> InvalidArgumentError:
    why = why or "the condition does not hold there"
    return InvalidArgumentError(f"bad is version {version}, but {why}. Give a version where the condition holds.")


def _by_all(source: Source, test: _Test, versions: Sequence[int], *, is_bad_given: bool) -> _Evaluations:
    """Return the results of evaluating every version."""
    result = _Evaluations()
    with step("Evaluating versions", total=len(versions)) as evaluating:
        for version in versions:
            _evaluate(source, test, version, result)
            evaluating.advance()
    if is_bad_given and not result.answers[versions[-1]]:
        raise _not_bad(versions[-1], result.notes.get(versions[-1]))
    return result


def _by_halving(source: Source, test: _Test, versions: Sequence[int], *, is_bad_given: bool) -> _Evaluations:
    """Return the results of evaluating the last version, then of halving the versions before it."""
    result = _Evaluations()
    with step("Evaluating versions", total=1 + (len(versions) - 1).bit_length()) as evaluating:
        end = len(versions) - 1
        while end >= 0 and _evaluate(source, test, versions[end], result) is None and not is_bad_given:
            end -= 1
        evaluating.advance()
        if end < 0 or not result.answers[versions[end]]:
            if is_bad_given:
                raise _not_bad(versions[end], result.notes.get(versions[end]))
            return result
        begin, failures = 0, 0
        while candidates := [item for item in range(begin, end) if versions[item] not in result.answers]:
            chosen = candidates[int(len(candidates) * _fraction(failures))]
            holds = _evaluate(source, test, versions[chosen], result)
            evaluating.advance()
            failures = failures + 1 if holds is None else 0
            if holds:
                end = chosen
            elif holds is not None:
                begin = chosen + 1
    return result


def _fraction(failures: int) -> float:
    """Return the share of the candidates before the next one: a half; spread after failures, which may be adjacent."""
    fraction, share, number = 0.0, 0.5, failures + 1
    while number:
        fraction += share * (number % 2)
        number, share = number // 2, share / 2
    return fraction


def _result(
    source: Source,
    condition: Test,
    versions: Sequence[int],
    evaluations: _Evaluations,
    *,
    good: int | None,
    call: str,
    is_on_each_row: bool,
) -> Bisection:
    first = None if evaluations.first == good else evaluations.first
    commit = None
    last_good = None if first is None else evaluations.last_good()
    condition_text = condition if isinstance(condition, str) else _name(condition)
    if good is not None and evaluations.answers.get(good):
        next_commands: tuple[str, ...] = (f"%snapshot bisect {condition_text} --bad {good}",)
    elif first is None:
        next_commands = (f"%snapshot blame {condition_text}",) if is_on_each_row else ()
    else:
        commit, next_commands = source.format.storage.together(
            partial(source.commit, first), partial(_commands_of_change, source, last_good, first)
        )
    before = good if last_good is None else last_good
    return Bisection(
        path=source.path,
        name=source.name,
        format=source.format.name,
        condition=condition_text,
        version=first,
        commit=commit,
        last_good=last_good,
        good=good,
        gap=None if first is None or before is None else next(iter(source.gaps((before, first))), None),
        gaps=source.gaps(versions),
        versions=tuple(versions),
        span=source.span(versions),
        evaluated=_evaluated(source, evaluations),
        notes=(*_notes(source.gaps(versions), versions, evaluations, good), *evaluations.on_numbers),
        call=call,
        opened=source.opened,
        is_on_each_row=is_on_each_row,
        next_commands=next_commands,
    )


def _commands_of_change(source: Source, last_good: int | None, first: int) -> tuple[str, ...]:
    """Return commands that show the rows that a version changed.

    Checks that the data files that the commands read exist. Where some do not, the commands read metadata alone.
    """
    if last_good is None:
        return ()
    older, newer = source.format.version(last_good), source.format.version(first)
    is_loadable, has_diff = source.format.storage.together(partial(can_load, older), partial(can_diff, older, newer))
    if not has_diff:
        return f"%snapshot diff {last_good} {first} --files", "%snapshot readability"
    load = [f"%snapshot load {last_good} as before --types numpy"] if is_loadable else []
    return f"%snapshot diff {last_good} {first} --rows", *load


def _notes(gaps: Sequence[Gap], versions: Sequence[int], evaluations: _Evaluations, good: int | None) -> list[str]:
    values = dict(sorted(evaluations.answers.items()))
    first, last_good = evaluations.first, evaluations.last_good()
    notes = list(gaps_note(gaps, "nothing was evaluated there"))
    if first is None:
        if len(values) < len(versions):
            notes.append(
                "Earlier versions were not evaluated. If the condition held at one of them, search up to it: "
                "bad=VERSION."
            )
        return notes
    if first == good:
        notes.append(f"Give as good a version where the condition does not hold, before {good}, or leave good out.")
    elif last_good is None and good is None:
        notes.append("It may have held before.")
    unreadable = [version for version, holds in values.items() if holds is None and version < first]
    if unreadable:
        notes.append(f"Skipped, because they cannot be read: {runs_text(runs_of(unreadable))}.")
    known = [item for item, holds in values.items() if holds is not None]
    ends = [late for early, late in itertools.pairwise(known) if values[early] and not values[late]]
    if ends:
        times = "" if len(ends) == 1 else f", and {len(ends) - 1:,} times after that"
        notes.append(f"The condition is not monotone: it ceases to hold at version {ends[0]}{times}.")
    return notes


def _evaluated(source: Source, evaluations: _Evaluations) -> Frame:
    versions = sorted(evaluations.answers)
    columns = [
        pa.array(versions, pa.int64()),
        pa.array(_times(source, versions), frames.UTC_MILLIS),
        pa.array([evaluations.answers[version] for version in versions], pa.bool_()),
        pa.array([evaluations.notes.get(version) for version in versions], pa.string()),
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
    arguments = [f", {name}={value}" for name, value in (("good", good), ("bad", bad)) if value is not None]
    return f".bisect({shown}{''.join(arguments)})"


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
