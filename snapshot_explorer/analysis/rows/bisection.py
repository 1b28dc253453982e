"""The first version where a condition holds: from metadata, or from the row history or by halving, what reads less."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.changed_splits import can_diff, can_load
from snapshot_explorer.analysis.row_history import RowHistoryRequest
from snapshot_explorer.analysis.rows.bisection_result import Bisection, BisectionReading
from snapshot_explorer.analysis.rows.single_pass import SinglePass
from snapshot_explorer.analysis.rows.single_pass import single_pass as single_pass_of
from snapshot_explorer.analysis.rows.version_metadata import MetadataCondition, is_on_metadata, metadata_condition
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import (
    UNREADABLE,
    InvalidArgumentError,
    SnapshotExplorerError,
)
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.records import Gap, Predicate, gaps_note, runs_of, runs_text
from snapshot_explorer.engines import local, sql
from snapshot_explorer.engines.aggregates import Aggregate, PartialCondition, aggregate, partial_condition
from snapshot_explorer.engines.conditions import parse_condition as row_condition
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.formats.unread_versions import readable_times
from snapshot_explorer.history import History, names_before
from snapshot_explorer.results import Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import SparkSession

    from snapshot_explorer.formats import TableVersion

Test: TypeAlias = "str | Callable[..., object]"
"""A condition in SQL, or a function of a version."""


def bisect(  # noqa: PLR0913 - what is searched, where, and how
    source: History,
    condition: Test,
    good: int | None = None,
    bad: int | None = None,
    *,
    announce: Callable[[BisectionReading], object] | None = None,
    single_pass: bool | None = None,
    every: bool = False,
    engine: str | SparkSession | None = None,
) -> Bisection:
    """Return the first version where a condition holds; see `Table.bisect`.

    Args:
        condition: SQL, or a function of a version.
    """
    _check_order(good, bad)
    if engine not in (None, "local"):
        if single_pass is False:
            hint = Hint("", {"single_pass": False})
            raise InvalidArgumentError(Message("Spark evaluates conditions in a single pass. Leave out ", hint, "."))
        single_pass = True
    if announce is not None and not callable(announce):
        raise InvalidArgumentError(f"announce must be a function of what will be read, got {announce!r}.")
    versions = source.versions(good, bad)
    newest = source.format.version(versions[-1])
    call = source.open_expression + _call(condition, good, bad, every=every)
    is_on_each_row, cost_of_all = False, ""
    if isinstance(condition, str) and is_on_metadata(condition, newest.arrow_schema.names):
        on_metadata = metadata_condition(condition, newest.arrow_schema)
        evaluations = _by_metadata(source, on_metadata, versions)
    else:
        test = _test(condition, newest)
        is_on_each_row = isinstance(condition, str) and aggregate(condition, newest.arrow_schema) is None
        reading = _reading(versions, test, newest, every=every)
        once = None if single_pass is False else _pass_over(source, test, versions, reading, is_required=single_pass)
        if once is None and single_pass is None and not every and _are_few(versions, test, newest):
            every, reading = True, _reading(versions, test, newest, every=True)
        if once is not None:
            reading = replace(reading, files=once.files, size_bytes=once.size_bytes, single_pass=True)
        if announce is not None:
            announce(reading)
        passed = None
        if once is not None:
            passed = _by_pass(once, versions, engine, is_required=single_pass, is_bad_given=bad is not None)
        search = _by_all if every else _by_halving
        evaluations = search(source, test, versions, is_bad_given=bad is not None) if passed is None else passed
        if len(evaluations.answers) < len(versions):
            cost_of_all = _reading(versions, test, newest, every=True).cost
    result = _result(source, condition, versions, evaluations, good=good, call=call, is_on_each_row=is_on_each_row)
    return _with_all(result, bounds=(good, bad), cost=cost_of_all) if cost_of_all else result


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
    """Whether the condition holds at each version; None if the version cannot be read."""
    notes: dict[int, str] = field(default_factory=dict)
    """Notes on some versions."""
    on_numbers: tuple[str, ...] = ()
    """Notes on the numbers in the condition."""

    @property
    def first(self) -> int | None:
        """Return the first version at which the condition holds."""
        return min((version for version, holds in self.answers.items() if holds), default=None)

    def last_good(self) -> int | None:
        """Return the last version before `first` at which the condition does not hold."""
        return max(
            (
                item
                for item, holds in self.answers.items()
                if holds is False and (self.first is None or item < self.first)
            ),
            default=None,
        )


def _by_metadata(source: History, condition: MetadataCondition, versions: Sequence[int]) -> _Evaluations:
    holds, unread = condition.holds(source, versions)
    answers = dict(zip(versions, holds, strict=True))
    unknown = "its files, or statistics of them, are not known"
    notes = {version: unknown for version, value in answers.items() if value is None}
    notes |= {version: Message("cannot be read: ", error) for version, error in unread.items() if version in notes}
    return _Evaluations(answers, notes, condition.notes(source, versions))


_NOT_PARTIAL = "counts, exact sums, min, max, bool_or and bool_and add up over files, and nothing else"


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

    def single_pass(self, source: History, versions: Sequence[int], *, max_plans: int | None) -> SinglePass | str:
        """Return the pass that evaluates the condition at every version, or why it may not be exact."""
        on_each = self._text if self.predicate is not None else None
        if on_each is None and self.partial is None:
            return _NOT_PARTIAL
        request = RowHistoryRequest(where=on_each, columns=self.columns or None)
        return single_pass_of(source, versions, request, None if on_each else self.partial, max_plans=max_plans)

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
    """A user's function."""

    columns: tuple[str, ...] | None = None
    predicate: Predicate | None = None

    def __init__(self, function: Callable[[int | None], object]) -> None:
        self._function = function

    def holds(self, version: TableVersion) -> tuple[bool, str | None]:
        number = version.number
        try:
            answer = self._function(number)
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


def _evaluate(source: History, test: _Test, version: int, evaluations: _Evaluations) -> bool | None:
    """Return whether a condition holds at a version, None if that cannot be read. Records the result and a note."""
    try:
        evaluations.answers[version], note = test.holds(source.format.version(version))
    except UNREADABLE as error:
        evaluations.answers[version], note = None, Message("cannot be read: ", error)
    if note is not None:
        evaluations.notes[version] = note
    return evaluations.answers[version]


def _test(condition: Test, newest: TableVersion) -> _Test:
    if isinstance(condition, str):
        return _Rows(condition, newest)
    if not callable(condition):
        raise InvalidArgumentError(
            f"The condition is of type {type(condition).__name__}. Give SQL, such as 'max(amount) > 100', or a "
            "function of a snapshot that returns True or False."
        )
    return _Function(condition)


def _reading(versions: Sequence[int], test: _Test, newest: TableVersion, *, every: bool) -> BisectionReading:
    # Other versions may have files that match although none of the newest does.
    splits = newest.plan(None if every else test.predicate).splits
    return BisectionReading(
        versions=len(versions),
        loads=len(versions) if every else 1 + (len(versions) - 1).bit_length(),
        columns=test.columns,
        files=sum(len(split.files) for split in splits),
        size_bytes=sum(split.size_bytes for split in splits),
    )


_COMMIT_BYTES = 64 * 2**10
"""The cost of reading the commit of a version, in bytes of data files."""
_SMALL_BYTES = 16 * 2**20
"""Bytes of data files and commits up to which every version is evaluated, although loads would read less."""
_FEW_VERSIONS = 32
"""The number of versions up to which each is loaded if that reads at most `_SMALL_BYTES`."""


def _are_few(versions: Sequence[int], test: _Test, newest: TableVersion) -> bool:
    """Return whether every version is loaded. A function is not called more often than necessary."""
    if len(versions) > _FEW_VERSIONS or not isinstance(test, _Rows):
        return False
    size_bytes = _reading(versions, test, newest, every=True).size_bytes
    return len(versions) * (size_bytes + _COMMIT_BYTES) <= _SMALL_BYTES


def _pass_over(
    source: History, test: _Test, versions: Sequence[int], reading: BisectionReading, *, is_required: bool | None
) -> SinglePass | None:
    """Return the pass that evaluates the condition at every version; None if it reads more than loads and is not small.

    None also if it may not be exact.
    """
    max_bytes = max(reading.loads * (reading.size_bytes + _COMMIT_BYTES), _SMALL_BYTES)
    if not is_required and max_bytes < len(versions) * _COMMIT_BYTES:
        return None
    result: SinglePass | str = "a function is called with one version at a time"
    try:
        if isinstance(test, _Rows):
            result = test.single_pass(source, versions, max_plans=None if is_required else reading.loads)
    except (*UNREADABLE, InvalidArgumentError):
        if is_required:
            raise
        return None
    if isinstance(result, str):
        if is_required:
            raise InvalidArgumentError(
                f"A single pass may not be exact here: {result}. Leave out single_pass and the engine."
            )
        return None
    cost = result.size_bytes + len(versions) * _COMMIT_BYTES
    return result if is_required or cost <= max_bytes else None


def _by_pass(
    once: SinglePass,
    versions: Sequence[int],
    engine: str | SparkSession | None,
    *,
    is_required: bool | None,
    is_bad_given: bool,
) -> _Evaluations | None:
    """Return the result at every version; None to use loads instead."""
    try:
        holds, unreadable = once.holds(engine)
    except (*UNREADABLE, InvalidArgumentError):
        if is_required:
            raise
        return None
    notes: dict[int, str] = {
        version: Message("cannot be read: ", unreadable[version])
        for version, answer in zip(versions, holds, strict=True)
        if answer is None
    }
    if is_bad_given and not holds[-1]:
        raise _not_bad(versions[-1], notes.get(versions[-1]))
    return _Evaluations(dict(zip(versions, holds, strict=True)), notes)


def _not_bad(version: int, why: str | None) -> InvalidArgumentError:
    why = why or "the condition does not hold there"
    return InvalidArgumentError(
        Message(f"bad is version {version}, but ", why, ". Give a version where the condition holds.")
    )


_AT_ONCE = 8
"""Versions that are loaded at a time from a remote storage."""


def _by_all(source: History, test: _Test, versions: Sequence[int], *, is_bad_given: bool) -> _Evaluations:
    """Return the results of evaluating every version."""
    result = _Evaluations()
    at_once = _AT_ONCE if isinstance(test, _Rows) else 1  # a user's function may not be thread-safe
    with step("Evaluating versions", total=len(versions)) as evaluating:
        for start in range(0, len(versions), at_once):
            chosen = versions[start : start + at_once]
            source.format.storage.together(*(partial(_evaluate, source, test, version, result) for version in chosen))
            evaluating.advance(len(chosen))
    if is_bad_given and not result.answers[versions[-1]]:
        raise _not_bad(versions[-1], result.notes.get(versions[-1]))
    return result


def _by_halving(source: History, test: _Test, versions: Sequence[int], *, is_bad_given: bool) -> _Evaluations:
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
    source: History,
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
        next_calls: tuple[Hint, ...] = (Hint("table.bisect", {"condition": condition_text, "bad": good}),)
    elif first is None:
        next_calls = (Hint("table.blame", {"where": condition_text}),) if is_on_each_row else ()
    else:
        commit, next_calls = source.format.storage.together(
            partial(source.commit, first), partial(_calls_of_change, source, last_good, first)
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
        span=source.span_text(versions),
        evaluated=_evaluated(source, evaluations),
        notes=(*_notes(source.gaps(versions), versions, evaluations, good), *evaluations.on_numbers),
        call=call,
        open_expression=source.open_expression,
        is_on_each_row=is_on_each_row,
        next_calls=next_calls,
    )


def _calls_of_change(source: History, last_good: int | None, first: int) -> tuple[Hint, ...]:
    """Return calls that show the rows that a version changed.

    Checks that the data files that the calls read exist. If some do not, the calls read metadata alone.
    """
    if last_good is None:
        return ()
    older, newer = source.format.version(last_good), source.format.version(first)
    is_loadable, has_diff = source.format.storage.together(partial(can_load, older), partial(can_diff, older, newer))
    if not has_diff:
        return Hint("table.compare", {"a": last_good, "b": first}), Hint("table.verify")
    load = [Hint("snapshot.to_pandas", {"ref": last_good, "types": "numpy"}, result="before")] if is_loadable else []
    return Hint("table.diff_rows", {"a": last_good, "b": first}), *load


def _notes(gaps: Sequence[Gap], versions: Sequence[int], evaluations: _Evaluations, good: int | None) -> list[str]:
    values = dict(sorted(evaluations.answers.items()))
    first, last_good = evaluations.first, evaluations.last_good()
    notes = list(gaps_note(gaps, "nothing was evaluated there"))
    unreadable = [version for version, holds in values.items() if holds is None and (first is None or version < first)]
    if first is None:
        if unreadable:
            notes.append(f"Skipped, because they cannot be read: {runs_text(runs_of(unreadable))}.")
        if len(values) < len(versions):
            notes.append(
                Message(
                    "Earlier versions were not evaluated. If the condition held at one of them, search up to it: ",
                    Hint("", {"bad": ...}),
                    ".",
                )
            )
        return notes
    if first == good:
        notes.append(f"Give as good a version where the condition does not hold, before {good}, or leave good out.")
    elif last_good is None and good is None:
        notes.append("It may have held before.")
    if unreadable:
        notes.append(f"Skipped, because they cannot be read: {runs_text(runs_of(unreadable))}.")
    if len(values) < len(versions):
        return notes
    known = [holds for holds in values.values() if holds is not None]
    changes = sum(before != after for before, after in itertools.pairwise(known))
    if changes > 1:
        runs = tuple((run[0], run[-1]) for run in _runs(values))
        minimum = "at least " if gaps or len(known) < len(values) else ""
        notes.append(f"The condition changes {minimum}{changes:,} times: it holds at {runs_text(runs)}.")
    return notes


def _runs(values: Mapping[int, bool | None]) -> Iterator[list[int]]:
    """Yield the runs of versions at which a condition holds; a version with an unknown result ends a run."""
    for holds, run in itertools.groupby(values, key=lambda version: values[version]):
        if holds:
            yield list(run)


def _with_all(result: Bisection, *, bounds: tuple[int | None, int | None], cost: str) -> Bisection:
    """Return the result of a search with the next step, which evaluates every version, and its cost."""
    options = {name: value for name, value in zip(("good", "bad"), bounds, strict=True) if value is not None}
    first = f"Version {result.version} is the first one if the condition changes only once. "
    every = Hint("table.bisect", {"condition": result.condition, **options, "every": True})
    note = Message(
        first if result.assumes_one_change else "", "Every change is found by ", Hint("", {"every": True}), f": {cost}."
    )
    return replace(result, notes=(*result.notes, note), next_calls=(*result.next_calls, every))


def _evaluated(source: History, evaluations: _Evaluations) -> Frame:
    versions = sorted(evaluations.answers)
    columns = [
        pa.array(versions, pa.int64()),
        pa.array(_times(source, versions), frames.UTC_MILLIS),
        pa.array([evaluations.answers[version] for version in versions], pa.bool_()),
        pa.array([evaluations.notes.get(version) for version in versions], pa.string()),
    ]
    rows = pa.table(columns, schema=frames.BISECTED)
    return Frame(rows, title=f"Versions of {source.name} that were evaluated", noun="versions")


def _times(source: History, versions: Sequence[int]) -> Sequence[datetime | None]:
    try:
        return readable_times(source.format, versions)
    except SnapshotExplorerError:
        return [None] * len(versions)


def _call(condition: Test, good: int | None, bad: int | None, *, every: bool) -> str:
    shown = repr(condition) if isinstance(condition, str) else _name(condition)
    arguments = [f", {name}={value}" for name, value in (("good", good), ("bad", bad)) if value is not None]
    return f".bisect({shown}{''.join(arguments)}{', every=True' if every else ''})"


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
