"""`ErasureStatements`: the statements with which engines erase the rows of traces. Nothing is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapshot_explorer.analysis.repair.request import RepairRequest, check_texts, name_in_engine, with_settings
from snapshot_explorer.analysis.repair.spark_sql import (
    join_items,
    qualified_name,
    spark_condition,
    spark_identifier,
    text_literal,
)
from snapshot_explorer.analysis.repair.statements import Target, engine_statement
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.engines.conditions import parse_condition
from snapshot_explorer.engines.duckdb_ast import quote_identifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from snapshot_explorer.analysis.rows import Trace


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ErasureStatements(Shown):
    """The statements with which engines erase the rows of a lake's trace, as text to copy. Displays itself.

    Nothing was run. They remove history: earlier versions can no longer be read afterwards.
    """

    where: str
    statements: Mapping[str, Sequence[str]]
    """For each table with matching rows its statements, to be run in this order, each after a comment."""
    engines: Mapping[str, str]
    """What runs the statements of each table."""
    notes: Sequence[str]
    """Tables without statements, and what to read before others are run, a sentence or two each."""


def erasure_statements(trace: Trace, version: int, engine_name: str | None) -> tuple[tuple[str, ...], bool]:
    """Return the statements that erase the rows of a trace, in order, and whether the table's name is only assumed.

    Args:
        version: The newest version.
        engine_name: The table's name in the engine; None for the default.

    Raises:
        UnsupportedFeatureError: No statements are written for the format, its condition or its name.
    """
    now = trace.source.format.version(version)
    request = RepairRequest(source=trace.source, now=now, then=now, engine_name=engine_name)
    erasure = request.format.maintenance.erasure
    if erasure is None:
        raise UnsupportedFeatureError(f"No statements are written for {request.format.title} tables.")
    where, syntax, quote = trace.where, request.format.repairs, quote_identifier
    settings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    if syntax is None:
        name = qualified_name(request.engine_name or "lake." + request.name.replace('"', "`"))
    else:
        quote, settings = spark_identifier, with_settings(request, ())[0]
        name, notes = name_in_engine(request, syntax)
        condition = parse_condition(trace.where, schema := request.now.arrow_schema)
        check_texts(request, condition)
        text = spark_condition(condition, schema)
        if text is None:
            raise UnsupportedFeatureError(f"The condition {trace.where!r} cannot be written exactly in Spark SQL.")
        target = Target(name=name, time_travel="", columns=(), deletes_unknown=syntax.deletes_unknown)
        where = target.deleted(text)
    own = request.now.properties
    changed = {key: value for key, (value, default) in erasure.settings.items() if own.get(key, default) != value}
    steps = list(erasure.steps)
    if changed:
        steps.insert(0, ("These properties would keep rows, or forbid to remove them.", _set(changed)))
    if before := {key: own[key] for key in changed if key in own}:
        steps.append(("Set the own properties of the table again.", _set(before)))
    if added := [f"'{key}'" for key in changed if key not in own]:
        steps.append(
            ("Remove the properties again.", f"ALTER TABLE {{name}}\nUNSET TBLPROPERTIES (\n    {join_items(added)})")
        )
    written = [
        f"-- {purpose}\n{engine_statement(template, name, quote=quote, refs=refs, where=where, version=version)}"
        for purpose, template in steps
        for refs, version in _holders(request, trace, template)
    ]
    return (*settings, *written), bool(notes)


def _set(properties: Mapping[str, str]) -> str:
    values = join_items(f"'{key}' = {text_literal(value)}" for key, value in properties.items())
    return f"ALTER TABLE {{name}}\nSET TBLPROPERTIES (\n    {values.replace('{', '{{').replace('}', '}}')})"


def _holders(request: RepairRequest, trace: Trace, template: str) -> Iterator[tuple[Mapping[str, str], int | None]]:
    """Yield the refs of a template, and a tag's version: once, or for each tag or branch that may hold rows."""
    holding = [row for row in trace.versions.to_arrow().to_pylist() if row["rows"] != 0 or row["stored_rows"] != 0]
    if "{tag}" in template or "{version}" in template:
        tags = {ref: row["version"] for row in holding for ref in row["refs"] if ref.startswith("tag ")}
        yield from (({"tag": ref.removeprefix("tag ")}, version) for ref, version in tags.items())
    elif "{branch}" in template:
        others = {row["branch"] for row in holding}.difference({None, request.source.branch_name})
        for name in sorted(others.difference(request.format.branches.detached_heads())):
            yield {"branch": name}, None
    else:
        yield {}, None
