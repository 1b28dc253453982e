"""Marks of the versions at which a number jumps as text, for a figure or a table of commits."""

import textwrap
from collections.abc import Iterator, Sequence

import pyarrow as pa

from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.history.anomaly_marks import MARKS
from snapshot_explorer.view.drawing import Line
from snapshot_explorer.view.figures import clean_text

_LINE = 90
"""Characters of a line in a tooltip."""
_LONGEST = 400
"""Characters of a rule, which contains the name of a column."""
_MAX_LISTED = 20
"""Marked versions whose rules are listed below a table."""


def rule_lines(rules: Sequence[str] | None) -> list[str]:
    """Return rules as lines of a tooltip."""
    return [line for rule in rules or () for line in textwrap.wrap(f"jump: {clean_text(rule, _LONGEST)}", _LINE)]


def listed_rules(commits: pa.Table) -> Iterator[Line]:
    """Yield the rules of marked commits as sentences, in their order; of many only the first."""
    marked = commits.select(MARKS.names).filter(commits["jumps"].is_valid())
    for row in marked.slice(0, _MAX_LISTED).to_pylist():
        yield Line(f"Version {row['version']}: {'; '.join(row['rules'])}.")
    if len(marked) > _MAX_LISTED:
        more = len(marked) - _MAX_LISTED
        rules = Hint("table.anomalies")
        yield Line(Message(f"{more:,} more versions are marked; ", rules, " has the rules of all."))
