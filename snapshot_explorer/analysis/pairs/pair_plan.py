"""The plan of a row diff of two tables: its reads, and the proofs from metadata about the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from snapshot_explorer.analysis.diff.aligned_columns import check_names
from snapshot_explorer.analysis.diff.changed_splits import ChangedSplits
from snapshot_explorer.analysis.diff.comparison_rules import comparison_rules
from snapshot_explorer.analysis.diff.diff_plan import RowDiffPlan, Side, predicate_of
from snapshot_explorer.analysis.pairs.metadata_proofs import exact_rows, metadata_proofs
from snapshot_explorer.analysis.pairs.paired_columns import paired_columns
from snapshot_explorer.analysis.pairs.shared_files import unshared_splits
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.engines.conditions import parse_condition
from snapshot_explorer.history import open_expression
from snapshot_explorer.history.lifetimes import time_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from snapshot_explorer.analysis.diff.comparison_rules import Tolerance
    from snapshot_explorer.core.records import Predicate, Split
    from snapshot_explorer.formats import TableFormat, TableVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSide:
    """A version of one of the two tables, or other rows."""

    path: str
    name: str
    version: TableVersion
    branch: str | None = None
    format: TableFormat | None = None
    """The table; None for rows that belong to no table: a DataFrame, or files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRequest:
    """The arguments of a row diff of two tables."""

    key: Sequence[str] | str | None = None
    """The columns that identify a row, by their names in B; None for the primary key, empty to compare whole rows."""
    columns: Mapping[str, str] | None = None
    """Columns of A by their names there, and their names in B; others are paired by name."""
    exclude: Sequence[str] | None = None
    where: str | None = None
    tolerance: Tolerance = None
    relative_tolerance: Tolerance = None
    ignore_case: bool = False
    trim: bool = False


def plan_pair(a: PairSide, b: PairSide, request: PairRequest, *, statistics: bool) -> RowDiffPlan:
    """Return the plan of the row diff of versions of two tables. Plans both versions; reads no rows.

    Args:
        statistics: Whether to add proofs from the statistics of the files to read.
    """
    for side in (a, b):
        if side.format is not None and side.version.number is None:
            raise SnapshotNotFoundError(f"{side.path} has no version yet: nothing has been committed to it.")
    version_a, version_b = a.version, b.version
    version_a.storage.together(lambda: version_a.arrow_schema, lambda: version_b.arrow_schema)  # which both keep
    paired = paired_columns(version_a, version_b, request.columns, request.exclude)
    aligned = paired.aligned
    key = _key(a, b, aligned.names_a, request.key)
    names = aligned.schema.names
    where = None if request.where is None else parse_condition(request.where, aligned.schema)
    rules = comparison_rules(
        aligned.schema,
        key,
        tolerance=request.tolerance,
        relative_tolerance=request.relative_tolerance,
        ignore_case=request.ignore_case,
        trim=request.trim,
    )
    predicates = (
        predicate_of(where, aligned, version_a, of_a=True),
        predicate_of(where, aligned, version_b, of_a=False),
    )
    time_a, time_b, differing = version_a.storage.together(
        lambda: _committed_at(a),
        lambda: _committed_at(b),
        lambda: _differing(a, b, [(aligned.names_a[name], name) for name in names], predicates),
    )
    name_a, name_b = _names(a, b)
    plan = RowDiffPlan(
        path=b.path,
        name=name_a if name_a == name_b else f"{name_a} and {name_b}",
        format=" and ".join(dict.fromkeys(side.format.name for side in (a, b) if side.format is not None)),
        a=_side(a, name_a, time_a, differing.before),
        b=_side(b, name_b, time_b, differing.after),
        key=tuple(name for name in names if name in key),
        columns=tuple(names),
        columns_only_a=aligned.only_a,
        columns_only_b=paired.only_b,
        where=request.where,
        shared_files=differing.shared_files,
        call=_call(a, b, request),
        aligned=aligned,
        condition=where,
        is_declared_key=False,
        rules=rules,
        conversions=paired.conversions,
        partition_columns=tuple(name for name in version_b.schema.partition_keys if name in names),
    )
    first = _proof(plan)
    is_known = a.format is not None and b.format is not None and plan.where is None
    if not statistics or not is_known or not (plan.a.splits or plan.b.splits):
        return replace(plan, proof=first)
    proofs = metadata_proofs(plan, differing.shared)
    return replace(
        plan, proof=" ".join([*([first] if first else []), *proofs.sentences]) or None, partition_rows=proofs.partitions
    )


def _committed_at(side: PairSide) -> datetime | None:
    number = side.version.number
    return None if side.format is None or number is None else time_of(side.format, number)


def _differing(
    a: PairSide,
    b: PairSide,
    columns: Sequence[tuple[str, str]],
    predicates: tuple[Predicate | None, Predicate | None],
) -> ChangedSplits:
    """Return the splits of both sides that can contain different rows."""
    if a.format is not None and b.format is not None:
        return unshared_splits(a.version, b.version, columns, predicates)
    plans = [side.version.plan(predicate) for side, predicate in zip((a, b), predicates, strict=True)]
    return ChangedSplits(before=plans[0].splits, after=plans[1].splits, shared_files=0)


def _side(side: PairSide, name: str, committed_at: datetime | None, splits: tuple[Split, ...]) -> Side:
    return Side(
        version=side.version,
        committed_at=committed_at,
        splits=splits,
        branch=side.branch,
        table=name,
        given=name if side.format is None else None,
    )


def _names(a: PairSide, b: PairSide) -> tuple[str, str]:
    """Return the names of the tables: their paths if both have the same name."""
    return (a.path, b.path) if a.name == b.name and a.path != b.path else (a.name, b.name)


def _key(a: PairSide, b: PairSide, names_a: Mapping[str, str], key: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return the key: the columns that were passed, otherwise the primary key if both tables have the same."""
    if key is None:
        keys = a.version.schema.primary_keys, b.version.schema.primary_keys
        is_same = frozenset(names_a.get(name) for name in keys[1]) == frozenset(keys[0])
        return keys[1] if is_same else ()
    names = (key,) if isinstance(key, str) else key
    chosen = check_names(names, b.version.arrow_schema.names, "key") or ()
    lacking = next((name for name in chosen if name not in names_a), None)
    if lacking is not None:
        raise InvalidArgumentError(
            Message(
                f"The key column {lacking!r} is not compared: A has no column of this name, or it is excluded. ",
                Hint("", {"columns": {"NAME_IN_A": lacking}}),
                " pairs it with one of another name.",
            )
        )
    return chosen


def _proof(plan: RowDiffPlan) -> str | None:
    """Return a sentence on what metadata proves about the rows; None if it proves nothing."""
    a, b = plan.a, plan.b
    if not a.splits and not b.splits:
        files = pluralize(plan.shared_files, "file")
        return (
            f"The rows are equal: both have the same {files}." if plan.shared_files else "Neither has rows to compare."
        )
    if plan.where is not None:
        return None
    rows = [exact_rows(side.splits) for side in (a, b)]
    if None not in rows and rows[0] != rows[1]:
        difference = pluralize(abs((rows[0] or 0) - (rows[1] or 0)), "row")
        more = "A" if (rows[0] or 0) > (rows[1] or 0) else "B"
        return f"The rows differ: {more} has {difference} more."
    return None


def _expression(side: PairSide) -> str:
    """Return the Python that makes a side; the name `df` for what only the caller has."""
    if side.format is None:
        return repr(side.path) if side.path else "df"
    return f"{open_expression(side.path, side.branch, side.format)}.at({side.version.number})"


def _call(a: PairSide, b: PairSide, request: PairRequest) -> str:
    sides = [_expression(side) for side in (a, b)]
    defaults = PairRequest()
    names = ("key", "columns", "exclude", "where", "tolerance", "relative_tolerance", "ignore_case", "trim")
    arguments = [f"{name}={value!r}" for name in names if (value := getattr(request, name)) != getattr(defaults, name)]
    return f"diff({', '.join([*sides, *arguments])})"
