"""Plan the undoing of one commit: rows that it removed or changed are put back, rows of later commits stay."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.diff import DiffRequest, plan_diff, row_diff
from snapshot_explorer.analysis.repair import statements, undo_statements
from snapshot_explorer.analysis.repair.commit_rows import commit_rows, count_inserted_again
from snapshot_explorer.analysis.repair.repair import Repair
from snapshot_explorer.analysis.repair.request import (
    call_of,
    check_key,
    check_request,
    check_texts,
    later_commits,
    name_in_engine,
    repair_syntax,
    retention_notes,
    same_version,
    texts_with_padding,
    time_travel,
    with_settings,
)
from snapshot_explorer.analysis.repair.selection import MOST_KEYS
from snapshot_explorer.analysis.repair.spark_sql import is_key_type, key_condition, spark_condition
from snapshot_explorer.analysis.repair.statements import CURRENT, EARLIER, Selection, Target
from snapshot_explorer.analysis.repair.undo_statements import LATER
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotNotFoundError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import DELETED, INSERTED, gaps_text
from snapshot_explorer.engines.conditions import parse_condition
from snapshot_explorer.results import Frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snapshot_explorer.analysis.diff import RowDiff
    from snapshot_explorer.analysis.repair.commit_rows import CommitRows
    from snapshot_explorer.analysis.repair.request import RepairRequest
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats import TableVersion
    from snapshot_explorer.formats.interface import Repairs

_FEWER = Message("Choose fewer rows with ", Hint("", {"where": ...}), ", or name a key.")


def plan_undo(request: RepairRequest, undone: TableVersion) -> Repair:
    """Return the statements that undo a commit, and no later one; see `Table.repair`."""
    now, then, version = request.now.number, request.then.number, undone.number
    if now is None or then is None or version is None:
        raise InvalidArgumentError(f"{request.path} has no version yet: there is nothing to undo.")
    if gaps := request.source.gaps((then, version)):
        raise SnapshotNotFoundError(
            Message(
                f"What version {version} changed is unknown, because {gaps_text(gaps)}. ",
                Hint("table.repair", {"to": ...}),
                " puts back all rows as at a version, which undoes every later commit too.",
            )
        )
    syntax = repair_syntax(request)
    check_request(request, syntax)
    where = None if request.where is None else parse_condition(request.where, request.now.arrow_schema)
    before, newest = request.then, request.now
    changed = _diff(request, before, undone)
    key = changed.plan.key
    if key:
        check_key(request, key)
    since = _diff(request, undone, newest)
    rows = commit_rows(
        changed,
        since,
        lambda: _diff(request, before, newest),
        now=newest,
        where=where,
        key=key,
    )
    # Where nothing is left to undo, as after a repair, no pair can be torn apart.
    if not key and (request.where is not None or rows.counts.total):
        _check_pairs(request, changed, since, version)
    name, name_notes = name_in_engine(request, syntax)
    repair = Repair(
        path=request.path,
        name=request.name,
        format=request.format.name,
        to=then,
        undone=version,
        version=now,
        where=request.where,
        key=key,
        statements=(),
        flink=None,
        rows=rows.counts,
        later=later_commits(request, version),
        left=_left_rows(rows, version),
        left_counts=rows.left_counts,
        notes=_notes(rows, version),
        check=f"{call_of(request, undo=version)}.is_empty",
        call=call_of(request, undo=version),
    )
    if not rows.counts.total:
        return repair
    written = _Undo(request, undone, syntax, name, where, rows, key)
    made, notes = written.by_key() if key else written.without_key()
    ends = (*name_notes, same_version(now), *retention_notes(request, then))
    return replace(repair, statements=made, notes=(*repair.notes, *notes, *ends))


def _check_pairs(request: RepairRequest, changed: RowDiff, since: RowDiff, version: int) -> None:
    """Raise UnsupportedFeatureError if a commit without a key may have updated rows that would be undone only in part.

    It is unknown which inserted row replaced which removed row. If a condition selected only one of the two, or a later
    commit changed the inserted row again, the table would get two rows for the same thing.
    """
    kinds = changed.changed.counts
    if request.where is not None:
        before, after = changed.plan.a.version, changed.plan.b.version
        kinds = _diff(replace(request, where=None), before, after).changed.counts
    if not (kinds.get(INSERTED) and kinds.get(DELETED)):
        return
    reason: str = Message(Hint("", {"where": ...}), " may select one of them and not the other")
    if request.where is None:
        again = count_inserted_again(changed, since)
        if not again:
            return
        reason = f"later commits changed {_rows(again)} of those inserted again"
    raise UnsupportedFeatureError(
        Message(
            f"Version {version} removed rows and inserted others, as an update does. Without a key, which belong "
            "together is unknown, and ",
            reason,
            ". Name a key: ",
            Hint("table.repair", {"undo": version, "key": [...]}),
            ".",
        )
    )


def _diff(request: RepairRequest, a: TableVersion, b: TableVersion) -> RowDiff:
    """Return the rows that differ; without a key, only rows that match the condition."""
    wanted = DiffRequest(key=request.key, branch=request.source.branch, name=request.name)
    plan = plan_diff(request.path, request.format, a, b, wanted)
    if not plan.key and request.where is not None:
        plan = plan_diff(request.path, request.format, a, b, replace(wanted, where=request.where))
    return row_diff(plan)


def _left_rows(rows: CommitRows, version: int) -> Frame:
    """Return the rows that later commits changed too."""
    more = rows.left_rows - len(rows.left)
    notes = (f"{more:,} more are not listed.",) if more else ()
    return Frame(
        rows.left, title=f"Rows that version {version} changed, and later commits too", noun="rows", notes=notes
    )


def _notes(rows: CommitRows, version: int) -> tuple[str, ...]:
    notes = []
    if rows.left_rows:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(rows.left_counts.items()))
        notes.append(f"Left as they are, because later commits changed them too: {_rows(rows.left_rows)} ({reasons}).")
    if rows.already:
        verb = "is" if rows.already == 1 else "are"
        notes.append(f"{_rows(rows.already)} of those that version {version} changed {verb} as before it already.")
    return tuple(notes)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


class _Undo:
    """Writes the statements that undo a commit."""

    def __init__(
        self,
        request: RepairRequest,
        undone: TableVersion,
        syntax: Repairs,
        name: tuple[str, ...],
        where: Condition | None,
        rows: CommitRows,
        key: Sequence[str],
    ) -> None:
        self._request, self._where, self._rows, self._key = request, where, rows, key
        self._schema = request.now.arrow_schema
        self._target = Target(
            name=name,
            time_travel=time_travel(request, syntax, request.then),
            columns=tuple(self._schema.names),
            deletes_unknown=syntax.deletes_unknown,
        )
        self._later = f"{self._target.table} {time_travel(request, syntax, undone)}"

    def by_key(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the statement for rows with a key: the keys are listed, or versions are joined by them."""
        counts, key, target = self._rows.counts, self._key, self._target
        if self._rows.keys is not None:
            texts = [
                key_condition(self._rows.keys, key, self._schema, alias) for alias in ("", f"{CURRENT}.", f"{EARLIER}.")
            ]
            selection = Selection(plain=texts[0], of_target=texts[1], of_source=texts[2])
            written = statements.key_statement(target, key, selection, counts, names_keys=True)
        elif not counts.deleted and not counts.updated:
            written = (undo_statements.insert_removed(target, self._later, key, self._condition(EARLIER)),)
        else:
            self._check_comparable("rows are compared by their values in the statement")
            both = [self._condition(EARLIER), self._condition(LATER)]
            selected = None if None in both else f"({both[0]})\n    OR ({both[1]})"
            floats = [field.name for field in self._schema if pa.types.is_floating(field.type)]
            written = (undo_statements.merge_changed(target, self._later, key, selected, counts, floats=floats),)
        return with_settings(self._request, written)

    def without_key(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the statements for whole rows: inserted ones are deleted, removed ones inserted."""
        counts, rows = self._rows.counts, self._rows.rows
        written = []
        if counts.deleted:
            if rows is None:
                raise UnsupportedFeatureError(
                    Message(
                        f"The commit changed more than {MOST_KEYS:,} rows, and without a key no statement deletes "
                        f"exactly those {counts.deleted:,} that it inserted. ",
                        _FEWER,
                    )
                )
            self._check_literals()
            written.append(undo_statements.delete_rows(self._target, rows))
        if counts.inserted:
            written.append(self._inserted())
        notes = ["There is no key: rows are compared as a whole, so that an update is a row removed and one inserted."]
        if len(written) > 1:
            notes.append("These are two commits: between them the rows are missing. Run both.")
        made, more = with_settings(self._request, tuple(written))
        return made, (*notes, *more)

    def _inserted(self) -> str:
        """Return the INSERT of the removed rows: as the difference of two versions, or listed."""
        # The difference contains rows that later commits changed too, and rows that are there already.
        if not self._rows.left_rows and not self._rows.already and not self._incomparable():
            selected = self._condition("")
            return undo_statements.insert_difference(self._target, self._later, selected)
        if self._rows.rows is None:
            raise UnsupportedFeatureError(
                Message(
                    f"The commit removed more than {MOST_KEYS:,} rows, and without a key no statement inserts exactly "
                    "those that no later commit changed. ",
                    _FEWER,
                )
            )
        self._check_literals()
        return undo_statements.insert_rows(self._target, self._rows.rows)

    def _condition(self, alias: str) -> str | None:
        """Return the condition of the rows in Spark SQL; None without one."""
        if self._where is None:
            return None
        check_texts(self._request, self._where)
        written = spark_condition(self._where, self._schema, f"{alias}." if alias else "")
        if written is None:
            raise UnsupportedFeatureError(
                f"The condition {self._where.text!r} cannot be written so that Spark certainly selects the same rows. "
                "Choose fewer rows, or compare columns with values: amount < 0 AND day = '2026-11-01'."
            )
        return written

    def _incomparable(self) -> Mapping[str, str]:
        """Return the columns whose values Spark may not compare as row diffs do, with their types."""
        declared = {column.name: column.type for column in self._request.now.schema.columns}
        padded = texts_with_padding(self._request)
        found = {
            field.name: declared.get(field.name, str(field.type))
            for field in self._schema
            if field.name in padded or not (is_key_type(field.type) or pa.types.is_floating(field.type))
        }
        if self._rows.has_negative_zero:
            found |= {field.name: "-0.0" for field in self._schema if pa.types.is_floating(field.type)}
        return found

    def _check_comparable(self, reason: str) -> None:
        found = {name: dtype for name, dtype in self._incomparable().items() if dtype != "-0.0"}
        if found:
            shown = ", ".join(f"{name} ({dtype})" for name, dtype in found.items())
            raise UnsupportedFeatureError(
                Message(
                    f"The commit changed more than {MOST_KEYS:,} rows, so that {reason}, and Spark does not compare "
                    f"the values of {shown} exactly. Choose fewer rows with ",
                    Hint("", {"where": ...}),
                    ".",
                )
            )

    def _check_literals(self) -> None:
        """Raise UnsupportedFeatureError if values of a column are not written exactly."""
        for field in self._schema:
            if not (is_key_type(field.type) or pa.types.is_floating(field.type)):
                raise UnsupportedFeatureError(
                    f"Without a key, rows are listed with all their values, and those of {field.name} ({field.type}) "
                    "are not written in statements. Name a key."
                )
