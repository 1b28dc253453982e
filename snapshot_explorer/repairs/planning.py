"""Plan a repair: which rows differ, which statement puts them back, and what must be known before it is run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from snapshot_explorer.engines.conditions import condition
from snapshot_explorer.errors import InvalidArgumentError, SnapshotExplorerError, UnsupportedFeatureError
from snapshot_explorer.history import CommitFilter, read_history
from snapshot_explorer.overview import last_part
from snapshot_explorer.repairs import statements
from snapshot_explorer.repairs.repair import Repair
from snapshot_explorer.repairs.selection import selected_rows
from snapshot_explorer.repairs.spark_sql import identifier, is_key_type, key_condition, qualified, spark_condition
from snapshot_explorer.repairs.statements import CURRENT, EARLIER, Selection, Target
from snapshot_explorer.results import Frame
from snapshot_explorer.rows import DiffRequest, plan_diff, row_diff
from snapshot_explorer.rows.duplicates import row_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from snapshot_explorer.engines.conditions import Condition
    from snapshot_explorer.formats import TableFormat
    from snapshot_explorer.formats.interface import RepairSyntax
    from snapshot_explorer.repairs.selection import SelectedRows
    from snapshot_explorer.retention import Retention
    from snapshot_explorer.rows import RowSource
    from snapshot_explorer.snapshot import Snapshot

_ELSEWHERE = "Restore it in the engine that writes the table, or load the rows and write them there."


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRequest:
    """What is put back, and the table it is put back into."""

    source: RowSource
    now: Snapshot
    """The newest version."""
    then: Snapshot
    """The version whose rows are put back."""
    where: str | None
    key: Sequence[str] | str | None
    engine_name: str | None
    """The table's name in the engine; None for the default."""
    retention: Callable[[], Retention]
    """Returns what the table's own settings would remove."""

    @property
    def path(self) -> str:
        """The location of the table, without secrets."""
        return self.source.path

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.source.name

    @property
    def format(self) -> TableFormat:
        """The format, bound to the branch."""
        return self.source.format


def plan_repair(request: RepairRequest) -> Repair:
    """Return the statement that puts rows back; see `Table.repair`."""
    now, then = request.now.version, request.then.version
    if now is None or then is None:
        raise InvalidArgumentError(f"{request.path} has no version yet: there is nothing to put back.")
    if request.where is None and request.key is not None:
        raise InvalidArgumentError("key is for the rows of a condition. Add where=..., or leave key out.")
    syntax = _syntax(request)
    _check(request, syntax)
    diff_request = DiffRequest(key=_key_of(request), branch=request.source.branch, name=request.name)
    versions = request.now.resolved, request.then.resolved
    plan = plan_diff(request.path, request.format, *versions, diff_request)
    where = None if request.where is None else condition(request.where, request.then.arrow_schema)
    if not plan.key and request.where is not None:
        # Without a key, the matching rows are replaced: others need not be read.
        plan = plan_diff(request.path, request.format, *versions, replace(diff_request, where=request.where))
    if plan.key and where is not None:
        _check_key(request, plan.key)
    rows = selected_rows(row_diff(plan), where if plan.key else None, plan.key)
    name, name_notes = _name_in_engine(request, syntax)
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
        later=_later_commits(request, then),
        notes=(),
        check=_check_call(request, then, plan.key),
        call=_call(request, then),
    )
    if not rows.counts.total:
        return repair
    if where is None:
        return _restored(repair, request, syntax, name, name_notes)
    statements, notes = _row_statements(request, syntax, name, where, plan.key, rows)
    notes = (*notes, *name_notes, *_row_notes(request, rows), *_retention_notes(request, then))
    return replace(repair, statements=statements, notes=notes)


def _later_commits(request: RepairRequest, then: int) -> Frame:
    """Return the COMMITS since a version that changed data."""
    versions = [version for version in request.source.versions() if version > then]
    rows = read_history(request.format, versions[::-1], CommitFilter(maintenance=False), None)
    return Frame(rows, title=f"Commits since version {then}", noun="commits")


def _retention_notes(request: RepairRequest, then: int) -> tuple[str, ...]:
    """Return what is known about the retention of a version."""
    try:
        lost = request.retention().lost.to_arrow()["version"].to_pylist()
    except SnapshotExplorerError as error:
        return (f"Whether a clean-up removes version {then} is unknown: {str(error).rstrip('.')}.",)
    return (f"The next clean-up by the table's own settings removes version {then}.",) if then in lost else ()


def _syntax(request: RepairRequest) -> RepairSyntax:
    syntax = request.format.repairs
    if syntax is None or (syntax.time_travel is None and request.where is not None):
        statements = "statements" if syntax is None else "statements on rows"
        raise UnsupportedFeatureError(f"No {statements} are written for {request.format.title} tables. {_ELSEWHERE}")
    if request.source.branch is not None:
        raise UnsupportedFeatureError(
            f"No statements are written for the branch {request.source.branch}, only for the main one. {_ELSEWHERE}"
        )
    return syntax


def _check(request: RepairRequest, syntax: RepairSyntax) -> None:
    """Raise UnsupportedFeatureError if no statement is certain to be exact."""
    of_rows = request.where is not None
    obstacle = request.now.resolved.repair_obstacle(of_rows=of_rows)
    if obstacle is not None:
        raise UnsupportedFeatureError(f"No statement is certain to put these rows back. {obstacle} {_ELSEWHERE}")
    changed = _changed_columns(request)
    if changed and (of_rows or not syntax.restores_schema):
        hint = f" repair({request.then.version}) restores the schema too." if syntax.restores_schema else ""
        raise UnsupportedFeatureError(
            f"The schema changed since version {request.then.version}, so that its rows do not fit: "
            f"{', '.join(changed)}.{hint}"
        )
    if syntax.restores_only_tags and request.then.version not in request.format.tags().values():
        raise UnsupportedFeatureError(
            f"Version {request.then.version} has no savepoint, and {request.format.title} restores only to savepoints. "
            f"Savepoints: {', '.join(map(str, sorted(request.format.tags().values()))) or 'none'}."
        )
    folded = [name.lower() for name in request.now.arrow_schema.names]
    if of_rows and len(set(folded)) < len(folded):
        raise UnsupportedFeatureError(f"Columns whose names differ only in case are one column for Spark. {_ELSEWHERE}")


def _changed_columns(request: RepairRequest) -> list[str]:
    """Return the columns that only one of the versions has, or with another id or type."""
    sides = []
    for snapshot in (request.now, request.then):
        ids = snapshot.resolved.field_ids
        sides.append({field.name: (field.type, ids.get(field.name)) for field in snapshot.arrow_schema})
    now, then = sides
    return sorted(name for name in {*now, *then} if now.get(name) != then.get(name))


def _key_of(request: RepairRequest) -> Sequence[str] | str | None:
    if request.where is not None or request.key is not None:
        return request.key
    # A restore concerns all rows. Updates are counted by the primary key where it is unique; otherwise whole rows are.
    return None if request.now.schema.is_merged else []


def _check_key(request: RepairRequest, key: Sequence[str]) -> None:
    """Raise InvalidArgumentError if a key does not identify the rows of both versions. Reads its columns."""
    for snapshot in (request.now, request.then):
        for name in key:
            if not is_key_type(snapshot.arrow_schema.field(name).type):
                dtype = snapshot.arrow_schema.field(name).type
                raise UnsupportedFeatureError(
                    f"The key column {name} is {dtype}, whose values are not compared in the same way everywhere. "
                    "Choose another key, or key=[] to replace whole rows."
                )
        if snapshot.schema.is_merged and frozenset(key) == frozenset(snapshot.schema.primary_keys):
            continue
        names = ", ".join(key)
        rows = snapshot.to_arrow(columns=list(key))
        has_nulls = any(column.null_count for column in rows.columns)
        if has_nulls or len(row_counts(rows)) < len(rows):
            problem = "is null in rows" if has_nulls else "is the same in several rows"
            raise InvalidArgumentError(
                f"The key {names} {problem} of version {snapshot.version}, so that rows cannot be put back by it. "
                "Choose another key, or key=[] to replace all rows that match."
            )


def _name_in_engine(request: RepairRequest, syntax: RepairSyntax) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the parts of the table's name in the engine, and a note where it is only assumed."""
    if request.engine_name is not None:
        return qualified(request.engine_name), ()
    if request.name != last_part(request.path):
        return qualified(request.name), ()  # opened by its name in a catalog
    if syntax.path_schema is not None:
        return (syntax.path_schema, request.path), ()
    note = f"{identifier(request.name)} stands for the table's name in your catalog: repair(..., name='shop.orders')."
    return (request.name,), (note,)


def _restored(
    repair: Repair, request: RepairRequest, syntax: RepairSyntax, name: tuple[str, ...], name_notes: tuple[str, ...]
) -> Repair:
    commit_id = request.then.commit.identifier or ""
    names = name, name if len(name) > 1 else (_database(request.path), *name)
    restored, flink = (
        None
        if template is None
        else statements.restoring(template, parts, version=repair.to, identifier_text=commit_id)
        for template, parts in zip((request.format.restore_command, syntax.flink_restore_command), names, strict=True)
    )
    notes = (syntax.restore_note, *name_notes, _same_version(repair.version), *_retention_notes(request, repair.to))
    return replace(repair, statements=() if restored is None else (restored,), flink=flink, notes=notes)


def _database(path: str) -> str:
    """Return the database of a table at `.../shop.db/orders`, without which Flink's procedures refuse a name."""
    parent = path.rstrip("/").rpartition("/")[0]
    match = re.fullmatch(r"(\w+)\.db", last_part(parent), re.ASCII)
    return match[1] if match else "DATABASE"


def _row_statements(
    request: RepairRequest,
    syntax: RepairSyntax,
    name: tuple[str, ...],
    where: Condition,
    key: Sequence[str],
    rows: SelectedRows,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    fields = {"version": request.then.version, "identifier": request.then.commit.identifier}
    schema = request.now.arrow_schema
    target = Target(
        name=name,
        time_travel=(syntax.time_travel or "").format(**fields),
        columns=tuple(schema.names),
        deletes_unknown=syntax.deletes_unknown,
    )
    if key and rows.keys is not None:
        texts = [key_condition(rows.keys, key, schema, alias) for alias in ("", f"{CURRENT}.", f"{EARLIER}.")]
        selection = Selection(plain=texts[0], of_target=texts[1], of_source=texts[2])
        return _with_setting(request, statements.by_key(target, key, selection, rows.counts, names_keys=True))
    _check_texts(request, where)
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
        return _with_setting(request, statements.by_key(target, key, selection, rows.counts, names_keys=False))
    written = statements.replacing(target, selection, at_once=syntax.replaces_rows_at_once)
    several = "These are two commits: between them the rows are missing. Run both." if len(written) > 1 else ""
    all_rows = (
        "There is no key: the rows that match now are deleted, and those that matched then are inserted. Afterwards a "
        "row that matches only now is gone, and one that matched only then exists twice, once with its current values. "
        "If the table has a key, name it."
    )
    return written, (all_rows, several) if several else (all_rows,)


def _with_setting(request: RepairRequest, written: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return statements after the setting that a MERGE needs, and a note on it."""
    setting = request.now.resolved.merge_setting
    if setting is None or not written[-1].startswith("MERGE"):
        return written, ()
    note = "The first statement changes a setting of the session, without which the MERGE fails."
    return (f"SET {setting}", *written), (note,)


def _check_texts(request: RepairRequest, where: Condition) -> None:
    """Raise UnsupportedFeatureError if a condition compares a column of type CHAR, which Spark pads."""
    padded = [
        column.name
        for column in request.now.schema.columns
        if column.name in where.columns and column.type.lower().startswith("char")
    ]
    if padded:
        raise UnsupportedFeatureError(
            f"The condition compares {', '.join(padded)} of type CHAR, which Spark pads with spaces. Name a key, or "
            "compare other columns."
        )


def _row_notes(request: RepairRequest, rows: SelectedRows) -> tuple[str, ...]:
    notes = [_same_version(request.now.version)]
    if rows.are_all and rows.keys is not None:
        notes.append(f"No other row differs: repair({request.then.version}) restores the table as a whole.")
    return tuple(notes)


def _same_version(now: int | None) -> str:
    return f"The numbers hold while version {now} is the newest: after another commit, plan again."


def _check_call(request: RepairRequest, then: int, key: Sequence[str]) -> str:
    """Return the diff that is empty after the repair."""
    where = "" if request.where is None else f", where={request.where!r}"
    key_argument = "" if request.key is None else f", key={list(key)!r}"
    return f'{request.source.opened}.diff_rows({then}, "latest"{key_argument}{where}).is_empty'


def _call(request: RepairRequest, then: int) -> str:
    key = [request.key] if isinstance(request.key, str) else request.key
    arguments = [f"to={then}"]
    arguments += [] if request.where is None else [f"where={request.where!r}"]
    arguments += [] if key is None else [f"key={list(key)!r}"]
    arguments += [] if request.engine_name is None else [f"name={request.engine_name!r}"]
    return f"{request.source.opened}.repair({', '.join(arguments)})"
