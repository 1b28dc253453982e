"""What is drawn of a repair and of a merge: the statement, the rows to expect, and the next steps."""

import re
from collections.abc import Mapping

from snapshot_explorer.analysis.pairs import MergeStatement
from snapshot_explorer.analysis.repair import ErasureStatements
from snapshot_explorer.analysis.repair.repair import Repair
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.view.dispatch import draw, drawing_of
from snapshot_explorer.view.drawing import Code, Drawing, Line, Pairs, Part
from snapshot_explorer.view.text import WIDTH

_WITH_BLANK = re.compile(r"'[^']* [^']*'|`[^`]* [^`]*`")
"""A text or a name with a blank, at which text is wrapped."""


@draw.register
def _repair(repair: Repair) -> Drawing:
    """Return the plan as a drawing: the statement, the rows to expect, and the next steps."""
    commits = pluralize(len(repair.later), "commit")
    facts: list[tuple[str, object]] = [
        ("format", repair.format),
        ("planned at version", repair.version),
        ("key", ", ".join(repair.key) if repair.key else None),
        ("rows to expect", _expected(repair.counts)),
        _scope(repair, commits),
        ("check afterwards", Code(repair.check)),
        ("call", Code(repair.call)),
        ("next", _next(repair)),
    ]
    known = Pairs(tuple(fact for fact in facts if fact[1] is not None))
    notes = tuple(map(Line, repair.notes))
    left = (
        ()
        if repair.left is None or not len(repair.left)
        else (Line(f"{repair.left.title}:"), *drawing_of(repair.left).parts)
    )
    if repair.is_empty:
        return Drawing(title=_title(repair), parts=(Line(_nothing(repair)), known, *notes, *left))
    parts: list[Part] = [*map(Line, repair.warnings), Line("Spark SQL:"), *_drawn_statement(repair.statement)]
    parts += [] if repair.flink is None else [Line("Flink SQL:"), Code(repair.flink)]
    later = drawing_of(repair.later).parts if len(repair.later) and repair.undone is None else ()
    return Drawing(title=_title(repair), parts=(*parts, known, *notes, *left, *later))


@draw.register
def _merge(merge: MergeStatement) -> Drawing:
    title = f"Merge, not run: what {merge.theirs} changed, to {merge.ours}"
    if merge.is_empty:
        needs = "needs" if merge.conflicts == 1 else "need"
        left = f" {pluralize(merge.conflicts, 'row')} in conflict {needs} a decision." if merge.conflicts else ""
        return Drawing(title=title, parts=(Line(f"Nothing to do: theirs changed no row that a merge brings.{left}"),))
    facts: list[tuple[str, object]] = [
        ("key", ", ".join(merge.key)),
        ("rows to expect", _expected(merge.counts)),
        *([("in conflict", f"{pluralize(merge.conflicts, 'row')}, left out")] if merge.conflicts else []),
    ]
    return Drawing(title=title, parts=(Line("Spark SQL:"), *_drawn_statement(merge.statement), Pairs(tuple(facts))))


@draw.register
def _erasure(erasure: ErasureStatements) -> Drawing:
    parts: list[Part] = []
    for name, statements in erasure.statements.items():
        parts += [Line(f"{name}, {erasure.engines[name]}:"), *_drawn_statement(";\n\n".join(statements), "statements")]
    nothing = [] if parts or erasure.notes else ["Nothing to do: no table is known to have such rows."]
    parts += map(Line, [*erasure.notes, *nothing])
    return Drawing(title=f"Erasure, not run: rows where {erasure.where}", parts=tuple(parts))


def _expected(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {word}" for word, count in counts.items())


def _next(repair: Repair) -> Code | None:
    """Return the call that undoes the first commit alone; None if no warning mentions it."""
    alone = repair.later_rows.alone if repair.later_rows is not None and repair.warnings else None
    return None if alone is None else Code(Message(alone))


def _title(repair: Repair) -> str:
    which = "all rows" if repair.where is None else f"the rows where {repair.where}"
    if repair.undone is not None:
        where = "" if repair.where is None else f" where {repair.where}"
        return f"Repair of {repair.name}, not run: undo version {repair.undone} alone{where}"
    beyond = f", which undoes {len(repair.later):,} commits" if repair.warnings else ""
    return f"Repair of {repair.name}, not run: {which} as at version {repair.to}{beyond}"


def _nothing(repair: Repair) -> str:
    if repair.undone is None:
        return "Nothing to do: no row differs."
    if repair.notes:
        return "Nothing to do: no row is as this commit left it."
    return f"Nothing to do: version {repair.undone} changed no such row."


def _scope(repair: Repair, commits: str) -> tuple[str, object]:
    if repair.undone is not None:
        return "not undone", f"what {commits} since version {repair.undone} did"
    return "undone", None if repair.is_empty else f"what {commits} since version {repair.to} did to these rows"


def _drawn_statement(statement: str, attribute: str = "statement") -> tuple[Part, ...]:
    """Return the whole statement, to be copied, or a line that names the attribute with it."""
    lines = statement.split("\n")
    # A break in a text or a name, where a terminal wraps the line, would be another text.
    is_broken = any(len(line) > WIDTH and _WITH_BLANK.search(line) for line in lines)
    if is_broken or any(sanitize(line) != line for line in lines):
        return (Line(f"The statement has long texts or invisible characters. Copy it from .{attribute}."),)
    return (Code(statement, is_whole=True),)
