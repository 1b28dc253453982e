"""The statement that brings the changes of one side of a three-way diff to the table of the other side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.pairs.three_way_result import CHANGES, MergeStatement
from snapshot_explorer.analysis.repair import undo_statements
from snapshot_explorer.analysis.repair.request import (
    check_key,
    check_request,
    name_in_engine,
    repair_syntax,
    same_version,
    texts_with_padding,
    with_settings,
)
from snapshot_explorer.analysis.repair.selection import MOST_KEYS
from snapshot_explorer.analysis.repair.statements import Target
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import AFTER, BEFORE, DELETED, INSERTED, ROW_KIND

if TYPE_CHECKING:
    from snapshot_explorer.analysis.pairs import ThreeWayDiff
    from snapshot_explorer.analysis.repair.request import RepairRequest


def merge_statement(request: RepairRequest, diff: ThreeWayDiff) -> MergeStatement:
    """Return the statement that brings what theirs changed to ours; see `ThreeWayDiff.merge_statement`.

    Args:
        request: Has the version of ours, both as the newest one and as the one to repair; with the key.
    """
    newest = request.source.versions()[-1]
    if request.now.number != newest:
        raise InvalidArgumentError(
            f"Ours is version {request.now.number}, and a statement changes the newest version, which is {newest}. "
            "Compare that one."
        )
    rows = _listed_rows(request, diff)
    key, left = [diff.names_in_ours[name] for name in diff.key], diff.counts["conflict"]
    kinds = rows.column(0).to_pylist()
    result = MergeStatement(
        ours=diff.ours,
        theirs=diff.theirs,
        key=tuple(key),
        statement="",
        counts=dict(zip(CHANGES, map(kinds.count, (INSERTED, AFTER, DELETED)), strict=True)),
        conflicts=left,
    )
    if not kinds:
        return result
    syntax = repair_syntax(request)
    check_request(request, syntax)
    if padded := [name for name in texts_with_padding(request) if name in key]:
        raise UnsupportedFeatureError(f"Spark pads {', '.join(padded)} of type CHAR with spaces. Choose another key.")
    check_key(request, key)
    name, name_notes = name_in_engine(request, syntax)
    target = Target(name=name, time_travel="", columns=tuple(rows.column_names[1:]))
    written, notes = with_settings(request, (undo_statements.merge_listed(target, key, rows),))
    conflicts = (f"{left:,} conflicting row{'s are' if left > 1 else ' is'} left out.",) if left else ()
    # In one line each: names in notes are not checked, and a line break would end the comment.
    comments = [f"-- {' '.join(note.split())}" for note in (same_version(newest), *conflicts, *name_notes, *notes)]
    return replace(result, statement="\n".join(comments) + "\n" + ";\n\n".join(written))


def _listed_rows(request: RepairRequest, diff: ThreeWayDiff) -> pa.Table:
    """Return `ThreeWayDiff.incoming` without the rows before updates, in the names and types of ours."""
    incoming = diff.incoming
    incoming = incoming.filter(pc.not_equal(incoming.column(0), BEFORE))
    if len(incoming) > MOST_KEYS:
        raise UnsupportedFeatureError(
            Message(
                f"Theirs changed {len(incoming):,} rows, and a statement lists up to {MOST_KEYS}. Compare fewer rows "
                "with ",
                Hint("", {"where": ...}),
                ", or write `incoming` with an engine.",
            )
        )
    schema = request.now.arrow_schema
    lacking = [name for name in schema.names if name not in diff.names_in_ours.values()]
    if lacking and INSERTED in incoming.column(0).to_pylist():
        raise UnsupportedFeatureError(
            f"Theirs inserted rows, which would lack the columns of ours that are not compared: {', '.join(lacking)}."
        )
    names = [diff.names_in_ours[name] for name in incoming.column_names[1:]]
    fields = [pa.field(name, schema.field(name).type) for name in names]
    try:
        return incoming.rename_columns([ROW_KIND, *names]).cast(pa.schema([incoming.schema.field(0), *fields]))
    except pa.ArrowInvalid as error:
        raise UnsupportedFeatureError(f"A value of theirs does not fit its column in ours: {error}.") from error
