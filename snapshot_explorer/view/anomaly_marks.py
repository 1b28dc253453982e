"""Marks of the versions at which a number jumps, for a figure or a table of commits."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.view.drawing import Line
from snapshot_explorer.view.figures import clean_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MARKS = pa.schema(
    [pa.field("version", pa.int64()), pa.field("jumps", pa.string()), pa.field("rules", pa.list_(pa.string()))]
)
_LINE = 90
"""Characters of a line in a tooltip."""
_LONGEST = 400
"""Characters of a rule, which contains the name of a column."""
_MAX_LISTED = 20
"""Marked versions whose rules are listed below a table."""


def version_marks(anomalies: pa.Table) -> pa.Table:
    """Return ANOMALIES as one mark per version, ascending: the columns of `MARKS`.

    `jumps` names the measures that jump, such as `rows, null_rate of amount`; `rules` has their rules with the numbers.
    """
    columns = pc.if_else(
        anomalies["column"].is_valid(), pc.binary_join_element_wise(" of ", anomalies["column"], ""), ""
    )
    rows = pa.table(
        {
            "version": anomalies["version"],
            "word": pc.binary_join_element_wise(anomalies["measure"], columns, ""),
            "rule": anomalies["rule"],
        }
    )
    marked = rows.group_by("version", use_threads=False).aggregate([("word", "list"), ("rule", "list")])
    words = pc.binary_join(marked["word_list"].combine_chunks(), ", ")
    marks = pa.table([marked["version"], words, marked["rule_list"]], schema=MARKS)
    return marks.sort_by("version")


def with_marks(commits: pa.Table, anomalies: pa.Table | None) -> pa.Table:
    """Return commits with the columns `jumps` and `rules`, null if nothing jumps."""
    marks = MARKS.empty_table() if anomalies is None else version_marks(anomalies)
    at = pc.index_in(commits["version"], marks["version"].combine_chunks())
    for name in ("jumps", "rules"):
        commits = commits.append_column(MARKS.field(name), marks[name].combine_chunks().take(at))
    return commits


def rule_lines(rules: Sequence[str] | None) -> list[str]:
    """Return rules as lines of a tooltip."""
    return [line for rule in rules or () for line in textwrap.wrap(f"jump: {clean_text(rule, _LONGEST)}", _LINE)]


def listed_rules(commits: pa.Table) -> Iterator[Line]:
    """Yield the rules of marked commits as sentences, in their order; of many only the first."""
    marked = commits.select(MARKS.names).filter(commits["jumps"].is_valid())
    for row in marked.slice(0, _MAX_LISTED).to_pylist():
        yield Line(f"Version {row['version']}: {'; '.join(row['rules'])}.")
    if len(marked) > _MAX_LISTED:
        yield Line(f"{len(marked) - _MAX_LISTED:,} more versions are marked; %snapshot anomalies has the rules of all.")
