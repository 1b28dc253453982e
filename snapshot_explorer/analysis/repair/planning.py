"""Plan a repair: the rows that differ, the statement that puts them back, and notes to read before it is run."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from snapshot_explorer.analysis.diff import DiffRequest, plan_diff, row_diff
from snapshot_explorer.analysis.repair import statements
from snapshot_explorer.analysis.repair.commit_rows import count_touched
from snapshot_explorer.analysis.repair.repair import LaterRows, Repair
from snapshot_explorer.analysis.repair.request import (
    call_of,
    check_key,
    check_request,
    check_texts,
    hint_of,
    later_commits,
    name_in_engine,
    repair_syntax,
    retention_notes,
    same_version,
    time_travel,
    with_settings,
)
from snapshot_explorer.analysis.repair.selection import selected_rows
from snapshot_explorer.analysis.repair.spark_sql import key_condition, spark_condition
from snapshot_explorer.analysis.repair.statements import CURRENT, EARLIER, Selection, Target
from snapshot_explorer.analysis.repair.undoing import plan_undo
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.engines.conditions import parse_condition
from snapshot_explorer.history.overview import last_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snapshot_explorer.analysis.diff import RowDiff
    from snapshot_explorer.analysis.repair.request import RepairRequest
    from snapshot_explorer.analysis.repair.selection import SelectedRows
    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats.interface import Repairs
    from snapshot_explorer.results import Frame


def plan_repair(request: RepairRequest) -> Repair:
    """Return the statement that puts rows back; see `Table.repair`."""
    if request.undone is not None:
        return plan_undo(request, request.undone)
    now, then = request.now.number, request.then.number
    if now is None or then is None:
        raise InvalidArgumentError(f"{request.path} has no version yet: there is nothing to put back.")
    if request.where is None and request.key is not None:
        raise InvalidArgumentError(
            Message("key is for the rows of a condition. Add ", Hint("", {"where": ...}), ", or leave key out.")
        )
    syntax = repair_syntax(request)
    check_request(request, syntax)
    diff_request = DiffRequest(key=_key_of(request), branch=request.source.branch, name=request.name)
    versions = request.now, request.then
    plan = plan_diff(request.path, request.format, *versions, diff_request)
    where = None if request.where is None else parse_condition(request.where, request.then.arrow_schema)
    if not plan.key and request.where is not None:
        # Without a key, the matching rows are replaced: others need not be read.
        plan = plan_diff(request.path, request.format, *versions, replace(diff_request, where=request.where))
    if plan.key and where is not None:
        check_key(request, plan.key)
    diff = row_diff(plan)
    rows, later = selected_rows(diff, where if plan.key else None, plan.key), later_commits(request, then)
    name, name_notes = name_in_engine(request, syntax)
    repair = Repair(
        path=request.path,
        name=request.name,
        format=request.format.name,
        to=then,
        version=now,
        where=request.where,
        key=plan.key if where is not None else (),
        statements=(),
        flink=None,
        rows=rows.counts,
        later=later,
        later_rows=_later_rows(request, diff, where, later) if rows.counts.total else None,
        notes=(),
        check=_check_call(request, then, plan.key),
        call=call_of(request, to=then),
    )
    if not rows.counts.total:
        return repair
    if where is None:
        return _restored(repair, request, syntax, name, name_notes)
    statements, notes = _row_statements(request, syntax, name, where, plan.key, rows)
    notes = (*notes, *name_notes, *_row_notes(request, rows), *retention_notes(request, then))
    return replace(repair, statements=statements, notes=notes)


def _later_rows(request: RepairRequest, diff: RowDiff, where: Condition | None, later: Frame) -> LaterRows | None:
    """Return the changes of commits after the first one that the repair undoes; None if there is only one commit."""
    versions = sorted(later.to_arrow()["version"].to_pylist())
    if len(versions) < 2:  # noqa: PLR2004 - the commit that is undone
        return None
    first, syntax = versions[0], request.format.repairs
    alone = None if syntax is None or syntax.time_travel is None else hint_of(request, undo=first)
    result = LaterRows(first=first, rows=None, alone=alone)
    if later.notes:
        return result  # a commit that cannot be read may be the first one
    asked = DiffRequest(key=list(diff.plan.key), where=diff.plan.where, branch=request.source.branch, name=request.name)
    try:
        after = request.format.version(first)
        since = row_diff(plan_diff(request.path, request.format, after, request.now, asked))
    except SnapshotExplorerError:  # the first commit may have other columns, or be gone
        return result
    if not diff.plan.schema.equals(since.plan.schema):
        return result  # a restore brings other columns back
    counts = count_touched(diff, since, where if diff.plan.key else None, diff.plan.key)
    return replace(result, rows=counts)


def _key_of(request: RepairRequest) -> Sequence[str] | str | None:
    if request.where is not None or request.key is not None:
        return request.key
    # A restore concerns all rows. Updates are counted by a unique primary key; otherwise whole rows are counted.
    return None if request.now.schema.is_merged else []


def _restored(
    repair: Repair, request: RepairRequest, syntax: Repairs, name: tuple[str, ...], name_notes: tuple[str, ...]
) -> Repair:
    commit_id = request.source.commit(repair.to).identifier or ""
    names = name, name if len(name) > 1 else (_database(request.path), *name)
    restored, flink = (
        None
        if template is None
        else statements.engine_statement(template, parts, version=repair.to, identifier=commit_id)
        for template, parts in zip((syntax.restore_command, syntax.flink_restore_command), names, strict=True)
    )
    notes = (syntax.restore_note, *name_notes, same_version(repair.version), *retention_notes(request, repair.to))
    return replace(repair, statements=() if restored is None else (restored,), flink=flink, notes=notes)


def _database(path: str) -> str:
    """Return the database of a table at `.../shop.db/orders`, without which Flink's procedures refuse a name."""
    parent = path.rstrip("/").rpartition("/")[0]
    match = re.fullmatch(r"(\w+)\.db", last_part(parent), re.ASCII)
    return match[1] if match else "DATABASE"


def _row_statements(
    request: RepairRequest,
    syntax: Repairs,
    name: tuple[str, ...],
    where: Condition,
    key: Sequence[str],
    rows: SelectedRows,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    schema = request.now.arrow_schema
    target = Target(
        name=name,
        time_travel=time_travel(request, syntax, request.then),
        columns=tuple(schema.names),
        deletes_unknown=syntax.deletes_unknown,
    )
    if key and rows.keys is not None:
        texts = [key_condition(rows.keys, key, schema, alias) for alias in ("", f"{CURRENT}.", f"{EARLIER}.")]
        selection = Selection(plain=texts[0], of_target=texts[1], of_source=texts[2])
        return with_settings(request, statements.key_statement(target, key, selection, rows.counts, names_keys=True))
    check_texts(request, where)
    conditions = [spark_condition(where, schema, alias) for alias in ("", f"{CURRENT}.", f"{EARLIER}.")]
    plain, of_target, of_source = conditions
    if plain is None or of_target is None or of_source is None:
        hint = "Choose fewer rows" if key else "Name a key, by which the rows are listed,"
        raise UnsupportedFeatureError(
            f"The condition {where.text!r} cannot be written so that Spark certainly selects the same rows. {hint} or "
            "compare columns with values: amount < 0 AND day = '2026-11-01'."
        )
    selection = Selection(plain=plain, of_target=of_target, of_source=of_source)
    if key:
        return with_settings(request, statements.key_statement(target, key, selection, rows.counts, names_keys=False))
    written = statements.replace_statements(target, selection, at_once=syntax.replaces_rows_at_once)
    several = "These are two commits: between them the rows are missing. Run both." if len(written) > 1 else ""
    all_rows = (
        "There is no key: the rows that match now are deleted, and those that matched then are inserted. Afterwards a "
        "row that matches only now is gone, and one that matched only then exists twice, once with its current values. "
        "If the table has a key, name it."
    )
    made, more = with_settings(request, written)
    return made, (all_rows, *([several] if several else []), *more)


def _row_notes(request: RepairRequest, rows: SelectedRows) -> tuple[str, ...]:
    notes = [same_version(request.now.number)]
    if rows.are_all and rows.keys is not None:
        whole = Hint("table.repair", {"to": request.then.number})
        notes.append(Message("No other row differs: ", whole, " restores the table as a whole."))
    return tuple(notes)


def _check_call(request: RepairRequest, then: int, key: Sequence[str]) -> str:
    """Return the diff that is empty after the repair."""
    where = "" if request.where is None else f", where={request.where!r}"
    key_argument = "" if request.key is None else f", key={list(key)!r}"
    return f'{request.source.open_expression}.diff_rows({then}, "latest"{key_argument}{where}).is_empty'
